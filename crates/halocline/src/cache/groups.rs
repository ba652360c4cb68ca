//! Decoded groups worth keeping, within a byte budget.
//!
//! **Admission.** Most of what is decoded is not asked for again soon: a scan, a uniform load. So the first touch of a
//! group (`wants` or `offer`) only leaves a *ghost*, two bytes in a fixed array; an offer while the ghost is remembered
//! takes it in.
//! A scan thus displaces ghosts and nothing else.
//!
//! **Eviction.** Second chance: each hit counts, up to three; a hand goes round the sets and takes one off, or takes
//! the group out where none is left. An offer that finds the cache full moves the hand over a bounded number of sets,
//! and is refused if that did not make room, so that no reader pays for much more than its own group.
//!
//! **Layout.** Set-associative: a group's hash gives the set ([`super::set`]), all sets lie in one array. Shards are
//! stretches of sets with a byte count, a limit and a hand of their own; only admission touches these. The lock of a set
//! is held for the copy of a pointer, never for a copy of bytes, an allocation or a release of memory.
//!
//! **Accounting.** A group costs what its allocation takes, counters and allocator's rounding included. The array of
//! sets comes off the budget first. The sum never exceeds the budget, not for a moment: bytes are reserved before
//! they are allocated. (What readers hold of groups that were evicted meanwhile is theirs.)

use super::GroupCache;
use super::counters::Counters;
use super::set::{Set, Slot, WAYS};
use crate::sync::Padded;
use crate::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::Arc;

/// Bytes of budget for each place in a set: what a group is expected to take, less what makes up for sets that fill
/// unevenly.
const BYTES_PER_WAY: usize = 640;
/// The least budget for a shard.
const MIN_SHARD: usize = 1 << 20;
const MAX_SHARDS: usize = 16;
/// No group takes more than this part of a shard.
const LARGEST: usize = 4;
/// Sets the hand goes over for one offer.
const SWEEP: usize = 16;

/// Stretches of sets with their own accounts.
#[derive(Default)]
struct Shard {
    /// Bytes of the groups here, and of those about to be.
    used: AtomicUsize,
    /// The clock's hand: counts sets gone over.
    hand: AtomicUsize,
}

/// Indexes of the counters.
const HITS: usize = 0;
const MISSES: usize = 1;
const ADMITTED: usize = 2;
const EVICTED: usize = 3;
const REFUSED: usize = 4;

/// What happened in the cache, and what is in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CacheStats {
    pub(crate) hits: u64,
    pub(crate) misses: u64,
    /// Offers taken in.
    pub(crate) admitted: u64,
    /// Groups that went to make room.
    pub(crate) evicted: u64,
    /// Offers that had a ghost, but for which no room was made at once.
    pub(crate) refused: u64,
    /// Bytes in use: groups and the cache's own arrays.
    pub(crate) bytes: usize,
}

/// The cache of decoded groups.
pub(crate) struct HotGroups {
    sets: Box<[Set]>,
    shards: Box<[Padded<Shard>]>,
    /// Bytes of groups in a shard.
    shard_limit: AtomicUsize,
    counters: Counters<5>,
}

/// Bytes an allocation of a group takes: two reference counts and the bytes, with the allocator's header and rounding
/// (those of glibc; others are close).
fn cost(len: usize) -> usize {
    (len + 16 + 8).next_multiple_of(16)
}

/// Spreads the name of a group over 64 bits.
#[inline]
fn hash(table: u64, offset: u64) -> u64 {
    let product = u128::from(table ^ 0x9E37_79B9_7F4A_7C15) * u128::from(offset ^ 0xD6E8_FEB8_6659_FD93);
    let folded = (product >> 64) as u64 ^ product as u64;
    // Once more: neighbouring offsets differ in few bits of the product.
    let product = u128::from(folded) * 0xA076_1D64_78BD_642F;
    (product >> 64) as u64 ^ product as u64
}

impl HotGroups {
    /// A cache of `budget` bytes, its own arrays included; with less than a few KB it holds nothing.
    pub(crate) fn new(budget: usize) -> HotGroups {
        let shards = (budget / MIN_SHARD).clamp(1, MAX_SHARDS);
        let shards = if shards.is_power_of_two() { shards } else { shards.next_power_of_two() / 2 };
        let sets = budget / (BYTES_PER_WAY * WAYS) / shards * shards;
        let cache = HotGroups {
            sets: (0..sets).map(|_| Set::new()).collect(),
            shards: (0..shards).map(|_| Padded::default()).collect(),
            shard_limit: AtomicUsize::new(0),
            counters: Counters::new(),
        };
        cache.set_budget(budget);
        cache
    }

    /// Changes the budget. The arrays stay as they are; groups beyond the new budget go as others come.
    pub(crate) fn set_budget(&self, budget: usize) {
        let groups = budget.saturating_sub(self.fixed_bytes());
        let limit = if self.sets.is_empty() { 0 } else { groups / self.shards.len() };
        self.shard_limit.store(limit, Relaxed);
    }

    /// Bytes of the cache's own arrays.
    fn fixed_bytes(&self) -> usize {
        size_of::<HotGroups>() + size_of_val(&*self.sets) + size_of_val(&*self.shards)
    }

    /// Bytes in use: groups and the cache's own arrays.
    pub(crate) fn bytes(&self) -> usize {
        self.fixed_bytes() + self.shards.iter().map(|shard| shard.0.used.load(Relaxed)).sum::<usize>()
    }

    /// What happened so far. Threads that are at it meanwhile may be counted or not.
    pub(crate) fn stats(&self) -> CacheStats {
        let sums = self.counters.sums();
        CacheStats {
            hits: sums[HITS],
            misses: sums[MISSES],
            admitted: sums[ADMITTED],
            evicted: sums[EVICTED],
            refused: sums[REFUSED],
            bytes: self.bytes(),
        }
    }

    /// Takes out the groups of tables that are gone. Those that readers offer afterwards age as all do: nobody asks
    /// for them, since table ids are not used again. Goes over all sets, so give it many tables at a time.
    pub(crate) fn remove_tables(&self, gone: impl Fn(u64) -> bool) {
        for (i, set) in self.sets.iter().enumerate() {
            for slot in set.take(|slot| gone(slot.table)).into_iter().flatten() {
                self.shard_of(i).used.fetch_sub(cost(slot.group.len()), Relaxed);
            }
        }
    }

    /// The index of a group's set, and its fingerprint there; `None` if there are no sets.
    #[inline]
    fn place(&self, table: u64, offset: u64) -> Option<(usize, u16)> {
        if self.sets.is_empty() {
            return None;
        }
        let hash = hash(table, offset);
        // The set comes from the upper bits, the fingerprint from the lower; 0 means that there is none.
        let set = ((u128::from(hash) * self.sets.len() as u128) >> 64) as usize;
        Some((set, (hash as u16).max(1)))
    }

    fn shard_of(&self, set: usize) -> &Shard {
        &self.shards[set / (self.sets.len() / self.shards.len())].0
    }

    /// Reserves `bytes` in a shard, moving its hand on as far as is needed and allowed.
    fn reserve(&self, set: usize, bytes: usize) -> bool {
        let limit = self.shard_limit.load(Relaxed);
        if bytes > limit / LARGEST {
            return false;
        }
        let shard = self.shard_of(set);
        let sets = self.sets.len() / self.shards.len();
        let first = set / sets * sets;
        for sweeps in 0..=SWEEP {
            let mut used = shard.used.load(Relaxed);
            while used + bytes <= limit {
                match shard.used.compare_exchange_weak(used, used + bytes, Relaxed, Relaxed) {
                    Ok(_) => return true,
                    Err(now) => used = now,
                }
            }
            if sweeps < SWEEP {
                let excess = used + bytes - limit;
                self.sweep(shard, first + shard.hand.fetch_add(1, Relaxed) % sets, excess);
            }
        }
        self.counters.bump(REFUSED);
        false
    }

    /// Moves the hand over one set, until `excess` bytes have gone.
    fn sweep(&self, shard: &Shard, set: usize, excess: usize) {
        let mut freed = 0;
        let taken = self.sets[set].sweep(|slot| {
            freed += cost(slot.group.len());
            freed >= excess
        });
        // The lock is released; now the groups go, and then their bytes are free.
        for slot in taken.into_iter().flatten() {
            let bytes = cost(slot.group.len());
            drop(slot);
            shard.used.fetch_sub(bytes, Relaxed);
            self.counters.bump(EVICTED);
        }
    }

    fn admit(&self, set: usize, fingerprint: u16, table: u64, offset: u64, decoded: &[u8]) {
        if !self.reserve(set, cost(decoded.len())) {
            return;
        }
        let slot = Slot { table, offset, group: Arc::from(decoded) };
        let twin = |slot: &Slot| slot.table == table && slot.offset == offset;
        let gone = self.sets[set].insert(fingerprint, slot);
        match &gone {
            // Another thread was faster.
            Some(slot) if twin(slot) => {}
            Some(_) => {
                self.counters.bump(EVICTED);
                self.counters.bump(ADMITTED);
            }
            None => self.counters.bump(ADMITTED),
        }
        if let Some(slot) = gone {
            let bytes = cost(slot.group.len());
            drop(slot);
            self.shard_of(set).used.fetch_sub(bytes, Relaxed);
        }
    }
}

impl GroupCache for HotGroups {
    /// An LZ4 group is decoded as fast as it would be found here.
    #[inline]
    fn keeps(&self, dear: bool) -> bool {
        dear
    }

    #[inline]
    fn get(&self, table: u64, offset: u64) -> Option<Arc<[u8]>> {
        let (set, fingerprint) = self.place(table, offset)?;
        let group = self.sets[set].get(fingerprint, table, offset);
        self.counters.bump(if group.is_some() { HITS } else { MISSES });
        group
    }

    #[inline]
    fn wants(&self, table: u64, offset: u64) -> bool {
        self.place(table, offset).is_some_and(|(set, fingerprint)| self.sets[set].touch_ghost(fingerprint))
    }

    #[inline]
    fn offer(&self, table: u64, offset: u64, decoded: &[u8]) {
        let Some((set, fingerprint)) = self.place(table, offset) else { return };
        if self.sets[set].touch_ghost(fingerprint) {
            self.admit(set, fingerprint, table, offset, decoded);
        }
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The bytes of a group, which only that group has.
    fn group(table: u64, offset: u64, len: usize) -> Vec<u8> {
        let mut bytes = [table.to_le_bytes(), offset.to_le_bytes()].concat();
        bytes.resize(len.max(16), offset as u8);
        bytes
    }

    /// What a reader does.
    fn read(cache: &HotGroups, table: u64, offset: u64, len: usize) -> bool {
        match cache.get(table, offset) {
            Some(found) => {
                assert_eq!(*found, group(table, offset, len));
                true
            }
            None => {
                cache.offer(table, offset, &group(table, offset, len));
                false
            }
        }
    }

    /// Bytes by looking at every place.
    fn counted(cache: &HotGroups) -> usize {
        let found = std::cell::Cell::new(cache.fixed_bytes());
        for set in &cache.sets {
            set.take(|slot| {
                found.set(found.get() + cost(slot.group.len()));
                false
            });
        }
        found.get()
    }

    #[test]
    fn the_second_touch_admits() {
        let cache = HotGroups::new(1 << 20);
        assert!(!read(&cache, 1, 4096, 1000));
        assert_eq!(cache.bytes(), cache.fixed_bytes());
        assert!(!read(&cache, 1, 4096, 1000));
        assert!(read(&cache, 1, 4096, 1000));
        assert!(!read(&cache, 2, 4096, 1000));
        assert_eq!(cache.bytes(), cache.fixed_bytes() + 1024);
        let stats = cache.stats();
        assert_eq!((stats.hits, stats.misses, stats.admitted, stats.evicted), (1, 3, 1, 0));
        cache.remove_tables(|table| table == 1);
        assert_eq!((cache.bytes(), cache.get(1, 4096)), (cache.fixed_bytes(), None));
    }

    #[test]
    fn a_group_is_wanted_from_the_second_touch_on() {
        let cache = HotGroups::new(1 << 20);
        assert!(!cache.wants(1, 8));
        assert!(cache.wants(1, 8));
        cache.offer(1, 8, b"decoded");
        assert_eq!(cache.get(1, 8).as_deref(), Some(&b"decoded"[..]));
        assert!(!HotGroups::new(0).wants(1, 8));
    }

    #[test]
    fn without_a_budget_nothing_is_kept() {
        for budget in [0, 1, 5000, 6000] {
            let cache = HotGroups::new(budget);
            for _ in 0..3 {
                assert!(!read(&cache, 1, 1, 1000));
            }
        }
        // A group that is too large for a shard is not taken, however often it is offered.
        let cache = HotGroups::new(1 << 20);
        for _ in 0..3 {
            assert!(!read(&cache, 1, 1, 1 << 18));
        }
        assert_eq!(cache.bytes(), cache.fixed_bytes());
    }

    #[test]
    fn most_of_the_budget_is_used() {
        for len in [600, 1000, 4000, 16_000] {
            let cache = HotGroups::new(8 << 20);
            for offset in 0..(9 << 20) / len as u64 {
                cache.offer(1, offset, &group(1, offset, len));
                cache.offer(1, offset, &group(1, offset, len));
            }
            assert!(cache.bytes() <= 8 << 20);
            assert!(cache.bytes() > 7 << 20, "{} bytes of groups of {len}", cache.bytes());
        }
    }

    #[test]
    fn a_scan_displaces_nothing() {
        let cache = HotGroups::new(4 << 20);
        let hot = |round: u64| (0..2000).filter(|offset| read(&cache, round.min(1), *offset, 1000)).count();
        hot(1);
        hot(1);
        // A set that got more than its eight cannot hold them all.
        assert!(hot(1) >= 1990);
        let before = cache.stats();
        for offset in 0..100_000 {
            read(&cache, 9, offset, 1000);
        }
        let after = cache.stats();
        // Ghosts are two bytes: a few are taken for others.
        assert!(after.admitted - before.admitted < 100, "{after:?}");
        assert!(hot(1) > 1950);
    }

    #[test]
    fn what_is_used_stays_and_what_is_not_goes() {
        let cache = HotGroups::new(4 << 20);
        let mut last = 0;
        // A third of the budget is used all the time; the rest is asked for a few times and then never again.
        for round in 0..30u64 {
            last = 0;
            for i in 0..1300u64 {
                last += usize::from(read(&cache, 1, i, 1000));
                for offset in [i, i, i] {
                    read(&cache, 2 + round, offset, 1000);
                }
            }
        }
        assert!(last > 1200, "{last} of 1300");
        assert!(cache.stats().evicted > 10_000);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn the_account_is_exact_and_within_the_budget(
            budget in 10_000usize..3_000_000,
            ops in proptest::collection::vec((0u64..3, 0u64..400, 1usize..6), 1..3000),
            shrink in any::<bool>(),
        ) {
            let cache = HotGroups::new(budget);
            let most = budget.max(cache.fixed_bytes());
            for (i, (table, offset, scale)) in ops.iter().enumerate() {
                read(&cache, *table, *offset, (*offset as usize * 13 + 7) * (*table as usize * 3 + 1));
                prop_assert!(cache.bytes() <= most);
                if i == 1000 && *scale == 1 {
                    cache.remove_tables(|t| t == *table);
                }
            }
            prop_assert_eq!(cache.bytes(), counted(&cache));
            let stats = cache.stats();
            prop_assert_eq!(stats.hits + stats.misses, ops.len() as u64);
            if shrink {
                cache.set_budget(0);
                prop_assert!(!ops.is_empty() && !read(&cache, 77, 1, 10) && !read(&cache, 77, 1, 10) && !read(&cache, 77, 1, 10));
            }
        }
    }

    #[test]
    fn threads_agree() {
        let cache = HotGroups::new(300_000);
        std::thread::scope(|scope| {
            for thread in 0..4u64 {
                let cache = &cache;
                scope.spawn(move || {
                    let mut random = 0x9E37_79B9 + thread;
                    for i in 0..40_000 {
                        random ^= random << 13;
                        random ^= random >> 7;
                        random ^= random << 17;
                        let offset = if random & 1 == 0 { random >> 8 & 63 } else { random >> 8 & 1023 };
                        read(cache, 1, offset, 700);
                        assert!(cache.bytes() <= 300_000);
                        if i % 10_000 == 0 {
                            cache.remove_tables(|_| true);
                        }
                    }
                });
            }
        });
        assert_eq!(cache.bytes(), counted(&cache));
        let stats = cache.stats();
        assert_eq!(stats.hits + stats.misses, 160_000);
        assert!(stats.hits > 40_000 && stats.evicted > 100, "{stats:?}");
    }
}

#[cfg(all(test, shuttle))]
mod schedules {
    use super::*;

    /// Readers that miss, offer and hit the same few groups while a table goes: the account stays exact.
    #[test]
    fn the_account_is_exact_in_any_schedule() {
        let mut config = shuttle::Config::new();
        config.stack_size = 1 << 20;
        let runner = shuttle::Runner::new(shuttle::scheduler::RandomScheduler::new(300), config);
        runner.run(|| {
            let cache = Arc::new(HotGroups::new(20_000));
            assert!(!cache.sets.is_empty());
            let budget = cache.fixed_bytes() + cache.shards.len() * 5 * cost(100);
            cache.set_budget(budget);
            let reader = |table: u64| {
                let cache = Arc::clone(&cache);
                shuttle::thread::spawn(move || {
                    for round in 0..3u8 {
                        for offset in 0..4u8 {
                            let group = [offset; 100];
                            match cache.get(table, u64::from(offset)) {
                                Some(found) => assert_eq!(*found, group),
                                None => cache.offer(table, u64::from(offset), &group),
                            }
                            assert!(cache.bytes() <= budget);
                        }
                        if round == 1 {
                            cache.remove_tables(|gone| gone == 2);
                        }
                    }
                })
            };
            for thread in [reader(1), reader(1), reader(2)] {
                thread.join().unwrap();
            }
            let left: usize = cache
                .sets
                .iter()
                .flat_map(|set| set.take(|_| true))
                .flatten()
                .map(|s| cost(s.group.len()))
                .sum();
            assert_eq!(cache.bytes(), cache.fixed_bytes() + left);
        });
    }
}
