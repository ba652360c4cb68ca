//! RocksDB's C API (`rocksdb/c.h`), as much of it as the lab calls, from a library loaded at run time.
//!
//! C `bool`s are `unsigned char` there. A call that can fail takes a `char**` that must point to null; on failure it
//! points to a message that the caller frees.

use super::super::Result;
use libloading::Library;
use std::ffi::{CStr, c_char, c_double, c_int, c_uchar, c_void};
use std::path::Path;

/// Any of RocksDB's opaque handles.
pub type Handle = *mut c_void;
/// Where a failing call leaves its message.
pub type Message = *mut *mut c_char;

macro_rules! api {
    (required { $($name:ident: fn($($arg:ty),*) $(-> $ret:ty)?;)* } optional { $($oname:ident: fn($($oarg:ty),*) $(-> $oret:ty)?;)* }) => {
        /// The functions, resolved once. Each is documented in rocksdb/c.h, under `rocksdb_` and its name.
        #[expect(non_snake_case, reason = "names are those of c.h")]
        pub struct Api {
            $(pub $name: unsafe extern "C" fn($($arg),*) $(-> $ret)?,)*
            $(pub $oname: Option<unsafe extern "C" fn($($oarg),*) $(-> $oret)?>,)*
            _library: Library,
        }

        impl Api {
            /// Loads the library and looks every function up.
            pub fn load(path: &Path) -> Result<Api> {
                // SAFETY: the file is RocksDB's library, pinned by its digest or named by the user; its
                // initializers are those of the C++ runtime.
                let library = unsafe { Library::new(path) }
                    .map_err(|e| format!("loading {}: {e}", path.display()))?;
                // SAFETY: the signatures are those of rocksdb/c.h. The pointers live as long as `_library`, which
                // lives in the same struct and is never taken out of it.
                unsafe {
                    Ok(Api {
                        $($name: *library.get(concat!("rocksdb_", stringify!($name)).as_bytes()).map_err(|e| {
                            format!("{} has no rocksdb_{}: {e}", path.display(), stringify!($name))
                        })?,)*
                        $($oname: library.get(concat!("rocksdb_", stringify!($oname)).as_bytes()).ok().map(|s| *s),)*
                        _library: library,
                    })
                }
            }
        }
    };
}

api! {
    required {
        options_create: fn() -> Handle;
        options_destroy: fn(Handle);
        options_set_create_if_missing: fn(Handle, c_uchar);
        options_set_write_buffer_size: fn(Handle, usize);
        options_set_max_write_buffer_number: fn(Handle, c_int);
        options_set_max_background_jobs: fn(Handle, c_int);
        options_set_compression: fn(Handle, c_int);
        options_set_compaction_style: fn(Handle, c_int);
        options_set_enable_blob_files: fn(Handle, c_uchar);
        options_set_min_blob_size: fn(Handle, u64);
        options_set_blob_compression_type: fn(Handle, c_int);
        options_set_enable_blob_gc: fn(Handle, c_uchar);
        options_set_blob_cache: fn(Handle, Handle);
        options_set_level_compaction_dynamic_level_bytes: fn(Handle, c_uchar);
        options_set_block_based_table_factory: fn(Handle, Handle);
        block_based_options_create: fn() -> Handle;
        block_based_options_destroy: fn(Handle);
        block_based_options_set_filter_policy: fn(Handle, Handle);
        block_based_options_set_block_cache: fn(Handle, Handle);
        block_based_options_set_cache_index_and_filter_blocks: fn(Handle, c_uchar);
        block_based_options_set_pin_l0_filter_and_index_blocks_in_cache: fn(Handle, c_uchar);
        filterpolicy_create_bloom_full: fn(c_double) -> Handle;
        cache_create_lru: fn(usize) -> Handle;
        cache_destroy: fn(Handle);
        open: fn(Handle, *const c_char, Message) -> Handle;
        close: fn(Handle);
        free: fn(*mut c_void);
        writeoptions_create: fn() -> Handle;
        writeoptions_destroy: fn(Handle);
        writeoptions_set_sync: fn(Handle, c_uchar);
        writeoptions_disable_WAL: fn(Handle, c_int);
        flush_wal: fn(Handle, c_uchar, Message);
        readoptions_create: fn() -> Handle;
        readoptions_destroy: fn(Handle);
        put: fn(Handle, Handle, *const c_char, usize, *const c_char, usize, Message);
        delete: fn(Handle, Handle, *const c_char, usize, Message);
        writebatch_create: fn() -> Handle;
        writebatch_destroy: fn(Handle);
        writebatch_clear: fn(Handle);
        writebatch_put: fn(Handle, *const c_char, usize, *const c_char, usize);
        writebatch_delete: fn(Handle, *const c_char, usize);
        write: fn(Handle, Handle, Handle, Message);
        get_pinned: fn(Handle, Handle, *const c_char, usize, Message) -> Handle;
        pinnableslice_value: fn(Handle, *mut usize) -> *const c_char;
        pinnableslice_destroy: fn(Handle);
        create_iterator: fn(Handle, Handle) -> Handle;
        iter_destroy: fn(Handle);
        iter_seek_to_first: fn(Handle);
        iter_seek_to_last: fn(Handle);
        iter_seek: fn(Handle, *const c_char, usize);
        iter_seek_for_prev: fn(Handle, *const c_char, usize);
        iter_next: fn(Handle);
        iter_prev: fn(Handle);
        iter_valid: fn(Handle) -> c_uchar;
        iter_key: fn(Handle, *mut usize) -> *const c_char;
        iter_value: fn(Handle, *mut usize) -> *const c_char;
        iter_get_error: fn(Handle, Message);
        flushoptions_create: fn() -> Handle;
        flushoptions_destroy: fn(Handle);
        flushoptions_set_wait: fn(Handle, c_uchar);
        flush: fn(Handle, Handle, Message);
        property_value: fn(Handle, *const c_char) -> *mut c_char;
    }
    optional {
        cache_create_hyper_clock: fn(usize, usize) -> Handle;
        get_into_buffer: fn(Handle, Handle, *const c_char, usize, *mut c_char, usize, *mut usize, *mut c_uchar, Message) -> c_uchar;
        wait_for_compact: fn(Handle, Handle, Message);
        wait_for_compact_options_create: fn() -> Handle;
        wait_for_compact_options_destroy: fn(Handle);
        wait_for_compact_options_set_timeout: fn(Handle, u64);
    }
}

impl Api {
    /// Calls something that may leave a message.
    #[inline]
    pub fn check<T>(&self, call: impl FnOnce(Message) -> T) -> Result<T> {
        let mut message: *mut c_char = std::ptr::null_mut();
        let value = call(&mut message);
        if message.is_null() { Ok(value) } else { Err(self.take_message(message)) }
    }

    #[cold]
    fn take_message(&self, message: *mut c_char) -> String {
        // SAFETY: a message is a terminated string that we own.
        unsafe {
            let words = format!("RocksDB: {}", CStr::from_ptr(message).to_string_lossy());
            (self.free)(message.cast());
            words
        }
    }

    /// A property of the database, in words.
    pub fn property(&self, db: Handle, name: &CStr) -> Option<String> {
        // SAFETY: `db` is open; the result is null or a terminated string that we own.
        unsafe {
            let value = (self.property_value)(db, name.as_ptr());
            if value.is_null() {
                return None;
            }
            let words = CStr::from_ptr(value).to_string_lossy().into_owned();
            (self.free)(value.cast());
            Some(words)
        }
    }
}
