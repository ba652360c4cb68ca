//! Sources in memory, to test the combinators against.

use super::{Source, Visibility};
use crate::entry::Kind;
use crate::{Error, ErrorKind, Result};
use std::cell::Cell;
use std::rc::Rc;

/// An entry of a [`VecSource`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Item {
    pub(super) key: Vec<u8>,
    pub(super) version: u64,
    pub(super) kind: Kind,
    pub(super) value: Vec<u8>,
}

impl Item {
    pub(super) fn put(key: &[u8], version: u64, value: &[u8]) -> Item {
        Item { key: key.to_vec(), version, kind: Kind::Put, value: value.to_vec() }
    }

    pub(super) fn delete(key: &[u8], version: u64) -> Item {
        Item { key: key.to_vec(), version, kind: Kind::Delete, value: Vec::new() }
    }
}

/// What a test sees and steers of its sources, shared by clones.
#[derive(Default)]
pub(super) struct Probe {
    /// Seeks of any kind.
    pub(super) seeks: Cell<usize>,
    /// Steps in either direction.
    pub(super) steps: Cell<usize>,
    /// Values asked for.
    pub(super) values: Cell<usize>,
    /// The move that fails when this reaches 0, counting down; never if it is 0.
    pub(super) fail_in: Cell<usize>,
}

fn bump(cell: &Cell<usize>) {
    cell.set(cell.get() + 1);
}

/// Sorted entries. Panics where a caller breaks the contract of [`Source`].
#[derive(Clone)]
pub(super) struct VecSource {
    items: Rc<[Item]>,
    /// Not valid if out of bounds.
    at: usize,
    forward_only: bool,
    pub(super) probe: Rc<Probe>,
}

impl VecSource {
    /// The given entries, one a key, in any order.
    pub(super) fn new(items: Vec<Item>) -> VecSource {
        VecSource::seen(items, Visibility::Before(u64::MAX))
    }

    /// What of the entries is visible.
    pub(super) fn seen(mut items: Vec<Item>, visibility: Visibility) -> VecSource {
        // Stable: among dropped versions (0) the given order stays.
        items.sort_by(|a, b| a.key.cmp(&b.key).then(b.version.cmp(&a.version)));
        if let Visibility::Before(end) = visibility {
            items.retain(|item| item.version < end);
            items.dedup_by(|next, kept| next.key == kept.key);
        }
        VecSource {
            items: items.into(),
            at: usize::MAX,
            forward_only: visibility == Visibility::All,
            probe: Rc::default(),
        }
    }

    pub(super) fn watched(mut self, probe: &Rc<Probe>) -> VecSource {
        self.probe = Rc::clone(probe);
        self
    }

    fn to(&mut self, at: usize) -> Result<()> {
        match self.probe.fail_in.get() {
            0 => {}
            1 => {
                self.probe.fail_in.set(0);
                self.at = usize::MAX;
                return Err(Error::new(ErrorKind::Io, "injected"));
            }
            n => self.probe.fail_in.set(n - 1),
        }
        self.at = at;
        Ok(())
    }

    fn item(&self) -> &Item {
        self.items.get(self.at).expect("the source must be valid")
    }
}

impl Source for VecSource {
    fn seek_first(&mut self) -> Result<()> {
        bump(&self.probe.seeks);
        self.to(0)
    }

    fn seek_last(&mut self) -> Result<()> {
        assert!(!self.forward_only);
        bump(&self.probe.seeks);
        self.to(self.items.len().wrapping_sub(1))
    }

    fn seek(&mut self, key: &[u8]) -> Result<()> {
        bump(&self.probe.seeks);
        self.to(self.items.partition_point(|item| &*item.key < key))
    }

    fn seek_for_prev(&mut self, key: &[u8]) -> Result<()> {
        assert!(!self.forward_only);
        bump(&self.probe.seeks);
        self.to(self.items.partition_point(|item| &*item.key <= key).wrapping_sub(1))
    }

    fn next(&mut self) -> Result<()> {
        assert!(self.valid());
        bump(&self.probe.steps);
        self.to(self.at + 1)
    }

    fn prev(&mut self) -> Result<()> {
        assert!(self.valid() && !self.forward_only);
        bump(&self.probe.steps);
        self.to(self.at.wrapping_sub(1))
    }

    fn valid(&self) -> bool {
        self.at < self.items.len()
    }

    fn key(&self) -> &[u8] {
        &self.item().key
    }

    fn kind(&self) -> Kind {
        self.item().kind
    }

    fn version(&self) -> u64 {
        self.item().version
    }

    fn value(&mut self) -> Result<&[u8]> {
        bump(&self.probe.values);
        Ok(&self.item().value)
    }

    fn value_len(&mut self) -> Result<usize> {
        Ok(self.item().value.len())
    }
}
