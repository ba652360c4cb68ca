//! A merge: tables of a few runs over one key range become tables of the run below.
//!
//! Like a flush it is done in steps, each bounded, so that it can be interrupted, and helped by writers in debt. The inputs are
//! immutable and stay in the version until the outputs are durable and the manifest has switched from one to the
//! other in one edit; their files go when the last reader has let go of them.

use super::edit::Edit;
use super::flush::{Absent, absent_below};
use super::output::{Output, open_table};
use super::policy::{Cuts, Dest, Job};
use super::turns::Steps;
use super::version::Family;
use crate::Result;
use crate::db::core::{Core, lock};
use crate::iter::{Concat, Tables, VersionMerge, Visibility};
use crate::sync::Arc;
use crate::table::{Table, TableCursor, TableMeta};
use std::sync::atomic::Ordering;

/// Some tables of a run, in order.
struct Part {
    tables: Vec<Arc<Table>>,
}

impl Tables for Part {
    type Cursor = TableCursor;
    fn len(&self) -> usize {
        self.tables.len()
    }
    fn smallest(&self, i: usize) -> &[u8] {
        &self.tables[i].meta().smallest
    }
    fn largest(&self, i: usize) -> &[u8] {
        &self.tables[i].meta().largest
    }
    fn open(&self, i: usize) -> TableCursor {
        self.tables[i].cursor(Visibility::All)
    }
}

/// A merge under way.
pub(crate) struct MergeJob {
    job: Job,
    merge: VersionMerge<Concat<Part>, Absent>,
    output: Output,
    started_ns: u64,
}

impl MergeJob {
    /// Begins `job` on `family` as it was when the job was picked.
    pub(crate) fn new(core: &Core, family: &Arc<Family<Table>>, job: Job) -> Result<MergeJob> {
        let snapshots = core.snapshots.list();
        let mut sources = Vec::new();
        let mut below = 0;
        for (i, run) in family.all_runs().enumerate() {
            let ids = job.inputs.iter().filter(|(r, _)| *r == run.id).map(|(_, table)| *table);
            let mut tables: Vec<_> = ids.filter_map(|id| run.table(id).cloned()).collect();
            if !tables.is_empty() {
                tables.sort_by(|a, b| a.meta().smallest.cmp(&b.meta().smallest));
                sources.push(Concat::new(Part { tables }));
                below = i + 1;
            }
        }
        let absent: Absent = if job.is_bottom { Box::new(|_| true) } else { absent_below(family, below) };
        let mut merge = VersionMerge::new(sources, &snapshots, absent);
        merge.seek_first()?;
        let output = Output::new(core, Cuts::job(family, &core.params(), &job), job.dest == Dest::LAST);
        Ok(MergeJob { job, merge, output, started_ns: core.vfs.monotonic_ns() })
    }
}

impl Steps for MergeJob {
    /// Whether all entries are written: only `finish` is left.
    fn is_done(&self) -> bool {
        !self.merge.valid()
    }

    /// Writes up to `entries` entries.
    fn step(&mut self, core: &Core, entries: usize) -> Result<()> {
        for _ in 0..entries {
            if !self.merge.valid() {
                break;
            }
            let (version, kind) = (self.merge.version(), self.merge.kind());
            let (key, value) = self.merge.entry()?;
            self.output.add(core, key, version, kind, value)?;
            self.merge.next()?;
        }
        Ok(())
    }

    /// Makes the outputs durable and puts them in the inputs' place.
    fn finish(&mut self, core: &Core) -> Result<()> {
        let metas = self.output.finish(core)?;
        let output = &mut self.output;
        replace(
            core,
            &self.job,
            &metas,
            |abandoned| {
                if abandoned { output.abandon(core) } else { output.keep() }
            },
        )?;
        core.counters.merges.add(1);
        core.counters.merge_ns.add(core.vfs.monotonic_ns().saturating_sub(self.started_ns));
        let dropped = self.merge.dropped();
        core.counters.superseded.add(dropped.superseded);
        Ok(())
    }

    /// Removes what was written: the merge failed.
    fn abandon(&mut self, core: &Core) {
        self.output.abandon(core);
    }
}

/// Moves the inputs of a trivial job to their destination, or drops what a FIFO family has outgrown: nothing is read.
pub(crate) fn move_or_drop(core: &Core, job: &Job) -> Result<()> {
    replace(core, job, &[], |_| {})?;
    core.counters.moves.add(1);
    Ok(())
}

/// In one edit: the job's inputs (and drops) go, the outputs come. `settled` is told whether the outputs were given up, and always
/// before the manifest is written.
fn replace(core: &Core, job: &Job, outputs: &[TableMeta], settled: impl FnOnce(bool)) -> Result<()> {
    let mut manifest = lock(&core.manifest);
    let version = core.version.load_arc();
    let new_run = core.next_file.fetch_add(1, Ordering::SeqCst);
    let Some(mut edits) = job.edits(&version.tree, outputs, new_run) else {
        // The column family was dropped meanwhile.
        settled(true);
        return Ok(());
    };
    let old: Vec<Arc<Table>> = version.tree.family(job.family).map_or_else(Vec::new, |family| {
        let gone = job.inputs.iter().chain(&job.drop);
        gone.filter_map(|(run, table)| family.run(*run)?.table(*table).cloned()).collect()
    });
    edits.push(Edit::NextId { id: core.next_file.load(Ordering::SeqCst) });
    let tree = match version.tree.apply(&edits, |meta| open_table(core, meta)) {
        Ok(tree) => Arc::new(tree),
        Err(e) => {
            settled(true);
            return Err(e);
        }
    };
    settled(false);
    core.append(&mut manifest, &edits)?;
    if job.drop.is_empty() {
        core.install_merged(Arc::clone(&tree), version.oldest_base());
    } else {
        core.install(Arc::clone(&tree), version.oldest_base());
    }
    drop(manifest);
    for table in old.iter().filter(|table| !tree.table_ids().contains(&table.meta().id)) {
        core.discard(table);
    }
    Ok(())
}
