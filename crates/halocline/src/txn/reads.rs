//! What a transaction has read, and whether any of it was changed since.
//!
//! A read is a key, or a range of keys, and the address since which it must not have changed. Two ways answer whether it
//! was, between two addresses at which everything is complete:
//!
//! - **by the log**: the entries of all commits in between are in memory, in the order of their commits; each is looked up
//!   among the reads. Costs as much as was written in between.
//! - **by the keys**: each read is looked up in the memtables, and in the tables that were flushed since. Costs as much as
//!   was read.
//!
//! The cheaper one is taken. Nothing is registered anywhere by a read, and no writer knows of readers.
//!
//! A version at or above the transaction's snapshot keeps its address when it is flushed and merged, because the snapshot is
//! registered: so tables can tell, too. What they cannot tell is a key that was put and deleted again since, with nothing
//! older beneath: then it reads as it did, and there is no conflict.

use crate::db::Bounds;
use crate::db::core::Version;
use crate::db::range::contains;
use crate::entry::{self, Prefix};
use crate::io::checksum::key_hash;
use crate::iter::{Prefixed, Source, Visibility};
use crate::txn::write_set::WriteSet;
use crate::{Error, ErrorKind, Result};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::ops::Bound;

/// A log window of up to this many bytes for each read is walked instead of looking the reads up: a lookup of a key costs
/// about as much as passing over that many bytes of entries.
const BYTES_PER_READ: u64 = 128;

/// So many keys are compared one by one.
const FEW: usize = 8;

/// Hashes are keys here: they are spread already.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct AsIs(u64);

impl Hasher for AsIs {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, _bytes: &[u8]) {
        unreachable!("only u64 are hashed");
    }
    fn write_u64(&mut self, n: u64) {
        self.0 = n;
    }
}

/// One key that was read.
#[derive(Clone, Copy, Debug)]
struct KeyRead {
    start: usize,
    len: usize,
    since: u64,
}

/// A range that was read, of one column family.
#[derive(Clone, Debug)]
pub(crate) struct RangeRead {
    pub(crate) family: u32,
    pub(crate) bounds: Bounds,
    pub(crate) since: u64,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Reads {
    /// Internal keys, back to back.
    bytes: Vec<u8>,
    keys: Vec<KeyRead>,
    /// Where a key of that hash is among `keys`; filled once they are more than [`FEW`].
    by_hash: HashMap<u64, usize, BuildHasherDefault<AsIs>>,
    /// Two keys have one hash: they are looked up one by one.
    collided: bool,
    /// `None` where an iterator was made and never moved.
    ranges: Vec<Option<RangeRead>>,
}

fn conflict(internal: &[u8], what: &str) -> Error {
    let (family, key) = Prefix::split(internal).unwrap_or((0, internal));
    let family = if family == 0 { String::new() } else { format!(" of column family number {family}") };
    Error::new(
        ErrorKind::Conflict,
        format!(
            "the transaction was not committed: the key \"{}\"{family}, {what}, was changed by another commit since; \
             run it again (`Db::update` does so by itself)",
            key.escape_ascii()
        ),
    )
}

const READ: &str = "which it read";
const WRITTEN: &str = "which it writes";
const IN_RANGE: &str = "in a range that it read";

impl Reads {
    /// Whether nothing was read.
    pub(crate) fn is_empty(&self) -> bool {
        self.keys.is_empty() && self.ranges.is_empty()
    }

    /// Bytes of memory held, roughly.
    pub(crate) fn capacity(&self) -> usize {
        let (keys, ranges) = (size_of::<KeyRead>(), size_of::<Option<RangeRead>>());
        self.bytes.capacity()
            + self.keys.capacity() * keys
            + self.by_hash.capacity() * 24
            + self.ranges.capacity() * ranges
    }

    /// Forgets everything and keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.keys.clear();
        self.by_hash.clear();
        self.collided = false;
        self.ranges.clear();
    }

    /// The internal keys that were read.
    pub(crate) fn all_keys(&self) -> impl Iterator<Item = &[u8]> {
        self.keys.iter().map(|key| self.bytes_of(key))
    }

    /// The ranges that were read.
    pub(crate) fn all_ranges(&self) -> impl Iterator<Item = &RangeRead> {
        self.ranges.iter().flatten()
    }

    fn bytes_of(&self, key: &KeyRead) -> &[u8] {
        &self.bytes[key.start..key.start + key.len]
    }

    /// Notes that the internal key was read, and must not change from `since` on. The first reading of a key counts; whether
    /// this was it.
    pub(crate) fn key(&mut self, internal: &[u8], since: u64) -> bool {
        if self.find(internal).is_some() {
            return false;
        }
        self.keys.push(KeyRead { start: self.bytes.len(), len: internal.len(), since });
        self.bytes.extend_from_slice(internal);
        if self.keys.len() > FEW {
            let first = if self.by_hash.is_empty() { 0 } else { self.keys.len() - 1 };
            for at in first..self.keys.len() {
                let hash = key_hash(self.bytes_of(&self.keys[at]));
                self.collided |= self.by_hash.insert(hash, at).is_some();
            }
        }
        true
    }

    /// Where the internal key is among those that were read; exact unless two have `collided`.
    fn find(&self, internal: &[u8]) -> Option<usize> {
        if self.by_hash.is_empty() {
            return self.keys.iter().position(|key| self.bytes_of(key) == internal);
        }
        let at = *self.by_hash.get(&key_hash(internal))?;
        (self.bytes_of(&self.keys[at]) == internal).then_some(at)
    }

    /// Whether the internal key was read by itself; true in doubt.
    pub(crate) fn has_key(&self, internal: &[u8]) -> bool {
        self.collided || self.find(internal).is_some()
    }

    /// Notes that a range was asked for; its number, for [`narrow`](Reads::narrow).
    pub(crate) fn range(&mut self, read: RangeRead) -> usize {
        self.ranges.push(Some(read));
        self.ranges.len() - 1
    }

    /// What was read of a range is only this: `front` ends where reading from the front ended, `back` begins where reading
    /// from the back did.
    pub(crate) fn narrow(&mut self, range: usize, front: Option<Vec<u8>>, back: Option<Vec<u8>>) {
        let Some(RangeRead { family, bounds: (lower, upper), since }) = self.ranges[range].take() else {
            return;
        };
        let part = |lower, upper| Some(RangeRead { family, bounds: (lower, upper), since });
        self.ranges[range] = front.and_then(|end| part(lower, Bound::Included(end)));
        self.ranges.extend(back.map(|start| part(Bound::Included(start), upper)));
    }

    /// Fails with `Conflict` if anything read, or in `writes` (with the address since which its keys must not have changed),
    /// was changed between `from` and `to`: addresses at which everything below is complete and in `version`.
    pub(crate) fn check(
        &self,
        version: &Version,
        writes: Option<(&WriteSet, u64)>,
        from: u64,
        to: u64,
    ) -> Result<()> {
        if from >= to || (self.is_empty() && writes.is_none_or(|(set, _)| set.is_empty())) {
            return Ok(());
        }
        let reads =
            (self.keys.len() + self.ranges.len() * 16 + writes.map_or(0, |(set, _)| set.len())) as u64;
        if to - from <= reads * BYTES_PER_READ && !self.collided {
            // The window must lie in one segment.
            let mems = std::iter::once(&version.active).chain(&version.sealed);
            if let Some(mem) = mems.into_iter().find(|mem| mem.segment.has_records(from, to)) {
                return mem.segment.each_commit(from, to, |at, body| self.check_commit(at, body, writes));
            }
        }
        self.check_keys(version, writes, from, to)
    }

    /// Fails if the commit at address `at`, with these entries, changed anything.
    fn check_commit(&self, at: u64, body: &[u8], writes: Option<(&WriteSet, u64)>) -> Result<()> {
        let mut rest = body;
        while let Some(entry) = entry::decode(rest) {
            rest = &rest[entry.len..];
            if self.find(entry.key).is_some_and(|n| at >= self.keys[n].since) {
                return Err(conflict(entry.key, READ));
            }
            if let Some((family, key)) = Prefix::split(entry.key)
                && self
                    .ranges
                    .iter()
                    .flatten()
                    .any(|r| r.family == family && at >= r.since && contains(&r.bounds, key))
            {
                return Err(conflict(entry.key, IN_RANGE));
            }
            if writes.is_some_and(|(set, since)| at >= since && set.get(entry.key).is_some()) {
                return Err(conflict(entry.key, WRITTEN));
            }
        }
        Ok(())
    }

    fn check_keys(
        &self,
        version: &Version,
        writes: Option<(&WriteSet, u64)>,
        from: u64,
        to: u64,
    ) -> Result<()> {
        for read in &self.keys {
            let key = self.bytes_of(read);
            if changed(version, key, read.since.max(from), to)? {
                return Err(conflict(key, READ));
            }
        }
        for range in self.ranges.iter().flatten() {
            if let Some(key) = changed_in(version, range, range.since.max(from), to)? {
                return Err(conflict(&key, IN_RANGE));
            }
        }
        if let Some((set, since)) = writes {
            set.each_key(|key| {
                if changed(version, key, since.max(from), to)? {
                    return Err(conflict(key, WRITTEN));
                }
                Ok(())
            })?;
        }
        Ok(())
    }
}

/// Whether the internal key has a version in `[from, to)`.
fn changed(version: &Version, internal: &[u8], from: u64, to: u64) -> Result<bool> {
    for mem in std::iter::once(&version.active).chain(&version.sealed) {
        if mem.segment.base() >= to || mem.memtable.is_empty() {
            continue;
        }
        if mem.segment.next_base() <= from {
            return Ok(false);
        }
        if let Some(found) = mem.memtable.get(internal, to) {
            return Ok(found.version >= from);
        }
    }
    if from >= version.oldest_base() {
        return Ok(false);
    }
    let Some((family, key)) = Prefix::split(internal) else { return Ok(false) };
    let family = version.tree.family(family).ok_or_else(|| crate::db::read::dropped(family))?;
    for table in family.all_runs().filter_map(|run| run.find(key)) {
        if table.meta().max_version >= from
            && table.may_contain(key_hash(key))
            && let Some((_, at)) = table.contains(key, to)?
            && at >= from
        {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The first key of the range, as an internal one, that has a version in `[from, to)`.
fn changed_in(version: &Version, range: &RangeRead, from: u64, to: u64) -> Result<Option<Vec<u8>>> {
    let prefix = Prefix::of(range.family);
    let internal = |key: &[u8]| [prefix.as_slice(), key].concat();
    for mem in std::iter::once(&version.active).chain(&version.sealed) {
        if mem.segment.base() >= to || mem.memtable.is_empty() {
            continue;
        }
        if mem.segment.next_base() <= from {
            return Ok(None);
        }
        let source = Prefixed::new(mem.memtable.cursor(Visibility::Before(to)), prefix);
        if let Some(key) = find_changed(source, &range.bounds, from)? {
            return Ok(Some(internal(&key)));
        }
    }
    if from >= version.oldest_base() {
        return Ok(None);
    }
    let family = version.tree.family(range.family).ok_or_else(|| crate::db::read::dropped(range.family))?;
    for table in family.all_runs().flat_map(|run| run.tables()) {
        let meta = table.meta();
        let apart = match &range.bounds.1 {
            Bound::Included(b) => &*meta.smallest > b.as_slice(),
            Bound::Excluded(b) => &*meta.smallest >= b.as_slice(),
            Bound::Unbounded => false,
        } || match &range.bounds.0 {
            Bound::Included(b) => &*meta.largest < b.as_slice(),
            Bound::Excluded(b) => &*meta.largest <= b.as_slice(),
            Bound::Unbounded => false,
        };
        if apart || meta.max_version < from {
            continue;
        }
        if let Some(key) = find_changed(table.cursor(Visibility::Before(to)), &range.bounds, from)? {
            return Ok(Some(internal(&key)));
        }
    }
    Ok(None)
}

/// The first key within `bounds` whose newest version is at or above `from`.
fn find_changed(mut source: impl Source, bounds: &Bounds, from: u64) -> Result<Option<Vec<u8>>> {
    match &bounds.0 {
        Bound::Included(key) | Bound::Excluded(key) => source.seek(key)?,
        Bound::Unbounded => source.seek_first()?,
    }
    while source.valid() {
        let key = source.key();
        let inside = match &bounds.1 {
            Bound::Included(b) => key <= b.as_slice(),
            Bound::Excluded(b) => key < b.as_slice(),
            Bound::Unbounded => true,
        };
        if !inside {
            break;
        }
        if source.version() >= from && contains(bounds, key) {
            return Ok(Some(key.to_vec()));
        }
        source.next()?;
    }
    Ok(None)
}
