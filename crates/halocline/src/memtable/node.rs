//! A node of the B+tree, leaf or inner, and what is done inside one.
//!
//! ```text
//! lock    u64         version, even; odd while locked
//! meta    u64         count u16 | level u16 (0: leaf) | skip u16 | known u16
//! fences  u64         low u32 | high u32: every key of the subtree is at or behind the key at entry `low` and before
//!                     the one at entry `high`; NONE at the edges of the tree
//! link    u32         leaf: the next leaf (0: none); inner: the first child
//! run     u32         where the last slot was put in, and how many in a row ascended and descended to it
//! tail    [u64; 4]    the last 32 bytes of the prefix that is skipped (all, if it is shorter), as big-endian numbers
//!                     padded with zeros
//! heads   [u64; CAP]  per slot the 8 bytes of the key behind the prefix, big-endian, padded with zeros
//! words   [u64; CAP]  per slot: entry u32 | older u32 (leaf: chain of older versions, 0: none)
//!                               entry u32 | child u32 (inner: entry is the separator, child holds it and what follows)
//! ```
//!
//! The first `skip` bytes are the same in all keys (separators) of the node and are left out of the heads. They are
//! kept only in part (`tail`): the whole prefix is in any of the node's keys, in the log. Of these, the first `known`
//! are common to both fences, so any key that belongs into the node has them and needs no comparing.
//!
//! ## Reading and writing
//! An optimistic version lock, as in a seqlock: a reader takes the version (`read_begin`), reads, and then checks
//! that it is still the same (`validate`); a writer locks by a compare-and-swap from the version that it read under.
//! All words are atomics, so a reader that loses the race sees old or mixed values but never a data race.
//! Two things must hold even for values read in a race, before `validate`:
//! - An `entry` in a slot below `count` is always one that was inserted: slots are written before `count` grows
//!   (release and acquire on `meta`), a slot is never given anything else, and a writer's release fence comes before
//!   its stores, a reader's acquire fence (`key_of`) after its load.
//! - `count` is never above `CAP`.
//!
//! A `child`, `older` or `link` may be followed only after `validate`.

use super::entries::{Entries, common, head_at, prefetch};
use crate::sync::Backoff;
use crate::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
use std::cmp::Ordering as Order;

/// Slots of a node. Odd in cache lines together with the header, so that headers spread over a cache's sets.
#[cfg(not(shuttle))]
pub(super) const CAP: usize = 64;
/// So few that a handful of keys splits nodes.
#[cfg(shuttle)]
pub(super) const CAP: usize = 4;

/// No entry: the fence at the edge of the tree. An entry takes 3 bytes, so none starts here.
pub(super) const NONE: u32 = u32::MAX;

/// Longest prefix that is skipped.
const MAX_SKIP: usize = u16::MAX as usize;
const TAIL: usize = 32;
/// So many in a row are a run.
const RUN: u32 = 4;

#[repr(C, align(64))]
pub(super) struct Node {
    lock: AtomicU64,
    meta: AtomicU64,
    fences: AtomicU64,
    link: AtomicU32,
    run: AtomicU32,
    tail: [AtomicU64; TAIL / 8],
    heads: [AtomicU64; CAP],
    words: [AtomicU64; CAP],
}

/// A node's `meta` word, taken apart.
#[derive(Clone, Copy)]
pub(super) struct Meta {
    pub(super) count: usize,
    pub(super) level: usize,
    skip: usize,
    known: usize,
}

impl Meta {
    fn pack(self) -> u64 {
        self.count as u64 | (self.level as u64) << 16 | (self.skip as u64) << 32 | (self.known as u64) << 48
    }

    #[inline(always)]
    fn unpack(word: u64) -> Meta {
        Meta {
            count: word as u16 as usize,
            level: (word >> 16) as u16 as usize,
            skip: (word >> 32) as u16 as usize,
            known: (word >> 48) as usize,
        }
    }
}

/// A slot's word: an entry, and an older version (leaf) or a child (inner).
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Word(pub(super) u64);

impl Word {
    pub(super) fn new(entry: u32, other: u32) -> Word {
        Word(u64::from(entry) | u64::from(other) << 32)
    }

    #[inline(always)]
    pub(super) fn entry(self) -> u32 {
        self.0 as u32
    }

    #[inline(always)]
    pub(super) fn other(self) -> u32 {
        (self.0 >> 32) as u32
    }
}

/// Where a key is, or would be, in a node: the slots before it, whether the next slot has this very key, and
/// whether the key has the node's prefix.
#[derive(Clone, Copy)]
pub(super) struct Rank {
    pub(super) pos: usize,
    pub(super) exact: bool,
    shares: bool,
}

impl Node {
    /// An empty leaf.
    pub(super) fn new() -> Node {
        Node {
            lock: AtomicU64::new(0),
            meta: AtomicU64::new(Meta { count: 0, level: 0, skip: 0, known: 0 }.pack()),
            fences: AtomicU64::new(Word::new(NONE, NONE).0),
            link: AtomicU32::new(0),
            run: AtomicU32::new(u32::from(u16::MAX)),
            tail: std::array::from_fn(|_| AtomicU64::new(0)),
            heads: std::array::from_fn(|_| AtomicU64::new(0)),
            words: std::array::from_fn(|_| AtomicU64::new(0)),
        }
    }

    // ---- the lock ----

    /// Waits until the node is not locked and returns its version.
    #[inline(always)]
    pub(super) fn read_begin(&self) -> u64 {
        let version = self.lock.load(Ordering::Acquire);
        if version & 1 == 0 { version } else { self.wait_unlocked() }
    }

    #[cold]
    fn wait_unlocked(&self) -> u64 {
        let mut backoff = Backoff::default();
        loop {
            backoff.wait();
            let version = self.lock.load(Ordering::Acquire);
            if version & 1 == 0 {
                return version;
            }
        }
    }

    /// Whether all that was read since `read_begin` returned `version` belongs together.
    #[inline(always)]
    pub(super) fn validate(&self, version: u64) -> bool {
        fence(Ordering::Acquire);
        self.lock.load(Ordering::Relaxed) == version
    }

    /// Locks the node if nothing changed since `version`.
    #[inline(always)]
    pub(super) fn try_lock(&self, version: u64) -> bool {
        let locked =
            self.lock.compare_exchange(version, version + 1, Ordering::Acquire, Ordering::Relaxed).is_ok();
        // The lock is seen before the stores under it; and so is the entry that is about to be pointed to.
        fence(Ordering::Release);
        locked
    }

    /// Unlocks the node, and returns its new version.
    #[inline(always)]
    pub(super) fn unlock(&self) -> u64 {
        let version = self.lock.load(Ordering::Relaxed) + 1;
        self.lock.store(version, Ordering::Release);
        version
    }

    // ---- words ----

    #[inline(always)]
    pub(super) fn meta(&self) -> Meta {
        Meta::unpack(self.meta.load(Ordering::Acquire))
    }

    fn set_meta(&self, meta: Meta) {
        debug_assert!(meta.count <= CAP);
        self.meta.store(meta.pack(), Ordering::Release);
    }

    #[inline(always)]
    fn head(&self, at: usize) -> u64 {
        debug_assert!(at < CAP);
        // SAFETY: callers stay below a node's count, which is at most `CAP`.
        unsafe { self.heads.get_unchecked(at) }.load(Ordering::Relaxed)
    }

    #[inline(always)]
    pub(super) fn word(&self, at: usize) -> Word {
        debug_assert!(at < CAP);
        // SAFETY: callers stay below a node's count, which is at most `CAP`.
        Word(unsafe { self.words.get_unchecked(at) }.load(Ordering::Relaxed))
    }

    /// Replaces the word of a slot; the node is locked.
    pub(super) fn set_word(&self, at: usize, word: Word) {
        self.words[at].store(word.0, Ordering::Relaxed);
    }

    /// The key of a slot below `count`; also before `validate`.
    #[inline(always)]
    fn key_of<'e>(&self, at: usize, entries: &'e Entries) -> &'e [u8] {
        let word = self.word(at);
        fence(Ordering::Acquire);
        entries.key(word.entry())
    }

    #[inline(always)]
    pub(super) fn fences(&self) -> (u32, u32) {
        let word = Word(self.fences.load(Ordering::Relaxed));
        (word.entry(), word.other())
    }

    #[inline(always)]
    pub(super) fn link(&self) -> u32 {
        self.link.load(Ordering::Relaxed)
    }

    /// The child for keys that follow `pos` separators.
    #[inline(always)]
    pub(super) fn child(&self, pos: usize) -> u32 {
        if pos == 0 { self.link() } else { self.word(pos - 1).other() }
    }

    /// Asks the processor for the lines that a search reads.
    #[inline(always)]
    pub(super) fn prefetch(&self) {
        let at = std::ptr::from_ref(self).cast::<u8>();
        for line in 0..1 + CAP / 8 {
            prefetch(at.wrapping_add(line * 64));
        }
    }

    /// The same for those that a cursor copies.
    #[inline(always)]
    pub(super) fn prefetch_words(&self) {
        prefetch(std::ptr::from_ref(self));
        for line in 0..CAP / 8 {
            prefetch(self.words.as_ptr().wrapping_add(line * 8));
        }
    }

    // ---- searching ----

    /// Slots whose head is below `head`.
    #[inline(always)]
    fn heads_below(&self, count: usize, head: u64) -> usize {
        let (mut base, mut size) = (0, count);
        while size > 1 {
            let half = size / 2;
            let below = self.head(base + half - 1) < head;
            base = std::hint::select_unpredictable(below, base + half, base);
            size -= half;
        }
        base + usize::from(size == 1 && self.head(base) < head)
    }

    /// Finds `key`, which belongs between the node's fences. In a race the result means nothing, but does no harm.
    #[inline(always)]
    pub(super) fn rank(&self, meta: Meta, key: &[u8], entries: &Entries) -> Rank {
        if meta.skip > meta.known && meta.count > 0 {
            match self.compare_prefix(meta, key, entries) {
                Order::Equal => {}
                Order::Less => return Rank { pos: 0, exact: false, shares: false },
                Order::Greater => return Rank { pos: meta.count, exact: false, shares: false },
            }
        }
        let head = head_at(key, meta.skip);
        let pos = self.heads_below(meta.count, head);
        if pos < meta.count && self.head(pos) == head {
            self.rank_equal(meta, pos, head, key, entries)
        } else {
            Rank { pos, exact: false, shares: true }
        }
    }

    /// Finds `key` among the slots from `pos` on whose heads are as its own.
    #[inline]
    fn rank_equal(&self, meta: Meta, pos: usize, head: u64, key: &[u8], entries: &Entries) -> Rank {
        let rest = key.get(meta.skip..).unwrap_or(&[]);
        let (mut low, mut high) = (pos, pos + 1);
        if high < meta.count && self.head(high) == head {
            high =
                if head == u64::MAX { meta.count } else { self.heads_below(meta.count, head + 1).max(high) };
        }
        while low < high {
            let middle = (low + high) / 2;
            // Where a key of this length ends: its line is wanted too, and the entry's first one may be slow to come.
            entries.prefetch_at(self.word(middle).entry(), key.len() + 2);
            let slot = self.key_of(middle, entries);
            match slot.get(meta.skip..).unwrap_or(&[]).cmp(rest) {
                Order::Less => low = middle + 1,
                Order::Greater => high = middle,
                Order::Equal => return Rank { pos: middle, exact: true, shares: true },
            }
        }
        Rank { pos: low, exact: false, shares: true }
    }

    /// The entry of the first slot whose head is as the key's, if the node is still at `version`: probably the key's.
    #[inline]
    pub(super) fn candidate(&self, version: u64, key: &[u8]) -> Option<u32> {
        let meta = self.meta();
        let head = head_at(key, meta.skip);
        let pos = self.heads_below(meta.count, head);
        let entry = (pos < meta.count && self.head(pos) == head).then(|| self.word(pos).entry())?;
        self.validate(version).then_some(entry)
    }

    /// The rank of `key` if it comes behind the node's last key, whose heads and prefix show it; nothing is assumed
    /// to be known of `key`.
    #[inline]
    pub(super) fn rank_behind(&self, meta: Meta, key: &[u8], entries: &Entries) -> Option<Rank> {
        let pos = meta.count;
        match self.compare_prefix(Meta { known: 0, ..meta }, key, entries) {
            Order::Less => None,
            Order::Greater => Some(Rank { pos, exact: false, shares: false }),
            Order::Equal => {
                let (head, last) = (head_at(key, meta.skip), self.head(pos - 1));
                let behind = head > last || head == last && key > self.key_of(pos - 1, entries);
                behind.then_some(Rank { pos, exact: false, shares: true })
            }
        }
    }

    /// Compares the start of `key` with the node's prefix.
    #[inline]
    fn compare_prefix(&self, meta: Meta, key: &[u8], entries: &Entries) -> Order {
        let from = meta.skip.saturating_sub(TAIL);
        if meta.known < from {
            return self.compare_long_prefix(meta, key, entries);
        }
        // Eight bytes at a time, as numbers; beginning with a few known ones does no harm.
        let len = meta.skip - from;
        for (at, word) in self.tail.iter().enumerate().skip((meta.known - from) / 8) {
            if 8 * at >= len {
                break;
            }
            let behind = 64 - 8 * (len - 8 * at).min(8);
            let mine = head_at(key, from + 8 * at) >> behind << behind;
            let prefix = word.load(Ordering::Relaxed);
            if mine != prefix {
                return mine.cmp(&prefix);
            }
        }
        // Zeros behind the key's end were compared: they do not make it have the prefix.
        if key.len() < meta.skip { Order::Less } else { Order::Equal }
    }

    #[cold]
    fn compare_long_prefix(&self, meta: Meta, key: &[u8], entries: &Entries) -> Order {
        let slot = self.key_of(0, entries);
        key[..meta.skip.min(key.len())].cmp(&slot[..meta.skip.min(slot.len())])
    }

    // ---- changing: the node is locked, or no one else knows it ----

    /// Puts a slot in at `rank`, the key's place. There is room.
    pub(super) fn insert(&self, rank: Rank, key: &[u8], word: Word, entries: &Entries) {
        let mut meta = self.meta();
        debug_assert!(meta.count < CAP && !rank.exact);
        let at = rank.pos;
        if meta.count == 0 {
            meta.skip = key.len().min(MAX_SKIP);
            self.set_tail(key, meta.skip);
        } else if !rank.shares {
            let first = entries.key(self.word(0).entry());
            self.shrink(&mut meta, common(first, key), first);
        }
        let mut slot = meta.count;
        while slot > at {
            self.heads[slot].store(self.head(slot - 1), Ordering::Relaxed);
            self.words[slot].store(self.word(slot - 1).0, Ordering::Relaxed);
            slot -= 1;
        }
        self.heads[at].store(head_at(key, meta.skip), Ordering::Relaxed);
        self.words[at].store(word.0, Ordering::Relaxed);
        meta.count += 1;
        self.set_meta(meta);
        self.note_run(at);
    }

    /// Shortens the prefix to `skip` bytes: each head gets the bytes that are no longer skipped in front.
    #[cold]
    fn shrink(&self, meta: &mut Meta, skip: usize, first: &[u8]) {
        debug_assert!(skip < meta.skip);
        let gap = meta.skip - skip;
        let front = head_at(first, skip);
        for head in &self.heads[..meta.count] {
            let new = if gap >= 8 {
                front
            } else {
                let bits = 64 - 8 * gap;
                front >> bits << bits | head.load(Ordering::Relaxed) >> (8 * gap)
            };
            head.store(new, Ordering::Relaxed);
        }
        meta.skip = skip;
        self.set_tail(first, skip);
    }

    /// Lengthens the prefix to all that the keys have in common, if the heads tell too little.
    fn grow(&self, entries: &Entries) {
        let mut meta = self.meta();
        if meta.count < 2 || !self.heads_tell_little(meta.count) {
            return;
        }
        for at in 0..meta.count {
            entries.prefetch(self.word(at).entry());
        }
        let first = entries.key(self.word(0).entry());
        let last = entries.key(self.word(meta.count - 1).entry());
        let skip = common(first, last).min(MAX_SKIP);
        if skip <= meta.skip {
            return;
        }
        for at in 0..meta.count {
            entries.prefetch_at(self.word(at).entry(), skip);
        }
        for at in 0..meta.count {
            let key = entries.key(self.word(at).entry());
            self.heads[at].store(head_at(key, skip), Ordering::Relaxed);
        }
        self.set_tail(first, skip);
        meta.skip = skip;
        self.set_meta(meta);
    }

    /// Whether at most two bytes of the heads differ, or some heads are equal: comparisons then soon need the keys
    /// themselves, each a cache miss.
    fn heads_tell_little(&self, count: usize) -> bool {
        (self.head(0) ^ self.head(count - 1)) >> 16 == 0
            || (1..count).any(|at| self.head(at - 1) == self.head(at))
    }

    fn set_tail(&self, key: &[u8], skip: usize) {
        let mut tail = [0; TAIL];
        let prefix = &key[skip.saturating_sub(TAIL)..skip];
        tail[..prefix.len()].copy_from_slice(prefix);
        for (bytes, word) in tail.chunks_exact(8).zip(&self.tail) {
            word.store(u64::from_be_bytes(bytes.try_into().expect("8 bytes")), Ordering::Relaxed);
        }
    }

    /// Sets the fences, and what is known from them.
    fn set_fences(&self, low: u32, high: u32, entries: &Entries) {
        self.fences.store(Word::new(low, high).0, Ordering::Relaxed);
        let known = if low == NONE || high == NONE { 0 } else { common(entries.key(low), entries.key(high)) };
        let mut meta = self.meta();
        meta.known = known.min(MAX_SKIP);
        self.set_meta(meta);
    }

    // ---- runs ----

    /// Notes that a slot was put in at `at`. A run ascends while each goes right behind the one before, and descends
    /// while each goes right before it.
    #[inline]
    fn note_run(&self, at: usize) {
        let run = self.run.load(Ordering::Relaxed);
        let (last, up, down) = (run as u16, run >> 16 & 0xFF, run >> 24);
        let up = if at as u16 == last.wrapping_add(1) { (up + 1).min(0xFF) } else { 0 };
        let down = if at as u16 == last { (down + 1).min(0xFF) } else { 0 };
        self.run.store(at as u32 | up << 16 | down << 24, Ordering::Relaxed);
    }

    /// Whether the last slots were each put in right behind the one before.
    #[inline]
    pub(super) fn ascends(&self) -> bool {
        self.run.load(Ordering::Relaxed) >> 16 & 0xFF >= RUN
    }

    /// Where to cut this full node when a slot is to be put in at `at`: in the middle, or in a run so that the part
    /// that the run has filled stays full.
    fn cut(&self, at: usize, count: usize) -> usize {
        let run = self.run.load(Ordering::Relaxed);
        let (last, up, down) = (run as u16, run >> 16 & 0xFF, run >> 24);
        let ascends = up >= RUN && at as u16 == last.wrapping_add(1);
        let descends = down >= RUN && at as u16 == last;
        if ascends || descends { at } else { count / 2 }
    }

    // ---- splitting: the node and its parent are locked ----

    /// Moves the upper part of this full node to `right`, which is new, and returns the separator between them.
    /// `at` and `entry`: where the slot is to be put in that there is no room for, and its entry.
    pub(super) fn split_to(
        &self,
        right: &Node,
        right_id: u32,
        at: usize,
        entry: u32,
        entries: &Entries,
    ) -> u32 {
        let meta = self.meta();
        let (low, high) = self.fences();
        let cut = self.cut(at, meta.count);
        let separator;
        let mut from = cut;
        if meta.level == 0 {
            separator = if cut < meta.count { self.word(cut).entry() } else { entry };
            right.link.store(self.link(), Ordering::Relaxed);
            self.link.store(right_id, Ordering::Relaxed);
        } else {
            // The separator at the cut moves up; its child becomes the first of the right node.
            from = cut.min(meta.count - 1);
            separator = self.word(from).entry();
            right.link.store(self.word(from).other(), Ordering::Relaxed);
            from += 1;
        }
        let count = meta.count - from;
        for slot in 0..count {
            right.heads[slot].store(self.head(from + slot), Ordering::Relaxed);
            right.words[slot].store(self.word(from + slot).0, Ordering::Relaxed);
        }
        self.copy_tail_to(right);
        right.set_meta(Meta { count, ..meta });
        right.set_fences(separator, high, entries);
        right.grow(entries);
        if cut == meta.count {
            // The run goes on at the right node's start.
            right.run.store(self.run.load(Ordering::Relaxed) | 0xFFFF, Ordering::Relaxed);
        }
        self.set_meta(Meta { count: if meta.level == 0 { from } else { from - 1 }, ..meta });
        self.set_fences(low, separator, entries);
        self.grow(entries);
        separator
    }

    /// Moves everything to `to`, which is new; this node becomes an inner one above it with that one child.
    pub(super) fn raise(&self, to: &Node, to_id: u32) {
        let meta = self.meta();
        for slot in 0..meta.count {
            to.heads[slot].store(self.head(slot), Ordering::Relaxed);
            to.words[slot].store(self.word(slot).0, Ordering::Relaxed);
        }
        to.link.store(self.link(), Ordering::Relaxed);
        to.run.store(self.run.load(Ordering::Relaxed), Ordering::Relaxed);
        to.fences.store(self.fences.load(Ordering::Relaxed), Ordering::Relaxed);
        self.copy_tail_to(to);
        to.set_meta(meta);
        self.set_meta(Meta { count: 0, level: meta.level + 1, skip: 0, known: 0 });
        self.link.store(to_id, Ordering::Relaxed);
        self.run.store(u32::from(u16::MAX), Ordering::Relaxed);
    }

    fn copy_tail_to(&self, to: &Node) {
        for (from, to) in self.tail.iter().zip(&to.tail) {
            to.store(from.load(Ordering::Relaxed), Ordering::Relaxed);
        }
    }

    /// Copies the words of the first `count` slots.
    #[inline]
    pub(super) fn copy_words(&self, count: usize, to: &mut [Word; CAP]) {
        for (to, from) in to.iter_mut().zip(&self.words[..count]) {
            *to = Word(from.load(Ordering::Relaxed));
        }
    }
}
