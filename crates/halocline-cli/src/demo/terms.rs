//! The terms on which the demo runs every engine: the same for all.

use super::data::Sum;
use halobench::engine::registry::{self, Availability};
use halobench::engine::rocksdb::fetch;
use halobench::engine::{Compression, Config, Durability};

/// 64 MB of write buffer, 64 MB of cache, LZ4 where the engine compresses; a commit survives a killed process.
pub fn config(expected: Sum) -> Config {
    Config {
        write_buffer: 64 << 20,
        cache: 64 << 20,
        durability: Durability::Process,
        compression: Compression::Lz4,
        threads: 1,
        expected_bytes: expected.bytes,
        rocksdb_lib: None,
    }
}

/// How an engine's name is written.
pub fn title(engine: &str) -> &str {
    match engine {
        "halocline" => "Halocline",
        "rocksdb" => "RocksDB",
        "rocksdb-default" => "RocksDB (defaults)",
        "lmdb" => "LMDB",
        other => other,
    }
}

/// Whether an engine can be run here; RocksDB's library is fetched if it is not here yet.
pub fn availability(engine: &str, progress: &mut dyn FnMut(u64, u64)) -> Result<Availability, String> {
    let entry = registry::find(engine)?;
    let mut availability = entry.availability(None);
    if engine.starts_with("rocksdb") && availability.missing.is_some() {
        match fetch::fetch(fetch::DEFAULT, progress) {
            Ok(_) => availability = entry.availability(None),
            Err(why) => {
                availability.missing = Some(format!(
                    "its library could not be fetched ({why}); `cargo run --release -p halobench -- setup` tries again"
                ));
            }
        }
    }
    Ok(availability)
}
