//! Libmdbx, through its C API: a descendant of LMDB, driven as [`super::lmdb`] is.
//!
//! `MDBX_UTTERLY_NOSYNC` is LMDB's `MDB_NOSYNC`: commits are written into the file and never synced, so they survive a
//! kill. With `MDBX_SAFE_NOSYNC` a crash of the machine leaves the last synced commit, and a sync is due after so much
//! time; the commit that finds it due does it. Each get refreshes the session's read transaction.
//!
//! The C API and not the `libmdbx` crate over it, which sends the begin and the end of each write transaction through a
//! thread of its own and locks each read.

use super::{Config, Cursor, Durability, Engine, Result, Session};
use mdbx_sys as sys;
use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_int};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::null_mut;
use std::time::Duration;

/// Time after which a sync is due, in 1/65536 s: 100 ms.
const SYNC_PERIOD: u64 = 65536 / 10;

struct Mdbx {
    env: *mut sys::MDBX_env,
    dbi: sys::MDBX_dbi,
}

// SAFETY: an environment may be used from any thread; with MDBX_NOSTICKYTHREADS so may transactions, one thread at a time.
unsafe impl Send for Mdbx {}
// SAFETY: as above.
unsafe impl Sync for Mdbx {}

/// Turns a return code into words; `MDBX_RESULT_TRUE` means that there was nothing to do.
#[inline]
fn check(code: c_int) -> Result<()> {
    if code == sys::MDBX_SUCCESS || code == sys::MDBX_RESULT_TRUE { Ok(()) } else { Err(words(code)) }
}

#[cold]
fn words(code: c_int) -> String {
    // SAFETY: returns a terminated string that nobody frees.
    format!("libmdbx: {}", unsafe { CStr::from_ptr(sys::mdbx_strerror(code)) }.to_string_lossy())
}

fn val(bytes: &[u8]) -> sys::MDBX_val {
    sys::MDBX_val { iov_len: bytes.len(), iov_base: bytes.as_ptr().cast_mut().cast() }
}

const NO_VAL: sys::MDBX_val = sys::MDBX_val { iov_len: 0, iov_base: null_mut() };

/// # Safety
/// `v` was filled by libmdbx, and its transaction outlives `'a`.
unsafe fn bytes<'a>(v: &sys::MDBX_val) -> &'a [u8] {
    if v.iov_len == 0 {
        return &[];
    }
    // SAFETY: as the caller promises.
    unsafe { std::slice::from_raw_parts(v.iov_base.cast(), v.iov_len) }
}

/// The version of the library.
pub fn version() -> String {
    // SAFETY: a constant of the library.
    let v = unsafe { &sys::mdbx_version };
    format!("{}.{}.{}", v.major, v.minor, v.patch)
}

/// Opens a database in `dir`.
pub fn open(dir: &Path, config: &Config) -> Result<Box<dyn Engine>> {
    let path = CString::new(dir.as_os_str().as_bytes()).map_err(|e| e.to_string())?;
    let map = (config.expected_bytes * 8).max(8 << 30).next_multiple_of(1 << 20) as isize;
    let mode = match config.durability {
        Durability::None | Durability::Process => sys::MDBX_UTTERLY_NOSYNC,
        Durability::Interval => sys::MDBX_SAFE_NOSYNC,
        Durability::Sync => sys::MDBX_SYNC_DURABLE,
    };
    // SAFETY: the calls' order is the documented one; on failure the environment is closed and forgotten.
    unsafe {
        // A build with assertions talks a lot.
        sys::mdbx_setup_debug(sys::MDBX_LOG_ERROR, sys::MDBX_DBG_DONTCHANGE, None);
        let mut env = null_mut();
        check(sys::mdbx_env_create(&mut env))?;
        let opened = (|| {
            check(sys::mdbx_env_set_geometry(env, -1, -1, map, -1, -1, -1))?;
            let readers = (config.threads * 2 + 8) as u64;
            check(sys::mdbx_env_set_option(env, sys::MDBX_opt_max_readers, readers))?;
            check(sys::mdbx_env_open(env, path.as_ptr(), sys::MDBX_NOSTICKYTHREADS | mode, 0o644))?;
            if config.durability == Durability::Interval {
                check(sys::mdbx_env_set_option(env, sys::MDBX_opt_sync_period, SYNC_PERIOD))?;
            }
            let mut txn = null_mut();
            check(sys::mdbx_txn_begin_ex(env, null_mut(), sys::MDBX_TXN_READWRITE, &mut txn, null_mut()))?;
            let mut dbi = 0;
            if let Err(e) = check(sys::mdbx_dbi_open(txn, std::ptr::null(), sys::MDBX_DB_DEFAULTS, &mut dbi))
            {
                sys::mdbx_txn_abort_ex(txn, null_mut());
                return Err(e);
            }
            check(sys::mdbx_txn_commit_ex(txn, null_mut()))?;
            Ok(dbi)
        })();
        match opened {
            Ok(dbi) => Ok(Box::new(Mdbx { env, dbi })),
            Err(e) => {
                sys::mdbx_env_close_ex(env, true);
                Err(e)
            }
        }
    }
}

impl Engine for Mdbx {
    fn session(&self) -> Result<Box<dyn Session + '_>> {
        Ok(Box::new(MdbxSession { e: self, read: null_mut(), reading: false, write: null_mut() }))
    }
    fn settle(&self, _limit: Duration) -> Result<bool> {
        // SAFETY: the environment is open.
        check(unsafe { sys::mdbx_env_sync_ex(self.env, true, false) })?;
        Ok(true)
    }
    fn stats(&self) -> BTreeMap<String, String> {
        // SAFETY: the environment is open; the struct is plain numbers, filled by the call.
        let stat = unsafe {
            let mut stat: sys::MDBX_stat = std::mem::zeroed();
            sys::mdbx_env_stat_ex(self.env, std::ptr::null(), &mut stat, size_of::<sys::MDBX_stat>());
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
        check(unsafe { sys::mdbx_env_close_ex(self.env, false) })
    }
}

struct MdbxSession<'a> {
    e: &'a Mdbx,
    /// Begun once, then refreshed, or reset and renewed.
    read: *mut sys::MDBX_txn,
    /// Whether `read` holds a snapshot now.
    reading: bool,
    /// Open while a batch is.
    write: *mut sys::MDBX_txn,
}

impl MdbxSession<'_> {
    /// Lets go of the snapshot, which would keep old pages from being reused.
    #[inline]
    fn release(&mut self) -> Result<()> {
        if std::mem::replace(&mut self.reading, false) {
            // SAFETY: a live read transaction.
            check(unsafe { sys::mdbx_txn_reset(self.read) })?;
        }
        Ok(())
    }

    #[inline]
    fn renew(&mut self) -> Result<()> {
        // SAFETY: begins the transaction the first time, refreshes a live one, renews a reset one.
        unsafe {
            check(if self.read.is_null() {
                let flags = sys::MDBX_TXN_RDONLY;
                sys::mdbx_txn_begin_ex(self.e.env, null_mut(), flags, &mut self.read, null_mut())
            } else if self.reading {
                sys::mdbx_txn_refresh(self.read)
            } else {
                sys::mdbx_txn_renew(self.read)
            })?;
        }
        self.reading = true;
        Ok(())
    }

    #[inline]
    fn writer(&mut self) -> Result<*mut sys::MDBX_txn> {
        if self.write.is_null() {
            self.release()?;
            let flags = sys::MDBX_TXN_READWRITE;
            // SAFETY: the environment is open, and this thread has no other write transaction.
            check(unsafe {
                sys::mdbx_txn_begin_ex(self.e.env, null_mut(), flags, &mut self.write, null_mut())
            })?;
        }
        Ok(self.write)
    }
}

impl Session for MdbxSession<'_> {
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
        let (k, mut v) = (val(key), val(value));
        // SAFETY: the bytes are copied during the call and not written to.
        check(unsafe { sys::mdbx_put(txn, self.e.dbi, &k, &mut v, sys::MDBX_UPSERT) })
    }
    fn batch_delete(&mut self, key: &[u8]) -> Result<()> {
        let txn = self.writer()?;
        let k = val(key);
        // SAFETY: as in `batch_put`.
        match unsafe { sys::mdbx_del(txn, self.e.dbi, &k, std::ptr::null()) } {
            sys::MDBX_NOTFOUND => Ok(()),
            code => check(code),
        }
    }
    fn commit(&mut self) -> Result<()> {
        if self.write.is_null() {
            return Ok(());
        }
        let txn = std::mem::replace(&mut self.write, null_mut());
        // SAFETY: a live write transaction, ended here whatever the outcome.
        check(unsafe { sys::mdbx_txn_commit_ex(txn, null_mut()) })
    }
    fn get(&mut self, key: &[u8]) -> Result<Option<&[u8]>> {
        self.renew()?;
        let (k, mut v) = (val(key), NO_VAL);
        // SAFETY: the transaction is live until the session's next call, and so are the bytes it lends.
        unsafe {
            match sys::mdbx_get(self.read, self.e.dbi, &k, &mut v) {
                sys::MDBX_SUCCESS => Ok(Some(bytes(&v))),
                sys::MDBX_NOTFOUND => Ok(None),
                code => Err(words(code)),
            }
        }
    }
    fn cursor(&mut self) -> Result<Box<dyn Cursor + '_>> {
        self.renew()?;
        let mut cursor = null_mut();
        // SAFETY: the read transaction outlives the cursor, which borrows the session.
        check(unsafe { sys::mdbx_cursor_open(self.read, self.e.dbi, &mut cursor) })?;
        Ok(Box::new(MdbxCursor { cursor, key: NO_VAL, value: NO_VAL, _session: std::marker::PhantomData }))
    }
}

impl Drop for MdbxSession<'_> {
    fn drop(&mut self) {
        // SAFETY: live transactions of ours, ended once.
        unsafe {
            if !self.write.is_null() {
                sys::mdbx_txn_abort_ex(self.write, null_mut());
            }
            if !self.read.is_null() {
                sys::mdbx_txn_abort_ex(self.read, null_mut());
            }
        }
    }
}

struct MdbxCursor<'a> {
    cursor: *mut sys::MDBX_cursor,
    key: sys::MDBX_val,
    value: sys::MDBX_val,
    _session: std::marker::PhantomData<&'a mut ()>,
}

impl MdbxCursor<'_> {
    #[inline]
    fn go(&mut self, op: sys::MDBX_cursor_op) -> Result<bool> {
        // SAFETY: the cursor and its transaction are live; a key that is sought is read during the call only.
        match unsafe { sys::mdbx_cursor_get(self.cursor, &mut self.key, &mut self.value, op) } {
            sys::MDBX_SUCCESS | sys::MDBX_RESULT_TRUE => Ok(true),
            sys::MDBX_NOTFOUND => Ok(false),
            code => Err(words(code)),
        }
    }
}

impl Cursor for MdbxCursor<'_> {
    fn seek_first(&mut self) -> Result<bool> {
        self.go(sys::MDBX_FIRST)
    }
    fn seek(&mut self, key: &[u8]) -> Result<bool> {
        self.key = val(key);
        self.go(sys::MDBX_SET_RANGE)
    }
    fn next(&mut self) -> Result<bool> {
        self.go(sys::MDBX_NEXT)
    }
    fn seek_last(&mut self) -> Result<bool> {
        self.go(sys::MDBX_LAST)
    }
    fn seek_back(&mut self, key: &[u8]) -> Result<bool> {
        self.key = val(key);
        self.go(sys::MDBX_TO_KEY_LESSER_OR_EQUAL)
    }
    fn prev(&mut self) -> Result<bool> {
        self.go(sys::MDBX_PREV)
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

impl Drop for MdbxCursor<'_> {
    fn drop(&mut self) {
        // SAFETY: ours, closed once, before its transaction ends.
        unsafe { sys::mdbx_cursor_close(self.cursor) };
    }
}
