//! TidesDB, a log-structured merge tree in C whose key logs are B+trees (since its version 10; the block format of
//! earlier versions is gone). Built with `--features tidesdb-lz4`, from the sources that the crate `tidesdb` brings.
//!
//! What a commit survives was read in its sources, not guessed from the names of the modes. `SYNC_NONE` acknowledges a
//! commit once it is staged in a buffer of the process (`wal_ack_on_stage`), so a killed process may lose it.
//! `SYNC_INTERVAL` acknowledges it once it is written to the file, and syncs at intervals: with an interval of an hour
//! it is what others call "survives a killed process". It also syncs its tables, as RocksDB does.

#[cfg(feature = "tidesdb")]
mod api;
#[cfg(feature = "tidesdb")]
mod db;

use super::Durability;
use super::registry::{Entry, How};

/// The classes, and how this engine is told.
pub const CLASSES: [(Durability, &str); 4] = [
    (Durability::None, "TDB_SYNC_NONE (the default)"),
    (Durability::Process, "TDB_SYNC_INTERVAL (an hour)"),
    (Durability::Interval, "TDB_SYNC_INTERVAL (100 ms)"),
    (Durability::Sync, "TDB_SYNC_FULL"),
];

/// The engines.
pub fn entries() -> [Entry; 2] {
    #[cfg(feature = "tidesdb")]
    let (tuned, default) = (
        How::Here { open: |dir, config| db::open(dir, config, true), probe: |_| db::version(true) },
        How::Here { open: |dir, config| db::open(dir, config, false), probe: |_| db::version(false) },
    );
    #[cfg(not(feature = "tidesdb"))]
    let (tuned, default) = {
        const MISSING: &str = "not built in: rebuild with `--features tidesdb-lz4` (needs cmake, a C compiler and \
                               LZ4's headers: liblz4-dev on Debian)";
        let missing = || How::Here { open: |_, _| Err(MISSING.into()), probe: |_| Err(MISSING.into()) };
        (missing(), missing())
    };
    [
        Entry { name: "tidesdb", about: "TidesDB, on the lab's terms", classes: &CLASSES, how: tuned },
        Entry {
            name: "tidesdb-default",
            about: "TidesDB with its defaults: uncompressed",
            classes: &CLASSES,
            how: default,
        },
    ]
}
