//! Pacing: writers who run ahead of flushes and merges pay their debt in work, a little at each commit.
//!
//! Left alone, eight writers on two cores get most of the processor, the flush thread a ninth of it, and the memtables
//! fill up until every writer stops dead. So a commit of `n` bytes owes work in proportion to how far behind the
//! background is: while a flush is due, enough for it to be done before the active segment is full; while runs pile up
//! beyond the policy's number, enough merge work to hold them. A debt is paid by taking a turn at the job that is
//! under way, a bounded quantum at a time: nobody sleeps, and nobody stops.

use crate::Result;
use crate::db::core::{Core, lock};
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicU64, Ordering::Relaxed};
use crate::tree::flush::FlushJob;
use crate::tree::merge_job::MergeJob;
use std::cell::Cell;

/// Entries written per turn: some 50 to 100 microseconds of work.
pub(crate) const QUANTUM: usize = 256;
/// A debt below this many bytes waits for the next commit.
const SMALL_DEBT: u64 = 16 << 10;

/// The jobs under way, and how much the writers owe.
#[derive(Default)]
pub(crate) struct Pacing {
    /// The flush under way, if any: whoever holds the lock takes a turn at it.
    pub(crate) flush: Mutex<Option<FlushJob>>,
    /// Merges under way, one slot a merge thread.
    pub(crate) merges: Vec<Mutex<Option<MergeJob>>>,
    /// Bytes of flush work owed per 1024 bytes committed.
    pub(crate) flush_rate: AtomicU64,
    /// Bytes of merge work owed per 1024 bytes committed.
    pub(crate) merge_rate: AtomicU64,
    /// Average bytes of an entry in the flush under way.
    pub(crate) entry_bytes: AtomicU64,
}

thread_local! {
    static FLUSH_DEBT: Cell<u64> = const { Cell::new(0) };
    static MERGE_DEBT: Cell<u64> = const { Cell::new(0) };
}

impl Pacing {
    pub(crate) fn new(merge_threads: usize) -> Pacing {
        Pacing { merges: (0..merge_threads).map(|_| Mutex::new(None)).collect(), ..Pacing::default() }
    }

    /// Called by a writer about to commit `len` bytes: pays what it owes.
    #[inline]
    pub(crate) fn before_commit(&self, core: &Core, len: u64) -> Result<()> {
        let (flush, merge) = (self.flush_rate.load(Relaxed), self.merge_rate.load(Relaxed));
        if flush | merge == 0 {
            return Ok(());
        }
        self.pay(core, len * flush / 1024, len * merge / 1024);
        Ok(())
    }

    #[cold]
    fn pay(&self, core: &Core, flush: u64, merge: u64) {
        let per_turn = self.entry_bytes.load(Relaxed).max(16) * QUANTUM as u64;
        let mut debt = FLUSH_DEBT.get() + flush;
        // At most a few turns at once, however large the commit: the bound on a call's delay.
        let mut turns = 8;
        while debt >= SMALL_DEBT.max(per_turn) && turns > 0 {
            let mut job = lock(&self.flush);
            match job.as_mut().filter(|job| !job.is_done() && !job.failed()) {
                // A failure is found, and told, by the thread whose job it is.
                Some(job) => job.step_or_fail(core, QUANTUM),
                None => {
                    debt = 0;
                    break;
                }
            }
            core.counters.helped.add(1);
            debt -= per_turn.min(debt);
            turns -= 1;
        }
        FLUSH_DEBT.set(debt.min(per_turn * 16));

        let mut debt = MERGE_DEBT.get() + merge;
        let mut turns = 8;
        while debt >= SMALL_DEBT.max(per_turn) && turns > 0 {
            let mut helped = false;
            for slot in &self.merges {
                let mut job = lock(slot);
                if let Some(job) = job.as_mut().filter(|job| !job.is_done() && !job.failed()) {
                    job.step_or_fail(core, QUANTUM);
                    helped = true;
                    break;
                }
            }
            if !helped {
                debt = 0;
                break;
            }
            core.counters.helped.add(1);
            debt -= per_turn.min(debt);
            turns -= 1;
        }
        MERGE_DEBT.set(debt.min(per_turn * 16));
    }
}
