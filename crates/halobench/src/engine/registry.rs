//! The engines by name, and how to get those that are not here.

use super::{
    Config, Durability, Engine, Result, fjall, halocline, lmdb, null, redb, rocksdb, sled, splinterdb,
    sqlite, tidesdb,
};
use crate::driver::{self, Driver};
use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use std::path::Path;

type Open = fn(&Path, &Config) -> Result<Box<dyn Engine>>;
type Probe = fn(Option<&Path>) -> Result<String>;

/// An engine the lab can drive.
pub struct Entry {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it is, in a few words.
    pub about: &'static str,
    /// The durability classes it can be run in, each with the setting that gives it. A run asks for one class; an
    /// engine without it is a row that says so.
    pub classes: &'static [(Durability, &'static str)],
    /// Where it lives.
    pub how: How,
}

/// Where an engine lives.
pub enum How {
    /// In this program: opened by a child of it.
    Here {
        /// Opens a database.
        open: Open,
        /// Its version, or why it cannot be run and how to get it.
        probe: Probe,
    },
    /// In a driver, a program in another language.
    Driver(&'static dyn Driver),
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
    /// Its durability classes, each with the setting that gives it.
    #[serde(default)]
    pub classes: Vec<(Durability, String)>,
}

impl Entry {
    /// Opens a database in this process. Fails in a class that the engine has not.
    pub fn open(&self, dir: &Path, config: &Config) -> Result<Box<dyn Engine>> {
        if !self.classes.iter().any(|&(class, _)| class == config.durability) {
            let word = |class: Durability| {
                class.to_possible_value().map_or_else(String::new, |v| v.get_name().to_string())
            };
            let known: Vec<String> =
                self.classes.iter().map(|&(c, how)| format!("{} ({how})", word(c))).collect();
            let (name, asked) = (self.name, word(config.durability));
            return Err(format!("{name} has no durability class {asked:?}; it has {}", known.join(", ")));
        }
        match &self.how {
            How::Here { open, .. } => open(dir, config),
            How::Driver(driver) => {
                Err(format!("{} runs in the {} driver, not in this process", self.name, driver.name()))
            }
        }
    }

    /// Whether it can be run here, with the user's own RocksDB if one is given.
    pub fn availability(&self, rocksdb_lib: Option<&Path>) -> Availability {
        let found = match &self.how {
            How::Here { probe, .. } => probe(rocksdb_lib),
            How::Driver(driver) => driver.version(self.name),
        };
        let (version, missing) = match found {
            Ok(v) => (Some(v), None),
            Err(why) => (None, Some(why)),
        };
        let classes = self.classes.iter().map(|&(d, words)| (d, words.to_string())).collect();
        Availability { name: self.name.into(), about: self.about.into(), version, missing, classes }
    }
}

#[cfg(feature = "mdbx")]
const MDBX: How = How::Here { open: super::mdbx::open, probe: |_| Ok(super::mdbx::version()) };
#[cfg(not(feature = "mdbx"))]
const MDBX: How = How::Here { open: |_, _| Err(NO_MDBX.into()), probe: |_| Err(NO_MDBX.into()) };
#[cfg(not(feature = "mdbx"))]
const NO_MDBX: &str = "not in this build: cargo build --release -p halobench --features mdbx, with a C compiler and \
                       libclang (Debian: apt install libclang-dev)";

/// Libmdbx's classes are named here, so that a build without it can tell them.
const MDBX_CLASSES: [(Durability, &str); 3] = [
    (Durability::Process, "MDBX_UTTERLY_NOSYNC"),
    (Durability::Interval, "MDBX_SAFE_NOSYNC, sync period 100 ms"),
    (Durability::Sync, "the default"),
];

/// Libmdbx, the peers in Rust, and SQLite.
fn rust_and_sqlite() -> [Entry; 5] {
    [
        Entry { name: "mdbx", about: "libmdbx, a descendant of LMDB", classes: &MDBX_CLASSES, how: MDBX },
        Entry {
            name: "fjall",
            about: "fjall, an LSM tree in Rust",
            classes: &fjall::CLASSES,
            how: How::Here { open: fjall::open, probe: |_| Ok(fjall::VERSION.into()) },
        },
        Entry {
            name: "redb",
            about: "redb, copy-on-write B+trees in Rust",
            classes: &redb::CLASSES,
            how: How::Here { open: redb::open, probe: |_| Ok(redb::VERSION.into()) },
        },
        Entry {
            name: "sled",
            about: "sled, a lock-free tree over a log, in Rust",
            classes: &sled::CLASSES,
            how: How::Here { open: sled::open, probe: |_| Ok(sled::VERSION.into()) },
        },
        Entry {
            name: "sqlite",
            about: "SQLite, a table WITHOUT ROWID in WAL mode",
            classes: &sqlite::CLASSES,
            how: How::Here { open: sqlite::open, probe: |_| Ok(sqlite::version()) },
        },
    ]
}

/// All of them, in the order of the table.
pub fn all() -> Vec<Entry> {
    let mut all = vec![
        Entry {
            name: "halocline",
            about: "the engine of this workspace",
            classes: &halocline::CLASSES,
            how: How::Here { open: halocline::open, probe: |_| Ok(env!("CARGO_PKG_VERSION").into()) },
        },
        Entry {
            name: "lmdb",
            about: "LMDB, a copy-on-write B+tree in a map",
            classes: &lmdb::CLASSES,
            how: How::Here { open: lmdb::open, probe: |_| Ok(lmdb::version()) },
        },
    ];
    all.splice(1..1, rocksdb::entries());
    all.extend(tidesdb::entries());
    all.push(splinterdb::entry());
    all.extend(rust_and_sqlite());
    for driver in driver::all() {
        all.extend(driver.engines().iter().map(|e| Entry {
            name: e.name,
            about: e.about,
            classes: e.classes,
            how: How::Driver(driver),
        }));
    }
    all.push(Entry {
        name: "null",
        about: "stores nothing: the harness's own cost",
        classes: &null::CLASSES,
        how: How::Here { open: |_, _| Ok(Box::new(null::Null)), probe: |_| Ok("-".into()) },
    });
    all
}

/// The engine of that name; RocksDB's also as `NAME@VERSION`.
pub fn find(name: &str) -> Result<Entry> {
    let unknown = || {
        let names: Vec<&str> = all().iter().map(|e| e.name).collect();
        let versions: Vec<&str> = rocksdb::fetch::VERSIONS.iter().map(|v| v.name).collect();
        format!(
            "no engine is called {name:?}; there are {}, and RocksDB's also as NAME@VERSION, for {}",
            names.join(", "),
            versions.join(", ")
        )
    };
    all().into_iter().chain(rocksdb::versioned()).find(|e| e.name == name).ok_or_else(unknown)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The version of a crate in the lock file.
    fn locked(name: &str) -> String {
        let lock = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../Cargo.lock"));
        let at = lock.find(&format!("name = \"{name}\"\n")).unwrap_or_else(|| panic!("{name} is not locked"));
        lock[at..].split('"').nth(3).unwrap().to_string()
    }

    #[test]
    fn versions_are_those_of_the_crates() {
        for (name, version) in [("fjall", fjall::VERSION), ("redb", redb::VERSION), ("sled", sled::VERSION)] {
            assert_eq!(version, locked(name), "{name}: change its VERSION too");
        }
    }

    #[test]
    fn a_class_that_an_engine_has_not_is_refused_in_words() {
        let dir = tempfile::tempdir().unwrap();
        let config = Config {
            write_buffer: 1 << 20,
            cache: 1 << 20,
            durability: Durability::Process,
            compression: crate::engine::Compression::None,
            threads: 1,
            expected_bytes: 1 << 20,
            rocksdb_lib: None,
        };
        let error = find("redb").unwrap().open(dir.path(), &config).err().unwrap();
        assert!(error.contains("redb has no durability class \"process\"; it has none ("), "{error}");
    }

    #[test]
    fn names_are_told_once() {
        let mut names: Vec<&str> = all().iter().map(|e| e.name).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
