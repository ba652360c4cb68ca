//! Turns: a job that its own thread and the writers in debt work on together, one step at a time.
//!
//! Whoever holds the lock takes a step. A failure is kept for the thread whose job it is, which finds it at its next turn,
//! tells of it and abandons the job. So is a panic: the job is half done then and must not be gone on with.

use crate::db::core::{Core, closed, lock};
use crate::sync::Mutex;
use crate::{Error, ErrorKind, Result};

/// Entries written per turn: some 50 to 100 microseconds of work.
pub(crate) const QUANTUM: usize = 256;

/// A job in steps.
pub(crate) trait Steps {
    /// Whether all entries are written: only `finish` is left.
    fn is_done(&self) -> bool;
    /// Writes up to `entries` entries.
    fn step(&mut self, core: &Core, entries: usize) -> Result<()>;
    /// Makes what was written durable, and shows it to readers.
    fn finish(&mut self, core: &Core) -> Result<()>;
    /// Removes what was written: the job came to nothing.
    fn abandon(&mut self, core: &Core);
}

/// A place for one job.
pub(crate) struct Turns<J>(Mutex<Option<Running<J>>>);

struct Running<J> {
    job: J,
    failure: Option<Error>,
}

impl<J> Default for Turns<J> {
    fn default() -> Self {
        Turns(Mutex::new(None))
    }
}

impl<J: Steps> Turns<J> {
    /// Takes a turn at the job; false if there is none, or nothing left to do in it.
    pub(crate) fn help(&self, core: &Core) -> bool {
        let mut slot = lock(&self.0);
        let Some(running) = slot.as_mut().filter(|r| r.failure.is_none() && !r.job.is_done()) else {
            return false;
        };
        // Stays should the step panic, in whatever thread.
        running.failure = Some(Error::new(ErrorKind::Halted, "a step of this job panicked"));
        running.failure = running.job.step(core, QUANTUM).err();
        true
    }

    /// Runs `job` to its end in its own thread, unless the database closes first.
    pub(crate) fn run(&self, core: &Core, job: J) -> Result<()> {
        *lock(&self.0) = Some(Running { job, failure: None });
        while !lock(&core.signals.state).closing && self.help(core) {}
        let Some(Running { mut job, failure }) = lock(&self.0).take() else { return Ok(()) };
        let result = match failure {
            Some(e) => Err(e),
            None if !job.is_done() => Err(closed()),
            None => job.finish(core),
        };
        result.inspect_err(|_| job.abandon(core))
    }
}
