//! First in, first out: nothing is merged, and the oldest tables are dropped beyond a number of bytes.
//!
//! A table is dropped only if it overlaps nothing older, so that no older version of a key comes back.

use super::Family;
use super::job::{Busy, Job};
use crate::tree::run::{Run, TableLike};
use std::sync::Arc;

pub(super) fn pick<T: TableLike>(family: &Family<T>, max_bytes: u64, busy: &Busy) -> Option<Job> {
    let mut over = family.bytes().checked_sub(max_bytes).filter(|&over| over > 0)?;
    let runs: Vec<&Arc<Run<T>>> = family.all_runs().collect();
    let mut droppable = Vec::new();
    for (i, run) in runs.iter().enumerate() {
        for table in run.tables() {
            let meta = table.meta();
            if !busy.overlaps(family.id, &meta.smallest, &meta.largest)
                && runs[i + 1..].iter().all(|r| r.overlapping(&meta.smallest, &meta.largest).is_empty())
            {
                droppable.push((run.id, Arc::clone(table)));
            }
        }
    }
    droppable.sort_by_key(|(_, t)| (t.meta().max_version, t.meta().id));
    let enough = droppable.iter().take_while(|(_, table)| {
        let wanted = over > 0;
        over = over.saturating_sub(table.meta().file_len);
        wanted
    });
    let n = enough.count();
    Job::dropping(family, &droppable[..n])
}
