//! Faults that a test arms: which operation fails, when, and how.

use std::path::Path;

/// A kind of operation on a simulated disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// Opening a file that exists.
    Open,
    /// Opening a file that does not.
    Create,
    /// [`File::read_at`](crate::io::File::read_at).
    Read,
    /// [`File::write_at`](crate::io::File::write_at).
    Write,
    /// [`File::set_len`](crate::io::File::set_len).
    SetLen,
    /// [`File::allocate`](crate::io::File::allocate).
    Allocate,
    /// [`File::sync`](crate::io::File::sync).
    Sync,
    /// [`File::map`](crate::io::File::map).
    Map,
    /// [`File::start_writeback`](crate::io::File::start_writeback).
    StartWriteback,
    /// [`Vfs::create_dir_all`](crate::io::Vfs::create_dir_all).
    CreateDir,
    /// [`Vfs::list`](crate::io::Vfs::list).
    List,
    /// [`Vfs::remove`](crate::io::Vfs::remove).
    Remove,
    /// [`Vfs::rename`](crate::io::Vfs::rename).
    Rename,
    /// [`Vfs::sync_dir`](crate::io::Vfs::sync_dir).
    SyncDir,
    /// [`Vfs::lock`](crate::io::Vfs::lock).
    Lock,
}

impl Op {
    /// Whether it can change what is on the disk, now or after a crash: these are the boundaries at which an
    /// observer is called.
    pub fn changes_state(self) -> bool {
        !matches!(self, Op::Open | Op::Read | Op::Map | Op::List)
    }
}

/// How an operation fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FaultKind {
    /// It returns EIO and does nothing. A sync that fails so leaves its pages clean but lost, as on Linux: their
    /// data does not reach the disk unless it is written again, and the next sync succeeds.
    Eio,
    /// It returns ENOSPC and does nothing; a sync as with [`FaultKind::Eio`].
    Enospc,
    /// A read or a write does only part, at least one byte. Matches no other operation.
    Short,
}

/// Which operations a fault is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FaultFilter {
    /// Only these; empty means any.
    pub ops: Vec<Op>,
    /// Only on paths that end with this text; empty means any. A file has the path by which it was opened, a rename
    /// has both of its paths.
    pub path_suffix: String,
}

/// A fault to come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// How it fails.
    pub kind: FaultKind,
    /// The how manieth matching operation from now fails: 1 is the next one (0 is taken as 1).
    pub at: u64,
    /// Whether all matching operations after it fail too.
    pub forever: bool,
    /// What matches.
    pub matching: FaultFilter,
}

impl Fault {
    fn matches(&self, op: Op, paths: &[&Path]) -> bool {
        let ends = |p: &&Path| p.to_string_lossy().ends_with(&self.matching.path_suffix);
        (self.kind != FaultKind::Short || matches!(op, Op::Read | Op::Write))
            && (self.matching.ops.is_empty() || self.matching.ops.contains(&op))
            && paths.iter().any(ends)
    }
}

/// The armed faults.
#[derive(Debug, Default)]
pub(super) struct Faults {
    armed: Vec<Fault>,
    fired: u64,
}

impl Faults {
    pub(super) fn arm(&mut self, fault: Fault) {
        self.armed.push(Fault { at: fault.at.max(1), ..fault });
    }

    pub(super) fn clear(&mut self) {
        self.armed.clear();
    }

    /// How many operations have been failed.
    pub(super) fn fired(&self) -> u64 {
        self.fired
    }

    /// Counts an operation against every armed fault; the first that is due decides.
    pub(super) fn check(&mut self, op: Op, paths: &[&Path]) -> Option<FaultKind> {
        let mut hit = None;
        self.armed.retain_mut(|fault| {
            if !fault.matches(op, paths) {
                return true;
            }
            if fault.at > 1 {
                fault.at -= 1;
                return true;
            }
            hit = hit.or(Some(fault.kind));
            fault.forever
        });
        self.fired += u64::from(hit.is_some());
        hit
    }
}
