//! The functions of `shim.c`, which says what they do.

use super::super::Result;
use libloading::Library;
use std::ffi::{CStr, c_char, c_int, c_ulong, c_void};
use std::path::Path;

/// A database, a session or an iterator.
pub type Handle = *mut c_void;

type Bytes = *const c_void;

macro_rules! api {
    ($($name:ident: fn($($arg:ty),*) $(-> $ret:ty)?;)*) => {
        /// The functions, resolved once.
        pub struct Api {
            $(pub $name: unsafe extern "C" fn($($arg),*) $(-> $ret)?,)*
            _library: Library,
        }

        impl Api {
            /// Loads the library and looks every function up.
            pub fn load(path: &Path) -> Result<Api> {
                // SAFETY: the lab compiled it; with it comes SplinterDB, that the user named.
                let library = unsafe { Library::new(path) }
                    .map_err(|e| format!("loading {}: {e}", path.display()))?;
                // SAFETY: the signatures are those of shim.c. The pointers live as long as `_library`, which lives in
                // the same struct and is never taken out of it.
                unsafe {
                    Ok(Api {
                        $($name: *library.get(concat!("hb_", stringify!($name)).as_bytes())
                            .map_err(|e| format!("{} has no hb_{}: {e}", path.display(), stringify!($name)))?,)*
                        _library: library,
                    })
                }
            }
        }
    };
}

api! {
    version: fn() -> *const c_char;
    open: fn(*const c_char, c_int, c_ulong, c_ulong, c_ulong, c_ulong, c_ulong, *mut Handle) -> c_int;
    close: fn(Handle) -> c_int;
    register: fn(Handle);
    deregister: fn(Handle);
    put: fn(Handle, Bytes, usize, Bytes, usize) -> c_int;
    delete: fn(Handle, Bytes, usize) -> c_int;
    session_begin: fn(Handle) -> Handle;
    session_end: fn(Handle);
    get: fn(Handle, Bytes, usize, *mut Bytes, *mut usize) -> c_int;
    iter_begin: fn(Handle, Bytes, usize, *mut Handle) -> c_int;
    iter_end: fn(Handle);
    iter_next: fn(Handle);
    iter_at: fn(Handle, *mut Bytes, *mut usize, *mut Bytes, *mut usize) -> c_int;
}

impl Api {
    /// What the library says of its version.
    pub fn version(&self) -> Result<String> {
        // SAFETY: returns a terminated, static string, or null.
        unsafe {
            let words = (self.version)();
            if words.is_null() {
                return Ok("of unknown version".into());
            }
            Ok(CStr::from_ptr(words)
                .to_string_lossy()
                .trim_start_matches("splinterdb_build_version")
                .trim()
                .into())
        }
    }
}
