//! A log for tests: memory into which entries are written one behind the other.

use super::Memtable;
use crate::entry::{self, Kind};
use crate::io::Mapping;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Memory, what of it is taken, and a memtable over it.
pub(super) struct Log {
    pub(super) memory: Arc<Mapping>,
    pub(super) table: Arc<Memtable>,
    next: AtomicUsize,
}

pub(super) const BASE: u64 = 1_000_000_007;

impl Log {
    pub(super) fn new(len: usize) -> Log {
        let memory = Arc::new(Mapping::anonymous(len).unwrap());
        Log { table: Arc::new(Memtable::new(memory.clone(), BASE)), memory, next: AtomicUsize::new(0) }
    }

    /// Writes an entry without inserting it.
    pub(super) fn write(&self, kind: Kind, key: &[u8], value: &[u8]) -> u32 {
        let len = entry::encoded_len(key.len(), value.len());
        let at = self.next.fetch_add(len, Ordering::Relaxed);
        // SAFETY: this range was given to this call alone.
        let n = entry::encode(unsafe { self.memory.slice_mut(at, len) }, kind, b"", key, value);
        assert_eq!(n, len);
        at as u32
    }

    /// Writes an entry and inserts it.
    #[cfg(not(shuttle))]
    pub(super) fn put(&self, key: &[u8], value: &[u8]) -> u32 {
        let offset = self.write(Kind::Put, key, value);
        self.table.insert(offset);
        offset
    }

    /// The newest value of `key` before `before`.
    pub(super) fn get(&self, key: &[u8], before: u64) -> Option<Vec<u8>> {
        let found = self.table.get(key, before)?;
        // SAFETY: an inserted entry's bytes are final.
        Some(unsafe { self.memory.slice(found.offset, found.len) }.to_vec())
    }
}
