//! One phase: prepare, start all threads at once, measure, settle, check.

use super::check::{self, Wrong};
use super::clock::Mark;
use super::latency;
use super::resources::{self, Progress};
use super::work::{Shared, Worker};
use crate::engine::{Engine, Result};
use crate::spec::{Kind, Phase, PhaseResult, Plan, Settled, Usage};
use crate::workload::{Expect, Generator, Ops, Ranges};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Runs `phase`, and brings `expect` up to date. The first phase is given the counters from before the open: bytes that
/// the engine wrote ahead then, such as a log it prepared, are part of what the phase cost.
pub fn run(
    plan: &Plan,
    phase: &Phase,
    engine: &dyn Engine,
    generator: &Generator,
    expect: &mut Expect,
    opened: Option<Usage>,
) -> Result<PhaseResult> {
    let set = &generator.set;
    if phase.ops == 0 || phase.threads == 0 || phase.batch == 0 || phase.range_size == 0 {
        return Err("operations, threads, batch and range size must be at least 1".into());
    }
    if phase.kind == Kind::Write && phase.order.visits_once() && phase.ops > set.n {
        return Err(format!("{} writes of {} keys in an order that visits each once", phase.ops, set.n));
    }
    let ops = Ops::new(phase.order, set.n, phase.ops, set.seed, phase.stream);
    let ranges = (phase.kind == Kind::Range).then(|| Ranges::new(&ops, &generator.keys, phase.range_size));
    let shared = Shared {
        engine,
        generator,
        phase,
        ops: &ops,
        ranges: ranges.as_ref(),
        expect,
        latency_every: plan.latency_every,
    };
    let harness = ops.memory()
        + ranges.as_ref().map_or(0, Ranges::memory)
        + generator.values.memory()
        + expect.memory();

    let mut before = resources::usage();
    if let Some(opened) = opened {
        before.write_bytes = opened.write_bytes;
        before.cancelled_write_bytes = opened.cancelled_write_bytes;
    }
    let mut result = timed(&shared)?;
    result.usage = resources::usage_since(&before);
    result.space = resources::space(&plan.dir);
    result.memory.harness = harness as u64;
    result.case = phase.case.clone();

    if phase.settle {
        let start = Instant::now();
        let done = engine.settle(Duration::from_secs(plan.settle_limit_s))?;
        result.settled = Some(Settled {
            seconds: start.elapsed().as_secs_f64(),
            done,
            usage: resources::usage_since(&before),
            space: resources::space(&plan.dir),
        });
    }
    match phase.kind {
        Kind::Write if phase.order.visits_once() => expect.write_once(&ops),
        Kind::Write => expect.overwrite(&ops, phase.threads, false)?,
        Kind::Mixed => expect.overwrite(&ops, phase.threads, true)?,
        Kind::Delete => expect.delete(&ops),
        _ => {}
    }
    let entry = (set.key_len + set.value_len) as u64;
    result.live_bytes = expect.count() * entry;
    if phase.kind.changes() && engine.stores() {
        let (wrong, digest) = check::state(engine, generator, expect)?;
        result.digest = Some(digest);
        add(&mut result, wrong);
    }
    result.stats = engine.stats();
    Ok(result)
}

fn add(result: &mut PhaseResult, wrong: Wrong) {
    let mut all = Wrong { count: result.wrong, examples: std::mem::take(&mut result.wrong_examples) };
    all.merge(wrong);
    result.wrong = all.count;
    result.wrong_examples = all.examples;
}

/// The part between the start of the first thread and the end of the last.
fn timed(shared: &Shared<'_>) -> Result<PhaseResult> {
    let threads = shared.phase.threads;
    let progress: Vec<Progress> = (0..threads).map(|_| Progress::default()).collect();
    let stop = AtomicBool::new(false);
    let barrier = Barrier::new(threads + 1);
    let mut mark = None;
    let (outcomes, memory, series) = thread::scope(|scope| {
        let workers: Vec<_> = progress
            .iter()
            .enumerate()
            .map(|(t, progress)| {
                let barrier = &barrier;
                scope.spawn(move || {
                    let mut worker = Worker::new(shared, t, progress);
                    // Nobody may miss the barrier, or the others wait for ever.
                    let session = shared.engine.session();
                    barrier.wait();
                    let start = Instant::now();
                    let done = session.and_then(|mut s| worker.run(&mut *s));
                    (worker, done, start, Instant::now())
                })
            })
            .collect();
        let stop = &stop;
        let progress = &progress;
        barrier.wait();
        mark = Some(Mark::now());
        let sampler = scope.spawn(move || resources::sample(progress, stop));
        let outcomes: Vec<_> = workers.into_iter().map(thread::ScopedJoinHandle::join).collect();
        stop.store(true, Ordering::Release);
        sampler.thread().unpark();
        let (memory, series) = sampler.join().unwrap_or_default();
        (outcomes, memory, series)
    });
    let ns_per_tick = mark.map_or(1.0, |m| m.ns_per_tick());

    let mut wrong = Wrong::default();
    let (mut recorders, mut ops, mut puts) = (Vec::new(), 0, 0);
    let (mut first, mut last) = (None, None);
    for outcome in outcomes {
        let (worker, done, start, end) = outcome.map_err(|_| "a thread panicked; its words are on stderr")?;
        done?;
        ops += worker.done;
        puts += worker.puts;
        recorders.push(worker.latency);
        wrong.merge(worker.wrong);
        first = Some(first.map_or(start, |f: Instant| f.min(start)));
        last = Some(last.map_or(end, |l: Instant| l.max(end)));
    }
    let seconds = match (first, last) {
        (Some(f), Some(l)) => (l - f).as_secs_f64().max(1e-9),
        _ => return Err("no thread ran".into()),
    };
    let set = &shared.generator.set;
    let key_writes = if shared.phase.kind == Kind::Delete { ops } else { 0 };
    let mut result = PhaseResult {
        ops,
        seconds,
        ops_per_s: ops as f64 / seconds,
        user_bytes: puts * (set.key_len + set.value_len) as u64 + key_writes * set.key_len as u64,
        latency: latency::merge(&recorders, ns_per_tick, shared.phase.batch > 1),
        series,
        memory,
        ..PhaseResult::default()
    };
    add(&mut result, wrong);
    Ok(result)
}
