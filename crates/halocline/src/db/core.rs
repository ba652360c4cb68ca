//! The heart of an open database: the current version, the commit path, rotation, and what stops it all.
//!
//! Locks, in the order in which they may be taken: `manifest` (held over I/O; only by flush, merge and column family
//! changes) before `rotation` (held while a new segment is made; only by writers that met a full one) before `publish`
//! (held for a few pointer moves). Readers take none of them, and neither does a commit that finds room.

use super::batch::{WriteBatch, check_lengths};
use super::options::{Durability, Options};
use super::snapshots::Snapshots;
use super::stats::Counters;
use crate::cache::{Budget, HotGroups, Part, Records};
use crate::entry::{self, Kind, Prefix};
use crate::io::{Lock, Vfs};
use crate::log::pool::Pool;
use crate::log::record;
use crate::log::segment::{Backing, Full, Segment};
use crate::log::slots::InFlight;
use crate::log::sync::GroupSync;
use crate::memtable::Memtable;
use crate::sync::{Arc, Backoff, Condvar, Mutex, MutexGuard};
use crate::table::Table;
use crate::tree::edit::Edit;
use crate::tree::heat::Heat;
use crate::tree::manifest::Manifest;
use crate::tree::pacing::Pacing;
use crate::tree::pin::Pinned;
use crate::tree::policy::Busy;
use crate::tree::version::Tree;
use crate::txn::{Gate, Holder, Locks, PreparedSet};
use crate::{Error, ErrorKind, Result};
use std::cell::RefCell;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// A segment and the memtable over it.
pub(crate) struct Mem {
    // Dropped in this order: the memtable lets go of the segment's memory before the segment goes to the pool, which
    // recycles only memory that nobody else has.
    pub(crate) memtable: Arc<Memtable>,
    pub(crate) segment: Arc<Segment>,
}

impl Mem {
    pub(crate) fn new(segment: Segment) -> Arc<Mem> {
        let memtable = Memtable::new(Arc::clone(segment.memory()), segment.base());
        Arc::new(Mem { memtable: Arc::new(memtable), segment: Arc::new(segment) })
    }
}

/// Everything a reader can see, immutable: swapped as a whole.
pub(crate) struct Version {
    pub(crate) active: Arc<Mem>,
    /// Newest first.
    pub(crate) sealed: Vec<Arc<Mem>>,
    pub(crate) tree: Arc<Tree<Table>>,
    /// Grows whenever a key may have another newest value in the tables than before: with each flush, dropped column
    /// family and dropped table, but not with merges. Cached records are true of one such number.
    pub(crate) flushes: u64,
}

impl Version {
    /// The address behind everything reserved so far: a snapshot here sees it all, once it is complete.
    pub(crate) fn tail(&self) -> u64 {
        self.active.segment.position()
    }

    /// Where the memtables begin: everything below is in tables.
    pub(crate) fn oldest_base(&self) -> u64 {
        self.sealed.last().unwrap_or(&self.active).segment.base()
    }
}

/// The first failure after which nothing is acknowledged any more.
#[derive(Default)]
pub(crate) struct Halt {
    halted: AtomicBool,
    cause: Mutex<Option<Error>>,
}

impl Halt {
    /// Stops all writes; the first cause stays.
    pub(crate) fn stop(&self, cause: Error) {
        lock(&self.cause).get_or_insert(cause);
        self.halted.store(true, Ordering::SeqCst);
    }

    #[inline]
    pub(crate) fn check(&self) -> Result<()> {
        if self.halted.load(Ordering::Relaxed) { Err(self.error()) } else { Ok(()) }
    }

    /// Fails once the database was closed; other failures leave reads possible.
    pub(crate) fn check_closed(&self) -> Result<()> {
        match self.check() {
            Err(e) if e.kind() == ErrorKind::Closed => Err(e),
            _ => Ok(()),
        }
    }

    /// Fails after a failure; being closed is none.
    pub(crate) fn check_failed(&self) -> Result<()> {
        match self.check() {
            Err(e) if e.kind() != ErrorKind::Closed => Err(e),
            _ => Ok(()),
        }
    }

    #[cold]
    fn error(&self) -> Error {
        match &*lock(&self.cause) {
            Some(cause) if cause.kind() == ErrorKind::Closed => cause.clone(),
            Some(cause) => Error::new(
                ErrorKind::Halted,
                format!(
                    "the database stopped taking writes after a failure; reads go on, and reopening recovers. The cause: {cause}"
                ),
            ),
            None => Error::new(ErrorKind::Halted, "the database stopped taking writes"),
        }
    }
}

/// Locks, whatever happened to the last holder: what is guarded is kept consistent at every step.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|e| e.into_inner())
}

/// What the background threads wait for, and what waits for them.
#[derive(Default)]
pub(crate) struct Signals {
    pub(crate) state: Mutex<Work>,
    /// There may be something to flush, merge or prepare.
    pub(crate) due: Condvar,
    /// A flush or a merge finished, or failed.
    pub(crate) done: Condvar,
    /// The database closes.
    pub(crate) end: Condvar,
}

/// The state under [`Signals`].
#[derive(Default)]
pub(crate) struct Work {
    pub(crate) closing: bool,
    /// Counts every request, so that a wake-up is never missed.
    pub(crate) requests: u64,
}

impl Signals {
    /// Wakes the background.
    pub(crate) fn request(&self) {
        lock(&self.state).requests += 1;
        self.due.notify_all();
    }

    /// Tells that something finished.
    pub(crate) fn finished(&self) {
        drop(lock(&self.state));
        self.done.notify_all();
    }
}

/// An open database.
pub(crate) struct Core {
    pub(crate) dir: PathBuf,
    pub(crate) vfs: std::sync::Arc<dyn Vfs>,
    pub(crate) options: Options,
    pub(crate) boot: [u8; 16],
    pub(crate) database: u64,
    pub(crate) backing: Backing,
    pub(crate) pool: Arc<Pool>,
    pub(crate) in_flight: InFlight,
    pub(crate) group: GroupSync,
    pub(crate) version: Pinned<Version>,
    pub(crate) manifest: Mutex<Option<Manifest>>,
    pub(crate) rotation: Mutex<()>,
    pub(crate) publish: Mutex<()>,
    pub(crate) snapshots: Snapshots,
    pub(crate) gate: Gate,
    pub(crate) locks: Locks,
    pub(crate) prepared: PreparedSet,
    pub(crate) halt: Halt,
    pub(crate) signals: Signals,
    pub(crate) pacing: Pacing,
    pub(crate) heat: Heat,
    pub(crate) budget: Arc<Budget>,
    pub(crate) cache: Option<std::sync::Arc<HotGroups>>,
    pub(crate) records: Option<Records>,
    pub(crate) counters: Counters,
    pub(crate) next_file: AtomicU64,
    /// What merges are working on.
    pub(crate) busy: Mutex<Busy>,
    /// Why the last flush failed, while it waits to be tried again.
    pub(crate) flush_error: Mutex<Option<Error>>,
    pub(crate) directory_lock: Mutex<Option<Box<dyn Lock>>>,
}

/// What a commit writes.
pub(crate) enum Ops<'a> {
    One { kind: Kind, family: u32, key: &'a [u8], value: &'a [u8] },
    Batch(&'a WriteBatch),
}

/// Sealed memtables that may wait for their flush before writers have to.
pub(crate) const MAX_SEALED: usize = 3;

/// What must hold of everything before a commit for it to take place.
pub(crate) trait Check {
    /// False if there is nothing to check: the commit then waits for nobody.
    const CHECKS: bool;
    /// Fails if a commit at address `lsn` may not take place. Everything below `lsn` is complete, and in `version`.
    fn check(&self, core: &Core, version: &Version, lsn: u64) -> Result<()>;
    /// An address below which it knows everything to be complete.
    fn complete_below(&self) -> u64 {
        0
    }
    /// The locks of the transaction that commits.
    fn locks(&self) -> Option<&Holder> {
        None
    }
}

/// A commit that takes place whatever was before it.
pub(crate) struct Always;

impl Check for Always {
    const CHECKS: bool = false;
    #[inline]
    fn check(&self, _core: &Core, _version: &Version, _lsn: u64) -> Result<()> {
        Ok(())
    }
}

thread_local! {
    /// The addresses of a batch's entries, to be handed to the memtable.
    static OFFSETS: RefCell<Vec<u32>> = const { RefCell::new(Vec::new()) };
}

impl Core {
    /// Commits `ops`, whole or not at all.
    pub(crate) fn commit(&self, ops: &Ops<'_>, durability: Durability) -> Result<()> {
        self.commit_if(ops, durability, &Always).map(|_| ())
    }

    /// Commits `ops`, whole or not at all, if `check` agrees. The one write path. Returns the commit's address, or 0 if
    /// there was nothing to write.
    ///
    /// A commit that is checked is ordered first, by its reservation, and judged then, when everything before it is
    /// complete. So a check sees exactly what the commit comes after, and plain commits pay nothing for those that are
    /// checked. One that is refused leaves a pad in the log.
    pub(crate) fn commit_if<C: Check>(
        &self,
        ops: &Ops<'_>,
        durability: Durability,
        check: &C,
    ) -> Result<u64> {
        if self.options.read_only {
            return Err(Error::new(
                ErrorKind::ReadOnly,
                "could not write: the database was opened read-only",
            ));
        }
        self.halt.check()?;
        let (body, payload) = match ops {
            Ops::One { family, key, value, .. } => {
                check_lengths(key, value)?;
                let prefix = Prefix::of(*family).as_slice().len();
                (entry::encoded_len(prefix + key.len(), value.len()), (key.len() + value.len()) as u64)
            }
            Ops::Batch(batch) => {
                if let Some(e) = &batch.refused {
                    return Err(e.clone());
                }
                if batch.is_empty() {
                    return Ok(0);
                }
                (batch.bytes.len(), batch.payload)
            }
        };
        let len = record::data_len(body as u64);
        self.pacing.before_commit(self, len)?;
        let lsn = loop {
            let version = self.version.pin();
            let mem = &version.active;
            let entered = self.in_flight.enter(mem.segment.position());
            if self.gate.is_shut() && !self.gate.lets_pass(self, ops, check.locks()) {
                drop((entered, version));
                self.gate.wait(self, ops, check.locks())?;
                continue;
            }
            match mem.segment.reserve(len) {
                Ok(at) => {
                    if C::CHECKS {
                        let lsn = mem.segment.base() + at;
                        // Those that are checked too wait for each other in the order of their addresses.
                        entered.raise(lsn);
                        if check.complete_below() < lsn {
                            self.in_flight.wait_below(lsn);
                        }
                        if let Err(e) = check.check(self, &version, lsn) {
                            // SAFETY: `at` is this thread's reservation of `len` bytes, not filled.
                            let given_up = unsafe { mem.segment.abandon(at, len) };
                            given_up.inspect_err(|e| self.halt.stop(e.clone()))?;
                            self.want_next(mem, at, len);
                            return Err(e);
                        }
                    }
                    break self.apply(mem, ops, at, len, body)?;
                }
                Err(full) => {
                    let mem = Arc::clone(mem);
                    // In flight until it is sealed: a close waits for that.
                    self.finish_segment(&full, &mem)?;
                    drop((entered, version));
                    self.rotate(&mem, len)?;
                }
            }
        };
        self.counters.user_bytes.add(payload);
        let rank = durability.rank().max(self.options.durability.rank());
        match (self.backing, rank) {
            (_, 0) | (Backing::Mapped | Backing::Written, 1) => {}
            (Backing::Anonymous, _) => self.flush()?,
            _ => self.wait_durable(lsn + len)?,
        }
        Ok(lsn)
    }

    /// Writes the record into its room and its entries into the memtable.
    #[inline]
    fn apply(&self, mem: &Mem, ops: &Ops<'_>, at: u64, len: u64, body: usize) -> Result<u64> {
        // SAFETY: `at` is this thread's reservation of `len` bytes, filled once, here.
        let filled = unsafe {
            mem.segment.fill(at, len, body, |room| match ops {
                Ops::One { kind, family, key, value } => {
                    entry::encode(room, *kind, Prefix::of(*family).as_slice(), key, value);
                }
                Ops::Batch(batch) => room.copy_from_slice(&batch.bytes),
            })
        };
        // A record that could not be written out may be in the file or not: only reopening can tell.
        let lsn = filled.inspect_err(|e| self.halt.stop(e.clone()))?;
        let first = at as u32 + record::HEADER as u32;
        match ops {
            Ops::One { .. } => mem.memtable.insert(first),
            Ops::Batch(batch) if batch.starts.len() == 1 => mem.memtable.insert(first),
            Ops::Batch(batch) => OFFSETS.with_borrow_mut(|offsets| {
                offsets.clear();
                offsets.extend(batch.starts.iter().map(|start| first + start));
                mem.memtable.insert_batch(offsets);
            }),
        }
        self.want_next(mem, at, len);
        Ok(lsn)
    }

    /// The room was taken: if it spans the middle, the next segment is wanted soon.
    #[inline]
    fn want_next(&self, mem: &Mem, at: u64, len: u64) {
        if self.backing != Backing::Anonymous && mem.segment.passed_half(at, len) {
            self.signals.request();
        }
    }

    /// Seals the segment of `mem`, if that is up to this thread.
    fn finish_segment(&self, full: &Full, mem: &Mem) -> Result<()> {
        match full.seal_at {
            Some(at) => mem.segment.seal(at).inspect_err(|e| self.halt.stop(e.clone())),
            None => Ok(()),
        }
    }

    /// Replaces the full segment of `mem` by a new one that takes a record of `need` bytes.
    pub(crate) fn rotate(&self, mem: &Arc<Mem>, need: u64) -> Result<()> {
        let _rotation = lock(&self.rotation);
        self.rotate_locked(mem, need)
    }

    /// The part of `rotate` that one thread at a time does, with `rotation` locked.
    fn rotate_locked(&self, mem: &Arc<Mem>, need: u64) -> Result<()> {
        let mut backoff = Backoff::default();
        loop {
            self.halt.check()?;
            let version = self.version.load_arc();
            if !Arc::ptr_eq(&version.active, mem) {
                return Ok(());
            }
            if !mem.segment.is_sealed() {
                // The sealer is between its reservation and its seal.
                backoff.wait();
                continue;
            }
            if version.sealed.len() < MAX_SEALED {
                break;
            }
            drop(version);
            self.wait_for_flush()?;
        }
        let raw = self.pool.take(need)?;
        let segment =
            Segment::begin(raw, mem.segment.next_base(), self.boot, self.database, self.vfs.random())
                .inspect_err(|e| self.halt.stop(e.clone()))?;
        let next = Mem::new(segment);
        if self.backing != Backing::Anonymous {
            self.group.add(Arc::clone(&next.segment));
        }
        let publish = lock(&self.publish);
        let version = self.version.load_arc();
        let mut sealed = Vec::with_capacity(version.sealed.len() + 1);
        sealed.push(Arc::clone(&version.active));
        sealed.extend(version.sealed.iter().cloned());
        let tree = Arc::clone(&version.tree);
        self.version.swap(Arc::new(Version { active: next, sealed, tree, flushes: version.flushes }));
        drop(publish);
        self.counters.rotations.add(1);
        self.signals.request();
        Ok(())
    }

    /// Waits until there are fewer sealed memtables than writers may leave behind.
    fn wait_for_flush(&self) -> Result<()> {
        let start = self.vfs.monotonic_ns();
        let mut state = lock(&self.signals.state);
        while self.version.pin().sealed.len() >= MAX_SEALED {
            self.halt.check()?;
            if let Some(e) = &*lock(&self.flush_error) {
                return Err(e.clone());
            }
            state = self.signals.done.wait(state).unwrap_or_else(|e| e.into_inner());
        }
        drop(state);
        self.counters.stalls.add(1);
        self.counters.stall_ns.add(self.vfs.monotonic_ns().saturating_sub(start));
        Ok(())
    }

    /// Seals the active memtable if there is anything in it; the address below which all must be flushed.
    pub(crate) fn seal_active(&self) -> Result<u64> {
        self.halt.check()?;
        let mem = Arc::clone(&self.version.load_arc().active);
        self.seal(&mem)
    }

    /// As `seal_active`, of a memtable that was active. It waits for a flush only if as many as writers may leave
    /// behind were sealed before `mem`.
    pub(crate) fn seal(&self, mem: &Arc<Mem>) -> Result<u64> {
        if mem.segment.position() == mem.segment.base() + crate::log::segment::FIRST {
            return Ok(mem.segment.base());
        }
        // Room for the next segment first: a full disk is no reason to close one that writers could still use.
        self.pool.prepare()?;
        let entered = self.in_flight.enter(mem.segment.position());
        let full = mem.segment.close();
        self.finish_segment(&full, mem)?;
        drop(entered);
        self.rotate(mem, 0)?;
        Ok(mem.segment.next_base())
    }

    /// As `seal_active`, for a flush thread, which must not wait for a flush: does nothing, and returns `None`, if any is
    /// due, or while another thread rotates, since that one may be waiting for this.
    pub(crate) fn seal_active_unless_busy(&self) -> Result<Option<u64>> {
        // Before the lock: writers that met a full segment wait for it, and this may touch the disk.
        self.pool.prepare()?;
        let Ok(_rotation) = self.rotation.try_lock() else { return Ok(None) };
        self.halt.check()?;
        let version = self.version.load_arc();
        let mem = &version.active;
        if !version.sealed.is_empty() {
            return Ok(None);
        }
        if mem.segment.used() == crate::log::segment::FIRST {
            return Ok(Some(mem.segment.base()));
        }
        let entered = self.in_flight.enter(mem.segment.position());
        let full = mem.segment.close();
        self.finish_segment(&full, mem)?;
        drop(entered);
        self.rotate_locked(mem, 0)?;
        Ok(Some(mem.segment.next_base()))
    }

    /// Writes everything committed so far to tables, and waits for it.
    pub(crate) fn flush(&self) -> Result<()> {
        // What failed before the call may succeed now; if it does not, that is told anew.
        *lock(&self.flush_error) = None;
        let target = self.seal_active()?;
        let mut state = lock(&self.signals.state);
        loop {
            // The active segment begins where the flushed ones end.
            let version = self.version.load_arc();
            if version.oldest_base() >= target {
                return Ok(());
            }
            drop(version);
            self.halt.check()?;
            if let Some(e) = &*lock(&self.flush_error) {
                return Err(e.clone());
            }
            state = self.signals.done.wait(state).unwrap_or_else(|e| e.into_inner());
        }
    }

    /// Swaps the tree, and drops the memtables below `floor`, which it now holds.
    pub(crate) fn install(&self, tree: Arc<Tree<Table>>, floor: u64) {
        self.install_with(tree, floor, 1);
    }

    /// Swaps the tree for one in which every key has the same newest value: a merge of it.
    pub(crate) fn install_merged(&self, tree: Arc<Tree<Table>>, floor: u64) {
        self.install_with(tree, floor, 0);
    }

    fn install_with(&self, tree: Arc<Tree<Table>>, floor: u64, changes: u64) {
        let publish = lock(&self.publish);
        let version = self.version.load_arc();
        let (sealed, flushed): (Vec<_>, Vec<_>) =
            version.sealed.iter().cloned().partition(|mem| mem.segment.base() >= floor);
        debug_assert!(changes > 0 || flushed.is_empty(), "a flush must not pass for a merge");
        let flushes = version.flushes + changes;
        let next = Arc::new(Version { active: Arc::clone(&version.active), sealed, tree, flushes });
        self.version.swap(Arc::clone(&next));
        drop(publish);
        drop(version);
        self.heat.reckon(&next);
        self.share_memory(&next);
        drop(next);
        self.group.forget_below(floor);
        for mem in flushed {
            mem.segment.retire(&self.pool);
        }
    }

    /// Reports what the parts hold, and leaves the cache what the others do not need.
    fn share_memory(&self, version: &Version) {
        let nodes: usize = version.sealed.iter().map(|mem| mem.memtable.used_bytes()).sum();
        let nodes = nodes + version.active.memtable.used_bytes();
        self.budget.set(Part::MemtableNodes, nodes);
        let tables =
            version.tree.families.iter().flat_map(|family| family.all_runs()).flat_map(|run| run.tables());
        self.budget.set(Part::Tables, tables.map(|table| table.memory_bytes()).sum());
        let records = self.records.as_ref().map_or(0, |records| records.bytes());
        let groups = self.cache.as_ref().map_or(0, |cache| cache.bytes());
        self.budget.set(Part::Cache, records + groups);
        if let Some(cache) = &self.cache {
            // Never below an eighth of what the user gave it: a cache that small would only cost.
            let most = self.options.cache / 2;
            let room = self.budget.room(Part::Cache).saturating_sub(records);
            cache.set_budget(room.clamp(most / 8, most));
        }
    }

    /// Adds a group of edits to the manifest; a failure stops all writes.
    pub(crate) fn append(&self, manifest: &mut Option<Manifest>, edits: &[Edit]) -> Result<()> {
        let Some(manifest) = manifest else { return Err(closed()) };
        let before = manifest.bytes_written();
        let appended = manifest.append(edits).inspect_err(|e| {
            self.halt.stop(e.clone());
            self.signals.finished();
        });
        self.counters.manifest_bytes.add(manifest.bytes_written() - before);
        appended
    }

    /// Makes `edits` durable and shows the tree they lead to.
    pub(crate) fn change_tree(&self, manifest: &mut Option<Manifest>, edits: &[Edit]) -> Result<()> {
        let version = self.version.load_arc();
        let tree = version.tree.apply(edits, |meta| crate::tree::output::open_table(self, meta))?;
        self.append(manifest, edits)?;
        self.install(Arc::new(tree), version.oldest_base());
        Ok(())
    }

    /// A table that is no longer part of the tree: its file goes with the last reader.
    pub(crate) fn discard(&self, table: &Arc<Table>) {
        let (vfs, path) =
            (std::sync::Arc::clone(&self.vfs), crate::tree::output::path_of(&self.dir, table.meta().id));
        // What cannot be removed now is found and removed at the next open.
        table.mark_obsolete(Box::new(move || drop(vfs.remove(&path))));
        if let Some(cache) = &self.cache {
            cache.remove_tables(|id| id == table.meta().id);
        }
    }

    /// Makes everything committed so far durable.
    pub(crate) fn sync(&self) -> Result<()> {
        if self.options.read_only {
            return Ok(());
        }
        self.halt.check()?;
        if self.backing == Backing::Anonymous {
            return self.flush();
        }
        let tail = self.version.pin().tail();
        if self.group.is_settled(tail) {
            return Ok(());
        }
        self.wait_durable(tail)
    }

    /// Waits until everything below `address` is durable; a failure stops all writes.
    fn wait_durable(&self, address: u64) -> Result<()> {
        let sound = || self.halt.check_failed();
        self.group.wait(address, &self.in_flight, sound).inspect_err(|e| self.halt.stop(e.clone()))
    }
}

/// The handle's database was closed.
pub(crate) fn closed() -> Error {
    Error::new(ErrorKind::Closed, "the database was closed")
}
