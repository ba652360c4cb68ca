//! Closing: the last handle, or an explicit call, flushes, stops the threads and records a clean end.

use super::core::{Core, closed, lock};
use crate::log::segment::{Backing, FIRST};
use crate::sync::{Arc, Mutex};
use crate::tree::edit::Edit;
use crate::tree::flush::FlushJob;
use crate::tree::turns::{QUANTUM, Steps};
use crate::{Error, ErrorKind, Result};
use std::thread::JoinHandle;

/// What all handles of an open database share; dropping it closes the database.
pub(crate) struct Handle {
    core: Arc<Core>,
    threads: Mutex<Option<Vec<JoinHandle<()>>>>,
}

impl Handle {
    pub(crate) fn new(core: Arc<Core>, threads: Vec<JoinHandle<()>>) -> Handle {
        Handle { core, threads: Mutex::new(Some(threads)) }
    }

    /// Closes once; later calls do nothing.
    pub(crate) fn close(&self) -> Result<()> {
        // Held to the end: whoever closes at the same time returns when the database is closed.
        let mut threads = lock(&self.threads);
        let Some(threads) = threads.take() else { return Ok(()) };
        let core = &self.core;
        let flushed =
            if core.options.read_only { Ok(()) } else { core.halt.check().and_then(|()| core.flush()) };
        // From here on no commit is taken. One that was past the check either has its room, and is waited for, or
        // will find the segment full, and then the database closed.
        core.halt.stop(closed());
        // Wakes writers that wait for a flush with the rotation in hand.
        core.signals.finished();
        let rotation = lock(&core.rotation);
        let active = Arc::clone(&core.version.load_arc().active);
        let end = active.segment.close();
        drop(rotation);
        core.in_flight.wait_below(u64::MAX - 1);
        lock(&core.signals.state).closing = true;
        core.signals.due.notify_all();
        core.signals.end.notify_all();
        core.signals.done.notify_all();
        let panicked = threads.into_iter().map(JoinHandle::join).filter(std::result::Result::is_err).count();
        debug_assert_eq!(panicked, 0, "the threads catch their panics");
        // Merges in users' threads give up at their next step. They remove files by name: names that the next handle
        // may give out again.
        let mut state = lock(&core.signals.state);
        while lock(&core.busy).len() > 0 {
            state = core.signals.done.wait(state).unwrap_or_else(|e| e.into_inner());
        }
        drop(state);
        let ended = flushed.and_then(|()| self.record_end(end.seal_at));
        *lock(&core.manifest) = None;
        *lock(&core.directory_lock) = None;
        ended
    }

    /// Records in the manifest that the log is empty, or what is still in it. The active segment's records end at
    /// `end`; `None` if another thread sealed it.
    fn record_end(&self, end: Option<u64>) -> Result<()> {
        let core = &self.core;
        if core.options.read_only {
            return Ok(());
        }
        let version = core.version.load_arc();
        let active = &version.active.segment;
        let empty = end == Some(FIRST);
        if let Some(at) = end.filter(|_| !empty) {
            active.seal(at)?;
        }
        if !empty && !active.is_sealed() {
            return Err(Error::new(ErrorKind::Halted, "the log could not be sealed; reopening recovers it"));
        }
        if core.backing == Backing::Anonymous {
            // What was committed between the flush and the halt is nowhere but here.
            for mem in version.sealed.iter().rev().chain((!empty).then_some(&version.active)) {
                let mut job = FlushJob::new(core, Arc::clone(mem))?;
                while !job.is_done() {
                    job.step(core, QUANTUM).inspect_err(|_| job.abandon(core))?;
                }
                job.finish(core).inspect_err(|_| job.abandon(core))?;
            }
        }
        let mut segments = Vec::new();
        let sealed = version.sealed.iter().rev().map(|mem| &mem.segment);
        for segment in sealed.chain((!empty).then_some(active)).filter(|segment| segment.raw().file.is_some())
        {
            segment.sync()?;
            segments.push(segment.sealed());
        }
        let mut manifest = lock(&core.manifest);
        core.append(&mut manifest, &[Edit::Closed { segments }])?;
        drop(manifest);
        core.pool.clear()?;
        if empty && active.raw().file.is_some() {
            // Nothing is in it: the next open makes its own.
            let path = &active.raw().path;
            core.vfs.remove(path).map_err(|e| Error::io("remove an empty log segment", path, e))?;
        }
        Ok(())
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // There is no one to tell of a failure; what was acknowledged is in the log.
        let _ = self.close();
    }
}
