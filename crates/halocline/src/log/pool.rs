//! The pool: segments made, and faulted in, ahead of need, and recycled when their tables are durable.
//!
//! The first segment is small, so that an empty database costs little; each one after it is four times as
//! large until the limit is reached. A helper thread keeps one spare; a writer that finds none makes its own.

use super::segment::{Backing, Raw, Segment};
use crate::io::{MapMode, Mapping, OpenMode, Vfs};
use crate::sync::{Arc, Mutex, MutexGuard};
use crate::{Error, Result};
use std::path::{Path, PathBuf};

const FIRST_LEN: u64 = 2 << 20;

/// The segments of one database that are not in use.
#[derive(Debug)]
pub(crate) struct Pool {
    vfs: std::sync::Arc<dyn Vfs>,
    dir: PathBuf,
    backing: Backing,
    max_len: u64,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    spares: Vec<Raw>,
    /// Handed back and not looked at yet.
    returned: Vec<Raw>,
    next_number: u32,
    next_len: u64,
}

/// The path of segment file `number`.
pub(crate) fn path_of(dir: &Path, number: u32) -> PathBuf {
    dir.join(format!("{number:08}.log"))
}

impl Pool {
    pub(crate) fn new(
        vfs: std::sync::Arc<dyn Vfs>,
        dir: &Path,
        backing: Backing,
        max_len: u64,
        next_number: u32,
    ) -> Pool {
        let state =
            State { spares: Vec::new(), returned: Vec::new(), next_number, next_len: FIRST_LEN.min(max_len) };
        Pool { vfs, dir: dir.to_path_buf(), backing, max_len, state: Mutex::new(state) }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// A segment that takes a record of `need` bytes: a spare, else a new one.
    pub(crate) fn take(&self, need: u64) -> Result<Raw> {
        let (number, len) = {
            let mut state = self.lock();
            let fits = |raw: &Raw| Segment::capacity_of(raw.len()) >= need;
            if let Some(i) = state.spares.iter().position(fits) {
                let raw = state.spares.swap_remove(i);
                state.grow(self.max_len);
                return Ok(raw);
            }
            let mut len = state.next_len;
            if Segment::capacity_of(len) < need {
                // Not more than it takes: offsets are 32 bits wide, and the longest record leaves 2 MiB of them.
                len = Segment::len_for(need).next_multiple_of(1 << 20);
            }
            state.grow(self.max_len);
            (state.take_number(), len)
        };
        self.make(number, len)
    }

    /// Makes a spare if there is none. For the helper thread.
    pub(crate) fn prepare(&self) -> Result<()> {
        let (number, len) = {
            let mut state = self.lock();
            if !state.spares.is_empty() {
                return Ok(());
            }
            (state.take_number(), state.next_len)
        };
        let raw = self.make(number, len)?;
        raw.populate();
        self.lock().spares.push(raw);
        Ok(())
    }

    /// Takes a segment back whose content is durable elsewhere. Does no work: that is the helper's.
    pub(crate) fn returned(&self, raw: Raw) {
        self.lock().returned.push(raw);
    }

    /// Sorts the returned segments into spares and rubbish.
    pub(crate) fn tidy(&self) -> Result<()> {
        let returned = std::mem::take(&mut self.lock().returned);
        returned.into_iter().try_for_each(|raw| self.give_back(raw))
    }

    /// Kept if it is of full size and no reader pins its memory; else its file is removed, and the memory goes with
    /// the last reader.
    fn give_back(&self, mut raw: Raw) -> Result<()> {
        let reusable = Arc::get_mut(&mut raw.memory).is_some();
        {
            let mut state = self.lock();
            if reusable
                && raw.len() == state.next_len
                && raw.backing == self.backing
                && state.spares.len() < 2
            {
                state.spares.push(raw);
                return Ok(());
            }
        }
        self.discard(raw)
    }

    fn discard(&self, raw: Raw) -> Result<()> {
        if raw.file.is_some() {
            self.vfs.remove(&raw.path).map_err(|e| Error::io("remove a log segment", &raw.path, e))?;
        }
        Ok(())
    }

    /// Removes the spares. For a clean close.
    pub(crate) fn clear(&self) -> Result<()> {
        self.tidy()?;
        let spares = std::mem::take(&mut self.lock().spares);
        spares.into_iter().try_for_each(|raw| self.discard(raw))
    }

    /// Bytes on disk of the spares.
    pub(crate) fn disk_bytes(&self) -> u64 {
        self.lock().spares.iter().filter(|raw| raw.file.is_some()).map(Raw::len).sum()
    }

    fn make(&self, number: u32, len: u64) -> Result<Raw> {
        let path = path_of(&self.dir, number);
        let attempt = |what: &str, e| Error::io(what, &path, e);
        let anonymous = || {
            let memory =
                Mapping::anonymous(len as usize).map_err(|e| attempt("get memory for a log segment", e))?;
            Ok::<_, Error>(Arc::new(memory))
        };
        if self.backing == Backing::Anonymous {
            return Ok(Raw { number, backing: self.backing, file: None, memory: anonymous()?, path });
        }
        let file =
            self.vfs.open(&path, OpenMode::CreateNew).map_err(|e| attempt("create a log segment", e))?;
        let made = (|| {
            file.allocate(len).map_err(|e| attempt("reserve space for a log segment", e))?;
            // The length and the name must be durable before a commit in the segment can be.
            file.sync().map_err(|e| attempt("sync a new log segment", e))?;
            self.vfs.sync_dir(&self.dir).map_err(|e| Error::io("sync the directory", &self.dir, e))?;
            match self.backing {
                Backing::Mapped => {
                    let memory = file
                        .map(len as usize, MapMode::Shared)
                        .map_err(|e| attempt("map a log segment", e))?;
                    Ok(Arc::new(memory))
                }
                _ => anonymous(),
            }
        })();
        match made {
            Ok(memory) => Ok(Raw { number, backing: self.backing, file: Some(file), memory, path }),
            Err(e) => {
                // Nothing is in the file; leave no litter on a disk that may just have become full.
                let _ = self.vfs.remove(&path);
                Err(e)
            }
        }
    }
}

impl State {
    fn take_number(&mut self) -> u32 {
        self.next_number += 1;
        self.next_number - 1
    }

    fn grow(&mut self, max: u64) {
        self.next_len = (self.next_len * 4).min(max);
    }
}
