//! What a transaction has written so far: a batch, encoded as it will be committed, with an ordered index over it.
//!
//! A commit is one copy of the batch, whatever its order. The index holds the number of the newest entry of each key,
//! sorted by internal key, in chunks of at most [`CHUNK`]: a put costs one binary search over the chunks, one within
//! one, and a move of at most 2 KiB, from the first key to the millionth. Nothing is allocated for a key.
//!
//! Each entry remembers the one whose place it took. Undoing entries, last first, restores the index exactly; that is
//! how savepoints work.

use crate::db::WriteBatch;
use crate::entry::{self, Entry, Kind, Prefix};
use crate::iter::Source;
use crate::sync::Arc;
use crate::{Error, Result};

/// Most entries in a chunk of the index.
const CHUNK: usize = 512;
/// The entry took nobody's place.
const NONE: u32 = u32::MAX;

/// See the module.
#[derive(Clone, Debug, Default)]
pub(crate) struct WriteSet {
    batch: WriteBatch,
    /// For each entry the older one of its key, or `NONE`.
    replaced: Vec<u32>,
    /// The newest entry of each key, by key; no chunk is empty.
    chunks: Vec<Vec<u32>>,
    /// A chunk's memory, for the next first chunk.
    spare: Vec<u32>,
}

/// A place in the index: the chunk, and the position in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    chunk: usize,
    at: usize,
}

/// How much was written at some moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    entries: usize,
    families: usize,
}

impl WriteSet {
    /// The batch to commit.
    pub(crate) fn batch(&self) -> &WriteBatch {
        &self.batch
    }

    /// Number of writes, overwritten ones included.
    pub(crate) fn len(&self) -> usize {
        self.batch.len()
    }

    /// Whether nothing was written.
    pub(crate) fn is_empty(&self) -> bool {
        self.batch.is_empty()
    }

    /// Bytes of memory held, roughly.
    pub(crate) fn capacity(&self) -> usize {
        self.batch.bytes.capacity() + self.batch.starts.capacity() * 8
    }

    /// Bytes of the encoded writes.
    pub(crate) fn bytes(&self) -> usize {
        self.batch.bytes.len()
    }

    fn entry(&self, n: u32) -> Entry<'_> {
        let start = self.batch.starts[n as usize] as usize;
        let entry = entry::decode(&self.batch.bytes[start..]);
        entry.expect("the batch encoded this entry itself")
    }

    /// Applies `write` to the batch, and puts what it added into the index. A write that the batch refuses is told at
    /// once, and leaves nothing behind.
    pub(crate) fn write(&mut self, write: impl FnOnce(&mut WriteBatch)) -> Result<()> {
        let (before, families) = (self.batch.len(), self.batch.families.len());
        write(&mut self.batch);
        if let Some(e) = self.batch.refused.take() {
            self.batch.families.truncate(families);
            return Err(e);
        }
        debug_assert_eq!(self.batch.len(), before + 1);
        let n = before as u32;
        let key = self.entry(n).key;
        match self.find(key) {
            Ok(place) => {
                let slot = &mut self.chunks[place.chunk][place.at];
                self.replaced.push(std::mem::replace(slot, n));
            }
            Err(place) => {
                self.replaced.push(NONE);
                self.insert(place, n);
            }
        }
        Ok(())
    }

    fn insert(&mut self, Place { chunk, at }: Place, n: u32) {
        let Some(entries) = self.chunks.get_mut(chunk) else {
            let mut first = std::mem::take(&mut self.spare);
            first.push(n);
            self.chunks.push(first);
            return;
        };
        if entries.len() == CHUNK {
            // A full last chunk that is appended to stays full: ascending keys fill chunks to the brim.
            let cut = if at == CHUNK { CHUNK } else { CHUNK / 2 };
            let right = entries.split_off(cut);
            if at >= cut {
                let mut right = right;
                right.insert(at - cut, n);
                self.chunks.insert(chunk + 1, right);
                return;
            }
            entries.insert(at, n);
            self.chunks.insert(chunk + 1, right);
            return;
        }
        entries.insert(at, n);
    }

    /// Where the entry of the internal key is, or where it would go.
    fn find(&self, key: &[u8]) -> std::result::Result<Place, Place> {
        // The chunk that begins at or before the key.
        let chunk = self.chunks.partition_point(|c| self.entry(c[0]).key <= key).saturating_sub(1);
        let Some(entries) = self.chunks.get(chunk) else { return Err(Place { chunk: 0, at: 0 }) };
        match entries.binary_search_by(|&n| self.entry(n).key.cmp(key)) {
            Ok(at) => Ok(Place { chunk, at }),
            Err(at) => Err(Place { chunk, at }),
        }
    }

    /// The newest write to the internal key.
    pub(crate) fn get(&self, key: &[u8]) -> Option<Entry<'_>> {
        if self.is_empty() {
            return None;
        }
        let place = self.find(key).ok()?;
        Some(self.entry(self.chunks[place.chunk][place.at]))
    }

    /// Calls `f` with each internal key, in order, until it fails.
    pub(crate) fn each_key(&self, mut f: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
        self.chunks.iter().flatten().try_for_each(|&n| f(self.entry(n).key))
    }

    /// How much there is now.
    pub(crate) fn mark(&self) -> Mark {
        Mark { entries: self.len(), families: self.batch.families.len() }
    }

    /// Undoes everything written since `mark`, which must not be newer than what is there.
    pub(crate) fn undo(&mut self, mark: Mark) {
        while self.len() > mark.entries {
            let n = self.len() as u32 - 1;
            let older = self.replaced.pop().expect("one for each entry");
            let place = self.find(self.entry(n).key).expect("the newest entry of its key is in the index");
            let entries = &mut self.chunks[place.chunk];
            if older != NONE {
                entries[place.at] = older;
            } else {
                entries.remove(place.at);
                if entries.is_empty() {
                    self.chunks.remove(place.chunk);
                }
            }
            self.batch.payload -= payload(&self.entry(n));
            let start = self.batch.starts.pop().expect("one for each entry");
            self.batch.bytes.truncate(start as usize);
        }
        self.batch.families.truncate(mark.families);
    }

    /// Whether a write took another one's place.
    pub(crate) fn has_replaced(&self) -> bool {
        self.chunks.iter().map(Vec::len).sum::<usize>() < self.len()
    }

    /// Leaves out the writes whose place another one took. For the commit: a memtable gets its entries one by one, and nobody
    /// is to see one that the transaction took back. Marks mean nothing any more.
    pub(crate) fn leave_out_replaced(&mut self) {
        /// The entry goes.
        const GONE: u32 = u32::MAX;
        let mut now = vec![GONE; self.len()];
        self.chunks.iter().flatten().for_each(|&n| now[n as usize] = 0);
        let (mut kept, mut to) = (0, 0);
        for (n, now) in now.iter_mut().enumerate() {
            let start = self.batch.starts[n] as usize;
            let end = self.batch.starts.get(n + 1).map_or(self.batch.bytes.len(), |&next| next as usize);
            if *now == GONE {
                // Not moved yet: what was kept so far lies below it.
                self.batch.payload -= payload(&self.entry(n as u32));
                continue;
            }
            self.batch.bytes.copy_within(start..end, to);
            self.batch.starts[kept] = to as u32;
            *now = kept as u32;
            kept += 1;
            to += end - start;
        }
        self.batch.starts.truncate(kept);
        self.batch.bytes.truncate(to);
        self.replaced.clear();
        self.replaced.resize(kept, NONE);
        self.chunks.iter_mut().flatten().for_each(|n| *n = now[*n as usize]);
    }

    /// Forgets everything and keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.batch.clear();
        self.replaced.clear();
        self.chunks.truncate(1);
        if let Some(mut first) = self.chunks.pop() {
            first.clear();
            self.spare = first;
        }
    }
}

/// Bytes of the user's key and of the value.
fn payload(entry: &Entry<'_>) -> u64 {
    let key = Prefix::split(entry.key).map_or(entry.key, |(_, key)| key);
    (key.len() + entry.value.len()) as u64
}

/// A position among the newest writes of each key, deletions included. Owns the set.
pub(crate) struct WriteCursor {
    set: Arc<WriteSet>,
    /// Not valid if it lies outside.
    place: Option<Place>,
}

impl WriteCursor {
    pub(crate) fn new(set: Arc<WriteSet>) -> WriteCursor {
        WriteCursor { set, place: None }
    }

    fn here(&self) -> Entry<'_> {
        let place = self.place.expect("the cursor is at an entry");
        self.set.entry(self.set.chunks[place.chunk][place.at])
    }

    /// The place, moved to the next chunk's start if it lies behind its own chunk's end.
    fn settle(&self, place: Place) -> Option<Place> {
        let chunk = self.set.chunks.get(place.chunk)?;
        if place.at < chunk.len() {
            return Some(place);
        }
        let next = Place { chunk: place.chunk + 1, at: 0 };
        (next.chunk < self.set.chunks.len()).then_some(next)
    }

    fn before(&self, place: Place) -> Option<Place> {
        if place.at > 0 {
            return Some(Place { at: place.at - 1, ..place });
        }
        let chunk = place.chunk.checked_sub(1)?;
        Some(Place { chunk, at: self.set.chunks[chunk].len() - 1 })
    }
}

impl Source for WriteCursor {
    fn seek_first(&mut self) -> Result<()> {
        self.place = self.settle(Place { chunk: 0, at: 0 });
        Ok(())
    }
    fn seek_last(&mut self) -> Result<()> {
        self.place = self.before(Place { chunk: self.set.chunks.len(), at: 0 });
        Ok(())
    }
    fn seek(&mut self, key: &[u8]) -> Result<()> {
        let (Ok(place) | Err(place)) = self.set.find(key);
        self.place = self.settle(place);
        Ok(())
    }
    fn seek_for_prev(&mut self, key: &[u8]) -> Result<()> {
        self.place = match self.set.find(key) {
            Ok(place) => Some(place),
            Err(place) => self.before(place),
        };
        Ok(())
    }
    fn next(&mut self) -> Result<()> {
        self.place = self.place.and_then(|p| self.settle(Place { at: p.at + 1, ..p }));
        Ok(())
    }
    fn prev(&mut self) -> Result<()> {
        self.place = self.place.and_then(|p| self.before(p));
        Ok(())
    }
    fn valid(&self) -> bool {
        self.place.is_some()
    }
    fn key(&self) -> &[u8] {
        self.here().key
    }
    fn kind(&self) -> Kind {
        self.here().kind
    }
    /// Newer than everything that is committed.
    fn version(&self) -> u64 {
        u64::MAX
    }
    fn value(&mut self) -> Result<&[u8]> {
        Ok(self.here().value)
    }
}

/// Refuses a transaction that has grown beyond `most` bytes.
pub(crate) fn check_size(set: &WriteSet, most: u64) -> Result<()> {
    if set.bytes() as u64 <= most {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "a transaction holds {} bytes of writes, more than its bound of {most}: raise `TxOptions::max_bytes`, or commit \
         in parts; nothing of it was written",
        set.bytes()
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn internal(key: &[u8]) -> Vec<u8> {
        [Prefix::of(0).as_slice(), key].concat()
    }

    fn put(set: &mut WriteSet, key: &[u8], value: &[u8]) {
        set.write(|b| b.put(key, value)).unwrap();
    }

    /// Everything a cursor shows, forward; checked against backward.
    fn all(set: &WriteSet) -> Vec<(Vec<u8>, Kind, Vec<u8>)> {
        let mut cursor = WriteCursor::new(Arc::new(set.clone()));
        let mut forward = Vec::new();
        cursor.seek_first().unwrap();
        while cursor.valid() {
            forward.push((cursor.key().to_vec(), cursor.kind(), cursor.value().unwrap().to_vec()));
            cursor.next().unwrap();
        }
        let mut backward = Vec::new();
        cursor.seek_last().unwrap();
        while cursor.valid() {
            backward.push((cursor.key().to_vec(), cursor.kind(), cursor.value().unwrap().to_vec()));
            cursor.prev().unwrap();
        }
        backward.reverse();
        assert_eq!(forward, backward);
        forward
    }

    /// Random writes, marks and undoing, against a map that is copied at each mark.
    #[test]
    fn it_is_a_sorted_map_that_can_go_back() {
        let mut state = 7u64;
        let mut random = |n: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % n
        };
        for keys in [3, 40, 5000] {
            let mut set = WriteSet::default();
            let mut model: BTreeMap<Vec<u8>, (Kind, Vec<u8>)> = BTreeMap::new();
            let mut marks = vec![(set.mark(), model.clone(), set.batch.payload)];
            for step in 0..6000 {
                let key = format!("{:05}", random(keys)).into_bytes();
                match random(100) {
                    0 if marks.len() < 5 => marks.push((set.mark(), model.clone(), set.batch.payload)),
                    1 if step % 5 == 0 => {
                        let (mark, map, payload) = &marks[random(marks.len() as u64) as usize];
                        set.undo(*mark);
                        model = map.clone();
                        assert_eq!(set.batch.payload, *payload);
                        let now = set.len();
                        marks.retain(|(mark, ..)| mark.entries <= now);
                    }
                    2..=20 => {
                        set.write(|b| b.delete(&key)).unwrap();
                        model.insert(internal(&key), (Kind::Delete, Vec::new()));
                    }
                    _ => {
                        let value = step.to_string().into_bytes();
                        put(&mut set, &key, &value);
                        model.insert(internal(&key), (Kind::Put, value));
                    }
                }
                let probe = internal(format!("{:05}", random(keys)).as_bytes());
                let found = set.get(&probe).map(|e| (e.kind, e.value.to_vec()));
                assert_eq!(found, model.get(&probe).cloned());
            }
            let expected: Vec<_> = model.into_iter().map(|(k, (kind, v))| (k, kind, v)).collect();
            assert_eq!(all(&set), expected);
            let mut last = set.clone();
            last.leave_out_replaced();
            assert!(all(&last) == expected && last.len() == expected.len() && !last.has_replaced());
            let encoded = WriteBatch::of_entries(&last.batch.bytes).unwrap();
            assert!(encoded.starts == last.batch.starts && encoded.payload == last.batch.payload);
            let mut cursor = WriteCursor::new(Arc::new(set.clone()));
            for n in 0..keys + 2 {
                let key = internal(format!("{n:05}").as_bytes());
                cursor.seek(&key).unwrap();
                let behind = expected.iter().find(|(k, ..)| *k >= key).map(|(k, ..)| k.as_slice());
                assert_eq!(cursor.valid().then(|| cursor.key()), behind);
                cursor.seek_for_prev(&key).unwrap();
                let before = expected.iter().rev().find(|(k, ..)| *k <= key).map(|(k, ..)| k.as_slice());
                assert_eq!(cursor.valid().then(|| cursor.key()), before);
            }
        }
    }

    #[test]
    fn what_is_refused_leaves_nothing_behind() {
        let mut set = WriteSet::default();
        put(&mut set, b"a", b"1");
        assert!(set.write(|b| b.put(vec![0; 70_000], b"")).is_err());
        put(&mut set, b"b", b"2");
        assert_eq!(all(&set).len(), 2);
        assert!(check_size(&set, 3).is_err() && check_size(&set, 1 << 20).is_ok());
    }

    #[test]
    fn an_empty_set_has_no_first_and_no_last() {
        let mut cursor = WriteCursor::new(Arc::new(WriteSet::default()));
        cursor.seek_first().unwrap();
        assert!(!cursor.valid());
        cursor.seek_last().unwrap();
        assert!(!cursor.valid());
        cursor.seek(b"k").unwrap();
        assert!(!cursor.valid());
        cursor.seek_for_prev(b"k").unwrap();
        assert!(!cursor.valid());
    }
}
