//! Many keys at a time: a group of descents goes down level by level, so that the cache misses of its keys overlap,
//! and runs of ascending keys do not descend at all.

use super::entries::Entries;
use super::node::{Node, Word};
use super::{Aim, Found, Memtable, NO_LEAF, Outcome};
use crate::sync::atomic::Ordering;

/// Descents in flight: about as many as a core has cache misses in flight, each descent being a few.
const GROUP: usize = 12;

impl Memtable {
    /// `insert` for each of `offsets`, in no promised order.
    pub(crate) fn insert_batch(&self, offsets: &[u32]) {
        if offsets.is_empty() {
            return;
        }
        let stripe = self.stripe();
        let mut hint = stripe.hint.load(Ordering::Acquire);
        let mut rest = offsets;
        while let Some(&offset) = rest.first() {
            let place = self.entries.check(offset);
            let key = self.entries.bytes(place.key as usize, place.key_len as usize);
            if hint != NO_LEAF {
                if self.append(hint, key, offset).is_some() {
                    rest = &rest[1..];
                } else {
                    hint = self.insert_descending(key, offset);
                    rest = &rest[1..];
                }
                continue;
            }
            let (group, behind) = rest.split_at(rest.len().min(GROUP));
            hint = self.insert_group(group);
            rest = behind;
        }
        if stripe.hint.load(Ordering::Acquire) != hint {
            stripe.hint.store(hint, Ordering::Release);
        }
        self.count(stripe, offsets.len() as u64);
    }

    /// Inserts a group of entries; returns the last one's leaf if the keys ascend there.
    fn insert_group(&self, offsets: &[u32]) -> u32 {
        let mut keys: [&[u8]; GROUP] = [&[]; GROUP];
        for (key, &offset) in keys.iter_mut().zip(offsets) {
            let place = self.entries.check(offset);
            *key = self.entries.bytes(place.key as usize, place.key_len as usize);
        }
        let keys = &keys[..offsets.len()];
        let mut leaves = self.descend_group(keys);
        let mut hint = NO_LEAF;
        for at in 0..keys.len() {
            let (key, offset) = (keys[at], offsets[at]);
            let (id, version) = leaves[at];
            let leaf = self.node(id);
            match self.insert_in(leaf, version, key, offset) {
                Outcome::Done(now) => {
                    // Our own insertion is no reason for the others to descend again.
                    for other in &mut leaves[at + 1..keys.len()] {
                        if *other == (id, version) {
                            other.1 = now;
                        }
                    }
                    hint = if id != 0 && leaf.ascends() { id } else { NO_LEAF };
                }
                _ => hint = self.insert_descending(key, offset),
            }
        }
        hint
    }

    /// For each of `keys` the newest version below `before`, as `get` finds it, is put in `found`, where that is still
    /// `None`. So one array can be filled from several memtables, newest first.
    pub(crate) fn get_batch<K: AsRef<[u8]>>(&self, keys: &[K], before: u64, found: &mut [Option<Found>]) {
        assert_eq!(keys.len(), found.len());
        let limit = self.limit(before);
        let mut todo = [0usize; GROUP];
        let mut group: [&[u8]; GROUP] = [&[]; GROUP];
        let mut at = 0;
        while at < keys.len() {
            let mut n = 0;
            while n < GROUP && at < keys.len() {
                if found[at].is_none() {
                    (todo[n], group[n]) = (at, keys[at].as_ref());
                    n += 1;
                }
                at += 1;
            }
            self.get_group(&group[..n], limit, |i, hit| found[todo[i]] = hit, before);
        }
    }

    fn get_group(&self, keys: &[&[u8]], limit: u64, mut put: impl FnMut(usize, Option<Found>), before: u64) {
        let leaves = self.descend_group(keys);
        // Find the slots by their heads alone, so that the entries' misses overlap as well.
        for (key, &(id, version)) in keys.iter().zip(&leaves) {
            if let Some(offset) = self.node(id).candidate(version, key) {
                self.entries.prefetch(offset);
                self.entries.prefetch_at(offset, key.len() + 2);
            }
        }
        for (i, (key, &(id, version))) in keys.iter().zip(&leaves).enumerate() {
            let leaf = self.node(id);
            let rank = leaf.rank(leaf.meta(), key, &self.entries);
            let word = if rank.exact { leaf.word(rank.pos) } else { Word(0) };
            let hit = if !leaf.validate(version) {
                self.get(key, before)
            } else if rank.exact {
                self.visible(word, limit).and_then(|offset| self.found(offset))
            } else {
                None
            };
            put(i, hit);
        }
    }

    /// Brings the nodes on the way to `key` into the cache, for a `get` or `insert` that follows soon.
    pub(crate) fn prefetch(&self, key: &[u8]) {
        self.descend(Aim::Key(key));
    }

    /// `descend_to` for a group of keys, level by level.
    fn descend_group(&self, keys: &[&[u8]]) -> [(u32, u64); GROUP] {
        let mut at = [(0, 0); GROUP];
        let root = self.node(0);
        let version = root.read_begin();
        let levels = root.meta().level;
        at[..keys.len()].fill((0, version));
        for _ in 0..levels {
            let mut below = [0; GROUP];
            for ((key, &(id, version)), below) in keys.iter().zip(&at).zip(&mut below) {
                *below = step(self.node(id), version, key, &self.entries);
                if *below != NO_LEAF {
                    self.node(*below).prefetch();
                }
            }
            for ((key, at), &below) in keys.iter().zip(&mut at).zip(&below) {
                let (id, version) = *at;
                // 0: it changed, or this key's descent, done again, is at its leaf already.
                if below != NO_LEAF {
                    let next = (below, self.node(below).read_begin());
                    *at = if self.node(id).validate(version) { next } else { self.descend_to(Aim::Key(key)) };
                } else if self.node(id).meta().level != 0 {
                    *at = self.descend_to(Aim::Key(key));
                }
            }
        }
        for (key, at) in keys.iter().zip(&mut at) {
            // The root has grown meanwhile.
            if self.node(at.0).meta().level != 0 {
                *at = self.descend_to(Aim::Key(key));
            }
        }
        at
    }
}

/// The child of `node` for `key`; 0 if the node is a leaf or changed since `version`.
#[inline(always)]
fn step(node: &Node, version: u64, key: &[u8], entries: &Entries) -> u32 {
    let meta = node.meta();
    if meta.level == 0 {
        return 0;
    }
    let rank = node.rank(meta, key, entries);
    let child = node.child(rank.pos + usize::from(rank.exact));
    if node.validate(version) { child } else { 0 }
}
