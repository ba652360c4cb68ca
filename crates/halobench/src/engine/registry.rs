//! The engines by name, and how to get those that are not here.

use super::{Config, Engine, Result, halocline, lmdb, null, rocksdb};
use serde::{Deserialize, Serialize};
use std::path::Path;

type Open = fn(&Path, &Config) -> Result<Box<dyn Engine>>;

/// An engine the lab can drive.
pub struct Entry {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it is, in a few words.
    pub about: &'static str,
    open: Open,
    probe: fn(Option<&Path>) -> Result<String>,
}

/// Whether an engine can be run here.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Availability {
    /// Its name.
    pub name: String,
    /// What it is.
    pub about: String,
    /// Its version, if it can be run.
    pub version: Option<String>,
    /// Why not, and how to get it.
    pub missing: Option<String>,
}

impl Entry {
    /// Opens a database.
    pub fn open(&self, dir: &Path, config: &Config) -> Result<Box<dyn Engine>> {
        (self.open)(dir, config)
    }

    /// Whether it can be run here, with the user's own RocksDB if one is given.
    pub fn availability(&self, rocksdb_lib: Option<&Path>) -> Availability {
        let (version, missing) = match (self.probe)(rocksdb_lib) {
            Ok(v) => (Some(v), None),
            Err(why) => (None, Some(why)),
        };
        Availability { name: self.name.into(), about: self.about.into(), version, missing }
    }
}

fn rocksdb_version(given: Option<&Path>) -> Result<String> {
    rocksdb::fetch::library(given)?;
    Ok(match given {
        Some(path) => format!("from {}", path.display()),
        None => rocksdb::fetch::VERSION.into(),
    })
}

/// All of them, in the order of the table.
pub fn all() -> Vec<Entry> {
    vec![
        Entry {
            name: "halocline",
            about: "the engine of this workspace",
            open: halocline::open,
            probe: |_| Ok(env!("CARGO_PKG_VERSION").into()),
        },
        Entry {
            name: "rocksdb",
            about: "RocksDB, leveled, tuned by its own advice",
            open: |dir, config| rocksdb::open(dir, config, true),
            probe: rocksdb_version,
        },
        Entry {
            name: "rocksdb-default",
            about: "RocksDB with its defaults",
            open: |dir, config| rocksdb::open(dir, config, false),
            probe: rocksdb_version,
        },
        Entry {
            name: "lmdb",
            about: "LMDB, a copy-on-write B+tree in a map",
            open: lmdb::open,
            probe: |_| Ok(lmdb::version()),
        },
        Entry {
            name: "null",
            about: "stores nothing: the harness's own cost",
            open: |_, _| Ok(Box::new(null::Null)),
            probe: |_| Ok("-".into()),
        },
    ]
}

/// The engine of that name.
pub fn find(name: &str) -> Result<Entry> {
    let known = all();
    let names: Vec<&str> = known.iter().map(|e| e.name).collect();
    let unknown = format!("no engine is called {name:?}; there are {}", names.join(", "));
    known.into_iter().find(|e| e.name == name).ok_or(unknown)
}
