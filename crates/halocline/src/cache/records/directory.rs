//! The directory of a set, copied out for the writer that has taken the set: which extents there are, and what is in them.
//!
//! Extents follow each other without gaps from `FIRST` to the end of the set; free neighbours are one extent. Those
//! not in use (there may be up to 16) lie behind the last, empty and free.

use super::{EXTENTS, FIRST, SET, SMALLEST, word_of};
use crate::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// What the directory of a set says, copied out; for writers.
pub(super) struct Directory {
    pub(super) fingerprints: [u16; EXTENTS],
    /// The last is the end of the set.
    pub(super) begins: [u8; EXTENTS + 1],
    pub(super) hits: u16,
    pub(super) hand: usize,
}

impl Directory {
    /// Of a set that was never written to.
    pub(super) fn empty() -> Directory {
        let mut begins = [SET as u8; EXTENTS + 1];
        begins[0] = FIRST as u8;
        Directory { fingerprints: [0; EXTENTS], begins, hits: 0, hand: 0 }
    }

    pub(super) fn load(set: &[AtomicU64; SET]) -> Directory {
        let mut begins = [SET as u8; EXTENTS + 1];
        for (i, begin) in begins[..EXTENTS].iter_mut().enumerate() {
            *begin = (set[6 + i / 8].load(Relaxed) >> (i % 8 * 8)) as u8;
        }
        let uses = set[1].load(Relaxed);
        Directory {
            fingerprints: std::array::from_fn(|i| (set[2 + i / 4].load(Relaxed) >> (i % 4 * 16)) as u16),
            begins,
            hits: uses as u16,
            hand: (uses >> 32) as usize % EXTENTS,
        }
    }

    pub(super) fn store(&self, set: &[AtomicU64; SET]) {
        set[1].store((self.hand as u64) << 32 | u64::from(self.hits), Relaxed);
        for (word, lanes) in set[2..6].iter().zip(self.fingerprints.chunks_exact(4)) {
            word.store(lanes.iter().rev().fold(0, |w, lane| w << 16 | u64::from(*lane)), Relaxed);
        }
        for (word, lanes) in set[6..8].iter().zip(self.begins.chunks_exact(8)) {
            word.store(word_of(lanes), Relaxed);
        }
    }

    /// Words of an extent: none of those not in use.
    pub(super) fn len(&self, extent: usize) -> usize {
        usize::from(self.begins[extent + 1] - self.begins[extent])
    }

    /// The smallest free extent that is large enough, its rest split off.
    pub(super) fn take(&mut self, need: usize) -> Option<usize> {
        let fits = |i: &usize| self.fingerprints[*i] == 0 && self.len(*i) >= need;
        let extent = (0..EXTENTS).filter(fits).min_by_key(|i| self.len(*i))?;
        let in_use = self.begins[..EXTENTS].partition_point(|begin| usize::from(*begin) < SET);
        if self.len(extent) >= need + SMALLEST && in_use < EXTENTS {
            self.begins.copy_within(extent + 1..EXTENTS - 1, extent + 2);
            self.fingerprints.copy_within(extent + 1..EXTENTS - 1, extent + 2);
            self.begins[extent + 1] = self.begins[extent] + need as u8;
            self.fingerprints[extent + 1] = 0;
            let low = (1u16 << (extent + 1)) - 1;
            self.hits = self.hits & low | (self.hits & !low) << 1;
            if self.hand > extent {
                self.hand = (self.hand + 1) % EXTENTS;
            }
        }
        Some(extent)
    }

    /// Takes the record out of an extent, which becomes one with free neighbours.
    pub(super) fn free(&mut self, extent: usize) {
        self.fingerprints[extent] = 0;
        if self.fingerprints.get(extent + 1) == Some(&0) {
            self.join(extent);
        }
        if extent > 0 && self.fingerprints[extent - 1] == 0 {
            self.join(extent - 1);
        }
    }

    /// Makes one extent of this free one and the next.
    fn join(&mut self, extent: usize) {
        self.begins.copy_within(extent + 2..=EXTENTS, extent + 1);
        self.fingerprints.copy_within(extent + 2..EXTENTS, extent + 1);
        self.fingerprints[EXTENTS - 1] = 0;
        let low = (1u16 << (extent + 1)) - 1;
        self.hits = self.hits & low | self.hits >> 1 & !low;
        if self.hand > extent {
            self.hand -= 1;
        }
    }
}
