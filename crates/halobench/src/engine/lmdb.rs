//! LMDB, through its C API: a copy-on-write B+tree in a map, one writer at a time.
//!
//! In the class "survives a killed process" it runs with `MDB_NOSYNC`, which its documentation gives that meaning
//! (without `MDB_WRITEMAP`, on a file system that keeps the order of writes). Each get renews the thread's read
//! transaction and so sees the newest commit, as the other engines' gets do; `MDB_APPEND` is not used.

use super::{Config, Cursor, Durability, Engine, Result, Session};
use lmdb_master_sys as sys;
use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::null_mut;
use std::time::Duration;

/// The classes, and how this engine is told.
pub const CLASSES: [(Durability, &str); 2] =
    [(Durability::Process, "MDB_NOSYNC"), (Durability::Sync, "the default")];

struct Lmdb {
    env: *mut sys::MDB_env,
    dbi: sys::MDB_dbi,
}

// SAFETY: an environment may be used from any thread; with MDB_NOTLS, so may read transactions, one thread at a time.
unsafe impl Send for Lmdb {}
// SAFETY: as above.
unsafe impl Sync for Lmdb {}

/// Turns a return code into words.
#[inline]
fn check(code: c_int) -> Result<()> {
    if code == 0 { Ok(()) } else { Err(words(code)) }
}

#[cold]
fn words(code: c_int) -> String {
    // SAFETY: returns a terminated string that nobody frees.
    format!("LMDB: {}", unsafe { CStr::from_ptr(sys::mdb_strerror(code)) }.to_string_lossy())
}

fn val(bytes: &[u8]) -> sys::MDB_val {
    sys::MDB_val { mv_size: bytes.len(), mv_data: bytes.as_ptr().cast_mut().cast() }
}

const NO_VAL: sys::MDB_val = sys::MDB_val { mv_size: 0, mv_data: null_mut::<c_void>() };

/// # Safety
/// `v` was filled by LMDB, and its transaction outlives `'a`.
unsafe fn bytes<'a>(v: &sys::MDB_val) -> &'a [u8] {
    if v.mv_size == 0 {
        return &[];
    }
    // SAFETY: as the caller promises.
    unsafe { std::slice::from_raw_parts(v.mv_data.cast(), v.mv_size) }
}

/// The version of the library.
pub fn version() -> String {
    let (mut a, mut b, mut c) = (0, 0, 0);
    // SAFETY: writes three integers.
    unsafe { sys::mdb_version(&mut a, &mut b, &mut c) };
    format!("{a}.{b}.{c}")
}

/// Opens a database in `dir`.
pub fn open(dir: &Path, config: &Config) -> Result<Box<dyn Engine>> {
    let path = CString::new(dir.as_os_str().as_bytes()).map_err(|e| e.to_string())?;
    let map = (config.expected_bytes * 8).max(8 << 30).next_multiple_of(1 << 20) as usize;
    let mut flags = sys::MDB_NOTLS;
    if config.durability < Durability::Sync {
        flags |= sys::MDB_NOSYNC;
    }
    // SAFETY: the calls' order is the documented one; on failure the environment is closed and forgotten.
    unsafe {
        let mut env = null_mut();
        check(sys::mdb_env_create(&mut env))?;
        let opened = (|| {
            check(sys::mdb_env_set_mapsize(env, map))?;
            check(sys::mdb_env_set_maxreaders(env, (config.threads * 2 + 8) as u32))?;
            check(sys::mdb_env_open(env, path.as_ptr(), flags, 0o644))?;
            let mut txn = null_mut();
            check(sys::mdb_txn_begin(env, null_mut(), 0, &mut txn))?;
            let mut dbi = 0;
            if let Err(e) = check(sys::mdb_dbi_open(txn, std::ptr::null(), 0, &mut dbi)) {
                sys::mdb_txn_abort(txn);
                return Err(e);
            }
            check(sys::mdb_txn_commit(txn))?;
            Ok(dbi)
        })();
        match opened {
            Ok(dbi) => Ok(Box::new(Lmdb { env, dbi })),
            Err(e) => {
                sys::mdb_env_close(env);
                Err(e)
            }
        }
    }
}

impl Engine for Lmdb {
    fn session(&self) -> Result<Box<dyn Session + '_>> {
        Ok(Box::new(LmdbSession { e: self, read: null_mut(), reading: false, write: null_mut() }))
    }
    fn settle(&self, _limit: Duration) -> Result<bool> {
        // SAFETY: the environment is open.
        check(unsafe { sys::mdb_env_sync(self.env, 1) })?;
        Ok(true)
    }
    fn stats(&self) -> BTreeMap<String, String> {
        // SAFETY: the environment is open; the struct is plain numbers, filled by the call.
        let stat = unsafe {
            let mut stat: sys::MDB_stat = std::mem::zeroed();
            sys::mdb_env_stat(self.env, &mut stat);
            stat
        };
        BTreeMap::from([
            ("depth".into(), stat.ms_depth.to_string()),
            ("leaf_pages".into(), stat.ms_leaf_pages.to_string()),
            ("entries".into(), stat.ms_entries.to_string()),
        ])
    }
    fn close(self: Box<Self>) -> Result<()> {
        // SAFETY: sessions borrow the engine, so no transaction is left.
        unsafe { sys::mdb_env_close(self.env) };
        Ok(())
    }
}

struct LmdbSession<'a> {
    e: &'a Lmdb,
    /// Begun once, then reset and renewed.
    read: *mut sys::MDB_txn,
    /// Whether `read` holds a snapshot now.
    reading: bool,
    /// Open while a batch is.
    write: *mut sys::MDB_txn,
}

impl LmdbSession<'_> {
    /// Lets go of the snapshot, which would keep old pages from being reused.
    #[inline]
    fn release(&mut self) {
        if self.reading {
            // SAFETY: a live read transaction.
            unsafe { sys::mdb_txn_reset(self.read) };
            self.reading = false;
        }
    }

    #[inline]
    fn renew(&mut self) -> Result<()> {
        self.release();
        // SAFETY: begins the transaction the first time, renews a reset one afterwards.
        unsafe {
            if self.read.is_null() {
                check(sys::mdb_txn_begin(self.e.env, null_mut(), sys::MDB_RDONLY, &mut self.read))?;
            } else {
                check(sys::mdb_txn_renew(self.read))?;
            }
        }
        self.reading = true;
        Ok(())
    }

    #[inline]
    fn writer(&mut self) -> Result<*mut sys::MDB_txn> {
        if self.write.is_null() {
            self.release();
            // SAFETY: the environment is open, and this thread has no other write transaction.
            check(unsafe { sys::mdb_txn_begin(self.e.env, null_mut(), 0, &mut self.write) })?;
        }
        Ok(self.write)
    }
}

impl Session for LmdbSession<'_> {
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.batch_put(key, value)?;
        self.commit()
    }
    fn delete(&mut self, key: &[u8]) -> Result<()> {
        self.batch_delete(key)?;
        self.commit()
    }
    fn batch_put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let txn = self.writer()?;
        let (mut k, mut v) = (val(key), val(value));
        // SAFETY: LMDB copies the bytes during the call and does not write to them.
        check(unsafe { sys::mdb_put(txn, self.e.dbi, &mut k, &mut v, 0) })
    }
    fn batch_delete(&mut self, key: &[u8]) -> Result<()> {
        let txn = self.writer()?;
        let mut k = val(key);
        // SAFETY: as in `batch_put`.
        match unsafe { sys::mdb_del(txn, self.e.dbi, &mut k, null_mut()) } {
            sys::MDB_NOTFOUND => Ok(()),
            code => check(code),
        }
    }
    fn commit(&mut self) -> Result<()> {
        if self.write.is_null() {
            return Ok(());
        }
        let txn = std::mem::replace(&mut self.write, null_mut());
        // SAFETY: a live write transaction, ended here whatever the outcome.
        check(unsafe { sys::mdb_txn_commit(txn) })
    }
    fn get(&mut self, key: &[u8]) -> Result<Option<&[u8]>> {
        self.renew()?;
        let (mut k, mut v) = (val(key), NO_VAL);
        // SAFETY: the transaction is live until the session's next call, and so are the bytes it lends.
        unsafe {
            match sys::mdb_get(self.read, self.e.dbi, &mut k, &mut v) {
                0 => Ok(Some(bytes(&v))),
                sys::MDB_NOTFOUND => Ok(None),
                code => Err(words(code)),
            }
        }
    }
    fn cursor(&mut self) -> Result<Box<dyn Cursor + '_>> {
        self.renew()?;
        let mut cursor = null_mut();
        // SAFETY: the read transaction outlives the cursor, which borrows the session.
        check(unsafe { sys::mdb_cursor_open(self.read, self.e.dbi, &mut cursor) })?;
        Ok(Box::new(LmdbCursor { cursor, key: NO_VAL, value: NO_VAL, _session: std::marker::PhantomData }))
    }
}

impl Drop for LmdbSession<'_> {
    fn drop(&mut self) {
        // SAFETY: live transactions of ours, ended once.
        unsafe {
            if !self.write.is_null() {
                sys::mdb_txn_abort(self.write);
            }
            if !self.read.is_null() {
                sys::mdb_txn_abort(self.read);
            }
        }
    }
}

struct LmdbCursor<'a> {
    cursor: *mut sys::MDB_cursor,
    key: sys::MDB_val,
    value: sys::MDB_val,
    _session: std::marker::PhantomData<&'a mut ()>,
}

impl LmdbCursor<'_> {
    #[inline]
    fn go(&mut self, op: sys::MDB_cursor_op) -> Result<bool> {
        // SAFETY: the cursor and its transaction are live.
        match unsafe { sys::mdb_cursor_get(self.cursor, &mut self.key, &mut self.value, op) } {
            0 => Ok(true),
            sys::MDB_NOTFOUND => Ok(false),
            code => Err(words(code)),
        }
    }
}

impl Cursor for LmdbCursor<'_> {
    fn seek_first(&mut self) -> Result<bool> {
        self.go(sys::MDB_FIRST)
    }
    fn seek(&mut self, key: &[u8]) -> Result<bool> {
        self.key = val(key);
        self.go(sys::MDB_SET_RANGE)
    }
    fn next(&mut self) -> Result<bool> {
        self.go(sys::MDB_NEXT)
    }
    fn seek_last(&mut self) -> Result<bool> {
        self.go(sys::MDB_LAST)
    }
    fn seek_back(&mut self, key: &[u8]) -> Result<bool> {
        // The first key at or behind it is the key itself, or the one behind that which is wanted.
        if !self.seek(key)? {
            return self.go(sys::MDB_LAST);
        }
        if self.key() == key { Ok(true) } else { self.go(sys::MDB_PREV) }
    }
    fn prev(&mut self) -> Result<bool> {
        self.go(sys::MDB_PREV)
    }
    fn key(&self) -> &[u8] {
        // SAFETY: filled by the last move that found an entry; the snapshot outlives the cursor.
        unsafe { bytes(&self.key) }
    }
    fn value(&mut self) -> Result<&[u8]> {
        // SAFETY: as in `key`.
        Ok(unsafe { bytes(&self.value) })
    }
}

impl Drop for LmdbCursor<'_> {
    fn drop(&mut self) {
        // SAFETY: ours, closed once, before its transaction ends.
        unsafe { sys::mdb_cursor_close(self.cursor) };
    }
}
