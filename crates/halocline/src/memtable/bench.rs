//! What the benchmark in `benches/memtable.rs` calls: a log's memory full of entries, and a memtable over it.

use super::Memtable;
use crate::entry::{self, Kind};
use crate::io::Mapping;
use crate::iter::{Source, Visibility};
use std::sync::Arc;

/// A written log and a memtable that indexes (some of) it. Hidden; for benchmarks alone.
pub struct MemtableBench {
    memory: Arc<Mapping>,
    offsets: Arc<[u32]>,
    table: Arc<Memtable>,
}

impl MemtableBench {
    /// Writes an entry for each key, in this order, behind a 16-byte record header each.
    pub fn new<K: AsRef<[u8]>>(keys: &[K], value: &[u8]) -> Self {
        let len = |key: &K| 16 + entry::encoded_len(key.as_ref().len(), value.len());
        let total = keys.iter().map(len).sum::<usize>().max(1);
        let memory = Arc::new(Mapping::anonymous(total).expect("memory for a benchmark"));
        let mut at = 0;
        let mut offsets = Vec::with_capacity(keys.len());
        for key in keys {
            // SAFETY: no one else knows the memory yet.
            let out = unsafe { memory.slice_mut(at + 16, len(key) - 16) };
            entry::encode(out, Kind::Put, b"", key.as_ref(), value);
            offsets.push((at + 16) as u32);
            at += len(key);
        }
        let table = Arc::new(Memtable::new(memory.clone(), 0));
        MemtableBench { memory, offsets: offsets.into(), table }
    }

    /// An empty memtable over the same log.
    pub fn empty(&self) -> Self {
        let table = Arc::new(Memtable::new(self.memory.clone(), 0));
        MemtableBench { memory: self.memory.clone(), offsets: self.offsets.clone(), table }
    }

    /// Inserts all entries, one at a time.
    pub fn insert_each(&mut self) {
        for offset in &*self.offsets {
            self.table.insert(*offset);
        }
    }

    /// Inserts all entries in batches.
    pub fn insert_batches(&mut self, len: usize) {
        for batch in self.offsets.chunks(len) {
            self.table.insert_batch(batch);
        }
    }

    /// Inserts all entries from several threads, each of which takes a part of them.
    pub fn insert_threads(&mut self, threads: usize, batch: usize) {
        std::thread::scope(|scope| {
            for part in self.offsets.chunks(self.offsets.len().div_ceil(threads)) {
                let table = &self.table;
                scope.spawn(move || match batch {
                    1 => part.iter().for_each(|offset| table.insert(*offset)),
                    _ => part.chunks(batch).for_each(|batch| table.insert_batch(batch)),
                });
            }
        });
    }

    /// The first byte of a key's value.
    pub fn get(&self, key: &[u8]) -> Option<u8> {
        let found = self.table.get(key, u64::MAX)?;
        // SAFETY: an inserted entry's bytes are final.
        unsafe { self.memory.slice(found.offset, found.len) }.first().copied()
    }

    /// How many of `keys` there are.
    pub fn get_batch<K: AsRef<[u8]>>(&self, keys: &[K]) -> usize {
        let mut found = vec![None; keys.len()];
        self.table.get_batch(keys, u64::MAX, &mut found);
        found.iter().flatten().count()
    }

    /// A sum over all keys and values, so that each is touched.
    pub fn iterate(&self) -> u64 {
        let mut cursor = self.table.cursor(Visibility::Before(u64::MAX));
        cursor.seek_first().expect("memtables do not fail");
        sum(&mut cursor, usize::MAX)
    }

    /// The same over up to `entries` from `key` on.
    pub fn seek(&self, key: &[u8], entries: usize) -> u64 {
        let mut cursor = self.table.cursor(Visibility::Before(u64::MAX));
        cursor.seek(key).expect("memtables do not fail");
        sum(&mut cursor, entries)
    }

    /// Bytes of nodes and chains.
    pub fn used_bytes(&self) -> usize {
        self.table.used_bytes()
    }
}

fn sum(cursor: &mut impl Source, entries: usize) -> u64 {
    let mut sum = 0u64;
    for _ in 0..entries {
        if !cursor.valid() {
            break;
        }
        sum += cursor.key().last().copied().map_or(0, u64::from);
        sum += cursor.value().expect("memtables do not fail").first().copied().map_or(0, u64::from);
        cursor.next().expect("memtables do not fail");
    }
    sum
}
