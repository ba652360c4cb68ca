//! Halocline, the crate of this workspace.

use super::{Compression, Config, Cursor, Durability, Engine, Result, Session};
use halocline as hc;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

const INTERVAL: Duration = Duration::from_millis(100);

/// The classes, and how this engine is told.
pub const CLASSES: [(Durability, &str); 4] = [
    (Durability::None, "Durability::None"),
    (Durability::Process, "Durability::Process (the default)"),
    (Durability::Interval, "Durability::Interval(100 ms)"),
    (Durability::Sync, "Durability::Sync"),
];

pub struct Halocline {
    db: hc::Db,
}

fn words(error: hc::Error) -> String {
    error.to_string()
}

/// Opens a database in `dir`.
pub fn open(dir: &Path, config: &Config) -> Result<Box<dyn Engine>> {
    let db = hc::Options::new()
        .write_buffer(config.write_buffer)
        .cache(config.cache)
        .durability(match config.durability {
            Durability::None => hc::Durability::None,
            Durability::Process => hc::Durability::Process,
            Durability::Interval => hc::Durability::Interval(INTERVAL),
            Durability::Sync => hc::Durability::Sync,
        })
        .compression(match config.compression {
            Compression::None => hc::Compression::None,
            Compression::Lz4 => hc::Compression::Lz4,
        })
        .open(dir)
        .map_err(words)?;
    Ok(Box::new(Halocline { db }))
}

impl Engine for Halocline {
    fn session(&self) -> Result<Box<dyn Session + '_>> {
        Ok(Box::new(HaloclineSession { db: &self.db, batch: hc::WriteBatch::new(), value: None }))
    }
    fn settle(&self, _limit: Duration) -> Result<bool> {
        self.db.flush().map_err(words)?;
        self.db.wait_idle().map_err(words)?;
        Ok(true)
    }
    fn stats(&self) -> BTreeMap<String, String> {
        let s = self.db.stats();
        let levels: Vec<String> = s
            .levels
            .iter()
            .map(|l| format!("{} runs, {} files, {} bytes", l.runs, l.files, l.bytes))
            .collect();
        BTreeMap::from([
            ("levels".into(), levels.join("; ")),
            ("user_bytes_written".into(), s.user_bytes_written.to_string()),
            ("table_bytes_written".into(), s.table_bytes_written.to_string()),
            ("log_bytes_written".into(), s.log_bytes_written.to_string()),
            ("disk_bytes".into(), s.disk_bytes.to_string()),
            ("memory_bytes".into(), (s.memory.memtables + s.memory.tables + s.memory.cache).to_string()),
        ])
    }
    fn close(self: Box<Self>) -> Result<()> {
        self.db.close().map_err(words)
    }
}

struct HaloclineSession<'a> {
    db: &'a hc::Db,
    batch: hc::WriteBatch,
    value: Option<hc::Value>,
}

impl Session for HaloclineSession<'_> {
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.db.put(key, value).map_err(words)
    }
    fn delete(&mut self, key: &[u8]) -> Result<()> {
        self.db.delete(key).map_err(words)
    }
    fn batch_put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.batch.put(key, value);
        Ok(())
    }
    fn batch_delete(&mut self, key: &[u8]) -> Result<()> {
        self.batch.delete(key);
        Ok(())
    }
    fn commit(&mut self) -> Result<()> {
        let done = self.db.write(&self.batch).map_err(words);
        self.batch.clear();
        done
    }
    fn get(&mut self, key: &[u8]) -> Result<Option<&[u8]>> {
        self.value = self.db.get(key).map_err(words)?;
        Ok(self.value.as_deref())
    }
    fn cursor(&mut self) -> Result<Box<dyn Cursor + '_>> {
        Ok(Box::new(HaloclineCursor(self.db.cursor().map_err(words)?)))
    }
}

struct HaloclineCursor(hc::Cursor);

impl Cursor for HaloclineCursor {
    fn seek_first(&mut self) -> Result<bool> {
        self.0.seek_first().map_err(words)?;
        Ok(self.0.valid())
    }
    fn seek(&mut self, key: &[u8]) -> Result<bool> {
        self.0.seek(key).map_err(words)?;
        Ok(self.0.valid())
    }
    fn next(&mut self) -> Result<bool> {
        self.0.next().map_err(words)?;
        Ok(self.0.valid())
    }
    fn seek_last(&mut self) -> Result<bool> {
        self.0.seek_last().map_err(words)?;
        Ok(self.0.valid())
    }
    fn seek_back(&mut self, key: &[u8]) -> Result<bool> {
        self.0.seek_for_prev(key).map_err(words)?;
        Ok(self.0.valid())
    }
    fn prev(&mut self) -> Result<bool> {
        self.0.prev().map_err(words)?;
        Ok(self.0.valid())
    }
    fn key(&self) -> &[u8] {
        self.0.key()
    }
    fn value(&mut self) -> Result<&[u8]> {
        self.0.value().map_err(words)
    }
}
