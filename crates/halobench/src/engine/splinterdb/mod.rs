//! SplinterDB, a size-tiered Bε-tree in C, from the user's own build of it: there is no package.
//!
//! `SPLINTERDB_LIB` names its `libsplinterdb.so`; its headers are looked for beside it and in `SPLINTERDB_INCLUDE`. What
//! is loaded is a small library of the lab's own, compiled with `cc` against those headers (see `shim.c` for why), once
//! for each state of the library, and kept in the lab's cache folder.
//!
//! It keeps nothing through a kill (its log is not replayed), so it has the class that promises nothing and no other. It
//! has no batches: a batch is so many inserts. Its iterators cannot seek: each seek makes one. They are no stable views
//! of more than a leaf. It does not compress. Its memtables live in its cache, which so gets the bytes of both.

mod api;
mod build;

use super::registry::{Entry, How};
use super::{Config, Cursor, Durability, Engine, Result, Session};
use api::{Api, Handle};
use std::cell::Cell;
use std::ffi::{CString, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::{null, null_mut};
use std::time::{Duration, Instant};

/// The classes, and how this engine is told.
pub const CLASSES: [(Durability, &str); 1] = [(Durability::None, "there is no recovery: the log is off")];

/// Longest key, where it must be told.
const MAX_KEY: usize = 512;

/// The engine.
pub fn entry() -> Entry {
    Entry {
        name: "splinterdb",
        about: "SplinterDB, from your own build; no batches, no recovery",
        classes: &CLASSES,
        how: How::Here { open, probe: |_| build::library().and_then(|path| Api::load(&path)?.version()) },
    }
}

thread_local! {
    /// Uses of the database by this thread, which is registered while there are any. A process has one database open.
    static USES: Cell<usize> = const { Cell::new(0) };
}

struct Splinter {
    api: Api,
    db: Handle,
    /// SplinterDB keeps pointing at it.
    _file: CString,
}

// SAFETY: SplinterDB's functions may be called by any registered thread at once.
unsafe impl Send for Splinter {}
// SAFETY: as above.
unsafe impl Sync for Splinter {}

fn check(code: c_int, doing: &str) -> Result<()> {
    if code == 0 { Ok(()) } else { Err(format!("SplinterDB: {doing}: error {code}")) }
}

fn open(dir: &Path, config: &Config) -> Result<Box<dyn Engine>> {
    open_with(Api::load(&build::library()?)?, dir, config)
}

fn open_with(api: Api, dir: &Path, config: &Config) -> Result<Box<dyn Engine>> {
    let path = dir.join("splinterdb");
    let file = CString::new(path.as_os_str().as_bytes()).map_err(|e| e.to_string())?;
    let create = !path.exists();
    let cache = (config.cache + config.write_buffer) as u64;
    // The file's size is fixed when it is made, and it is sparse.
    let disk = (config.expected_bytes * 8).max(8 << 30).next_multiple_of(1 << 20);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    // Its header's rule of thumb: one thread for memtables for ten that insert, and one for the rest for each.
    let (memtables, others) = (config.threads.div_ceil(10), config.threads.clamp(1, cores));
    let mut db = null_mut();
    // SAFETY: the path is terminated and lives as long as the database.
    let code = unsafe {
        (api.open)(
            file.as_ptr(),
            c_int::from(create),
            cache,
            disk,
            memtables as u64,
            others as u64,
            MAX_KEY as u64,
            &mut db,
        )
    };
    check(code, &format!("opening {}", path.display()))?;
    // The thread that opens it is registered by that.
    USES.with(|uses| uses.set(uses.get() + 1));
    Ok(Box::new(Splinter { api, db, _file: file }))
}

/// CPU time of this process.
fn cpu() -> Duration {
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: fills the struct.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut t) };
    Duration::new(t.tv_sec as u64, t.tv_nsec as u32)
}

impl Engine for Splinter {
    fn session(&self) -> Result<Box<dyn Session + '_>> {
        if USES.with(|uses| uses.replace(uses.get() + 1)) == 0 {
            // SAFETY: this thread is not registered yet.
            unsafe { (self.api.register)(self.db) };
        }
        // SAFETY: the database is open.
        let session = unsafe { (self.api.session_begin)(self.db) };
        if session.is_null() {
            leave(self);
            return Err("SplinterDB: no memory for a session".into());
        }
        Ok(Box::new(SplinterSession { e: self, session }))
    }
    /// There is nothing to ask: waits until the process does no work.
    fn settle(&self, limit: Duration) -> Result<bool> {
        const STEP: Duration = Duration::from_millis(100);
        let start = Instant::now();
        let mut idle = 0;
        let mut before = cpu();
        while start.elapsed() < limit {
            std::thread::sleep(STEP);
            let now = cpu();
            idle = if now - before < STEP / 20 { idle + 1 } else { 0 };
            before = now;
            if idle == 5 {
                return Ok(true);
            }
        }
        Ok(false)
    }
    fn close(self: Box<Self>) -> Result<()> {
        // SAFETY: sessions borrow the engine, so none is left; the caller is the thread that opened it or another one,
        // which must be registered.
        let code = unsafe {
            if USES.with(Cell::get) == 0 {
                (self.api.register)(self.db);
            } else {
                USES.with(|uses| uses.set(uses.get() - 1));
            }
            (self.api.close)(self.db)
        };
        check(code, "closing")
    }
}

/// One use less by this thread.
fn leave(e: &Splinter) {
    if USES.with(|uses| uses.replace(uses.get() - 1)) == 1 {
        // SAFETY: this thread is registered.
        unsafe { (e.api.deregister)(e.db) };
    }
}

struct SplinterSession<'a> {
    e: &'a Splinter,
    session: Handle,
}

fn bytes_ptr(bytes: &[u8]) -> *const c_void {
    bytes.as_ptr().cast()
}

impl Session for SplinterSession<'_> {
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        // SAFETY: the database is open and the thread registered; the bytes are copied.
        let code =
            unsafe { (self.e.api.put)(self.e.db, bytes_ptr(key), key.len(), bytes_ptr(value), value.len()) };
        check(code, "inserting")
    }
    fn delete(&mut self, key: &[u8]) -> Result<()> {
        // SAFETY: as in `put`.
        check(unsafe { (self.e.api.delete)(self.e.db, bytes_ptr(key), key.len()) }, "deleting")
    }
    fn batch_put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.put(key, value)
    }
    fn batch_delete(&mut self, key: &[u8]) -> Result<()> {
        self.delete(key)
    }
    fn commit(&mut self) -> Result<()> {
        Ok(())
    }
    fn get(&mut self, key: &[u8]) -> Result<Option<&[u8]>> {
        let (mut value, mut len) = (null(), 0);
        // SAFETY: as in `put`; the session lends the value until its next call.
        unsafe {
            let code = (self.e.api.get)(self.session, bytes_ptr(key), key.len(), &mut value, &mut len);
            check(code, "looking a key up")?;
            Ok((!value.is_null()).then(|| std::slice::from_raw_parts(value.cast(), len)))
        }
    }
    fn cursor(&mut self) -> Result<Box<dyn Cursor + '_>> {
        Ok(Box::new(SplinterCursor { e: self.e, iter: null_mut(), key: (null(), 0), value: (null(), 0) }))
    }
}

impl Drop for SplinterSession<'_> {
    fn drop(&mut self) {
        // SAFETY: ours, ended once.
        unsafe { (self.e.api.session_end)(self.session) };
        leave(self.e);
    }
}

struct SplinterCursor<'a> {
    e: &'a Splinter,
    /// Null before the first seek.
    iter: Handle,
    key: (*const c_void, usize),
    value: (*const c_void, usize),
}

impl SplinterCursor<'_> {
    /// Starts anew, at or behind a key or at the first one.
    fn start(&mut self, key: Option<&[u8]>) -> Result<bool> {
        self.end();
        let (at, len) = key.map_or((null(), 0), |k| (bytes_ptr(k), k.len()));
        // SAFETY: the database is open and the thread registered; the key is copied.
        check(unsafe { (self.e.api.iter_begin)(self.e.db, at, len, &mut self.iter) }, "making an iterator")?;
        self.look()
    }

    /// Whether there is an entry.
    fn look(&mut self) -> Result<bool> {
        let (key, value) = (&mut self.key, &mut self.value);
        // SAFETY: the iterator is live.
        let code =
            unsafe { (self.e.api.iter_at)(self.iter, &mut key.0, &mut key.1, &mut value.0, &mut value.1) };
        check(code, "iterating")?;
        Ok(!self.key.0.is_null())
    }

    fn end(&mut self) {
        if !self.iter.is_null() {
            // SAFETY: ours, ended once.
            unsafe { (self.e.api.iter_end)(self.iter) };
            self.iter = null_mut();
        }
    }
}

impl Cursor for SplinterCursor<'_> {
    fn seek_first(&mut self) -> Result<bool> {
        self.start(None)
    }
    fn seek(&mut self, key: &[u8]) -> Result<bool> {
        self.start(Some(key))
    }
    fn next(&mut self) -> Result<bool> {
        // SAFETY: the iterator is live and, as the caller promises, at an entry.
        unsafe { (self.e.api.iter_next)(self.iter) };
        self.look()
    }
    fn key(&self) -> &[u8] {
        // SAFETY: lent by the last move that found an entry, until the next one.
        unsafe { std::slice::from_raw_parts(self.key.0.cast(), self.key.1) }
    }
    fn value(&mut self) -> Result<&[u8]> {
        // SAFETY: as in `key`.
        Ok(unsafe { std::slice::from_raw_parts(self.value.0.cast(), self.value.1) })
    }
}

impl Drop for SplinterCursor<'_> {
    fn drop(&mut self) {
        self.end();
    }
}

#[cfg(test)]
mod tests;
