//! Digests: engines that were asked the same must have given the same answers.
//!
//! A phase's answers (`read_digest`) and the state behind it (`digest`) are compared between all engines and rounds
//! wherever the plan decides them alone. It does not where a phase ends by the clock, where writers run in its
//! background, or where several threads write the same key: then which write survives is a matter of luck, and so is
//! everything read behind it on that database.
//!
//! Engines vote with the digest that they gave in every round. Those that differ from the most frequent one are void;
//! if two digests are the most frequent, nobody knows which is right and all are void. An engine that contradicts
//! itself from round to round is void and has no vote.

use super::Report;
use super::metrics::is_null;
use crate::cases::Case;
use crate::spec::{Kind, Phase, PhaseResult};
use std::collections::{BTreeMap, BTreeSet};

/// A disagreement: the engine and the case (the plan's) that it voids, and the words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disagreement {
    /// The engine.
    pub engine: String,
    /// The name of the database's case, all figures of which are void.
    pub case: String,
    /// What differed, from whom.
    pub words: String,
}

/// For each phase of a plan, whether its own answers, and the state behind it, follow from the plan alone.
fn decided(case: &Case) -> Vec<(bool, bool)> {
    let mut state = true;
    let mut out = Vec::new();
    for phase in &case.phases {
        let whole = phase.seconds == 0.0 && phase.background.is_none();
        let answers = state && whole && (!phase.kind.changes() || phase.threads <= 1);
        if phase.kind.changes() || phase.background.is_some() {
            state = state && whole && (phase.threads <= 1 || writes_each_key_once(phase, case));
        }
        out.push((answers, state));
    }
    out
}

fn writes_each_key_once(phase: &Phase, case: &Case) -> bool {
    match phase.kind {
        Kind::Write => phase.order.visits_once() && phase.ops <= case.set.n,
        // A key is gone, however often it is removed.
        Kind::Delete => true,
        _ => false,
    }
}

/// All disagreements of a report.
pub fn disagreements(report: &Report) -> Vec<Disagreement> {
    let mut out = Vec::new();
    for case in &report.cases {
        for (i, (phase, (answers, state))) in case.phases.iter().zip(decided(case)).enumerate() {
            let name = if phase.case.is_empty() { "the load" } else { &phase.case };
            if answers {
                let what = format!("what {name} read");
                compare(report, case, i, &what, |p| p.read_digest.as_ref(), &mut out);
            }
            if state {
                let what = format!("the state behind {name}");
                compare(report, case, i, &what, |p| p.digest.as_ref(), &mut out);
            }
        }
    }
    out
}

/// The digests of phase `i` of a case: of each engine, those that it gave.
fn given<'a>(
    report: &'a Report,
    case: &Case,
    i: usize,
    digest: fn(&PhaseResult) -> Option<&String>,
) -> BTreeMap<&'a str, BTreeSet<&'a str>> {
    let mut by_engine: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let runs = report.runs.iter().filter(|r| r.case == case.name && !is_null(&r.engine));
    for run in runs {
        // Loads may be left out of the results; then a phase is found by its name, which a database has once.
        let name = &case.phases[i].case;
        let phase = match run.phases.len() == case.phases.len() {
            true => run.phases.get(i),
            false => run.phases.iter().find(|p| !name.is_empty() && p.case == *name),
        };
        if let Some(d) = phase.filter(|p| p.case == *name).and_then(digest) {
            by_engine.entry(&run.engine).or_default().insert(d);
        }
    }
    by_engine
}

fn compare(
    report: &Report,
    case: &Case,
    i: usize,
    what: &str,
    digest: fn(&PhaseResult) -> Option<&String>,
    out: &mut Vec<Disagreement>,
) {
    let by_engine = given(report, case, i, digest);
    let mut votes: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (engine, digests) in &by_engine {
        match digests.iter().next() {
            Some(only) if digests.len() == 1 => votes.entry(only).or_default().push(engine),
            _ => out.push(Disagreement {
                engine: engine.to_string(),
                case: case.name.clone(),
                words: format!("{what} differs between its own rounds (digests {})", list(digests)),
            }),
        }
    }
    let most = votes.values().map(Vec::len).max().unwrap_or(0);
    let leaders: Vec<&&str> = votes.iter().filter(|(_, v)| v.len() == most).map(|(d, _)| d).collect();
    let right = if leaders.len() == 1 { Some(*leaders[0]) } else { None };
    for (digest, engines) in &votes {
        if right == Some(*digest) {
            continue;
        }
        let others: Vec<String> = votes
            .iter()
            .filter(|(d, _)| *d != digest)
            .map(|(d, engines)| format!("{d} from {}", engines.join(", ")))
            .collect();
        let tie = match right {
            Some(_) => "",
            None => "; no digest has a majority, so nobody's answers can be trusted",
        };
        for engine in engines {
            out.push(Disagreement {
                engine: engine.to_string(),
                case: case.name.clone(),
                words: format!("{what} has the digest {digest}, not {}{tie}", others.join(" and ")),
            });
        }
    }
}

fn list(digests: &BTreeSet<&str>) -> String {
    digests.iter().copied().collect::<Vec<_>>().join(", ")
}
