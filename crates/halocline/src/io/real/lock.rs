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
        let identity = (stat.st_dev, stat.st_ino);
        let process = std::process::id();
        let mut held = held();
        if held.get(&identity) == Some(&process) {
            return Err(io::Error::new(
                io::ErrorKind::WouldBlock,
                "this process has the directory open already",
            ));
        }
        loop {
            match rustix::fs::flock(&fd, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => break,
                Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::WOULDBLOCK) => {
                    return Err(io::Error::new(
                        io::ErrorKind::WouldBlock,
                        "another process has the directory open",
                    ));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::{RealVfs, Vfs};
    use std::process::{Command, Stdio};

    const PATH_VAR: &str = "HALOCLINE_TEST_LOCK_PATH";

    fn is_held(path: &Path) -> bool {
        match RealVfs.lock(path) {
            Ok(_) => false,
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => true,
            Err(e) => panic!("{e}"),
        }
    }

    /// Run by the test below in a process of its own: tells by its exit status whether the lock was free.
    #[test]
    #[ignore = "the other half of a test"]
    fn other_process() {
        let Some(path) = std::env::var_os(PATH_VAR) else { return };
        std::process::exit(if is_held(Path::new(&path)) { 41 } else { 40 });
    }

    fn is_held_for_another_process(path: &Path) -> bool {
        let status = Command::new(std::env::current_exe().unwrap())
            .args(["--ignored", "--exact", "io::real::lock::tests::other_process"])
            .env(PATH_VAR, path)
            .stdout(Stdio::null())
            .status()
            .unwrap();
        match status.code() {
            Some(40) => false,
            Some(41) => true,
            _ => panic!("{status}"),
        }
    }

    #[test]
    fn a_link_to_the_directory_leads_to_the_same_lock() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("data")).unwrap();
        std::os::unix::fs::symlink("data", dir.path().join("link")).unwrap();
        let held = RealVfs.lock(&dir.path().join("data/LOCK")).unwrap();
        assert!(is_held(&dir.path().join("link/LOCK")));
        drop(held);
        assert!(!is_held(&dir.path().join("link/LOCK")));
    }

    #[test]
    fn the_table_holds_where_flock_would_not() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("LOCK");
        let held = DirLock::take(&path).unwrap();
        // As on a file system whose locks belong to the process: the kernel sees no conflict.
        rustix::fs::flock(&held.fd, FlockOperation::Unlock).unwrap();
        assert!(is_held(&path));
    }

    #[test]
    fn another_process_is_kept_out() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("LOCK");
        let held = RealVfs.lock(&path).unwrap();
        assert!(is_held_for_another_process(&path));
        drop(held);
        assert!(!is_held_for_another_process(&path));
    }

    /// A child that shares the open file description, as a forked one does, neither releases nor keeps the lock.
    #[test]
    fn a_child_with_the_descriptor_does_not_keep_the_lock() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("LOCK");
        let held = DirLock::take(&path).unwrap();
        let with_the_descriptor = |program: &str, arg: &str| {
            let shared = held.fd.try_clone().unwrap();
            Command::new(program).arg(arg).stdin(shared).spawn().unwrap()
        };
        with_the_descriptor("sleep", "0").wait().unwrap();
        assert!(is_held_for_another_process(&path), "a child that ends takes nothing with it");
        let mut child = with_the_descriptor("sleep", "600");
        drop(held);
        let free = !is_held_for_another_process(&path);
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(free, "a child that lives on keeps nothing");
    }
}
