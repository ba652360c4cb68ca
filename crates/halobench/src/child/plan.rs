//! What a plan means, before anything is run: which keys its phases visit, which versions they write, and whether it can
//! be done at all.

use crate::engine::Result;
use crate::spec::{Kind, Phase, Plan};
use crate::workload::{DataSet, Mixed, Ops, Order};

/// Phases are numbered below here; their backgrounds from here on.
pub const NUMBERS: u64 = 1 << 20;

/// How many ids the phase at `index` visits: those loaded before it, or all.
pub fn visited(plan: &Plan, index: usize) -> u64 {
    let loads = |p: &&Phase| p.kind == Kind::Write && p.order == Order::Up;
    match plan.phases.get(index) {
        Some(p) if p.kind == Kind::Write => plan.set.n,
        _ => {
            let loaded = plan.phases[..index].iter().filter(loads).map(|p| p.ops).max();
            loaded.map_or(plan.set.n, |ops| ops.min(plan.set.n))
        }
    }
}

/// The id of the first insert of the mix at `index`.
pub fn first_insert(plan: &Plan, index: usize) -> u64 {
    let before: u64 = plan.phases[..index].iter().map(|p| inserts(&plan.set, p)).sum();
    visited(plan, index) + before
}

/// Inserts among all operations of a phase, done or not.
fn inserts(set: &DataSet, phase: &Phase) -> u64 {
    match phase.mix {
        Some(mix) if phase.kind == Kind::Mix && mix.insert > 0 => {
            let coins = Ops::new(Order::Up, 1, phase.ops, set.seed, phase.stream);
            let plain = crate::spec::Mix { latest: false, ..mix };
            Mixed::new(coins, plain, 1, 0, set.seed, phase.stream).inserts(0..phase.ops)
        }
        _ => 0,
    }
}

/// Whether the puts of the write phase at `index` write first values: the head of the plan, each id once.
pub fn writes_first(plan: &Plan, index: usize) -> bool {
    index == 0 && plan.phases.first().is_some_and(|p| p.kind == Kind::Write && p.order.visits_once())
}

/// Fails, in words, on a plan that cannot be done.
pub fn check(plan: &Plan) -> Result<()> {
    for (index, phase) in plan.phases.iter().enumerate() {
        phase_fits(plan, index, phase).map_err(|e| format!("{}: {e}", name(phase)))?;
    }
    Ok(())
}

/// What people call a phase.
pub fn name(phase: &Phase) -> &str {
    if phase.case.is_empty() { "load" } else { &phase.case }
}

fn phase_fits(plan: &Plan, index: usize, phase: &Phase) -> Result<()> {
    if phase.ops == 0 || phase.threads == 0 || phase.batch == 0 || phase.range_size == 0 {
        return Err("operations, threads, batch and range size must be at least 1".into());
    }
    if phase.stream >= NUMBERS {
        return Err(format!("the phase's number is {}: it must be below {NUMBERS}", phase.stream));
    }
    if let Some(other) = plan.phases[..index].iter().find(|p| p.stream == phase.stream) {
        return Err(format!("it has the same number, {}, as {}", phase.stream, name(other)));
    }
    let n = plan.set.n;
    if phase.kind == Kind::Write && phase.order.visits_once() && phase.ops > n {
        return Err(format!("{} writes of {n} keys in an order that visits each once", phase.ops));
    }
    let sane = |x: f64| x.is_finite() && x >= 0.0;
    if !sane(phase.rate) || !sane(phase.seconds) || phase.background.is_some_and(|b| !sane(b.rate)) {
        return Err("rates and seconds must be numbers from 0 on".into());
    }
    if phase.rate > 0.0 && phase.kind == Kind::Iterate {
        return Err("a pass over everything has no arrivals: leave the rate out".into());
    }
    if let Some(background) = phase.background {
        if phase.kind.changes() {
            return Err("writers in the background go with gets, seeks, ranges and passes only".into());
        }
        if background.threads == 0 || background.ops == 0 {
            return Err("the background needs at least one thread and one operation".into());
        }
    }
    match (phase.kind, phase.mix) {
        (Kind::Mix, None) => Err("a mix without its shares".into()),
        (Kind::Mix, Some(m)) => {
            let sum =
                [m.read, m.update, m.insert, m.scan, m.modify].iter().map(|&s| u64::from(s)).sum::<u64>();
            if sum != 100 {
                return Err(format!("the shares of a mix add up to {sum} %, not to 100"));
            }
            let end = first_insert(plan, index) + inserts(&plan.set, phase);
            if end > n {
                return Err(format!("the mix inserts ids up to {end}, but the data set has {n}"));
            }
            Ok(())
        }
        _ => Ok(()),
    }
}
