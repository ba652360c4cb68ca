//! What can be done within a transaction.

use super::iter::Noting;
use super::locks::Holder;
use super::reads::{RangeRead, Reads};
use super::write_set::{Mark, WriteSet, check_size};
use super::{Isolation, LockMode, TxIter, TxOptions};
use crate::db::core::{Check, Core, Ops, Version};
use crate::db::read::InternalKey;
use crate::db::{Bounds, Iter, range};
use crate::entry::Kind;
use crate::sync::Arc;
use crate::{ColumnFamily, Db, Error, ErrorKind, KeyRange, Result, Snapshot, Value, WriteBatch};
use std::cell::{Cell, OnceCell, RefCell};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The database of a transaction.
pub(crate) enum Of<'db> {
    Borrowed(&'db Db),
    Owned(Db),
}

impl std::ops::Deref for Of<'_> {
    type Target = Db;
    fn deref(&self) -> &Db {
        match self {
            Of::Borrowed(db) => db,
            Of::Owned(db) => db,
        }
    }
}

/// A point in a transaction to which it can go back: see [`Tx::savepoint`].
#[derive(Debug)]
pub struct Savepoint {
    number: u64,
}

/// The number of the next savepoint of any transaction.
static NEXT_SAVEPOINT: AtomicU64 = AtomicU64::new(0);

/// What there was at a savepoint.
struct Saved {
    number: u64,
    writes: Mark,
    locks: usize,
    hooks: usize,
}

pub(super) type Hook = Box<dyn FnOnce() + Send>;

/// A transaction, as the closure of [`Db::update`](crate::Db::update) gets it: reads and writes, but no end; that comes with
/// the closure's.
///
/// Reads see the transaction's own writes. What it writes is held in memory, and nobody else sees it before the commit. It
/// is used by one thread at a time.
///
/// Plain calls on the [`Db`](crate::Db) go past it: they do not see its writes, and what they write counts as another's.
pub struct Tx<'db> {
    db: Of<'db>,
    pub(super) options: TxOptions,
    /// Taken by the first read that needs it.
    snapshot: OnceCell<Snapshot>,
    /// The later moments at which keys were got for update, below repeatable read: ascending.
    moments: Vec<Snapshot>,
    /// Something was got for update, and so must be the same at the commit even if nothing is written.
    for_update: bool,
    /// Shared with iterators only, which borrow the transaction: never while it is written to.
    writes: Arc<WriteSet>,
    reads: RefCell<Reads>,
    locks: Option<Holder>,
    saved: Vec<Saved>,
    hooks: Vec<Hook>,
    /// A call failed in a way that a new attempt may not.
    pub(super) beaten: bool,
    /// No other commit can take place.
    pub(super) alone: bool,
}

/// The memory of a thread's last transaction, for its next one.
type Spare = (Arc<WriteSet>, Reads);

/// A spare holds on to at most so many bytes of writes.
const SPARE_BYTES: usize = 256 << 10;

thread_local! {
    static SPARE: Cell<Option<Spare>> = const { Cell::new(None) };
}

impl<'db> Tx<'db> {
    pub(super) fn new(db: Of<'db>, options: TxOptions) -> Tx<'db> {
        let (writes, reads) = SPARE.try_with(Cell::take).ok().flatten().unwrap_or_default();
        Tx {
            db,
            options,
            snapshot: OnceCell::new(),
            moments: Vec::new(),
            for_update: false,
            writes,
            reads: RefCell::new(reads),
            locks: None,
            saved: Vec::new(),
            hooks: Vec::new(),
            beaten: false,
            alone: false,
        }
    }

    fn core(&self) -> &Arc<Core> {
        &self.db.core
    }

    // ---- reading ----

    /// The value of `key`, if it has one.
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Value>> {
        self.get_in(0, key.as_ref())
    }

    /// The value of `key` in `family`.
    pub fn get_cf(&self, family: &ColumnFamily, key: impl AsRef<[u8]>) -> Result<Option<Value>> {
        family.check_owner(self.core())?;
        self.get_in(family.id(), key.as_ref())
    }

    /// Whether `key` has a value.
    pub fn contains(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        self.get(key).map(|value| value.is_some())
    }

    /// The value of `key`, which is about to be written: at every isolation level, it is unchanged at the commit, even of a
    /// transaction that writes nothing. A pessimistic transaction locks the key first, and waits for whoever has it.
    pub fn get_for_update(&mut self, key: impl AsRef<[u8]>) -> Result<Option<Value>> {
        self.get_for_update_in(0, key.as_ref())
    }

    /// As [`get_for_update`](Tx::get_for_update), in `family`.
    pub fn get_for_update_cf(
        &mut self,
        family: &ColumnFamily,
        key: impl AsRef<[u8]>,
    ) -> Result<Option<Value>> {
        family.check_owner(self.core())?;
        self.get_for_update_in(family.id(), key.as_ref())
    }

    /// The values of many keys, in their order, all as of one moment.
    pub fn multi_get<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<Value>>> {
        self.multi_get_in(0, keys)
    }

    /// As [`multi_get`](Tx::multi_get), in `family`.
    pub fn multi_get_cf<K: AsRef<[u8]>>(
        &self,
        family: &ColumnFamily,
        keys: &[K],
    ) -> Result<Vec<Option<Value>>> {
        family.check_owner(self.core())?;
        self.multi_get_in(family.id(), keys)
    }

    /// Entries with keys in `range`, in order, from either end.
    pub fn range(&self, range: impl KeyRange) -> TxIter<'_> {
        self.range_in(0, range::owned(&range))
    }

    /// Entries of `family` with keys in `range`.
    pub fn range_cf(&self, family: &ColumnFamily, range: impl KeyRange) -> TxIter<'_> {
        match family.check_owner(self.core()) {
            Ok(()) => self.range_in(family.id(), range::owned(&range)),
            Err(e) => TxIter::new(Iter::failed(e), &self.reads, Noting::Nothing),
        }
    }

    /// Entries whose keys begin with `prefix`.
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> TxIter<'_> {
        self.range_in(0, range::of_prefix(prefix.as_ref()))
    }

    /// Entries of `family` whose keys begin with `prefix`.
    pub fn prefix_cf(&self, family: &ColumnFamily, prefix: impl AsRef<[u8]>) -> TxIter<'_> {
        match family.check_owner(self.core()) {
            Ok(()) => self.range_in(family.id(), range::of_prefix(prefix.as_ref())),
            Err(e) => TxIter::new(Iter::failed(e), &self.reads, Noting::Nothing),
        }
    }

    /// The snapshot, taken now if it was not yet.
    fn snapshot(&self) -> Result<&Snapshot> {
        if let Some(snapshot) = self.snapshot.get() {
            return Ok(snapshot);
        }
        let taken = self.db.snapshot()?;
        Ok(self.snapshot.get_or_init(|| taken))
    }

    /// Whether all reads are of one snapshot.
    fn is_stable(&self) -> bool {
        self.options.isolation >= Isolation::RepeatableRead
    }

    /// Whether the keys that are read must be the same at the commit.
    fn checks_keys(&self) -> bool {
        !self.alone && matches!(self.options.isolation, Isolation::RepeatableRead | Isolation::Serializable)
    }

    /// The value that the transaction itself has written.
    fn own(&self, internal: &[u8]) -> Option<Option<Value>> {
        let entry = self.writes.get(internal)?;
        Some((entry.kind == Kind::Put).then(|| Value::copy(entry.value)))
    }

    fn get_in(&self, family: u32, key: &[u8]) -> Result<Option<Value>> {
        let internal = InternalKey::new(family, key);
        if let Some(own) = self.own(internal.as_slice()) {
            return Ok(own);
        }
        if !self.is_stable() {
            return self.core().get(family, key, u64::MAX);
        }
        let since = self.snapshot()?.address();
        if self.checks_keys() {
            self.reads.borrow_mut().key(internal.as_slice(), since);
        }
        self.core().get(family, key, since)
    }

    fn get_for_update_in(&mut self, family: u32, key: &[u8]) -> Result<Option<Value>> {
        let internal = InternalKey::new(family, key);
        let internal = internal.as_slice();
        self.lock(internal, true)?;
        if let Some(own) = self.own(internal) {
            return Ok(own);
        }
        let first = self.snapshot.get().is_none();
        let mut since = self.snapshot()?.address();
        let mut moment = None;
        if !self.is_stable() && !first {
            since = moment.insert(self.db.snapshot()?).address();
        }
        self.for_update = true;
        let value = self.core().get(family, key, since)?;
        if self.reads.get_mut().key(internal, since) {
            // Until the commit: what was seen then stays, and so does the trace of its removal.
            self.moments.extend(moment);
        }
        Ok(value)
    }

    fn multi_get_in<K: AsRef<[u8]>>(&self, family: u32, keys: &[K]) -> Result<Vec<Option<Value>>> {
        let moment = if self.is_stable() { None } else { Some(self.db.snapshot()?) };
        keys.iter()
            .map(|key| {
                let key = key.as_ref();
                match &moment {
                    None => self.get_in(family, key),
                    Some(moment) => match self.own(InternalKey::new(family, key).as_slice()) {
                        Some(own) => Ok(own),
                        None => self.core().get(family, key, moment.address()),
                    },
                }
            })
            .collect()
    }

    fn range_in(&self, family: u32, bounds: Bounds) -> TxIter<'_> {
        self.try_range_in(family, bounds)
            .unwrap_or_else(|e| TxIter::new(Iter::failed(e), &self.reads, Noting::Nothing))
    }

    fn try_range_in(&self, family: u32, bounds: Bounds) -> Result<TxIter<'_>> {
        let (version, before) = if self.is_stable() {
            let address = self.snapshot()?.address();
            (self.core().version.load_arc(), address)
        } else {
            self.core().view()
        };
        let noting = if self.alone {
            Noting::Nothing
        } else {
            match self.options.isolation {
                Isolation::Serializable => {
                    let read = RangeRead { family, bounds: bounds.clone(), since: before };
                    Noting::Range(self.reads.borrow_mut().range(read))
                }
                Isolation::RepeatableRead => Noting::Keys { family, since: before },
                _ => Noting::Nothing,
            }
        };
        let writes = (!self.writes.is_empty()).then(|| Arc::clone(&self.writes));
        Ok(TxIter::new(Iter::over(version, family, before, bounds, writes), &self.reads, noting))
    }

    // ---- writing ----

    /// Sets `key` to `value`: a key of at most 64 KiB, a value of at most 1 GiB; both may be empty.
    pub fn put(&mut self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        let (key, value) = (key.as_ref(), value.as_ref());
        self.write(0, key, |batch| batch.put(key, value))
    }

    /// Sets `key` to `value` in `family`.
    pub fn put_cf(
        &mut self,
        family: &ColumnFamily,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
    ) -> Result<()> {
        family.check_owner(self.core())?;
        let (key, value) = (key.as_ref(), value.as_ref());
        self.write(family.id(), key, |batch| batch.put_cf(family, key, value))
    }

    /// Removes `key`, whether it is there or not.
    pub fn delete(&mut self, key: impl AsRef<[u8]>) -> Result<()> {
        let key = key.as_ref();
        self.write(0, key, |batch| batch.delete(key))
    }

    /// Removes `key` from `family`.
    pub fn delete_cf(&mut self, family: &ColumnFamily, key: impl AsRef<[u8]>) -> Result<()> {
        family.check_owner(self.core())?;
        let key = key.as_ref();
        self.write(family.id(), key, |batch| batch.delete_cf(family, key))
    }

    fn write(&mut self, family: u32, key: &[u8], write: impl FnOnce(&mut WriteBatch)) -> Result<()> {
        if self.core().options.read_only {
            let message = "could not write in a transaction: the database was opened read-only";
            return Err(Error::new(ErrorKind::ReadOnly, message));
        }
        if self.options.locks == LockMode::Pessimistic {
            let depends = self.options.isolation == Isolation::Snapshot;
            self.lock(InternalKey::new(family, key).as_slice(), depends)?;
        }
        let most = self.options.max_bytes;
        // Unique unless an iterator was forgotten instead of dropped: then it keeps its own copy.
        let writes = Arc::make_mut(&mut self.writes);
        let before = writes.mark();
        writes.write(write)?;
        check_size(writes, most).inspect_err(|_| writes.undo(before))
    }

    /// Locks the internal key, if this transaction locks at all, and does not have it yet. What was seen of it before must
    /// still be true: that is told now, rather than at the commit. `depends`: whether the commit depends on the key from here
    /// on, even if it was not read before.
    fn lock(&mut self, internal: &[u8], depends: bool) -> Result<()> {
        if self.options.locks != LockMode::Pessimistic || self.alone {
            return Ok(());
        }
        let core = Arc::clone(self.core());
        let holder = self.locks.get_or_insert_with(|| core.locks.holder());
        if core.locks.has(holder, internal) {
            return Ok(());
        }
        if let Err(e) = core.gate.lock(&core, holder, internal, self.options.lock_timeout) {
            self.beaten |= e.kind() == ErrorKind::Deadlock || e.kind() == ErrorKind::LockTimeout;
            return Err(e);
        }
        if self.is_stable()
            && let Some(snapshot) = self.snapshot.get()
            && (depends || self.reads.get_mut().has_key(internal))
        {
            let since = snapshot.address();
            let mut key = Reads::default();
            key.key(internal, since);
            let (version, now) = core.view();
            key.check(&version, None, since, now).inspect_err(|_| self.beaten = true)?;
        }
        Ok(())
    }

    // ---- savepoints and hooks ----

    /// Marks this point, to be able to go back to it.
    pub fn savepoint(&mut self) -> Savepoint {
        let number = NEXT_SAVEPOINT.fetch_add(1, Relaxed);
        self.saved.push(Saved {
            number,
            writes: self.writes.mark(),
            locks: self.locks.as_ref().map_or(0, |holder| holder.count()),
            hooks: self.hooks.len(),
        });
        Savepoint { number }
    }

    fn find(&self, savepoint: &Savepoint) -> Result<usize> {
        self.saved.iter().position(|s| s.number == savepoint.number).ok_or_else(|| {
            Error::invalid("the savepoint is of another transaction, or was given up by going back behind it")
        })
    }

    /// Undoes every write since the savepoint, and gives up the locks taken since. The savepoint stays; later ones are gone.
    /// What was read since still counts.
    pub fn rollback_to(&mut self, savepoint: &Savepoint) -> Result<()> {
        let at = self.find(savepoint)?;
        self.saved.truncate(at + 1);
        let Saved { writes, locks, hooks, .. } = self.saved[at];
        Arc::make_mut(&mut self.writes).undo(writes);
        self.unlock(locks);
        self.hooks.truncate(hooks);
        Ok(())
    }

    /// Forgets the savepoint and later ones; what was written since stays.
    pub fn release(&mut self, savepoint: Savepoint) -> Result<()> {
        let at = self.find(&savepoint)?;
        self.saved.truncate(at);
        Ok(())
    }

    /// Runs `hook` after the commit, in the order of these calls, in the committing thread. Not if it is rolled back.
    pub fn on_commit(&mut self, hook: impl FnOnce() + Send + 'static) {
        self.hooks.push(Box::new(hook));
    }

    /// Number of writes so far, overwritten ones included.
    pub fn len(&self) -> usize {
        self.writes.len()
    }

    /// Whether nothing was written so far.
    pub fn is_empty(&self) -> bool {
        self.writes.is_empty()
    }

    fn unlock(&mut self, keep: usize) {
        if let Some(holder) = &mut self.locks {
            let core = &self.db.core;
            core.gate.unlock(core, holder, keep);
        }
    }

    // ---- for the first phase of a two-phase commit ----

    pub(super) fn db(&self) -> &Db {
        &self.db
    }

    pub(super) fn has_hooks(&self) -> bool {
        !self.hooks.is_empty()
    }

    pub(super) fn writes(&self) -> &WriteSet {
        &self.writes
    }

    pub(super) fn reads(&self) -> std::cell::Ref<'_, Reads> {
        self.reads.borrow()
    }

    /// The locks, which are the caller's from now on.
    pub(super) fn take_locks(&mut self) -> Holder {
        let core = Arc::clone(self.core());
        self.locks.take().unwrap_or_else(|| core.locks.holder())
    }

    /// Fails if anything that the commit depends on has changed up to now.
    pub(super) fn check_now(&self) -> Result<()> {
        let Some((since, writes)) = self.depends() else { return Ok(()) };
        let (version, now) = self.core().view();
        self.reads.borrow().check(&version, writes, since, now)
    }

    // ---- the end ----

    /// Commits. Whatever comes of it, the transaction is as new afterwards.
    pub(super) fn commit(&mut self) -> Result<()> {
        self.commit_before_hooks()?.into_iter().for_each(|hook| hook());
        Ok(())
    }

    /// As `commit`, and leaves it to the caller to run the hooks.
    pub(super) fn commit_before_hooks(&mut self) -> Result<Vec<Hook>> {
        self.settle_writes();
        let committed = self.try_commit();
        let hooks = std::mem::take(&mut self.hooks);
        self.reset();
        committed.map(|()| hooks)
    }

    /// Before its end: what it has overwritten itself is nobody's to see.
    pub(super) fn settle_writes(&mut self) {
        if self.writes.has_replaced() {
            Arc::make_mut(&mut self.writes).leave_out_replaced();
        }
    }

    fn try_commit(&mut self) -> Result<()> {
        if self.writes.is_empty() {
            // What only reads took place at its snapshot, unless it asked for what is true at the end.
            return if self.for_update { self.check_now() } else { Ok(()) };
        }
        let core = self.core();
        let batch = self.writes.batch();
        batch.families.iter().try_for_each(|family| family.check_owner(core))?;
        let durability = self.options.durability.unwrap_or(core.options.durability);
        let ops = Ops::Batch(batch);
        let reads = self.reads.borrow();
        let Some((since, writes)) = self.depends() else {
            return core.commit_if(&ops, durability, &Unchecked { locks: self.locks.as_ref() }).map(|_| ());
        };
        // Most of it before the place in the log is reserved: others wait for what is in flight.
        let from = if core.version.pin().tail() == since {
            since
        } else {
            let (version, from) = core.view();
            reads.check(&version, writes, since, from)?;
            from
        };
        let check = Unchanged { reads: &reads, writes, from, locks: self.locks.as_ref() };
        core.commit_if(&ops, durability, &check).map(|_| ())
    }

    /// The address since which nothing it depends on may have changed, and the writes that it depends on; `None` if it
    /// depends on nothing.
    fn depends(&self) -> Option<(u64, Option<(&WriteSet, u64)>)> {
        let since = self.snapshot.get().filter(|_| !self.alone)?.address();
        let writes = (self.options.isolation == Isolation::Snapshot).then_some((&*self.writes, since));
        (writes.is_some() || !self.reads.borrow().is_empty()).then_some((since, writes))
    }

    fn forget_moments(&mut self) {
        // Last first: the list of live snapshots is cheapest to shorten at its end.
        while self.moments.pop().is_some() {}
        self.snapshot.take();
        self.for_update = false;
    }

    /// Rolls back: nothing was written. The memory is kept.
    pub(super) fn reset(&mut self) {
        self.unlock(0);
        self.forget_moments();
        Arc::make_mut(&mut self.writes).clear();
        self.reads.get_mut().clear();
        self.saved.clear();
        self.hooks.clear();
        self.beaten = false;
    }
}

impl Drop for Tx<'_> {
    fn drop(&mut self) {
        self.unlock(0);
        self.forget_moments();
        let (mut writes, mut reads) = (std::mem::take(&mut self.writes), self.reads.take());
        if writes.capacity() > SPARE_BYTES || reads.capacity() > SPARE_BYTES {
            return;
        }
        // Not if an iterator was forgotten, which holds on to it.
        if let Some(set) = Arc::get_mut(&mut writes) {
            set.clear();
            reads.clear();
            let _ = SPARE.try_with(|spare| spare.set(Some((writes, reads))));
        }
    }
}

impl fmt::Debug for Tx<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tx")
            .field("isolation", &self.options.isolation)
            .field("writes", &self.writes.len())
            .finish_non_exhaustive()
    }
}

/// A commit that nothing can be in the way of.
struct Unchecked<'a> {
    locks: Option<&'a Holder>,
}

impl Check for Unchecked<'_> {
    const CHECKS: bool = false;
    fn check(&self, _core: &Core, _version: &Version, _lsn: u64) -> Result<()> {
        Ok(())
    }
    fn locks(&self) -> Option<&Holder> {
        self.locks
    }
}

/// Nothing that was read, and none of `writes`, was changed between `from` and the commit.
struct Unchanged<'a> {
    reads: &'a Reads,
    writes: Option<(&'a WriteSet, u64)>,
    from: u64,
    locks: Option<&'a Holder>,
}

impl Check for Unchanged<'_> {
    const CHECKS: bool = true;
    fn check(&self, _core: &Core, version: &Version, lsn: u64) -> Result<()> {
        self.reads.check(version, self.writes, self.from, lsn)
    }
    fn complete_below(&self) -> u64 {
        self.from
    }
    fn locks(&self) -> Option<&Holder> {
        self.locks
    }
}
