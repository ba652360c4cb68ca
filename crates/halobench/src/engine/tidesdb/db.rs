//! The adapter. One column family; a put is a transaction, and so is a batch, both at the isolation level that TidesDB
//! has by default (read committed). A thread keeps one transaction for its writes, reset for each, and one for its
//! gets, which at this level see the newest commit and hold nothing back.
//!
//! `TDB_ERR_LOCKED` is "retry, never absence and never an error to surface", says its header; so it is retried here,
//! for at most [`PATIENCE`]. A transaction that failed to commit is aborted and is made anew from the batch.

use super::super::batch::Batch;
use super::super::{Compression, Config, Cursor, Durability, Engine, Result, Session};
use super::api::{self, Handle};
use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_int};
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::null_mut;
use std::time::{Duration, Instant};

/// Longest time a call is repeated while TidesDB is busy.
const PATIENCE: Duration = Duration::from_secs(10);
const FAMILY: &CStr = c"default";
const HOUR_US: u64 = 3_600_000_000;

struct Tides {
    db: Handle,
    cf: Handle,
}

// SAFETY: TidesDB synchronises calls on a database and on a column family itself.
unsafe impl Send for Tides {}
// SAFETY: as above.
unsafe impl Sync for Tides {}

#[cold]
fn words(code: c_int, doing: &str) -> String {
    // SAFETY: returns a static, terminated string for any code.
    format!("TidesDB: {doing}: {}", unsafe { CStr::from_ptr(api::tidesdb_strerror(code)) }.to_string_lossy())
}

#[inline]
fn check(code: c_int, doing: &str) -> Result<()> {
    if code == api::SUCCESS { Ok(()) } else { Err(words(code, doing)) }
}

/// Repeats a call while it is answered with "busy".
#[inline]
fn patiently(mut call: impl FnMut() -> c_int) -> c_int {
    let code = call();
    if code == api::LOCKED { insist(&mut call) } else { code }
}

#[cold]
fn insist(call: &mut dyn FnMut() -> c_int) -> c_int {
    let start = Instant::now();
    loop {
        let code = call();
        if code != api::LOCKED || start.elapsed() > PATIENCE {
            return code;
        }
        std::thread::sleep(Duration::from_micros(50));
    }
}

const NO_LZ4: &str = "this TidesDB was built without LZ4: rebuild with `--features tidesdb-lz4` (needs LZ4's headers: \
                      liblz4-dev on Debian)";

/// The version of the linked library. On the lab's terms it must have LZ4.
pub fn version(tuned: bool) -> Result<String> {
    if tuned && !has_lz4() { Err(NO_LZ4.into()) } else { Ok(::tidesdb::TIDESDB_LINKED_VERSION.into()) }
}

fn has_lz4() -> bool {
    // SAFETY: looks at how the library was built.
    unsafe { api::tidesdb_compression_available(i32::from(api::LZ4)) != 0 }
}

/// Opens a database in `dir`: on the terms of `config`, or with TidesDB's defaults but for the durability.
pub fn open(dir: &Path, config: &Config, tuned: bool) -> Result<Box<dyn Engine>> {
    if tuned && config.compression == Compression::Lz4 && !has_lz4() {
        return Err(NO_LZ4.into());
    }
    let path = CString::new(dir.as_os_str().as_bytes()).map_err(|e| e.to_string())?;
    // SAFETY: the configurations are plain structs, made by the library and borrowed by its calls, which copy the path;
    // the database is closed if its column family cannot be had.
    unsafe {
        let mut c = api::tidesdb_default_config();
        c.db_path = path.as_ptr().cast_mut();
        // To a file, not to the standard error, where the harness looks for an engine's last words.
        c.log_level = api::LOG_WARN;
        c.log_to_file = 1;
        (c.memtable_sync_mode, c.memtable_sync_interval_us) = match config.durability {
            Durability::None => (api::SYNC_NONE, 0),
            Durability::Process => (api::SYNC_INTERVAL, HOUR_US),
            Durability::Interval => (api::SYNC_INTERVAL, 100_000),
            Durability::Sync => (api::SYNC_FULL, 0),
        };
        let mut f = api::tidesdb_default_column_family_config();
        if tuned {
            c.block_cache_size = config.cache;
            c.memtable_write_buffer_size = config.write_buffer;
            if config.compression == Compression::Lz4 {
                f.encoding_pipeline[0] = api::LZ4;
                f.encoding_count = 1;
            }
        }
        let mut db = null_mut();
        check(patiently(|| api::tidesdb_open(&c, &mut db)), &format!("opening {}", dir.display()))?;
        let family = (|| {
            let mut cf = api::tidesdb_get_column_family(db, FAMILY.as_ptr());
            if cf.is_null() {
                let code = patiently(|| api::tidesdb_create_column_family(db, FAMILY.as_ptr(), &f));
                check(code, "creating the column family")?;
                cf = api::tidesdb_get_column_family(db, FAMILY.as_ptr());
            }
            if cf.is_null() { Err("TidesDB: the new column family is not there".to_string()) } else { Ok(cf) }
        })();
        match family {
            Ok(cf) => Ok(Box::new(Tides { db, cf })),
            Err(e) => {
                api::tidesdb_close(db);
                Err(e)
            }
        }
    }
}

impl Tides {
    fn begin(&self) -> Result<Handle> {
        let mut txn = null_mut();
        // SAFETY: the database is open; the transaction is freed by its owner, a session or a cursor.
        let code = unsafe { api::tidesdb_txn_begin_with_isolation(self.db, api::READ_COMMITTED, &mut txn) };
        check(code, "beginning a transaction")?;
        Ok(txn)
    }

    fn figures(&self) -> Result<api::Stats> {
        let mut stats = MaybeUninit::<api::Stats>::zeroed();
        // SAFETY: plain numbers, filled by the call.
        unsafe {
            check(api::tidesdb_get_db_stats(self.db, stats.as_mut_ptr()), "reading its figures")?;
            Ok(stats.assume_init())
        }
    }

    fn busy(&self) -> Result<bool> {
        // SAFETY: the handles are live.
        let working =
            unsafe { api::tidesdb_is_flushing(self.db) != 0 || api::tidesdb_is_compacting(self.cf) != 0 };
        Ok(working || self.figures()?.compaction_pending_count > 0)
    }
}

impl Engine for Tides {
    fn session(&self) -> Result<Box<dyn Session + '_>> {
        let write = self.begin()?;
        let mut session =
            TidesSession { e: self, write, read: null_mut(), batch: Batch::default(), value: Buffer::EMPTY };
        session.read = self.begin()?;
        Ok(Box::new(session))
    }
    fn settle(&self, limit: Duration) -> Result<bool> {
        let start = Instant::now();
        loop {
            // SAFETY: the database is open. The call waits for up to a minute, and then says that it is busy.
            match unsafe { api::tidesdb_flush_memtable(self.db) } {
                api::LOCKED if start.elapsed() < limit => {}
                api::LOCKED => return Ok(false),
                code => break check(code, "flushing")?,
            }
        }
        let mut idle = 0;
        while start.elapsed() < limit {
            idle = if self.busy()? { 0 } else { idle + 1 };
            if idle == 5 {
                return Ok(true);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(false)
    }
    fn stats(&self) -> BTreeMap<String, String> {
        let Ok(s) = self.figures() else { return BTreeMap::new() };
        [
            ("tables", s.total_sstable_count as u64),
            ("table_bytes", s.total_data_size_bytes),
            ("memtable_bytes", s.memtable_bytes as u64),
            ("log_bytes_written", s.wal_bytes_written),
            ("flush_bytes_written", s.flush_bytes_written),
            ("compaction_bytes_written", s.compaction_bytes_written),
            ("value_log_bytes_written", s.vlog_bytes_written),
            ("writes_throttled", s.writes_throttled),
            ("writes_blocked", s.writes_blocked),
            ("write_stall_us", s.write_stall_us),
        ]
        .into_iter()
        .map(|(name, figure)| (name.into(), figure.to_string()))
        .collect()
    }
    fn close(self: Box<Self>) -> Result<()> {
        // SAFETY: sessions borrow the engine, so neither a transaction nor an iterator is left.
        check(unsafe { api::tidesdb_close(self.db) }, "closing")
    }
}

/// Bytes that the library allocated.
struct Buffer {
    at: *mut u8,
    len: usize,
}

impl Buffer {
    const EMPTY: Buffer = Buffer { at: null_mut(), len: 0 };

    /// Has a call fill it, in place of what it held.
    #[inline]
    fn fill(&mut self, mut call: impl FnMut(*mut *mut u8, *mut usize) -> c_int) -> c_int {
        self.clear();
        patiently(|| call(&mut self.at, &mut self.len))
    }

    #[inline]
    fn clear(&mut self) {
        if !self.at.is_null() {
            // SAFETY: handed out by the library, freed once.
            unsafe { api::tidesdb_free(self.at.cast()) };
        }
        (self.at, self.len) = (null_mut(), 0);
    }

    #[inline]
    fn bytes(&self) -> &[u8] {
        if self.at.is_null() {
            return &[];
        }
        // SAFETY: filled by a successful call with `len` bytes, which live until it is cleared, by `&mut self`.
        unsafe { std::slice::from_raw_parts(self.at, self.len) }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        self.clear();
    }
}

struct TidesSession<'a> {
    e: &'a Tides,
    write: Handle,
    read: Handle,
    /// Kept until it is committed, so that a refused commit can be made again.
    batch: Batch,
    value: Buffer,
}

impl TidesSession<'_> {
    /// Adds a write to the transaction.
    #[inline]
    fn stage(&self, key: &[u8], value: Option<&[u8]>) -> c_int {
        let (txn, cf) = (self.write, self.e.cf);
        // SAFETY: the handles are live; the bytes are copied during the call.
        unsafe {
            match value {
                Some(v) => api::tidesdb_txn_put(txn, cf, key.as_ptr(), key.len(), v.as_ptr(), v.len(), 0),
                None => api::tidesdb_txn_delete(txn, cf, key.as_ptr(), key.len()),
            }
        }
    }

    /// One transaction: begun, filled and committed, and again if it was refused for others' sake.
    #[inline]
    fn transact(&mut self, fill: impl Fn(&Self) -> c_int) -> Result<()> {
        let start = Instant::now();
        loop {
            // SAFETY: the transaction is live; whatever it held is discarded.
            check(unsafe { api::tidesdb_txn_reset(self.write, api::READ_COMMITTED) }, "beginning anew")?;
            let mut code = fill(self);
            if code == api::SUCCESS {
                // SAFETY: as above.
                code = unsafe { api::tidesdb_txn_commit(self.write) };
            }
            match code {
                api::LOCKED | api::CONFLICT if start.elapsed() < PATIENCE => {
                    std::thread::sleep(Duration::from_micros(50));
                }
                code => return check(code, "committing"),
            }
        }
    }
}

impl Session for TidesSession<'_> {
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.transact(|s| s.stage(key, Some(value)))
    }
    fn delete(&mut self, key: &[u8]) -> Result<()> {
        self.transact(|s| s.stage(key, None))
    }
    fn batch_put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.batch.push(key, Some(value));
        Ok(())
    }
    fn batch_delete(&mut self, key: &[u8]) -> Result<()> {
        self.batch.push(key, None);
        Ok(())
    }
    fn commit(&mut self) -> Result<()> {
        let done = self.transact(|s| {
            for (key, value) in s.batch.iter() {
                let code = s.stage(key, value);
                if code != api::SUCCESS {
                    return code;
                }
            }
            api::SUCCESS
        });
        self.batch.clear();
        done
    }
    fn get(&mut self, key: &[u8]) -> Result<Option<&[u8]>> {
        let (txn, cf) = (self.read, self.e.cf);
        // SAFETY: the handles are live; the call fills the buffer, which is then ours.
        let code = self.value.fill(|at, len| unsafe {
            api::tidesdb_txn_get_notrack(txn, cf, key.as_ptr(), key.len(), at, len)
        });
        match code {
            api::SUCCESS => Ok(Some(self.value.bytes())),
            api::NOT_FOUND => Ok(None),
            code => Err(words(code, "reading a key")),
        }
    }
    fn cursor(&mut self) -> Result<Box<dyn Cursor + '_>> {
        let mut cursor = TidesCursor {
            txn: self.e.begin()?,
            iter: null_mut(),
            key: Buffer::EMPTY,
            value: Buffer::EMPTY,
            _e: self.e,
        };
        // SAFETY: the handles are live; the iterator reads at the newest commit of now, and is freed before its
        // transaction.
        let code = patiently(|| unsafe { api::tidesdb_iter_new(cursor.txn, self.e.cf, &mut cursor.iter) });
        check(code, "opening an iterator")?;
        Ok(Box::new(cursor))
    }
}

impl Drop for TidesSession<'_> {
    fn drop(&mut self) {
        // SAFETY: ours, freed once; null is allowed.
        unsafe {
            api::tidesdb_txn_free(self.write);
            api::tidesdb_txn_free(self.read);
        }
    }
}

struct TidesCursor<'a> {
    txn: Handle,
    iter: Handle,
    /// Fetched with each move that found an entry.
    key: Buffer,
    /// Fetched when it is asked for.
    value: Buffer,
    _e: &'a Tides,
}

impl TidesCursor<'_> {
    /// Moves by a call that succeeds on an entry and finds nothing at an end, and fetches the key.
    #[inline]
    fn go(&mut self, doing: &str, call: impl Fn(Handle) -> c_int) -> Result<bool> {
        let iter = self.iter;
        match patiently(|| call(iter)) {
            api::SUCCESS => {}
            api::NOT_FOUND => return Ok(false),
            code => return Err(words(code, doing)),
        }
        // SAFETY: the iterator is at an entry; the call fills the buffer, which is then ours.
        let code = self.key.fill(|at, len| unsafe { api::tidesdb_iter_key(iter, at, len) });
        check(code, "reading an iterator's key")?;
        Ok(true)
    }
}

impl Cursor for TidesCursor<'_> {
    fn seek_first(&mut self) -> Result<bool> {
        // SAFETY: the iterator is live. So in all calls below, which copy the key if they need it longer.
        self.go("seeking the first key", |i| unsafe { api::tidesdb_iter_seek_to_first(i) })
    }
    fn seek(&mut self, key: &[u8]) -> Result<bool> {
        // SAFETY: as in `seek_first`.
        self.go("seeking", |i| unsafe { api::tidesdb_iter_seek(i, key.as_ptr(), key.len()) })
    }
    fn next(&mut self) -> Result<bool> {
        // SAFETY: as in `seek_first`.
        self.go("moving on", |i| unsafe { api::tidesdb_iter_next(i) })
    }
    fn seek_last(&mut self) -> Result<bool> {
        // SAFETY: as in `seek_first`.
        self.go("seeking the last key", |i| unsafe { api::tidesdb_iter_seek_to_last(i) })
    }
    fn seek_back(&mut self, key: &[u8]) -> Result<bool> {
        // SAFETY: as in `seek_first`.
        self.go("seeking back", |i| unsafe { api::tidesdb_iter_seek_for_prev(i, key.as_ptr(), key.len()) })
    }
    fn prev(&mut self) -> Result<bool> {
        // SAFETY: as in `seek_first`.
        self.go("moving back", |i| unsafe { api::tidesdb_iter_prev(i) })
    }
    fn key(&self) -> &[u8] {
        self.key.bytes()
    }
    fn value(&mut self) -> Result<&[u8]> {
        let iter = self.iter;
        // SAFETY: the iterator is at an entry; the call fills the buffer, which is then ours.
        let code = self.value.fill(|at, len| unsafe { api::tidesdb_iter_value(iter, at, len) });
        check(code, "reading an iterator's value")?;
        Ok(self.value.bytes())
    }
}

impl Drop for TidesCursor<'_> {
    fn drop(&mut self) {
        // SAFETY: ours, freed once, the iterator before its transaction.
        unsafe {
            if !self.iter.is_null() {
                api::tidesdb_iter_free(self.iter);
            }
            api::tidesdb_txn_free(self.txn);
        }
    }
}
