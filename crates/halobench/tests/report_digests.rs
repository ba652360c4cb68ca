//! Engines that were asked the same must have answered the same: who is void when they did not.

#[path = "report_kit/mod.rs"]
mod kit;

use halobench::report::digests::disagreements;
use halobench::report::figures::Figures;
use halobench::report::{Report, summary};
use halobench::spec::{Background, Phase, PhaseResult};
use halobench::workload::Order;

const CASE: &str = "read-random-t4";

/// Two phases of one database, load and reads, with no digest but what `digest` gives by engine and round.
fn with(engines: &[&str], digest: impl Fn(&str, u32) -> Option<&'static str>) -> Report {
    let mut report = kit::large();
    report.cases.retain(|c| c.name == CASE);
    report.engines.retain(|e| engines.contains(&e.name.as_str()));
    report.runs.retain(|r| r.case == CASE && engines.contains(&r.engine.as_str()));
    for run in &mut report.runs {
        run.phases[0].read_digest = digest(&run.engine, run.round).map(Into::into);
    }
    report
}

fn void(report: &Report) -> Vec<&str> {
    let figures = Figures::of(report);
    (0..report.engines.len())
        .filter(|&e| figures.is_void(0, e))
        .map(|e| report.engines[e].name.as_str())
        .collect()
}

const THREE: [&str; 3] = ["halocline", "lmdb", "redb"];

#[test]
fn equal_digests_are_no_trouble_and_missing_ones_neither() {
    assert!(with(&THREE, |_, _| Some("aa")).troubles().is_empty());
    assert!(with(&THREE, |e, _| (e != "redb").then_some("aa")).troubles().is_empty());
}

#[test]
fn the_minority_is_void_in_words() {
    let report = with(&THREE, |e, _| Some(if e == "lmdb" { "bb" } else { "aa" }));
    assert_eq!(void(&report), ["lmdb"]);
    let words =
        "lmdb read-random-t4: VOID: what read-random-t4 read has the digest bb, not aa from halocline, redb";
    assert_eq!(report.troubles(), [words]);
    assert!(summary::tsv(&report).contains("read-random-t4\tops_per_s\tlmdb\tVOID\t-"));
}

#[test]
fn a_tie_voids_all() {
    let report = with(&["halocline", "lmdb"], |e, _| Some(if e == "lmdb" { "bb" } else { "aa" }));
    assert_eq!(void(&report), ["halocline", "lmdb"]);
    assert!(
        report.troubles().iter().all(|t| t.ends_with("nobody's answers can be trusted")),
        "{:?}",
        report.troubles()
    );
}

#[test]
fn an_engine_that_contradicts_itself_is_void_and_has_no_vote() {
    // With a vote, "bb" would tie.
    let report =
        with(&["halocline", "lmdb"], |e, round| Some(if e == "lmdb" && round > 0 { "bb" } else { "aa" }));
    assert_eq!(void(&report), ["lmdb"]);
    assert!(report.troubles()[0].contains("differs between its own rounds (digests aa, bb)"));
}

#[test]
fn null_answers_nothing_and_is_not_asked() {
    assert!(
        with(&["halocline", "null"], |e, _| Some(if e == "null" { "00" } else { "aa" }))
            .troubles()
            .is_empty()
    );
}

/// Whether a difference counts, after `change` of the load and of the reads.
fn counts(change: impl Fn(&mut Phase, &mut Phase)) -> bool {
    let mut report = with(&THREE, |e, _| Some(if e == "lmdb" { "bb" } else { "aa" }));
    let [load, reads] = &mut report.cases[0].phases[..] else { panic!("two phases") };
    change(load, reads);
    !disagreements(&report).is_empty()
}

#[test]
fn what_luck_decides_is_not_compared() {
    assert!(counts(|_, _| {}));
    assert!(!counts(|_, reads| reads.seconds = 5.0), "the clock ends it");
    let background = Some(Background { threads: 1, rate: 0.0, ops: 10 });
    assert!(!counts(|_, reads| reads.background = background), "writers race with it");
    assert!(!counts(|load, _| load.order = Order::Uniform), "threads wrote the same keys before");
    assert!(
        counts(|load, _| (load.order, load.threads) = (Order::Uniform, 1)),
        "a lone thread's order is the plan's"
    );
    assert!(!counts(|load, _| load.seconds = 5.0), "the clock ended the load");
}

#[test]
fn the_state_behind_a_write_counts_as_well() {
    let mut report = with(&THREE, |_, _| None);
    report.cases[0].phases.remove(0);
    report.cases[0].phases[0].kind = halobench::spec::Kind::Write;
    report.cases[0].phases[0].order = Order::Up;
    let state = |p: &mut PhaseResult, d: &str| p.digest = Some(d.into());
    for run in &mut report.runs {
        state(&mut run.phases[0], if run.engine == "redb" { "cc" } else { "dd" });
    }
    assert_eq!(void(&report), ["redb"]);
    assert!(report.troubles()[0].contains("the state behind read-random-t4 has the digest cc, not dd"));
}
