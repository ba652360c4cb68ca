//! A file system in memory that can crash: for tests of this crate and of programs that use it.
//!
//! [`SimVfs`] is a disk, a clock and a source of randomness. It keeps apart what a program has written and what has
//! reached the disk, so that [`SimVfs::crash`] can make, of any moment, a disk as it could be found after a power
//! failure, and [`SimVfs::kill`] one as it is found after the process was killed. [`SimVfs::set_observer`] offers
//! every moment at which that makes a difference, and [`SimVfs::inject`] makes operations fail. The same seeds and
//! the same operations in the same order give the same disks.
//!
//! What is modelled:
//! - Content is durable after a [`File::sync`]. Of what is not, a crash keeps or drops each 4 KB page
//!   ([`CrashMode::RandomPieces`]) or each 512-byte sector ([`CrashMode::Torn`]) by itself, whatever the order of
//!   the writes was. Lengths likewise.
//! - A new, renamed or removed name is durable after [`Vfs::sync_dir`]; before, a crash keeps each change or not.
//!   Syncing a file does not make its name durable.
//! - A mapping is real memory, the only copy of the file's content, which reads and writes see too. Stores through it
//!   count like writes, without anyone noticing them: pages are compared when it matters.
//! - Space: blocks are taken when written or allocated, from a capacity that can be set. A shared mapping of space that
//!   is not reserved is refused, as a store into it could end the process on a full disk.
//! - After a sync that failed, the pages it should have written are clean but lost.
//!
//! What is not: permissions, links, special files, more than one file system; page faults that fail; a disk that loses
//! or changes what was synced (use [`SimVfs::write_file`] for that); tearing within a sector; removing directories.
//! A mapped file cannot be mapped for more than before while the first mapping lives. A page in lost state is found to
//! be written again by its content, so storing the very same bytes through a mapping goes unnoticed.
//!
//! Thread-safety: a handle may be cloned and used by many threads; one lock guards each disk, and stores through
//! mappings take none. With many threads it is their order that decides, so only one thread is deterministic (or a
//! model checker that decides the order: built with `--cfg shuttle`, the lock is shuttle's).
//!
//! ```
//! use halocline::io::sim::{CrashMode, SimVfs};
//! use halocline::io::{OpenMode, Vfs};
//! use std::path::Path;
//! # fn main() -> std::io::Result<()> {
//! let disk = SimVfs::new(1);
//! disk.create_dir_all(Path::new("/d"))?;
//! let file = disk.open(Path::new("/d/f"), OpenMode::CreateNew)?;
//! disk.sync_dir(Path::new("/d"))?;
//! file.write_all_at(b"kept", 0)?;
//! file.sync()?;
//! file.write_all_at(b"gone", 0)?;
//! let after = disk.crash(7, CrashMode::DropUnsynced);
//! assert_eq!(after.read_file("/d/f")?, b"kept");
//! # Ok(())
//! # }
//! ```

mod fault;
mod file;
mod inode;
mod names;
mod pages;
mod rng;
mod state;
// Built for a model checker, locks work within its runs only.
#[cfg(all(test, not(shuttle)))]
mod tests;
#[cfg(all(test, shuttle))]
mod tests_shuttle;
mod vfs;

pub use self::fault::{Fault, FaultFilter, FaultKind, Op};

use self::rng::Rng;
use self::state::State;
#[cfg(doc)]
use super::{File, Vfs};
use crate::sync::{Mutex, MutexGuard};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};

/// What a crash does with what was not synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CrashMode {
    /// All of it is gone.
    DropUnsynced,
    /// Each page of 4 KB, each length, each name is the old or the new.
    RandomPieces,
    /// The same, with sectors of 512 bytes.
    Torn,
}

/// What [`SimVfs::set_observer`] takes: the disk, and the number of the operation that is about to happen.
pub type Observer = Arc<dyn Fn(&SimVfs, u64) + Send + Sync>;

/// A simulated disk. A clone is another handle to the same disk.
#[derive(Clone)]
pub struct SimVfs {
    disk: Arc<Disk>,
}

struct Disk {
    state: Mutex<State>,
}

impl SimVfs {
    /// An empty disk of 1 TiB with the root directory. The seed determines its boot id and its random numbers.
    pub fn new(seed: u64) -> SimVfs {
        SimVfs::of(State::new(seed))
    }

    fn of(state: State) -> SimVfs {
        SimVfs { disk: Arc::new(Disk { state: Mutex::new(state) }) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A panic while it was held is a bug here, and the test that found it has failed already.
        self.disk.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The disk as it could be found after a power failure now, with a new boot id; `seed` decides what of the
    /// unsynced is there. This disk is left as it is.
    ///
    /// Threads that store through mappings meanwhile are a crash amid their stores: a word is old or new.
    pub fn crash(&self, seed: u64, mode: CrashMode) -> SimVfs {
        SimVfs::of(self.state().after_crash(seed, mode))
    }

    /// The disk as it is found if the process is killed now: everything written is there, synced or not (and may
    /// still be lost by a later crash), the boot id is the same, and nothing is open or locked. The handles to this
    /// disk stay with this disk.
    ///
    /// The image is of one instant if no other thread stores through a mapping meanwhile, or if they pause for as
    /// long as it takes to compare the files once. Of threads that store on and on it may show a later store and
    /// not an earlier one, which no kill does: use a real process for those.
    pub fn kill(&self) -> SimVfs {
        SimVfs::of(self.state().after_kill())
    }

    /// Lets the kernel write some dirty pages back, as it may at any time: what they hold now may be found after a
    /// crash even if it is overwritten before. With no call of it, a crash knows only the synced and the newest
    /// bytes.
    pub fn write_back(&self, seed: u64) {
        self.state().write_back(&mut Rng::new(seed));
    }

    /// How many operations there have been.
    pub fn ops(&self) -> u64 {
        self.state().ops
    }

    /// Has `observer` called before every operation that changes state ([`Op::changes_state`]), on the thread
    /// that does it, with no lock held. The observer may make images and look at files; operations of its own
    /// on this disk would call it again.
    pub fn set_observer(&self, observer: Option<Observer>) {
        // The old one is dropped after the lock is: it may hold a disk.
        let _old = std::mem::replace(&mut self.state().observer, observer);
    }

    /// Arms a fault. With several armed, each counts for itself.
    pub fn inject(&self, fault: Fault) {
        self.state().faults.arm(fault);
    }

    /// Disarms all faults.
    pub fn clear_faults(&self) {
        self.state().faults.clear();
    }

    /// How many operations have failed or come short by an armed fault.
    pub fn faults_fired(&self) -> u64 {
        self.state().faults.fired()
    }

    /// Sets the size of the disk. What is taken already stays, even if it is more.
    pub fn set_capacity(&self, bytes: u64) {
        self.state().capacity = bytes;
    }

    /// Sets what [`Vfs::supports_mapped_writes`] says.
    pub fn set_mapped_writes(&self, supported: bool) {
        self.state().mapped_writes = supported;
    }

    /// Sets the wall clock, in milliseconds since 1970, and not the monotonic one.
    pub fn set_time_ms(&self, now: u64) {
        self.state().now_ms = now;
    }

    /// Moves both clocks on.
    pub fn advance_ms(&self, by: u64) {
        let mut state = self.state();
        state.now_ms = state.now_ms.saturating_add(by);
        state.monotonic_ns = state.monotonic_ns.saturating_add(by.saturating_mul(1_000_000));
    }

    /// The content of a file, as reads see it; not counted as an operation.
    pub fn read_file(&self, path: impl AsRef<Path>) -> io::Result<Vec<u8>> {
        self.state().read_file(path.as_ref())
    }

    /// Replaces or makes a file and its directories, durably, content and name; not counted as an operation, and not
    /// stopped by a full disk. Whoever has the file open or mapped sees it change.
    pub fn write_file(&self, path: impl AsRef<Path>, bytes: &[u8]) -> io::Result<()> {
        self.state().write_file(path.as_ref(), bytes)
    }

    /// All files with their lengths, in the order of their paths.
    pub fn files(&self) -> Vec<(PathBuf, u64)> {
        self.state().files()
    }

    /// The start of every operation: counts it, shows it to the observer, and asks for a fault.
    fn begin(&self, op: Op, paths: &[&Path]) -> (MutexGuard<'_, State>, Option<FaultKind>) {
        let mut state = self.state();
        let number = state.ops;
        state.ops += 1;
        if op.changes_state()
            && let Some(observer) = state.observer.clone()
        {
            drop(state);
            observer(self, number);
            state = self.state();
        }
        let fault = state.faults.check(op, paths);
        (state, fault)
    }

    /// As `begin`, for operations that a fault only makes fail.
    fn begin_or_fail(&self, op: Op, paths: &[&Path]) -> io::Result<MutexGuard<'_, State>> {
        match self.begin(op, paths) {
            (state, None) => Ok(state),
            (_, Some(fault)) => Err(error_of(fault)),
        }
    }
}

fn error_of(fault: FaultKind) -> io::Error {
    match fault {
        FaultKind::Enospc => rustix::io::Errno::NOSPC.into(),
        FaultKind::Eio | FaultKind::Short => rustix::io::Errno::IO.into(),
    }
}

impl fmt::Debug for SimVfs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state();
        f.debug_struct("SimVfs")
            .field("ops", &state.ops)
            .field("files", &state.files())
            .finish_non_exhaustive()
    }
}
