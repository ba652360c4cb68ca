//! Pacing: writers who run ahead of flushes and merges pay their debt in work, a little at each commit.
//!
//! Left alone, eight writers on two cores get most of the processor, the flush thread a ninth of it, and the memtables
//! fill up until every writer stops dead. So a commit of `n` bytes owes work in proportion to how far behind the
//! background is: while a flush is due, enough for it to be done before the active segment is full; while runs pile up
//! beyond the policy's number, enough merge work to hold them. A debt is paid by taking a turn at the job that is
//! under way, a bounded quantum at a time: nobody sleeps, and nobody stops.

use crate::Result;
use crate::db::core::Core;
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicU64, Ordering::Relaxed};
use crate::tree::flush::FlushJob;
use crate::tree::merge_job::MergeJob;
use crate::tree::turns::{QUANTUM, Turns};
use std::cell::Cell;

/// Flushes that may be under way at once: one writes while another waits for the disk.
pub(crate) const FLUSH_THREADS: usize = 2;
/// Turns one commit takes at most: the bound on its delay.
const MOST_TURNS: u64 = 8;
/// A debt below this many bytes waits for the next commit.
const SMALL_DEBT: u64 = 16 << 10;

/// The jobs under way, and how much the writers owe.
#[derive(Default)]
pub(crate) struct Pacing {
    /// Flushes under way, one slot a flush thread: whoever holds the lock takes a turn.
    pub(crate) flushes: [Turns<FlushJob>; FLUSH_THREADS],
    /// The bases of the memtables that are being flushed.
    pub(crate) flushing: Mutex<Vec<u64>>,
    /// Merges under way, one slot a merge thread.
    pub(crate) merges: Vec<Turns<MergeJob>>,
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
        Pacing { merges: (0..merge_threads).map(|_| Turns::default()).collect(), ..Pacing::default() }
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
        // At most a few turns at once, however large the commit: the bound on a call's delay.
        let help_flush = || self.flushes.iter().any(|turns| turns.help(core));
        let help_merge = || self.merges.iter().any(|turns| turns.help(core));
        FLUSH_DEBT.set(work_off(core, FLUSH_DEBT.get() + flush, per_turn, help_flush));
        MERGE_DEBT.set(work_off(core, MERGE_DEBT.get() + merge, per_turn, help_merge));
    }
}

/// Takes turns until the debt is small, there is nothing to help with, or the call has done its share; what is left.
fn work_off(core: &Core, mut debt: u64, per_turn: u64, help: impl Fn() -> bool) -> u64 {
    for _ in 0..MOST_TURNS {
        if debt < SMALL_DEBT.max(per_turn) {
            break;
        }
        if !help() {
            return 0;
        }
        core.counters.helped.add(1);
        debt -= per_turn.min(debt);
    }
    debt.min(per_turn * 2 * MOST_TURNS)
}
