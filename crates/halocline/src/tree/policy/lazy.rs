//! Lazy leveling, and tiering as the same with another shape.
//!
//! Flushed runs are tier 0. Where more than `runs` of them overlap, they are merged: into the last run if that has no
//! more than `ratio` times their bytes there, else into a run of the next tier, of which fewer may stay. So what
//! each byte is rewritten for in the last run stays near `1 + ratio`, and grows by 1 with each tier: the number of
//! tiers is logarithmic in the size of the data.
//!
//! Not runs are counted but how deep they lie over each other in a component, so that a component that few flushes
//! touched waits. Runs that are many but shallow are packed instead: their tables move down, unwritten, into older
//! runs of the tier wherever they overlap nothing.

use super::component::{Component, components, merge};
use super::job::{Busy, Dest, Job};
use super::{Debt, Family, Params, Policy, Pressure};
use crate::tree::run::{LAST_TIER, Run, TableLike};
use std::ops::Range;
use std::sync::Arc;

/// More tiers than that are never needed; a merge beyond goes into the last run.
const MAX_TIER: u8 = 30;

/// The parameters that make the difference between the policies.
pub(super) struct Shape {
    /// Flushed runs that may lie over each other.
    runs: usize,
    /// Runs of each higher tier that may.
    upper_runs: usize,
    /// The last run takes part in a merge if it has at most this many times the bytes of the runs.
    ratio: f64,
}

impl Shape {
    pub(super) fn of(policy: Policy, pressure: Pressure) -> Shape {
        match policy {
            Policy::Lazy { min_runs, max_runs } => {
                let runs = pressure.runs(min_runs, max_runs);
                Shape { runs, upper_runs: (runs / 2).max(1), ratio: 3.0 }
            }
            _ => {
                let runs = pressure.runs(4, 8);
                Shape { runs, upper_runs: runs, ratio: 0.25 }
            }
        }
    }

    fn limit(&self, tier: u8) -> usize {
        if tier == 0 { self.runs } else { self.upper_runs }
    }
}

/// The indices of the runs of each tier that there is, lowest first.
fn tiers<T>(runs: &[Arc<Run<T>>]) -> Vec<(u8, Range<usize>)> {
    let mut found: Vec<(u8, Range<usize>)> = Vec::new();
    for (i, run) in runs.iter().enumerate() {
        match found.last_mut() {
            Some((tier, range)) if *tier == run.tier => range.end = i + 1,
            _ => found.push((run.tier, i..i + 1)),
        }
    }
    found
}

pub(super) fn pick<T: TableLike>(
    family: &Family<T>,
    params: &Params,
    shape: &Shape,
    busy: &Busy,
) -> Option<Job> {
    let tiers = tiers(&family.runs);
    for (i, (tier, range)) in tiers.iter().enumerate() {
        let runs = &family.runs[range.clone()];
        let limit = shape.limit(*tier);
        if runs.len() <= limit {
            continue;
        }
        let comps = components(runs);
        // The deepest first; of equals, where most can be reclaimed for what is read.
        let mut due: Vec<(usize, f64, usize)> = (0..comps.len())
            .filter(|&c| comps[c].depth > limit)
            .map(|c| (comps[c].depth, gain(family, &comps[c]), c))
            .collect();
        due.sort_by(|a, b| b.0.cmp(&a.0).then(b.1.total_cmp(&a.1)));
        for &(depth, _, c) in &due {
            if let Some(job) = merge_down(family, params, shape, busy, &tiers[i..], &comps, c) {
                return Some(Job {
                    score: if job.trivial { 100.0 } else { depth as f32 / limit as f32 },
                    ..job
                });
            }
        }
        if due.is_empty()
            && let Some(job) = pack(family, busy, runs)
        {
            return Some(job);
        }
    }
    None
}

/// What merging the component may reclaim, as a part of what it reads: each entry may overwrite one below, each
/// deletion does, and goes itself.
fn gain<T: TableLike>(family: &Family<T>, comp: &Component<'_, T>) -> f64 {
    let below = &family.last.tables()[family.last.overlapping(comp.smallest, comp.largest)];
    let covered: u64 = below.iter().map(|t| t.meta().raw_bytes).sum();
    let entries: u64 = below.iter().map(|t| t.meta().entries).sum();
    let each = if entries == 0 { 0.0 } else { covered as f64 / entries as f64 };
    let overwritten = (comp.raw as f64).min(covered as f64);
    let deleted = (comp.deletes as f64 * each).min(covered as f64);
    (overwritten + deleted) / (comp.raw + covered).max(1) as f64
}

/// Merges component `at` of the lowest of `tiers` to where it belongs.
fn merge_down<T: TableLike>(
    family: &Family<T>,
    params: &Params,
    shape: &Shape,
    busy: &Busy,
    tiers: &[(u8, Range<usize>)],
    comps: &[Component<'_, T>],
    at: usize,
) -> Option<Job> {
    let (tier, range) = tiers.first()?;
    let comp = &comps[at];
    // If this would make the next tier too deep here, that one is merged along: one rewriting less.
    if let Some((next, below)) = tiers.get(1) {
        let over = &family.runs[below.clone()];
        let depth = over.iter().filter(|r| !r.overlapping(comp.smallest, comp.largest).is_empty()).count();
        if depth >= shape.limit(*next) {
            let both = components(&family.runs[range.start..below.end]);
            let which = both.partition_point(|c| *c.largest < *comp.smallest);
            if both.get(which).is_some_and(|c| c.raw <= params.max_job / 2) {
                let mut merged = vec![(*next, range.start..below.end)];
                merged.extend_from_slice(&tiers[2..]);
                return merge_down(family, params, shape, busy, &merged, &both, which);
            }
        }
    }
    let older = &family.runs[range.end..];
    let between = older.iter().any(|r| !r.overlapping(comp.smallest, comp.largest).is_empty());
    let last = &family.last.tables()[family.last.overlapping(comp.smallest, comp.largest)];
    let last_raw: u64 = last.iter().map(|t| t.meta().raw_bytes).sum();
    if !between && (last_raw as f64 <= shape.ratio * comp.raw as f64 || *tier >= MAX_TIER) {
        return merge(family, params, busy, comps, at, Dest::LAST);
    }
    let next = tier.saturating_add(1);
    let dest = match older.first() {
        // The newest run of the next tier takes more tables as long as they overlap none of its.
        Some(run) if run.tier == next && run.overlapping(comp.smallest, comp.largest).is_empty() => {
            Dest::Run { id: run.id, tier: next }
        }
        _ if next < LAST_TIER => Dest::New { tier: next },
        _ => return None,
    };
    merge(family, params, busy, comps, at, dest)
}

/// Moves tables down into the next older run of the tier that they do not overlap, through all they do not overlap
/// on the way.
fn pack<T: TableLike>(family: &Family<T>, busy: &Busy, runs: &[Arc<Run<T>>]) -> Option<Job> {
    for to in (1..runs.len()).rev() {
        let free = |from: usize, table: &Arc<T>| {
            let meta = table.meta();
            !busy.overlaps(family.id, &meta.smallest, &meta.largest)
                && runs[from + 1..=to].iter().all(|r| r.overlapping(&meta.smallest, &meta.largest).is_empty())
        };
        // One run at a time: two of them could overlap each other.
        for from in (0..to).rev() {
            let moved: Vec<_> = runs[from].tables().iter().filter(|t| free(from, t)).collect();
            let moved: Vec<_> = moved.into_iter().map(|t| (runs[from].id, Arc::clone(t))).collect();
            if !moved.is_empty() {
                return Job::moving(family, Dest::Run { id: runs[to].id, tier: runs[to].tier }, &moved);
            }
        }
    }
    None
}

pub(super) fn debt<T: TableLike>(family: &Family<T>, shape: &Shape) -> Debt {
    let mut debt = Debt::default();
    for (tier, range) in tiers(&family.runs) {
        let runs = &family.runs[range];
        let limit = shape.limit(tier);
        debt.runs_over += runs.len().saturating_sub(limit) as u32;
        if runs.len() <= limit {
            continue;
        }
        for comp in components(runs).iter().filter(|c| c.depth > limit) {
            let below = &family.last.tables()[family.last.overlapping(comp.smallest, comp.largest)];
            let covered: u64 = below.iter().map(|t| t.meta().raw_bytes).sum();
            let joined = if covered as f64 <= shape.ratio * comp.raw as f64 { covered } else { 0 };
            debt.bytes = debt.bytes.saturating_add(comp.raw).saturating_add(joined);
        }
    }
    debt
}
