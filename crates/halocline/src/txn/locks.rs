//! Row locks: which pessimistic transaction has which key, who waits for whom, and the cycles among them.
//!
//! A lock is exclusive and held to the end of its transaction. Whoever waits says for whom: since each transaction waits
//! for one lock at a time, and each lock has one holder, the waits form chains, and a chain that leads back to its
//! beginning is a deadlock. It is looked for whenever a wait begins, or begins anew because another transaction got the
//! lock first: the one that closes the cycle is told, at once, and by name.
//!
//! Writers that take no locks look here only while any are held (see [`Gate`](super::Gate)): those wait until their keys are free.

use crate::db::core::lock;
use crate::entry::Prefix;
use crate::io::Vfs;
use crate::io::checksum::key_hash;
use crate::sync::{Condvar, Mutex, MutexGuard, Padded};
use crate::{Error, ErrorKind, Result};
use std::collections::HashMap;
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

const SHARDS: usize = 64;

/// The locks of a database.
pub(crate) struct Locks {
    shards: Box<[Padded<Shard>]>,
    /// For each transaction that waits, for whom and which key. Taken inside a shard's lock, never the other way round.
    waits: Mutex<HashMap<u64, Wait>>,
    next: AtomicU64,
}

#[derive(Default)]
struct Shard {
    /// Internal keys, and the numbers of the transactions that hold them.
    held: Mutex<HashMap<Box<[u8]>, u64>>,
    freed: Condvar,
}

struct Wait {
    holder: u64,
    key: Box<[u8]>,
}

/// A transaction among those that lock.
#[derive(Debug)]
pub(crate) struct Holder {
    pub(crate) id: u64,
    /// The internal keys it holds.
    pub(crate) keys: Vec<Box<[u8]>>,
}

fn name(internal: &[u8]) -> String {
    let (_, key) = Prefix::split(internal).unwrap_or((0, internal));
    format!("\"{}\"", key.escape_ascii())
}

impl Locks {
    pub(crate) fn new() -> Locks {
        Locks {
            shards: (0..SHARDS).map(|_| Padded::default()).collect(),
            waits: Mutex::default(),
            next: AtomicU64::new(1),
        }
    }

    /// A transaction without locks yet.
    pub(crate) fn holder(&self) -> Holder {
        Holder { id: self.next.fetch_add(1, Relaxed), keys: Vec::new() }
    }

    fn shard(&self, key: &[u8]) -> &Shard {
        &self.shards[key_hash(key) as usize % SHARDS].0
    }

    /// Locks the internal key for `holder`, which does not have it yet, waiting for at most `most`.
    pub(crate) fn lock(&self, vfs: &dyn Vfs, holder: &mut Holder, key: &[u8], most: Duration) -> Result<()> {
        let shard = self.shard(key);
        let mut held = self.wait_free(vfs, shard, holder.id, key, most)?;
        held.insert(key.into(), holder.id);
        drop(held);
        holder.keys.push(key.into());
        Ok(())
    }

    /// Waits until nobody has the internal key: for a writer that takes no locks.
    pub(crate) fn wait_until_free(&self, vfs: &dyn Vfs, key: &[u8], most: Duration) -> Result<()> {
        self.wait_free(vfs, self.shard(key), 0, key, most).map(drop)
    }

    /// Whether `holder` has the internal key.
    pub(crate) fn has(&self, holder: &Holder, key: &[u8]) -> bool {
        lock(&self.shard(key).held).get(key) == Some(&holder.id)
    }

    /// Whether anybody has the internal key.
    pub(crate) fn is_held(&self, key: &[u8]) -> bool {
        lock(&self.shard(key).held).contains_key(key)
    }

    fn wait_free<'a>(
        &self,
        vfs: &dyn Vfs,
        shard: &'a Shard,
        waiter: u64,
        key: &[u8],
        most: Duration,
    ) -> Result<MutexGuard<'a, HashMap<Box<[u8]>, u64>>> {
        let mut held = lock(&shard.held);
        if !held.contains_key(key) {
            return Ok(held);
        }
        let deadline = vfs.monotonic_ns().saturating_add(most.as_nanos().min(u128::from(u64::MAX)) as u64);
        let _waiting = Waiting { locks: self, waiter };
        while let Some(&holder) = held.get(key) {
            self.note_wait(waiter, holder, key)?;
            let now = vfs.monotonic_ns();
            if now >= deadline {
                return Err(Error::new(
                    ErrorKind::LockTimeout,
                    format!(
                        "waited {most:?} for the lock of the key {}, which transaction {holder} holds; try again, or \
                         raise `TxOptions::lock_timeout`",
                        name(key)
                    ),
                ));
            }
            let rest = Duration::from_nanos(deadline - now);
            held = shard.freed.wait_timeout(held, rest).unwrap_or_else(|e| e.into_inner()).0;
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
            let _ = write!(cycle, ", which transaction {at} holds");
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
        for key in holder.keys.drain(keep..) {
            let shard = self.shard(&key);
            lock(&shard.held).remove(&key);
            shard.freed.notify_all();
        }
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
