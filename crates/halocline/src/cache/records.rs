//! Hot records: whole values by key, so that a point read of a hot key touches no filter, fence or page.
//!
//! # Why a record is never out of date
//!
//! There is no invalidation. Each version of the database carries `flushes`, a number that grows whenever the content
//! of the tables changes: a flush, a dropped column family, FIFO tables that age out. Merges do not change it: they
//! write down the same newest value of each key in other tables. So all versions with the same number `n` agree on a function
//! `T_n`: what the tables hold for a key, whichever of these versions is asked. `T_n` never changes, not even after
//! later flushes; it is only not asked for any more.
//!
//! A record says `T_n(key) = value`, with `n` in it. It is offered by a reader that found `value` in the tables of the
//! version that it has pinned, whose number is `n`: so it is true when written, and stays true for ever, however late
//! the reader comes with it. It is served only to a reader whose own pinned version has the number `n`, that wants the newest
//! value, and that found nothing in that version's memtables: what that reader would get from its tables is `T_n(key)`.
//! Nothing in this depends on the order in which records, flushes and readers come. After a flush
//! all records are stale; each hot one is written anew by the first reader that misses it, without having to be
//! admitted again.
//!
//! # Layout
//!
//! ```text
//! set (1 KiB, 16 cache lines; all fields are 64-bit words)
//! word 0         sequence, odd while a writer is in the set; 0: never written
//!      1         bit i: extent i was hit since the hand went by; bits 32..: the clock's hand
//!      2-5       fingerprints, 16 x u16, 0 for a free extent
//!      6-7       where the extents begin, 16 x u8: ascending word numbers; those not in use begin at the end
//!      8-127     extents
//! record in an extent
//! word 0         flushes
//!      1         column family << 32 | key length << 16 | value length
//!      2..       key, filled up with zeros to a word; value, likewise
//! ```
//!
//! A miss reads one line, a hit that line and the record's two or three. Extents of any size lie in a set, so that there are no
//! size classes to divide the memory between: a new record takes the smallest free extent that it fits in; if there is none, the
//! hand makes one (second chance).
//!
//! # Threads
//!
//! A seqlock a set. A reader loads the sequence, then words (all are relaxed atomics: there is no data race, but what is
//! read may be torn, so every length and position is checked), then the sequence again, and believes the words only
//! if it did not move. A writer takes the set by making the sequence odd (compare-and-swap), and goes away if it cannot: a
//! record not cached is no harm. Nobody ever waits. A reader writes nothing but a hit bit that is not set yet (which
//! may be lost, or hit a neighbour: it is a hint), and its thread's counters.
//!
//! # Size
//!
//! The cache begins with 2 MiB and doubles when a quarter of its sets have run out of room, up to its budget: a small
//! database, or a small set of hot keys, costs a small cache, and no reader has to wait for the kernel to zero 64 MiB of
//! huge pages. A key's set is the low bits of its place among all sets; with each doubling half of the records are in another
//! set from then on, where they are not looked for: they are missed once, and displaced where they lie.
//!
//! # Admission
//!
//! While a set has room, everything is admitted; then one offer in eight, at random: a key must be hot to get in, and a scan
//! displaces little. Where fewer than one lookup in eight hits over an epoch, the cache steps aside for 15 epochs,
//! costing a load and a count a read, and then tries again.

mod directory;
#[cfg(all(test, shuttle))]
mod shuttle_tests;
#[cfg(all(test, not(shuttle)))]
mod tests;

use super::counters::Counters;
use crate::Value;
#[cfg(not(shuttle))]
use crate::io::Mapping;
use crate::sync::atomic::{
    AtomicBool, AtomicU32, AtomicU64, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
    fence,
};
use crate::sync::{Padded, thread_index};
use directory::Directory;
use std::cell::Cell;

/// Words of a set.
const SET: usize = 128;
/// Where the extents begin, in words.
const FIRST: usize = 8;
/// Extents of a set, at most.
const EXTENTS: usize = 16;
/// Words of a record before its key.
const HEADER: usize = 2;
/// Words of the largest record: half of what a set holds.
const LARGEST: usize = (SET - FIRST) / 2;
/// A rest smaller than this stays with the record it is behind.
const SMALLEST: usize = 4;
/// Memory is counted as used in portions of this: a huge page, which is what the kernel may give.
const PORTION: usize = 2 << 20;
/// Sets to begin with: as many as lie in a portion.
const AT_FIRST: usize = PORTION / (SET * 8);
/// One offer in this many displaces another record.
const ADMIT: u32 = 8;
/// Lookups after which a thread tells of them.
const BATCH: u64 = if cfg!(test) { 64 } else { 1024 };
/// Lookups in an epoch.
const EPOCH: u64 = 64 * BATCH;
/// Epochs without the cache after one that was not worth it.
const ASIDE: u32 = 15;
/// It is worth it if one lookup in this many hits.
const WORTH: u64 = 8;
/// Copies of the counts.
const STRIPES: usize = if cfg!(shuttle) { 1 } else { 16 };

/// Indexes of the counters.
const ADMITTED: usize = 0;
const EVICTED: usize = 1;

/// The memory of the sets: zero at first, and given by the system where it is touched.
#[cfg(not(shuttle))]
struct Words(Mapping);

#[cfg(not(shuttle))]
impl Words {
    fn new(len: usize) -> Option<Words> {
        let mapping = Mapping::anonymous(len * 8).ok()?;
        // Fewer misses of the address cache; a kernel that has no huge pages is not missed.
        let _ = mapping.advise(crate::io::Advice::Huge, 0..mapping.len());
        Some(Words(mapping))
    }

    #[inline]
    fn all(&self) -> &[AtomicU64] {
        // SAFETY: the mapping is this value's own, writable, at a page's beginning and zeroed, which is a valid
        // `AtomicU64`; it is only ever used through the atomics given out here.
        unsafe { std::slice::from_raw_parts(self.0.as_ptr().cast::<AtomicU64>(), self.0.len() / 8) }
    }
}

/// The checker's atomics are no plain words.
#[cfg(shuttle)]
struct Words(Box<[AtomicU64]>);

#[cfg(shuttle)]
impl Words {
    fn new(len: usize) -> Option<Words> {
        Some(Words((0..len).map(|_| AtomicU64::new(0)).collect()))
    }

    fn all(&self) -> &[AtomicU64] {
        &self.0
    }
}

/// One thread's counts (or those of several that share it: then some may get lost).
#[derive(Default)]
struct Stripe {
    /// Lookups, and << 32 hits, since it was last told.
    asked: AtomicU64,
    /// Reads that did not ask, likewise.
    skipped: AtomicU64,
}

/// What happened in the cache, and what it holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RecordStats {
    pub(crate) hits: u64,
    pub(crate) misses: u64,
    pub(crate) admitted: u64,
    pub(crate) evicted: u64,
    /// Bytes of memory in use, in portions of 2 MiB.
    pub(crate) bytes: usize,
    /// Whether it stands aside at present.
    pub(crate) aside: bool,
}

/// The cache of hot records.
pub(crate) struct Records {
    words: Words,
    sets: usize,
    /// Sets that are used: a power of two, or all.
    in_use: AtomicUsize,
    /// Offers that found no room since there are so many.
    crowded: AtomicUsize,
    /// Epochs to stand aside for; 0 while the cache is used.
    aside: AtomicU32,
    /// Portions of the memory that were written to.
    touched: Box<[AtomicBool]>,
    /// Lookups, and << 32 hits, in this epoch.
    epoch: Padded<AtomicU64>,
    hits: AtomicU64,
    misses: AtomicU64,
    counters: Counters<2>,
    stripes: Box<[Padded<Stripe>; STRIPES]>,
}

/// Where a key's record is, or would be.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    set: usize,
    fingerprint: u16,
    family: u32,
}

impl Records {
    /// A cache that takes `budget` bytes at most; `None` where that is too little, or the memory is not there.
    pub(crate) fn new(budget: usize) -> Option<Records> {
        let sets = budget / (SET * 8);
        if sets == 0 {
            return None;
        }
        Some(Records {
            words: Words::new(sets * SET)?,
            sets,
            in_use: AtomicUsize::new(sets.min(AT_FIRST)),
            crowded: AtomicUsize::new(0),
            aside: AtomicU32::new(0),
            touched: (0..(sets * SET * 8).div_ceil(PORTION)).map(|_| AtomicBool::new(false)).collect(),
            epoch: Padded::default(),
            hits: AtomicU64::new(0),
            misses: AtomicU64::new(0),
            counters: Counters::new(),
            stripes: Box::new(std::array::from_fn(|_| Padded::default())),
        })
    }

    /// Where the key with this hash is looked for, its line being fetched; `None` while the cache stands aside.
    #[inline]
    pub(crate) fn place(&self, family: u32, key_hash: impl FnOnce() -> u64) -> Option<Place> {
        if self.aside.load(Relaxed) != 0 {
            self.skip();
            return None;
        }
        let hash = key_hash() ^ u64::from(family).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        // The set comes from the upper bits, the fingerprint from the lower.
        let mut set = ((u128::from(hash) * self.sets as u128) >> 64) as usize;
        let in_use = self.in_use.load(Relaxed);
        if in_use < self.sets {
            set &= in_use - 1;
        }
        prefetch(&self.words.all()[set * SET]);
        Some(Place { set, fingerprint: (hash as u16).max(1), family })
    }

    #[inline]
    fn set(&self, place: Place) -> &[AtomicU64; SET] {
        let words = &self.words.all()[place.set * SET..];
        // The slice has whole sets.
        words.first_chunk().expect("a place lies in the cache")
    }

    /// The value of `key` in the tables with that number of flushes.
    #[inline]
    pub(crate) fn get(&self, place: Place, flushes: u64, key: &[u8]) -> Option<Value> {
        self.read(place, flushes, key, |words, len| {
            if len <= crate::value::INLINE {
                let mut bytes = [0; crate::value::INLINE.next_multiple_of(8)];
                for (chunk, word) in bytes.chunks_exact_mut(8).zip(words) {
                    chunk.copy_from_slice(&word.load(Relaxed).to_le_bytes());
                }
                Value::copy(&bytes[..len])
            } else {
                let mut bytes = Vec::new();
                append(&mut bytes, words, len);
                Value::owned(bytes)
            }
        })
    }

    /// As `get`, but appends the value to `out`.
    pub(crate) fn get_into(&self, place: Place, flushes: u64, key: &[u8], out: &mut Vec<u8>) -> bool {
        let before = out.len();
        let found = self.read(place, flushes, key, |words, len| {
            out.truncate(before);
            append(out, words, len);
        });
        if found.is_none() {
            out.truncate(before);
        }
        found.is_some()
    }

    /// Whether there is a value of `key` here.
    pub(crate) fn contains(&self, place: Place, flushes: u64, key: &[u8]) -> bool {
        self.read(place, flushes, key, |_, _| ()).is_some()
    }

    /// Finds the record and has its value's words read, which are those that were written together.
    #[inline]
    fn read<R>(
        &self,
        place: Place,
        flushes: u64,
        key: &[u8],
        value: impl FnMut(&[AtomicU64], usize) -> R,
    ) -> Option<R> {
        let found = find(self.set(place), place, flushes, key, value);
        self.count(if found.is_some() { 1 << 32 | 1 } else { 1 });
        found
    }

    /// Gives the cache what a reader that missed here found in the tables with that number of flushes.
    pub(crate) fn offer(&self, place: Place, flushes: u64, key: &[u8], value: &[u8]) {
        let need = HEADER + key.len().div_ceil(8) + value.len().div_ceil(8);
        if need > LARGEST {
            return;
        }
        let set = self.set(place);
        let sequence = set[0].load(Relaxed);
        if sequence & 1 != 0 || set[0].compare_exchange(sequence, sequence + 1, Acquire, Relaxed).is_err() {
            return;
        }
        // The stores below come after the one above, for a reader that sees any of them.
        fence(Release);
        let mut directory = if sequence == 0 { self.first_use(place) } else { Directory::load(set) };
        if let Some(extent) = self.room(set, &mut directory, place, flushes, key, need) {
            directory.fingerprints[extent] = place.fingerprint;
            directory.hits &= !(1 << extent);
            write(set, directory.begins[extent].into(), flushes, place.family, key, value);
        }
        directory.store(set);
        set[0].store(sequence + 2, Release);
    }

    /// An extent of at least `need` words for the record, none if it is not to be admitted.
    fn room(
        &self,
        set: &[AtomicU64; SET],
        directory: &mut Directory,
        place: Place,
        flushes: u64,
        key: &[u8],
        need: usize,
    ) -> Option<usize> {
        let known = (0..EXTENTS).find(|i| {
            directory.fingerprints[*i] == place.fingerprint
                && Record::at(set, directory.begins[*i].into()).is_some_and(|r| r.is_of(place.family, key))
        });
        if let Some(extent) = known {
            let record = Record::at(set, directory.begins[extent].into())?;
            if record.flushes() > flushes {
                // This reader is late: newer readers have it already.
                return None;
            }
            if directory.len(extent) >= need {
                return Some(extent);
            }
            directory.free(extent);
        }
        if let Some(extent) = directory.take(need) {
            self.counters.bump(ADMITTED);
            return Some(extent);
        }
        if known.is_none() && !one_in(ADMIT) {
            return None;
        }
        self.note_crowded();
        // Twice round takes everything out.
        for _ in 0..2 * EXTENTS {
            let at = directory.hand;
            directory.hand = (at + 1) % EXTENTS;
            if directory.fingerprints[at] == 0 {
                continue;
            }
            if directory.hits & 1 << at != 0 {
                directory.hits &= !(1 << at);
                continue;
            }
            directory.free(at);
            self.counters.bump(EVICTED);
            if let Some(extent) = directory.take(need) {
                self.counters.bump(ADMITTED);
                return Some(extent);
            }
        }
        None
    }

    /// A set had no room for what is admitted: when that has happened often enough, more sets are used.
    fn note_crowded(&self) {
        let in_use = self.in_use.load(Relaxed);
        if in_use < self.sets && self.crowded.fetch_add(1, Relaxed) >= in_use / 4 {
            self.crowded.store(0, Relaxed);
            // Whoever comes second finds it done.
            let _ = self.in_use.compare_exchange(in_use, (2 * in_use).min(self.sets), Relaxed, Relaxed);
        }
    }

    #[cold]
    fn first_use(&self, place: Place) -> Directory {
        self.touched[place.set * SET * 8 / PORTION].store(true, Relaxed);
        Directory::empty()
    }

    /// Bytes of memory in use.
    pub(crate) fn bytes(&self) -> usize {
        let portions = self.touched.iter().filter(|touched| touched.load(Relaxed)).count();
        (portions * PORTION).min(self.sets * SET * 8)
    }

    /// What happened so far, about.
    pub(crate) fn stats(&self) -> RecordStats {
        let [admitted, evicted] = self.counters.sums();
        let mut stats = RecordStats {
            hits: self.hits.load(Relaxed),
            misses: self.misses.load(Relaxed),
            admitted,
            evicted,
            bytes: self.bytes(),
            aside: self.aside.load(Relaxed) != 0,
        };
        for stripe in &*self.stripes {
            let asked = stripe.0.asked.load(Relaxed);
            stats.hits += asked >> 32;
            stats.misses += (asked & 0xFFFF_FFFF) - (asked >> 32);
        }
        stats
    }

    #[inline]
    fn count(&self, lookup: u64) {
        let asked = &self.stripes[thread_index() % STRIPES].0.asked;
        // Not one atomic operation: with fewer threads than stripes nobody else counts here.
        let sum = asked.load(Relaxed) + lookup;
        if sum & 0xFFFF_FFFF < BATCH {
            asked.store(sum, Relaxed);
        } else {
            asked.store(0, Relaxed);
            self.hits.fetch_add(sum >> 32, Relaxed);
            self.misses.fetch_add((sum & 0xFFFF_FFFF) - (sum >> 32), Relaxed);
            self.settle(sum);
        }
    }

    #[inline]
    fn skip(&self) {
        let skipped = &self.stripes[thread_index() % STRIPES].0.skipped;
        let sum = skipped.load(Relaxed) + 1;
        skipped.store(if sum < BATCH { sum } else { 0 }, Relaxed);
        if sum >= BATCH {
            self.settle(sum);
        }
    }

    /// Adds a batch to the epoch, and judges it if that is its end.
    #[cold]
    fn settle(&self, batch: u64) {
        let sum = self.epoch.0.fetch_add(batch, Relaxed) + batch;
        if sum & 0xFFFF_FFFF < EPOCH {
            return;
        }
        let sum = self.epoch.0.swap(0, Relaxed);
        let (lookups, hits) = (sum & 0xFFFF_FFFF, sum >> 32);
        if lookups < EPOCH {
            // Another thread judged this one.
            return;
        }
        let aside = self.aside.load(Relaxed);
        if aside > 0 {
            self.aside.store(aside - 1, Relaxed);
        } else if hits * WORTH < lookups {
            self.aside.store(ASIDE, Relaxed);
        }
    }
}

/// Finds the record in its set; what `value` made of its words counts only if it is returned.
#[inline]
fn find<R>(
    set: &[AtomicU64; SET],
    place: Place,
    flushes: u64,
    key: &[u8],
    mut value: impl FnMut(&[AtomicU64], usize) -> R,
) -> Option<R> {
    let sequence = set[0].load(Acquire);
    if sequence & 1 != 0 || sequence == 0 {
        return None;
    }
    for quarter in 0..EXTENTS / 4 {
        let lanes = set[2 + quarter].load(Relaxed);
        let mut matches = lanes_with(lanes, place.fingerprint);
        while matches != 0 {
            let lane = matches.trailing_zeros() as usize / 16;
            matches &= matches - 1;
            if (lanes >> (lane * 16)) as u16 != place.fingerprint {
                continue;
            }
            let extent = quarter * 4 + lane;
            let begin = (set[6 + extent / 8].load(Relaxed) >> (extent % 8 * 8)) as u8 as usize;
            let Some(record) = Record::at(set, begin) else { continue };
            if record.flushes() != flushes || !record.is_of(place.family, key) {
                continue;
            }
            let Some(words) = record.value() else { continue };
            let read = value(words, record.value_len());
            // The loads above come before the one below.
            fence(Acquire);
            if set[0].load(Relaxed) != sequence {
                return None;
            }
            let hits = set[1].load(Relaxed);
            if hits & 1 << extent == 0 {
                set[1].store(hits | 1 << extent, Relaxed);
            }
            return Some(read);
        }
    }
    None
}

/// A record that may be torn: nothing in it is trusted.
struct Record<'a> {
    words: &'a [AtomicU64],
    meta: u64,
}

impl<'a> Record<'a> {
    #[inline]
    fn at(set: &'a [AtomicU64; SET], begin: usize) -> Option<Record<'a>> {
        let words = set.get(begin..)?;
        Some(Record { meta: words.get(1)?.load(Relaxed), words })
    }

    #[inline]
    fn flushes(&self) -> u64 {
        self.words[0].load(Relaxed)
    }

    #[inline]
    fn is_of(&self, family: u32, key: &[u8]) -> bool {
        if self.meta >> 16 != u64::from(family) << 16 | key.len() as u64 {
            return false;
        }
        let Some(words) = self.words.get(HEADER..HEADER + key.len().div_ceil(8)) else { return false };
        words.iter().zip(key.chunks(8)).all(|(word, chunk)| word.load(Relaxed) == word_of(chunk))
    }

    #[inline]
    fn value_len(&self) -> usize {
        self.meta as u16 as usize
    }

    #[inline]
    fn value(&self) -> Option<&'a [AtomicU64]> {
        let begin = HEADER + ((self.meta >> 16) as u16 as usize).div_ceil(8);
        self.words.get(begin..begin + self.value_len().div_ceil(8))
    }
}

/// Writes a record, for which there is room.
fn write(set: &[AtomicU64; SET], begin: usize, flushes: u64, family: u32, key: &[u8], value: &[u8]) {
    let meta = u64::from(family) << 32 | (key.len() as u64) << 16 | value.len() as u64;
    let words = [flushes, meta].into_iter();
    let words = words.chain(key.chunks(8).map(word_of)).chain(value.chunks(8).map(word_of));
    set[begin..].iter().zip(words).for_each(|(to, word)| to.store(word, Relaxed));
}

/// Up to eight bytes as a word.
#[inline]
fn word_of(bytes: &[u8]) -> u64 {
    match bytes.first_chunk() {
        Some(whole) => u64::from_le_bytes(*whole),
        None => bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte)),
    }
}

/// Appends the first `len` bytes of `words`.
fn append(out: &mut Vec<u8>, words: &[AtomicU64], len: usize) {
    out.reserve_exact(len);
    for (i, word) in words.iter().enumerate() {
        let bytes = word.load(Relaxed).to_le_bytes();
        out.extend_from_slice(&bytes[..(len - i * 8).min(8)]);
    }
}

/// The upper bit of each 16-bit lane that equals `wanted`; above such a lane there may be one that does not.
#[inline]
fn lanes_with(lanes: u64, wanted: u16) -> u64 {
    const ONES: u64 = 0x0001_0001_0001_0001;
    let differ = lanes ^ (u64::from(wanted) * ONES);
    differ.wrapping_sub(ONES) & !differ & ONES << 15
}

thread_local!(static DICE: Cell<u32> = const { Cell::new(0x9E37_79B9) });

/// True once in `n` calls, at random.
fn one_in(n: u32) -> bool {
    let mut x = DICE.get();
    x ^= x << 13;
    x ^= x >> 17;
    x ^= x << 5;
    DICE.set(x);
    x.is_multiple_of(n)
}

#[inline]
fn prefetch(at: &AtomicU64) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: prefetching has no effect that a program can see, whatever the address.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(at).cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}
