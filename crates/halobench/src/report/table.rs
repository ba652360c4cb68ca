//! The report for people: a table a case, then what went wrong, then the terms.

use super::Report;
use super::metrics::{METRICS, Metric, NULL, median, spread};
use super::summary::why_not;
use std::fmt::Write;

/// A column: its title, and an engine's cell of a case.
type Column = (&'static str, fn(&Report, &str, &str) -> String);

const COLUMNS: &[Column] = &[
    ("ops/s", |r, c, e| cell(r, c, e, "ops_per_s", thousands)),
    ("spread", |r, c, e| {
        spread(&r.values(c, metric("ops_per_s"), e)).map_or(String::new(), |s| format!("{:.0}%", s * 100.0))
    }),
    ("vs best peer", |r, c, e| {
        let ratio = if e == NULL { None } else { r.ratio(c, metric("ops_per_s"), e) };
        ratio.map_or(String::new(), |x| format!("{x:.2}x"))
    }),
    ("p50", |r, c, e| cell(r, c, e, "p50_us", micros)),
    ("p99", |r, c, e| cell(r, c, e, "p99_us", micros)),
    ("p99.9", |r, c, e| cell(r, c, e, "p99.9_us", micros)),
    ("max", |r, c, e| cell(r, c, e, "max_us", micros)),
    ("cpu us/op", |r, c, e| cell(r, c, e, "cpu_us_per_op", |v| format!("{v:.2}"))),
    ("wamp end", |r, c, e| cell(r, c, e, "write_amp_end", |v| format!("{v:.2}"))),
    ("settled", |r, c, e| cell(r, c, e, "write_amp_settled", |v| format!("{v:.2}"))),
    ("settle", |r, c, e| cell(r, c, e, "settle_s", |v| format!("{v:.1}s"))),
    ("space", |r, c, e| cell(r, c, e, "space_amp_settled", |v| format!("{v:.2}"))),
    ("reopen", |r, c, e| cell(r, c, e, "reopen_s", |v| format!("{:.0}ms", v * 1e3))),
    ("anon MB", |r, c, e| cell(r, c, e, "anon_peak_mb", |v| format!("{v:.0}"))),
    ("file MB", |r, c, e| cell(r, c, e, "file_peak_mb", |v| format!("{v:.0}"))),
];

fn metric(name: &str) -> &'static Metric {
    METRICS.iter().find(|m| m.name == name).unwrap_or(&METRICS[0])
}

fn cell(report: &Report, case: &str, engine: &str, name: &str, show: fn(f64) -> String) -> String {
    median(&report.values(case, metric(name), engine)).map_or_else(String::new, show)
}

/// `1234567` as `1,234,567`.
fn thousands(v: f64) -> String {
    let digits = format!("{v:.0}");
    let mut out = String::new();
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    out
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

/// The whole report.
pub fn text(report: &Report) -> String {
    let mut out = String::new();
    for case in report.case_names() {
        case_table(&mut out, report, case);
    }
    for engine in &report.engines {
        if let Some(missing) = &engine.missing {
            let _ = writeln!(out, "{}: not run: {missing}", engine.name);
        }
    }
    for trouble in report.troubles() {
        let _ = writeln!(out, "{trouble}");
    }
    terms(&mut out, report);
    out
}

fn case_table(out: &mut String, report: &Report, case: &str) {
    let phase =
        report.cases.iter().flat_map(|c| c.phases.iter().map(move |p| (c, p))).find(|(_, p)| p.case == case);
    if let Some((c, p)) = phase {
        let per_batch = if p.batch > 1 { "; latencies are of whole batches" } else { "" };
        let _ = writeln!(
            out,
            "{case}: {} operations, {} threads, {} keys{per_batch}",
            thousands(p.ops as f64),
            p.threads,
            thousands(c.set.n as f64),
        );
    }
    let mut rows: Vec<Vec<String>> = Vec::new();
    for engine in &report.engines {
        let mut row = vec![engine.name.clone()];
        if report.values(case, metric("ops_per_s"), &engine.name).is_empty() {
            row.push(why_not(report, case, &engine.name));
        } else {
            row.extend(COLUMNS.iter().map(|(_, cell)| cell(report, case, &engine.name)));
        }
        rows.push(row);
    }
    // A column that is empty for every engine is left out.
    let used: Vec<usize> = (1..=COLUMNS.len())
        .filter(|&i| rows.iter().any(|r| r.get(i).is_some_and(|c| !c.is_empty())))
        .collect();
    let titles: Vec<&str> = std::iter::once("").chain(used.iter().map(|&i| COLUMNS[i - 1].0)).collect();
    let cells = |row: &Vec<String>| -> Vec<String> {
        std::iter::once(0)
            .chain(used.iter().copied())
            .map(|i| row.get(i).cloned().unwrap_or_default())
            .collect()
    };
    let rows: Vec<Vec<String>> = rows.iter().map(cells).collect();
    let widths: Vec<usize> = (0..titles.len())
        .map(|i| rows.iter().map(|r| r[i].len()).chain([titles[i].len()]).max().unwrap_or(0))
        .collect();
    line(out, &titles, &widths);
    for row in &rows {
        line(out, row, &widths);
    }
    out.push('\n');
}

/// The first column to the left, the others to the right.
fn line<S: AsRef<str>>(out: &mut String, cells: &[S], widths: &[usize]) {
    let mut text = String::new();
    for (i, (cell, width)) in cells.iter().zip(widths).enumerate() {
        let cell = cell.as_ref();
        let _ = if i == 0 { write!(text, "  {cell:<width$}") } else { write!(text, "  {cell:>width$}") };
    }
    let _ = writeln!(out, "{}", text.trim_end());
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
        let c = &case.config;
        let _ = writeln!(
            out,
            "terms: commits survive {}; write buffer {} MB, cache {} MB, compression {:?}; keys {} B, values {} B ({:?}); \
             medians of {} rounds, spread is (max - min) / median, ratios within a round",
            match c.durability {
                crate::engine::Durability::None => "nothing, not even a killed process",
                crate::engine::Durability::Process => "a killed process, not power loss",
                crate::engine::Durability::Interval => "a killed process; power loss takes the last interval",
                crate::engine::Durability::Sync => "power loss",
            },
            c.write_buffer >> 20,
            c.cache >> 20,
            c.compression,
            case.set.key_len,
            case.set.value_len,
            case.set.value_kind,
            report.rounds,
        );
    }
    if m.load > m.threads as f64 / 2.0 {
        let _ = writeln!(out, "warning: the machine was busy; figures are noise");
    }
}
