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

/// Finds the wide gaps between the keys of a flush: between them lie the runs of writers that each ascend in a range of
/// their own. Cut there, their tables do not overlap those of the flush before, and move down without being rewritten.
///
/// A gap is wide if it spans a 64th of what lies between the first and the last key. Among many keys spread evenly there
/// is none; of those there are at most 64.
pub(crate) struct Gaps {
    /// Bytes that all keys share.
    shared: usize,
    wide: u64,
    last: u64,
}

/// A table is not cut at a gap before it has this many raw bytes.
const SMALLEST_PIECE: u64 = 256 << 10;

impl Gaps {
    /// For keys from `first` to `last`.
    pub(crate) fn between(first: &[u8], last: &[u8]) -> Gaps {
        let shared = first.iter().zip(last).take_while(|(a, b)| a == b).count();
        let (from, to) = (head(first, shared), head(last, shared));
        Gaps { shared, wide: (to.saturating_sub(from) / 64).max(1), last: from }
    }

    /// Whether there is a wide gap before `key`; keys ascend.
    #[inline]
    fn before(&mut self, key: &[u8]) -> bool {
        let head = head(key, self.shared);
        let gap = head.saturating_sub(self.last);
        self.last = head;
        gap > self.wide
    }
}

/// Eight bytes of a key from `at` on, as a number; zeros behind its end.
#[inline]
fn head(key: &[u8], at: usize) -> u64 {
    let tail = key.get(at..).unwrap_or_default();
    match tail.first_chunk() {
        Some(bytes) => u64::from_be_bytes(*bytes),
        None => {
            let mut bytes = [0; 8];
            bytes[..tail.len()].copy_from_slice(tail);
            u64::from_be_bytes(bytes)
        }
    }
}

/// Tables being written.
pub(crate) struct Output {
    options: TableOptions,
    cuts: Cuts,
    gaps: Option<Gaps>,
    building: Option<TableBuilder>,
    done: Vec<TableMeta>,
    /// Every file that was made, to be removed if the job comes to nothing.
    files: Vec<u64>,
    last_key: Vec<u8>,
}

impl Output {
    /// Tables for the last run (`bottom`) or for one above it.
    pub(crate) fn new(core: &Core, cuts: Cuts, bottom: bool) -> Output {
        let compression = match core.options.compression {
            Compression::None => Codec::None,
            Compression::Lz4 => Codec::Lz4,
            Compression::Zstd(level) => Codec::Zstd(level),
        };
        let filter = if bottom { FilterKind::Fuse8 } else { FilterKind::Bloom { bits_per_key: 12 } };
        let options = TableOptions { compression, filter, ..TableOptions::default() };
        Output {
            options,
            cuts,
            gaps: None,
            building: None,
            done: Vec::new(),
            files: Vec::new(),
            last_key: Vec::new(),
        }
    }

    /// Also cuts at the wide gaps.
    pub(crate) fn cut_at(mut self, gaps: Gaps) -> Output {
        self.gaps = Some(gaps);
        self
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
            let gap = self.gaps.as_mut().is_some_and(|gaps| gaps.before(key)) && raw >= SMALLEST_PIECE;
            if self.cuts.before(key, raw) || gap {
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

    /// How many wide gaps there are among these keys.
    fn gaps(keys: &[Vec<u8>]) -> usize {
        let mut gaps = Gaps::between(&keys[0], &keys[keys.len() - 1]);
        keys.iter().filter(|key| gaps.before(key)).count()
    }

    #[test]
    fn writers_that_ascend_in_ranges_of_their_own_leave_wide_gaps_and_even_keys_none() {
        let decimal = |n: u64| format!("{n:016}").into_bytes();
        let ranges: Vec<_> =
            (0..8).flat_map(|t| (0..5000).map(move |i| decimal(t * 1_000_000 + i))).collect();
        assert_eq!(gaps(&ranges), 7);
        let even: Vec<_> = (0..40_000u64).map(|i| (i * 250).to_be_bytes().to_vec()).collect();
        assert_eq!(gaps(&even), 0);
        // Between 1999 and 2000 lie many strings that are no numbers: a gap, but the same one in every flush.
        let digits: Vec<_> = (0..40_000).map(|i| decimal(i * 250)).collect();
        assert_eq!(gaps(&digits), 9);
        assert_eq!(gaps(&[b"a".to_vec()]), 0);
        assert_eq!(gaps(&[b"".to_vec(), b"a".to_vec(), b"ab".to_vec()]), 1);
    }
}
