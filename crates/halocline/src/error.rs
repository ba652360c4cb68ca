//! One opaque error with a coarse kind: what was attempted, on which file, at which offset, what to do.
//!
//! "Not found" is not an error here: reads return `Option`.

use std::fmt;
use std::path::{Path, PathBuf};

/// A `Result` with this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What kind of failure this is: what a program would decide on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// An argument or option is out of its bounds. Nothing was written.
    InvalidArgument,
    /// Another handle, here or in another process, has the database open.
    Locked,
    /// A file's content is damaged. The message names the file and the offset.
    Corruption,
    /// The operating system refused an operation.
    Io,
    /// The disk, or a quota, is full.
    NoSpace,
    /// The file is of a format version, or uses a feature, that this build does not know.
    Unsupported,
    /// The database was opened read-only.
    ReadOnly,
    /// An earlier failure (a failed sync, a panic in a background thread) stopped all writes until reopen.
    Halted,
    /// No database, or no column family, of that name is there.
    Missing,
    /// The database was closed.
    Closed,
    /// Something a transaction relies on was changed by another commit: nothing of it was written; run it again.
    Conflict,
    /// Transactions wait for each other's locks in a circle; this one has to give way: roll it back and run it again.
    Deadlock,
    /// A lock was not to be had in time. The transaction goes on.
    LockTimeout,
}

/// An error of the engine. `Display` is written for people.
///
/// ```
/// let dir = tempfile::tempdir().unwrap();
/// let missing = halocline::Options::new().create(false).open(dir.path().join("absent"));
/// assert_eq!(missing.unwrap_err().kind(), halocline::ErrorKind::Missing);
/// ```
#[derive(Clone)]
pub struct Error {
    inner: Box<Inner>,
}

#[derive(Clone)]
struct Inner {
    kind: ErrorKind,
    message: String,
    path: Option<PathBuf>,
    offset: Option<u64>,
    source: Option<std::sync::Arc<std::io::Error>>,
}

impl Error {
    /// A new error; `message` says what was attempted and what to do.
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            inner: Box::new(Inner { kind, message: message.into(), path: None, offset: None, source: None }),
        }
    }

    /// Out-of-bounds argument.
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::InvalidArgument, message)
    }

    /// Damage found in `path` at `offset`.
    pub(crate) fn corruption(path: &Path, offset: u64, message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Corruption, message).at(path, offset)
    }

    /// A failed system operation on `path`: `attempted` reads like "open the log segment".
    pub(crate) fn io(attempted: &str, path: &Path, source: std::io::Error) -> Self {
        let kind = match source.kind() {
            std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => ErrorKind::NoSpace,
            _ => ErrorKind::Io,
        };
        let mut error = Self::new(kind, format!("could not {attempted}"));
        error.inner.path = Some(path.to_path_buf());
        error.inner.source = Some(std::sync::Arc::new(source));
        error
    }

    pub(crate) fn at(mut self, path: &Path, offset: u64) -> Self {
        self.inner.path = Some(path.to_path_buf());
        self.inner.offset = Some(offset);
        self
    }

    /// The coarse kind.
    pub fn kind(&self) -> ErrorKind {
        self.inner.kind
    }

    /// The file concerned, where there is one.
    pub fn path(&self) -> Option<&Path> {
        self.inner.path.as_deref()
    }

    /// The byte offset in that file, where it is known.
    pub fn offset(&self) -> Option<u64> {
        self.inner.offset
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.inner.message)?;
        if let Some(path) = &self.inner.path {
            write!(f, ": {}", path.display())?;
            if let Some(offset) = self.inner.offset {
                write!(f, " at byte {offset}")?;
            }
        }
        if let Some(source) = &self.inner.source {
            write!(f, ": {source}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {self}", self.inner.kind)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.inner.source.as_deref().map(|e| e as _)
    }
}
