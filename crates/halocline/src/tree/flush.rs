//! A flush: a sealed memtable becomes a new run of every column family it holds.
//!
//! It is done in steps, so that writers who run ahead can help, and two may be under way, so that one writes while the
//! other waits for the disk; they end in the order of their memtables. What it must get right: all writers
//! of the segment are done before it looks; the records are verified first, so that a stray store never reaches a
//! table; the snapshots are listed after the seal; the manifest learns of the tables and of the new floor in one edit, after the tables and
//! their names are durable; and only then does the segment go back to the pool.

use super::edit::Edit;
use super::output::{Ascents, Output, open_table};
use super::policy::Cuts;
use super::turns::Steps;
use super::version::Family;
use crate::db::core::{Core, Mem, closed, lock};
use crate::db::read::InternalKey;
use crate::entry::Prefix;
use crate::io::checksum::key_hash;
use crate::iter::{Prefixed, Source, VersionMerge, Visibility};
use crate::memtable::MemCursor;
use crate::sync::Arc;
use crate::table::Table;
use crate::{Error, ErrorKind, Result};
use std::sync::atomic::Ordering;

/// Says of a key whether nothing older of it can exist.
pub(crate) type Absent = Box<dyn FnMut(&[u8]) -> bool + Send>;

struct FamilyFlush {
    family: u32,
    merge: VersionMerge<Prefixed<MemCursor>, Absent>,
    output: Output,
    ascents: Ascents,
}

/// A flush under way.
pub(crate) struct FlushJob {
    mem: Arc<Mem>,
    snapshots: Vec<u64>,
    /// Finds the column families in the memtable.
    finder: MemCursor,
    current: Option<FamilyFlush>,
    finished: Vec<(u32, Output)>,
    done: bool,
    started_ns: u64,
}

/// As [`absent_below`] for all of a family, and none of the memtables, which are older and not flushed yet, has the key.
fn absent_everywhere(family: &Arc<Family<Table>>, older: Vec<Arc<Mem>>) -> Absent {
    let mut in_tables = absent_below(family, 0);
    let family = family.id;
    Box::new(move |key| {
        let in_memory = || {
            let internal = InternalKey::new(family, key);
            older.iter().any(|mem| mem.memtable.get(internal.as_slice(), u64::MAX).is_some())
        };
        (older.is_empty() || !in_memory()) && in_tables(key)
    })
}

/// No run of `family` from index `from` on, counting the last run as the last, may hold the key.
pub(crate) fn absent_below(family: &Arc<Family<Table>>, from: usize) -> Absent {
    let family = Arc::clone(family);
    Box::new(move |key| {
        let hash = key_hash(key);
        !family.all_runs().skip(from).filter_map(|run| run.find(key)).any(|table| table.may_contain(hash))
    })
}

impl FlushJob {
    /// Begins to flush `mem`, the oldest sealed memtable.
    pub(crate) fn new(core: &Core, mem: Arc<Mem>) -> Result<FlushJob> {
        core.in_flight.wait_below(mem.segment.base() + mem.segment.raw().len());
        mem.segment.verify()?;
        let snapshots = core.snapshots.list();
        let mut finder = mem.memtable.cursor(Visibility::All);
        finder.seek_first()?;
        let started_ns = core.vfs.monotonic_ns();
        Ok(FlushJob { mem, snapshots, finder, current: None, finished: Vec::new(), done: false, started_ns })
    }

    fn next_family(&mut self, core: &Core) -> Result<()> {
        if !self.finder.valid() {
            self.done = true;
            return Ok(());
        }
        let Some((id, _)) = Prefix::split(self.finder.key()) else {
            return Err(Error::new(ErrorKind::Corruption, "a key in the memtable has no column family"));
        };
        let version = core.version.load_arc();
        if let Some(family) = version.tree.family(id) {
            let source = Prefixed::new(self.mem.memtable.cursor(Visibility::All), Prefix::of(id));
            let older = version.sealed.iter().filter(|mem| mem.segment.base() < self.mem.segment.base());
            let absent = absent_everywhere(family, older.cloned().collect());
            let mut merge = VersionMerge::new(vec![source], &self.snapshots, absent);
            merge.seek_first()?;
            let output =
                Output::new(core, Cuts::flush(family, &core.params(), self.mem.segment.used()), false);
            self.current = Some(FamilyFlush { family: id, merge, output, ascents: Ascents::default() });
        }
        match id.checked_add(1) {
            Some(next) => self.finder.seek(Prefix::of(next).as_slice()),
            None => self.finder.seek_last().and_then(|()| self.finder.next()),
        }
    }

    /// Waits until this memtable is the oldest one.
    fn wait_for_turn(&self, core: &Core) -> Result<()> {
        let mut state = lock(&core.signals.state);
        loop {
            let oldest = core.version.load_arc().sealed.last().map(|mem| mem.segment.base());
            if oldest.is_none_or(|oldest| oldest >= self.mem.segment.base()) {
                return Ok(());
            }
            core.halt.check_failed()?;
            if let Some(e) = &*lock(&core.flush_error) {
                return Err(e.clone());
            }
            if state.closing {
                return Err(closed());
            }
            state = core.signals.done.wait(state).unwrap_or_else(|e| e.into_inner());
        }
    }
}

impl Steps for FlushJob {
    /// Whether all entries are written: only `finish` is left.
    fn is_done(&self) -> bool {
        self.done
    }

    /// Writes up to `entries` entries.
    fn step(&mut self, core: &Core, entries: usize) -> Result<()> {
        let mut left = entries;
        while left > 0 && !self.done {
            let Some(current) = &mut self.current else {
                self.next_family(core)?;
                continue;
            };
            while left > 0 && current.merge.valid() {
                let (version, kind) = (current.merge.version(), current.merge.kind());
                let address = current.merge.address();
                if current.ascents.end_before(current.merge.key(), address) {
                    current.output.cut_next();
                }
                let (key, value) = current.merge.entry()?;
                current.output.add(core, key, version, kind, value)?;
                current.merge.next()?;
                left -= 1;
            }
            if !current.merge.valid()
                && let Some(current) = self.current.take()
            {
                let dropped = current.merge.dropped();
                core.counters.superseded.add(dropped.superseded);
                self.finished.push((current.family, current.output));
            }
        }
        Ok(())
    }

    /// Makes the tables durable, tells the manifest, and shows them to readers.
    fn finish(&mut self, core: &Core) -> Result<()> {
        let floor = self.mem.segment.next_base();
        let mut written = Vec::with_capacity(self.finished.len());
        for (family, output) in &mut self.finished {
            written.push((*family, output.finish(core)?));
        }
        // The flushes of older memtables come first: the floor only rises.
        self.wait_for_turn(core)?;
        let mut manifest = lock(&core.manifest);
        let version = core.version.load_arc();
        let mut edits = Vec::new();
        for (i, (family, metas)) in written.into_iter().enumerate() {
            if version.tree.family(family).is_none() {
                // Dropped meanwhile.
                self.finished[i].1.abandon(core);
            } else if !metas.is_empty() {
                let run = core.next_file.fetch_add(1, Ordering::SeqCst);
                edits.push(Edit::NewRun { family, run, tier: 0, after: None });
                edits.extend(metas.into_iter().map(|meta| Edit::AddTable { family, run, meta }));
            }
        }
        edits.push(Edit::LogFloor { lsn: floor });
        edits.push(Edit::NextId { id: core.next_file.load(Ordering::SeqCst) });
        let tree = version.tree.apply(&edits, |meta| open_table(core, meta))?;
        // From here on the files may belong to the database, whatever the append says.
        self.finished.iter_mut().for_each(|(_, output)| output.keep());
        core.append(&mut manifest, &edits)?;
        core.install(Arc::new(tree), floor);
        drop(manifest);
        core.counters.flushes.add(1);
        core.counters.flush_ns.add(core.vfs.monotonic_ns().saturating_sub(self.started_ns));
        Ok(())
    }

    /// Removes what was written: the flush failed and starts again, or never.
    fn abandon(&mut self, core: &Core) {
        if let Some(current) = &mut self.current {
            current.output.abandon(core);
        }
        self.finished.iter_mut().for_each(|(_, output)| output.abandon(core));
    }
}
