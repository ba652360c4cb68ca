//! The background threads: two flush, some merge, one helps (segments ahead of need, timed syncs, tidying).
//!
//! Each waits for a request or its time, never for a fixed sleep. A failure or a panic in any of them stops all
//! writes with its cause; only a full disk is waited out, with the error given to whoever has to wait for the flush.

use super::Bounds;
use super::core::{Core, Halt, Mem, Version, lock};
use super::options::{Compaction, Durability};
use crate::sync::Arc;
use crate::table::Table;
use crate::tree::flush::FlushJob;
use crate::tree::merge_job::{self, MergeJob};
use crate::tree::pacing::FLUSH_THREADS;
use crate::tree::policy::{self, Busy, Job, Params, Policy, Pressure, RangePick};
use crate::tree::turns::Turns;
use crate::tree::version::Family;
use crate::{Error, ErrorKind, Result};
use std::ops::Bound;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::thread::JoinHandle;
use std::time::Duration;

/// How long a job waits before it tries a full disk again.
const RETRY: Duration = Duration::from_millis(200);

/// What a thread does until the database closes.
type Body = Box<dyn Fn(&Core) -> Result<()> + Send>;

/// Starts the threads, and adds them to `threads` as far as it comes.
pub(crate) fn start(core: &Arc<Core>, threads: &mut Vec<JoinHandle<()>>) -> Result<()> {
    let mut spawn = |name: String, body: Body| {
        let owned = Arc::clone(core);
        let run = move || guarded(&owned, body);
        std::thread::Builder::new()
            .name(name)
            .spawn(run)
            .map(|thread| threads.push(thread))
            .map_err(|e| Error::io("start a background thread for the database", &core.dir, e))
    };
    for i in 0..FLUSH_THREADS {
        spawn(format!("halocline-flush-{i}"), Box::new(move |core| flush_loop(core, i)))?;
    }
    spawn("halocline-help".into(), Box::new(help_loop))?;
    for i in 0..core.pacing.merges.len() {
        spawn(format!("halocline-merge-{i}"), Box::new(move |core| merge_loop(core, i)))?;
    }
    Ok(())
}

/// Runs a thread's body; its failure or panic stops all writes.
fn guarded(core: &Core, body: impl Fn(&Core) -> Result<()>) {
    let stop = |halt: &Halt, cause: Error| {
        halt.stop(cause);
        core.signals.finished();
    };
    match catch_unwind(AssertUnwindSafe(|| body(core))) {
        Ok(Ok(())) => {}
        Ok(Err(e)) => stop(&core.halt, e),
        Err(panic) => {
            let what = panic
                .downcast_ref::<&str>()
                .map(|s| s.to_string())
                .or_else(|| panic.downcast_ref::<String>().cloned())
                .unwrap_or_default();
            stop(&core.halt, Error::new(ErrorKind::Halted, format!("a background thread panicked: {what}")));
        }
    }
}

/// Waits until there is a request newer than `seen`, or `timeout` is over; false when the database closes.
fn wait(core: &Core, seen: &mut u64, timeout: Option<Duration>) -> bool {
    let mut state = lock(&core.signals.state);
    loop {
        if state.closing {
            return false;
        }
        if state.requests != *seen {
            *seen = state.requests;
            return true;
        }
        state = match timeout {
            None => core.signals.due.wait(state).unwrap_or_else(|e| e.into_inner()),
            Some(timeout) => {
                let (state, result) =
                    core.signals.due.wait_timeout(state, timeout).unwrap_or_else(|e| e.into_inner());
                if result.timed_out() && !state.closing {
                    return true;
                }
                state
            }
        }
    }
}

/// Lets a full disk be: requests do not end the wait, since failures make requests. False when the database closes.
fn pause(core: &Core) -> bool {
    let mut state = lock(&core.signals.state);
    if !state.closing {
        state = core.signals.end.wait_timeout(state, RETRY).unwrap_or_else(|e| e.into_inner()).0;
    }
    !state.closing
}

fn is_closing(core: &Core) -> bool {
    lock(&core.signals.state).closing
}

fn flush_loop(core: &Core, slot: usize) -> Result<()> {
    let mut seen = u64::MAX;
    let mut retry = false;
    while if retry { pause(core) } else { wait(core, &mut seen, None) } {
        retry = false;
        if core.heat.wants_seal() {
            match core.seal_active_unless_busy() {
                Ok(Some(address)) => core.heat.set_target(address),
                Ok(None) => {}
                Err(e) if e.kind() == ErrorKind::NoSpace => {}
                Err(e) => return Err(e),
            }
        }
        while let Some(mem) = claim_memtable(core) {
            let base = mem.segment.base();
            let result = FlushJob::new(core, mem).and_then(|job| {
                update_rates(core);
                core.pacing.flushes[slot].run(core, job)
            });
            lock(&core.pacing.flushing).retain(|claimed| *claimed != base);
            match result {
                Ok(()) => *lock(&core.flush_error) = None,
                Err(e) if e.kind() == ErrorKind::Closed => return Ok(()),
                Err(e) if e.kind() == ErrorKind::NoSpace => {
                    *lock(&core.flush_error) = Some(e);
                    retry = true;
                }
                Err(e) => return Err(e),
            }
            update_rates(core);
            core.version.sweep();
            core.signals.finished();
            // Merges may be due now, and the helper has segments to tidy.
            core.signals.request();
            if retry {
                break;
            }
        }
    }
    Ok(())
}

/// The oldest sealed memtable that nobody flushes yet, claimed.
fn claim_memtable(core: &Core) -> Option<Arc<Mem>> {
    if is_closing(core) {
        return None;
    }
    let mut flushing = lock(&core.pacing.flushing);
    let version = core.version.load_arc();
    let mem = version.sealed.iter().rev().find(|mem| !flushing.contains(&mem.segment.base()))?;
    flushing.push(mem.segment.base());
    Some(Arc::clone(mem))
}

fn merge_loop(core: &Core, slot: usize) -> Result<()> {
    let mut seen = u64::MAX;
    let mut retry = false;
    while if retry { pause(core) } else { wait(core, &mut seen, None) } {
        retry = false;
        while let Some(picked) = pick(core) {
            let result = run_merge(core, &core.pacing.merges[slot], picked);
            match result {
                Ok(()) => {}
                Err(e) if e.kind() == ErrorKind::Closed => return Ok(()),
                Err(e) if e.kind() == ErrorKind::NoSpace => {
                    retry = true;
                    break;
                }
                Err(e) => return Err(e),
            }
        }
        core.signals.finished();
    }
    Ok(())
}

/// A job, the family it was picked for, and its claim.
type Picked = (Arc<Family<Table>>, Job, u64);

/// The next merge that is due, its range claimed.
fn pick(core: &Core) -> Option<Picked> {
    if is_closing(core) {
        return None;
    }
    let mut busy = lock(&core.busy);
    let version = core.version.load_arc();
    let params = core.params();
    if core.heat.is_consolidating()
        && let Some(picked) = consolidate(core, &version, &params, &mut busy)
    {
        return Some(picked);
    }
    let best = version
        .tree
        .families
        .iter()
        .filter_map(|family| Some((family, policy::pick(family, &params, &busy, core.pressure(&version))?)))
        .max_by(|(_, a), (_, b)| a.score.total_cmp(&b.score));
    let (family, job) = best?;
    let ticket = busy.claim(&job);
    Some((Arc::clone(family), job, ticket))
}

/// The next step towards one run, since reads have paid for it.
fn consolidate(core: &Core, version: &Version, params: &Params, busy: &mut Busy) -> Option<Picked> {
    let limit = core.heat.run_limit(version, core.next_file.load(SeqCst))?;
    let mut waiting = false;
    for family in version.tree.families.iter().filter(|family| family.runs.iter().any(|run| run.id < limit)) {
        match policy::pick_range(family, params, busy, (Bound::Unbounded, Bound::Unbounded)) {
            RangePick::Job(job) => {
                let ticket = busy.claim(&job);
                return Some((Arc::clone(family), job, ticket));
            }
            RangePick::Busy => waiting = true,
            RangePick::Done => {}
        }
    }
    if !waiting {
        core.heat.consolidated(version);
    }
    None
}

/// Gives a claim back, after a panic too: `close` waits for that.
struct Claimed<'a>(&'a Core, u64);

impl Drop for Claimed<'_> {
    fn drop(&mut self) {
        lock(&self.0.busy).release(self.1);
        self.0.signals.finished();
    }
}

/// Runs a claimed merge to its end, in a slot where writers can help, and gives the claim back.
pub(crate) fn run_merge(core: &Core, slot: &Turns<MergeJob>, (family, job, ticket): Picked) -> Result<()> {
    let claimed = Claimed(core, ticket);
    let result = if job.trivial {
        merge_job::move_or_drop(core, &job)
    } else {
        MergeJob::new(core, &family, job).and_then(|merge| slot.run(core, merge))
    };
    // The inputs' files go before the claim does: who waits for merges finds the space free.
    drop(family);
    core.version.sweep();
    drop(claimed);
    update_rates(core);
    // What was done may make more due.
    core.signals.request();
    result
}

impl Core {
    /// The policy and its sizes.
    pub(crate) fn params(&self) -> Params {
        let policy = match self.options.compaction {
            Compaction::Lazy => Policy::Lazy { min_runs: 2, max_runs: 8 },
            Compaction::Leveled => Policy::Leveled,
            Compaction::Tiered => Policy::Tiered,
            Compaction::Fifo { max_bytes } => Policy::Fifo { max_bytes },
        };
        Params::new(policy, self.options.write_buffer as u64)
    }

    /// What presses: here, whether writers are ahead of the flushes. Reads that look into many runs have a rule of their own.
    fn pressure(&self, version: &Version) -> Pressure {
        Pressure { read_heat: 0.0, write_debt: if version.sealed.is_empty() { 0.0 } else { 1.0 } }
    }

    /// Waits until nothing sealed is left to flush and no merge is due or running.
    pub(crate) fn wait_idle(&self) -> Result<()> {
        let mut state = lock(&self.signals.state);
        loop {
            self.halt.check()?;
            let version = self.version.load_arc();
            let idle = version.sealed.is_empty() && {
                let busy = lock(&self.busy);
                let (params, pressure) = (self.params(), self.pressure(&version));
                busy.len() == 0
                    && version
                        .tree
                        .families
                        .iter()
                        .all(|f| policy::pick(f, &params, &busy, pressure).is_none())
            };
            if idle || self.options.read_only {
                return Ok(());
            }
            if let Some(e) = &*lock(&self.flush_error) {
                return Err(e.clone());
            }
            drop(version);
            state = self.signals.done.wait(state).unwrap_or_else(|e| e.into_inner());
        }
    }

    /// Flushes, and merges what overlaps `range` down into the last run, in the calling thread.
    pub(crate) fn compact_range(&self, range: &Bounds) -> Result<()> {
        if self.options.read_only {
            return Err(Error::new(
                ErrorKind::ReadOnly,
                "could not compact: the database was opened read-only",
            ));
        }
        self.flush()?;
        let slot = Turns::default();
        let ids: Vec<u32> = self.version.load_arc().tree.families.iter().map(|family| family.id).collect();
        for id in ids {
            loop {
                self.halt.check()?;
                let mut state = lock(&self.signals.state);
                let picked = {
                    let mut busy = lock(&self.busy);
                    let version = self.version.load_arc();
                    let Some(family) = version.tree.family(id) else { break };
                    let bounds = (as_slice(&range.0), as_slice(&range.1));
                    match policy::pick_range(family, &self.params(), &busy, bounds) {
                        RangePick::Job(job) => {
                            let ticket = busy.claim(&job);
                            Some((Arc::clone(family), job, ticket))
                        }
                        RangePick::Busy => None,
                        RangePick::Done => break,
                    }
                };
                match picked {
                    Some(picked) => {
                        drop(state);
                        run_merge(self, &slot, picked)?;
                    }
                    None => {
                        state = self.signals.done.wait(state).unwrap_or_else(|e| e.into_inner());
                        drop(state);
                    }
                }
            }
        }
        Ok(())
    }
}

fn as_slice(bound: &Bound<Vec<u8>>) -> Bound<&[u8]> {
    bound.as_ref().map(Vec::as_slice)
}

/// Sets what writers owe, from how far behind the background is.
pub(crate) fn update_rates(core: &Core) {
    let version = core.version.load_arc();
    // Flush: with one memtable waiting there is a whole segment of room to do it in; with more, less.
    let flush_rate = match version.sealed.len() {
        0 => 0,
        1 => 512,
        2 => 1024,
        _ => 2048,
    };
    if let Some(mem) = version.sealed.last() {
        let entries = mem.memtable.versions().max(1);
        core.pacing.entry_bytes.store(mem.segment.used() / entries, Relaxed);
    }
    core.pacing.flush_rate.store(flush_rate, Relaxed);
    let params = core.params();
    let over: u64 =
        version.tree.families.iter().map(|family| u64::from(policy::debt(family, &params).runs_over)).sum();
    core.pacing.merge_rate.store((over * 256).min(4096), Relaxed);
}

fn help_loop(core: &Core) -> Result<()> {
    let interval = match core.options.durability {
        Durability::Interval(every) => Some(every),
        _ => None,
    };
    let mut seen = u64::MAX;
    // When the last sync began: what was committed since is not in it.
    let mut last_sync = core.vfs.monotonic_ns();
    let since = |last: u64| Duration::from_nanos(core.vfs.monotonic_ns().saturating_sub(last));
    while wait(core, &mut seen, interval.map(|every| every.saturating_sub(since(last_sync)))) {
        core.pool.tidy()?;
        let version = core.version.load_arc();
        if version.active.segment.is_half_full() {
            match core.pool.prepare() {
                // A writer will meet the full disk itself, and be told.
                Err(e) if e.kind() == ErrorKind::NoSpace => {}
                other => other?,
            }
        }
        drop(version);
        core.version.sweep();
        if let Some(every) = interval
            && since(last_sync) >= every
        {
            last_sync = core.vfs.monotonic_ns();
            core.sync()?;
        }
    }
    Ok(())
}
