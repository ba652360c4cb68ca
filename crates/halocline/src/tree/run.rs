//! A run: tables sorted by key, none overlapping another.
//!
//! Lookups search an array of 8-byte key heads, taken behind the prefix that all keys of the run share, so that
//! a lookup touches one or two cache lines and the two keys of one table, not a chain of pointers for each step.
//!
//! Immutable once part of a published [`Tree`](super::Tree); while a tree is being built the heads are absent and
//! lookups compare whole keys.

use crate::table::TableMeta;
use crate::{Error, Result};
use std::ops::{Bound, Range};
use std::sync::Arc;

/// The id of every family's last run.
pub(crate) const LAST_RUN: u64 = 0;
/// The tier of every family's last run: older than any other.
pub(crate) const LAST_TIER: u8 = u8::MAX;

/// Something that stands for a table: a reader, or in tests and in the manifest its metadata alone.
pub(crate) trait TableLike {
    /// What the manifest knows of it.
    fn meta(&self) -> &TableMeta;
}

impl TableLike for crate::table::Table {
    fn meta(&self) -> &TableMeta {
        self.meta()
    }
}

impl TableLike for TableMeta {
    fn meta(&self) -> &TableMeta {
        self
    }
}

/// Sorted tables that do not overlap. Between two runs that do, the newer one's entries are newer.
#[derive(Debug)]
pub(crate) struct Run<T> {
    /// Names the run within its family; [`LAST_RUN`] for the last one.
    pub(crate) id: u64,
    /// 0 for flushed runs, more for merged ones, [`LAST_TIER`] for the last run.
    pub(crate) tier: u8,
    tables: Vec<Arc<T>>,
    /// Bytes of the files.
    pub(crate) bytes: u64,
    /// Bytes of keys and values before compression.
    pub(crate) raw_bytes: u64,
    /// All entries, deletions included.
    pub(crate) entries: u64,
    /// Deletions among them.
    pub(crate) deletes: u64,
    heads: Option<Heads>,
}

impl<T> Clone for Run<T> {
    fn clone(&self) -> Self {
        Run { tables: self.tables.clone(), heads: self.heads.clone(), ..*self }
    }
}

/// The first 8 bytes of each table's bounds, behind the prefix that all of them share.
#[derive(Clone, Debug)]
struct Heads {
    prefix: Box<[u8]>,
    smallest: Box<[u64]>,
    largest: Box<[u64]>,
}

/// The first 8 bytes of `key` as a number that orders as they do; shorter keys are padded with zeros, so equal
/// heads decide nothing.
fn head(key: &[u8]) -> u64 {
    let mut bytes = [0; 8];
    let n = key.len().min(8);
    bytes[..n].copy_from_slice(&key[..n]);
    u64::from_be_bytes(bytes)
}

impl Heads {
    fn of<T: TableLike>(tables: &[Arc<T>]) -> Option<Heads> {
        let first = &tables.first()?.meta().smallest;
        let last = &tables.last()?.meta().largest;
        let shared = first.iter().zip(last.iter()).take_while(|(a, b)| a == b).count();
        let of = |key: &[u8]| head(key.get(shared..).unwrap_or_default());
        Some(Heads {
            prefix: first[..shared].into(),
            smallest: tables.iter().map(|t| of(&t.meta().smallest)).collect(),
            largest: tables.iter().map(|t| of(&t.meta().largest)).collect(),
        })
    }
}

/// Whether `a` and `b` have a key in common.
pub(crate) fn overlap(a: &TableMeta, b: &TableMeta) -> bool {
    a.smallest <= b.largest && b.smallest <= a.largest
}

impl<T> Run<T> {
    /// A run without tables.
    pub(crate) fn empty(id: u64, tier: u8) -> Run<T> {
        Run { id, tier, tables: Vec::new(), bytes: 0, raw_bytes: 0, entries: 0, deletes: 0, heads: None }
    }

    /// The tables, in key order.
    pub(crate) fn tables(&self) -> &[Arc<T>] {
        &self.tables
    }

    /// Whether there are no tables.
    pub(crate) fn is_empty(&self) -> bool {
        self.tables.is_empty()
    }
}

impl<T: TableLike> Run<T> {
    /// The index of the first table whose last key is at or behind `key`.
    #[inline]
    pub(crate) fn lower_bound(&self, key: &[u8]) -> usize {
        let Some(heads) = &self.heads else {
            return self.tables.partition_point(|t| *t.meta().largest < *key);
        };
        let n = heads.prefix.len().min(key.len());
        match key[..n].cmp(&heads.prefix[..]) {
            std::cmp::Ordering::Less => 0,
            std::cmp::Ordering::Greater => self.tables.len(),
            std::cmp::Ordering::Equal => {
                let at = head(&key[n..]);
                let from = heads.largest.partition_point(|&h| h < at);
                // Among equal heads whole keys decide; there are rarely any.
                let equal = heads.largest[from..].iter().take_while(|&&h| h == at).count();
                from + self.tables[from..from + equal].partition_point(|t| *t.meta().largest < *key)
            }
        }
    }

    /// The table that would hold `key`, if it is within the bounds of one.
    #[inline]
    pub(crate) fn find(&self, key: &[u8]) -> Option<&Arc<T>> {
        let at = self.lower_bound(key);
        let table = self.tables.get(at)?;
        if let Some(heads) = &self.heads {
            // The head alone refuses most keys that fall between tables.
            if head(key.get(heads.prefix.len()..)?) < heads.smallest[at] {
                return None;
            }
        }
        (*table.meta().smallest <= *key).then_some(table)
    }

    /// The indices of the tables that have a key within `[smallest, largest]`.
    pub(crate) fn overlapping(&self, smallest: &[u8], largest: &[u8]) -> Range<usize> {
        self.overlapping_bounds(Bound::Included(smallest), Bound::Included(largest))
    }

    /// The indices of the tables that may have a key within the bounds.
    pub(crate) fn overlapping_bounds(&self, from: Bound<&[u8]>, to: Bound<&[u8]>) -> Range<usize> {
        let start = match from {
            Bound::Unbounded => 0,
            Bound::Included(key) => self.lower_bound(key),
            Bound::Excluded(key) => self.tables.partition_point(|t| *t.meta().largest <= *key),
        };
        let end = match to {
            Bound::Unbounded => self.tables.len(),
            Bound::Included(key) => self.tables.partition_point(|t| *t.meta().smallest <= *key),
            Bound::Excluded(key) => self.tables.partition_point(|t| *t.meta().smallest < *key),
        };
        start..end.max(start)
    }

    /// The table of that id.
    pub(crate) fn table(&self, id: u64) -> Option<&Arc<T>> {
        self.tables.iter().find(|t| t.meta().id == id)
    }

    /// Adds a table, unless it overlaps one that is there.
    pub(super) fn insert(&mut self, table: Arc<T>) -> Result<()> {
        let meta = table.meta();
        let at = self.tables.partition_point(|t| *t.meta().largest < *meta.smallest);
        if let Some(next) = self.tables.get(at)
            && overlap(next.meta(), meta)
        {
            return Err(Error::invalid(format!(
                "table {} overlaps table {} of run {}",
                meta.id,
                next.meta().id,
                self.id
            )));
        }
        let sum = |a: u64, b: u64| {
            a.checked_add(b).ok_or_else(|| Error::invalid(format!("the sizes of run {} overflow", self.id)))
        };
        let (bytes, raw_bytes) = (sum(self.bytes, meta.file_len)?, sum(self.raw_bytes, meta.raw_bytes)?);
        let (entries, deletes) = (sum(self.entries, meta.entries)?, sum(self.deletes, meta.deletes)?);
        (self.bytes, self.raw_bytes, self.entries, self.deletes) = (bytes, raw_bytes, entries, deletes);
        self.tables.insert(at, table);
        self.heads = None;
        Ok(())
    }

    /// Takes a table out.
    pub(super) fn remove(&mut self, id: u64) -> Option<Arc<T>> {
        let at = self.tables.iter().position(|t| t.meta().id == id)?;
        let table = self.tables.remove(at);
        let meta = table.meta();
        self.bytes -= meta.file_len;
        self.raw_bytes -= meta.raw_bytes;
        self.entries -= meta.entries;
        self.deletes -= meta.deletes;
        self.heads = None;
        Some(table)
    }

    /// Whether the heads for lookups are there.
    pub(super) fn is_sealed(&self) -> bool {
        self.heads.is_some() || self.tables.is_empty()
    }

    /// Computes the heads for lookups.
    pub(super) fn seal(&mut self) {
        self.heads = Heads::of(&self.tables);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meta(id: u64, smallest: &str, largest: &str) -> Arc<TableMeta> {
        Arc::new(TableMeta {
            id,
            file_len: 10,
            footer_sum: 0,
            entries: 2,
            deletes: 1,
            raw_bytes: 20,
            max_version: 0,
            smallest: smallest.as_bytes().into(),
            largest: largest.as_bytes().into(),
        })
    }

    fn run(bounds: &[(&str, &str)]) -> Run<TableMeta> {
        let mut run = Run::empty(1, 0);
        for (i, (a, b)) in bounds.iter().enumerate() {
            run.insert(meta(i as u64, a, b)).unwrap();
        }
        run
    }

    #[test]
    fn lookups_agree_with_a_scan_with_and_without_heads() {
        let bounds = [
            ("user000", "user004"),
            ("user010", "user012"),
            ("user012\0", "user0123"),
            ("user01234567x", "user01234567xyz"),
            ("user01234567xz", "user01234567xza"),
            ("user2", "user3"),
        ];
        let unsealed = run(&bounds);
        let mut sealed = run(&bounds);
        sealed.seal();
        let mut keys: Vec<String> =
            ["", "a", "use", "user", "user0", "userz", "v", "user01234567x\u{1}", "user5"]
                .iter()
                .map(|s| s.to_string())
                .collect();
        for (a, b) in bounds {
            for k in [a, b] {
                keys.push(k.into());
                keys.push(format!("{k}\0"));
                keys.push(k[..k.len() - 1].into());
            }
        }
        for run in [&unsealed, &sealed] {
            for key in &keys {
                let expected = bounds.iter().position(|(a, b)| *a <= key.as_str() && key.as_str() <= *b);
                assert_eq!(run.find(key.as_bytes()).map(|t| t.id as usize), expected, "{key:?}");
                let lower = bounds.iter().position(|(_, b)| *b >= key.as_str()).unwrap_or(bounds.len());
                assert_eq!(run.lower_bound(key.as_bytes()), lower, "{key:?}");
                for to in &keys {
                    let found: Vec<usize> = run.overlapping(key.as_bytes(), to.as_bytes()).collect();
                    if key <= to {
                        let expected: Vec<usize> = (0..bounds.len())
                            .filter(|&i| bounds[i].0 <= to.as_str() && key.as_str() <= bounds[i].1)
                            .collect();
                        assert_eq!(found, expected, "{key:?}..={to:?}");
                    } else {
                        assert!(found.len() <= 1);
                    }
                }
            }
        }
        assert_eq!((sealed.bytes, sealed.entries, sealed.deletes, sealed.raw_bytes), (60, 12, 6, 120));
    }

    #[test]
    fn overlap_and_overflow_are_refused() {
        let mut run = run(&[("b", "d"), ("f", "h")]);
        for (a, b) in [("a", "b"), ("c", "c"), ("d", "e"), ("a", "z"), ("h", "h"), ("e", "f")] {
            assert!(run.insert(meta(9, a, b)).is_err());
        }
        run.insert(meta(9, "e", "e")).unwrap();
        let mut huge = (*meta(10, "x", "y")).clone();
        huge.entries = u64::MAX;
        assert!(run.insert(Arc::new(huge)).is_err());
        assert_eq!(run.entries, 6);
        assert!(run.remove(77).is_none());
        assert_eq!(run.remove(9).unwrap().id, 9);
        assert_eq!(run.tables().len(), 2);
    }
}
