//! Row locks: which pessimistic transaction has which key, who waits for whom, and the cycles among them.
//!
//! A lock on a key is exclusive and held to the end of its transaction; only prepared transactions also hold shared ones, on
//! what they have read: keys, and ranges, which are few. Whoever waits says for whom: since each transaction waits
//! for one lock at a time, and each lock has one holder, the waits form chains, and a chain that leads back to its
//! beginning is a deadlock. It is looked for whenever a wait begins, or begins anew because another transaction got the
//! lock first: the one that closes the cycle is told, at once, and by name.
//!
//! Writers that take no locks look here only while any are held (see [`Gate`](super::Gate)): those wait until their keys are free.

use crate::db::core::lock;
use crate::db::{Bounds, range};
use crate::entry::Prefix;
use crate::io::Vfs;
use crate::io::checksum::key_hash;
use crate::sync::{Condvar, Mutex, MutexGuard, Padded};
use crate::{Error, ErrorKind, Result};
use std::collections::HashMap;
use std::fmt::Write;
use std::sync::atomic::{
    AtomicU64, AtomicUsize,
    Ordering::{Relaxed, SeqCst},
};
use std::time::Duration;

const SHARDS: usize = 64;

/// The locks of a database.
pub(crate) struct Locks {
    shards: Box<[Padded<Shard>]>,
    /// Taken inside a shard's lock, never the other way round.
    ranges: Mutex<Vec<RangeLock>>,
    /// How many ranges there are: nearly always none.
    range_count: AtomicUsize,
    /// For each transaction that waits, for whom and which key. Taken inside a shard's lock, never the other way round.
    waits: Mutex<HashMap<u64, Wait>>,
    next: AtomicU64,
}

#[derive(Default)]
struct Shard {
    held: Mutex<Held>,
    freed: Condvar,
}

/// Internal keys, and the numbers of the transactions that hold them.
#[derive(Default)]
struct Held {
    exclusive: HashMap<Box<[u8]>, u64>,
    shared: HashMap<Box<[u8]>, Vec<u64>>,
}

impl Held {
    /// Who keeps `me` from having the key for itself.
    fn other(&self, key: &[u8], me: u64) -> Option<u64> {
        let exclusive = self.exclusive.get(key).copied().filter(|&id| id != me);
        exclusive.or_else(|| self.shared.get(key)?.iter().copied().find(|&id| id != me))
    }
}

/// A range that a prepared transaction has read.
struct RangeLock {
    holder: u64,
    family: u32,
    bounds: Bounds,
}

struct Wait {
    holder: u64,
    key: Box<[u8]>,
}

/// A transaction among those that lock.
#[derive(Debug)]
pub(crate) struct Holder {
    pub(crate) id: u64,
    /// The internal keys it holds, and whether for itself alone.
    keys: Vec<(Box<[u8]>, bool)>,
    /// How many ranges it holds.
    ranges: usize,
}

impl Holder {
    /// How many locks it holds.
    pub(crate) fn count(&self) -> usize {
        self.keys.len() + self.ranges
    }
}

/// In the number of a holder that is prepared, or about to be.
const PREPARED: u64 = 1 << 63;

fn who(holder: u64) -> String {
    let prepared = if holder & PREPARED != 0 { "the prepared transaction" } else { "transaction" };
    format!("{prepared} {}", holder & !PREPARED)
}

fn name(internal: &[u8]) -> String {
    let (_, key) = Prefix::split(internal).unwrap_or((0, internal));
    format!("\"{}\"", key.escape_ascii())
}

impl Locks {
    pub(crate) fn new() -> Locks {
        Locks {
            shards: (0..SHARDS).map(|_| Padded::default()).collect(),
            ranges: Mutex::default(),
            range_count: AtomicUsize::new(0),
            waits: Mutex::default(),
            next: AtomicU64::new(1),
        }
    }

    /// A transaction without locks yet.
    pub(crate) fn holder(&self) -> Holder {
        Holder { id: self.next.fetch_add(1, Relaxed), keys: Vec::new(), ranges: 0 }
    }

    /// A transaction that was prepared before the database was opened.
    pub(crate) fn prepared_holder(&self) -> Holder {
        Holder { id: self.next.fetch_add(1, Relaxed) | PREPARED, keys: Vec::new(), ranges: 0 }
    }

    /// Who keeps `me` from having the key for itself; `held` is its shard's.
    fn blocking(&self, held: &Held, key: &[u8], me: u64) -> Option<u64> {
        held.other(key, me).or_else(|| {
            if self.range_count.load(SeqCst) == 0 {
                return None;
            }
            let (in_family, user) = Prefix::split(key)?;
            let ranges = lock(&self.ranges);
            let other = ranges
                .iter()
                .find(|r| r.holder != me && r.family == in_family && range::contains(&r.bounds, user));
            other.map(|r| r.holder)
        })
    }

    fn shard(&self, key: &[u8]) -> &Shard {
        &self.shards[key_hash(key) as usize % SHARDS].0
    }

    /// Locks the internal key for `holder`, which does not have it yet, waiting for at most `most`.
    pub(crate) fn lock(&self, vfs: &dyn Vfs, holder: &mut Holder, key: &[u8], most: Duration) -> Result<()> {
        let shard = self.shard(key);
        let mut held = self.wait_free(vfs, shard, holder.id, key, most)?;
        held.exclusive.insert(key.into(), holder.id);
        drop(held);
        holder.keys.push((key.into(), true));
        Ok(())
    }

    /// As `lock`, without waiting; whether it could be had.
    pub(crate) fn try_lock(&self, holder: &mut Holder, key: &[u8]) -> bool {
        let mut held = lock(&self.shard(key).held);
        if self.blocking(&held, key, holder.id).is_some() {
            return false;
        }
        held.exclusive.insert(key.into(), holder.id);
        holder.keys.push((key.into(), true));
        true
    }

    /// Holds a key that was read, together with others that have read it; whether it could be had.
    pub(crate) fn try_share(&self, holder: &mut Holder, key: &[u8]) -> bool {
        let mut held = lock(&self.shard(key).held);
        if held.exclusive.get(key).is_some_and(|&id| id != holder.id) {
            return false;
        }
        held.shared.entry(key.into()).or_default().push(holder.id);
        holder.keys.push((key.into(), false));
        true
    }

    /// Holds a range that was read; whether it could be had, for nobody else has a key in it for itself.
    pub(crate) fn try_range(&self, holder: &mut Holder, family: u32, bounds: &Bounds) -> bool {
        // First the range, then the look at the keys: whoever locks one in between does the opposite.
        lock(&self.ranges).push(RangeLock { holder: holder.id, family, bounds: bounds.clone() });
        self.range_count.fetch_add(1, SeqCst);
        holder.ranges += 1;
        self.shards.iter().all(|shard| {
            let held = lock(&shard.0.held);
            held.exclusive.iter().all(|(key, &id)| {
                id == holder.id
                    || Prefix::split(key)
                        .is_none_or(|(f, user)| f != family || !range::contains(bounds, user))
            })
        })
    }

    /// Makes the holder one that is prepared: nobody passes its locks, not even who runs alone. Only such a one takes shared
    /// locks and ranges, so it has none yet.
    pub(crate) fn prepare(&self, holder: &mut Holder) {
        debug_assert!(holder.ranges == 0 && holder.keys.iter().all(|(_, alone)| *alone));
        holder.id |= PREPARED;
        for (key, _) in &holder.keys {
            lock(&self.shard(key).held).exclusive.insert(key.clone(), holder.id);
        }
    }

    /// Waits until nobody has the internal key: for a writer that takes no locks.
    pub(crate) fn wait_until_free(&self, vfs: &dyn Vfs, key: &[u8], most: Duration) -> Result<()> {
        self.wait_free(vfs, self.shard(key), 0, key, most).map(drop)
    }

    /// Whether `holder` has the internal key.
    pub(crate) fn has(&self, holder: &Holder, key: &[u8]) -> bool {
        lock(&self.shard(key).held).exclusive.get(key) == Some(&holder.id)
    }

    /// Whether anybody has the internal key, or has read it and is prepared.
    pub(crate) fn is_held(&self, key: &[u8]) -> bool {
        self.blocking(&lock(&self.shard(key).held), key, 0).is_some()
    }

    /// Whether a prepared transaction other than `me` has the internal key, or has read it.
    pub(crate) fn is_prepared(&self, key: &[u8], me: u64) -> bool {
        self.blocking(&lock(&self.shard(key).held), key, me).is_some_and(|id| id & PREPARED != 0)
    }

    fn wait_free<'a>(
        &self,
        vfs: &dyn Vfs,
        shard: &'a Shard,
        waiter: u64,
        key: &[u8],
        most: Duration,
    ) -> Result<MutexGuard<'a, Held>> {
        let mut held = lock(&shard.held);
        if self.blocking(&held, key, waiter).is_none() {
            return Ok(held);
        }
        let deadline = vfs.monotonic_ns().saturating_add(most.as_nanos().min(u128::from(u64::MAX)) as u64);
        let _waiting = Waiting { locks: self, waiter };
        let mut late = false;
        while let Some(holder) = self.blocking(&held, key, waiter) {
            self.note_wait(waiter, holder, key)?;
            let now = vfs.monotonic_ns();
            if late || now >= deadline {
                return Err(Error::new(
                    ErrorKind::LockTimeout,
                    format!(
                        "waited {most:?} for the lock of the key {}, which {} holds; try again, or raise \
                         `TxOptions::lock_timeout`",
                        name(key),
                        who(holder)
                    ),
                ));
            }
            let rest = Duration::from_nanos(deadline - now);
            let waited = shard.freed.wait_timeout(held, rest).unwrap_or_else(|e| e.into_inner());
            // Also where the clock stands still, as a simulated one may.
            late = waited.1.timed_out();
            held = waited.0;
        }
        Ok(held)
    }

    /// Notes that `waiter` waits for `holder`; fails if that closes a cycle. A plain writer (0) holds nothing, and closes
    /// none.
    fn note_wait(&self, waiter: u64, holder: u64, key: &[u8]) -> Result<()> {
        if waiter == 0 {
            return Ok(());
        }
        let mut waits = lock(&self.waits);
        let mut cycle = format!("transaction {waiter} waits for the key {}", name(key));
        let mut at = holder;
        loop {
            let _ = write!(cycle, ", which {} holds", who(at));
            if at == waiter {
                return Err(Error::new(
                    ErrorKind::Deadlock,
                    format!(
                        "a deadlock: {cycle}; roll this transaction back and run it again (`Db::update` does so by itself)"
                    ),
                ));
            }
            let Some(wait) = waits.get(&at) else { break };
            let _ = write!(cycle, " and which waits for the key {}", name(&wait.key));
            at = wait.holder;
        }
        waits.insert(waiter, Wait { holder, key: key.into() });
        Ok(())
    }

    /// Gives up the locks that `holder` took after its first `keep`.
    pub(crate) fn release(&self, holder: &mut Holder, keep: usize) {
        if holder.count() <= keep {
            return;
        }
        for (key, alone) in holder.keys.drain(keep.min(holder.keys.len())..) {
            let shard = self.shard(&key);
            let mut held = lock(&shard.held);
            if alone {
                held.exclusive.remove(&key);
            } else if let Some(sharing) = held.shared.get_mut(&key) {
                if let Some(at) = sharing.iter().position(|&id| id == holder.id) {
                    sharing.swap_remove(at);
                }
                if sharing.is_empty() {
                    held.shared.remove(&key);
                }
            }
            drop(held);
            shard.freed.notify_all();
        }
        // Only a prepared transaction has any, and it ends as a whole.
        if keep == 0 && holder.ranges > 0 {
            lock(&self.ranges).retain(|r| r.holder != holder.id);
            self.range_count.fetch_sub(holder.ranges, SeqCst);
            holder.ranges = 0;
            for shard in &self.shards {
                drop(lock(&shard.0.held));
                shard.0.freed.notify_all();
            }
        }
        // Whoever was waiting for these locks may not have woken up yet. That it waits for this holder is no longer true, and
        // would close a circle that is none if the holder went on to wait for it.
        let kept = |key: &[u8]| holder.keys.iter().any(|(k, _)| **k == *key);
        lock(&self.waits).retain(|_, wait| wait.holder != holder.id || kept(&wait.key));
    }
}

/// Ends a wait however it ends.
struct Waiting<'a> {
    locks: &'a Locks,
    waiter: u64,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if self.waiter != 0 {
            lock(&self.locks.waits).remove(&self.waiter);
        }
    }
}
