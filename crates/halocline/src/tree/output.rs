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

/// Tables being written.
pub(crate) struct Output {
    options: TableOptions,
    cuts: Cuts,
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
        Output { options, cuts, building: None, done: Vec::new(), files: Vec::new(), last_key: Vec::new() }
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
        if let Some(builder) = &self.building
            // All versions of a key belong in one table: the tables of a run do not overlap.
            && *key != *self.last_key
            && self.cuts.before(key, builder.raw_bytes())
        {
            self.finish_table(core)?;
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
