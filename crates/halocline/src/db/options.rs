//! How a database is opened: a dozen options, each with a default that serves and a bound that is checked.

use super::check::{self, CheckReport};
use super::{Db, open};
use crate::io::{RealVfs, Vfs};
use crate::{Error, Result};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// What a commit survives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// Survives neither a killed process nor power loss, unless flushed to tables. As the database's default it
    /// turns the log off; a commit that asks for more then flushes.
    None,
    /// Survives a killed process. After power loss, whatever the last sync covered is there: always a prefix of
    /// what was committed.
    Process,
    /// As `Process`, with a sync at every interval: power loss costs at most what was committed in the last one and
    /// while its sync took place. Only as the database's default; a commit that asks for it gets `Process`.
    Interval(Duration),
    /// Survives power loss when the call returns. Committers that wait at the same time share one sync.
    Sync,
}

/// How values are compressed in tables. Keys never are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// Not at all: `get` returns pinned slices of mapped tables.
    None,
    /// LZ4 in groups of about 1 KiB, where it saves enough.
    Lz4,
    /// Zstandard at a level from 1 to 19 (feature `zstd`).
    Zstd(i32),
}

/// How the log is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogMode {
    /// `Mapped` where the file system overwrites in place (ext4, xfs, tmpfs), else `Written`.
    Auto,
    /// Commits are stores into a mapped file: no system call.
    Mapped,
    /// Commits are written with `pwrite`: errors of the disk come back as errors, never as a signal.
    Written,
}

/// How tables are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableAccess {
    /// At present as `Mapped`.
    Auto,
    /// Tables are mapped into memory.
    Mapped,
    /// One page is read for each lookup.
    Pread,
}

/// The compaction policy of all column families.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compaction {
    /// A few runs over one partitioned last run.
    Lazy,
    /// One run a level: fewer runs to read, more bytes written.
    Leveled,
    /// Runs are merged only with runs of their size: fewer bytes written, more runs to read.
    Tiered,
    /// No merging; the oldest tables are dropped beyond a number of bytes. For data that ages out.
    Fifo {
        /// Bytes of tables kept, per column family.
        max_bytes: u64,
    },
}

/// How a database is opened.
///
/// ```
/// # fn main() -> halocline::Result<()> {
/// # let dir = tempfile::tempdir().unwrap();
/// use halocline::{Durability, Options};
/// let db = Options::new().durability(Durability::Sync).write_buffer(16 << 20).open(dir.path().join("data"))?;
/// # db.close()
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Options {
    pub(crate) create: bool,
    pub(crate) write_buffer: usize,
    pub(crate) cache: usize,
    pub(crate) durability: Durability,
    pub(crate) compression: Compression,
    pub(crate) compress_from: u64,
    pub(crate) compaction: Compaction,
    pub(crate) compaction_threads: usize,
    pub(crate) log_mode: LogMode,
    pub(crate) table_access: TableAccess,
    pub(crate) vfs: Arc<dyn Vfs>,
    pub(crate) read_only: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self::new()
    }
}

impl Options {
    /// The defaults.
    pub fn new() -> Options {
        Options {
            create: true,
            write_buffer: 64 << 20,
            cache: 64 << 20,
            durability: Durability::Process,
            compression: if cfg!(feature = "lz4") { Compression::Lz4 } else { Compression::None },
            compress_from: 256 << 20,
            compaction: Compaction::Lazy,
            compaction_threads: 0,
            log_mode: LogMode::Auto,
            table_access: TableAccess::Auto,
            vfs: Arc::new(RealVfs),
            read_only: false,
        }
    }

    /// Whether to create the database if it is not there. Default: true.
    pub fn create(mut self, yes: bool) -> Options {
        self.create = yes;
        self
    }

    /// Largest log segment, and so memtable, in bytes: 64 KiB to 1 GiB. Up to five are in use under load. Default: 64 MiB.
    pub fn write_buffer(mut self, bytes: usize) -> Options {
        self.write_buffer = bytes;
        self
    }

    /// Memory for hot records (whole values, by key), in bytes: 0 (none) to 1 TiB. With Zstandard, half of it is for decoded
    /// groups of values. The memory is taken as it fills. Default: 64 MiB.
    pub fn cache(mut self, bytes: usize) -> Options {
        self.cache = bytes;
        self
    }

    /// What a commit survives unless it asks for more; an interval is at least a millisecond. Default: `Process`.
    pub fn durability(mut self, durability: Durability) -> Options {
        self.durability = durability;
        self
    }

    /// How values are compressed, in a database large enough (see [`compress_from`](Options::compress_from)). Tables
    /// written before keep their compression. Default: `Lz4`.
    pub fn compression(mut self, compression: Compression) -> Options {
        self.compression = compression;
        self
    }

    /// Compress what is written once the tables have this many bytes in all; 0 compresses from the first. Below it the
    /// disk space that compression saves is little, and decoding costs a read of a database in memory as much as all the
    /// rest of it. Merges compress what was written raw before. Default: 256 MiB.
    pub fn compress_from(mut self, bytes: u64) -> Options {
        self.compress_from = bytes;
        self
    }

    /// The compaction policy. Default: `Lazy`.
    pub fn compaction(mut self, compaction: Compaction) -> Options {
        self.compaction = compaction;
        self
    }

    /// Merge threads, at most 64; 0 chooses from the number of cores. Default: 0.
    pub fn compaction_threads(mut self, n: usize) -> Options {
        self.compaction_threads = n;
        self
    }

    /// How the log is written. Default: `Auto`.
    pub fn log_mode(mut self, mode: LogMode) -> Options {
        self.log_mode = mode;
        self
    }

    /// How tables are read. Default: `Auto`.
    pub fn table_access(mut self, access: TableAccess) -> Options {
        self.table_access = access;
        self
    }

    /// The file system, the clock and the randomness. Default: the operating system's.
    pub fn vfs(mut self, vfs: Arc<dyn Vfs>) -> Options {
        self.vfs = vfs;
        self
    }

    /// Opens the database in directory `path` for reading and writing. One handle at a time may have it open:
    /// another gets [`ErrorKind::Locked`](crate::ErrorKind::Locked).
    pub fn open(self, path: impl AsRef<Path>) -> Result<Db> {
        self.validate()?;
        open::open(self, path.as_ref())
    }

    /// Opens the database in directory `path` for reading only: no file is written, not even to mend the log. It
    /// must not be open for writing elsewhere.
    pub fn open_read_only(mut self, path: impl AsRef<Path>) -> Result<Db> {
        self.read_only = true;
        self.create = false;
        self.validate()?;
        open::open(self, path.as_ref())
    }

    /// Reads and verifies every byte of the database in directory `path`, changes nothing, and names each damage.
    /// An error only if it cannot be read at all.
    pub fn check(mut self, path: impl AsRef<Path>) -> Result<CheckReport> {
        self.read_only = true;
        self.create = false;
        self.validate()?;
        check::check(self, path.as_ref())
    }

    fn validate(&self) -> Result<()> {
        let between = |what: &str, n: u64, low: u64, high: u64| {
            if (low..=high).contains(&n) {
                Ok(())
            } else {
                Err(Error::invalid(format!("option {what} is {n}; it must be from {low} to {high}")))
            }
        };
        between("write_buffer", self.write_buffer as u64, 64 << 10, 1 << 30)?;
        between("cache", self.cache as u64, 0, 1 << 40)?;
        between("compaction_threads", self.compaction_threads as u64, 0, 64)?;
        if let Durability::Interval(d) = self.durability {
            between("durability interval (ms)", d.as_millis() as u64, 1, 3_600_000)?;
        }
        match self.compression {
            Compression::Lz4 if !cfg!(feature = "lz4") => {
                return Err(Error::invalid("compression LZ4 is not in this build: enable the feature `lz4`"));
            }
            Compression::Zstd(_) if !cfg!(feature = "zstd") => {
                return Err(Error::invalid(
                    "compression Zstandard is not in this build: enable the feature `zstd`",
                ));
            }
            Compression::Zstd(level) => between("zstd level", level.max(0) as u64, 1, 19)?,
            _ => {}
        }
        if let Compaction::Fifo { max_bytes } = self.compaction {
            between("fifo max_bytes", max_bytes, 1 << 20, u64::MAX)?;
        }
        Ok(())
    }
}
