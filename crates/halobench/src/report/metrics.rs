//! What is measured: for each metric one number a case, engine and round, and how it is called and counted.

use super::Run;
use super::stats::over;
use super::units::Unit;
use crate::spec::PhaseResult;

/// Whether an engine only answers: the harness's own `null`, and that of each driver. It is nobody's peer.
pub fn is_null(engine: &str) -> bool {
    engine.strip_prefix("null").is_some_and(|driver| driver.is_empty() || driver.starts_with('-'))
}

/// A metric of a phase.
pub struct Metric {
    /// Its name in files.
    pub name: &'static str,
    /// Its name for people.
    pub label: &'static str,
    /// What it counts, in a sentence.
    pub help: &'static str,
    /// Its unit.
    pub unit: Unit,
    /// Whether more of it is better.
    pub more_is_better: bool,
    value: fn(&Run, &PhaseResult) -> Option<f64>,
}

impl Metric {
    /// Its number for a phase of a run, if there is one.
    pub fn value(&self, run: &Run, phase: &PhaseResult) -> Option<f64> {
        (self.value)(run, phase).filter(|v| v.is_finite())
    }
}

const MIB: f64 = (1 << 20) as f64;

const fn cost(
    name: &'static str,
    label: &'static str,
    help: &'static str,
    unit: Unit,
    value: fn(&Run, &PhaseResult) -> Option<f64>,
) -> Metric {
    Metric { name, label, help, unit, more_is_better: false, value }
}

/// All metrics, throughput first.
pub const METRICS: &[Metric] = &[
    Metric {
        name: "ops_per_s",
        label: "throughput",
        help: "Operations a second, from the first thread's start to the last one's end.",
        unit: Unit::Rate,
        more_is_better: true,
        value: |_, p| (p.ops > 0).then_some(p.ops_per_s),
    },
    cost("p50_us", "latency p50", "Half of the operations took no longer.", Unit::Micros, |_, p| {
        us(p, p.latency.p50_ns)
    }),
    cost("p99_us", "latency p99", "One operation in 100 took longer.", Unit::Micros, |_, p| {
        us(p, p.latency.p99_ns)
    }),
    cost("p99.9_us", "latency p99.9", "One operation in 1,000 took longer.", Unit::Micros, |_, p| {
        us(p, p.latency.p999_ns)
    }),
    cost("p99.99_us", "latency p99.99", "One operation in 10,000 took longer.", Unit::Micros, |_, p| {
        us(p, p.latency.p9999_ns)
    }),
    cost("max_us", "latency max", "The longest operation.", Unit::Micros, |_, p| us(p, p.latency.max_ns)),
    cost(
        "cpu_us_per_op",
        "CPU per operation",
        "Processor time of all threads, user and kernel, the engine's background work included.",
        Unit::Micros,
        |_, p| over((p.usage.cpu_user_s + p.usage.cpu_system_s) * 1e6, p.ops as f64),
    ),
    cost(
        "write_amp_end",
        "write amplification, at the end",
        "Bytes made dirty over bytes of keys and values written, when the last operation was done.",
        Unit::Times,
        |_, p| over(p.usage.write_bytes as f64, p.user_bytes as f64),
    ),
    cost(
        "write_amp_settled",
        "write amplification, settled",
        "The same when the engine had no background work left.",
        Unit::Times,
        |_, p| over(p.settled?.usage.write_bytes as f64, p.user_bytes as f64),
    ),
    cost(
        "settle_s",
        "time to settle",
        "From the last operation until no background work was left.",
        Unit::Seconds,
        |_, p| Some(p.settled?.seconds),
    ),
    cost(
        "space_amp_settled",
        "space, settled",
        "Allocated blocks over bytes of live keys and values, when settled.",
        Unit::Times,
        |_, p| over(p.settled?.space.allocated as f64, p.live_bytes as f64),
    ),
    cost(
        "anon_peak_mb",
        "memory of its own",
        "Peak of resident memory that is not a mapped file, less what the harness holds.",
        Unit::Mib,
        |_, p| (p.memory.anon > 0).then(|| p.memory.anon.saturating_sub(p.memory.harness) as f64 / MIB),
    ),
    cost(
        "file_peak_mb",
        "memory of mapped files",
        "Peak of resident pages of mapped files, which the system could take back.",
        Unit::Mib,
        |_, p| (p.memory.anon > 0).then(|| p.memory.file as f64 / MIB),
    ),
    cost(
        "space_amp_closed",
        "space, closed",
        "Allocated blocks over bytes of live keys and values, after a clean close.",
        Unit::Times,
        |r, p| {
            let end = r.ending.as_ref().filter(|_| is_last(r, p))?;
            over(end.space.allocated as f64, end.live_bytes as f64)
        },
    ),
    cost(
        "write_amp_closed",
        "write amplification, closed",
        "Bytes made dirty over bytes written, from the first open to the close.",
        Unit::Times,
        |r, p| {
            let end = r.ending.as_ref().filter(|_| is_last(r, p))?;
            over(end.usage.write_bytes as f64, end.user_bytes as f64)
        },
    ),
    cost(
        "reopen_s",
        "reopening",
        "From the call to the open database, after a clean close.",
        Unit::Seconds,
        |r, p| Some(r.ending.as_ref().filter(|_| is_last(r, p))?.reopen_s),
    ),
    cost(
        "lag_s",
        "open loop, furthest behind",
        "The most by which an operation began behind the moment it was due.",
        Unit::Seconds,
        |_, p| (p.lag_s > 0.0).then_some(p.lag_s),
    ),
    Metric {
        name: "background_per_s",
        label: "writes in the background",
        help: "Writes a second of the threads that write while a phase of reads goes on.",
        unit: Unit::Rate,
        more_is_better: true,
        value: |_, p| if p.background_ops > 0 { over(p.background_ops as f64, p.seconds) } else { None },
    },
];

/// The place of a metric in [`METRICS`]. Panics on a name that is not there: names are constants.
pub fn index(name: &str) -> usize {
    METRICS.iter().position(|m| m.name == name).unwrap_or_else(|| panic!("no metric is called {name}"))
}

fn us(p: &PhaseResult, ns: u64) -> Option<f64> {
    (p.latency.samples > 0).then(|| ns as f64 / 1e3)
}

/// The end of a plan is told with its last case.
fn is_last(run: &Run, phase: &PhaseResult) -> bool {
    run.phases.last().is_some_and(|p| p.case == phase.case)
}

/// Whether a wrong answer, in any phase or behind the last one, makes a run's figures worthless.
pub fn is_void(run: &Run) -> bool {
    run.phases.iter().any(|p| p.wrong > 0) || run.ending.as_ref().is_some_and(|e| e.wrong > 0)
}

#[cfg(test)]
mod tests {
    use super::is_null;

    #[test]
    fn every_program_s_null_is_told_by_its_name() {
        assert!(["null", "null-go", "null-java"].into_iter().all(is_null));
        assert!(["nullstore", "halocline", "", "not-null"].into_iter().all(|name| !is_null(name)));
    }
}
