//! A run: tables that follow each other and do not overlap, opened only when the cursor gets to them.

use super::Source;
use crate::entry::Kind;
use crate::{Result, Value};

/// The tables of a run, in order of their keys. No key lies in two of them: all versions of a key are in one table.
pub(crate) trait Tables {
    /// A cursor over one table.
    type Cursor: Source;
    /// Number of tables.
    fn len(&self) -> usize;
    /// The first key of table `i`.
    fn smallest(&self, i: usize) -> &[u8];
    /// The last key of table `i`.
    fn largest(&self, i: usize) -> &[u8];
    /// A cursor over table `i`, not positioned.
    fn open(&self, i: usize) -> Self::Cursor;
}

/// All tables of a run as one source. One cursor is open at a time, and it stays open while seeks fall into its table.
///
/// A table may show nothing of what its bounds promise, because all of it is newer than the reader: then the cursor
/// goes on to the next.
pub(crate) struct Concat<T: Tables> {
    tables: T,
    /// The open table. The position is this cursor's.
    current: Option<(usize, T::Cursor)>,
}

impl<T: Tables> Concat<T> {
    /// The entries of `tables`; not positioned, and nothing opened.
    pub(crate) fn new(tables: T) -> Self {
        Concat { tables, current: None }
    }

    /// The cursor over table `i`, opened if it is not the current one.
    fn open(&mut self, i: usize) -> &mut T::Cursor {
        if self.current.as_ref().is_none_or(|(open, _)| *open != i) {
            // The old cursor goes first: it may hold a page that the new one can reuse.
            self.current = None;
        }
        let tables = &self.tables;
        &mut self.current.get_or_insert_with(|| (i, tables.open(i))).1
    }

    /// The first entry of table `i` or of those behind it.
    fn first_from(&mut self, mut i: usize) -> Result<()> {
        while i < self.tables.len() {
            let cursor = self.open(i);
            cursor.seek_first()?;
            if cursor.valid() {
                return Ok(());
            }
            i += 1;
        }
        // The last cursor, if there is one, is exhausted, which is what the run is.
        Ok(())
    }

    /// The last entry of the tables before table `end`.
    fn last_before(&mut self, end: usize) -> Result<()> {
        for i in (0..end).rev() {
            let cursor = self.open(i);
            cursor.seek_last()?;
            if cursor.valid() {
                break;
            }
        }
        Ok(())
    }

    /// The index of the first table whose largest key is at or behind `key`.
    fn table_at(&self, key: &[u8]) -> usize {
        let first = |i: usize| key <= self.tables.largest(i) && (i == 0 || self.tables.largest(i - 1) < key);
        let (mut low, mut high) = (0, self.tables.len());
        if let Some((open, _)) = self.current {
            // Near the current table most of the time.
            if first(open) {
                return open;
            }
            if key > self.tables.largest(open) { low = open + 1 } else { high = open }
        }
        while low < high {
            let middle = low + (high - low) / 2;
            if self.tables.largest(middle) < key { low = middle + 1 } else { high = middle }
        }
        low
    }

    fn leave(&mut self) {
        self.current = None;
    }
}

impl<T: Tables> Source for Concat<T> {
    fn seek_first(&mut self) -> Result<()> {
        self.first_from(0)
    }

    fn seek_last(&mut self) -> Result<()> {
        self.last_before(self.tables.len())
    }

    fn seek(&mut self, key: &[u8]) -> Result<()> {
        let i = self.table_at(key);
        if i == self.tables.len() {
            self.leave();
            return Ok(());
        }
        let cursor = self.open(i);
        cursor.seek(key)?;
        if cursor.valid() { Ok(()) } else { self.first_from(i + 1) }
    }

    fn seek_for_prev(&mut self, key: &[u8]) -> Result<()> {
        let i = self.table_at(key);
        // Table `i` may begin behind the key, or not be there: then the entry is in the one before.
        if i == self.tables.len() || self.tables.smallest(i) > key {
            if i == 0 {
                self.leave();
            }
            return self.last_before(i);
        }
        let cursor = self.open(i);
        cursor.seek_for_prev(key)?;
        if cursor.valid() { Ok(()) } else { self.last_before(i) }
    }

    #[inline]
    fn next(&mut self) -> Result<()> {
        let Some((i, cursor)) = &mut self.current else { return Ok(()) };
        cursor.next()?;
        if cursor.valid() {
            return Ok(());
        }
        let behind = *i + 1;
        self.first_from(behind)
    }

    #[inline]
    fn prev(&mut self) -> Result<()> {
        let Some((i, cursor)) = &mut self.current else { return Ok(()) };
        cursor.prev()?;
        if cursor.valid() {
            return Ok(());
        }
        let before = *i;
        self.last_before(before)
    }

    #[inline]
    fn valid(&self) -> bool {
        self.current.as_ref().is_some_and(|(_, cursor)| cursor.valid())
    }

    #[inline]
    fn key(&self) -> &[u8] {
        self.here().key()
    }

    #[inline]
    fn kind(&self) -> Kind {
        self.here().kind()
    }

    #[inline]
    fn version(&self) -> u64 {
        self.here().version()
    }

    fn value(&mut self) -> Result<&[u8]> {
        self.here_mut().value()
    }

    fn pinned_value(&mut self) -> Result<Value> {
        self.here_mut().pinned_value()
    }

    fn value_len(&mut self) -> Result<usize> {
        self.here_mut().value_len()
    }
}

impl<T: Tables> Concat<T> {
    #[inline]
    fn here(&self) -> &T::Cursor {
        &self.current.as_ref().expect("the cursor is valid").1
    }

    #[inline]
    fn here_mut(&mut self) -> &mut T::Cursor {
        &mut self.current.as_mut().expect("the cursor is valid").1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::iter::Visibility;
    use crate::iter::testing::{Item, VecSource};
    use proptest::prelude::*;
    use std::cell::RefCell;
    use std::rc::Rc;

    struct Run {
        tables: Vec<Vec<Item>>,
        end: u64,
        opened: Rc<RefCell<Vec<usize>>>,
    }

    impl Run {
        fn of(tables: Vec<Vec<Item>>, end: u64) -> Run {
            Run { tables, end, opened: Rc::default() }
        }
    }

    impl Tables for Run {
        type Cursor = VecSource;
        fn len(&self) -> usize {
            self.tables.len()
        }
        fn smallest(&self, i: usize) -> &[u8] {
            &self.tables[i][0].key
        }
        fn largest(&self, i: usize) -> &[u8] {
            &self.tables[i].last().unwrap().key
        }
        fn open(&self, i: usize) -> VecSource {
            self.opened.borrow_mut().push(i);
            VecSource::seen(self.tables[i].clone(), Visibility::Before(self.end))
        }
    }

    #[test]
    fn tables_are_opened_once_and_late() {
        let table = |keys: [u8; 3]| keys.map(|key| Item::put(&[key], 1, b"v")).to_vec();
        let run = Run::of(vec![table([1, 3, 5]), table([11, 13, 15]), table([21, 23, 25])], 2);
        let opened = Rc::clone(&run.opened);
        let mut concat = Concat::new(run);
        assert!(!concat.valid());
        for (key, found) in [(12, 13), (11, 11), (6, 11), (15, 15)] {
            concat.seek(&[key]).unwrap();
            assert_eq!(concat.key(), [found]);
        }
        assert_eq!(*opened.borrow(), [1]);
        concat.next().unwrap();
        assert_eq!(concat.key(), [21]);
        concat.prev().unwrap();
        assert_eq!(concat.key(), [15]);
        concat.seek_for_prev(&[20]).unwrap();
        assert_eq!(concat.key(), [15]);
        assert_eq!(*opened.borrow(), [1, 2, 1]);
        concat.seek_for_prev(&[0]).unwrap();
        assert!(!concat.valid());
        concat.seek(&[26]).unwrap();
        assert!(!concat.valid());
        concat.seek_for_prev(&[99]).unwrap();
        assert_eq!(concat.key(), [25]);
    }

    proptest! {
        /// Tables of which a reader sees nothing are passed over, whichever way.
        #[test]
        fn a_run_shows_what_its_tables_do_together(
            tables in proptest::collection::vec(proptest::collection::vec(1u64..4, 1..4), 0..6),
            ops in proptest::collection::vec((0u8..6, 0u8..50), 1..40),
        ) {
            let mut n = 0;
            let mut item = |version| { n += 2; Item::put(&[n], version, b"") };
            let tables: Vec<Vec<Item>> = tables.into_iter().map(|t| t.into_iter().map(&mut item).collect()).collect();
            let all: Vec<u8> = tables.iter().flatten().filter(|item| item.version < 2).map(|item| item.key[0]).collect();
            let mut concat = Concat::new(Run::of(tables, 2));
            let mut at = usize::MAX;
            for (op, key) in ops {
                match op {
                    0 => { concat.seek_first().unwrap(); at = 0 }
                    1 => { concat.seek_last().unwrap(); at = all.len().wrapping_sub(1) }
                    2 => { concat.seek(&[key]).unwrap(); at = all.partition_point(|k| *k < key) }
                    3 => { concat.seek_for_prev(&[key]).unwrap(); at = all.partition_point(|k| *k <= key).wrapping_sub(1) }
                    4 if concat.valid() => { concat.next().unwrap(); at += 1 }
                    5 if concat.valid() => { concat.prev().unwrap(); at = at.wrapping_sub(1) }
                    _ => {}
                }
                prop_assert_eq!(concat.valid().then(|| concat.key()[0]), all.get(at).copied());
            }
        }
    }
}
