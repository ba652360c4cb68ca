//! What to merge next: pure functions from the shape of a family to a job.
//!
//! One step serves all policies. Tables of some upper runs that overlap each other (a **component**), with the tables
//! of an older destination run that overlap them, become new tables of the destination; the edit is atomic. Why
//! that keeps the order of versions: a component holds, for every table in it, all tables of the policy's group of
//! runs that overlap it, or at least all the *older* ones; between the group and the destination no run overlaps it.
//! So for every key all versions in the group older than a moved one move too, and nothing older stays above.
//!
//! A component whose tables overlap nothing in its destination moves there without being rewritten.
//!
//! Sizes are bytes of keys and values before compression, which is what merging costs the processor.
//!
//! Concurrency: a [`Busy`] holds the key ranges of the jobs under way; no two jobs of a family overlap in keys, so
//! they can end in any order. [`Job::edits`] is computed when the job ends, since runs may have come and gone.

mod component;
mod cuts;
mod fifo;
mod job;
mod lazy;
mod leveled;
#[cfg(test)]
mod model;

pub(crate) use cuts::Cuts;
pub(crate) use job::{Busy, Dest, Job};

use super::run::{Run, TableLike};
use super::version::Family;
use component::{Component, components};
use std::ops::Bound;
use std::sync::Arc;

/// How runs are merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Policy {
    /// A few runs a tier over one partitioned last run. Dostoevsky (Dayan and Idreos, SIGMOD 2018), with partitions
    /// as in Spooky (Dayan et al., VLDB 2022).
    Lazy {
        /// Flushed runs kept unmerged when reads matter most.
        min_runs: u8,
        /// Flushed runs kept unmerged when writes matter most.
        max_runs: u8,
    },
    /// One run a level, each ten times the one above.
    Leveled,
    /// Runs are merged with runs of their size.
    Tiered,
    /// The oldest tables are dropped beyond this many bytes of files.
    Fifo {
        /// Bytes kept.
        max_bytes: u64,
    },
}

/// The policy and the sizes it works with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Params {
    /// How runs are merged.
    pub(crate) policy: Policy,
    /// Raw bytes of a full table of the last run. Tables are between half of it and all of it.
    pub(crate) target: u64,
    /// Raw bytes of a full flush.
    pub(crate) flush: u64,
    /// Raw bytes that one job reads at most, unless it could do nothing with less.
    pub(crate) max_job: u64,
}

impl Params {
    /// The usual sizes, with flushes of `flush` bytes.
    pub(crate) fn new(policy: Policy, flush: u64) -> Params {
        let target = flush.clamp(1 << 20, 64 << 20);
        Params { policy, target, flush: flush.max(1), max_job: 8 * target }
    }

    /// A table below this is small: several of them next to each other are merged.
    pub(super) fn small(&self) -> u64 {
        self.target / 4
    }
}

/// What presses, each from 0 (not at all) to 1.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pressure {
    /// Reads that have to look into many runs.
    pub(crate) read_heat: f32,
    /// Writes that merges are behind of.
    pub(crate) write_debt: f32,
}

impl Pressure {
    /// How many flushed runs may stay unmerged: many while writes press, few while reads do.
    fn runs(self, min: u8, max: u8) -> usize {
        let min = min.max(1);
        let max = max.max(min);
        let calm = 1.0 - self.read_heat.clamp(0.0, 1.0) * (1.0 - self.write_debt.clamp(0.0, 1.0));
        usize::from(min) + (f32::from(max - min) * calm).round() as usize
    }
}

/// How far merging is behind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Debt {
    /// Runs beyond what the policy allows.
    pub(crate) runs_over: u32,
    /// Raw bytes that the merges that are due would read.
    pub(crate) bytes: u64,
}

/// The next job of the family, if one is due and free. Ask again after each: jobs are small.
pub(crate) fn pick<T: TableLike>(
    family: &Family<T>,
    params: &Params,
    busy: &Busy,
    pressure: Pressure,
) -> Option<Job> {
    if let Some(job) = moves_to_last(family, busy) {
        return Some(job);
    }
    let policy = match params.policy {
        // What the engine keeps for itself does not age out with the users' data.
        Policy::Fifo { .. } if family.is_own() => Policy::Lazy { min_runs: 2, max_runs: 8 },
        policy => policy,
    };
    let params = &Params { policy, ..*params };
    match params.policy {
        Policy::Lazy { .. } | Policy::Tiered => {
            let shape = lazy::Shape::of(params.policy, pressure);
            lazy::pick(family, params, &shape, busy)
        }
        Policy::Leveled => leveled::pick(family, params, busy),
        Policy::Fifo { max_bytes } => return fifo::pick(family, max_bytes, busy),
    }
    .or_else(|| clears_tombstones(family, params, busy))
    .or_else(|| {
        // Nobody is hurt by small tables for a while; writers that wait for the processor are.
        if pressure.write_debt > 0.5 { None } else { joins_small_tables(family, params, busy) }
    })
}

/// How far merging is behind in the family, at the highest number of runs that the policy ever allows.
pub(crate) fn debt<T: TableLike>(family: &Family<T>, params: &Params) -> Debt {
    match params.policy {
        Policy::Lazy { .. } | Policy::Tiered => {
            lazy::debt(family, &lazy::Shape::of(params.policy, Pressure::default()))
        }
        Policy::Leveled => leveled::debt(family, params),
        Policy::Fifo { .. } => Debt::default(),
    }
}

/// What [`pick_range`] found.
#[derive(Debug)]
pub(crate) enum RangePick {
    /// Do this, then ask again.
    Job(Job),
    /// Jobs under way are in the range: wait for one to end, then ask again.
    Busy,
    /// Nothing above the last run overlaps the range.
    Done,
}

/// The next job towards having all that overlaps a range of keys in the last run.
pub(crate) fn pick_range<T: TableLike>(
    family: &Family<T>,
    params: &Params,
    busy: &Busy,
    (from, to): (Bound<&[u8]>, Bound<&[u8]>),
) -> RangePick {
    let comps = components(&family.runs);
    let after_start = |c: &Component<'_, T>| match from {
        Bound::Unbounded => true,
        Bound::Included(key) => c.largest >= key,
        Bound::Excluded(key) => c.largest > key,
    };
    let before_end = |c: &Component<'_, T>| match to {
        Bound::Unbounded => true,
        Bound::Included(key) => c.smallest <= key,
        Bound::Excluded(key) => c.smallest < key,
    };
    let mut found = RangePick::Done;
    for (i, _) in comps.iter().enumerate().filter(|(_, c)| after_start(c) && before_end(c)) {
        match component::merge(family, params, busy, &comps, i, Dest::LAST) {
            Some(job) => return RangePick::Job(Job { score: 1.0, ..job }),
            None => found = RangePick::Busy,
        }
    }
    found
}

/// Tables that overlap nothing older move to the last run as they are: a sequential load is never rewritten.
/// Deletions in such a table are garbage, so it is left to be rewritten.
fn moves_to_last<T: TableLike>(family: &Family<T>, busy: &Busy) -> Option<Job> {
    let mut moved = Vec::new();
    for (i, run) in family.runs.iter().enumerate().rev() {
        for table in run.tables() {
            let meta = table.meta();
            let overlaps = |r: &Run<T>| !r.overlapping(&meta.smallest, &meta.largest).is_empty();
            if meta.deletes == 0
                && !busy.overlaps(family.id, &meta.smallest, &meta.largest)
                && !overlaps(&family.last)
                && !family.runs[i + 1..].iter().any(|r| overlaps(r))
            {
                moved.push((run.id, Arc::clone(table)));
            }
        }
    }
    Job::moving(family, Dest::LAST, &moved)
}

/// Upper tables whose deletions would free at least half of what they cover go to the last run, however few the
/// runs: what was deleted takes no space for long.
fn clears_tombstones<T: TableLike>(family: &Family<T>, params: &Params, busy: &Busy) -> Option<Job> {
    if family.runs.iter().all(|r| r.deletes == 0) {
        return None;
    }
    let comps = components(&family.runs);
    let mut best: Option<(u64, Job)> = None;
    for (i, comp) in comps.iter().enumerate().filter(|(_, c)| c.deletes > 0) {
        let below = &family.last.tables()[family.last.overlapping(comp.smallest, comp.largest)];
        let covered: u64 = below.iter().map(|t| t.meta().raw_bytes).sum();
        let entries: u64 = below.iter().map(|t| t.meta().entries).sum();
        // What the deletions can free: what they cover, and themselves.
        let frees = if entries == 0 {
            if comp.deletes * 2 < comp.entries {
                continue;
            }
            comp.raw
        } else {
            let frees = (u128::from(covered) * u128::from(comp.deletes) / u128::from(entries)) as u64;
            if frees < covered / 2 {
                continue;
            }
            frees.min(covered)
        };
        if best.as_ref().is_none_or(|(most, _)| frees > *most)
            && let Some(job) = component::merge(family, params, busy, &comps, i, Dest::LAST)
        {
            best = Some((frees, job));
        }
    }
    best.map(|(_, job)| Job { score: 0.5, ..job })
}

/// Small tables next to each other in the last run become one, once that makes a table of good size or at least
/// doubles the largest of them, so that what a table is rewritten for its neighbours' sake stays logarithmic.
fn joins_small_tables<T: TableLike>(family: &Family<T>, params: &Params, busy: &Busy) -> Option<Job> {
    let tables = family.last.tables();
    let mut start = 0;
    while start < tables.len() {
        let mut end = start;
        let (mut raw, mut largest) = (0, 0);
        while end < tables.len() && tables[end].meta().raw_bytes < params.small() && raw < params.target / 2 {
            let meta = tables[end].meta();
            if busy.overlaps(family.id, &meta.smallest, &meta.largest) {
                break;
            }
            raw += meta.raw_bytes;
            largest = largest.max(meta.raw_bytes);
            end += 1;
        }
        let n = end - start;
        if n >= 2 && (raw >= params.target / 2 || n >= 8 && largest <= raw / 2) {
            let inputs =
                tables[start..end].iter().map(|t| (family.last.id, Arc::clone(t))).collect::<Vec<_>>();
            return Job::merging(family, Dest::LAST, &inputs, 0.1).filter(|job| job.is_free(busy));
        }
        start = end.max(start + 1);
    }
    None
}
