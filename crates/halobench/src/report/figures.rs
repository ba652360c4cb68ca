//! The figures of a report, indexed: values by case, metric, engine and round; medians of rounds; ratios within a
//! round.
//!
//! A machine's speed drifts, so engines are compared within a round and the median of these ratios is shown. Ratios say
//! how many times *better*: above 1 is better, for costs too. A void row (a wrong answer in any round, or a digest that
//! differs from the other engines') has no figures at all. A row that was run in another durability class than the case asks
//! for has figures and no ratios, and is nobody's peer: classes are never compared.

use super::metrics::{METRICS, is_null, is_void};
use super::stats::{median, over, range};
use super::{Report, digests};
use crate::cases::Case;
use crate::engine::Durability;
use crate::spec::{Phase, PhaseResult};
use std::collections::{BTreeMap, BTreeSet};

/// Ratios this close to 1 are called even: less than the speed of a shared machine drifts within a round.
pub const EVEN: f64 = 1.05;

/// Where a reported case stands in the plans.
pub struct Place<'a> {
    /// The reported name: the phase's.
    pub name: &'a str,
    /// The database that it runs on.
    pub case: &'a Case,
    /// Its own phase.
    pub phase: &'a Phase,
}

/// How many times better than a peer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratio {
    /// Median of the rounds' ratios.
    pub median: f64,
    /// The least of them.
    pub min: f64,
    /// The largest.
    pub max: f64,
    /// The engine that was the best peer in most rounds, by its place.
    pub peer: usize,
}

/// What a ratio says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Better than the best peer.
    Won,
    /// Within [`EVEN`] of it.
    Even,
    /// Worse.
    Lost,
}

impl Ratio {
    /// Won, even or lost, by the median.
    pub fn verdict(&self) -> Verdict {
        match self.median {
            r if r >= EVEN => Verdict::Won,
            r if r <= 1.0 / EVEN => Verdict::Lost,
            _ => Verdict::Even,
        }
    }

    /// Whether the rounds disagree about who is better.
    pub fn unsure(&self) -> bool {
        self.min < 1.0 && self.max > 1.0
    }
}

/// The index of a report.
pub struct Figures<'a> {
    /// The report.
    pub report: &'a Report,
    /// The reported cases, in the order of the plans.
    pub places: Vec<Place<'a>>,
    /// By case, metric, engine and round.
    values: Vec<Option<f64>>,
    /// Engine and database.
    void: BTreeSet<(&'a str, &'a str)>,
    /// Engine and database, and the class that it was run in instead of the case's.
    other: BTreeMap<(&'a str, &'a str), Durability>,
    rounds: usize,
}

impl<'a> Figures<'a> {
    /// Of a report, whole or not.
    pub fn of(report: &'a Report) -> Figures<'a> {
        let mut places: Vec<Place<'a>> = Vec::new();
        for case in &report.cases {
            for phase in case.phases.iter().filter(|p| !p.case.is_empty()) {
                if places.iter().all(|p| p.name != phase.case) {
                    places.push(Place { name: &phase.case, case, phase });
                }
            }
        }
        let mut void: BTreeSet<(&str, &str)> =
            report.runs.iter().filter(|r| is_void(r)).map(|r| (r.engine.as_str(), r.case.as_str())).collect();
        for d in digests::disagreements(report) {
            let run = report.runs.iter().find(|r| r.engine == d.engine && r.case == d.case);
            void.extend(run.map(|r| (r.engine.as_str(), r.case.as_str())));
        }
        let other = report
            .runs
            .iter()
            .filter_map(|r| Some(((r.engine.as_str(), r.case.as_str()), r.other_class?)))
            .collect();
        // An interrupted run may hold a round that the report's number of rounds does not count yet.
        let rounds = report.runs.iter().map(|r| r.round as usize + 1).max().unwrap_or(0);
        let mut figures = Figures { report, places, values: Vec::new(), void, other, rounds };
        figures.values = figures.collect();
        figures
    }

    fn collect(&self) -> Vec<Option<f64>> {
        let engines = self.report.engines.len();
        let mut values = vec![None; self.places.len() * METRICS.len() * engines * self.rounds];
        for run in &self.report.runs {
            let Some(engine) = self.engine(&run.engine) else { continue };
            if self.void.contains(&(run.engine.as_str(), run.case.as_str())) {
                continue;
            }
            for phase in &run.phases {
                let at = |p: &Place| p.name == phase.case && p.case.name == run.case;
                let Some(case) = self.places.iter().position(at) else { continue };
                for (m, metric) in METRICS.iter().enumerate() {
                    let i =
                        ((case * METRICS.len() + m) * engines + engine) * self.rounds + run.round as usize;
                    values[i] = metric.value(run, phase);
                }
            }
        }
        values
    }

    /// An engine's place.
    pub fn engine(&self, name: &str) -> Option<usize> {
        self.report.engines.iter().position(|e| e.name == name)
    }

    /// A case's place.
    pub fn case(&self, name: &str) -> Option<usize> {
        self.places.iter().position(|p| p.name == name)
    }

    /// The values of a metric (by its place in [`METRICS`]) of all rounds, in their order.
    pub fn rounds(&self, case: usize, metric: usize, engine: usize) -> &[Option<f64>] {
        let i = ((case * METRICS.len() + metric) * self.report.engines.len() + engine) * self.rounds;
        &self.values[i..i + self.rounds]
    }

    /// The same without the rounds that have none.
    pub fn values(&self, case: usize, metric: usize, engine: usize) -> Vec<f64> {
        self.rounds(case, metric, engine).iter().copied().flatten().collect()
    }

    /// Median of the rounds.
    pub fn median(&self, case: usize, metric: usize, engine: usize) -> Option<f64> {
        median(&self.values(case, metric, engine))
    }

    /// Whether any engine has a figure of this metric, in any case.
    pub fn measured(&self, metric: usize) -> bool {
        (0..self.places.len())
            .any(|c| (0..self.report.engines.len()).any(|e| self.median(c, metric, e).is_some()))
    }

    /// To the best peer of the same round; `null` is no peer and has none.
    pub fn ratio(&self, case: usize, metric: usize, engine: usize) -> Option<Ratio> {
        let engines = &self.report.engines;
        if is_null(&engines[engine].name) || self.other_class(case, engine).is_some() {
            return None;
        }
        let more = METRICS[metric].more_is_better;
        let mut ratios = Vec::new();
        let mut best_in = vec![0; engines.len()];
        for (round, own) in self.rounds(case, metric, engine).iter().enumerate() {
            let peers = (0..engines.len())
                .filter(|&e| e != engine && !is_null(&engines[e].name) && self.other_class(case, e).is_none())
                .filter_map(|e| Some((e, self.rounds(case, metric, e)[round]?)));
            let best = if more {
                peers.max_by(|a, b| a.1.total_cmp(&b.1))
            } else {
                peers.min_by(|a, b| a.1.total_cmp(&b.1))
            };
            let (Some(own), Some((peer, best))) = (*own, best) else { continue };
            if let Some(r) = better(more, own, best) {
                ratios.push(r);
                best_in[peer] += 1;
            }
        }
        let (min, max) = range(&ratios)?;
        let peer = (0..best_in.len()).rev().max_by_key(|&e| best_in[e])?;
        Some(Ratio { median: median(&ratios)?, min, max, peer })
    }

    /// How many times better `engine` is than `other`, median of the rounds in which both have a figure.
    pub fn versus(&self, case: usize, metric: usize, engine: usize, other: usize) -> Option<f64> {
        if self.other_class(case, engine) != self.other_class(case, other) {
            return None;
        }
        let pairs = self.rounds(case, metric, engine).iter().zip(self.rounds(case, metric, other));
        let ratios: Vec<f64> =
            pairs.filter_map(|(a, b)| better(METRICS[metric].more_is_better, (*a)?, (*b)?)).collect();
        median(&ratios)
    }

    /// The engine that the report is about: halocline where it ran, the first that ran otherwise.
    pub fn subject(&self) -> Option<usize> {
        let ran = |name: &str| !is_null(name) && self.report.runs.iter().any(|r| r.engine == name);
        self.engine("halocline").filter(|_| ran("halocline")).or_else(|| {
            let mut engines = self.report.engines.iter();
            engines.position(|e| ran(&e.name))
        })
    }

    /// Whether an engine's figures of a case are void.
    pub fn is_void(&self, case: usize, engine: usize) -> bool {
        self.void.contains(&(self.report.engines[engine].name.as_str(), self.places[case].case.name.as_str()))
    }

    /// The durability class an engine was run in, where that is not the case's.
    pub fn other_class(&self, case: usize, engine: usize) -> Option<Durability> {
        let key = (self.report.engines[engine].name.as_str(), self.places[case].case.name.as_str());
        self.other.get(&key).copied()
    }

    /// Why an engine has no figure for a case, in a word or two.
    pub fn why_not(&self, case: usize, engine: usize) -> &'static str {
        let entry = &self.report.engines[engine];
        if entry.missing.is_some() {
            return "unavailable";
        }
        if self.is_void(case, engine) {
            return "VOID";
        }
        let mut runs = self
            .report
            .runs
            .iter()
            .filter(|r| r.engine == entry.name && r.case == self.places[case].case.name)
            .peekable();
        if runs.peek().is_none() {
            "not run"
        } else if runs.clone().all(|r| r.left_out.is_some()) {
            "left out"
        } else if runs.any(|r| r.error.is_some()) {
            "FAILED"
        } else {
            "not reached"
        }
    }

    /// The results of a case and engine, by round; those of void rows too.
    pub fn results(&self, case: usize, engine: usize) -> impl Iterator<Item = (u32, &'a PhaseResult)> {
        let (place, name) = (&self.places[case], &self.report.engines[engine].name);
        let (plan, phase) = (&place.case.name, place.name);
        self.report
            .runs
            .iter()
            .filter(move |r| r.engine == *name && r.case == *plan)
            .filter_map(move |r| r.phases.iter().find(|p| p.case == phase).map(|p| (r.round, p)))
    }
}

/// `own` over `other` or the reverse, so that above 1 is better.
fn better(more: bool, own: f64, other: f64) -> Option<f64> {
    if more { over(own, other) } else { over(other, own) }
}
