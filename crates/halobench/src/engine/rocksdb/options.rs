//! How RocksDB is set up.
//!
//! The tuned ways follow RocksDB's own pages, "Setup Options and Basic Tuning" and "RocksDB Tuning Guide", on the lab's
//! terms: the write buffer (up to four of them, so that a flush does not stall writes), the cache (HyperClock), filters
//! of 10 bits a key, index and filter blocks in the cache and level 0's pinned there, dynamic level sizes, compactions
//! picked by overlap (the default by now).
//!
//! What is left alone, and why. Concurrent memtable writes and adaptive yields are on by default. Unordered writes are
//! off: they give up the stable view that a cursor promises here.

use super::super::{Compression, Config};
use super::api::{Api, Handle};

const LZ4: i32 = 4;
const NO_COMPRESSION: i32 = 0;
const UNIVERSAL: i32 = 1;
/// Bytes from which a value goes to a blob file: values below do not repay the detour. TidesDB has the same limit.
const MIN_BLOB: u64 = 1 << 10;

/// A way of using it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Leveled compaction, tuned.
    Leveled,
    /// Universal compaction, tuned.
    Universal,
    /// Leveled compaction, tuned, with large values in blob files.
    Blob,
    /// As it comes, but for the durability.
    Default,
}

/// Sets what RocksDB's tuning guide advises.
///
/// # Safety
/// `options` is a live options handle of `api`'s library, not yet used to open a database.
pub unsafe fn tune(api: &Api, options: Handle, config: &Config, way: Way) {
    if way == Way::Default {
        return;
    }
    // SAFETY: handles are used as c.h says: the filter belongs to the table options once it is set; the cache and the
    // table options are counted, and ours are destroyed here.
    unsafe {
        (api.options_set_write_buffer_size)(options, config.write_buffer);
        (api.options_set_max_write_buffer_number)(options, 4);
        (api.options_set_max_background_jobs)(options, 2);
        (api.options_set_level_compaction_dynamic_level_bytes)(options, 1);
        let compression = if config.compression == Compression::Lz4 { LZ4 } else { NO_COMPRESSION };
        (api.options_set_compression)(options, compression);
        let table = (api.block_based_options_create)();
        (api.block_based_options_set_filter_policy)(table, (api.filterpolicy_create_bloom_full)(10.0));
        let cache = match api.cache_create_hyper_clock {
            Some(create) => create(config.cache, 0),
            None => (api.cache_create_lru)(config.cache),
        };
        (api.block_based_options_set_block_cache)(table, cache);
        (api.block_based_options_set_cache_index_and_filter_blocks)(table, 1);
        (api.block_based_options_set_pin_l0_filter_and_index_blocks_in_cache)(table, 1);
        (api.options_set_block_based_table_factory)(options, table);
        match way {
            Way::Universal => (api.options_set_compaction_style)(options, UNIVERSAL),
            Way::Blob => {
                (api.options_set_enable_blob_files)(options, 1);
                (api.options_set_min_blob_size)(options, MIN_BLOB);
                (api.options_set_blob_compression_type)(options, compression);
                // Without it overwritten values are never dropped.
                (api.options_set_enable_blob_gc)(options, 1);
                // The cache of blobs is the cache of blocks: one budget.
                (api.options_set_blob_cache)(options, cache);
            }
            Way::Leveled | Way::Default => {}
        }
        (api.cache_destroy)(cache);
        (api.block_based_options_destroy)(table);
    }
}
