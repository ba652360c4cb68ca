//! Plain leveling: flushed runs over levels of one run each, every level ten times the one above.
//!
//! The last run is the largest level; the others get their sizes from it, a tenth each, down to a few flushes. Levels
//! are numbered from the last one upwards, so that a new one appears on top when there is data for it.

use super::component::{components, merge};
use super::job::{Busy, Dest, Job};
use super::{Debt, Family, Params};
use crate::tree::run::{Run, TableLike};
use std::sync::Arc;

/// Flushed runs that may lie over each other.
const FLUSHED: usize = 4;
/// How many times larger each level is than the one above.
const RATIO: u64 = 10;

type Levels<'a, T> = Vec<&'a Arc<Run<T>>>;

/// The flushed runs, and the levels from the top to the last run.
fn split<T>(family: &Family<T>) -> (&[Arc<Run<T>>], Levels<'_, T>) {
    let (flushed, levels) = family.runs.split_at(family.runs.partition_point(|r| r.tier == 0));
    (flushed, levels.iter().chain([&family.last]).collect())
}

fn base(params: &Params) -> u64 {
    params.flush.saturating_mul(FLUSHED as u64)
}

/// How many raw bytes a level may have over the given one.
fn limit<T>(params: &Params, below: &Run<T>) -> u64 {
    (below.raw_bytes / RATIO).max(base(params))
}

pub(super) fn pick<T: TableLike>(family: &Family<T>, params: &Params, busy: &Busy) -> Option<Job> {
    let (flushed, levels) = split(family);
    let mut best: Option<Job> = None;
    let mut offer = |job: Option<Job>, score: f32| {
        if let Some(job) = job {
            let score = if job.trivial { 100.0 } else { score };
            if best.as_ref().is_none_or(|b| b.score < score) {
                best = Some(Job { score, ..job });
            }
        }
    };
    if flushed.len() > FLUSHED {
        let comps = components(flushed);
        let deepest = (0..comps.len()).max_by_key(|&c| comps[c].depth)?;
        let top = levels[0];
        let fits = top.raw_bytes <= RATIO * base(params) || top.tier <= 1;
        let dest =
            if fits { Dest::Run { id: top.id, tier: top.tier } } else { Dest::New { tier: top.tier - 1 } };
        let free = std::iter::once(deepest).chain((0..comps.len()).filter(|&c| c != deepest));
        let job = free.filter_map(|c| merge(family, params, busy, &comps, c, dest)).next();
        offer(job, flushed.len() as f32 / FLUSHED as f32);
    }
    for pair in levels.windows(2) {
        let (run, below) = (pair[0], pair[1]);
        let limit = limit(params, below);
        if run.raw_bytes <= limit {
            continue;
        }
        // The table that costs least to move for what it relieves.
        let cost = |table: &Arc<T>| {
            let meta = table.meta();
            let covered = &below.tables()[below.overlapping(&meta.smallest, &meta.largest)];
            let covered: u64 = covered.iter().map(|t| t.meta().raw_bytes).sum();
            covered as f64 / meta.raw_bytes.max(1) as f64
        };
        let group = std::slice::from_ref(run);
        let comps = components(group);
        let mut order: Vec<_> = (0..comps.len()).map(|c| (cost(comps[c].pieces[0].2), c)).collect();
        order.sort_by(|a, b| a.0.total_cmp(&b.0));
        let dest = Dest::Run { id: below.id, tier: below.tier };
        let job = order.iter().filter_map(|&(_, c)| merge(family, params, busy, &comps, c, dest)).next();
        offer(job, run.raw_bytes as f32 / limit as f32);
    }
    best
}

pub(super) fn debt<T: TableLike>(family: &Family<T>, params: &Params) -> Debt {
    let (flushed, levels) = split(family);
    let mut debt = Debt::default();
    if flushed.len() > FLUSHED {
        debt.runs_over = (flushed.len() - FLUSHED) as u32;
        debt.bytes = flushed.iter().map(|r| r.raw_bytes).sum::<u64>() + levels[0].raw_bytes;
    }
    for pair in levels.windows(2) {
        let over = pair[0].raw_bytes.saturating_sub(limit(params, pair[1]));
        let per_byte = 1 + pair[1].raw_bytes / pair[0].raw_bytes.max(1);
        debt.bytes = debt.bytes.saturating_add(over.saturating_mul(per_byte));
    }
    debt
}
