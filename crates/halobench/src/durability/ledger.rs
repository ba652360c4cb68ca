//! The ledger: a small file, mapped by parent and child, in which each writing thread notes how far it is.
//!
//! A store into a shared map is in the page cache at once, whatever becomes of the process, so that the ledger survives
//! the kill that the engine under test has to survive, and a commit's acknowledgement costs one store.
//!
//! ```text
//! bytes         what (64 bits, little endian, stored whole)
//! 0..8          0: started, 1: about to open, 2: open, threads are writing
//! 8..16         nanoseconds the open took
//! 64+64t..+8    number of the commit that thread t began last
//! 72+64t..+8    number of the commit that returned to thread t last
//! ```
//!
//! A thread stores the first number before a commit and the second after it, in this order, so that at any moment
//! `acked <= started <= acked + 1`.

use crate::engine::Result;
use std::fs::OpenOptions;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

/// Words of 64 bits in a line.
const LINE: usize = 8;

/// Where a child stands.
pub mod state {
    /// It has begun.
    pub const STARTED: u64 = 0;
    /// It is about to open the database.
    pub const OPENING: u64 = 1;
    /// It has opened it.
    pub const OPEN: u64 = 2;
}

/// A mapped ledger.
pub struct Ledger {
    base: NonNull<AtomicU64>,
    words: usize,
}

// SAFETY: the map is plain memory of atomics, which any thread may use.
unsafe impl Send for Ledger {}
// SAFETY: as above.
unsafe impl Sync for Ledger {}

/// A thread's numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// The commit begun last.
    pub started: u64,
    /// The commit that returned last.
    pub acked: u64,
}

impl Ledger {
    /// Maps the ledger of `threads` threads at `path`, making it (all zeros) if it is not there.
    pub fn open(path: &Path, threads: u64) -> Result<Ledger> {
        let failed = |e: std::io::Error| format!("mapping the ledger {}: {e}", path.display());
        let words = LINE * (1 + threads as usize);
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)
            .map_err(failed)?;
        file.set_len(words as u64 * 8).map_err(failed)?;
        // SAFETY: a new shared map of a file that is as long as the map.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                words * 8,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(failed(std::io::Error::last_os_error()));
        }
        let base = NonNull::new(base.cast()).ok_or("the ledger was mapped to nothing")?;
        Ok(Ledger { base, words })
    }

    fn word(&self, i: usize) -> &AtomicU64 {
        assert!(i < self.words, "word {i} of a ledger of {}", self.words);
        // SAFETY: within the map, aligned, and only ever used as atomics.
        unsafe { self.base.add(i).as_ref() }
    }

    /// Where the child stands: one of [`state`].
    pub fn state(&self) -> u64 {
        self.word(0).load(Ordering::Acquire)
    }

    /// Says where the child stands.
    pub fn set_state(&self, state: u64) {
        self.word(0).store(state, Ordering::Release);
    }

    /// Nanoseconds the child's open took.
    pub fn set_open_ns(&self, ns: u64) {
        self.word(1).store(ns, Ordering::Release);
    }

    /// A thread's numbers.
    pub fn progress(&self, thread: u64) -> Progress {
        let line = LINE * (1 + thread as usize);
        let acked = self.word(line + 1).load(Ordering::Acquire);
        Progress { started: self.word(line).load(Ordering::Acquire), acked }
    }

    /// Sets both numbers of a thread, between children.
    pub fn set(&self, thread: u64, number: u64) {
        self.begin(thread, number);
        self.acknowledge(thread, number);
    }

    /// A thread begins a commit.
    #[inline]
    pub fn begin(&self, thread: u64, number: u64) {
        self.word(LINE * (1 + thread as usize)).store(number, Ordering::SeqCst);
    }

    /// A thread's commit has returned.
    #[inline]
    pub fn acknowledge(&self, thread: u64, number: u64) {
        self.word(LINE * (1 + thread as usize) + 1).store(number, Ordering::SeqCst);
    }
}

impl Drop for Ledger {
    fn drop(&mut self) {
        // SAFETY: the map is ours, and no reference into it outlives `self`.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.words * 8) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_maps_of_a_ledger_are_one() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("ledger");
        let (a, b) = (Ledger::open(&path, 3).unwrap(), Ledger::open(&path, 3).unwrap());
        assert_eq!((a.state(), a.progress(2)), (state::STARTED, Progress::default()));
        a.set_state(state::OPEN);
        a.begin(2, 8);
        a.acknowledge(2, 7);
        a.set(0, 5);
        assert_eq!(b.state(), state::OPEN);
        assert_eq!(b.progress(2), Progress { started: 8, acked: 7 });
        drop(a);
        drop(b);
        let bytes = std::fs::read(&path).unwrap();
        assert_eq!(bytes.len(), 256);
        assert_eq!((bytes[0], bytes[64], bytes[72], bytes[192], bytes[200]), (2, 5, 5, 8, 7));
    }
}
