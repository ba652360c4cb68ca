//! The gate that every commit passes: one load of a word that is nearly always 0.
//!
//! It is not 0 while row locks are held, and while a transaction runs alone. A commit looks at it after it has entered its
//! in-flight slot; whoever changes it waits, afterwards, until everyone who was in a slot has left it, or has told its place
//! in the log. So a commit either saw the change, or was complete before the one who made it went on, or lies below every
//! address that is read from then on, and is waited for there.
//!
//! A transaction that `Db::update` could not commit against its rivals runs **alone**: all other commits wait until it is
//! done, so nothing it reads can change, but for what its own thread writes past it. It does not wait for row locks, whose holders would wait for it at the gate; one of
//! them may fail with a conflict then, and is run again.

use crate::db::WriteBatch;
use crate::db::core::{Core, Ops, lock};
use crate::entry::{self, Entry};
use crate::sync::atomic::{AtomicU64, Ordering::SeqCst};
use crate::sync::{Condvar, Mutex, MutexGuard, thread_index};
use crate::txn::locks::Holder;
use crate::{Error, ErrorKind, Result, db};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

/// Set while a transaction runs alone; the other bits count the row locks held.
const ALONE: u64 = 1 << 63;
/// Longest wait of a plain write for a row lock.
const PLAIN_WAIT: Duration = Duration::from_secs(1);

/// See the module.
#[derive(Default)]
pub(crate) struct Gate {
    word: AtomicU64,
    /// Whose turn it is to be alone.
    turn: Mutex<()>,
    /// One more than the index of the thread that is alone, or 0. A thread only asks whether it is the one, so what it sees
    /// of others' stores does not matter.
    thread: AtomicUsize,
    /// Whether somebody is.
    alone: Mutex<bool>,
    opened: Condvar,
}

/// A transaction that runs alone, until this is dropped.
pub(crate) struct Alone<'a> {
    gate: &'a Gate,
    /// `None` within another one of the same thread, which ends it.
    turn: Option<MutexGuard<'a, ()>>,
}

impl Drop for Alone<'_> {
    fn drop(&mut self) {
        if self.turn.is_none() {
            return;
        }
        self.gate.thread.store(0, Relaxed);
        // Both at once for those who wait, or they would come back before they may pass, again and again.
        let mut alone = lock(&self.gate.alone);
        *alone = false;
        self.gate.word.fetch_and(!ALONE, SeqCst);
        drop(alone);
        self.gate.opened.notify_all();
    }
}

impl Gate {
    /// Whether a commit has to look closer.
    #[inline]
    pub(crate) fn is_shut(&self) -> bool {
        self.word.load(SeqCst) != 0
    }

    /// From here on no other commit takes place: waits for those under way.
    pub(crate) fn alone<'a>(&'a self, core: &Core) -> Alone<'a> {
        if self.is_alone_here() {
            return Alone { gate: self, turn: None };
        }
        let turn = lock(&self.turn);
        *lock(&self.alone) = true;
        self.word.fetch_or(ALONE, SeqCst);
        self.thread.store(thread_index() + 1, Relaxed);
        let alone = Alone { gate: self, turn: Some(turn) };
        core.in_flight.wait_all_left();
        alone
    }

    /// Whether this thread runs a transaction alone: its own commits pass.
    fn is_alone_here(&self) -> bool {
        self.thread.load(Relaxed) == thread_index() + 1
    }

    /// Whether a commit of `ops` may go on now, in its slot. `locks` are its transaction's own.
    pub(crate) fn lets_pass(&self, core: &Core, ops: &Ops<'_>, locks: Option<&Holder>) -> bool {
        if self.is_alone_here() {
            let me = locks.map_or(0, |holder| holder.id);
            return !touches(ops, |key| core.locks.is_prepared(key, me));
        }
        let word = self.word.load(SeqCst);
        word & ALONE == 0 && (word == 0 || locks.is_some() || first_held(core, ops).is_none())
    }

    /// Waits, in no slot, until it is worth trying again.
    pub(crate) fn wait(&self, core: &Core, ops: &Ops<'_>, locks: Option<&Holder>) -> Result<()> {
        if self.is_alone_here() {
            // It cannot wait for what others may only decide once it is done.
            return Err(prepared());
        }
        let mut alone = lock(&self.alone);
        while *alone {
            core.halt.check()?;
            alone = self.opened.wait(alone).unwrap_or_else(|e| e.into_inner());
        }
        drop(alone);
        if locks.is_none()
            && let Some(key) = first_held(core, ops)
        {
            core.locks.wait_until_free(&*core.vfs, &key, PLAIN_WAIT)?;
        }
        // Much may have happened since the commit looked.
        core.halt.check()
    }

    /// Locks the internal key for `holder`; everyone who could still write to it without knowing is done afterwards.
    pub(crate) fn lock(&self, core: &Core, holder: &mut Holder, key: &[u8], most: Duration) -> Result<()> {
        self.word.fetch_add(1, SeqCst);
        let locked = core.locks.lock(&*core.vfs, holder, key, most);
        match locked {
            Ok(()) => core.in_flight.wait_all_left(),
            Err(_) => drop(self.word.fetch_sub(1, SeqCst)),
        }
        locked
    }

    /// One more lock for `holder` if `take` can have it without waiting; whether it could. Others may still be writing
    /// without knowing of it.
    pub(crate) fn try_lock(&self, holder: &mut Holder, take: impl FnOnce(&mut Holder) -> bool) -> bool {
        self.word.fetch_add(1, SeqCst);
        let before = holder.count();
        let had = take(holder);
        if holder.count() == before {
            self.word.fetch_sub(1, SeqCst);
        }
        had
    }

    /// Gives up the locks that `holder` took after its first `keep`.
    pub(crate) fn unlock(&self, core: &Core, holder: &mut Holder, keep: usize) {
        let before = holder.count();
        core.locks.release(holder, keep);
        self.word.fetch_sub((before - holder.count()) as u64, SeqCst);
    }
}

#[cold]
fn prepared() -> Error {
    Error::new(
        ErrorKind::LockTimeout,
        "the transaction writes to keys that a prepared transaction holds until it is decided: see `Db::prepared`",
    )
}

/// Whether `ops` has a key of which `is` holds.
fn touches(ops: &Ops<'_>, is: impl Fn(&[u8]) -> bool) -> bool {
    match ops {
        Ops::One { family, key, .. } => is(db::read::InternalKey::new(*family, key).as_slice()),
        Ops::Batch(batch) => keys(batch).any(|entry| is(entry.key)),
    }
}

/// The first key of `ops` that somebody has locked.
fn first_held(core: &Core, ops: &Ops<'_>) -> Option<Vec<u8>> {
    match ops {
        Ops::One { family, key, .. } => {
            let internal = db::read::InternalKey::new(*family, key);
            core.locks.is_held(internal.as_slice()).then(|| internal.as_slice().to_vec())
        }
        Ops::Batch(batch) => {
            keys(batch).find(|entry| core.locks.is_held(entry.key)).map(|entry| entry.key.to_vec())
        }
    }
}

fn keys(batch: &WriteBatch) -> impl Iterator<Item = Entry<'_>> {
    batch.starts.iter().filter_map(|&start| entry::decode(&batch.bytes[start as usize..]))
}
