//! Live snapshots, and the handle to one.
//!
//! The registry hands an address out and records it under one lock; a flush reads the registry after its segment was
//! sealed, and a merge after its inputs were flushed. So a snapshot that they do not see was taken later, at an
//! address above everything they work on, and needs nothing but the newest versions of it.

use super::ColumnFamily;
use super::core::{Core, Version, lock};
use super::iter::Iter;
use super::range::{self, KeyRange};
use crate::sync::{Arc, Mutex};
use crate::{Result, Value};
use std::fmt;

/// The addresses of live snapshots, and how many share each.
#[derive(Default)]
pub(crate) struct Snapshots {
    /// Ascending: a new one nearly always goes to the end.
    live: Mutex<Vec<(u64, usize)>>,
}

impl Snapshots {
    /// All addresses, ascending.
    pub(crate) fn list(&self) -> Vec<u64> {
        lock(&self.live).iter().map(|&(address, _)| address).collect()
    }

    fn take(&self, address: impl FnOnce() -> u64) -> u64 {
        let mut live = lock(&self.live);
        let address = address();
        match live.binary_search_by_key(&address, |&(address, _)| address) {
            Ok(at) => live[at].1 += 1,
            Err(at) => live.insert(at, (address, 1)),
        }
        address
    }

    fn release(&self, address: u64) {
        let mut live = lock(&self.live);
        if let Ok(at) = live.binary_search_by_key(&address, |&(address, _)| address) {
            live[at].1 -= 1;
            if live[at].1 == 0 {
                live.remove(at);
            }
        }
    }
}

/// A stable view of everything that was committed when it was taken: `Clone + Send + Sync`, and it may outlive the
/// [`Db`](crate::Db) handle. While it lives, merges keep the versions it sees.
///
/// ```
/// # fn main() -> halocline::Result<()> {
/// # let dir = tempfile::tempdir().unwrap();
/// # let db = halocline::Db::open(dir.path().join("data"))?;
/// db.put(b"k", b"old")?;
/// let before = db.snapshot()?;
/// db.put(b"k", b"new")?;
/// assert_eq!(before.get(b"k")?.unwrap(), b"old");
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Snapshot {
    held: Arc<Held>,
}

struct Held {
    core: Arc<Core>,
    address: u64,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.core.snapshots.release(self.address);
    }
}

impl Snapshot {
    pub(crate) fn new(core: &Arc<Core>) -> Snapshot {
        let address = core.snapshots.take(|| core.version.pin().tail());
        core.in_flight.wait_below(address);
        Snapshot { held: Arc::new(Held { core: Arc::clone(core), address }) }
    }

    /// The address below which it sees everything.
    pub(crate) fn address(&self) -> u64 {
        self.held.address
    }

    fn version(&self) -> Arc<Version> {
        self.held.core.version.load_arc()
    }

    /// The value of `key` in the default column family as of this snapshot.
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Value>> {
        self.held.core.get(0, key.as_ref(), self.held.address)
    }

    /// The value of `key` in `family` as of this snapshot.
    pub fn get_cf(&self, family: &ColumnFamily, key: impl AsRef<[u8]>) -> Result<Option<Value>> {
        family.check_owner(&self.held.core)?;
        self.held.core.get(family.id(), key.as_ref(), self.held.address)
    }

    /// Entries of the default column family with keys in `range`.
    pub fn range(&self, range: impl KeyRange) -> Iter {
        Iter::new(self.version(), 0, self.held.address, range::owned(&range))
    }

    /// Entries of `family` with keys in `range`.
    pub fn range_cf(&self, family: &ColumnFamily, range: impl KeyRange) -> Iter {
        if let Err(e) = family.check_owner(&self.held.core) {
            return Iter::failed(e);
        }
        Iter::new(self.version(), family.id(), self.held.address, range::owned(&range))
    }

    /// All entries of the default column family.
    pub fn iter(&self) -> Iter {
        self.range(..)
    }
}

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshot").field("address", &self.held.address).finish()
    }
}
