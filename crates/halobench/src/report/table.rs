//! The report for a terminal: the grid of ratios, the tables of all figures, what went wrong, the terms.

use super::Report;
use super::figures::Figures;
use super::metrics::{index, is_null};
use super::stats::spread;
use super::units::{Unit, ratio, thousands};
use super::words;
use std::fmt::Write;

/// A column of a case's table: its title, and an engine's cell.
type Column = (&'static str, fn(&Figures<'_>, usize, usize) -> String);

const COLUMNS: &[Column] = &[
    ("ops/s", |f, c, e| cell(f, c, e, "ops_per_s", thousands)),
    ("spread", |f, c, e| {
        spread(&f.values(c, index("ops_per_s"), e)).map_or(String::new(), |s| format!("{:.0}%", s * 100.0))
    }),
    ("vs best peer", |f, c, e| {
        f.ratio(c, index("ops_per_s"), e).map_or(String::new(), |r| format!("{:.2}x", r.median))
    }),
    ("p50", |f, c, e| cell(f, c, e, "p50_us", micros)),
    ("p99", |f, c, e| cell(f, c, e, "p99_us", micros)),
    ("p99.9", |f, c, e| cell(f, c, e, "p99.9_us", micros)),
    ("max", |f, c, e| cell(f, c, e, "max_us", micros)),
    ("cpu us/op", |f, c, e| cell(f, c, e, "cpu_us_per_op", |v| format!("{v:.2}"))),
    ("wamp end", |f, c, e| cell(f, c, e, "write_amp_end", |v| format!("{v:.2}"))),
    ("settled", |f, c, e| cell(f, c, e, "write_amp_settled", |v| format!("{v:.2}"))),
    ("settle", |f, c, e| cell(f, c, e, "settle_s", |v| format!("{v:.1}s"))),
    ("space", |f, c, e| cell(f, c, e, "space_amp_settled", |v| format!("{v:.2}"))),
    ("reopen", |f, c, e| cell(f, c, e, "reopen_s", |v| format!("{:.0}ms", v * 1e3))),
    ("anon MB", |f, c, e| cell(f, c, e, "anon_peak_mb", |v| format!("{v:.0}"))),
    ("file MB", |f, c, e| cell(f, c, e, "file_peak_mb", |v| format!("{v:.0}"))),
];

fn cell(f: &Figures<'_>, case: usize, engine: usize, metric: &str, show: fn(f64) -> String) -> String {
    f.median(case, index(metric), engine).map_or_else(String::new, show)
}

/// Microseconds with a fitting unit.
fn micros(v: f64) -> String {
    match v {
        v if v < 1.0 => format!("{:.0}ns", v * 1e3),
        v if v < 10.0 => format!("{v:.2}us"),
        v if v < 1e3 => format!("{v:.0}us"),
        v if v < 1e6 => format!("{:.1}ms", v / 1e3),
        v => format!("{:.1}s", v / 1e6),
    }
}

/// In short: the grid of ratios, what went wrong, the terms.
pub fn grid(report: &Report) -> String {
    let figures = Figures::of(report);
    let mut out = String::new();
    ratios(&mut out, &figures);
    rest(&mut out, &figures);
    out
}

/// In full: a table of all figures for each case, the grid of ratios, what went wrong, the terms.
pub fn text(report: &Report) -> String {
    let figures = Figures::of(report);
    let mut out = String::new();
    for case in 0..figures.places.len() {
        case_table(&mut out, &figures, case);
    }
    ratios(&mut out, &figures);
    rest(&mut out, &figures);
    out
}

/// Cases by engines: the subject's throughput, and how many times that of each other engine it is.
fn ratios(out: &mut String, f: &Figures<'_>) {
    let Some(subject) = f.subject() else { return };
    let engines = &f.report.engines;
    let name = &engines[subject].name;
    let others: Vec<usize> = (0..engines.len())
        .filter(|&e| e != subject && engines[e].missing.is_none() && !is_null(&engines[e].name))
        .collect();
    let ops = index("ops_per_s");
    let mut titles = vec![String::new(), name.clone()];
    titles.extend(others.iter().map(|&e| format!("vs {}", engines[e].name)));
    let mut rows = Vec::new();
    for (c, place) in f.places.iter().enumerate() {
        let own =
            f.median(c, ops, subject).map_or_else(|| f.why_not(c, subject).into(), |v| Unit::Rate.show(v));
        let mut row = vec![place.name.to_string(), own];
        for &e in &others {
            row.push(match f.versus(c, ops, subject, e) {
                Some(r) if r < 1.0 => format!("{} <", ratio(r).replace('×', "x")),
                Some(r) => format!("{}  ", ratio(r).replace('×', "x")),
                None if f.median(c, ops, e).is_none() => f.why_not(c, e).into(),
                None if f.other_class(c, e).is_some() => "other class".into(),
                None => "-".into(),
            });
        }
        rows.push(row);
    }
    let _ = writeln!(
        out,
        "throughput of {name}, and how many times that of each other engine it is (`<`: slower)"
    );
    aligned(out, &titles, &rows);
    let _ = writeln!(out, "{}\n", words::verdict(f).replace('×', "x"));
}

fn rest(out: &mut String, f: &Figures<'_>) {
    for engine in &f.report.engines {
        if let Some(missing) = &engine.missing {
            let _ = writeln!(out, "{}: not run: {missing}", engine.name);
        }
    }
    for trouble in f.report.troubles() {
        let _ = writeln!(out, "{trouble}");
    }
    terms(out, f.report);
}

fn case_table(out: &mut String, f: &Figures<'_>, case: usize) {
    let place = &f.places[case];
    let per_batch = if place.phase.batch > 1 { "; latencies are of whole batches" } else { "" };
    let _ = writeln!(
        out,
        "{}: {} operations, {} threads, {} keys{per_batch}",
        place.name,
        thousands(place.phase.ops as f64),
        place.phase.threads,
        thousands(place.case.set.n as f64),
    );
    let mut rows: Vec<Vec<String>> = Vec::new();
    for (e, engine) in f.report.engines.iter().enumerate() {
        let mut row = vec![engine.name.clone()];
        if f.values(case, index("ops_per_s"), e).is_empty() {
            row.push(f.why_not(case, e).into());
        } else {
            row.extend(COLUMNS.iter().map(|(_, cell)| cell(f, case, e)));
        }
        rows.push(row);
    }
    // A column that is empty for every engine is left out.
    let used: Vec<usize> = (1..=COLUMNS.len())
        .filter(|&i| rows.iter().any(|r| r.get(i).is_some_and(|c| !c.is_empty())))
        .collect();
    let titles: Vec<String> =
        [0].iter().chain(&used).map(|&i| if i == 0 { "" } else { COLUMNS[i - 1].0 }.into()).collect();
    let pick = |row: &Vec<String>| {
        [0].iter().chain(&used).map(|&i| row.get(i).cloned().unwrap_or_default()).collect()
    };
    let rows: Vec<Vec<String>> = rows.iter().map(pick).collect();
    aligned(out, &titles, &rows);
}

/// The first column to the left, the others to the right.
pub(super) fn aligned(out: &mut String, titles: &[String], rows: &[Vec<String>]) {
    let width = |i: usize| {
        let cells = rows.iter().filter_map(|r| r.get(i)).chain(titles.get(i));
        cells.map(|c| c.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..titles.len()).map(width).collect();
    for row in std::iter::once(titles).chain(rows.iter().map(Vec::as_slice)) {
        let mut text = String::new();
        for (i, (cell, width)) in row.iter().zip(&widths).enumerate() {
            let _ = if i == 0 { write!(text, "  {cell:<width$}") } else { write!(text, "  {cell:>width$}") };
        }
        let _ = writeln!(out, "{}", text.trim_end());
    }
    out.push('\n');
}

fn terms(out: &mut String, report: &Report) {
    let m = &report.machine;
    let _ = writeln!(
        out,
        "machine: {}, {} threads, {} GB, {}, {}; load {:.1} at the start",
        m.cpu,
        m.threads,
        m.memory_bytes >> 30,
        m.kernel,
        m.file_system,
        m.load
    );
    if let Some(case) = report.cases.first() {
        let _ = writeln!(
            out,
            "terms: {}; medians of {} rounds, spread is (max - min) / median, ratios within a round",
            words::terms(case),
            report.rounds,
        );
    }
    if m.load > m.threads as f64 / 2.0 {
        let _ = writeln!(out, "warning: the machine was busy; figures are noise");
    }
}
