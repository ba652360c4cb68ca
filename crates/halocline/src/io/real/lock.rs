//! The lock that keeps a second opener out of a directory.
//!
//! Two locks in one. `flock` on the lock file keeps other processes out, and goes with the process however it ends.
//! A table in this process, keyed by (device, inode) so that links and relative paths lead to the same entry, keeps
//! out a second opener here: on file systems that turn `flock` into a lock of the whole process (NFS, some FUSE
//! ones) the kernel would let it through.
//!
//! What a fork does: the child shares the parent's open file description, and with it the `flock`. So
//! - a child that drops its copy of the lock only closes its descriptor; an unlock from there would take the lock
//!   from the parent, and is not made (the process id is compared);
//! - a parent that drops the lock unlocks explicitly, because a child that is alive (or is between fork and exec,
//!   where `O_CLOEXEC` has not closed the descriptor yet) would otherwise hold it on;
//! - a parent that dies without dropping it leaves it held until the child that was forked without exec ends, too.

use crate::io::Lock;
use rustix::fs::{FlockOperation, Mode, OFlags};
use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
// The table outlives every run of a model checker and is held for a few instructions, so it is std's lock always.
use std::sync::{Mutex, MutexGuard, PoisonError};

/// (device, inode) of the lock files this process holds, and which process took them: entries that a forked child
/// inherited are not its own.
static HELD: Mutex<BTreeMap<(u64, u64), u32>> = Mutex::new(BTreeMap::new());

fn held() -> MutexGuard<'static, BTreeMap<(u64, u64), u32>> {
    // The table is whole between any two statements, so a panic elsewhere did not spoil it.
    HELD.lock().unwrap_or_else(PoisonError::into_inner)
}

#[derive(Debug)]
pub(super) struct DirLock {
    fd: OwnedFd,
    identity: (u64, u64),
    process: u32,
}

impl DirLock {
    pub(super) fn take(path: &Path) -> io::Result<DirLock> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let fd = rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR)?;
        let stat = rustix::fs::fstat(&fd)?;
        // The types of these two fields differ between platforms.
        #[expect(clippy::unnecessary_cast, reason = "the fields are narrower on some platforms")]
        let identity = (stat.st_dev as u64, stat.st_ino as u64);
        let process = std::process::id();
        let mut held = held();
        if held.get(&identity) == Some(&process) {
            return Err(io::Error::new(io::ErrorKind::WouldBlock, "this process has the directory open already"));
        }
        loop {
            match rustix::fs::flock(&fd, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => break,
                Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::WOULDBLOCK) => {
                    return Err(io::Error::new(io::ErrorKind::WouldBlock, "another process has the directory open"));
                }
                Err(e) => return Err(e.into()),
            }
        }
        held.insert(identity, process);
        Ok(DirLock { fd, identity, process })
    }
}

impl Lock for DirLock {}

impl Drop for DirLock {
    fn drop(&mut self) {
        if self.process != std::process::id() {
            return;
        }
        // Unlocked before the entry goes, so that whoever finds no entry finds no lock either. If the unlock fails,
        // closing the descriptor does it.
        let mut held = held();
        let _ = rustix::fs::flock(&self.fd, FlockOperation::Unlock);
        held.remove(&self.identity);
    }
}
