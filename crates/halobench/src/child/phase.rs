//! One phase: prepare, start all threads at once, measure, settle, check.

use super::check::{self, Wrong};
use super::plan;
use super::resources::{self};
use super::timed::{self, Outcome};
use super::work::Shared;
use crate::engine::{Engine, Result};
use crate::spec::{Kind, Phase, PhaseResult, Plan, Settled, Usage};
use crate::workload::{Expect, Generator, Mixed, Ops, Ranges, Sorted, Turn, Versions, done};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// Most keys for which the digest of ranges is computed: it needs eight bytes a key.
const DIGEST_KEYS: u64 = 1 << 25;

/// What a phase does, computed beforehand.
struct Work {
    ops: Ops,
    mixed: Option<Mixed>,
    ranges: Option<Ranges>,
    sorted: Option<Sorted>,
    versions: Option<Versions>,
    background: Option<(Ops, Versions)>,
}

impl Work {
    fn new(plan: &Plan, index: usize, generator: &Generator, expect: &Expect) -> Result<Work> {
        let (set, phase) = (&plan.set, &plan.phases[index]);
        let visited = plan::visited(plan, index);
        let ops = Ops::new(phase.order, visited, phase.ops, set.seed, phase.stream);
        let sorted = || Sorted::new(&generator.keys, expect);
        let mixed = match phase.mix {
            Some(mix) if phase.kind == Kind::Mix => {
                if !expect.has_all_below(visited) {
                    return Err(format!(
                        "a mix needs the {visited} keys that were loaded, and some are not there"
                    ));
                }
                let first = plan::first_insert(plan, index);
                Some(Mixed::new(ops.clone(), mix, phase.range_size, first, set.seed, phase.stream))
            }
            _ => None,
        };
        if phase.background.is_some() && !expect.has_all_below(visited) {
            // The writers would put them back, and nobody could say what a range must see.
            return Err(format!(
                "the background overwrites the {visited} keys that were loaded, and some are not there"
            ));
        }
        let scans = mixed.is_some() && phase.mix.is_some_and(|m| m.scan > 0);
        let background = phase.background.map(|b| {
            let stream = phase.stream + plan::NUMBERS;
            (Ops::evenly(visited, b.ops, set.seed, stream), Versions::new(stream, b.ops))
        });
        Ok(Work {
            ranges: (phase.kind == Kind::Range)
                .then(|| Ranges::new(&ops, sorted(), phase.range_size, phase.backward)),
            sorted: scans.then(sorted),
            versions: (!plan::writes_first(plan, index)).then(|| Versions::new(phase.stream, phase.ops)),
            mixed,
            background,
            ops,
        })
    }

    fn memory(&self) -> usize {
        self.ops.memory()
            + self.mixed.as_ref().map_or(0, Mixed::memory)
            + self.ranges.as_ref().map_or(0, Ranges::memory)
            + self.sorted.as_ref().map_or(0, Sorted::memory)
    }

    /// Brings `expect` up to date with what was done.
    fn apply(&self, phase: &Phase, outcome: &Outcome, expect: &mut Expect) {
        let ops = &self.ops;
        let done_ops = done(ops, &outcome.done);
        let all = || done_ops.iter().cloned().flatten();
        match (phase.kind, self.versions) {
            (Kind::Write, None) => all().for_each(|j| expect.insert(ops.id(j))),
            (Kind::Write, Some(versions)) => {
                expect.begin_epoch();
                expect.overwrite(versions, &done_ops, |j| Some(ops.id(j)));
            }
            (Kind::Mixed, Some(versions)) => {
                expect.begin_epoch();
                expect.overwrite(versions, &done_ops, |j| ops.writes(j).then(|| ops.id(j)));
            }
            (Kind::Delete, _) => all().for_each(|j| expect.delete(ops.id(j))),
            (Kind::Mix, Some(versions)) => {
                let Some(mixed) = &self.mixed else { return };
                for part in &done_ops {
                    let next = mixed.first() + mixed.inserts(0..part.start);
                    (next..next + mixed.inserts(part.clone())).for_each(|id| expect.insert(id));
                }
                expect.begin_epoch();
                expect.overwrite(versions, &done_ops, |j| {
                    matches!(mixed.turn(j), Turn::Update | Turn::Modify).then(|| mixed.id(j))
                });
            }
            _ => {}
        }
        if let Some((ops, versions)) = &self.background {
            expect.begin_epoch();
            expect.overwrite(*versions, &done(ops, &outcome.background_done), |j| Some(ops.id(j)));
        }
    }

    /// What the digest of all values read must be, where the generator alone can tell.
    fn digest(
        &self,
        phase: &Phase,
        outcome: &Outcome,
        generator: &Generator,
        expect: &Expect,
    ) -> Option<u64> {
        if !expect.is_first() || self.background.is_some() || expect.count() > DIGEST_KEYS {
            return None;
        }
        match phase.kind {
            Kind::Iterate if outcome.done.iter().all(|&d| d == expect.count()) => {
                let pass = expect.present().map(|id| generator.values.digest(id)).fold(0, u64::wrapping_add);
                Some(pass.wrapping_mul(outcome.done.len() as u64))
            }
            Kind::Range => Some(self.ranges.as_ref()?.digest(
                &generator.values,
                &self.ops,
                &done(&self.ops, &outcome.done),
            )),
            _ => None,
        }
    }
}

/// Runs the phase at `index`, and brings `expect` up to date. The first phase is given the counters from before the open:
/// bytes that the engine wrote ahead then, such as a log it prepared, are part of what the phase cost.
pub fn run(
    plan: &Plan,
    index: usize,
    engine: &dyn Engine,
    generator: &Generator,
    expect: &mut Expect,
    opened: Option<Usage>,
) -> Result<PhaseResult> {
    let (set, phase) = (&generator.set, &plan.phases[index]);
    let work = Work::new(plan, index, generator, expect)?;
    let (over, quiet) = (AtomicBool::new(false), AtomicBool::new(false));
    let shared = Shared {
        engine,
        generator,
        phase,
        ops: &work.ops,
        mixed: work.mixed.as_ref(),
        ranges: work.ranges.as_ref(),
        sorted: work.sorted.as_ref(),
        expect,
        versions: work.versions,
        background: work.background.as_ref().map(|(ops, versions)| (ops, *versions)),
        latency_every: plan.latency_every,
        over: &over,
        quiet: &quiet,
    };
    let writers = phase.background.map_or(0, |b| b.threads)
        + if matches!(phase.kind, Kind::Write | Kind::Mixed | Kind::Mix) { phase.threads } else { 0 };
    let harness = work.memory() + generator.values.memory() + expect.memory() + writers * set.value_len;

    let mut before = resources::usage();
    if let Some(opened) = opened {
        before.write_bytes = opened.write_bytes;
        before.cancelled_write_bytes = opened.cancelled_write_bytes;
    }
    let (mut result, outcome) = timed::run(&shared)?;
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
    if engine.stores()
        && let Some(expected) = work.digest(phase, &outcome, generator, expect)
        && expected != outcome.digest
    {
        let mut wrong = Wrong::default();
        wrong.note(|| "the values that were read do not add up to those that were written".into());
        add(&mut result, wrong);
    }
    work.apply(phase, &outcome, expect);
    let entry = (set.key_len + set.value_len) as u64;
    result.live_bytes = expect.count() * entry;
    if (phase.kind.changes() || phase.background.is_some()) && engine.stores() {
        let (wrong, digest) = check::state(engine, generator, expect)?;
        result.digest = Some(digest);
        add(&mut result, wrong);
    }
    result.stats = engine.stats();
    Ok(result)
}

/// Adds wrong answers to a result.
pub fn add(result: &mut PhaseResult, wrong: Wrong) {
    let mut all = Wrong { count: result.wrong, examples: std::mem::take(&mut result.wrong_examples) };
    all.merge(wrong);
    result.wrong = all.count;
    result.wrong_examples = all.examples;
}
