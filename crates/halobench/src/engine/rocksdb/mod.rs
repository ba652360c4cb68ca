//! RocksDB, through its C API, from the native library of the `rocksdbjni` package (see [`fetch`]), in several versions
//! side by side: `rocksdb` is the newest of them, `rocksdb@10.6.2` that one.
//!
//! Four ways of using it: tuned by its own advice with leveled or with universal compaction, the former also with large
//! values parted from keys, and with its defaults (see `options`).
//!
//! The package's build is portable: it computes the log's checksum (CRC-32C) without the processor's instruction, which
//! costs a little on writes. Blocks of tables are checked with XXH3 and do not suffer. A library built for the machine
//! at hand can be given instead.

mod api;
mod db;
pub mod fetch;
mod options;

use super::registry::{Entry, How};
use super::{Durability, Result};
use options::Way;
use std::path::Path;

/// The classes, and how this engine is told.
pub const CLASSES: [(Durability, &str); 4] = [
    (Durability::None, "disableWAL"),
    (Durability::Process, "sync=false (the default)"),
    (Durability::Interval, "sync=false, and FlushWAL(sync) every 100 ms"),
    (Durability::Sync, "sync=true"),
];

/// The entries of one version: `None` is the default version, or the library that the user gave.
macro_rules! ways {
    ($suffix:literal, $version:expr) => {
        [
            entry(
                concat!("rocksdb", $suffix),
                "RocksDB, leveled, tuned by its own advice",
                ways!(Leveled, $version),
            ),
            entry(
                concat!("rocksdb-universal", $suffix),
                "RocksDB, universal compaction, tuned",
                ways!(Universal, $version),
            ),
            entry(
                concat!("rocksdb-blob", $suffix),
                "RocksDB, leveled, tuned, values of 1 KB in blobs",
                ways!(Blob, $version),
            ),
            entry(concat!("rocksdb-default", $suffix), "RocksDB with its defaults", ways!(Default, $version)),
        ]
    };
    ($way:ident, $version:expr) => {
        How::Here {
            open: |dir, config| db::open(dir, config, Way::$way, $version),
            probe: |given| version($version, given),
        }
    };
}

/// RocksDB in its default version, or from the library that the user gave.
pub fn entries() -> [Entry; 4] {
    ways!("", None)
}

/// RocksDB in each of the [`fetch::VERSIONS`], named `NAME@VERSION`.
pub fn versioned() -> impl Iterator<Item = Entry> {
    [
        ways!("@10.6.2", Some("10.6.2")),
        ways!("@10.10.1", Some("10.10.1")),
        ways!("@11.1.1", Some("11.1.1")),
        ways!("@11.8.1", Some("11.8.1")),
    ]
    .into_iter()
    .flatten()
}

fn entry(name: &'static str, about: &'static str, how: How) -> Entry {
    Entry { name, about, classes: &CLASSES, how }
}

/// The version that would be run, or why none would.
fn version(version: Option<&str>, given: Option<&Path>) -> Result<String> {
    fetch::library(version, given)?;
    Ok(match (version, given) {
        (Some(version), _) => version.into(),
        (None, Some(path)) => format!("from {}", path.display()),
        (None, None) => fetch::DEFAULT.name.into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_way_can_be_had_in_each_version() {
        let names: Vec<&str> = versioned().map(|e| e.name).collect();
        for version in &fetch::VERSIONS {
            for way in entries() {
                assert!(names.contains(&format!("{}@{}", way.name, version.name).as_str()));
            }
        }
        assert_eq!(names.len(), 4 * fetch::VERSIONS.len());
    }

    #[test]
    fn a_library_of_ones_own_stands_in_for_the_default_version_only() {
        let own = tempfile::NamedTempFile::new().unwrap();
        assert_eq!(version(None, Some(own.path())), Ok(format!("from {}", own.path().display())));
        assert_ne!(version(Some("10.6.2"), Some(own.path())), version(None, Some(own.path())));
    }
}
