//! A cursor over a memtable: it copies the words of a leaf under version validation and walks on the copy.
//!
//! It is stable under concurrent insertions: fences never go away, so the leaf that a copied one linked to begins
//! where the copy ends, and the one before it ends where the copy begins, whatever was split since. Versions at or
//! above the `Before` address are not shown, so what is inserted meanwhile is not either.
//!
//! Keys and values are slices of the segment's memory. Their cache misses are what a walk costs, so the entries of the
//! slots to come are asked for ahead.

use super::entries::{Entries, Place};
use super::node::{CAP, NONE, Node, Word};
use super::{Aim, Memtable};
use crate::entry::Kind;
use crate::iter::{Source, Visibility};
use crate::{Result, Value};
use std::sync::Arc;

/// How many slots ahead entries are asked for.
const AHEAD: usize = if CAP > 16 { 16 } else { CAP };
/// A seek behind the current key first looks at so many slots.
const NEAR: usize = 4;

/// See the module. Owns the memtable, so it may outlive everything else.
pub(crate) struct MemCursor {
    table: Arc<Memtable>,
    /// Offsets below this are shown.
    limit: u64,
    /// Every version is shown, not the newest alone.
    all: bool,
    valid: bool,
    /// The entry here, and the number of the next older one.
    here: Word,
    place: Place,
    /// The slot of the copied leaf that the entry is in.
    pos: usize,
    leaf: Copied,
}

/// A leaf, as it was at some moment.
struct Copied {
    count: usize,
    /// The leaf behind it; 0: none.
    next: u32,
    /// Its lower fence.
    low: u32,
    words: [Word; CAP],
}

impl Copied {
    /// Copies `leaf`, if it is still at `version`.
    fn copy(&mut self, leaf: &Node, version: u64) -> bool {
        let meta = leaf.meta();
        self.count = meta.count;
        self.next = leaf.link();
        self.low = leaf.fences().0;
        leaf.copy_words(meta.count, &mut self.words);
        meta.level == 0 && leaf.validate(version)
    }

    /// Copies the leaf that `aim` leads to, and returns the position of `key` there: slots before it, and whether the
    /// next has this key.
    fn descend(&mut self, table: &Memtable, aim: Aim<'_>, key: &[u8]) -> (usize, bool) {
        loop {
            let (leaf, version) = table.descend(aim);
            let rank = leaf.rank(leaf.meta(), key, &table.entries);
            if self.copy(leaf, version) {
                return (rank.pos, rank.exact);
            }
        }
    }

    /// Copies the next leaf; false at the end.
    fn go_next(&mut self, table: &Memtable) -> bool {
        if self.next == 0 {
            return false;
        }
        let leaf = table.node(self.next);
        while !self.copy(leaf, leaf.read_begin()) {}
        if self.next != 0 {
            table.node(self.next).prefetch_words();
        }
        true
    }

    /// Copies the leaf before; false at the start.
    fn go_prev(&mut self, table: &Memtable) -> bool {
        if self.low == NONE {
            return false;
        }
        let key = table.entries.key(self.low);
        loop {
            let (leaf, version) = table.descend(Aim::Before(key));
            if self.copy(leaf, version) {
                break;
            }
        }
        for word in self.words[..self.count].iter().rev().take(AHEAD) {
            table.entries.prefetch_wide(word.entry());
        }
        true
    }

    /// Asks for the entry that is `AHEAD` slots behind `pos`, here or in the next leaf.
    #[inline(always)]
    fn prefetch_behind(&self, pos: usize, table: &Memtable) {
        let ahead = pos + AHEAD;
        if ahead < self.count {
            table.entries.prefetch_wide(self.words[ahead].entry());
        } else if self.next != 0 {
            // Whatever is there: only its address is used.
            let word = table.node(self.next).word((ahead - self.count).min(CAP - 1));
            table.entries.prefetch_wide(word.entry());
        }
    }

    /// Asks for the first entries from `pos` on.
    fn prefetch_from(&self, pos: usize, entries: &Entries) {
        for word in self.words[..self.count].iter().skip(pos).take(AHEAD / 2) {
            entries.prefetch_wide(word.entry());
        }
    }
}

impl MemCursor {
    pub(super) fn new(table: Arc<Memtable>, visibility: Visibility) -> MemCursor {
        let (limit, all) = match visibility {
            Visibility::Before(before) => (table.limit(before), false),
            Visibility::All => (u64::MAX, true),
        };
        MemCursor {
            table,
            limit,
            all,
            valid: false,
            here: Word(0),
            place: Place { tag: 0, key: 0, key_len: 0, value_len: 0 },
            pos: 0,
            leaf: Copied { count: 0, next: 0, low: NONE, words: [Word(0); CAP] },
        }
    }

    /// Where the value lies in the memtable's memory: offset and length; must be valid.
    pub(crate) fn value_at(&self) -> (usize, usize) {
        (self.place.value(), self.place.value_len as usize)
    }

    /// Shows the slot at `pos`, if it has a visible version.
    #[inline]
    fn show(&mut self, pos: usize) -> bool {
        let mut word = self.leaf.words[pos];
        while u64::from(word.entry()) >= self.limit {
            if word.other() == 0 {
                return false;
            }
            word = self.table.older(word.other());
        }
        self.pos = pos;
        self.here = word;
        self.place = self.table.entries.place(word.entry());
        self.valid = true;
        true
    }

    /// To the first visible slot at or behind `pos`.
    #[inline]
    fn forward(&mut self, mut pos: usize) {
        loop {
            while pos < self.leaf.count {
                self.leaf.prefetch_behind(pos, &self.table);
                if self.show(pos) {
                    return;
                }
                pos += 1;
            }
            if !self.leaf.go_next(&self.table) {
                self.valid = false;
                return;
            }
            pos = 0;
        }
    }

    /// To the last visible slot before `end`.
    fn backward(&mut self, mut end: usize) {
        loop {
            while end > 0 {
                end -= 1;
                if end >= AHEAD {
                    self.table.entries.prefetch_wide(self.leaf.words[end - AHEAD].entry());
                }
                if self.show(end) {
                    return;
                }
            }
            if !self.leaf.go_prev(&self.table) {
                self.valid = false;
                return;
            }
            end = self.leaf.count;
        }
    }

    /// Moves to `key` if it is in one of the next few slots.
    fn seek_near(&mut self, key: &[u8]) -> bool {
        if !self.valid || self.all || self.key() > key {
            return false;
        }
        for pos in self.pos..(self.pos + NEAR).min(self.leaf.count) {
            if self.table.entries.key(self.leaf.words[pos].entry()) >= key {
                self.forward(pos);
                return true;
            }
        }
        false
    }
}

impl Source for MemCursor {
    fn seek_first(&mut self) -> Result<()> {
        self.leaf.descend(&self.table, Aim::First, b"");
        self.leaf.prefetch_from(0, &self.table.entries);
        self.forward(0);
        Ok(())
    }

    fn seek_last(&mut self) -> Result<()> {
        self.leaf.descend(&self.table, Aim::Last, b"");
        self.backward(self.leaf.count);
        Ok(())
    }

    fn seek(&mut self, key: &[u8]) -> Result<()> {
        if !self.seek_near(key) {
            let (pos, _) = self.leaf.descend(&self.table, Aim::Key(key), key);
            self.leaf.prefetch_from(pos, &self.table.entries);
            self.forward(pos);
        }
        Ok(())
    }

    fn seek_for_prev(&mut self, key: &[u8]) -> Result<()> {
        let (pos, exact) = self.leaf.descend(&self.table, Aim::Key(key), key);
        self.backward(pos + usize::from(exact));
        Ok(())
    }

    #[inline]
    fn next(&mut self) -> Result<()> {
        debug_assert!(self.valid);
        if self.all && self.here.other() != 0 {
            self.here = self.table.older(self.here.other());
            self.place = self.table.entries.place(self.here.entry());
        } else {
            self.forward(self.pos + 1);
        }
        Ok(())
    }

    fn prev(&mut self) -> Result<()> {
        debug_assert!(self.valid && !self.all, "a cursor over all versions only moves forward");
        self.backward(self.pos);
        Ok(())
    }

    #[inline]
    fn valid(&self) -> bool {
        self.valid
    }

    #[inline]
    fn key(&self) -> &[u8] {
        debug_assert!(self.valid);
        self.table.entries.bytes(self.place.key as usize, self.place.key_len as usize)
    }

    #[inline]
    fn kind(&self) -> Kind {
        debug_assert!(self.valid);
        self.place.kind()
    }

    #[inline]
    fn version(&self) -> u64 {
        debug_assert!(self.valid);
        self.table.base() + u64::from(self.here.entry())
    }

    #[inline]
    fn value(&mut self) -> Result<&[u8]> {
        debug_assert!(self.valid);
        let (at, len) = self.value_at();
        Ok(self.table.entries.bytes(at, len))
    }

    fn pinned_value(&mut self) -> Result<Value> {
        let (at, len) = self.value_at();
        Ok(Value::mapped(self.table.memory(), at, len))
    }
}
