//! A set of the cache: the few places a group can be in.
//!
//! ```text
//! line 0    tags    8 x u16   fingerprints of the groups that are here; 0: free
//!           ghosts 16 x u16   fingerprints of groups that were offered and not taken, newest first
//!           lock     u64
//!           uses    8 x u8    hits since the clock's hand went by, at most 3
//! line 1-4  slots   8 x 32 B  table, offset, pointer to the group and its length
//! ```
//!
//! A miss reads line 0 and is done. So does a first offer, which shifts its fingerprint into the ghosts. A hit locks,
//! which dirties the same line, and reads one line more.
//!
//! Fingerprints are hints: what is behind the lock decides. Tags are written under the lock and read without; ghosts
//! are read and written without, and of two threads that leave one at the same time, one may be lost.

use crate::sync::Mutex;
use crate::sync::MutexGuard;
use crate::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, PoisonError};

/// Groups in a set.
pub(super) const WAYS: usize = 8;
/// Fingerprints in a word.
const LANES: usize = 4;
/// A hit counts up to here: a group that was hit often outlives this many rounds of the hand.
const MAX_USES: u8 = 3;

/// A group in the cache.
pub(super) struct Slot {
    pub(super) table: u64,
    pub(super) offset: u64,
    pub(super) group: Arc<[u8]>,
}

impl Slot {
    fn is(&self, table: u64, offset: u64) -> bool {
        self.table == table && self.offset == offset
    }
}

#[repr(C)]
struct Ways {
    uses: [u8; WAYS],
    slots: [Option<Slot>; WAYS],
}

/// See the module. The order of the fields is the layout.
#[repr(C, align(64))]
pub(super) struct Set {
    tags: [AtomicU64; WAYS / LANES],
    ghosts: [AtomicU64; 4],
    ways: Mutex<Ways>,
}

/// A bit in each lane of `word` that holds `fingerprint`, and possibly in lanes above such a one.
#[inline]
fn lanes_with(word: u64, fingerprint: u16) -> u64 {
    const ONES: u64 = 0x0001_0001_0001_0001;
    let differences = word ^ (ONES * u64::from(fingerprint));
    differences.wrapping_sub(ONES) & !differences & (ONES << 15)
}

impl Set {
    pub(super) fn new() -> Set {
        Set {
            tags: [const { 0 }; WAYS / LANES].map(AtomicU64::new),
            ghosts: [0; 4].map(AtomicU64::new),
            ways: Mutex::new(Ways { uses: [0; WAYS], slots: [const { None }; WAYS] }),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Ways> {
        // Nothing panics half-way through a change here.
        self.ways.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The way of a group; only under the lock.
    fn find(&self, ways: &Ways, fingerprint: u16, table: u64, offset: u64) -> Option<usize> {
        for (i, tags) in self.tags.iter().enumerate() {
            let mut lanes = lanes_with(tags.load(Relaxed), fingerprint);
            while lanes != 0 {
                let way = LANES * i + lanes.trailing_zeros() as usize / 16;
                if ways.slots[way].as_ref().is_some_and(|slot| slot.is(table, offset)) {
                    return Some(way);
                }
                lanes &= lanes - 1;
            }
        }
        None
    }

    fn set_tag(&self, way: usize, fingerprint: u16) {
        let tags = &self.tags[way / LANES];
        let shift = 16 * (way % LANES);
        let others = tags.load(Relaxed) & !(0xFFFF << shift);
        tags.store(others | u64::from(fingerprint) << shift, Relaxed);
    }

    /// The group, and one more use of it.
    #[inline]
    pub(super) fn get(&self, fingerprint: u16, table: u64, offset: u64) -> Option<Arc<[u8]>> {
        if self.tags.iter().all(|tags| lanes_with(tags.load(Relaxed), fingerprint) == 0) {
            return None;
        }
        let mut ways = self.lock();
        let way = self.find(&ways, fingerprint, table, offset)?;
        if ways.uses[way] < MAX_USES {
            ways.uses[way] += 1;
        }
        ways.slots[way].as_ref().map(|slot| Arc::clone(&slot.group))
    }

    /// Whether this fingerprint has been here of late; it has now.
    #[inline]
    pub(super) fn touch_ghost(&self, fingerprint: u16) -> bool {
        if self.ghosts.iter().any(|word| lanes_with(word.load(Relaxed), fingerprint) != 0) {
            return true;
        }
        let mut pushed = u64::from(fingerprint);
        for word in &self.ghosts {
            let old = word.load(Relaxed);
            word.store(old << 16 | pushed, Relaxed);
            pushed = old >> 48;
        }
        false
    }

    /// Puts a group in, and returns what had to go for it: at most one; itself, if it is here already.
    pub(super) fn insert(&self, fingerprint: u16, new: Slot) -> Option<Slot> {
        let mut ways = self.lock();
        if self.find(&ways, fingerprint, new.table, new.offset).is_some() {
            return Some(new);
        }
        let free = ways.slots.iter().position(Option::is_none);
        let way = free.unwrap_or_else(|| {
            // Second chances, from a place that differs from one newcomer to the next.
            let mut way = fingerprint as usize % WAYS;
            while ways.uses[way] > 0 {
                ways.uses[way] -= 1;
                way = (way + 1) % WAYS;
            }
            way
        });
        ways.uses[way] = 0;
        self.set_tag(way, fingerprint);
        ways.slots[way].replace(new)
    }

    /// The clock's hand goes by: takes groups that were not used since the last time, until `enough` of one says so.
    pub(super) fn sweep(&self, mut enough: impl FnMut(&Slot) -> bool) -> [Option<Slot>; WAYS] {
        let mut taken = [const { None }; WAYS];
        let mut ways = self.lock();
        for (way, taken) in taken.iter_mut().enumerate() {
            if ways.slots[way].is_none() {
                continue;
            }
            if ways.uses[way] > 0 {
                ways.uses[way] -= 1;
                continue;
            }
            self.set_tag(way, 0);
            *taken = ways.slots[way].take();
            if taken.as_ref().is_some_and(&mut enough) {
                break;
            }
        }
        taken
    }

    /// Takes all groups of which `remove` says so.
    pub(super) fn take(&self, remove: impl Fn(&Slot) -> bool) -> [Option<Slot>; WAYS] {
        let mut taken = [const { None }; WAYS];
        if self.tags.iter().all(|tags| tags.load(Relaxed) == 0) {
            return taken;
        }
        let mut ways = self.lock();
        for (way, taken) in taken.iter_mut().enumerate() {
            if ways.slots[way].as_ref().is_some_and(&remove) {
                self.set_tag(way, 0);
                *taken = ways.slots[way].take();
            }
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(not(shuttle))]
    #[test]
    fn a_set_is_five_lines() {
        assert_eq!(size_of::<Option<Slot>>(), 32);
        assert_eq!(size_of::<Set>(), 5 * 64);
    }

    #[cfg(not(shuttle))]
    #[test]
    fn sixteen_ghosts_are_remembered() {
        let set = Set::new();
        for fingerprint in 1..=17 {
            assert!(!set.touch_ghost(fingerprint));
        }
        for fingerprint in 2..=17 {
            assert!(set.touch_ghost(fingerprint));
        }
        assert!(!set.touch_ghost(1));
    }

    #[test]
    fn lanes_are_found() {
        let word = 0x0001_FFFF_0000_0007;
        for (fingerprint, lane) in [(7, 0), (0xFFFF, 2), (1, 3)] {
            assert_eq!(lanes_with(word, fingerprint).trailing_zeros() / 16, lane);
        }
        for absent in [2, 6, 8, 0xFFFE, 0x8000] {
            assert_eq!(lanes_with(word, absent), 0);
        }
    }
}
