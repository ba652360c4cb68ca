//! The engines under test, behind one small interface.
//!
//! An [`Engine`] is shared by all threads; each thread works through a [`Session`] of its own, which may keep what a
//! careful user of that engine would keep per thread (a batch, a read transaction). Reads lend their bytes until the
//! session's next call, so that no engine pays for a copy that its interface does not make.

mod batch;
#[cfg(test)]
mod conformance;
mod fjall;
mod halocline;
#[cfg(test)]
pub mod liar;
mod lmdb;
#[cfg(feature = "mdbx")]
mod mdbx;
mod null;
mod redb;
pub mod registry;
pub mod rocksdb;
mod sled;
mod splinterdb;
mod sqlite;
mod tidesdb;

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// What went wrong, in words.
pub type Result<T> = std::result::Result<T, String>;

/// What a commit survives. Engines are compared only within a class.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, clap::ValueEnum,
)]
#[serde(rename_all = "snake_case")]
pub enum Durability {
    /// Nothing: it may be gone with a killed process.
    None,
    /// A killed process, but not power loss.
    #[default]
    Process,
    /// A killed process; power loss takes the commits since the last sync, which comes at intervals.
    Interval,
    /// Power loss.
    Sync,
}

/// How values are compressed, where the engine can.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Compression {
    /// Not at all.
    None,
    /// LZ4.
    #[default]
    Lz4,
}

/// The terms, equal for all engines.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Config {
    /// Bytes of a memtable.
    pub write_buffer: usize,
    /// Bytes of the block or group cache.
    pub cache: usize,
    /// What a commit survives.
    pub durability: Durability,
    /// How values are compressed.
    pub compression: Compression,
    /// Most threads that will work at once.
    pub threads: usize,
    /// Bytes of keys and values that will be stored; a map is sized by it.
    pub expected_bytes: u64,
    /// A library to load instead of the cached one.
    pub rocksdb_lib: Option<std::path::PathBuf>,
}

/// An open database.
pub trait Engine: Send + Sync {
    /// A session for the calling thread.
    fn session(&self) -> Result<Box<dyn Session + '_>>;
    /// Writes memory to tables and waits until no merge is due, for at most `limit`. False if there is work left.
    fn settle(&self, limit: Duration) -> Result<bool>;
    /// Figures the engine gives about itself.
    fn stats(&self) -> BTreeMap<String, String> {
        BTreeMap::new()
    }
    /// False for the engine that stores nothing: its answers are compared, for the cost, and not judged.
    fn stores(&self) -> bool {
        true
    }
    /// Closes the database; an error here is an error of the run.
    fn close(self: Box<Self>) -> Result<()>;
}

/// One thread's access.
pub trait Session {
    /// Sets a key, committed on its own.
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()>;
    /// Removes a key, committed on its own.
    fn delete(&mut self, key: &[u8]) -> Result<()>;
    /// Adds a put to the batch.
    fn batch_put(&mut self, key: &[u8], value: &[u8]) -> Result<()>;
    /// Adds a removal to the batch.
    fn batch_delete(&mut self, key: &[u8]) -> Result<()>;
    /// Commits the batch, whole or not at all, and empties it.
    fn commit(&mut self) -> Result<()>;
    /// The value of a key as of now.
    fn get(&mut self, key: &[u8]) -> Result<Option<&[u8]>>;
    /// A cursor over a stable view, used for many seeks.
    fn cursor(&mut self) -> Result<Box<dyn Cursor + '_>>;
}

/// A position among the entries.
pub trait Cursor {
    /// Moves to the first entry; whether there is one.
    fn seek_first(&mut self) -> Result<bool>;
    /// Moves to the first entry at or behind `key`; whether there is one.
    fn seek(&mut self, key: &[u8]) -> Result<bool>;
    /// Moves on by one; whether there is an entry.
    fn next(&mut self) -> Result<bool>;
    /// Moves to the last entry; whether there is one.
    fn seek_last(&mut self) -> Result<bool> {
        Err("this engine's cursor does not go backward".into())
    }
    /// Moves to the last entry at or before `key`; whether there is one.
    fn seek_back(&mut self, _key: &[u8]) -> Result<bool> {
        Err("this engine's cursor does not go backward".into())
    }
    /// Moves back by one; whether there is an entry.
    fn prev(&mut self) -> Result<bool> {
        Err("this engine's cursor does not go backward".into())
    }
    /// The entry's key. Only after a move that found an entry.
    fn key(&self) -> &[u8];
    /// The entry's value. Only after a move that found an entry.
    fn value(&mut self) -> Result<&[u8]>;
}

/// Opens (creating it if need be) the database of the engine `name` in `dir`.
pub fn open(name: &str, dir: &Path, config: &Config) -> Result<Box<dyn Engine>> {
    registry::find(name)?.open(dir, config)
}
