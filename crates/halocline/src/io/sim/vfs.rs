//! The simulated disk behind the trait that the engine uses.

use super::SimVfs;
use super::fault::Op;
use super::file::SimFile;
use super::state::clean;
use crate::io::{DirEntry, File, Lock, OpenMode, Space, Vfs};
use rustix::io::Errno;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

impl Vfs for SimVfs {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        let path = clean(path);
        let op = if mode == OpenMode::CreateNew { Op::Create } else { Op::Open };
        let mut state = self.begin_or_fail(op, &[&path])?;
        let file = if mode == OpenMode::CreateNew { state.create(&path)? } else { state.find(&path)? };
        state.inode(file).handles += 1;
        drop(state);
        Ok(Arc::new(SimFile { vfs: self.clone(), file, path, writable: mode != OpenMode::Read }))
    }

    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        let path = clean(path);
        self.begin_or_fail(Op::CreateDir, &[&path])?.create_dirs(&path)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<DirEntry>> {
        let dir = clean(dir);
        let state = self.begin_or_fail(Op::List, &[&dir])?;
        if !state.dirs.contains(&dir) {
            return Err(if state.names.get(&dir).is_some() { Errno::NOTDIR } else { Errno::NOENT }.into());
        }
        let within = state.names.iter().filter(|(path, _)| path.parent() == Some(&dir));
        let entry = within.filter_map(|(path, file)| {
            Some(DirEntry { name: path.file_name()?.to_str()?.to_owned(), len: state.inodes[&file].len() })
        });
        Ok(entry.collect())
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        let path = clean(path);
        let state = self.state();
        Ok(state.names.get(&path).is_some() || state.dirs.contains(&path))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let path = clean(path);
        let mut state = self.begin_or_fail(Op::Remove, &[&path])?;
        let file = state.find(&path)?;
        state.names.remove(&path, file);
        state.unlinked(file);
        Ok(())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let (from, to) = (clean(from), clean(to));
        let mut state = self.begin_or_fail(Op::Rename, &[&from, &to])?;
        let file = state.find(&from)?;
        if from.parent() != to.parent() {
            let why = "a file is renamed within its directory only";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        if state.dirs.contains(&to) {
            return Err(Errno::ISDIR.into());
        }
        let replaced = state.names.get(&to).filter(|old| *old != file);
        if from != to {
            state.names.rename(&from, &to, file);
        }
        if let Some(old) = replaced {
            state.unlinked(old);
        }
        Ok(())
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        let dir = clean(dir);
        self.begin_or_fail(Op::SyncDir, &[&dir])?.sync_dir(&dir)
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn Lock>> {
        let path = clean(path);
        let mut state = self.begin_or_fail(Op::Lock, &[&path])?;
        if state.locks.contains(&path) {
            return Err(io::Error::new(io::ErrorKind::WouldBlock, "the directory is open already"));
        }
        match state.find(&path) {
            Ok(_) => {}
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                state.create(&path)?;
            }
            Err(e) => return Err(e),
        }
        state.locks.insert(path.clone());
        drop(state);
        Ok(Box::new(SimLock { vfs: self.clone(), path }))
    }

    fn space(&self, dir: &Path) -> io::Result<Space> {
        let state = self.state();
        if !state.dirs.contains(&clean(dir)) {
            return Err(Errno::NOENT.into());
        }
        Ok(Space { available: state.room(), total: state.capacity })
    }

    fn supports_mapped_writes(&self, _: &Path) -> io::Result<bool> {
        Ok(self.state().mapped_writes)
    }

    fn boot_id(&self) -> io::Result<[u8; 16]> {
        Ok(self.state().boot_id)
    }

    fn now_ms(&self) -> u64 {
        self.state().now_ms
    }

    /// Every question takes a microsecond, so that a loop that waits for a time ends.
    fn monotonic_ns(&self) -> u64 {
        let mut state = self.state();
        state.monotonic_ns += 1_000;
        state.monotonic_ns
    }

    fn random(&self) -> u64 {
        self.state().rng.next()
    }
}

/// A held lock. It belongs to the disk on which it was taken; images of the disk are free of it.
#[derive(Debug)]
struct SimLock {
    vfs: SimVfs,
    path: PathBuf,
}

impl Lock for SimLock {}

impl Drop for SimLock {
    fn drop(&mut self) {
        self.vfs.state().locks.remove(&self.path);
    }
}
