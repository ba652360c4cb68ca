//! The adapter: an open database, its sessions and its cursors.

use super::super::{Config, Cursor, Durability, Engine, Result, Session};
use super::api::{Api, Handle};
use super::fetch;
use super::options::{self, Way};
use std::collections::BTreeMap;
use std::ffi::{CString, c_char};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Time between syncs of the log in [`Durability::Interval`].
const INTERVAL: Duration = Duration::from_millis(100);

struct RocksDb {
    api: Arc<Api>,
    db: Handle,
    write: Handle,
    read: Handle,
    options: Handle,
    syncer: Option<Syncer>,
}

// SAFETY: RocksDB's database, and its options once they are set, may be used from any thread at once.
unsafe impl Send for RocksDb {}
// SAFETY: as above.
unsafe impl Sync for RocksDb {}

/// Opens a database in `dir`, with the library of a version or, without one, the given or the default one.
pub fn open(dir: &Path, config: &Config, way: Way, version: Option<&str>) -> Result<Box<dyn Engine>> {
    let library = fetch::library(version, config.rocksdb_lib.as_deref())?;
    let api = Arc::new(Api::load(&library)?);
    let path = CString::new(dir.as_os_str().as_bytes()).map_err(|e| e.to_string())?;
    // SAFETY: handles are used as c.h says: the options are set before the open, and destroyed behind the close.
    unsafe {
        let options = (api.options_create)();
        (api.options_set_create_if_missing)(options, 1);
        options::tune(&api, options, config, way);
        let db = match api.check(|m| (api.open)(options, path.as_ptr(), m)) {
            Ok(db) => db,
            Err(e) => {
                (api.options_destroy)(options);
                return Err(e);
            }
        };
        let write = (api.writeoptions_create)();
        (api.writeoptions_set_sync)(write, u8::from(config.durability == Durability::Sync));
        (api.writeoptions_disable_WAL)(write, i32::from(config.durability == Durability::None));
        let read = (api.readoptions_create)();
        let syncer = (config.durability == Durability::Interval).then(|| Syncer::start(&api, db));
        Ok(Box::new(RocksDb { api, db, write, read, options, syncer }))
    }
}

/// A thread that syncs the log at intervals, as a user who wants that would have one.
struct Syncer {
    stop: Sender<()>,
    thread: JoinHandle<Result<()>>,
}

impl Syncer {
    fn start(api: &Arc<Api>, db: Handle) -> Syncer {
        struct Shared(Handle);
        // SAFETY: a database may be used from any thread at once.
        unsafe impl Send for Shared {}
        let (stop, stopped) = mpsc::channel();
        let (api, db) = (api.clone(), Shared(db));
        let thread = std::thread::spawn(move || {
            let db = { db }.0;
            while stopped.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Timeout) {
                // SAFETY: the database is closed only once this thread is joined.
                api.check(|m| unsafe { (api.flush_wal)(db, 1, m) })?;
            }
            Ok(())
        });
        Syncer { stop, thread }
    }

    /// Ends it; an error of a sync is an error of the run.
    fn end(self) -> Result<()> {
        drop(self.stop);
        self.thread.join().unwrap_or_else(|_| Err("the thread that syncs the log panicked".into()))
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

    fn close(mut self: Box<Self>) -> Result<()> {
        let synced = self.syncer.take().map_or(Ok(()), Syncer::end);
        // SAFETY: sessions borrow the engine, so none is left; each handle is destroyed once.
        unsafe {
            (self.api.close)(self.db);
            (self.api.writeoptions_destroy)(self.write);
            (self.api.readoptions_destroy)(self.read);
            (self.api.options_destroy)(self.options);
        }
        synced
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
    fn seek_last(&mut self) -> Result<bool> {
        // SAFETY: the iterator is live.
        unsafe { (self.e.api.iter_seek_to_last)(self.iter) };
        self.valid()
    }
    fn seek_back(&mut self, key: &[u8]) -> Result<bool> {
        // SAFETY: the iterator is live; the key is copied during the call.
        unsafe { (self.e.api.iter_seek_for_prev)(self.iter, chars(key), key.len()) };
        self.valid()
    }
    fn prev(&mut self) -> Result<bool> {
        // SAFETY: the iterator is live and, as the caller promises, at an entry.
        unsafe { (self.e.api.iter_prev)(self.iter) };
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
