//! Components: the tables of some runs that overlap one another, directly or through others.
//!
//! Flushed runs are cut at the boundaries of the last run's tables (see `cuts`), so a component is usually what the
//! runs have in one partition, or in a few.

use super::job::{Busy, Dest, Job};
use super::{Family, Params};
use crate::tree::run::{Run, TableLike, overlap};
use std::sync::Arc;

/// A table with its run, and the index of that in the group.
pub(super) type Piece<'a, T> = (usize, &'a Arc<Run<T>>, &'a Arc<T>);

/// Tables that overlap one another. Components are disjoint in keys.
pub(super) struct Component<'a, T> {
    /// The tables, by first key.
    pub(super) pieces: Vec<Piece<'a, T>>,
    pub(super) smallest: &'a [u8],
    pub(super) largest: &'a [u8],
    pub(super) raw: u64,
    pub(super) entries: u64,
    pub(super) deletes: u64,
    /// How many runs have tables here.
    pub(super) depth: usize,
}

/// The components of a group of runs, given newest first, in key order.
pub(super) fn components<T: TableLike>(group: &[Arc<Run<T>>]) -> Vec<Component<'_, T>> {
    let mut pieces: Vec<Piece<'_, T>> = Vec::new();
    for (i, run) in group.iter().enumerate() {
        pieces.extend(run.tables().iter().map(|table| (i, run, table)));
    }
    pieces.sort_by(|a, b| a.2.meta().smallest.cmp(&b.2.meta().smallest));
    let mut found: Vec<Component<'_, T>> = Vec::new();
    for piece in pieces {
        let meta = piece.2.meta();
        let to = match found.last_mut() {
            Some(last) if *last.largest >= *meta.smallest => last,
            _ => {
                found.push(Component {
                    pieces: Vec::new(),
                    smallest: &meta.smallest,
                    largest: &meta.largest,
                    raw: 0,
                    entries: 0,
                    deletes: 0,
                    depth: 0,
                });
                let at = found.len() - 1;
                &mut found[at]
            }
        };
        to.largest = to.largest.max(&meta.largest);
        to.raw += meta.raw_bytes;
        to.entries += meta.entries;
        to.deletes += meta.deletes;
        to.pieces.push(piece);
    }
    for component in &mut found {
        let mut runs: Vec<usize> = component.pieces.iter().map(|p| p.0).collect();
        runs.sort_unstable();
        runs.dedup();
        component.depth = runs.len();
    }
    found
}

/// The job that merges component `at` into `dest`, or `None` if a job under way is in its way.
///
/// Neighbours that share a table of the destination come along, so that it is rewritten once for all of them, as
/// long as the job does not grow too large. If the component alone is too large, part of it is merged.
pub(super) fn merge<T: TableLike>(
    family: &Family<T>,
    params: &Params,
    busy: &Busy,
    comps: &[Component<'_, T>],
    at: usize,
    dest: Dest,
) -> Option<Job> {
    let run = match dest {
        Dest::Run { id, .. } => Some(family.run(id)?),
        Dest::New { .. } => None,
    };
    let covered = |smallest: &[u8], largest: &[u8]| {
        run.map_or(&[][..], |run| &run.tables()[run.overlapping(smallest, largest)])
    };
    let alone = &comps[at];
    let below = covered(alone.smallest, alone.largest);
    if alone.raw + raw_of(below) > params.max_job && alone.pieces.len() > 1 {
        return merge_part(family, params, busy, alone, dest, &covered);
    }

    let (mut first, mut last) = (at, at);
    let mut job = job_of(family, &comps[first..=last], below, dest).filter(|job| job.is_free(busy))?;
    loop {
        // Which components the inputs reach into by now.
        let lower = comps[..first].partition_point(|c| *c.largest < *job.smallest);
        let upper = last + 1 + comps[last + 1..].partition_point(|c| *c.smallest <= *job.largest);
        if lower == first && upper == last + 1 {
            return Some(job);
        }
        (first, last) = (lower, upper - 1);
        let below = covered(comps[first].smallest, comps[last].largest);
        match job_of(family, &comps[first..=last], below, dest) {
            Some(larger) if larger.raw_bytes <= params.max_job && larger.is_free(busy) => job = larger,
            _ => return Some(job),
        }
    }
}

fn raw_of<T: TableLike>(tables: &[Arc<T>]) -> u64 {
    tables.iter().map(|t| t.meta().raw_bytes).sum()
}

fn job_of<T: TableLike>(
    family: &Family<T>,
    comps: &[Component<'_, T>],
    below: &[Arc<T>],
    dest: Dest,
) -> Option<Job> {
    let pieces = comps.iter().flat_map(|c| &c.pieces);
    let inputs: Vec<(u64, Arc<T>)> = pieces.map(|(_, run, table)| (run.id, Arc::clone(table))).collect();
    finish(family, inputs, below, dest, comps.iter().all(|c| c.pieces.len() == 1))
}

fn finish<T: TableLike>(
    family: &Family<T>,
    mut inputs: Vec<(u64, Arc<T>)>,
    below: &[Arc<T>],
    dest: Dest,
    disjoint: bool,
) -> Option<Job> {
    let no_deletes = inputs.iter().all(|(_, t)| t.meta().deletes == 0);
    if let Dest::Run { id, .. } = dest {
        inputs.extend(below.iter().map(|t| (id, Arc::clone(t))));
    }
    let job = Job::merging(family, dest, &inputs, 1.0)?;
    let trivial = disjoint && below.is_empty() && (no_deletes || !job.is_bottom);
    Some(Job { trivial, ..job })
}

/// Merges part of a component: some tables next to each other of its oldest run, and of each newer run the tables
/// that overlap no older one outside of the part. Nothing older than what moves stays above.
fn merge_part<'t, T: TableLike + 't>(
    family: &Family<T>,
    params: &Params,
    busy: &Busy,
    comp: &Component<'_, T>,
    dest: Dest,
    covered: &impl Fn(&[u8], &[u8]) -> &'t [Arc<T>],
) -> Option<Job> {
    let oldest = comp.pieces.iter().map(|p| p.0).max()?;
    let base: Vec<_> = comp.pieces.iter().filter(|p| p.0 == oldest).collect();
    for start in 0..base.len() {
        let smallest = &base[start].2.meta().smallest;
        let mut end = start;
        let mut raw = 0;
        while end < base.len() {
            let meta = base[end].2.meta();
            if end > start
                && raw + meta.raw_bytes + raw_of(covered(smallest, &meta.largest)) > params.max_job / 2
            {
                break;
            }
            raw += meta.raw_bytes;
            end += 1;
        }
        let largest = &base[end - 1].2.meta().largest;
        let below = covered(smallest, largest);
        let mut total = raw + raw_of(below);
        let mut part: Vec<_> = base[start..end].iter().map(|p| (p.0, p.1, p.2)).collect();
        // The hull of the part: connected, so that what is written covers no table of the destination left out.
        let (mut from, mut to) = (smallest, largest);
        for run in (0..oldest).rev() {
            for piece in comp.pieces.iter().filter(|p| p.0 == run) {
                let meta = piece.2.meta();
                let taken = |table: &Arc<T>| part.iter().any(|p| Arc::ptr_eq(p.2, table));
                if meta.largest < *from || meta.smallest > *to {
                    continue;
                }
                let above_part =
                    comp.pieces.iter().filter(|p| p.0 > run && overlap(p.2.meta(), meta)).all(|p| taken(p.2));
                let within = covered(&meta.smallest, &meta.largest).len() == below_within(below, meta);
                if above_part && within && total + meta.raw_bytes <= params.max_job {
                    total += meta.raw_bytes;
                    part.push(*piece);
                    (from, to) = (from.min(&meta.smallest), to.max(&meta.largest));
                }
            }
        }
        let disjoint = part.len() == end - start;
        let inputs = part.iter().map(|(_, run, table)| (run.id, Arc::clone(table))).collect();
        if let Some(job) = finish(family, inputs, below, dest, disjoint).filter(|job| job.is_free(busy)) {
            return Some(job);
        }
    }
    None
}

/// How many of the tables overlap `meta`.
fn below_within<T: TableLike>(below: &[Arc<T>], meta: &crate::table::TableMeta) -> usize {
    below.iter().filter(|t| overlap(t.meta(), meta)).count()
}
