//! Fjall: an LSM tree in Rust, one keyspace of one database.
//!
//! A read of a keyspace sees the newest commit; a cursor reads a snapshot, because a range of the keyspace itself is not
//! one. Single writes go through `insert` and `remove`, batches through the database's atomic batch.

use super::{Compression, Config, Cursor, Durability, Engine, Result, Session};
use fjall as fj;
use fjall::config::CompressionPolicy;
use fjall::{PersistMode, Readable};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::path::Path;
use std::time::{Duration, Instant};

/// The version of the crate, which does not tell it at run time.
pub const VERSION: &str = "3.1.13";

/// The classes, and how this engine is told. It has no timer that syncs.
pub const CLASSES: [(Durability, &str); 3] = [
    (Durability::None, "manual_journal_persist: the journal's buffer is in the process"),
    (Durability::Process, "PersistMode::Buffer (the default)"),
    (Durability::Sync, "persist(PersistMode::SyncData) at each commit"),
];

/// Most bytes of journals before the oldest memtable is flushed for their sake: fjall's default, or room for as many
/// memtables as it lets wait.
const LEAST_JOURNAL: u64 = 512 << 20;

struct Fjall {
    db: fj::Database,
    keys: fj::Keyspace,
    sync: bool,
    /// What a batch's commit persists by itself.
    persist: Option<PersistMode>,
}

fn words(error: fj::Error) -> String {
    format!("fjall: {error}")
}

/// Opens a database in `dir`.
pub fn open(dir: &Path, config: &Config) -> Result<Box<dyn Engine>> {
    let write_buffer = config.write_buffer as u64;
    let lz4 = config.compression == Compression::Lz4;
    let by_hand = config.durability != Durability::Process;
    let db = fj::Database::builder(dir)
        .cache_size(config.cache as u64)
        .max_journaling_size(LEAST_JOURNAL.max(write_buffer.saturating_mul(8)))
        .journal_compression(if lz4 { fj::CompressionType::Lz4 } else { fj::CompressionType::None })
        .manual_journal_persist(by_hand)
        .open()
        .map_err(words)?;
    let options = || {
        let mut options = fj::KeyspaceCreateOptions::default()
            .max_memtable_size(write_buffer)
            .manual_journal_persist(by_hand);
        if !lz4 {
            // With LZ4, its default stays: all levels but the two youngest are compressed.
            options = options.data_block_compression_policy(CompressionPolicy::disabled());
        }
        options
    };
    let keys = db.keyspace("default", options).map_err(words)?;
    let persist = match config.durability {
        Durability::None => None,
        Durability::Process | Durability::Interval => Some(PersistMode::Buffer),
        // What is needed to read the data back is synced by fdatasync too.
        Durability::Sync => Some(PersistMode::SyncData),
    };
    Ok(Box::new(Fjall { db, keys, sync: config.durability == Durability::Sync, persist }))
}

impl Engine for Fjall {
    fn session(&self) -> Result<Box<dyn Session + '_>> {
        Ok(Box::new(FjallSession { e: self, batch: None, value: None }))
    }
    fn settle(&self, limit: Duration) -> Result<bool> {
        let start = Instant::now();
        self.keys.rotate_memtable().map_err(words)?;
        // Fjall has no call that waits. A flush queues the merges it calls for, so a state in which nothing is sealed,
        // no merge runs and none ended is looked for twice, with time between for a queued one to begin.
        let mut quiet: Option<(Instant, usize)> = None;
        while start.elapsed() < limit {
            let merged = self.db.compactions_completed();
            let busy = self.keys.sealed_memtable_count() > 0
                || self.db.outstanding_flushes() > 0
                || self.db.active_compactions() > 0;
            match quiet {
                _ if busy => quiet = None,
                Some((since, before)) if before == merged => {
                    if since.elapsed() >= QUIET {
                        return Ok(true);
                    }
                }
                _ => quiet = Some((Instant::now(), merged)),
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        Ok(false)
    }
    fn stats(&self) -> BTreeMap<String, String> {
        BTreeMap::from([
            ("tables".into(), self.keys.table_count().to_string()),
            ("level0_tables".into(), self.keys.l0_table_count().to_string()),
            ("journals".into(), self.db.journal_count().to_string()),
            ("merges".into(), self.db.compactions_completed().to_string()),
            ("merging_s".into(), format!("{:.3}", self.db.time_compacting().as_secs_f64())),
            ("cached_bytes".into(), self.db.cache_size().to_string()),
            ("tables_bytes".into(), self.keys.disk_space().to_string()),
        ])
    }
    fn close(self: Box<Self>) -> Result<()> {
        // The drop joins the threads but tells no error: what a clean close must keep is synced before, and does.
        self.db.persist(PersistMode::SyncAll).map_err(words)
    }
}

/// How long nothing may happen before the background work counts as done.
const QUIET: Duration = Duration::from_millis(20);

struct FjallSession<'a> {
    e: &'a Fjall,
    batch: Option<fj::OwnedWriteBatch>,
    value: Option<fj::Slice>,
}

impl FjallSession<'_> {
    /// Syncs what a single write left in the journal's buffer, in that class.
    #[inline]
    fn persist(&self) -> Result<()> {
        if self.e.sync { self.e.db.persist(PersistMode::SyncData).map_err(words) } else { Ok(()) }
    }

    #[inline]
    fn batch(&mut self) -> &mut fj::OwnedWriteBatch {
        self.batch.get_or_insert_with(|| self.e.db.batch().durability(self.e.persist))
    }
}

impl Session for FjallSession<'_> {
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.e.keys.insert(key, value).map_err(words)?;
        self.persist()
    }
    fn delete(&mut self, key: &[u8]) -> Result<()> {
        self.e.keys.remove(key).map_err(words)?;
        self.persist()
    }
    fn batch_put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let keys = &self.e.keys;
        self.batch().insert(keys, key, value);
        Ok(())
    }
    fn batch_delete(&mut self, key: &[u8]) -> Result<()> {
        let keys = &self.e.keys;
        self.batch().remove(keys, key);
        Ok(())
    }
    fn commit(&mut self) -> Result<()> {
        self.batch.take().map_or(Ok(()), |batch| batch.commit().map_err(words))
    }
    fn get(&mut self, key: &[u8]) -> Result<Option<&[u8]>> {
        self.value = self.e.keys.get(key).map_err(words)?;
        Ok(self.value.as_deref())
    }
    fn cursor(&mut self) -> Result<Box<dyn Cursor + '_>> {
        Ok(Box::new(FjallCursor {
            keys: &self.e.keys,
            snapshot: self.e.db.snapshot(),
            iter: None,
            forward: true,
            entry: None,
        }))
    }
}

/// A range of the snapshot, begun anew at each seek and where the direction turns.
struct FjallCursor<'a> {
    keys: &'a fj::Keyspace,
    snapshot: fj::Snapshot,
    iter: Option<fj::Iter>,
    forward: bool,
    entry: Option<(fj::Slice, fj::Slice)>,
}

impl FjallCursor<'_> {
    fn begin(&mut self, range: (Bound<&[u8]>, Bound<&[u8]>), forward: bool) -> Result<bool> {
        // The old range holds blocks, and is of no use to the new one.
        self.iter = None;
        self.iter = Some(self.snapshot.range::<&[u8], _>(self.keys, range));
        self.forward = forward;
        self.step()
    }

    #[inline]
    fn step(&mut self) -> Result<bool> {
        let Some(iter) = &mut self.iter else { return Ok(false) };
        let found = if self.forward { iter.next() } else { iter.next_back() };
        self.entry = found.map(fj::Guard::into_inner).transpose().map_err(words)?;
        Ok(self.entry.is_some())
    }
}

impl Cursor for FjallCursor<'_> {
    fn seek_first(&mut self) -> Result<bool> {
        self.begin((Bound::Unbounded, Bound::Unbounded), true)
    }
    fn seek(&mut self, key: &[u8]) -> Result<bool> {
        self.begin((Bound::Included(key), Bound::Unbounded), true)
    }
    fn next(&mut self) -> Result<bool> {
        if self.forward {
            return self.step();
        }
        let Some((key, _)) = self.entry.take() else { return Ok(false) };
        self.begin((Bound::Excluded(&key), Bound::Unbounded), true)
    }
    fn seek_last(&mut self) -> Result<bool> {
        self.begin((Bound::Unbounded, Bound::Unbounded), false)
    }
    fn seek_back(&mut self, key: &[u8]) -> Result<bool> {
        self.begin((Bound::Unbounded, Bound::Included(key)), false)
    }
    fn prev(&mut self) -> Result<bool> {
        if !self.forward {
            return self.step();
        }
        let Some((key, _)) = self.entry.take() else { return Ok(false) };
        self.begin((Bound::Unbounded, Bound::Excluded(&key)), false)
    }
    fn key(&self) -> &[u8] {
        self.entry.as_ref().map_or(&[], |(key, _)| key)
    }
    fn value(&mut self) -> Result<&[u8]> {
        Ok(self.entry.as_ref().map_or(&[], |(_, value)| value))
    }
}
