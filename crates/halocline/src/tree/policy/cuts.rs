//! Where a flush or a merge ends one table and begins the next.
//!
//! Upper runs are cut at first keys of the last run's tables, its partition boundaries, so that a later merge of one
//! partition finds tables that end where it does. There may be more boundaries than a flush can afford tables for, so
//! every boundary has a fixed, pseudo-random **strength**: half of them 0, a quarter 1, and so on. A table ends at
//! a boundary if it has at least the minimum, halved for every step of strength: runs written at different times then
//! agree in most of their cuts, and where data is dense they agree in all of them.

use super::job::{Dest, Job};
use super::{Family, Params};
use crate::io::checksum::key_hash;
use crate::tree::run::{LAST_RUN, TableLike};

/// Decides where tables end. Ask before each entry with a new key.
#[derive(Debug)]
pub(crate) struct Cuts {
    boundaries: Vec<(Box<[u8]>, u8)>,
    next: usize,
    min: u64,
    max: u64,
    floor: u64,
}

impl Cuts {
    /// For a flush of about `raw` bytes.
    pub(crate) fn flush<T: TableLike>(family: &Family<T>, params: &Params, raw: u64) -> Cuts {
        Self::upper(family, params, raw, &[], None)
    }

    /// For what a job writes.
    pub(crate) fn job<T: TableLike>(family: &Family<T>, params: &Params, job: &Job) -> Cuts {
        if !matches!(job.dest, Dest::Run { id: LAST_RUN, .. }) {
            return Self::upper(family, params, job.raw_bytes, &job.smallest, Some(&job.largest));
        }
        // The old boundaries are kept where that makes tables of good size, since upper runs were cut there.
        let boundaries = boundaries(family, &job.smallest, Some(&job.largest));
        let boundaries = boundaries.into_iter().map(|(key, _)| (key, 0)).collect();
        let max = even(job.raw_bytes, params.target);
        Cuts { boundaries, next: 0, min: params.target / 2, max, floor: params.target / 2 }
    }

    fn upper<T: TableLike>(
        family: &Family<T>,
        params: &Params,
        raw: u64,
        from: &[u8],
        to: Option<&[u8]>,
    ) -> Cuts {
        let min = params.target / 16;
        let boundaries = boundaries(family, from, to);
        let max = if boundaries.is_empty() { even(raw, params.target / 2) } else { params.target / 2 };
        Cuts { boundaries, next: 0, min, max, floor: min / 64 }
    }

    /// Whether the table under way, which has `raw` bytes of keys and values, ends before `key`. Keys ascend.
    #[inline]
    pub(crate) fn before(&mut self, key: &[u8], raw: u64) -> bool {
        let passed = self.boundaries.get(self.next).is_some_and(|(b, _)| **b <= *key);
        if passed {
            return self.pass(key, raw);
        }
        raw >= self.max
    }

    #[cold]
    fn pass(&mut self, key: &[u8], raw: u64) -> bool {
        let mut strength = 0;
        while let Some((boundary, s)) = self.boundaries.get(self.next)
            && **boundary <= *key
        {
            strength = strength.max(*s);
            self.next += 1;
        }
        raw >= self.max || raw > 0 && raw >= (self.min >> strength.min(63)).max(self.floor)
    }
}

/// The first keys of the last run's tables within the range, with their strengths, without the run's first.
fn boundaries<T: TableLike>(family: &Family<T>, from: &[u8], to: Option<&[u8]>) -> Vec<(Box<[u8]>, u8)> {
    let tables = family.last.tables().iter().skip(1).map(|t| &t.meta().smallest);
    let within = tables.filter(|key| ***key > *from && to.is_none_or(|to| ***key <= *to));
    within.map(|key| (key.clone(), key_hash(key).trailing_zeros() as u8)).collect()
}

/// The size of pieces of `raw` bytes that are as large as possible, no larger than `max`, and all the same.
fn even(raw: u64, max: u64) -> u64 {
    let pieces = raw.div_ceil(max.max(1)).max(1);
    raw.div_ceil(pieces).max(1)
}
