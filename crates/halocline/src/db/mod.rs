//! What a user touches.
#![expect(unused_variables, reason = "the shape of the interface; the bodies follow")]

use crate::io::Vfs;
use crate::{Error, Key, Result, Value};
use std::ops::RangeBounds;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// What a commit survives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// Lost when the process ends, unless flushed to tables.
    None,
    /// Survives a killed process; after power loss, a prefix up to the last sync.
    Process,
    /// As `Process`, and power loss costs at most the last interval.
    Interval(Duration),
    /// Survives power loss when the call returns.
    Sync,
}

/// How values are compressed in tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// Not at all.
    None,
    /// LZ4, where it saves enough.
    Lz4,
    /// Zstandard at a level (feature `zstd`).
    Zstd(i32),
}

/// How the log is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogMode {
    /// Mapped where the file system allows it, else written.
    Auto,
    /// Stores into a mapped file.
    Mapped,
    /// `pwrite` at commit.
    Written,
}

/// How tables are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableAccess {
    /// Mapped while the tables fit comfortably in memory.
    Auto,
    /// Always mapped.
    Mapped,
    /// Always `pread`.
    Pread,
}

/// The compaction policy of a column family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compaction {
    /// A few runs over one partitioned last run.
    Lazy,
    /// One run a level: fewer runs to read, more bytes written.
    Leveled,
    /// Runs merged only with runs of their size: fewer bytes written, more runs to read.
    Tiered,
    /// No merging; the oldest tables are dropped beyond this many bytes.
    Fifo {
        /// Bytes kept.
        max_bytes: u64,
    },
}

/// How a database is opened.
#[derive(Clone, Debug)]
pub struct Options {}

impl Default for Options {
    fn default() -> Self {
        Self::new()
    }
}

impl Options {
    /// The defaults.
    pub fn new() -> Options {
        todo!()
    }
    /// Whether to create the database if it is not there. Default: true.
    pub fn create(self, yes: bool) -> Options {
        todo!()
    }
    /// Largest log segment, and so memtable, in bytes: 1 MiB to 1 GiB. Default: 64 MiB.
    pub fn write_buffer(self, bytes: usize) -> Options {
        todo!()
    }
    /// Memory for hot decoded groups, in bytes. Default: 64 MiB.
    pub fn cache(self, bytes: usize) -> Options {
        todo!()
    }
    /// What a commit survives unless it says otherwise. Default: `Process`.
    pub fn durability(self, durability: Durability) -> Options {
        todo!()
    }
    /// How values are compressed. Default: `Lz4`.
    pub fn compression(self, compression: Compression) -> Options {
        todo!()
    }
    /// The compaction policy. Default: `Lazy`.
    pub fn compaction(self, compaction: Compaction) -> Options {
        todo!()
    }
    /// Merge threads; 0 chooses from the number of cores. Default: 0.
    pub fn compaction_threads(self, n: usize) -> Options {
        todo!()
    }
    /// How the log is written. Default: `Auto`.
    pub fn log_mode(self, mode: LogMode) -> Options {
        todo!()
    }
    /// How tables are read. Default: `Auto`.
    pub fn table_access(self, access: TableAccess) -> Options {
        todo!()
    }
    /// The file system. Default: the operating system's.
    pub fn vfs(self, vfs: Arc<dyn Vfs>) -> Options {
        todo!()
    }
    /// Opens the database in `path` for reading and writing.
    pub fn open(self, path: impl AsRef<Path>) -> Result<Db> {
        todo!()
    }
    /// Opens the database in `path` read-only; nothing is written.
    pub fn open_read_only(self, path: impl AsRef<Path>) -> Result<Db> {
        todo!()
    }
    /// Verifies everything in `path`, read-only, and names each damage.
    pub fn check(self, path: impl AsRef<Path>) -> Result<CheckReport> {
        todo!()
    }
}

/// An open database.
#[derive(Clone, Debug)]
pub struct Db {}

impl Db {
    /// Opens the database in `path` with the default options, creating it if need be.
    pub fn open(path: impl AsRef<Path>) -> Result<Db> {
        Options::new().open(path)
    }
    /// Sets `key` to `value` in the default column family.
    pub fn put(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        todo!()
    }
    /// The value of `key`.
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Value>> {
        todo!()
    }
    /// Copies the value of `key` into `buf` (cleared first); false if there is none.
    pub fn get_into(&self, key: impl AsRef<[u8]>, buf: &mut Vec<u8>) -> Result<bool> {
        todo!()
    }
    /// Whether `key` has a value; decodes none.
    pub fn contains(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        todo!()
    }
    /// Removes `key`.
    pub fn delete(&self, key: impl AsRef<[u8]>) -> Result<()> {
        todo!()
    }
    /// The values of many keys, in their order.
    pub fn multi_get<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<Value>>> {
        todo!()
    }
    /// Commits a batch, whole or not at all, with the database's durability.
    pub fn write(&self, batch: &WriteBatch) -> Result<()> {
        todo!()
    }
    /// Commits a batch with the given durability.
    pub fn write_with(&self, batch: &WriteBatch, durability: Durability) -> Result<()> {
        todo!()
    }
    /// Entries with keys in `range`, in order, from either end.
    pub fn range<K: AsRef<[u8]>>(&self, range: impl RangeBounds<K>) -> Iter {
        todo!()
    }
    /// Entries whose keys begin with `prefix`.
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> Iter {
        todo!()
    }
    /// All entries.
    pub fn iter(&self) -> Iter {
        todo!()
    }
    /// A cursor over all entries, for reuse: it re-seeks cheaply and copies nothing.
    pub fn cursor(&self) -> Result<Cursor> {
        todo!()
    }
    /// A stable view of everything committed so far.
    pub fn snapshot(&self) -> Result<Snapshot> {
        todo!()
    }
    /// The column family of that name, created if need be.
    pub fn column_family(&self, name: &str) -> Result<ColumnFamily> {
        todo!()
    }
    /// The column family of that name, if it is there.
    pub fn find_column_family(&self, name: &str) -> Result<Option<ColumnFamily>> {
        todo!()
    }
    /// The names of the column families, `default` first.
    pub fn column_families(&self) -> Result<Vec<String>> {
        todo!()
    }
    /// Drops a column family and its data; false if there is none.
    pub fn drop_column_family(&self, name: &str) -> Result<bool> {
        todo!()
    }
    /// Writes the memtables to tables and waits for it.
    pub fn flush(&self) -> Result<()> {
        todo!()
    }
    /// Flushes, and merges all tables that overlap `range`, of every column family, into its last run.
    pub fn compact_range<K: AsRef<[u8]>>(&self, range: impl RangeBounds<K>) -> Result<()> {
        todo!()
    }
    /// Waits until no flush or merge is due.
    pub fn wait_idle(&self) -> Result<()> {
        todo!()
    }
    /// Makes everything committed so far durable.
    pub fn sync(&self) -> Result<()> {
        todo!()
    }
    /// Stops the background threads and seals the log. Later calls fail with `Closed`.
    pub fn close(&self) -> Result<()> {
        todo!()
    }
    /// Figures about what is there and what was done.
    pub fn stats(&self) -> Stats {
        todo!()
    }
}

/// A handle to a column family: cheap to clone, usable from any thread.
#[derive(Clone, Debug)]
pub struct ColumnFamily {}

impl ColumnFamily {
    /// Its name.
    pub fn name(&self) -> &str {
        todo!()
    }
    /// As [`Db::put`].
    pub fn put(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        todo!()
    }
    /// As [`Db::get`].
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Value>> {
        todo!()
    }
    /// As [`Db::contains`].
    pub fn contains(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        todo!()
    }
    /// As [`Db::delete`].
    pub fn delete(&self, key: impl AsRef<[u8]>) -> Result<()> {
        todo!()
    }
    /// As [`Db::range`].
    pub fn range<K: AsRef<[u8]>>(&self, range: impl RangeBounds<K>) -> Iter {
        todo!()
    }
    /// As [`Db::prefix`].
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> Iter {
        todo!()
    }
    /// As [`Db::iter`].
    pub fn iter(&self) -> Iter {
        todo!()
    }
    /// As [`Db::cursor`].
    pub fn cursor(&self) -> Result<Cursor> {
        todo!()
    }
}

/// Writes that commit together.
#[derive(Clone, Debug, Default)]
pub struct WriteBatch {}

impl WriteBatch {
    /// An empty batch.
    pub fn new() -> WriteBatch {
        todo!()
    }
    /// Sets `key` to `value` in the default column family.
    pub fn put(&mut self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) {
        todo!()
    }
    /// Sets `key` to `value` in `family`.
    pub fn put_cf(&mut self, family: &ColumnFamily, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) {
        todo!()
    }
    /// Removes `key` from the default column family.
    pub fn delete(&mut self, key: impl AsRef<[u8]>) {
        todo!()
    }
    /// Removes `key` from `family`.
    pub fn delete_cf(&mut self, family: &ColumnFamily, key: impl AsRef<[u8]>) {
        todo!()
    }
    /// Number of writes.
    pub fn len(&self) -> usize {
        todo!()
    }
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        todo!()
    }
    /// Forgets the writes and keeps the memory.
    pub fn clear(&mut self) {
        todo!()
    }
}

/// A stable view: `Clone + Send + Sync`, and it may outlive the `Db`.
#[derive(Clone, Debug)]
pub struct Snapshot {}

impl Snapshot {
    /// The value of `key` in the default column family as of this snapshot.
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Value>> {
        todo!()
    }
    /// The value of `key` in `family` as of this snapshot.
    pub fn get_cf(&self, family: &ColumnFamily, key: impl AsRef<[u8]>) -> Result<Option<Value>> {
        todo!()
    }
    /// Entries with keys in `range`.
    pub fn range<K: AsRef<[u8]>>(&self, range: impl RangeBounds<K>) -> Iter {
        todo!()
    }
    /// Entries of `family` with keys in `range`.
    pub fn range_cf<K: AsRef<[u8]>>(&self, family: &ColumnFamily, range: impl RangeBounds<K>) -> Iter {
        todo!()
    }
    /// All entries.
    pub fn iter(&self) -> Iter {
        todo!()
    }
}

/// Entries in order, from either end. An error ends it.
#[derive(Debug)]
pub struct Iter {}

impl Iter {
    /// Only the keys: no value is decoded.
    pub fn keys(self) -> impl DoubleEndedIterator<Item = Result<Key>> {
        std::iter::empty()
    }
}

impl Iterator for Iter {
    type Item = Result<(Key, Value)>;
    fn next(&mut self) -> Option<Self::Item> {
        todo!()
    }
}

impl DoubleEndedIterator for Iter {
    fn next_back(&mut self) -> Option<Self::Item> {
        todo!()
    }
}

/// A position among the entries, as of when the cursor was made. It lends keys and values instead of copying them.
#[derive(Debug)]
pub struct Cursor {}

impl Cursor {
    /// Moves to the first entry.
    pub fn seek_first(&mut self) -> Result<()> {
        todo!()
    }
    /// Moves to the last entry.
    pub fn seek_last(&mut self) -> Result<()> {
        todo!()
    }
    /// Moves to the first entry at or behind `key`.
    pub fn seek(&mut self, key: impl AsRef<[u8]>) -> Result<()> {
        todo!()
    }
    /// Moves to the last entry at or before `key`.
    pub fn seek_for_prev(&mut self, key: impl AsRef<[u8]>) -> Result<()> {
        todo!()
    }
    /// Moves on by one.
    #[expect(clippy::should_implement_trait, reason = "a lending cursor, not an iterator")]
    pub fn next(&mut self) -> Result<()> {
        todo!()
    }
    /// Moves back by one.
    pub fn prev(&mut self) -> Result<()> {
        todo!()
    }
    /// Whether the cursor is at an entry.
    pub fn valid(&self) -> bool {
        todo!()
    }
    /// The entry's key. Panics if not valid.
    pub fn key(&self) -> &[u8] {
        todo!()
    }
    /// The entry's value, decoded when asked for.
    pub fn value(&mut self) -> Result<&[u8]> {
        todo!()
    }
}

/// Figures about an open database.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Stats {
    /// The levels of the default column family and the others, summed: upper runs first, the last run last.
    pub levels: Vec<LevelStats>,
    /// Bytes users asked to write: keys and values.
    pub user_bytes_written: u64,
    /// Bytes written to the log, to tables and to the manifest.
    pub bytes_written: u64,
    /// Bytes of files on disk.
    pub disk_bytes: u64,
    /// Memory of memtable nodes, filters, fences and the cache.
    pub memory_bytes: u64,
}

/// One level: a run, or runs of one size.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct LevelStats {
    /// Sorted runs.
    pub runs: usize,
    /// Table files.
    pub files: usize,
    /// Bytes of these.
    pub bytes: u64,
}

/// What [`Options::check`] found.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct CheckReport {
    /// Files read.
    pub files: usize,
    /// Bytes read.
    pub bytes: u64,
    /// Entries read.
    pub entries: u64,
    /// Each damage found.
    pub damages: Vec<Damage>,
}

/// One damaged place.
#[derive(Clone, Debug)]
pub struct Damage {
    /// What is wrong, with the file and the offset.
    pub error: Error,
}
