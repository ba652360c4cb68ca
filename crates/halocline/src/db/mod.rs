//! What a user touches: the database, its column families, batches, snapshots, iterators, options and figures.
//!
//! - [`options`]: how a database is opened. [`open`]: opening it.
//! - [`core`]: the version, the commit path, rotation. [`read`]: point reads. [`iter`]: cursors and iterators.
//! - [`batch`], [`snapshots`], [`family`], [`stats`], [`check`]: one concept each.
//! - [`background`]: the threads. [`close`]: the end of them.

pub(crate) mod background;
pub(crate) mod batch;
mod check;
mod close;
pub(crate) mod core;
mod family;
pub(crate) mod iter;
mod multi_get;
pub(crate) mod open;
pub(crate) mod options;
pub(crate) mod range;
pub(crate) mod read;
mod snapshots;
mod stats;

pub use batch::WriteBatch;
pub use check::{CheckReport, Damage};
pub use family::ColumnFamily;
pub use iter::{Cursor, Iter, Keys};
pub use options::{Compaction, Compression, Durability, LogMode, Options, TableAccess};
pub use range::KeyRange;
pub use snapshots::Snapshot;
pub use stats::{LevelStats, MemoryStats, Stats};

pub(crate) use close::Handle;

use crate::entry::Kind;
use crate::sync::Arc;
use crate::{Error, Result, Value};
use core::{Core, Ops};
use std::fmt;
use std::ops::Bound;
use std::path::Path;

/// Lower and upper bound of an iteration.
pub(crate) type Bounds = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// An open database: a handle that is cheap to clone and usable from any thread. The last one closes it.
///
/// Reads and writes without a column family concern the one called `default`.
#[derive(Clone)]
pub struct Db {
    pub(crate) core: Arc<Core>,
    handle: Arc<Handle>,
}

impl Db {
    pub(crate) fn new(core: Arc<Core>, handle: Arc<Handle>) -> Db {
        Db { core, handle }
    }

    /// Opens the database in directory `path` with the default options, creating it if need be.
    pub fn open(path: impl AsRef<Path>) -> Result<Db> {
        Options::new().open(path)
    }

    /// Sets `key` to `value`: a key of at most 64 KiB, a value of at most 1 GiB; both may be empty.
    pub fn put(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        self.core.put(0, key.as_ref(), value.as_ref())
    }

    /// The value of `key`, if it has one. Sees every commit that was acknowledged before the call; of a batch that is being
    /// committed it may see some writes before others. A [`Snapshot`] never does.
    ///
    /// Damage met on the way is an error, never `None`.
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Value>> {
        self.core.get(0, key.as_ref(), u64::MAX)
    }

    /// Copies the value of `key` into `buf`, which is cleared first; false if there is none.
    pub fn get_into(&self, key: impl AsRef<[u8]>, buf: &mut Vec<u8>) -> Result<bool> {
        self.core.get_into(0, key.as_ref(), buf)
    }

    /// Whether `key` has a value. Decodes none.
    pub fn contains(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        self.core.contains(0, key.as_ref(), u64::MAX)
    }

    /// Removes `key`, whether it is there or not.
    pub fn delete(&self, key: impl AsRef<[u8]>) -> Result<()> {
        self.core.delete(0, key.as_ref())
    }

    /// The values of many keys, in their order. Cheaper than as many calls of `get`: cache misses overlap.
    ///
    /// ```
    /// # fn main() -> halocline::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = halocline::Db::open(dir.path().join("data"))?;
    /// db.put(b"a", b"1")?;
    /// let values = db.multi_get(&[b"a", b"b"])?;
    /// assert_eq!(values[0].as_deref(), Some(b"1".as_slice()));
    /// assert!(values[1].is_none());
    /// # Ok(())
    /// # }
    /// ```
    pub fn multi_get<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<Value>>> {
        self.core.multi_get(0, keys)
    }

    /// Commits a batch, all of it or nothing, with the database's durability.
    pub fn write(&self, batch: &WriteBatch) -> Result<()> {
        self.write_with(batch, self.core.options.durability)
    }

    /// Commits a batch with at least this durability; the database's default is the least.
    pub fn write_with(&self, batch: &WriteBatch, durability: Durability) -> Result<()> {
        batch.families.iter().try_for_each(|family| family.check_owner(&self.core))?;
        self.core.commit(&Ops::Batch(batch), durability)
    }

    /// Entries with keys in `range`, in order, from either end, as of now.
    pub fn range(&self, range: impl KeyRange) -> Iter {
        self.core.iter(0, range::owned(&range))
    }

    /// Entries whose keys begin with `prefix`.
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> Iter {
        self.core.iter(0, range::of_prefix(prefix.as_ref()))
    }

    /// All entries.
    pub fn iter(&self) -> Iter {
        self.range(..)
    }

    /// A cursor over all entries as of now, not yet at one.
    pub fn cursor(&self) -> Result<Cursor> {
        self.core.cursor(0)
    }

    /// A stable view of everything committed so far.
    pub fn snapshot(&self) -> Result<Snapshot> {
        self.core.halt.check_closed()?;
        Ok(Snapshot::new(&self.core))
    }

    /// The column family of that name (1 to 1024 bytes), created durably if need be.
    pub fn column_family(&self, name: &str) -> Result<ColumnFamily> {
        ColumnFamily::create(self, name)
    }

    /// The column family of that name, if it is there.
    pub fn find_column_family(&self, name: &str) -> Result<Option<ColumnFamily>> {
        Ok(if family::is_own(name) { None } else { ColumnFamily::find(self, name) })
    }

    /// The names of the column families, `default` first, then in the order of their creation.
    pub fn column_families(&self) -> Result<Vec<String>> {
        Ok(self
            .core
            .version
            .load_arc()
            .tree
            .families
            .iter()
            .filter(|family| !family::is_own(&family.name))
            .map(|family| family.name.to_string())
            .collect())
    }

    /// Drops a column family and all its data, durably; false if there is none of that name. Handles to it get errors from
    /// then on. The default one cannot be dropped.
    pub fn drop_column_family(&self, name: &str) -> Result<bool> {
        family::drop_family(&self.core, name)
    }

    /// Writes everything committed so far to tables, and waits for it.
    pub fn flush(&self) -> Result<()> {
        if self.core.options.read_only { Ok(()) } else { self.core.flush() }
    }

    /// Flushes, then merges all tables that hold keys in `range`, of every column family, down into its last run.
    pub fn compact_range(&self, range: impl KeyRange) -> Result<()> {
        self.core.compact_range(&range::owned(&range))
    }

    /// Waits until nothing is left to flush of what was sealed, and no merge is due.
    pub fn wait_idle(&self) -> Result<()> {
        self.core.wait_idle()
    }

    /// Makes everything committed so far durable.
    pub fn sync(&self) -> Result<()> {
        self.core.sync()
    }

    /// Flushes, stops the background threads and closes the files, for all handles; writes through them, and new
    /// snapshots, then fail with `Closed`. Iterators, snapshots and values that are still held stay readable.
    ///
    /// Dropping the last handle does the same, but cannot tell of an error.
    pub fn close(&self) -> Result<()> {
        self.handle.close()
    }

    /// Figures about what is there and what was done.
    pub fn stats(&self) -> Stats {
        self.core.stats()
    }
}

impl fmt::Debug for Db {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Db").field("dir", &self.core.dir).finish_non_exhaustive()
    }
}

impl Core {
    pub(crate) fn put(&self, family: u32, key: &[u8], value: &[u8]) -> Result<()> {
        self.commit(&Ops::One { kind: Kind::Put, family, key, value }, self.options.durability)
    }

    pub(crate) fn delete(&self, family: u32, key: &[u8]) -> Result<()> {
        self.commit(&Ops::One { kind: Kind::Delete, family, key, value: &[] }, self.options.durability)
    }

    /// A version, and an address at which everything below is complete in it.
    pub(crate) fn view(&self) -> (Arc<core::Version>, u64) {
        let version = self.version.load_arc();
        let before = version.tail();
        self.in_flight.wait_below(before);
        (version, before)
    }

    pub(crate) fn iter(&self, family: u32, bounds: Bounds) -> Iter {
        let (version, before) = self.view();
        Iter::new(version, family, before, bounds)
    }

    pub(crate) fn cursor(&self, family: u32) -> Result<Cursor> {
        let (version, before) = self.view();
        Cursor::new(&version, family, before, &(Bound::Unbounded, Bound::Unbounded))
    }
}

/// A name that a column family cannot have.
fn invalid_name(name: &str) -> Error {
    Error::invalid(format!(
        "{name:?} cannot name a column family: a name has 1 to 1024 bytes, and does not begin with a zero byte"
    ))
}
