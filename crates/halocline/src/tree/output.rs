//! Where flushes and merges write: a sequence of tables, cut where the policy wants them cut.

use super::policy::Cuts;
use crate::db::core::Core;
use crate::db::options::{Compression, TableAccess};
use crate::entry::Kind;
use crate::io::OpenMode;
use crate::sync::Arc;
use crate::table::{Access, Codec, FilterKind, GroupCache, Table, TableBuilder, TableMeta, TableOptions};
use crate::{Error, Result};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

/// The path of table file `id`.
pub(crate) fn path_of(dir: &Path, id: u64) -> PathBuf {
    dir.join(format!("{id:012}.tbl"))
}

/// Opens a table that the manifest, or a builder, vouches for.
pub(crate) fn open_table(core: &Core, meta: &TableMeta) -> Result<Arc<Table>> {
    let path = path_of(&core.dir, meta.id);
    let file = core.vfs.open(&path, OpenMode::Read).map_err(|e| Error::io("open a table", &path, e))?;
    let access = match core.options.table_access {
        TableAccess::Auto | TableAccess::Mapped => Access::Mapped,
        TableAccess::Pread => Access::Pread,
    };
    let cache = core.cache.clone().map(|cache| cache as std::sync::Arc<dyn GroupCache>);
    Table::open(file, &path, meta.clone(), access, cache)
}

/// Finds where one writer's keys end and another's begin, when writers each ascend (or descend) in a range of their own.
/// Cut there, their tables do not overlap those of the flush before, and move down without being rewritten.
///
/// In the order of the keys, the log addresses of such a writer's entries only rise (or fall), and at the next writer's
/// first entry they turn; or, if that one wrote later, its key is much farther off than any before. Among keys in random
/// order the addresses turn all the time, and no run is long.
#[derive(Default)]
pub(crate) struct Ascents {
    address: u64,
    rising: bool,
    length: u32,
    key: u128,
    widest: u128,
}

/// A run of so many entries does not come about by chance.
const LONG_RUN: u32 = 200;
/// A gap between keys so many times as wide as the widest of a long run ends it. Between 1999 and 2000, as text, is a gap
/// 256 times as wide as between 1899 and 1900.
const WIDE: u128 = 1000;
/// A table is not cut at the end of a run before it has this many raw bytes.
const SMALLEST_PIECE: u64 = 16 << 10;

impl Ascents {
    /// Whether a long run ends before the entry with this key and address, the next one in the order of the keys.
    #[inline]
    pub(crate) fn end_before(&mut self, key: &[u8], address: u64) -> bool {
        let rising = address > self.address;
        let key = head(key);
        let gap = key.saturating_sub(self.key);
        (self.address, self.key) = (address, key);
        let long = self.length >= LONG_RUN;
        if rising == self.rising && !(long && gap / WIDE > self.widest) {
            self.length += 1;
            self.widest = self.widest.max(gap);
            return false;
        }
        // Behind a long run another one of its direction is likely: the turn itself is no part of either.
        if !long {
            self.rising = rising;
        }
        (self.length, self.widest) = (0, 0);
        long
    }
}

/// The first 16 bytes of a key as a number, zeros behind its end.
#[inline]
fn head(key: &[u8]) -> u128 {
    match key.first_chunk() {
        Some(bytes) => u128::from_be_bytes(*bytes),
        None => {
            let mut bytes = [0; 16];
            bytes[..key.len()].copy_from_slice(key);
            u128::from_be_bytes(bytes)
        }
    }
}

/// Tables being written.
pub(crate) struct Output {
    options: TableOptions,
    cuts: Cuts,
    cut_next: bool,
    building: Option<TableBuilder>,
    done: Vec<TableMeta>,
    /// Every file that was made, to be removed if the job comes to nothing.
    files: Vec<u64>,
    last_key: Vec<u8>,
}

impl Output {
    /// Tables for the last run (`bottom`) or for one above it.
    pub(crate) fn new(core: &Core, cuts: Cuts, bottom: bool) -> Output {
        let bytes: u64 = core.version.pin().tree.families.iter().map(|family| family.bytes()).sum();
        let compression = match core.options.compression {
            _ if bytes < core.options.compress_from => Codec::None,
            Compression::None => Codec::None,
            Compression::Lz4 => Codec::Lz4,
            Compression::Zstd(level) => Codec::Zstd(level),
        };
        let filter = if bottom { FilterKind::Fuse8 } else { FilterKind::Bloom { bits_per_key: 12 } };
        let options = TableOptions { compression, filter, ..TableOptions::default() };
        Output {
            options,
            cuts,
            cut_next: false,
            building: None,
            done: Vec::new(),
            files: Vec::new(),
            last_key: Vec::new(),
        }
    }

    /// A good place to cut is before the next entry.
    pub(crate) fn cut_next(&mut self) {
        self.cut_next = true;
    }

    /// Adds an entry; keys ascend, versions of a key descend.
    pub(crate) fn add(
        &mut self,
        core: &Core,
        key: &[u8],
        version: u64,
        kind: Kind,
        value: &[u8],
    ) -> Result<()> {
        // All versions of a key belong in one table: the tables of a run do not overlap.
        if let Some(builder) = &self.building
            && *key != *self.last_key
        {
            let raw = builder.raw_bytes();
            let wanted = std::mem::take(&mut self.cut_next) && raw >= SMALLEST_PIECE;
            if self.cuts.before(key, raw) || wanted {
                self.finish_table(core)?;
            }
        }
        let builder = match &mut self.building {
            Some(builder) => builder,
            None => {
                let id = core.next_file.fetch_add(1, Ordering::SeqCst);
                let path = path_of(&core.dir, id);
                self.files.push(id);
                let file = core
                    .vfs
                    .open(&path, OpenMode::CreateNew)
                    .map_err(|e| Error::io("create a table", &path, e))?;
                self.building.insert(TableBuilder::new(file, &path, id, self.options.clone()))
            }
        };
        builder.add(key, version, kind, value)?;
        self.last_key.clear();
        self.last_key.extend_from_slice(key);
        Ok(())
    }

    fn finish_table(&mut self, core: &Core) -> Result<()> {
        if let Some(builder) = self.building.take() {
            let meta = builder.finish()?;
            core.counters.table_bytes.add(meta.file_len);
            self.done.push(meta);
        }
        Ok(())
    }

    /// Completes the tables and makes their names durable.
    pub(crate) fn finish(&mut self, core: &Core) -> Result<Vec<TableMeta>> {
        self.finish_table(core)?;
        if !self.done.is_empty() {
            core.vfs
                .sync_dir(&core.dir)
                .map_err(|e| Error::io("sync the database directory", &core.dir, e))?;
        }
        Ok(std::mem::take(&mut self.done))
    }

    /// The manifest is about to be told: nothing may be removed any more.
    pub(crate) fn keep(&mut self) {
        self.files.clear();
    }

    /// Removes what was written: the job came to nothing.
    pub(crate) fn abandon(&mut self, core: &Core) {
        self.building = None;
        for id in self.files.drain(..) {
            // What cannot be removed now is found and removed at the next open.
            let _ = core.vfs.remove(&path_of(&core.dir, id));
        }
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;

    /// Where long runs end among entries with these keys and addresses, in the order of the keys.
    fn ends(entries: impl Iterator<Item = (u64, u64)>) -> Vec<usize> {
        let mut ascents = Ascents::default();
        let ends = |(key, address): (u64, u64)| ascents.end_before(format!("{key:016}").as_bytes(), address);
        entries.map(ends).enumerate().filter_map(|(i, end)| end.then_some(i)).collect()
    }

    #[test]
    fn writers_in_ranges_of_their_own_are_told_apart_and_random_keys_are_not_cut() {
        // Eight writers take turns in the log, 1000 entries each time.
        let writer = |t: u64| {
            (0..5000).map(move |i| (t * 625_000 + i, 4096 + (i / 1000 * 8 + t) * 100_000 + i % 1000 * 100))
        };
        let all: Vec<_> = (0..8).flat_map(writer).collect();
        assert_eq!(ends(all.iter().copied()), [5000, 10_000, 15_000, 20_000, 25_000, 30_000, 35_000]);
        // The same keys, every writer before the next one.
        let one_by_one = all.iter().enumerate().map(|(i, (key, _))| (*key, i as u64 * 100));
        assert_eq!(ends(one_by_one), [5000, 10_000, 15_000, 20_000, 25_000, 30_000, 35_000]);
        let down = all.iter().rev().map(|(_, address)| *address);
        assert_eq!(ends(all.iter().map(|(key, _)| *key).zip(down)).len(), 7);
        let random = |i: u64| i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20;
        assert!(ends((0..100_000).map(|i| (i * 7, random(i)))).is_empty());
        assert!(ends((0..100_000).map(|i| (i, i * 100))).is_empty());
    }
}
