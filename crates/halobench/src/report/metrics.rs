//! Figures of a report: one number a case, metric, engine and round; medians of rounds; ratios within a round.

use super::{Report, Run};
use crate::spec::PhaseResult;

/// The engine that is nobody's peer.
pub const NULL: &str = "null";

/// A metric of a phase.
pub struct Metric {
    /// Its name.
    pub name: &'static str,
    /// Whether more of it is better.
    pub more_is_better: bool,
    value: fn(&Run, &PhaseResult) -> Option<f64>,
}

/// `a / b`, where that means something.
fn over(a: f64, b: f64) -> Option<f64> {
    (b > 0.0).then(|| a / b)
}

const MIB: f64 = (1 << 20) as f64;

/// All metrics, throughput first.
pub const METRICS: &[Metric] = &[
    Metric { name: "ops_per_s", more_is_better: true, value: |_, p| Some(p.ops_per_s) },
    Metric { name: "p50_us", more_is_better: false, value: |_, p| us(p, p.latency.p50_ns) },
    Metric { name: "p99_us", more_is_better: false, value: |_, p| us(p, p.latency.p99_ns) },
    Metric { name: "p99.9_us", more_is_better: false, value: |_, p| us(p, p.latency.p999_ns) },
    Metric { name: "p99.99_us", more_is_better: false, value: |_, p| us(p, p.latency.p9999_ns) },
    Metric { name: "max_us", more_is_better: false, value: |_, p| us(p, p.latency.max_ns) },
    Metric {
        name: "cpu_us_per_op",
        more_is_better: false,
        value: |_, p| over((p.usage.cpu_user_s + p.usage.cpu_system_s) * 1e6, p.ops as f64),
    },
    Metric {
        name: "write_amp_end",
        more_is_better: false,
        value: |_, p| over(p.usage.write_bytes as f64, p.user_bytes as f64),
    },
    Metric {
        name: "write_amp_settled",
        more_is_better: false,
        value: |_, p| over(p.settled?.usage.write_bytes as f64, p.user_bytes as f64),
    },
    Metric { name: "settle_s", more_is_better: false, value: |_, p| Some(p.settled?.seconds) },
    Metric {
        name: "space_amp_settled",
        more_is_better: false,
        value: |_, p| over(p.settled?.space.allocated as f64, p.live_bytes as f64),
    },
    Metric {
        name: "anon_peak_mb",
        more_is_better: false,
        value: |_, p| Some(p.memory.anon.saturating_sub(p.memory.harness) as f64 / MIB),
    },
    Metric { name: "file_peak_mb", more_is_better: false, value: |_, p| Some(p.memory.file as f64 / MIB) },
    Metric {
        name: "space_amp_closed",
        more_is_better: false,
        value: |r, p| {
            let end = r.ending.as_ref().filter(|_| is_last(r, p))?;
            over(end.space.allocated as f64, end.live_bytes as f64)
        },
    },
    Metric {
        name: "write_amp_closed",
        more_is_better: false,
        value: |r, p| {
            let end = r.ending.as_ref().filter(|_| is_last(r, p))?;
            over(end.usage.write_bytes as f64, end.user_bytes as f64)
        },
    },
    Metric {
        name: "reopen_s",
        more_is_better: false,
        value: |r, p| Some(r.ending.as_ref().filter(|_| is_last(r, p))?.reopen_s),
    },
];

fn us(p: &PhaseResult, ns: u64) -> Option<f64> {
    (p.latency.samples > 0).then(|| ns as f64 / 1e3)
}

/// The end of a plan is told with its last case.
fn is_last(run: &Run, phase: &PhaseResult) -> bool {
    run.phases.last().is_some_and(|p| p.case == phase.case)
}

/// Whether anything in a run before, in or behind a phase makes its figures worthless.
pub fn is_void(run: &Run) -> bool {
    run.phases.iter().any(|p| p.wrong > 0) || run.ending.as_ref().is_some_and(|e| e.wrong > 0)
}

impl Report {
    /// The names of the measured cases, in the order of the plans.
    pub fn case_names(&self) -> Vec<&str> {
        let mut names = Vec::new();
        for phase in self.cases.iter().flat_map(|c| &c.phases) {
            if !phase.case.is_empty() && !names.contains(&phase.case.as_str()) {
                names.push(&phase.case);
            }
        }
        names
    }

    /// The value of a metric of a case, for one engine and round, unless the row is void: a wrong answer in any phase
    /// and round of a plan voids all its figures of that engine.
    pub fn value(&self, case: &str, metric: &Metric, engine: &str, round: u32) -> Option<f64> {
        let void = |r: &Run| self.runs.iter().any(|o| o.engine == engine && o.case == r.case && is_void(o));
        self.runs
            .iter()
            .filter(|r| r.engine == engine && r.round == round && !void(r))
            .find_map(|r| r.phases.iter().find(|p| p.case == case).and_then(|p| (metric.value)(r, p)))
    }

    /// The values of all rounds.
    pub fn values(&self, case: &str, metric: &Metric, engine: &str) -> Vec<f64> {
        (0..self.rounds).filter_map(|r| self.value(case, metric, engine, r)).collect()
    }

    /// How many times better than its best peer of the same round, median of the rounds. Above 1 is better, whichever
    /// way the metric counts.
    pub fn ratio(&self, case: &str, metric: &Metric, engine: &str) -> Option<f64> {
        let ratios: Vec<f64> = (0..self.rounds)
            .filter_map(|round| {
                let own = self.value(case, metric, engine, round)?;
                let peers = self
                    .engines
                    .iter()
                    .filter(|e| e.name != engine && e.name != NULL)
                    .filter_map(|e| self.value(case, metric, &e.name, round));
                if metric.more_is_better {
                    over(own, peers.reduce(f64::max)?)
                } else {
                    over(peers.reduce(f64::min)?, own)
                }
            })
            .collect();
        median(&ratios)
    }
}

/// The median; the mean of the middle two for an even number.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut v = values.to_vec();
    v.sort_by(f64::total_cmp);
    let mid = v.len() / 2;
    match v.len() {
        0 => None,
        n if n % 2 == 1 => Some(v[mid]),
        _ => Some((v[mid - 1] + v[mid]) / 2.0),
    }
}

/// Largest less smallest, over the median.
pub fn spread(values: &[f64]) -> Option<f64> {
    let max = values.iter().copied().reduce(f64::max)?;
    let min = values.iter().copied().reduce(f64::min)?;
    over(max - min, median(values)?)
}
