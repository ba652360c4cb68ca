//! A job: which tables become new tables of which run; and the ranges that jobs under way have claimed.

use crate::table::TableMeta;
use crate::tree::edit::Edit;
use crate::tree::run::{LAST_RUN, LAST_TIER, Run, TableLike};
use crate::tree::version::{Family, Tree};
use std::sync::Arc;

/// Where a job's tables go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dest {
    /// A run that is there. If it has vanished when the job ends, one of its tier takes its place.
    Run {
        /// Its id.
        id: u64,
        /// Its tier.
        tier: u8,
    },
    /// A new run of that tier, directly older than the oldest run of the inputs.
    New {
        /// The tier.
        tier: u8,
    },
}

impl Dest {
    /// The last run.
    pub(crate) const LAST: Dest = Dest::Run { id: LAST_RUN, tier: LAST_TIER };

    fn tier(self) -> u8 {
        match self {
            Dest::Run { tier, .. } | Dest::New { tier } => tier,
        }
    }
}

/// One merge, move or drop.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Job {
    /// The column family.
    pub(crate) family: u32,
    /// The upper runs that give tables, newest first.
    pub(crate) group: Vec<u64>,
    /// Where the new tables go.
    pub(crate) dest: Dest,
    /// The tables to merge, as (run, table): newer runs first, and the destination's own last.
    pub(crate) inputs: Vec<(u64, u64)>,
    /// Tables to drop without a replacement. Such a job has no inputs.
    pub(crate) drop: Vec<(u64, u64)>,
    /// The first key of all inputs.
    pub(crate) smallest: Box<[u8]>,
    /// The last key of all inputs.
    pub(crate) largest: Box<[u8]>,
    /// The inputs become tables of the destination as they are.
    pub(crate) trivial: bool,
    /// Nothing older than the destination overlaps the inputs: deletions that every snapshot sees may go.
    pub(crate) is_bottom: bool,
    /// Raw bytes of the inputs.
    pub(crate) raw_bytes: u64,
    /// How urgent: above 1, more runs than allowed; moves and drops, which cost next to nothing, have 100.
    pub(crate) score: f32,
}

impl Job {
    /// A job that moves tables, given with their runs, newest run first or last.
    pub(super) fn moving<T: TableLike>(
        family: &Family<T>,
        dest: Dest,
        tables: &[(u64, Arc<T>)],
    ) -> Option<Job> {
        let job = Self::merging(family, dest, tables, 100.0)?;
        Some(Job { trivial: true, ..job })
    }

    /// A job that merges tables, given with their runs.
    pub(super) fn merging<T: TableLike>(
        family: &Family<T>,
        dest: Dest,
        tables: &[(u64, Arc<T>)],
        score: f32,
    ) -> Option<Job> {
        let smallest = tables.iter().map(|(_, t)| &t.meta().smallest).min()?.clone();
        let largest = tables.iter().map(|(_, t)| &t.meta().largest).max()?.clone();
        let dest_id = match dest {
            Dest::Run { id, .. } => Some(id),
            Dest::New { .. } => None,
        };
        let mut inputs = Vec::with_capacity(tables.len());
        let mut group = Vec::new();
        // In the order of age, whatever order they were found in.
        for run in family.all_runs() {
            let before = inputs.len();
            inputs.extend(tables.iter().filter(|(r, _)| *r == run.id).map(|(r, t)| (*r, t.meta().id)));
            if inputs.len() > before && Some(run.id) != dest_id {
                group.push(run.id);
            }
        }
        let older = match dest {
            Dest::Run { id, .. } => family.all_runs().position(|r| r.id == id)? + 1,
            Dest::New { .. } => family.all_runs().position(|r| Some(&r.id) == group.last())? + 1,
        };
        let is_bottom = family.all_runs().skip(older).all(|r| r.overlapping(&smallest, &largest).is_empty());
        Some(Job {
            family: family.id,
            group,
            dest,
            inputs,
            drop: Vec::new(),
            smallest,
            largest,
            trivial: false,
            is_bottom,
            raw_bytes: tables.iter().map(|(_, t)| t.meta().raw_bytes).sum(),
            score,
        })
    }

    /// A job that drops tables.
    pub(super) fn dropping<T: TableLike>(family: &Family<T>, tables: &[(u64, Arc<T>)]) -> Option<Job> {
        let mut job = Self::merging(family, Dest::LAST, tables, 100.0)?;
        job.drop = std::mem::take(&mut job.inputs);
        Some(Job { trivial: true, ..job })
    }

    /// Whether `run` is newer than a new destination run would be.
    fn runs_above<T>(&self, run: &Run<T>, tier: u8) -> bool {
        run.tier < tier || self.group.contains(&run.id)
    }

    /// Whether no job under way overlaps this one.
    pub(super) fn is_free(&self, busy: &Busy) -> bool {
        !busy.overlaps(self.family, &self.smallest, &self.largest)
    }

    /// The edits that end the job: its inputs go, `outputs` (for a move, the inputs again) come. `new_run` is an
    /// unused id, for the case that the destination is, or has become, a new run. `None` if the family was dropped
    /// meanwhile: then the outputs are to be removed.
    pub(crate) fn edits<T: TableLike>(
        &self,
        tree: &Tree<T>,
        outputs: &[TableMeta],
        new_run: u64,
    ) -> Option<Vec<Edit>> {
        let family = tree.family(self.family)?;
        let mut edits = Vec::new();
        let mut moved = Vec::new();
        for &(run, table) in self.inputs.iter().chain(&self.drop) {
            if self.trivial && self.drop.is_empty() {
                moved.push(family.run(run)?.table(table)?.meta().clone());
            }
            edits.push(Edit::RemoveTable { family: self.family, run, table });
        }
        let outputs = if self.trivial { &moved[..] } else { outputs };
        if outputs.is_empty() {
            return Some(edits);
        }
        let run = match self.dest {
            Dest::Run { id, .. } if family.run(id).is_some() => id,
            _ => {
                // Directly below the group, and below all runs of lower tiers: tiers stay in order. What lies
                // between has no key of the inputs.
                let tier = self.dest.tier();
                let newer = |run: &&Arc<Run<T>>| self.runs_above(run, tier);
                let after = family.runs.iter().rev().find(newer).map(|run| run.id);
                edits.push(Edit::NewRun { family: self.family, run: new_run, tier, after });
                new_run
            }
        };
        edits.extend(outputs.iter().map(|meta| Edit::AddTable {
            family: self.family,
            run,
            meta: meta.clone(),
        }));
        Some(edits)
    }
}

/// The key ranges of the jobs under way. Jobs of one family must not overlap.
#[derive(Debug, Default)]
pub(crate) struct Busy {
    claims: Vec<Claim>,
    tickets: u64,
}

#[derive(Debug)]
struct Claim {
    ticket: u64,
    family: u32,
    smallest: Box<[u8]>,
    largest: Box<[u8]>,
}

impl Busy {
    /// Claims the job's range until the ticket is given to [`release`](Self::release).
    pub(crate) fn claim(&mut self, job: &Job) -> u64 {
        self.tickets += 1;
        self.claims.push(Claim {
            ticket: self.tickets,
            family: job.family,
            smallest: job.smallest.clone(),
            largest: job.largest.clone(),
        });
        self.tickets
    }

    /// Ends a claim.
    pub(crate) fn release(&mut self, ticket: u64) {
        self.claims.retain(|c| c.ticket != ticket);
    }

    /// Whether a job under way overlaps these keys.
    pub(crate) fn overlaps(&self, family: u32, smallest: &[u8], largest: &[u8]) -> bool {
        self.claims.iter().any(|c| c.family == family && *c.smallest <= *largest && *smallest <= *c.largest)
    }

    /// Jobs under way.
    pub(crate) fn len(&self) -> usize {
        self.claims.len()
    }
}
