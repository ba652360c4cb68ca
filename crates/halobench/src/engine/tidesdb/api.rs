//! TidesDB's C API (`tidesdb/db.h`, version 10), as much of it as the lab calls.
//!
//! The crate `tidesdb` builds and links the library. Its own wrapper copies every key and value once more than the C
//! API does, so the lab calls the C API itself, as it does RocksDB's: neither engine pays for a wrapper.
//!
//! A buffer that a call hands out is freed with `tidesdb_free`; a null one with a length of 0 is an empty value.

use std::ffi::{c_char, c_double, c_float, c_int, c_void};

/// The build script of this crate links the library, which happens only if the crate is named.
use tidesdb as _;

/// A `tidesdb_t`, `tidesdb_txn_t`, `tidesdb_iter_t` or `tidesdb_column_family_t`.
pub type Handle = *mut c_void;

pub const SUCCESS: c_int = 0;
pub const NOT_FOUND: c_int = -3;
/// Another transaction committed first; retry from the start.
pub const CONFLICT: c_int = -7;
/// "Transient contention, never a failed operation": retry.
pub const LOCKED: c_int = -12;

pub const LOG_WARN: c_int = 3;
pub const READ_COMMITTED: c_int = 1;
pub const LZ4: u8 = 2;
pub const SYNC_NONE: c_int = 0;
pub const SYNC_FULL: c_int = 1;
pub const SYNC_INTERVAL: c_int = 2;

/// `tidesdb_config_t`.
#[repr(C)]
pub struct Config {
    pub db_path: *mut c_char,
    pub num_flush_threads: c_int,
    pub num_compaction_threads: c_int,
    pub log_level: c_int,
    pub block_cache_size: usize,
    pub max_open_sstables: usize,
    pub log_to_file: c_int,
    pub log_truncation_at: usize,
    pub memtable_write_buffer_size: usize,
    pub memtable_skip_list_max_level: c_int,
    pub memtable_skip_list_probability: c_float,
    pub memtable_sync_mode: c_int,
    pub memtable_sync_interval_us: u64,
    pub value_separation_threshold: usize,
    pub vlog_segment_size: usize,
    pub memtable_l0_queue_stall_threshold: c_int,
    pub memtable_idle_flush_seconds: c_int,
    pub txn_timeout_seconds: i64,
}

/// `tidesdb_column_family_config_t`.
#[repr(C)]
pub struct FamilyConfig {
    pub name: [c_char; 128],
    pub level_size_ratio: usize,
    pub min_levels: c_int,
    pub dividing_level_offset: c_int,
    pub keep_values_inline: c_int,
    pub btree_klog_block_size: usize,
    pub encoding_pipeline: [u8; 8],
    pub encoding_count: u8,
    pub enable_bloom_filter: c_int,
    pub bloom_fpr: c_double,
    pub default_isolation_level: c_int,
    pub l1_file_count_trigger: c_int,
    pub tombstone_density_trigger: c_double,
    pub tombstone_density_min_entries: u64,
    pub commit_hook: *const c_void,
    pub commit_hook_ctx: *mut c_void,
}

/// `tidesdb_db_stats_t`.
#[repr(C)]
#[derive(Debug)]
pub struct Stats {
    pub num_column_families: c_int,
    pub immutable_memtable_count: c_int,
    pub compaction_pending_count: c_int,
    pub total_sstable_count: c_int,
    pub total_data_size_bytes: u64,
    pub num_open_sstables: c_int,
    pub global_seq: u64,
    pub min_snapshot_seq: u64,
    pub active_txn_count: c_int,
    pub txn_memory_bytes: i64,
    pub txn_commits: u64,
    pub txn_conflicts: u64,
    pub memtable_bytes: usize,
    pub is_flushing: c_int,
    pub next_cf_index: u32,
    pub wal_generation: u64,
    pub flush_count: u64,
    pub compaction_count: u64,
    pub flush_bytes_written: u64,
    pub compaction_bytes_written: u64,
    pub compaction_bytes_read: u64,
    pub wal_bytes_written: u64,
    pub user_bytes_written: u64,
    pub vlog_file_size: u64,
    pub vlog_value_count: u64,
    pub vlog_used_bytes: u64,
    pub vlog_stored_bytes: u64,
    pub vlog_live_bytes: u64,
    pub vlog_segment_count: u64,
    pub vlog_bytes_written: u64,
    pub vlog_dead_bytes: u64,
    pub vlog_reclaim_calls: u64,
    pub vlog_reclaim_passes: u64,
    pub vlog_segments_retired: u64,
    pub vlog_segments_drainable: u64,
    pub writes_throttled: u64,
    pub writes_blocked: u64,
    pub write_stall_us: u64,
    pub write_stall_ceiling_hits: u64,
}

// SAFETY: the signatures are those of `tidesdb/db.h`. `time_t` is 64 bits wide on the platforms of the lab.
unsafe extern "C" {
    pub fn tidesdb_strerror(code: c_int) -> *const c_char;
    pub fn tidesdb_free(buffer: *mut c_void);
    pub fn tidesdb_compression_available(algorithm: c_int) -> c_int;
    pub fn tidesdb_default_config() -> Config;
    pub fn tidesdb_default_column_family_config() -> FamilyConfig;
    pub fn tidesdb_open(config: *const Config, db: *mut Handle) -> c_int;
    pub fn tidesdb_close(db: Handle) -> c_int;
    pub fn tidesdb_create_column_family(
        db: Handle,
        name: *const c_char,
        config: *const FamilyConfig,
    ) -> c_int;
    pub fn tidesdb_get_column_family(db: Handle, name: *const c_char) -> Handle;
    pub fn tidesdb_txn_begin_with_isolation(db: Handle, isolation: c_int, txn: *mut Handle) -> c_int;
    pub fn tidesdb_txn_reset(txn: Handle, isolation: c_int) -> c_int;
    pub fn tidesdb_txn_free(txn: Handle);
    pub fn tidesdb_txn_put(
        txn: Handle,
        cf: Handle,
        key: *const u8,
        key_size: usize,
        value: *const u8,
        value_size: usize,
        ttl: i64,
    ) -> c_int;
    pub fn tidesdb_txn_delete(txn: Handle, cf: Handle, key: *const u8, key_size: usize) -> c_int;
    pub fn tidesdb_txn_commit(txn: Handle) -> c_int;
    pub fn tidesdb_txn_get_notrack(
        txn: Handle,
        cf: Handle,
        key: *const u8,
        key_size: usize,
        value: *mut *mut u8,
        value_size: *mut usize,
    ) -> c_int;
    pub fn tidesdb_iter_new(txn: Handle, cf: Handle, iter: *mut Handle) -> c_int;
    pub fn tidesdb_iter_free(iter: Handle);
    pub fn tidesdb_iter_seek_to_first(iter: Handle) -> c_int;
    pub fn tidesdb_iter_seek_to_last(iter: Handle) -> c_int;
    pub fn tidesdb_iter_seek(iter: Handle, key: *const u8, key_size: usize) -> c_int;
    pub fn tidesdb_iter_seek_for_prev(iter: Handle, key: *const u8, key_size: usize) -> c_int;
    pub fn tidesdb_iter_next(iter: Handle) -> c_int;
    pub fn tidesdb_iter_prev(iter: Handle) -> c_int;
    pub fn tidesdb_iter_key(iter: Handle, key: *mut *mut u8, key_size: *mut usize) -> c_int;
    pub fn tidesdb_iter_value(iter: Handle, value: *mut *mut u8, value_size: *mut usize) -> c_int;
    pub fn tidesdb_flush_memtable(db: Handle) -> c_int;
    pub fn tidesdb_is_flushing(db: Handle) -> c_int;
    pub fn tidesdb_is_compacting(cf: Handle) -> c_int;
    pub fn tidesdb_get_db_stats(db: Handle, stats: *mut Stats) -> c_int;
}
