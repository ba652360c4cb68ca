//! Cursors over sorted entries, and how they combine.
//!
//! A [`Source`] is a position in one sorted thing: a memtable, a table, a run of tables. Combinators make bigger
//! ones of them; the merging cursor makes the view a user sees:
//!
//! - [`Prefixed`]: the part of a source that belongs to one column family, with its prefix stripped.
//! - [`Concat`]: a run, its tables opened one at a time.
//! - [`Merging`]: sources from newest to oldest as one; what a user iterates over.
//! - [`VersionMerge`]: the same with all versions, thinned to those that a reader can still see; what flushes and
//!   merges write.
//!
//! All are generic over their sources: the compiler sees through every layer, nothing is called by pointer. A cursor
//! is used by one thread at a time and shares nothing.

mod concat;
mod merge;
mod prefixed;
#[cfg(test)]
mod speed;
#[cfg(test)]
mod testing;
mod tournament;
mod versions;

pub(crate) use concat::{Concat, Tables};
pub(crate) use merge::Merging;
pub(crate) use prefixed::Prefixed;
pub(crate) use versions::VersionMerge;

use crate::entry::Kind;
use crate::{Result, Value};

/// Which versions of a key a source shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Visibility {
    /// For each key the newest version below this log address, deletions included; nothing of a key without one.
    Before(u64),
    /// Every version, newest first within a key. Such a source only moves forward.
    All,
}

/// A position in a sorted sequence of entries. After an error a source is not valid, until the next seek.
pub(crate) trait Source {
    /// To the first entry.
    fn seek_first(&mut self) -> Result<()>;
    /// To the last entry.
    fn seek_last(&mut self) -> Result<()>;
    /// To the first entry with a key at or behind `key`. Cheap if it is near behind the current position.
    fn seek(&mut self, key: &[u8]) -> Result<()>;
    /// To the last entry with a key at or before `key`.
    fn seek_for_prev(&mut self, key: &[u8]) -> Result<()>;
    /// Moves on by one entry; must be valid.
    fn next(&mut self) -> Result<()>;
    /// Moves back by one entry; must be valid. Direction may change at any time.
    fn prev(&mut self) -> Result<()>;
    /// Whether there is an entry here.
    fn valid(&self) -> bool;
    /// The entry's key; must be valid. Stays until the source moves.
    fn key(&self) -> &[u8];
    /// What the entry does; must be valid.
    fn kind(&self) -> Kind;
    /// The log address of the entry, or 0 where it was dropped because every snapshot sees it; must be valid.
    fn version(&self) -> u64;
    /// The value, decoded on the first call at a position; must be valid. Stays until the source moves.
    fn value(&mut self) -> Result<&[u8]>;
    /// The value as something that outlives the source's position.
    fn pinned_value(&mut self) -> Result<Value> {
        self.value().map(Value::copy)
    }
    /// Bytes of the value; must be valid. A source that knows the length without decoding says so here.
    fn value_len(&mut self) -> Result<usize> {
        self.value().map(<[u8]>::len)
    }
}
