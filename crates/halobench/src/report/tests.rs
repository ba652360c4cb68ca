//! Medians, ratios, and what a void or missing row looks like.

use super::figures::Figures;
use super::metrics::METRICS;
use super::{Report, Run, summary, table};
use crate::cases::Params;
use crate::engine::registry::Availability;
use crate::machine::Machine;
use crate::spec::{Ending, PhaseResult, Settled, Space, Usage};

const CASE: &str = "write-random-b10";

fn engine(name: &str, missing: Option<&str>) -> Availability {
    Availability {
        name: name.into(),
        about: String::new(),
        version: None,
        missing: missing.map(Into::into),
        classes: Vec::new(),
    }
}

fn run(round: u32, engine: &str, ops_per_s: f64, written: u64) -> Run {
    let phase = PhaseResult {
        case: CASE.into(),
        ops: 1000,
        ops_per_s,
        user_bytes: 1000,
        live_bytes: 1000,
        settled: Some(Settled {
            usage: Usage { write_bytes: written, ..Usage::default() },
            space: Space { allocated: 1500, apparent: 0, files: 1 },
            ..Settled::default()
        }),
        ..PhaseResult::default()
    };
    Run {
        round,
        engine: engine.into(),
        case: CASE.into(),
        phases: vec![phase],
        ending: Some(Ending { reopen_s: 0.5, ..Ending::default() }),
        ..Run::default()
    }
}

/// Two engines and the null one, three rounds.
fn report() -> Report {
    let case = Params { ops: 1000, threads: 2, batch: 10, ..Params::default() }.case();
    let mut runs = Vec::new();
    // The machine slows down by half from round to round: ratios of a round stay, medians of all do not mislead them.
    for (round, scale) in [(0, 4.0), (1, 2.0), (2, 1.0)] {
        runs.push(run(round, "a", 3000.0 * scale, 2000));
        runs.push(run(round, "b", 2000.0 * scale, 8000));
        runs.push(run(round, "null", 90_000.0 * scale, 0));
    }
    Report {
        format: Report::FORMAT,
        halobench: "0".into(),
        command: Vec::new(),
        started_unix_s: 0,
        machine: Machine::default(),
        engines: vec![
            engine("a", None),
            engine("b", None),
            engine("c", Some("buy it")),
            engine("null", None),
        ],
        rounds: 3,
        cases: vec![case],
        runs,
        ..Report::default()
    }
}

/// The value and the ratio of a line.
fn find<'a>(tsv: &'a str, metric: &str, engine: &str) -> Option<(&'a str, &'a str)> {
    let start = format!("{CASE}\t{metric}\t{engine}\t");
    tsv.lines().find_map(|l| l.strip_prefix(start.as_str())?.split_once('\t'))
}

#[test]
fn the_summary_has_medians_and_ratios_that_say_better_above_one() {
    let tsv = summary::tsv(&report());
    assert_eq!(tsv.lines().next(), Some(summary::HEADER));
    assert_eq!(find(&tsv, "ops_per_s", "a"), Some(("6000", "1.500")));
    assert_eq!(find(&tsv, "ops_per_s", "b"), Some(("4000", "0.667")));
    assert_eq!(find(&tsv, "ops_per_s", "null"), Some(("180000", "-")));
    assert_eq!(find(&tsv, "ops_per_s", "c"), Some(("unavailable", "-")));
    assert_eq!(find(&tsv, "write_amp_settled", "a"), Some(("2.000", "4.000")));
    assert_eq!(find(&tsv, "write_amp_settled", "b"), Some(("8.000", "0.250")));
    assert_eq!(find(&tsv, "space_amp_settled", "b"), Some(("1.500", "1.000")));
    assert_eq!(find(&tsv, "reopen_s", "a"), Some(("0.5000", "1.000")));
    assert_eq!(find(&tsv, "p50_us", "a"), None, "no samples, no line");
    let names: Vec<&str> = METRICS.iter().map(|m| m.name).collect();
    assert!(tsv.lines().skip(1).all(|l| names.contains(&l.split('\t').nth(1).unwrap())));
}

#[test]
fn one_wrong_answer_voids_the_row_in_words() {
    let mut wrong = report();
    let bad = wrong.runs.iter_mut().find(|r| r.engine == "a" && r.round == 1).unwrap();
    bad.phases[0].wrong = 3;
    bad.phases[0].wrong_examples = vec!["k7 was not found".into()];
    let figures = Figures::of(&wrong);
    assert_eq!(figures.median(0, 0, figures.engine("a").unwrap()), None);
    let troubles = wrong.troubles();
    assert_eq!(troubles, [format!("a {CASE} round 2: VOID: 3 wrong answers in {CASE}: k7 was not found")]);
    assert!(table::text(&wrong).contains(&troubles[0]));

    // No round of a void row counts, whichever it was: the engine is broken.
    assert_eq!(find(&summary::tsv(&wrong), "ops_per_s", "a"), Some(("VOID", "-")));
    assert_eq!(find(&summary::tsv(&wrong), "ops_per_s", "b"), Some(("4000", "-")));
}

#[test]
fn a_failure_after_the_reopening_or_of_the_process_is_told() {
    let mut r = report();
    r.runs[0].ending.as_mut().unwrap().wrong = 1;
    r.runs[1] = Run { phases: vec![], ending: None, error: Some("it died".into()), ..r.runs[1].clone() };
    let troubles = r.troubles().join("\n");
    assert!(
        troubles.contains("a write-random-b10 round 1: VOID: 1 wrong entries after reopening"),
        "{troubles}"
    );
    assert!(troubles.contains("b write-random-b10 round 1: FAILED: it died"), "{troubles}");
}

#[test]
fn the_table_names_what_is_missing_and_aligns_what_is_there() {
    let text = table::text(&report());
    assert!(text.contains("c: not run: buy it"), "{text}");
    assert!(text.lines().any(|l| l.split_whitespace().collect::<Vec<_>>() == ["c", "unavailable"]), "{text}");
    let row: Vec<&str> = text.lines().find(|l| l.starts_with("  a ")).unwrap().split_whitespace().collect();
    assert_eq!(row[..4], ["a", "6,000", "150%", "1.50x"]);
}

#[test]
fn a_report_survives_its_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("r.json");
    let r = report();
    r.save(&path).unwrap();
    assert_eq!(summary::tsv(&Report::load(&path).unwrap()), summary::tsv(&r));
    std::fs::write(&path, "{}").unwrap();
    assert!(Report::load(&path).unwrap_err().contains("is not a result file"));
}
