//! What the demo asks of an engine, and the engines it knows.

use halocline::{Db, WriteBatch};
use std::path::Path;

/// An open store. Errors are for people. One thread uses it.
pub trait Store {
    /// Commits a batch; it survives a killed process when this returns.
    fn write(&mut self, batch: &mut dyn Iterator<Item = (&[u8], &[u8])>) -> Result<(), String>;
    /// Whether `key` has exactly this value, compared where the engine keeps it.
    fn holds(&self, key: &[u8], value: &[u8]) -> Result<bool, String>;
    /// Whether `key` has a value.
    fn contains(&self, key: &[u8]) -> Result<bool, String>;
    /// Calls `each` with all entries in the order of their keys.
    fn scan(&self, each: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), String>;
    /// Closes it cleanly.
    fn close(self: Box<Self>) -> Result<(), String>;
}

/// Opens the store of an engine, creating it if need be.
pub fn open(engine: &str, path: &Path) -> Result<Box<dyn Store>, String> {
    match engine {
        "halocline" => Ok(Box::new(Halocline::open(path)?)),
        other => Err(format!("no engine is called `{other}`")),
    }
}

/// Halocline with its defaults: what was committed survives a killed process, values are LZ4-compressed.
struct Halocline {
    db: Db,
    batch: WriteBatch,
}

impl Halocline {
    fn open(path: &Path) -> Result<Halocline, String> {
        let db = Db::open(path).map_err(|error| error.to_string())?;
        Ok(Halocline { db, batch: WriteBatch::new() })
    }
}

impl Store for Halocline {
    fn write(&mut self, batch: &mut dyn Iterator<Item = (&[u8], &[u8])>) -> Result<(), String> {
        self.batch.clear();
        for (key, value) in batch {
            self.batch.put(key, value);
        }
        self.db.write(&self.batch).map_err(|error| error.to_string())
    }

    fn holds(&self, key: &[u8], value: &[u8]) -> Result<bool, String> {
        match self.db.get(key) {
            Ok(Some(found)) => Ok(*found == *value),
            Ok(None) => Ok(false),
            Err(error) => Err(error.to_string()),
        }
    }

    fn contains(&self, key: &[u8]) -> Result<bool, String> {
        self.db.contains(key).map_err(|error| error.to_string())
    }

    fn scan(&self, each: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), String> {
        let in_words = |error: halocline::Error| error.to_string();
        let mut cursor = self.db.cursor().map_err(in_words)?;
        cursor.seek_first().map_err(in_words)?;
        let mut key = Vec::new();
        while cursor.valid() {
            key.clear();
            key.extend_from_slice(cursor.key());
            each(&key, cursor.value().map_err(in_words)?);
            cursor.next().map_err(in_words)?;
        }
        Ok(())
    }

    fn close(self: Box<Self>) -> Result<(), String> {
        self.db.close().map_err(|error| error.to_string())
    }
}
