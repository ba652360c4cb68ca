//! Sled: a lock-free tree over a log of page fragments.
//!
//! A write lands in the log's buffer in the process, and reaches the file when the buffer is full, when the flusher's
//! timer fires or at a flush: without a flush at each commit, nothing survives a kill. On Linux a flush is
//! `sync_file_range`, which leaves the file's length and the disk's cache alone: it promises nothing about power loss,
//! though the documentation speaks of `fsync`, and so there is no such class. Its iterators see writes that go on
//! meanwhile: they are no snapshots. It compresses with Zstd or not at all: here, not at all.

use super::{Config, Cursor, Durability, Engine, Result, Session};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::path::Path;
use std::time::Duration;

/// The version of the crate, which does not tell it at run time.
pub const VERSION: &str = "0.34.7";

/// The classes, and how this engine is told.
pub const CLASSES: [(Durability, &str); 2] = [
    (Durability::None, "flush_every_ms(500) (the default): the log's buffer is in the process"),
    (Durability::Process, "flush() at each commit: written, and given to the disk by sync_file_range"),
];

struct Sled {
    db: sled::Db,
    flush: bool,
}

fn words(error: sled::Error) -> String {
    format!("sled: {error}")
}

/// Opens a database in `dir`.
pub fn open(dir: &Path, config: &Config) -> Result<Box<dyn Engine>> {
    // Its page cache holds written pages too: it gets what an LSM tree has for its cache and its memtable together.
    let cache = config.cache.saturating_add(config.write_buffer) as u64;
    let db = sled::Config::new()
        .path(dir)
        .cache_capacity(cache)
        .mode(sled::Mode::HighThroughput)
        .open()
        .map_err(words)?;
    Ok(Box::new(Sled { db, flush: config.durability != Durability::None }))
}

impl Sled {
    #[inline]
    fn persist(&self) -> Result<()> {
        if self.flush { self.db.flush().map(drop).map_err(words) } else { Ok(()) }
    }
}

impl Engine for Sled {
    fn session(&self) -> Result<Box<dyn Session + '_>> {
        Ok(Box::new(SledSession { e: self, batch: sled::Batch::default(), value: None }))
    }
    fn settle(&self, _limit: Duration) -> Result<bool> {
        // Merging of page fragments happens within reads and writes; what is left is the flush.
        self.db.flush().map_err(words)?;
        Ok(true)
    }
    fn stats(&self) -> BTreeMap<String, String> {
        self.db
            .size_on_disk()
            .map(|bytes| BTreeMap::from([("disk_bytes".into(), bytes.to_string())]))
            .unwrap_or_default()
    }
    fn close(self: Box<Self>) -> Result<()> {
        self.db.flush().map(drop).map_err(words)
    }
}

struct SledSession<'a> {
    e: &'a Sled,
    batch: sled::Batch,
    value: Option<sled::IVec>,
}

impl Session for SledSession<'_> {
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.e.db.insert(key, value).map_err(words)?;
        self.e.persist()
    }
    fn delete(&mut self, key: &[u8]) -> Result<()> {
        self.e.db.remove(key).map_err(words)?;
        self.e.persist()
    }
    fn batch_put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.batch.insert(key, value);
        Ok(())
    }
    fn batch_delete(&mut self, key: &[u8]) -> Result<()> {
        self.batch.remove(key);
        Ok(())
    }
    fn commit(&mut self) -> Result<()> {
        self.e.db.apply_batch(std::mem::take(&mut self.batch)).map_err(words)?;
        self.e.persist()
    }
    fn get(&mut self, key: &[u8]) -> Result<Option<&[u8]>> {
        self.value = self.e.db.get(key).map_err(words)?;
        Ok(self.value.as_deref())
    }
    fn cursor(&mut self) -> Result<Box<dyn Cursor + '_>> {
        Ok(Box::new(SledCursor { tree: &self.e.db, iter: None, forward: true, entry: None }))
    }
}

/// A range, begun anew at each seek and where the direction turns.
struct SledCursor<'a> {
    tree: &'a sled::Tree,
    iter: Option<sled::Iter>,
    forward: bool,
    entry: Option<(sled::IVec, sled::IVec)>,
}

impl SledCursor<'_> {
    fn begin(&mut self, range: (Bound<&[u8]>, Bound<&[u8]>), forward: bool) -> Result<bool> {
        self.iter = Some(self.tree.range::<&[u8], _>(range));
        self.forward = forward;
        self.step()
    }

    #[inline]
    fn step(&mut self) -> Result<bool> {
        let Some(iter) = &mut self.iter else { return Ok(false) };
        self.entry = if self.forward { iter.next() } else { iter.next_back() }.transpose().map_err(words)?;
        Ok(self.entry.is_some())
    }
}

impl Cursor for SledCursor<'_> {
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
