//! An open file on a simulated disk.

use super::fault::{FaultKind, Op};
use super::names::InodeId;
use super::pages::PAGE;
use super::{SimVfs, error_of};
use crate::io::{File, MapMode, Mapping};
use rustix::io::Errno;
use std::io;
use std::path::PathBuf;

/// A handle; it keeps the file as long as it lives, whatever becomes of the name.
#[derive(Debug)]
pub(super) struct SimFile {
    pub(super) vfs: SimVfs,
    pub(super) file: InodeId,
    /// The path by which it was opened, for fault filters.
    pub(super) path: PathBuf,
    pub(super) writable: bool,
}

impl SimFile {
    fn check_writable(&self, error: Errno) -> io::Result<()> {
        if self.writable { Ok(()) } else { Err(error.into()) }
    }
}

impl File for SimFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let (mut state, fault) = self.vfs.begin(Op::Read, &[&self.path]);
        let len = match fault {
            None => buf.len(),
            Some(FaultKind::Short) => part_of(buf.len(), state.rng.next()),
            Some(fault) => return Err(error_of(fault)),
        };
        Ok(state.inode(self.file).read(&mut buf[..len], offset))
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<usize> {
        self.check_writable(Errno::BADF)?;
        let (mut state, fault) = self.vfs.begin(Op::Write, &[&self.path]);
        let len = match fault {
            None => buf.len(),
            Some(FaultKind::Short) => part_of(buf.len(), state.rng.next()),
            Some(fault) => return Err(error_of(fault)),
        };
        let room = state.room();
        match state.inode(self.file).write(&buf[..len], offset, room) {
            0 if len > 0 => Err(Errno::NOSPC.into()),
            n => Ok(n),
        }
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.vfs.state().inode(self.file).len())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.check_writable(Errno::INVAL)?;
        self.vfs.begin_or_fail(Op::SetLen, &[&self.path])?.inode(self.file).set_len(len);
        Ok(())
    }

    fn allocate(&self, len: u64) -> io::Result<()> {
        self.check_writable(Errno::BADF)?;
        let mut state = self.vfs.begin_or_fail(Op::Allocate, &[&self.path])?;
        let room = state.room();
        if state.inode(self.file).allocate(len, room) { Ok(()) } else { Err(Errno::NOSPC.into()) }
    }

    fn sync(&self) -> io::Result<()> {
        let (mut state, fault) = self.vfs.begin(Op::Sync, &[&self.path]);
        let inode = state.inode(self.file);
        match fault {
            None => {
                inode.sync();
                Ok(())
            }
            Some(fault) => {
                inode.fail_sync();
                Err(error_of(fault))
            }
        }
    }

    fn map(&self, len: usize, mode: MapMode) -> io::Result<Mapping> {
        if mode == MapMode::Shared {
            self.check_writable(Errno::ACCESS)?;
        }
        self.vfs.begin_or_fail(Op::Map, &[&self.path])?.inode(self.file).map(len, mode)
    }

    fn start_writeback(&self, offset: u64, len: u64) -> io::Result<()> {
        let mut state = self.vfs.begin_or_fail(Op::StartWriteback, &[&self.path])?;
        let pages = offset / PAGE as u64..offset.saturating_add(len).div_ceil(PAGE as u64);
        state.inode(self.file).write_back(|number| pages.contains(&number));
        Ok(())
    }
}

/// A part of `len` bytes: at least one, and not all unless there is only one.
fn part_of(len: usize, random: u64) -> usize {
    if len < 2 { len } else { 1 + (random % (len as u64 - 1)) as usize }
}

impl Drop for SimFile {
    fn drop(&mut self) {
        let mut state = self.vfs.state();
        state.inode(self.file).handles -= 1;
        state.forget_if_unused(self.file);
    }
}
