//! The way to the disk, the clock and randomness: everything ambient goes through the traits here, so that a
//! simulated disk can crash anything.
//!
//! [`Vfs`] opens files and orders names; [`File`] reads, writes, allocates, maps and syncs one. [`Mapping`] is a
//! piece of mapped (or anonymous) memory. `real` implements them over the operating system, `sim` in memory.

mod mapping;
mod real;
pub mod sim;
// Built for a model checker, locks work within its runs only.
#[cfg(all(test, not(shuttle)))]
mod tests;

pub(crate) mod checksum;

pub use mapping::{Advice, MapMode, Mapping};
pub use real::RealVfs;

use std::fmt::Debug;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// How a file is opened. A file is created with mode 0600, and never through a symbolic link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenMode {
    /// Must exist; only read.
    Read,
    /// Must exist; read and written.
    ReadWrite,
    /// Must not exist; read and written.
    CreateNew,
}

/// One name in a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirEntry {
    /// The file's name, without its directory.
    pub name: String,
    /// Its length in bytes.
    pub len: u64,
}

/// Room on a file system, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    /// What an ordinary user may still write.
    pub available: u64,
    /// The size of the file system.
    pub total: u64,
}

/// A held directory lock; dropping it releases it.
pub trait Lock: Send + Sync + Debug {}

/// A file system. Paths are absolute or relative to the process; there are no hidden states between calls.
pub trait Vfs: Send + Sync + Debug + 'static {
    /// Opens a file.
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>>;
    /// Makes a directory (mode 0700) and its missing parents, and syncs the parents.
    fn create_dir_all(&self, path: &Path) -> io::Result<()>;
    /// The files (not folders) of a directory, in no order.
    fn list(&self, dir: &Path) -> io::Result<Vec<DirEntry>>;
    /// Whether there is a file or directory of that name.
    fn exists(&self, path: &Path) -> io::Result<bool>;
    /// Removes a file's name; open files and mappings live on. Durable only after [`Vfs::sync_dir`].
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Gives a file another name in the same directory, replacing one that is there. Durable after `sync_dir`.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Makes the names in a directory durable.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;
    /// Takes the lock file `path` (created if need be) for this handle alone: `WouldBlock` if another process, or
    /// this one, by whatever path it reached the directory, holds it.
    fn lock(&self, path: &Path) -> io::Result<Box<dyn Lock>>;
    /// Room on the file system that holds `dir`.
    fn space(&self, dir: &Path) -> io::Result<Space>;
    /// Whether a shared writable mapping of a preallocated file in `dir` is safe when space runs out, and coherent:
    /// true for file systems that overwrite in place, false for copy-on-write and network ones.
    fn supports_mapped_writes(&self, dir: &Path) -> io::Result<bool>;
    /// An identifier that changes when the machine starts again: with the same one, the page cache is intact.
    fn boot_id(&self) -> io::Result<[u8; 16]>;
    /// Milliseconds since 1970. Never used to order commits.
    fn now_ms(&self) -> u64;
    /// Nanoseconds on a clock that never goes back.
    fn monotonic_ns(&self) -> u64;
    /// 64 random bits.
    fn random(&self) -> u64;
}

/// An open file. All methods take `&self` and may be called by many threads.
#[expect(clippy::len_without_is_empty, reason = "the length is a question to the disk, and may fail")]
pub trait File: Send + Sync + Debug + 'static {
    /// Reads some bytes at an offset: fewer than asked at the end of the file, or at will.
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize>;
    /// Writes some bytes at an offset, maybe fewer than given; the file grows as needed.
    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<usize>;
    /// The file's length in bytes.
    fn len(&self) -> io::Result<u64>;
    /// Cuts or extends the file.
    fn set_len(&self, len: u64) -> io::Result<()>;
    /// Reserves room for `[0, len)` so that later writes and stores there cannot run out of space; extends the file.
    fn allocate(&self, len: u64) -> io::Result<()>;
    /// Makes the content (and the length) durable, stores through mappings included. Not to be called again after
    /// an error: what it should have written may then count as written without being so.
    fn sync(&self) -> io::Result<()>;
    /// Maps `[0, len)`, which must lie within the file and not be empty. To be mapped [`MapMode::Shared`], the file
    /// must be open for writing, and the range reserved by [`File::allocate`]: a store that finds the disk full
    /// ends the process.
    fn map(&self, len: usize, mode: MapMode) -> io::Result<Mapping>;
    /// Tells the kernel to begin writing `[offset, offset + len)` back, or nothing where that is not supported.
    fn start_writeback(&self, offset: u64, len: u64) -> io::Result<()> {
        let _ = (offset, len);
        Ok(())
    }

    /// Reads exactly `buf.len()` bytes; `UnexpectedEof` if the file ends before.
    fn read_exact_at(&self, mut buf: &mut [u8], mut offset: u64) -> io::Result<()> {
        while !buf.is_empty() {
            match self.read_at(buf, offset) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(n) => {
                    buf = &mut buf[n..];
                    offset += n as u64;
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }

    /// Writes all of `buf`.
    fn write_all_at(&self, mut buf: &[u8], mut offset: u64) -> io::Result<()> {
        while !buf.is_empty() {
            match self.write_at(buf, offset) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(n) => {
                    buf = &buf[n..];
                    offset += n as u64;
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }
}
