//! What a user iterates with: [`Cursor`] lends, [`Iter`] gives away.

use super::Bounds;
use super::core::Version;
use super::read::dropped;
use crate::entry::{Kind, Prefix};
use crate::iter::{Concat, Merging, Prefixed, Source, Tables, Visibility};
use crate::memtable::MemCursor;
use crate::sync::Arc;
use crate::table::{Table, TableCursor};
use crate::tree::run::Run;
use crate::txn::{WriteCursor, WriteSet};
use crate::{Error, Key, Result, Value};
use std::fmt;

/// A run as the concatenation of its tables.
pub(crate) struct RunTables {
    pub(crate) run: Arc<Run<Table>>,
    pub(crate) visibility: Visibility,
}

impl Tables for RunTables {
    type Cursor = TableCursor;
    fn len(&self) -> usize {
        self.run.tables().len()
    }
    fn smallest(&self, i: usize) -> &[u8] {
        &self.run.tables()[i].meta().smallest
    }
    fn largest(&self, i: usize) -> &[u8] {
        &self.run.tables()[i].meta().largest
    }
    fn open(&self, i: usize) -> TableCursor {
        self.run.tables()[i].cursor(self.visibility)
    }
}

/// One of the sorted things a view is merged from.
#[expect(
    clippy::large_enum_variant,
    reason = "few are made, all in one vector: a box would cost an allocation each and a pointer at every step"
)]
pub(crate) enum AnySource {
    Memtable(Prefixed<MemCursor>),
    /// What a transaction has written itself.
    Writes(Prefixed<WriteCursor>),
    Run(Concat<RunTables>),
}

macro_rules! each {
    ($self:ident, $source:ident => $call:expr) => {
        match $self {
            AnySource::Memtable($source) => $call,
            AnySource::Run($source) => $call,
            AnySource::Writes($source) => $call,
        }
    };
}

impl Source for AnySource {
    fn seek_first(&mut self) -> Result<()> {
        each!(self, s => s.seek_first())
    }
    fn seek_last(&mut self) -> Result<()> {
        each!(self, s => s.seek_last())
    }
    fn seek(&mut self, key: &[u8]) -> Result<()> {
        each!(self, s => s.seek(key))
    }
    fn seek_for_prev(&mut self, key: &[u8]) -> Result<()> {
        each!(self, s => s.seek_for_prev(key))
    }
    #[inline]
    fn next(&mut self) -> Result<()> {
        each!(self, s => s.next())
    }
    #[inline]
    fn prev(&mut self) -> Result<()> {
        each!(self, s => s.prev())
    }
    #[inline]
    fn valid(&self) -> bool {
        each!(self, s => s.valid())
    }
    #[inline]
    fn key(&self) -> &[u8] {
        each!(self, s => s.key())
    }
    #[inline]
    fn kind(&self) -> Kind {
        each!(self, s => s.kind())
    }
    #[inline]
    fn version(&self) -> u64 {
        each!(self, s => s.version())
    }
    #[inline]
    fn value(&mut self) -> Result<&[u8]> {
        each!(self, s => s.value())
    }
    #[inline]
    fn pinned_value(&mut self) -> Result<Value> {
        each!(self, s => s.pinned_value())
    }
}

/// A position among the entries as they were when the cursor was made. It lends keys and values instead of copying
/// them, and a seek close to where it stands costs little: keep one and re-seek it.
///
/// It may outlive the [`Db`](crate::Db) handle. While it lives, the memory and files of its view stay.
///
/// ```
/// # fn main() -> halocline::Result<()> {
/// # let dir = tempfile::tempdir().unwrap();
/// # let db = halocline::Db::open(dir.path().join("data"))?;
/// db.put(b"a", b"1")?;
/// let mut cursor = db.cursor()?;
/// cursor.seek(b"a")?;
/// while cursor.valid() {
///     let bytes = cursor.value()?.len();
///     println!("{} has {bytes} bytes", cursor.key().escape_ascii());
///     cursor.next()?;
/// }
/// # Ok(())
/// # }
/// ```
pub struct Cursor {
    merged: Merging<AnySource>,
}

impl Cursor {
    pub(crate) fn new(version: &Arc<Version>, family: u32, before: u64, bounds: &Bounds) -> Result<Cursor> {
        Cursor::over(version, family, before, bounds, None)
    }

    /// As `new`, under a transaction's own writes.
    fn over(
        version: &Arc<Version>,
        family: u32,
        before: u64,
        bounds: &Bounds,
        writes: Option<&Arc<WriteSet>>,
    ) -> Result<Cursor> {
        let visibility = Visibility::Before(before);
        let tree = version.tree.family(family).ok_or_else(|| dropped(family))?;
        let mut sources = Vec::with_capacity(3 + version.sealed.len() + tree.runs.len());
        if let Some(writes) = writes {
            let cursor = WriteCursor::new(Arc::clone(writes));
            sources.push(AnySource::Writes(Prefixed::new(cursor, Prefix::of(family))));
        }
        for mem in std::iter::once(&version.active).chain(&version.sealed) {
            if !mem.memtable.is_empty() && mem.segment.base() < before {
                let cursor = mem.memtable.cursor(visibility);
                sources.push(AnySource::Memtable(Prefixed::new(cursor, Prefix::of(family))));
            }
        }
        for run in tree.runs.iter().chain(std::iter::once(&tree.last)) {
            if !run.is_empty() {
                let tables = RunTables { run: Arc::clone(run), visibility };
                sources.push(AnySource::Run(Concat::new(tables)));
            }
        }
        let mut merged = Merging::new(sources);
        merged.set_bounds(bounds.0.as_ref().map(Vec::as_slice), bounds.1.as_ref().map(Vec::as_slice));
        Ok(Cursor { merged })
    }

    /// Moves to the first entry.
    pub fn seek_first(&mut self) -> Result<()> {
        self.merged.seek_first()
    }

    /// Moves to the last entry.
    pub fn seek_last(&mut self) -> Result<()> {
        self.merged.seek_last()
    }

    /// Moves to the first entry at or behind `key`.
    pub fn seek(&mut self, key: impl AsRef<[u8]>) -> Result<()> {
        self.merged.seek(key.as_ref())
    }

    /// Moves to the last entry at or before `key`.
    pub fn seek_for_prev(&mut self, key: impl AsRef<[u8]>) -> Result<()> {
        self.merged.seek_for_prev(key.as_ref())
    }

    /// Moves on by one entry. Panics if the cursor is not at an entry.
    #[expect(clippy::should_implement_trait, reason = "a lending cursor, not an iterator")]
    pub fn next(&mut self) -> Result<()> {
        self.merged.next()
    }

    /// Moves back by one entry. Panics if the cursor is not at an entry.
    pub fn prev(&mut self) -> Result<()> {
        self.merged.prev()
    }

    /// Whether the cursor is at an entry. After an error it is not, until the next seek.
    pub fn valid(&self) -> bool {
        self.merged.valid()
    }

    /// The entry's key. Panics if the cursor is not at an entry.
    pub fn key(&self) -> &[u8] {
        self.merged.key()
    }

    /// The entry's value; decoded now, if it is compressed. Panics if the cursor is not at an entry.
    pub fn value(&mut self) -> Result<&[u8]> {
        match self.merged.kind() {
            Kind::Put => self.merged.value(),
            other => Err(super::read::unsupported(other)),
        }
    }

    fn item(&mut self) -> Result<(Key, Value)> {
        match self.merged.kind() {
            Kind::Put => Ok((Key::copy(self.merged.key()), self.merged.pinned_value()?)),
            other => Err(super::read::unsupported(other)),
        }
    }
}

impl fmt::Debug for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cursor").field("valid", &self.valid()).finish()
    }
}

/// Entries in order, from either end, as they were when the iterator was made. An error is given once and ends it.
///
/// It may outlive the [`Db`](crate::Db) handle. For tight loops [`Cursor`] is cheaper: it copies nothing.
pub struct Iter {
    state: State,
}

enum State {
    Ready(Box<Ends>),
    Failed(Option<Error>),
}

/// The two ends of what is left. Each has a cursor of its own, made when it is first used.
struct Ends {
    version: Arc<Version>,
    family: u32,
    before: u64,
    bounds: Bounds,
    writes: Option<Arc<WriteSet>>,
    front: Option<Cursor>,
    back: Option<Cursor>,
}

impl Iter {
    pub(crate) fn new(version: Arc<Version>, family: u32, before: u64, bounds: Bounds) -> Iter {
        Iter::over(version, family, before, bounds, None)
    }

    /// As `new`, under a transaction's own writes.
    pub(crate) fn over(
        version: Arc<Version>,
        family: u32,
        before: u64,
        bounds: Bounds,
        writes: Option<Arc<WriteSet>>,
    ) -> Iter {
        let ends = Ends { version, family, before, bounds, writes, front: None, back: None };
        Iter { state: State::Ready(Box::new(ends)) }
    }

    pub(crate) fn failed(error: Error) -> Iter {
        Iter { state: State::Failed(Some(error)) }
    }

    /// Only the keys: no value is decoded.
    pub fn keys(self) -> Keys {
        Keys { iter: self }
    }

    fn step<T>(&mut self, front: bool, item: impl FnOnce(&mut Cursor) -> Result<T>) -> Option<Result<T>> {
        match &mut self.state {
            State::Failed(error) => error.take().map(Err),
            State::Ready(ends) => match ends.step(front).and_then(|at| at.map(item).transpose()) {
                Ok(item) => item.map(Ok),
                Err(e) => {
                    self.state = State::Failed(None);
                    Some(Err(e))
                }
            },
        }
    }
}

impl Ends {
    /// Moves one end inwards; the cursor at its new entry, unless the ends have met.
    fn step(&mut self, front: bool) -> Result<Option<&mut Cursor>> {
        let (near, far) = if front { (&mut self.front, &self.back) } else { (&mut self.back, &self.front) };
        match near {
            Some(cursor) if !cursor.valid() => return Ok(None),
            Some(cursor) if front => cursor.next()?,
            Some(cursor) => cursor.prev()?,
            None => {
                let cursor = near.insert(Cursor::over(
                    &self.version,
                    self.family,
                    self.before,
                    &self.bounds,
                    self.writes.as_ref(),
                )?);
                if front { cursor.seek_first()? } else { cursor.seek_last()? }
            }
        }
        let Some(cursor) = near.as_mut().filter(|c| c.valid()) else { return Ok(None) };
        let met = match far {
            // The other end has run through everything that was left.
            Some(far) if !far.valid() => true,
            Some(far) if front => cursor.key() >= far.key(),
            Some(far) => cursor.key() <= far.key(),
            None => false,
        };
        Ok(if met { None } else { Some(cursor) })
    }
}

impl Iterator for Iter {
    type Item = Result<(Key, Value)>;
    fn next(&mut self) -> Option<Self::Item> {
        self.step(true, Cursor::item)
    }
}

impl DoubleEndedIterator for Iter {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.step(false, Cursor::item)
    }
}

impl std::iter::FusedIterator for Iter {}

impl fmt::Debug for Iter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Iter")
    }
}

/// The keys of an [`Iter`].
#[derive(Debug)]
pub struct Keys {
    iter: Iter,
}

impl Iterator for Keys {
    type Item = Result<Key>;
    fn next(&mut self) -> Option<Self::Item> {
        self.iter.step(true, |cursor| Ok(Key::copy(cursor.key())))
    }
}

impl DoubleEndedIterator for Keys {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.iter.step(false, |cursor| Ok(Key::copy(cursor.key())))
    }
}

impl std::iter::FusedIterator for Keys {}
