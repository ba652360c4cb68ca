//! The background threads: one flushes, some merge, one helps (segments ahead of need, timed syncs, tidying).
//!
//! Each waits for a request or its time, never for a fixed sleep. A failure or a panic in any of them stops all
//! writes with its cause; only a full disk is waited out, with the error given to whoever has to wait for the flush.

use super::core::{Core, Halt, closed, lock};
use super::options::{Compaction, Durability};
use crate::sync::Arc;
use crate::table::Table;
use crate::tree::flush::FlushJob;
use crate::tree::merge_job::{self, MergeJob};
use crate::tree::pacing::QUANTUM;
use crate::tree::policy::{self, Job, Policy, Pressure};
use crate::tree::version::Family;
use crate::{Error, ErrorKind, Result};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering::Relaxed;
use std::thread::JoinHandle;
use std::time::Duration;

/// How long a job waits before it tries a full disk again.
const RETRY: Duration = Duration::from_millis(200);

/// Starts the threads.
pub(crate) fn start(core: &Arc<Core>) -> Result<Vec<JoinHandle<()>>> {
    let mut threads = Vec::new();
    let mut spawn = |name: String, body: Box<dyn Fn(&Core) -> Result<()> + Send>| {
        let core = Arc::clone(core);
        let run = move || guarded(&core, body);
        std::thread::Builder::new()
            .name(name)
            .spawn(run)
            .map(|thread| threads.push(thread))
            .map_err(|e| Error::io("start a background thread", &core_dir(), e))
    };
    spawn("halocline-flush".into(), Box::new(flush_loop))?;
    spawn("halocline-help".into(), Box::new(help_loop))?;
    for i in 0..core.pacing.merges.len() {
        spawn(format!("halocline-merge-{i}"), Box::new(move |core| merge_loop(core, i)))?;
    }
    Ok(threads)
}

fn core_dir() -> std::path::PathBuf {
    std::path::PathBuf::new()
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

fn is_closing(core: &Core) -> bool {
    lock(&core.signals.state).closing
}

fn flush_loop(core: &Core) -> Result<()> {
    let mut seen = u64::MAX;
    let mut retry = None;
    while wait(core, &mut seen, retry) {
        retry = None;
        while let Some(mem) = core.version.load_arc().sealed.last().cloned() {
            if is_closing(core) {
                return Ok(());
            }
            let result = FlushJob::new(core, mem).and_then(|job| run_flush(core, job));
            match result {
                Ok(()) => *lock(&core.flush_error) = None,
                Err(e) if e.kind() == ErrorKind::NoSpace => {
                    *lock(&core.flush_error) = Some(e);
                    retry = Some(RETRY);
                }
                Err(e) => return Err(e),
            }
            update_rates(core);
            core.version.sweep();
            core.signals.finished();
            // Merges may be due now, and the helper has segments to tidy.
            core.signals.request();
            if retry.is_some() {
                break;
            }
        }
    }
    Ok(())
}

/// Runs a flush to its end, taking turns with the writers that help.
fn run_flush(core: &Core, job: FlushJob) -> Result<()> {
    *lock(&core.pacing.flush) = Some(job);
    update_rates(core);
    loop {
        let mut slot = lock(&core.pacing.flush);
        let Some(job) = slot.as_mut() else { return Ok(()) };
        if !job.failed() && !job.is_done() && !is_closing(core) {
            job.step_or_fail(core, QUANTUM);
            continue;
        }
        let Some(mut job) = slot.take() else { return Ok(()) };
        core.pacing.flush_rate.store(0, Relaxed);
        drop(slot);
        let result = match job.take_failure() {
            Some(e) => Err(e),
            None if !job.is_done() => Err(closed()),
            None => job.finish(core),
        };
        return result.inspect_err(|_| job.abandon(core));
    }
}

fn merge_loop(core: &Core, slot: usize) -> Result<()> {
    let mut seen = u64::MAX;
    let mut retry = None;
    while wait(core, &mut seen, retry) {
        retry = None;
        while let Some((family, job)) = pick(core) {
            lock(&core.signals.state).merging += 1;
            let inputs: Vec<u64> = job.inputs.iter().chain(&job.drop).map(|(_, table)| *table).collect();
            let result = run_merge(core, slot, &family, job);
            lock(&core.busy).retain(|id| !inputs.contains(id));
            lock(&core.signals.state).merging -= 1;
            update_rates(core);
            core.version.sweep();
            core.signals.finished();
            core.signals.request();
            match result {
                Ok(()) => {}
                Err(e) if e.kind() == ErrorKind::Closed => return Ok(()),
                Err(e) if e.kind() == ErrorKind::NoSpace => {
                    retry = Some(RETRY);
                    break;
                }
                Err(e) => return Err(e),
            }
        }
        core.signals.finished();
    }
    Ok(())
}

/// The policy in the terms of the tree.
pub(crate) fn policy_of(core: &Core) -> Policy {
    match core.options.compaction {
        Compaction::Lazy => Policy::Lazy { min_runs: 2, max_runs: 8 },
        Compaction::Leveled => Policy::Leveled,
        Compaction::Tiered => Policy::Tiered,
        Compaction::Fifo { max_bytes } => Policy::Fifo { max_bytes },
    }
}

/// The next merge that is due, its inputs marked busy.
fn pick(core: &Core) -> Option<(Arc<Family<Table>>, Job)> {
    if is_closing(core) {
        return None;
    }
    let mut busy = lock(&core.busy);
    let version = core.version.load_arc();
    let policy = policy_of(core);
    let pressure = Pressure::default();
    let best = version
        .tree
        .families
        .iter()
        .filter_map(|family| Some((family, policy::pick(family, &policy, &busy, pressure)?)))
        .max_by(|(_, a), (_, b)| a.score.total_cmp(&b.score));
    let (family, job) = best?;
    busy.extend(job.inputs.iter().chain(&job.drop).map(|(_, table)| *table));
    Some((Arc::clone(family), job))
}

/// Runs a merge to its end, taking turns with the writers that help.
pub(crate) fn run_merge(core: &Core, slot: usize, family: &Arc<Family<Table>>, job: Job) -> Result<()> {
    if !job.drop.is_empty() {
        return merge_job::drop_tables(core, &job);
    }
    if job.trivial {
        return merge_job::move_tables(core, family, &job);
    }
    *lock(&core.pacing.merges[slot]) = Some(MergeJob::new(core, family, job)?);
    loop {
        let mut guard = lock(&core.pacing.merges[slot]);
        let Some(job) = guard.as_mut() else { return Ok(()) };
        if !job.failed() && !job.is_done() && !is_closing(core) {
            job.step_or_fail(core, QUANTUM);
            continue;
        }
        let Some(mut job) = guard.take() else { return Ok(()) };
        drop(guard);
        let result = match job.take_failure() {
            Some(e) => Err(e),
            None if !job.is_done() => Err(closed()),
            None => job.finish(core),
        };
        return result.inspect_err(|_| job.abandon(core));
    }
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
    let policy = policy_of(core);
    let over: u64 = version.tree.families.iter().map(|family| policy::debt(family, &policy).runs_over as u64).sum();
    core.pacing.merge_rate.store((over * 256).min(4096), Relaxed);
}

fn help_loop(core: &Core) -> Result<()> {
    let interval = match core.options.durability {
        Durability::Interval(every) => Some(every),
        _ => None,
    };
    let mut seen = u64::MAX;
    let mut last_sync = core.vfs.monotonic_ns();
    while wait(core, &mut seen, interval) {
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
            && core.vfs.monotonic_ns().saturating_sub(last_sync) >= every.as_nanos() as u64
        {
            core.sync()?;
            last_sync = core.vfs.monotonic_ns();
        }
    }
    Ok(())
}
