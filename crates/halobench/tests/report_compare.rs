//! Two results compared: what is called a regression, what is not, and what is not compared at all.

#[path = "report_kit/mod.rs"]
mod kit;

use halobench::report::Report;
use halobench::report::compare::{Judgement, compare};
use halobench::spec::PhaseResult;

const CASE: &str = "read-random-t4";

/// A made-up report with known rates of lmdb in one case.
fn with(rates: [f64; 3]) -> Report {
    let mut report = kit::large();
    for run in report.runs.iter_mut().filter(|r| r.engine == "lmdb" && r.case == CASE) {
        run.phases[0].ops_per_s = rates[run.round as usize];
    }
    report
}

fn each(report: &mut Report, mut change: impl FnMut(&mut PhaseResult)) {
    let runs = report.runs.iter_mut().filter(|r| r.engine == "lmdb" && r.case == CASE);
    runs.for_each(|r| change(&mut r.phases[0]));
}

fn judgement(old: [f64; 3], new: [f64; 3]) -> Judgement {
    let c = compare(&with(old), &with(new));
    let found = c
        .changes
        .iter()
        .find(|c| c.case == CASE && c.engine == "lmdb" && c.metric.name == "ops_per_s")
        .map(|c| c.judgement);
    assert_eq!(c.regressed(), found == Some(Judgement::Worse), "{}", c.text());
    found.unwrap()
}

#[test]
fn worse_is_beyond_the_worst_round_and_the_spread_and_five_percent() {
    let old = [100.0, 102.0, 98.0];
    assert_eq!(judgement(old, old), Judgement::Same);
    assert_eq!(judgement(old, [80.0, 81.0, 79.0]), Judgement::Worse);
    assert_eq!(judgement(old, [125.0, 126.0, 124.0]), Judgement::Better);
    // By less than 5 %.
    assert_eq!(judgement([100.0, 100.5, 99.5], [96.0, 96.5, 95.5]), Judgement::Same);
    // Beyond 5 %, but the old rounds reached as low.
    assert_eq!(judgement([100.0, 102.0, 85.0], [88.0, 88.5, 87.5]), Judgement::Same);
    // Beyond the worst old round, but the new rounds themselves differ by more.
    assert_eq!(judgement(old, [90.0, 118.0, 80.0]), Judgement::Same);
}

#[test]
fn less_is_better_for_costs_and_single_operations_are_not_judged() {
    let old = kit::large();
    let mut new = old.clone();
    each(&mut new, |p| p.latency.max_ns *= 50);
    assert!(!compare(&old, &new).regressed(), "one operation decides the maximum");
    each(&mut new, |p| p.latency.p50_ns *= 3);
    let c = compare(&old, &new);
    let worse: Vec<_> = c.of(Judgement::Worse).map(|w| (w.engine.as_str(), w.metric.name)).collect();
    assert_eq!(worse, [("lmdb", "p50_us")]);
    assert!(c.text().contains("WORSE: 1") && c.text().contains("1 regressions"), "{}", c.text());
    let back = compare(&new, &old);
    assert!(!back.regressed());
    assert_eq!(back.of(Judgement::Better).count(), 1);
}

#[test]
fn a_row_that_broke_is_a_regression_and_a_mended_one_a_note() {
    let old = kit::large();
    let mut new = old.clone();
    new.runs.iter_mut().find(|r| r.engine == "lmdb" && r.case == CASE).unwrap().phases[0].wrong = 1;
    let c = compare(&old, &new);
    assert_eq!(c.broken, [format!("lmdb, {CASE}: VOID in the new file")]);
    assert!(c.regressed());
    let back = compare(&new, &old);
    assert!(!back.regressed());
    assert!(back.notes.contains(&format!("lmdb, {CASE}: VOID in the old file")), "{:?}", back.notes);
}

#[test]
fn only_equal_terms_are_compared_and_the_differences_are_named() {
    let old = kit::large();
    let mut new = old.clone();
    let case = new.cases.iter_mut().find(|c| c.name == CASE).unwrap();
    case.config.cache *= 2;
    case.config.rocksdb_lib = Some("/elsewhere/librocksdb.so".into());
    case.phases[1].threads = 9;
    each(&mut new, |p| p.ops_per_s /= 10.0);
    let c = compare(&old, &new);
    let differences = ["config.cache: 67108864, now 134217728", "phases.1.threads: 4, now 9"];
    assert_eq!(c.incomparable, [(CASE.to_string(), differences.map(String::from).to_vec())]);
    assert!(c.changes.iter().all(|c| c.case != CASE));
    assert!(!c.regressed());
}

#[test]
fn durability_classes_are_not_compared_with_one_another() {
    let old = kit::large();
    let mut new = old.clone();
    for run in new.runs.iter_mut().filter(|r| r.engine == "lmdb" && r.case == CASE) {
        run.other_class = Some(halobench::engine::Durability::Sync);
        run.phases[0].ops_per_s /= 100.0;
    }
    let c = compare(&old, &new);
    assert!(!c.regressed());
    assert!(c.notes.contains(&format!("lmdb, {CASE}: not compared: run in different durability classes")));
}

#[test]
fn missing_cases_engines_and_another_machine_are_notes() {
    let old = kit::large();
    let mut new = old.clone();
    new.cases.retain(|c| c.name != CASE);
    new.runs.retain(|r| r.case != CASE);
    new.engines.retain(|e| e.name != "fjall");
    new.machine.threads = 2;
    new.engines.iter_mut().find(|e| e.name == "redb").unwrap().version = Some("9.9".into());
    let c = compare(&old, &new);
    for note in [
        "read-random-t4: only in the old file",
        "fjall: only in the old file",
        "redb: 1.2.3, now 9.9",
        "another machine: threads \"16\", now \"2\"; compare ratios, not absolute figures",
    ] {
        assert!(c.notes.iter().any(|n| n == note), "{note}: {:?}", c.notes);
    }
    assert!(!c.regressed());
    let nothing = compare(&old, &Report { cases: Vec::new(), runs: Vec::new(), ..old.clone() });
    assert!(nothing.text().ends_with("nothing could be compared\n"));
}
