//! The memtable: a B+tree whose slots point into a log segment.
//!
//! A commit writes its entries into a segment's memory and then inserts their offsets here; keys and values are never
//! copied. The version of an entry is its log address, `base + offset`. A key has one slot however often it is
//! written: the slot points to the newest version, older ones hang behind it in a chain, newest first.
//!
//! Structure: [`node`] (layout, search, what happens inside one node), [`split`] (making room), [`batch`] (several
//! descents in flight), [`cursor`], [`arena`] (where nodes and chains live), [`entries`] (reading the segment).
//!
//! # Invariants
//! - Node 0 is the root, always: when it splits, its content moves to a new node below it.
//! - Nodes only split; a node keeps its lower fence, and its upper part goes to a new node right of it. So a leaf that
//!   was copied still continues, without gap or repetition, at the leaf that it linked to then.
//! - Nodes and chain links are freed with the memtable, so whoever holds it may follow any validated number.
//! - Every entry number in a node was inserted, and its bytes are final.
//!
//! # Thread-safety
//! Any number of threads insert and read. Readers take no lock and write nothing; they retry where a writer came
//! between. Writers lock one leaf, and where it is full it and its parent (optimistic lock coupling: Leis et al.,
//! "The ART of practical synchronization", 2016).

mod arena;
mod batch;
mod bench;
mod cursor;
mod entries;
mod node;
#[cfg(all(test, shuttle))]
mod shuttle_tests;
mod split;
#[cfg(test)]
mod testing;
#[cfg(all(test, not(shuttle)))]
mod tests;

pub use bench::MemtableBench;
pub(crate) use cursor::MemCursor;

use crate::entry::Kind;
use crate::io::Mapping;
use crate::iter::Visibility;
use crate::sync::Padded;
use crate::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, fence};
use arena::Arena;
use entries::Entries;
use node::{CAP, NONE, Node, Rank, Word};
use std::cmp::Ordering as Order;
use std::sync::Arc;

/// Threads are spread over so many counters and hints.
const STRIPES: usize = 8;
/// No leaf: the root is never one to hint at.
const NO_LEAF: u32 = 0;

/// See the module.
pub(crate) struct Memtable {
    entries: Entries,
    nodes: Arena<Node, 2>,
    /// Older versions: entry u32 | next older u32. Number 0 is not used.
    chains: Arena<AtomicU64, 64>,
    /// A node that a split made and did not need; 0: none.
    spare: AtomicU32,
    /// Whether anything was inserted; written once, so that readers share its cache line.
    filled: AtomicBool,
    stripes: [Padded<Stripe>; STRIPES],
}

/// What the threads of a stripe write at every insertion.
struct Stripe {
    versions: AtomicU64,
    /// The leaf that a run of ascending keys ends in, or `NO_LEAF`.
    hint: AtomicU32,
}

/// A version of a key, found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    /// What it does to the key.
    pub(crate) kind: Kind,
    /// Its log address.
    pub(crate) version: u64,
    /// Where its value starts in the memory.
    pub(crate) offset: usize,
    /// Length of the value.
    pub(crate) len: usize,
}

/// Which leaf to descend to.
#[derive(Clone, Copy)]
enum Aim<'a> {
    First,
    Last,
    /// The leaf that the key belongs in.
    Key(&'a [u8]),
    /// The leaf with the last keys before this one.
    Before(&'a [u8]),
}

impl Memtable {
    /// An empty memtable over `memory`, in which entries lie at byte offsets; an entry's version is `base` plus its
    /// offset.
    pub(crate) fn new(memory: Arc<Mapping>, base: u64) -> Memtable {
        assert!(u32::try_from(memory.len()).is_ok(), "a memtable's memory is below 4 GiB");
        let nodes = Arena::new();
        nodes.push(Node::new());
        let chains = Arena::new();
        chains.push(AtomicU64::new(0));
        Memtable {
            entries: Entries::new(memory, base),
            nodes,
            chains,
            spare: AtomicU32::new(0),
            filled: AtomicBool::new(false),
            stripes: std::array::from_fn(|_| {
                Padded(Stripe { versions: AtomicU64::new(0), hint: AtomicU32::new(NO_LEAF) })
            }),
        }
    }

    /// Inserts the entry at `offset`, which is completely written and final. A key that is there already gets another
    /// version: the newest, or where its offset says.
    pub(crate) fn insert(&self, offset: u32) {
        let place = self.entries.check(offset);
        let key = self.entries.bytes(place.key as usize, place.key_len as usize);
        let stripe = self.stripe();
        let hint = stripe.hint.load(Ordering::Acquire);
        let end = if hint == NO_LEAF { None } else { self.append(hint, key, offset) };
        let end = match end {
            Some(()) => hint,
            None => self.insert_descending(key, offset),
        };
        if end != hint {
            stripe.hint.store(end, Ordering::Release);
        }
        self.count(stripe, 1);
    }

    /// The newest version of the internal key `key` below log address `before`; `u64::MAX`: the newest of all.
    pub(crate) fn get(&self, key: &[u8], before: u64) -> Option<Found> {
        loop {
            let (leaf, version) = self.descend(Aim::Key(key));
            let meta = leaf.meta();
            let rank = leaf.rank(meta, key, &self.entries);
            let word = if rank.exact { leaf.word(rank.pos) } else { Word::new(NONE, 0) };
            if leaf.validate(version) {
                return if rank.exact { self.found(self.visible(word, self.limit(before))?) } else { None };
            }
        }
    }

    /// The memory that the entries lie in.
    pub(crate) fn memory(&self) -> &Arc<Mapping> {
        self.entries.memory()
    }

    /// The log address of the memory's first byte.
    pub(crate) fn base(&self) -> u64 {
        self.entries.base()
    }

    /// Distinct keys, deleted ones included; exact when no insertion is under way.
    pub(crate) fn keys(&self) -> u64 {
        self.versions().saturating_sub(self.chains.len() as u64 - 1)
    }

    /// Entries inserted.
    pub(crate) fn versions(&self) -> u64 {
        self.stripes.iter().map(|stripe| stripe.0.versions.load(Ordering::Relaxed)).sum()
    }

    /// Whether nothing was inserted.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        !self.filled.load(Ordering::Relaxed)
    }

    /// Bytes that nodes and chains use.
    pub(crate) fn used_bytes(&self) -> usize {
        self.nodes.len() * size_of::<Node>()
            + self.chains.len() * size_of::<AtomicU64>()
            + size_of::<Memtable>()
    }

    /// A cursor over the entries, not yet at any.
    pub(crate) fn cursor(self: &Arc<Self>, visibility: Visibility) -> MemCursor {
        MemCursor::new(Arc::clone(self), visibility)
    }

    // ---- descending ----

    /// The node of that number, read from a validated word.
    #[inline(always)]
    fn node(&self, id: u32) -> &Node {
        // SAFETY: numbers get into the tree only after the node was pushed, by the stores of a locked node; whoever
        // read one under a validated version saw that lock's release.
        unsafe { self.nodes.get(id) }
    }

    /// The leaf for `aim`, and a version of it at which it was the right one.
    #[inline(always)]
    fn descend(&self, aim: Aim<'_>) -> (&Node, u64) {
        let (id, version) = self.descend_to(aim);
        (self.node(id), version)
    }

    #[inline(always)]
    fn descend_to(&self, aim: Aim<'_>) -> (u32, u64) {
        'restart: loop {
            let mut id = 0;
            let mut node = self.node(0);
            let mut version = node.read_begin();
            loop {
                let meta = node.meta();
                if meta.level == 0 {
                    return (id, version);
                }
                let child = match aim {
                    Aim::First => node.child(0),
                    Aim::Last => node.child(meta.count),
                    Aim::Key(key) => {
                        let rank = node.rank(meta, key, &self.entries);
                        node.child(rank.pos + usize::from(rank.exact))
                    }
                    Aim::Before(key) => node.child(node.rank(meta, key, &self.entries).pos),
                };
                if !node.validate(version) {
                    continue 'restart;
                }
                let below = self.node(child);
                below.prefetch();
                let below_version = below.read_begin();
                if !node.validate(version) {
                    continue 'restart;
                }
                (id, node, version) = (child, below, below_version);
            }
        }
    }

    // ---- versions ----

    /// Offsets below this are visible before log address `before`.
    #[inline]
    fn limit(&self, before: u64) -> u64 {
        if before == u64::MAX { u64::MAX } else { before.saturating_sub(self.base()) }
    }

    /// The entry behind `entry` in a chain, and the number of the next.
    #[inline]
    fn older(&self, chain: u32) -> Word {
        // SAFETY: as for nodes: numbers are stored after the link was pushed, and read under a validated version or
        // by acquire from another link.
        Word(unsafe { self.chains.get(chain) }.load(Ordering::Acquire))
    }

    /// The newest of a key's versions whose offset is below `limit`.
    #[inline]
    fn visible(&self, mut word: Word, limit: u64) -> Option<u32> {
        while u64::from(word.entry()) >= limit {
            if word.other() == 0 {
                return None;
            }
            word = self.older(word.other());
        }
        Some(word.entry())
    }

    #[inline]
    fn found(&self, offset: u32) -> Option<Found> {
        let place = self.entries.place(offset);
        Some(Found {
            kind: place.kind(),
            version: self.base() + u64::from(offset),
            offset: place.value(),
            len: place.value_len as usize,
        })
    }

    /// Puts `offset` into the versions that `word` begins; the leaf is locked. Returns the slot's new word.
    fn add_version(&self, word: Word, offset: u32) -> Word {
        debug_assert_ne!(word.entry(), offset, "an entry is inserted once");
        if offset > word.entry() {
            return Word::new(offset, self.chains.push(AtomicU64::new(word.0)));
        }
        // It is older than the newest: find the last that is newer, which gets it as its next.
        let mut above: Option<u32> = None;
        let mut next = word.other();
        while next != 0 {
            let link = self.older(next);
            debug_assert_ne!(link.entry(), offset, "an entry is inserted once");
            if link.entry() < offset {
                break;
            }
            above = Some(next);
            next = link.other();
        }
        let added = self.chains.push(AtomicU64::new(Word::new(offset, next).0));
        match above {
            None => Word::new(word.entry(), added),
            Some(above) => {
                let entry = self.older(above).entry();
                // SAFETY: read from the chain just now.
                let link = unsafe { self.chains.get(above) };
                link.store(Word::new(entry, added).0, Ordering::Release);
                word
            }
        }
    }

    // ---- inserting ----

    /// Inserts by way of the root. Returns the leaf as a hint if the keys ascend there.
    fn insert_descending(&self, key: &[u8], offset: u32) -> u32 {
        loop {
            let (id, version) = self.descend_to(Aim::Key(key));
            match self.insert_in(self.node(id), version, key, offset) {
                Outcome::Done(_) => return if id != 0 && self.node(id).ascends() { id } else { NO_LEAF },
                Outcome::Full => self.make_room(key, offset),
                Outcome::Changed => {}
            }
        }
    }

    /// Inserts into the leaf that `key` belonged in at `version`.
    #[inline]
    fn insert_in(&self, leaf: &Node, version: u64, key: &[u8], offset: u32) -> Outcome {
        let meta = leaf.meta();
        let rank = leaf.rank(meta, key, &self.entries);
        self.insert_at(leaf, version, meta.count, rank, key, offset)
    }

    #[inline]
    fn insert_at(
        &self,
        leaf: &Node,
        version: u64,
        count: usize,
        rank: Rank,
        key: &[u8],
        offset: u32,
    ) -> Outcome {
        if !rank.exact && count == CAP {
            return if leaf.validate(version) { Outcome::Full } else { Outcome::Changed };
        }
        if !leaf.try_lock(version) {
            return Outcome::Changed;
        }
        if rank.exact {
            leaf.set_word(rank.pos, self.add_version(leaf.word(rank.pos), offset));
        } else {
            leaf.insert(rank, key, Word::new(offset, 0), &self.entries);
        }
        Outcome::Done(leaf.unlock())
    }

    /// Appends to leaf `id` if `key` comes behind its last key and belongs there.
    fn append(&self, id: u32, key: &[u8], offset: u32) -> Option<()> {
        let leaf = self.node(id);
        let version = leaf.read_begin();
        let meta = leaf.meta();
        let (_, high) = leaf.fences();
        if meta.count == 0 || meta.count == CAP || meta.level != 0 {
            return None;
        }
        let rank = leaf.rank_behind(meta, key, &self.entries)?;
        if high != NONE {
            fence(Ordering::Acquire);
            if self.entries.key(high).cmp(key) != Order::Greater {
                return None;
            }
        }
        match self.insert_at(leaf, version, meta.count, rank, key, offset) {
            Outcome::Done(_) => Some(()),
            _ => None,
        }
    }

    fn count(&self, stripe: &Stripe, entries: u64) {
        stripe.versions.fetch_add(entries, Ordering::Relaxed);
        if !self.filled.load(Ordering::Relaxed) {
            self.filled.store(true, Ordering::Relaxed);
        }
    }

    /// The calling thread's stripe.
    #[inline]
    fn stripe(&self) -> &Stripe {
        use std::sync::atomic::AtomicUsize;
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        thread_local!(static MINE: usize = NEXT.fetch_add(1, Ordering::Relaxed) % STRIPES);
        &self.stripes[MINE.with(|mine| *mine)].0
    }
}

/// What became of an insertion into a leaf.
enum Outcome {
    /// Done; the leaf's version now.
    Done(u64),
    /// The leaf is full.
    Full,
    /// Someone changed the leaf: descend again.
    Changed,
}
