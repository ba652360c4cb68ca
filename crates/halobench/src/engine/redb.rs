//! Redb: copy-on-write B+trees in one file, one writer at a time.
//!
//! `begin_write` waits for the writer before, so threads queue in redb itself. A commit that is not synced
//! (`Durability::None`) stays in the process: there is no class that survives only a kill.
//!
//! A read transaction and an open table cost more than a lookup in it, so a session keeps its table while nothing is
//! committed, and opens a new one when something was: the count of commits, raised before a commit is acknowledged,
//! tells. That is what a program with redb inside can do, and each get still sees the newest commit. A write lets the
//! table go, so that old pages can be used again.

use super::batch::Batch;
use super::{Config, Cursor, Durability, Engine, Result, Session};
use redb::{AccessGuard, ReadableDatabase, ReadableTable, ReadableTableMetadata, TableDefinition};
use std::collections::BTreeMap;
use std::fmt::Display;
use std::ops::Bound;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The version of the crate, which does not tell it at run time.
pub const VERSION: &str = "4.5.0";

/// The classes, and how this engine is told.
pub const CLASSES: [(Durability, &str); 2] = [
    (Durability::None, "Durability::None: kept in the process until a durable commit"),
    (Durability::Sync, "Durability::Immediate (the default)"),
];

const TABLE: TableDefinition<'static, &'static [u8], &'static [u8]> = TableDefinition::new("default");

type Table = redb::ReadOnlyTable<&'static [u8], &'static [u8]>;

struct Redb {
    db: redb::Database,
    durability: redb::Durability,
    commits: AtomicU64,
}

fn words(error: impl Display) -> String {
    format!("redb: {error}")
}

/// Opens a database in `dir`.
pub fn open(dir: &Path, config: &Config) -> Result<Box<dyn Engine>> {
    // Its cache holds written pages too: it gets what an LSM tree has for its cache and its memtable together.
    let db = redb::Database::builder()
        .set_cache_size(config.cache.saturating_add(config.write_buffer))
        .create(dir.join("data.redb"))
        .map_err(words)?;
    let durability = match config.durability {
        Durability::Sync => redb::Durability::Immediate,
        _ => redb::Durability::None,
    };
    let engine = Redb { db, durability, commits: AtomicU64::new(0) };
    // The table must be there before anyone reads.
    let txn = engine.db.begin_write().map_err(words)?;
    txn.open_table(TABLE).map_err(words)?;
    txn.commit().map_err(words)?;
    Ok(Box::new(engine))
}

impl Redb {
    /// Makes the commits that wait in the process durable.
    fn persist(&self) -> Result<()> {
        let mut txn = self.db.begin_write().map_err(words)?;
        txn.set_durability(redb::Durability::Immediate).map_err(words)?;
        txn.commit().map_err(words)
    }

    /// One transaction, committed.
    fn write(&self, work: impl FnOnce(&mut redb::Table<'_, &[u8], &[u8]>) -> Result<()>) -> Result<()> {
        let mut txn = self.db.begin_write().map_err(words)?;
        txn.set_durability(self.durability).map_err(words)?;
        work(&mut txn.open_table(TABLE).map_err(words)?)?;
        txn.commit().map_err(words)?;
        self.commits.fetch_add(1, Ordering::Release);
        Ok(())
    }
}

impl Engine for Redb {
    fn session(&self) -> Result<Box<dyn Session + '_>> {
        Ok(Box::new(RedbSession { e: self, batch: Batch::default(), table: None, seen: 0, value: None }))
    }
    fn settle(&self, _limit: Duration) -> Result<bool> {
        // It has no background work; what is left is the sync.
        self.persist()?;
        Ok(true)
    }
    fn stats(&self) -> BTreeMap<String, String> {
        let figures = || {
            let stats = self.db.begin_read().ok()?.open_table(TABLE).ok()?.stats().ok()?;
            Some(BTreeMap::from([
                ("depth".into(), stats.tree_height().to_string()),
                ("leaf_pages".into(), stats.leaf_pages().to_string()),
                ("stored_bytes".into(), stats.stored_bytes().to_string()),
                ("fragmented_bytes".into(), stats.fragmented_bytes().to_string()),
            ]))
        };
        figures().unwrap_or_default()
    }
    fn close(self: Box<Self>) -> Result<()> {
        self.db.close().map_err(words)
    }
}

struct RedbSession<'a> {
    e: &'a Redb,
    batch: Batch,
    /// As of `seen` commits at least.
    table: Option<Table>,
    seen: u64,
    value: Option<AccessGuard<'static, &'static [u8]>>,
}

impl RedbSession<'_> {
    /// The table as of now.
    #[inline]
    fn table(&mut self) -> Result<&Table> {
        // Read before the transaction begins: what is committed in between is seen, and looked for once more.
        let commits = self.e.commits.load(Ordering::Acquire);
        if self.table.is_none() || commits != self.seen {
            self.release();
            self.table = Some(self.e.db.begin_read().map_err(words)?.open_table(TABLE).map_err(words)?);
            self.seen = commits;
        }
        self.table.as_ref().ok_or_else(|| "redb: no table".into())
    }

    /// Lets go of the snapshot.
    fn release(&mut self) {
        self.value = None;
        self.table = None;
    }
}

impl Session for RedbSession<'_> {
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.release();
        self.e.write(|table| table.insert(key, value).map(drop).map_err(words))
    }
    fn delete(&mut self, key: &[u8]) -> Result<()> {
        self.release();
        self.e.write(|table| table.remove(key).map(drop).map_err(words))
    }
    fn batch_put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.batch.push(key, Some(value));
        Ok(())
    }
    fn batch_delete(&mut self, key: &[u8]) -> Result<()> {
        self.batch.push(key, None);
        Ok(())
    }
    fn commit(&mut self) -> Result<()> {
        self.release();
        let done = self.e.write(|table| {
            self.batch.iter().try_for_each(|(key, value)| match value {
                Some(value) => table.insert(key, value).map(drop).map_err(words),
                None => table.remove(key).map(drop).map_err(words),
            })
        });
        self.batch.clear();
        done
    }
    fn get(&mut self, key: &[u8]) -> Result<Option<&[u8]>> {
        self.value = None;
        self.value = self.table()?.get(key).map_err(words)?;
        Ok(self.value.as_ref().map(AccessGuard::value))
    }
    fn cursor(&mut self) -> Result<Box<dyn Cursor + '_>> {
        Ok(Box::new(RedbCursor { table: self.table()?, at: None, forward: true, entry: None }))
    }
}

type Entry<'a> = (AccessGuard<'a, &'static [u8]>, AccessGuard<'a, &'static [u8]>);

/// Redb's cursor stands in a gap between two entries; this one stands on the entry that the last move passed over.
struct RedbCursor<'a> {
    table: &'a Table,
    at: Option<redb::Cursor<'a, &'static [u8], &'static [u8]>>,
    forward: bool,
    entry: Option<Entry<'a>>,
}

impl RedbCursor<'_> {
    /// Begins behind nothing and before the first entry within the bound.
    #[inline]
    fn up(&mut self, bound: Bound<&[u8]>) -> Result<bool> {
        self.entry = None;
        self.at = Some(self.table.lower_bound(bound).map_err(words)?);
        self.forward = true;
        self.step()
    }

    /// Begins before nothing and behind the last entry within the bound.
    #[inline]
    fn down(&mut self, bound: Bound<&[u8]>) -> Result<bool> {
        self.entry = None;
        self.at = Some(self.table.upper_bound(bound).map_err(words)?);
        self.forward = false;
        self.step()
    }

    #[inline]
    fn step(&mut self) -> Result<bool> {
        let Some(at) = &mut self.at else { return Ok(false) };
        self.entry = if self.forward { at.next() } else { at.prev() }.map_err(words)?;
        Ok(self.entry.is_some())
    }

    /// Goes the given way: where it turns, the gap's first entry is the one it stands on.
    #[inline]
    fn go(&mut self, forward: bool) -> Result<bool> {
        if self.forward != forward {
            self.forward = forward;
            self.step()?;
        }
        self.step()
    }
}

impl Cursor for RedbCursor<'_> {
    fn seek_first(&mut self) -> Result<bool> {
        self.up(Bound::Unbounded)
    }
    fn seek(&mut self, key: &[u8]) -> Result<bool> {
        self.up(Bound::Included(key))
    }
    fn next(&mut self) -> Result<bool> {
        self.go(true)
    }
    fn seek_last(&mut self) -> Result<bool> {
        self.down(Bound::Unbounded)
    }
    fn seek_back(&mut self, key: &[u8]) -> Result<bool> {
        self.down(Bound::Included(key))
    }
    fn prev(&mut self) -> Result<bool> {
        self.go(false)
    }
    fn key(&self) -> &[u8] {
        self.entry.as_ref().map_or(&[], |(key, _)| key.value())
    }
    fn value(&mut self) -> Result<&[u8]> {
        Ok(self.entry.as_ref().map_or(&[], |(_, value)| value.value()))
    }
}
