//! As much of SQLite's C API as the engine needs: a connection, and a prepared statement that takes and lends bytes
//! without a copy, which `rusqlite`'s own interface makes of each bound value.

use crate::engine::Result;
use rusqlite::ffi;
use std::ffi::{CStr, CString, c_int};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::null_mut;
use std::sync::Once;

/// The version of the library.
pub fn version() -> String {
    // SAFETY: returns a terminated string that nobody frees.
    unsafe { CStr::from_ptr(ffi::sqlite3_libversion()) }.to_string_lossy().into_owned()
}

/// A connection, used by one thread at a time.
pub struct Connection {
    raw: *mut ffi::sqlite3,
}

// SAFETY: opened with SQLITE_OPEN_NOMUTEX, in a library built thread-safe: any thread may use it, one at a time.
unsafe impl Send for Connection {}

impl Connection {
    /// Opens a file, creating it if need be.
    pub fn open(path: &Path) -> Result<Connection> {
        static QUIET: Once = Once::new();
        // SAFETY: before the library is first used, as it must be. Memory statistics take a lock at each allocation; the
        // documentation advises to go without.
        QUIET.call_once(|| unsafe {
            ffi::sqlite3_config(ffi::SQLITE_CONFIG_MEMSTATUS, 0 as c_int);
        });
        let name = CString::new(path.as_os_str().as_bytes()).map_err(|e| e.to_string())?;
        let flags = ffi::SQLITE_OPEN_READWRITE | ffi::SQLITE_OPEN_CREATE | ffi::SQLITE_OPEN_NOMUTEX;
        let mut raw = null_mut();
        // SAFETY: the strings are terminated; a connection is returned even on failure, and closed by the drop.
        let code = unsafe { ffi::sqlite3_open_v2(name.as_ptr(), &mut raw, flags, std::ptr::null()) };
        let connection = Connection { raw };
        if code == ffi::SQLITE_OK {
            Ok(connection)
        } else {
            Err(connection.words("opening the database", code))
        }
    }

    /// Runs statements that return nothing of interest.
    pub fn run(&self, sql: &str) -> Result<()> {
        let text = CString::new(sql).map_err(|e| e.to_string())?;
        // SAFETY: a live connection and a terminated string.
        let code = unsafe { ffi::sqlite3_exec(self.raw, text.as_ptr(), None, null_mut(), null_mut()) };
        if code == ffi::SQLITE_OK { Ok(()) } else { Err(self.words(sql, code)) }
    }

    /// The first column of the first row, as a number.
    pub fn number(&self, sql: &str) -> Result<i64> {
        let mut statement = self.prepare(sql)?;
        if !statement.step(&[])? {
            return Err(format!("SQLite: {sql}: no row"));
        }
        // SAFETY: the statement is at a row.
        Ok(unsafe { ffi::sqlite3_column_int64(statement.raw, 0) })
    }

    /// Prepares a statement that is run many times.
    pub fn prepare(&self, sql: &str) -> Result<Statement> {
        let text = CString::new(sql).map_err(|e| e.to_string())?;
        let mut raw = null_mut();
        // SAFETY: a live connection and a terminated string, which is copied.
        let code = unsafe {
            ffi::sqlite3_prepare_v3(
                self.raw,
                text.as_ptr(),
                -1,
                ffi::SQLITE_PREPARE_PERSISTENT,
                &mut raw,
                null_mut(),
            )
        };
        if code == ffi::SQLITE_OK { Ok(Statement { raw }) } else { Err(self.words(sql, code)) }
    }

    #[cold]
    fn words(&self, what: &str, code: c_int) -> String {
        // SAFETY: a connection or null, for which this is answered too; the string is copied at once.
        let text = unsafe { CStr::from_ptr(ffi::sqlite3_errmsg(self.raw)) }.to_string_lossy();
        format!("SQLite: {what}: {text} ({code})")
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // SAFETY: ours, closed once. While it has statements it is not closed but left behind, and they stay usable.
        let code = unsafe { ffi::sqlite3_close(self.raw) };
        debug_assert_eq!(code, ffi::SQLITE_OK, "a connection was dropped before its statements");
    }
}

/// A prepared statement, to be dropped before its connection.
pub struct Statement {
    raw: *mut ffi::sqlite3_stmt,
}

// SAFETY: as for its connection, which the same thread uses.
unsafe impl Send for Statement {}

impl Statement {
    /// Runs it anew with these bytes for its parameters; whether there is a row.
    #[inline]
    pub fn step(&mut self, parameters: &[&[u8]]) -> Result<bool> {
        self.reset();
        for (i, bytes) in parameters.iter().enumerate() {
            // SAFETY: the bytes are not copied. They are read while the statement looks for its first row, and that is
            // below, while they are borrowed; a later step only moves on from there. An empty slice's pointer is not
            // null, which would bind NULL.
            let code = unsafe {
                ffi::sqlite3_bind_blob64(
                    self.raw,
                    i as c_int + 1,
                    bytes.as_ptr().cast(),
                    bytes.len() as u64,
                    ffi::SQLITE_STATIC(),
                )
            };
            if code != ffi::SQLITE_OK {
                return Err(self.words(code));
            }
        }
        self.on()
    }

    /// Moves on by a row; whether there is one.
    #[inline]
    pub fn on(&mut self) -> Result<bool> {
        // SAFETY: a live statement.
        match unsafe { ffi::sqlite3_step(self.raw) } {
            ffi::SQLITE_ROW => Ok(true),
            ffi::SQLITE_DONE => Ok(false),
            code => Err(self.words(code)),
        }
    }

    /// A column of the row, lent until the statement is used again.
    #[inline]
    pub fn column(&self, i: c_int) -> &[u8] {
        // SAFETY: the bytes live until the next step or reset, both of which need the statement mutably; the pointer is
        // asked for before the length, as documented, and is null for an empty blob.
        unsafe {
            let bytes = ffi::sqlite3_column_blob(self.raw, i);
            let len = ffi::sqlite3_column_bytes(self.raw, i);
            if bytes.is_null() { &[] } else { std::slice::from_raw_parts(bytes.cast(), len as usize) }
        }
    }

    /// Lets go of the row, and of the snapshot if nothing else holds it.
    #[inline]
    pub fn reset(&mut self) {
        // SAFETY: a live statement. The code it returns is that of the last step, which was told then.
        unsafe { ffi::sqlite3_reset(self.raw) };
    }

    #[cold]
    fn words(&self, code: c_int) -> String {
        // SAFETY: a live statement has a live connection; the strings are copied at once.
        let (sql, text) = unsafe {
            (
                CStr::from_ptr(ffi::sqlite3_sql(self.raw)).to_string_lossy().into_owned(),
                CStr::from_ptr(ffi::sqlite3_errmsg(ffi::sqlite3_db_handle(self.raw))).to_string_lossy(),
            )
        };
        format!("SQLite: {sql}: {text} ({code})")
    }
}

impl Drop for Statement {
    fn drop(&mut self) {
        // SAFETY: ours, ended once.
        unsafe { ffi::sqlite3_finalize(self.raw) };
    }
}
