//! RocksDB, through its C API, from the native library of the `rocksdbjni` package (see [`fetch`]).
//!
//! Two ways: tuned by RocksDB's own advice (filters of 10 bits a key, a HyperClock cache, level 0's index and filter
//! pinned, four write buffers), and with its defaults.

mod api;
pub mod fetch;

use super::{Compression, Config, Cursor, Durability, Engine, Result, Session};
use api::{Api, Handle};
use std::collections::BTreeMap;
use std::ffi::{CString, c_char};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, Instant};

const LZ4: i32 = 4;
const NO_COMPRESSION: i32 = 0;

/// The classes, and how this engine is told.
pub const CLASSES: [(Durability, &str); 3] = [
    (Durability::None, "disableWAL"),
    (Durability::Process, "sync=false (the default)"),
    (Durability::Sync, "sync=true"),
];

struct RocksDb {
    api: Api,
    db: Handle,
    write: Handle,
    read: Handle,
    options: Handle,
}

// SAFETY: RocksDB's database, and its options once they are set, may be used from any thread at once.
unsafe impl Send for RocksDb {}
// SAFETY: as above.
unsafe impl Sync for RocksDb {}

/// Opens a database in `dir`.
pub fn open(dir: &Path, config: &Config, tuned: bool) -> Result<Box<dyn Engine>> {
    let library = fetch::library(config.rocksdb_lib.as_deref())?;
    let api = Api::load(&library)?;
    let path = CString::new(dir.as_os_str().as_bytes()).map_err(|e| e.to_string())?;
    // SAFETY: handles are used as c.h says: the table options, the filter and the cache are set into the options before
    // the open; the filter belongs to the table options from then on; the rest is destroyed in `close`.
    unsafe {
        let options = (api.options_create)();
        (api.options_set_create_if_missing)(options, 1);
        if tuned {
            tune(&api, options, config);
        }
        let write = (api.writeoptions_create)();
        (api.writeoptions_set_sync)(write, u8::from(config.durability == Durability::Sync));
        (api.writeoptions_disable_WAL)(write, i32::from(config.durability == Durability::None));
        let read = (api.readoptions_create)();
        let db = api.check(|m| (api.open)(options, path.as_ptr(), m))?;
        Ok(Box::new(RocksDb { api, db, write, read, options }))
    }
}

/// Sets what RocksDB's tuning guide advises.
///
/// # Safety
/// `options` is a live options handle.
unsafe fn tune(api: &Api, options: Handle, config: &Config) {
    // SAFETY: see `open`.
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
        (api.cache_destroy)(cache); // our reference; the table options hold theirs
        (api.block_based_options_set_cache_index_and_filter_blocks)(table, 1);
        (api.block_based_options_set_pin_l0_filter_and_index_blocks_in_cache)(table, 1);
        (api.options_set_block_based_table_factory)(options, table);
        (api.block_based_options_destroy)(table);
    }
}

impl Engine for RocksDb {
    fn session(&self) -> Result<Box<dyn Session + '_>> {
        // SAFETY: a batch of our own.
        let batch = unsafe { (self.api.writebatch_create)() };
        Ok(Box::new(RocksSession { e: self, batch, pinned: std::ptr::null_mut(), buffer: vec![0; 4096] }))
    }

    fn settle(&self, limit: Duration) -> Result<bool> {
        let api = &self.api;
        // SAFETY: the database is open; the options are made and destroyed here.
        unsafe {
            let flush = (api.flushoptions_create)();
            (api.flushoptions_set_wait)(flush, 1);
            let done = api.check(|m| (api.flush)(self.db, flush, m));
            (api.flushoptions_destroy)(flush);
            done?;
            if let (Some(wait), Some(create), Some(destroy), Some(set_timeout)) = (
                api.wait_for_compact,
                api.wait_for_compact_options_create,
                api.wait_for_compact_options_destroy,
                api.wait_for_compact_options_set_timeout,
            ) {
                let options = create();
                set_timeout(options, limit.as_micros() as u64);
                let done = api.check(|m| wait(self.db, options, m));
                destroy(options);
                return match done {
                    Err(e) if e.contains("imed out") || e.contains("imeout") => Ok(false),
                    other => other.map(|()| true),
                };
            }
        }
        self.poll_idle(limit)
    }

    fn stats(&self) -> BTreeMap<String, String> {
        let names = [
            c"rocksdb.levelstats",
            c"rocksdb.estimate-pending-compaction-bytes",
            c"rocksdb.cur-size-all-mem-tables",
        ];
        names
            .into_iter()
            .filter_map(|n| Some((n.to_string_lossy().into_owned(), self.api.property(self.db, n)?)))
            .collect()
    }

    fn close(self: Box<Self>) -> Result<()> {
        // SAFETY: sessions borrow the engine, so none is left; each handle is destroyed once.
        unsafe {
            (self.api.close)(self.db);
            (self.api.writeoptions_destroy)(self.write);
            (self.api.readoptions_destroy)(self.read);
            (self.api.options_destroy)(self.options);
        }
        Ok(())
    }
}

impl RocksDb {
    /// For libraries without `rocksdb_wait_for_compact`.
    fn poll_idle(&self, limit: Duration) -> Result<bool> {
        let busy = [
            c"rocksdb.num-running-compactions",
            c"rocksdb.compaction-pending",
            c"rocksdb.mem-table-flush-pending",
        ];
        let start = Instant::now();
        let mut idle = 0;
        while start.elapsed() < limit {
            let any = busy.iter().any(|n| self.api.property(self.db, n).is_some_and(|v| v != "0"));
            idle = if any { 0 } else { idle + 1 };
            if idle == 3 {
                return Ok(true);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(false)
    }
}

struct RocksSession<'a> {
    e: &'a RocksDb,
    batch: Handle,
    pinned: Handle,
    buffer: Vec<u8>,
}

fn chars(bytes: &[u8]) -> *const c_char {
    bytes.as_ptr().cast()
}

impl RocksSession<'_> {
    #[inline]
    fn unpin(&mut self) {
        if !self.pinned.is_null() {
            // SAFETY: ours, destroyed once.
            unsafe { (self.e.api.pinnableslice_destroy)(self.pinned) };
            self.pinned = std::ptr::null_mut();
        }
    }
}

impl Session for RocksSession<'_> {
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let e = self.e;
        // SAFETY: the handles are live; the bytes are copied during the call. So in all calls below.
        e.api.check(|m| unsafe {
            (e.api.put)(e.db, e.write, chars(key), key.len(), chars(value), value.len(), m);
        })
    }
    fn delete(&mut self, key: &[u8]) -> Result<()> {
        let e = self.e;
        // SAFETY: as in `put`.
        e.api.check(|m| unsafe { (e.api.delete)(e.db, e.write, chars(key), key.len(), m) })
    }
    fn batch_put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        // SAFETY: as in `put`.
        unsafe { (self.e.api.writebatch_put)(self.batch, chars(key), key.len(), chars(value), value.len()) };
        Ok(())
    }
    fn batch_delete(&mut self, key: &[u8]) -> Result<()> {
        // SAFETY: as in `put`.
        unsafe { (self.e.api.writebatch_delete)(self.batch, chars(key), key.len()) };
        Ok(())
    }
    fn commit(&mut self) -> Result<()> {
        let (e, batch) = (self.e, self.batch);
        // SAFETY: as in `put`.
        e.api.check(|m| unsafe {
            (e.api.write)(e.db, e.write, batch, m);
            (e.api.writebatch_clear)(batch);
        })
    }
    fn get(&mut self, key: &[u8]) -> Result<Option<&[u8]>> {
        self.unpin();
        let e = self.e;
        if let Some(get) = e.api.get_into_buffer {
            loop {
                let (mut len, mut found) = (0usize, 0u8);
                let (buffer, room) = (self.buffer.as_mut_ptr().cast(), self.buffer.len());
                // SAFETY: as in `put`; the buffer is ours and has `room` bytes.
                let fits = e.api.check(|m| unsafe {
                    get(e.db, e.read, chars(key), key.len(), buffer, room, &mut len, &mut found, m)
                })?;
                if found == 0 {
                    return Ok(None);
                }
                if fits != 0 {
                    return Ok(self.buffer.get(..len));
                }
                self.buffer.resize(len, 0);
            }
        }
        // SAFETY: as in `put`; the slice is ours until the next call, and so are its bytes.
        unsafe {
            self.pinned = e.api.check(|m| (e.api.get_pinned)(e.db, e.read, chars(key), key.len(), m))?;
            if self.pinned.is_null() {
                return Ok(None);
            }
            let mut len = 0;
            let value = (e.api.pinnableslice_value)(self.pinned, &mut len);
            Ok(Some(std::slice::from_raw_parts(value.cast(), len)))
        }
    }
    fn cursor(&mut self) -> Result<Box<dyn Cursor + '_>> {
        // SAFETY: the database and the read options outlive the session, and so the cursor.
        let iter = unsafe { (self.e.api.create_iterator)(self.e.db, self.e.read) };
        Ok(Box::new(RocksCursor { e: self.e, iter }))
    }
}

impl Drop for RocksSession<'_> {
    fn drop(&mut self) {
        self.unpin();
        // SAFETY: ours, destroyed once.
        unsafe { (self.e.api.writebatch_destroy)(self.batch) };
    }
}

struct RocksCursor<'a> {
    e: &'a RocksDb,
    iter: Handle,
}

impl RocksCursor<'_> {
    #[inline]
    fn valid(&self) -> Result<bool> {
        // SAFETY: the iterator is live.
        if unsafe { (self.e.api.iter_valid)(self.iter) } != 0 {
            return Ok(true);
        }
        // SAFETY: the iterator is live.
        self.e.api.check(|m| unsafe { (self.e.api.iter_get_error)(self.iter, m) })?;
        Ok(false)
    }
}

impl Cursor for RocksCursor<'_> {
    fn seek_first(&mut self) -> Result<bool> {
        // SAFETY: the iterator is live.
        unsafe { (self.e.api.iter_seek_to_first)(self.iter) };
        self.valid()
    }
    fn seek(&mut self, key: &[u8]) -> Result<bool> {
        // SAFETY: the iterator is live; the key is copied during the call.
        unsafe { (self.e.api.iter_seek)(self.iter, chars(key), key.len()) };
        self.valid()
    }
    fn next(&mut self) -> Result<bool> {
        // SAFETY: the iterator is live and, as the caller promises, at an entry.
        unsafe { (self.e.api.iter_next)(self.iter) };
        self.valid()
    }
    fn key(&self) -> &[u8] {
        let mut len = 0;
        // SAFETY: the iterator is at an entry; the bytes live until it moves, which takes `&mut self`.
        unsafe { std::slice::from_raw_parts((self.e.api.iter_key)(self.iter, &mut len).cast(), len) }
    }
    fn value(&mut self) -> Result<&[u8]> {
        let mut len = 0;
        // SAFETY: as in `key`.
        Ok(unsafe { std::slice::from_raw_parts((self.e.api.iter_value)(self.iter, &mut len).cast(), len) })
    }
}

impl Drop for RocksCursor<'_> {
    fn drop(&mut self) {
        // SAFETY: ours, destroyed once.
        unsafe { (self.e.api.iter_destroy)(self.iter) };
    }
}
