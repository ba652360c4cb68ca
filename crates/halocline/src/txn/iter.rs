//! Iteration within a transaction: the database's entries under its own writes, and the note of how far it went.

use crate::db::Iter;
use crate::entry::Prefix;
use crate::txn::reads::Reads;
use crate::{Key, Result, Value};
use std::cell::RefCell;
use std::fmt;

/// What an iteration has to note of what it reads.
pub(crate) enum Noting {
    /// Nothing.
    Nothing,
    /// Each key that it returns; with the family and the address of the reads.
    Keys { family: u32, since: u64 },
    /// The stretch it went over: the number of its range among the reads.
    Range(usize),
}

/// Entries of a range in order, from either end, as a transaction sees them: its own writes included. An error is given
/// once and ends it.
///
/// A serializable transaction depends on the stretch between where it began and how far it went from either end, no more.
pub struct TxIter<'tx> {
    iter: Iter,
    reads: &'tx RefCell<Reads>,
    noting: Noting,
    /// The last keys returned from the front and from the back.
    front: Option<Vec<u8>>,
    back: Option<Vec<u8>>,
    /// The ends have met, or it failed: all of the range counts as read.
    ended: bool,
}

impl<'tx> TxIter<'tx> {
    pub(crate) fn new(iter: Iter, reads: &'tx RefCell<Reads>, noting: Noting) -> TxIter<'tx> {
        TxIter { iter, reads, noting, front: None, back: None, ended: false }
    }

    fn note(&mut self, item: Option<Result<(Key, Value)>>, front: bool) -> Option<Result<(Key, Value)>> {
        let Some(Ok((key, _))) = &item else {
            self.ended = true;
            return item;
        };
        match self.noting {
            Noting::Nothing => {}
            Noting::Keys { family, since } => {
                let internal = [Prefix::of(family).as_slice(), key].concat();
                self.reads.borrow_mut().key(&internal, since);
            }
            Noting::Range(_) => {
                let last = if front { &mut self.front } else { &mut self.back };
                let last = last.get_or_insert_default();
                last.clear();
                last.extend_from_slice(key);
            }
        }
        item
    }
}

impl Drop for TxIter<'_> {
    fn drop(&mut self) {
        // One that is forgotten instead of dropped counts with its whole range.
        if let Noting::Range(range) = self.noting
            && !self.ended
        {
            self.reads.borrow_mut().narrow(range, self.front.take(), self.back.take());
        }
    }
}

impl Iterator for TxIter<'_> {
    type Item = Result<(Key, Value)>;
    fn next(&mut self) -> Option<Self::Item> {
        let item = self.iter.next();
        self.note(item, true)
    }
}

impl DoubleEndedIterator for TxIter<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        let item = self.iter.next_back();
        self.note(item, false)
    }
}

impl std::iter::FusedIterator for TxIter<'_> {}

impl fmt::Debug for TxIter<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TxIter")
    }
}
