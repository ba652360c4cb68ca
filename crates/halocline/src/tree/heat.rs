//! Read heat: what reads pay for a tree that is not merged, against what merging it would cost.
//!
//! Each run above the last one, and each memtable, is one more place for a read to look at. That is a tax in
//! nanoseconds, which readers add up, each for itself, and tell now and then. Once they have paid half of what it would
//! cost to write everything down into the last run, that is done: the classic rule of renting skis, so that whatever
//! the workload, neither side pays more than a small multiple of what it must. A tree that nobody reads stays as the
//! writes left it; one that is read a lot ends as one run.

use super::run::Run;
use super::version::Tree;
use crate::db::core::{Core, Version};
use crate::db::options::Compaction;
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use crate::table::Table;
use std::cell::Cell;

/// What a point read pays for a run above the last: fetching a filter line and testing it, nanoseconds.
const RUN_TAX_NS: u64 = 60;
/// What it pays for a memtable without the key: a descent.
const MEMTABLE_TAX_NS: u64 = 250;
/// Writing an entry to another table: reading, merging, building, nanoseconds.
const MERGE_NS: u64 = 250;
/// What any consolidation costs at least: some files are made and synced.
const FIXED_NS: u64 = 20_000_000;
/// A reader tells of its tax in portions of this.
const PORTION_NS: u64 = 100_000;

/// The account of one database.
#[derive(Debug, Default)]
pub(crate) struct Heat {
    paid_ns: AtomicU64,
    /// Consolidate once so much is paid; 0: there is nothing to gain.
    due_ns: AtomicU64,
    consolidating: AtomicBool,
    /// What is to be consolidated: the memtables below this address, 0 until that is decided,
    target: AtomicU64,
    /// and the runs below this id, 0 until the memtables are flushed. What comes later is left to the next time.
    run_limit: AtomicU64,
}

thread_local!(static PAID: Cell<u64> = const { Cell::new(0) });

impl Heat {
    /// A read looked into `memtables` memtables and `runs` runs above the last in vain, or might have.
    #[inline]
    pub(crate) fn point_read(&self, core: &Core, memtables: usize, runs: usize) {
        self.pay(core, memtables as u64 * MEMTABLE_TAX_NS + runs as u64 * RUN_TAX_NS);
    }

    #[inline]
    fn pay(&self, core: &Core, ns: u64) {
        if ns == 0 {
            return;
        }
        let paid = PAID.get() + ns;
        PAID.set(paid);
        if paid >= PORTION_NS {
            PAID.set(0);
            self.tell(core, paid);
        }
    }

    #[cold]
    fn tell(&self, core: &Core, ns: u64) {
        let paid = self.paid_ns.fetch_add(ns, Relaxed) + ns;
        let due = self.due_ns.load(Relaxed);
        // Who chose another policy chose to write less.
        let may = matches!(core.options.compaction, Compaction::Lazy | Compaction::Leveled)
            && !core.options.read_only;
        if due != 0 && paid >= due && may && !self.consolidating.swap(true, Relaxed) {
            core.signals.request();
        }
    }

    /// Whether what is there should go down into the last run now.
    pub(crate) fn is_consolidating(&self) -> bool {
        self.consolidating.load(Relaxed)
    }

    /// Whether the active memtable should be sealed, to be part of it: said once each time.
    pub(crate) fn wants_seal(&self) -> bool {
        self.is_consolidating() && self.target.load(Relaxed) == 0
    }

    /// The memtables below this address are part of it.
    pub(crate) fn set_target(&self, address: u64) {
        self.target.store(address.max(1), Relaxed);
    }

    /// The id below which runs are part of it; `None` while memtables that are part of it wait for their flush.
    pub(crate) fn run_limit(&self, version: &Version, next_id: u64) -> Option<u64> {
        let target = self.target.load(Relaxed);
        if target == 0 || version.oldest_base() < target {
            return None;
        }
        let _ = self.run_limit.compare_exchange(0, next_id, Relaxed, Relaxed);
        Some(self.run_limit.load(Relaxed))
    }

    /// It is done.
    pub(crate) fn consolidated(&self, version: &Version) {
        self.paid_ns.store(0, Relaxed);
        self.reckon(version);
        self.target.store(0, Relaxed);
        self.run_limit.store(0, Relaxed);
        self.consolidating.store(false, Relaxed);
    }

    /// Reckons anew what consolidating would cost.
    pub(crate) fn reckon(&self, version: &Version) {
        let in_memory: u64 = version.sealed.iter().map(|mem| mem.memtable.versions()).sum();
        let above: u64 = version.tree.families.iter().flat_map(|f| &f.runs).map(|run| run.entries).sum();
        let due = if in_memory + above == 0 && version.active.memtable.is_empty() {
            0
        } else {
            let entries = in_memory + version.active.memtable.versions() + above + overlapped(&version.tree);
            (FIXED_NS + entries * MERGE_NS) / 2
        };
        self.due_ns.store(due, Relaxed);
    }
}

/// Entries of the last runs that would be rewritten with the runs above them.
fn overlapped(tree: &Tree<Table>) -> u64 {
    let touched = |last: &Run<Table>, runs: &[crate::sync::Arc<Run<Table>>]| -> u64 {
        let meets = |table: &Table| {
            let meta = table.meta();
            runs.iter().any(|run| !run.overlapping(&meta.smallest, &meta.largest).is_empty())
        };
        last.tables().iter().filter(|table| meets(table)).map(|table| table.meta().entries).sum()
    };
    tree.families.iter().filter(|f| !f.runs.is_empty()).map(|f| touched(&f.last, &f.runs)).sum()
}
