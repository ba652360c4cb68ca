//! The part of a phase between the start of its first thread and the end of its last.

use super::check::Wrong;
use super::clock::Mark;
use super::latency::{Merged, Recorder};
use super::phase::add;
use super::resources::{self, Progress};
use super::work::{Shared, Worker, Writer};
use crate::engine::Result;
use crate::spec::{Kind, PhaseResult};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

/// What was done.
pub struct Outcome {
    /// Operations of each thread.
    pub done: Vec<u64>,
    /// Operations of each of the background's writers.
    pub background_done: Vec<u64>,
    /// Digest of the values read.
    pub digest: u64,
}

/// One thread's end.
struct Ended<T> {
    part: T,
    result: Result<()>,
    start: Instant,
    end: Instant,
}

/// Runs all threads. Where one fails, the others stop soon, and the error says how far they came.
pub fn run(shared: &Shared<'_>) -> Result<(PhaseResult, Outcome)> {
    let threads = shared.phase.threads;
    let progress: Vec<Progress> = (0..threads).map(|_| Progress::default()).collect();
    let writers: Vec<Writer<'_>> = (0..shared.phase.background.map_or(0, |b| b.threads))
        .filter_map(|t| Writer::new(shared, t))
        .collect();
    let stop = AtomicBool::new(false);
    let barrier = Barrier::new(threads + writers.len() + 1);
    let (workers, writers, memory, series, ns_per_tick) = thread::scope(|scope| {
        let (barrier, progress, stop) = (&barrier, progress.as_slice(), &stop);
        let workers: Vec<_> = (0..threads)
            .map(|t| {
                let mut part = Worker::new(shared, t, &progress[t]);
                scope.spawn(move || {
                    // Nobody may miss the barrier, or the others wait for ever.
                    let session = shared.engine.session();
                    barrier.wait();
                    let start = Instant::now();
                    let result = session.and_then(|mut s| part.run(&mut *s));
                    if result.is_err() {
                        shared.abort();
                    }
                    Ended { part, result, start, end: Instant::now() }
                })
            })
            .collect();
        let writers: Vec<_> = writers
            .into_iter()
            .map(|mut part| {
                scope.spawn(move || {
                    let session = shared.engine.session();
                    barrier.wait();
                    let start = Instant::now();
                    let result = session.and_then(|mut s| part.run(&mut *s));
                    if result.is_err() {
                        shared.abort();
                    }
                    Ended { part, result, start, end: Instant::now() }
                })
            })
            .collect();
        barrier.wait();
        let mark = Mark::now();
        let sampler =
            scope.spawn(move || resources::sample(progress, stop, shared.phase.seconds, shared.over));
        let workers: Vec<_> = workers.into_iter().map(thread::ScopedJoinHandle::join).collect();
        let ns_per_tick = mark.ns_per_tick();
        shared.quiet.store(true, Ordering::Relaxed);
        let writers: Vec<_> = writers.into_iter().map(thread::ScopedJoinHandle::join).collect();
        stop.store(true, Ordering::Release);
        sampler.thread().unpark();
        let (memory, series) = sampler.join().unwrap_or_default();
        (workers, writers, memory, series, ns_per_tick)
    });
    let workers = all(workers)?;
    let writers = all(writers)?;
    let outcome = Outcome {
        done: workers.iter().map(|w| w.part.done).collect(),
        background_done: writers.iter().map(|w| w.part.done).collect(),
        digest: workers.iter().map(|w| w.part.digest).fold(0, u64::wrapping_add),
    };
    let ops: u64 = outcome.done.iter().sum();
    if let Some(e) = workers
        .iter()
        .map(|w| &w.result)
        .chain(writers.iter().map(|w| &w.result))
        .find_map(|r| r.as_ref().err())
    {
        return Err(format!("failed after {ops} of {} operations: {e}", shared.phase.ops));
    }
    let (first, last) = (workers.iter().map(|w| w.start).min(), workers.iter().map(|w| w.end).max());
    let (Some(first), Some(last)) = (first, last) else { return Err("no thread ran".into()) };
    let seconds = (last - first).as_secs_f64().max(1e-9);

    let background_ops: u64 = outcome.background_done.iter().sum();
    let puts = workers.iter().map(|w| w.part.puts).sum::<u64>() + background_ops;
    let removals = if shared.phase.kind == Kind::Delete { ops } else { 0 };
    let set = &shared.generator.set;
    let mut result = PhaseResult {
        ops,
        seconds,
        ops_per_s: ops as f64 / seconds,
        user_bytes: puts * (set.key_len + set.value_len) as u64 + removals * set.key_len as u64,
        background_ops,
        lag_s: workers.iter().map(|w| w.part.watch.lag_s()).fold(0.0, f64::max),
        series,
        memory,
        ..PhaseResult::default()
    };
    latencies(shared, &workers, &writers, ns_per_tick, &mut result);
    let reads = matches!(shared.phase.kind, Kind::Read | Kind::Range | Kind::Iterate);
    if reads && shared.background.is_none() {
        result.read_digest = Some(format!("{:016x}", outcome.digest));
    }
    let mut wrong = Wrong::default();
    workers.into_iter().for_each(|w| wrong.merge(w.part.wrong));
    add(&mut result, wrong);
    Ok((result, outcome))
}

fn all<T>(joined: Vec<thread::Result<Ended<T>>>) -> Result<Vec<Ended<T>>> {
    joined
        .into_iter()
        .collect::<thread::Result<_>>()
        .map_err(|_| "a thread panicked; its words are on stderr".into())
}

/// Puts all latencies into the result.
fn latencies(
    shared: &Shared<'_>,
    workers: &[Ended<Worker<'_>>],
    writers: &[Ended<Writer<'_>>],
    ns_per_tick: f64,
    result: &mut PhaseResult,
) {
    let phase = shared.phase;
    // An open loop records nanoseconds.
    let unit = |rate: f64| if rate > 0.0 { 1.0 } else { ns_per_tick };
    let merged = |recorders: &mut dyn Iterator<Item = &Recorder>| Merged::new(recorders, unit(phase.rate));
    let mut whole = merged(&mut workers.iter().map(|w| w.part.watch.main()));
    for (i, name) in shared.parts().iter().enumerate() {
        let part = merged(&mut workers.iter().filter_map(|w| w.part.watch.parts().get(i)));
        whole.add(&part);
        let summary = part.summary(false);
        if summary.samples > 0 {
            result.parts.insert((*name).into(), summary);
        }
    }
    if let Some(background) = phase.background {
        let puts = Merged::new(writers.iter().map(|w| w.part.watch.main()), unit(background.rate));
        result.parts.insert("background".into(), puts.summary(false));
    }
    let batches = phase.batch > 1 && matches!(phase.kind, Kind::Write | Kind::Delete);
    result.latency = whole.summary(batches);
    result.histogram = whole.encoded();
}
