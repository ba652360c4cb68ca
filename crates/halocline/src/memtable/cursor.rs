//! A cursor over a memtable: it copies the words of a leaf under version validation and walks on the copy.
//!
//! It is stable under concurrent insertions: fences never go away, so the leaf that a copied one linked to begins
//! where the copy ends, and the one before it ends where the copy begins, whatever was split since. Versions at or
//! above the `Before` address are not shown, so what is inserted meanwhile is not either.

use super::entries::Place;
use super::node::{CAP, NONE, Node, Word};
use super::{Aim, Memtable};
use crate::entry::Kind;
use crate::iter::{Source, Visibility};
use crate::{Result, Value};
use std::sync::Arc;

/// How many slots ahead entries are asked for.
const AHEAD: usize = if CAP > 16 { 16 } else { CAP };

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
    pos: usize,
    count: usize,
    /// The leaf behind the copied one; 0: none.
    next: u32,
    /// The copied leaf's lower fence.
    low: u32,
    words: [Word; CAP],
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
            count: 0,
            next: 0,
            low: NONE,
            words: [Word(0); CAP],
        }
    }

    /// The newest version of the copied slots' keys, without copying: where its value lies.
    pub(crate) fn value_at(&self) -> (usize, usize) {
        (self.place.value(), self.place.value_len as usize)
    }

    /// Copies the leaf that `aim` leads to, and returns the position of `key` there: slots before it, and whether the
    /// next has this key.
    fn copy(&mut self, aim: Aim<'_>, key: Option<&[u8]>) -> (usize, bool) {
        let table = Arc::clone(&self.table);
        loop {
            let (leaf, version) = table.descend(aim);
            let at = match key {
                None => (0, false),
                Some(key) => {
                    let rank = leaf.rank(leaf.meta(), key, &table.entries);
                    (rank.pos, rank.exact)
                }
            };
            if self.copy_leaf(leaf, version) {
                return at;
            }
        }
    }

    fn copy_leaf(&mut self, leaf: &Node, version: u64) -> bool {
        let meta = leaf.meta();
        self.count = leaf.copy_words(meta, &mut self.words);
        self.next = leaf.link();
        self.low = leaf.fences().0;
        meta.level == 0 && leaf.validate(version)
    }

    /// Copies the next leaf; false at the end.
    fn copy_next(&mut self) -> bool {
        if self.next == 0 {
            return false;
        }
        let table = Arc::clone(&self.table);
        let leaf = table.node(self.next);
        loop {
            let version = leaf.read_begin();
            if self.copy_leaf(leaf, version) {
                break;
            }
        }
        if self.next != 0 {
            table.node(self.next).prefetch_words();
        }
        true
    }

    /// Copies the leaf before; false at the start.
    fn copy_prev(&mut self) -> bool {
        if self.low == NONE {
            return false;
        }
        let table = Arc::clone(&self.table);
        self.copy(Aim::Before(table.entries.key(self.low)), None);
        for word in self.words[..self.count].iter().rev().take(AHEAD) {
            table.entries.prefetch(word.entry());
        }
        true
    }

    /// Shows the slot at `pos`, if it has a visible version.
    #[inline]
    fn show(&mut self, pos: usize) -> bool {
        let mut word = self.words[pos];
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

    /// Asks for the entry that is `AHEAD` slots behind `pos`, here or in the next leaf.
    #[inline(always)]
    fn prefetch_behind(&self, pos: usize) {
        let ahead = pos + AHEAD;
        if ahead < self.count {
            self.table.entries.prefetch(self.words[ahead].entry());
        } else if self.next != 0 {
            // Whatever is there: only its address is used.
            let word = self.table.node(self.next).word((ahead - self.count).min(CAP - 1));
            self.table.entries.prefetch(word.entry());
        }
    }

    /// To the first visible slot at or behind `pos`.
    #[inline]
    fn forward(&mut self, mut pos: usize) {
        loop {
            while pos < self.count {
                self.prefetch_behind(pos);
                if self.show(pos) {
                    return;
                }
                pos += 1;
            }
            if !self.copy_next() {
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
                    self.table.entries.prefetch(self.words[end - AHEAD].entry());
                }
                if self.show(end) {
                    return;
                }
            }
            if !self.copy_prev() {
                self.valid = false;
                return;
            }
            end = self.count;
        }
    }
}

impl Source for MemCursor {
    fn seek_first(&mut self) -> Result<()> {
        self.copy(Aim::First, None);
        self.forward(0);
        Ok(())
    }

    fn seek_last(&mut self) -> Result<()> {
        self.copy(Aim::Last, None);
        self.backward(self.count);
        Ok(())
    }

    fn seek(&mut self, key: &[u8]) -> Result<()> {
        let (pos, _) = self.copy(Aim::Key(key), Some(key));
        for word in self.words[..self.count].iter().skip(pos).take(AHEAD / 2) {
            self.table.entries.prefetch(word.entry());
        }
        self.forward(pos);
        Ok(())
    }

    fn seek_for_prev(&mut self, key: &[u8]) -> Result<()> {
        let (pos, exact) = self.copy(Aim::Key(key), Some(key));
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

    fn kind(&self) -> Kind {
        debug_assert!(self.valid);
        self.place.kind()
    }

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
