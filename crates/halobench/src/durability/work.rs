//! What the threads commit: numbered commits, from which a state tells which commits it holds.
//!
//! Each thread commits 1, 2, 3, ... Commit `s` goes to slot `s mod slots` of its thread, which it replaces whole, so
//! that a database of a fixed size is overwritten over and over while flushes and merges go on. Even slots have one
//! key, set by a single put. Odd slots have `batch` keys, set by one batch; the last of them is put on even laps
//! (`s / slots`) and removed on odd ones.
//!
//! Key `index` of slot `slot` of thread `t` has the id `(t * slots + slot) * batch + index`; the key is the encoding
//! `hashed` of `docs/lab/generators.md` at 16 bytes: `hex(mix(id + stream(seed, 1)))`. A value begins with the number of
//! its commit, 8 bytes, little endian. Behind them stand the draws `at(tag, 0), at(tag, 1), ...`, 8 bytes each, the last
//! cut: `tag = mix(mix(id + stream(seed, 2)) + s)`. A value has `16 + reduce(mix(tag), 512)` bytes, and 8192 more in
//! slots divisible by 32.

use super::task::Shape;
use crate::workload::rng;

/// Bytes of a key.
pub const KEY_LEN: usize = 16;

/// A key's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The thread that writes it.
    pub thread: u64,
    /// The slot of the thread.
    pub slot: u64,
    /// Which key of the slot.
    pub index: u64,
}

/// Keys, values and commits.
#[derive(Clone, Copy, Debug)]
pub struct Work {
    /// The numbers it is made of.
    pub shape: Shape,
    key_salt: u64,
    value_salt: u64,
}

impl Work {
    /// The work of that shape.
    pub fn new(shape: Shape) -> Result<Work, String> {
        let Shape { threads, slots, batch, seed } = shape;
        if !(1..=256).contains(&threads) || !(2..=1 << 20).contains(&slots) || slots % 2 != 0 {
            return Err(format!(
                "{threads} threads of {slots} slots: 1 to 256 threads, an even number of slots"
            ));
        }
        if !(2..=1000).contains(&batch) {
            return Err(format!("a batch of {batch}: it must have 2 to 1000 writes"));
        }
        Ok(Work { shape, key_salt: rng::stream(seed, 1), value_salt: rng::stream(seed, 2) })
    }

    /// Number of ids.
    pub fn ids(&self) -> u64 {
        self.shape.threads * self.shape.slots * self.shape.batch
    }

    /// Keys in a slot.
    pub fn keys_in(&self, slot: u64) -> u64 {
        if slot % 2 == 1 { self.shape.batch } else { 1 }
    }

    /// The id of a place.
    pub fn id(&self, place: Place) -> u64 {
        (place.thread * self.shape.slots + place.slot) * self.shape.batch + place.index
    }

    /// The place of an id, if a key has it.
    pub fn place(&self, id: u64) -> Option<Place> {
        let Shape { threads, slots, batch, .. } = self.shape;
        let place = Place { thread: id / batch / slots, slot: id / batch % slots, index: id % batch };
        (place.thread < threads && place.index < self.keys_in(place.slot)).then_some(place)
    }

    /// The key of an id.
    pub fn key(&self, id: u64) -> [u8; KEY_LEN] {
        let number = rng::mix(id.wrapping_add(self.key_salt));
        std::array::from_fn(|i| {
            let digit = (number >> (60 - 4 * i) & 15) as u8;
            if digit < 10 { b'0' + digit } else { b'a' + digit - 10 }
        })
    }

    /// The place of a key, if it is one.
    pub fn place_of(&self, key: &[u8]) -> Option<Place> {
        if key.len() != KEY_LEN || key.iter().any(|b| !matches!(b, b'0'..=b'9' | b'a'..=b'f')) {
            return None;
        }
        let number = u64::from_str_radix(std::str::from_utf8(key).ok()?, 16).ok()?;
        self.place(rng::unmix(number).wrapping_sub(self.key_salt))
    }

    /// Whether commit `number` removes the key `index` of its slot; otherwise it puts it.
    pub fn removes(&self, number: u64, index: u64) -> bool {
        index > 0 && index == self.shape.batch - 1 && number / self.shape.slots % 2 == 1
    }

    /// Replaces `out` by the value that commit `number` gives to an id.
    pub fn value(&self, id: u64, number: u64, out: &mut Vec<u8>) {
        let tag = rng::mix(rng::mix(id.wrapping_add(self.value_salt)).wrapping_add(number));
        let slot = id / self.shape.batch % self.shape.slots;
        let large = if slot.is_multiple_of(32) { 8192 } else { 0 };
        let len = 16 + rng::reduce(rng::mix(tag), 512) as usize + large;
        out.clear();
        out.extend_from_slice(&number.to_le_bytes());
        for j in 0.. {
            if out.len() >= len {
                break;
            }
            out.extend_from_slice(&rng::at(tag, j).to_le_bytes());
        }
        out.truncate(len);
    }

    /// The newest commit of a slot among the first `upto`; 0 if there is none.
    pub fn newest(&self, slot: u64, upto: u64) -> u64 {
        let slots = self.shape.slots;
        let back = (upto % slots + slots - slot) % slots;
        upto.saturating_sub(back)
    }

    /// Number of commits of a slot in `after + 1 ..= upto`.
    pub fn commits(&self, slot: u64, after: u64, upto: u64) -> u64 {
        // Number 0 is no commit, and cancels.
        let below = |n: u64| if n >= slot { (n - slot) / self.shape.slots + 1 } else { 0 };
        below(upto).saturating_sub(below(after))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn work() -> Work {
        Work::new(Shape { threads: 3, slots: 8, batch: 4, seed: 7 }).unwrap()
    }

    #[test]
    fn a_key_tells_its_place() {
        let work = work();
        let mut keys = std::collections::BTreeSet::new();
        for id in 0..work.ids() {
            let key = work.key(id);
            assert_eq!(work.place_of(&key), work.place(id));
            if let Some(place) = work.place(id) {
                assert_eq!(work.id(place), id);
                assert!(keys.insert(key));
            }
        }
        assert_eq!(keys.len(), 3 * (4 + 4 * 4));
        assert_eq!(work.place_of(&work.key(work.ids())), None);
        assert_eq!(work.place_of(b"0123"), None);
        assert_eq!(work.place_of(b"+123456789abcdef"), None);
    }

    #[test]
    fn slots_count_their_commits() {
        let work = work();
        for slot in 0..8 {
            for upto in 0..40u64 {
                let of_slot = |after: u64| (after + 1..=upto).filter(|s| s % 8 == slot);
                assert_eq!(work.newest(slot, upto), of_slot(0).max().unwrap_or(0), "{slot} {upto}");
                for after in 0..=upto {
                    assert_eq!(work.commits(slot, after, upto), of_slot(after).count() as u64);
                }
            }
        }
    }

    #[test]
    fn values_differ_by_commit_and_begin_with_its_number() {
        let work = work();
        let (mut a, mut b) = (Vec::new(), Vec::new());
        work.value(9, 300, &mut a);
        work.value(9, 308, &mut b);
        assert_eq!(a[..8], 300u64.to_le_bytes());
        assert_ne!(a[8..16], b[8..16]);
        assert!((16..528).contains(&a.len()));
        work.value(0, 8, &mut a);
        assert!(a.len() >= 8192 + 16);
    }
}
