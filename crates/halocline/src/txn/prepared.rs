//! Two-phase commit: transactions that are ready to commit, whatever happens, until somebody decides.
//!
//! A prepared transaction lies in a column family of the engine's own, [`FAMILY`], under the name it was given: its entries,
//! and what it has read. So it is as durable, as checked and as merged as anything else, and the log has no notion of it. To
//! commit it is one more commit that holds its entries and the removal of its name: atomic like any.
//!
//! ```text
//! format   u8     1
//! keys     u32    then for each: length u32, internal key: what was read and must not change
//! ranges   u32    then for each: family u32, two bounds: kind u8 (0 none, 1 included, 2 excluded), length u32, key
//! entries  ..     as in a batch
//! ```
//!
//! Until the decision its keys are locked: those it writes, and at the levels that check reads, what it has read, ranges
//! included. Everybody respects these locks, so nothing can come between. Opening the database takes them again.

use super::gate::Gate;
use super::locks::Holder;
use super::reads::RangeRead;
use super::tx::Tx;
use crate::db::core::{Check, Core, Ops, Version, lock};
use crate::db::{Bounds, WriteBatch};
use crate::entry::{self, MAX_VALUE, Prefix};
use crate::sync::{Arc, Mutex};
use crate::{ColumnFamily, Db, Durability, Error, ErrorKind, Result, Transaction};
use std::collections::BTreeMap;
use std::ops::Bound;

/// The name of the column family; users' names do not begin like that.
pub(crate) const FAMILY: &str = "\0prepared";
const FORMAT: u8 = 1;
/// Longest name of a prepared transaction.
const MAX_NAME: usize = 1024;

/// The prepared transactions of an open database, by name.
#[derive(Default)]
pub(crate) struct PreparedSet(Mutex<BTreeMap<Vec<u8>, Ready>>);

/// One that waits for its decision.
struct Ready {
    holder: Holder,
    /// Encoded entries.
    entries: Vec<u8>,
}

/// A commit by a transaction with these locks, which nothing can be in the way of.
struct Holding<'a>(&'a Holder);

impl Check for Holding<'_> {
    const CHECKS: bool = false;
    fn check(&self, _core: &Core, _version: &Version, _lsn: u64) -> Result<()> {
        Ok(())
    }
    fn locks(&self) -> Option<&Holder> {
        Some(self.0)
    }
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
    out.extend_from_slice(bytes);
}

fn put_bound(out: &mut Vec<u8>, bound: &Bound<Vec<u8>>) {
    match bound {
        Bound::Unbounded => out.push(0),
        Bound::Included(key) => {
            out.push(1);
            put_bytes(out, key);
        }
        Bound::Excluded(key) => {
            out.push(2);
            put_bytes(out, key);
        }
    }
}

fn encode(keys: &[&[u8]], ranges: &[RangeRead], entries: &[u8]) -> Vec<u8> {
    let mut out = vec![FORMAT];
    out.extend_from_slice(&(keys.len() as u32).to_le_bytes());
    keys.iter().for_each(|key| put_bytes(&mut out, key));
    out.extend_from_slice(&(ranges.len() as u32).to_le_bytes());
    for range in ranges {
        out.extend_from_slice(&range.family.to_le_bytes());
        put_bound(&mut out, &range.bounds.0);
        put_bound(&mut out, &range.bounds.1);
    }
    out.extend_from_slice(entries);
    out
}

/// What a prepared transaction was written as.
struct Decoded<'a> {
    keys: Vec<&'a [u8]>,
    ranges: Vec<(u32, Bounds)>,
    entries: &'a [u8],
}

/// Reads from the front of bytes, and never beyond.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn u8(&mut self) -> Option<u8> {
        let (&first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(first)
    }
    fn u32(&mut self) -> Option<u32> {
        let (first, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u32::from_le_bytes(*first))
    }
    fn bytes(&mut self) -> Option<&'a [u8]> {
        let len = self.u32()? as usize;
        let (first, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(first)
    }
    fn bound(&mut self) -> Option<Bound<Vec<u8>>> {
        Some(match self.u8()? {
            0 => Bound::Unbounded,
            1 => Bound::Included(self.bytes()?.to_vec()),
            2 => Bound::Excluded(self.bytes()?.to_vec()),
            _ => return None,
        })
    }
}

fn decode(bytes: &[u8]) -> Option<Decoded<'_>> {
    let mut reader = Reader(bytes);
    if reader.u8()? != FORMAT {
        return None;
    }
    let mut keys = Vec::new();
    for _ in 0..reader.u32()? {
        keys.push(reader.bytes()?);
    }
    let mut ranges = Vec::new();
    for _ in 0..reader.u32()? {
        ranges.push((reader.u32()?, (reader.bound()?, reader.bound()?)));
    }
    let entries = reader.0;
    let mut rest = entries;
    while !rest.is_empty() {
        rest = &rest[entry::decode(rest)?.len..];
    }
    Some(Decoded { keys, ranges, entries })
}

fn damaged(core: &Core, name: &[u8]) -> Error {
    let message = format!(
        "the prepared transaction \"{}\" cannot be read: it is damaged, or of a later version",
        name.escape_ascii()
    );
    Error::corruption(&core.dir, 0, message)
}

fn unknown(name: &[u8]) -> Error {
    let message = format!("no prepared transaction is called \"{}\"", name.escape_ascii());
    Error::new(ErrorKind::Missing, message)
}

/// The keys of encoded entries.
fn keys_of(mut entries: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let entry = entry::decode(entries)?;
        entries = &entries[entry.len..];
        Some(entry.key)
    })
}

impl Transaction<'_> {
    /// The first phase of a two-phase commit: checks everything, makes it durable under `name` (at most 1024 bytes), and locks
    /// what it wrote and relies on. After that the commit cannot be refused: [`Db::commit_prepared`] or
    /// [`Db::rollback_prepared`] ends it, in this process or, after a crash, in the next one that opens the database. Until
    /// then, others wait for its keys, and fail with `LockTimeout`.
    ///
    /// Fails with `Conflict` if it could not be committed now; then it is rolled back.
    pub fn prepare(mut self, name: impl AsRef<[u8]>) -> Result<()> {
        self.tx().prepare(name.as_ref())
    }
}

impl Tx<'_> {
    fn prepare(&mut self, name: &[u8]) -> Result<()> {
        if name.is_empty() || name.len() > MAX_NAME {
            return Err(Error::invalid(format!("a prepared transaction's name has 1 to {MAX_NAME} bytes")));
        }
        if self.has_hooks() {
            return Err(Error::invalid(
                "a transaction with `on_commit` hooks cannot be prepared: its commit may come in another process",
            ));
        }
        self.settle_writes();
        let db = self.db().clone();
        let core = &db.core;
        let family = ColumnFamily::own(&db, FAMILY)?;
        let mut holder = self.take_locks();
        let prepared = self.write_prepared(&db, &family, name, &mut holder);
        match prepared {
            Ok(entries) => {
                lock(&core.prepared.0).insert(name.to_vec(), Ready { holder, entries });
                Ok(())
            }
            Err(e) => {
                core.gate.unlock(core, &mut holder, 0);
                Err(e)
            }
        }
    }

    fn write_prepared(
        &mut self,
        db: &Db,
        family: &ColumnFamily,
        name: &[u8],
        holder: &mut Holder,
    ) -> Result<Vec<u8>> {
        let core = &db.core;
        core.locks.prepare(holder);
        // One of a name at a time: the name is locked like a key of the family.
        let row = [Prefix::of(family.id()).as_slice(), name].concat();
        let exists =
            || Error::invalid(format!("a transaction is prepared as \"{}\" already", name.escape_ascii()));
        if !core.gate.try_lock(holder, |h| core.locks.try_lock(h, &row))
            || core.get(family.id(), name, u64::MAX)?.is_some()
        {
            return Err(exists());
        }
        let batch = self.writes().batch();
        batch.families.iter().try_for_each(|family| family.check_owner(core))?;
        let entries = batch.bytes.clone();
        let (keys, ranges) = {
            let reads = self.reads();
            (
                reads.all_keys().map(<[u8]>::to_vec).collect::<Vec<_>>(),
                reads.all_ranges().cloned().collect::<Vec<_>>(),
            )
        };
        let taken = || {
            Error::new(
                ErrorKind::Conflict,
                "the transaction was not prepared: another one holds a lock on what it wrote or read; run it again",
            )
        };
        for key in keys_of(&entries) {
            if !core.locks.has(holder, key) && !core.gate.try_lock(holder, |h| core.locks.try_lock(h, key)) {
                return Err(taken());
            }
        }
        for key in &keys {
            if !core.gate.try_lock(holder, |h| core.locks.try_share(h, key)) {
                return Err(taken());
            }
        }
        for range in &ranges {
            if !core.gate.try_lock(holder, |h| core.locks.try_range(h, range.family, &range.bounds)) {
                return Err(taken());
            }
        }
        // Whoever did not know of the locks is done. What is true now stays true.
        core.in_flight.wait_all_left();
        self.check_now()?;
        let key_slices: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
        let value = encode(&key_slices, &ranges, &entries);
        if value.len() > MAX_VALUE {
            let message = format!("{} bytes are too many to prepare: at most {MAX_VALUE}", value.len());
            return Err(Error::invalid(message));
        }
        let mut record = WriteBatch::new();
        record.put_cf(family, name, &value);
        let written = core.commit_if(&Ops::Batch(&record), Durability::Sync, &Holding(holder));
        written.inspect_err(|_| {
            // Where no log is kept it is there all the same if only its flush failed; it must not come back with a later one.
            let mut undo = WriteBatch::new();
            undo.delete_cf(family, name);
            let _ = core.commit_if(&Ops::Batch(&undo), Durability::None, &Holding(holder));
        })?;
        Ok(entries)
    }
}

impl Db {
    /// The names of the transactions that are prepared and not decided, in order: those of before a crash included.
    pub fn prepared(&self) -> Vec<Vec<u8>> {
        lock(&self.core.prepared.0).keys().cloned().collect()
    }

    /// The second phase: commits what was prepared as `name`, with at least this durability. `Missing` if there is none. After
    /// another error, [`prepared`](Db::prepared) tells whether it is still to be decided.
    pub fn commit_prepared(&self, name: impl AsRef<[u8]>, durability: Durability) -> Result<()> {
        self.decide(name.as_ref(), durability, true)
    }

    /// Drops what was prepared as `name`, durably: nothing of it is written. `Missing` if there is none.
    pub fn rollback_prepared(&self, name: impl AsRef<[u8]>) -> Result<()> {
        self.decide(name.as_ref(), Durability::Sync, false)
    }

    fn decide(&self, name: &[u8], durability: Durability, commit: bool) -> Result<()> {
        let core = &self.core;
        let family = ColumnFamily::own(self, FAMILY)?;
        // Out of the list while it is decided: of two who decide, one finds nothing.
        let mut ready = lock(&core.prepared.0).remove(name).ok_or_else(|| unknown(name))?;
        let entries: &[u8] = if commit { &ready.entries } else { &[] };
        let decided = WriteBatch::of_entries(entries).and_then(|mut batch| {
            batch.delete_cf(&family, name);
            core.commit_if(&Ops::Batch(&batch), durability, &Holding(&ready.holder))
        });
        match decided {
            Ok(_) => {
                core.gate.unlock(core, &mut ready.holder, 0);
                Ok(())
            }
            Err(e) => {
                // Without its name it is decided: only the durability failed.
                if matches!(core.get(family.id(), name, u64::MAX), Ok(None)) {
                    core.gate.unlock(core, &mut ready.holder, 0);
                } else {
                    lock(&core.prepared.0).insert(name.to_vec(), ready);
                }
                Err(e)
            }
        }
    }
}

/// Takes the locks of the transactions that were prepared before the database was opened.
pub(crate) fn recover(core: &Arc<Core>) -> Result<()> {
    let Some(family) = core.version.load_arc().tree.family_named(FAMILY).map(|family| family.id) else {
        return Ok(());
    };
    let gate: &Gate = &core.gate;
    for item in core.iter(family, (Bound::Unbounded, Bound::Unbounded)) {
        let (name, value) = item?;
        let found = decode(&value).ok_or_else(|| damaged(core, &name))?;
        let mut holder = core.locks.prepared_holder();
        let row = [Prefix::of(family).as_slice(), &name].concat();
        for key in std::iter::once(row.as_slice()).chain(keys_of(found.entries)) {
            if !core.locks.has(&holder, key) {
                gate.try_lock(&mut holder, |h| core.locks.try_lock(h, key));
            }
        }
        for key in &found.keys {
            gate.try_lock(&mut holder, |h| core.locks.try_share(h, key));
        }
        for (family, bounds) in &found.ranges {
            gate.try_lock(&mut holder, |h| core.locks.try_range(h, *family, bounds));
        }
        let ready = Ready { holder, entries: found.entries.to_vec() };
        lock(&core.prepared.0).insert(name.to_vec(), ready);
    }
    Ok(())
}
