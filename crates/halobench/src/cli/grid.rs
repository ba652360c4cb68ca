//! The grid: cases by engines, a cell the throughput and how it stands to the best peer's.

use halobench::report::Report;
use halobench::report::metrics::{METRICS, NULL, median};
use halobench::report::summary::why_not;
use std::fmt::Write;

/// The grid as text.
pub fn text(report: &Report) -> String {
    let throughput = &METRICS[0];
    let engines: Vec<&str> =
        report.engines.iter().filter(|e| e.missing.is_none()).map(|e| e.name.as_str()).collect();
    let mut rows = vec![
        std::iter::once("ops/s (times the best peer)")
            .chain(engines.iter().copied())
            .map(String::from)
            .collect::<Vec<_>>(),
    ];
    for case in report.case_names() {
        let mut row = vec![case.to_string()];
        for engine in &engines {
            row.push(match median(&report.values(case, throughput, engine)) {
                None => why_not(report, case, engine),
                Some(v) => {
                    let ratio = if *engine == NULL { None } else { report.ratio(case, throughput, engine) };
                    let other = if other_class(report, case, engine) { "*" } else { "" };
                    let ratio = ratio.map_or(String::new(), |r| format!(" ({r:.2})"));
                    format!("{}{other}{ratio}", short(v))
                }
            });
        }
        rows.push(row);
    }
    let width = |i: usize| rows.iter().map(|r| r[i].len()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..rows[0].len()).map(width).collect();
    let mut out = String::new();
    for row in &rows {
        let mut line = format!("{:<1$}", row[0], widths[0]);
        for (cell, width) in row.iter().zip(&widths).skip(1) {
            let _ = write!(line, "  {cell:>width$}");
        }
        let _ = writeln!(out, "{}", line.trim_end());
    }
    if report.runs.iter().any(|r| r.other_class.is_some()) {
        out.push_str("* in another durability class than the others\n");
    }
    out
}

/// What is missing, went wrong, or was left out, a line each, each once.
pub fn troubles(report: &Report) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for engine in &report.engines {
        lines.extend(engine.missing.iter().map(|why| format!("{}: not run: {why}", engine.name)));
    }
    lines.extend(report.troubles());
    for run in &report.runs {
        let words = run.left_out.iter().chain(&run.notes);
        for line in words.map(|words| format!("{}, {}: {words}", run.engine, run.case)) {
            if !lines.contains(&line) {
                lines.push(line);
            }
        }
    }
    if report.machine.others_share > 0.1 || report.machine.steal_share > 0.02 {
        lines.push(format!(
            "warning: other processes used {:.0}% of the processors and other machines {:.0}%: figures are noisy",
            report.machine.others_share * 100.0,
            report.machine.steal_share * 100.0
        ));
    }
    lines
}

fn other_class(report: &Report, case: &str, engine: &str) -> bool {
    report
        .runs
        .iter()
        .any(|r| r.engine == engine && r.other_class.is_some() && r.phases.iter().any(|p| p.case == case))
}

/// Three digits and a unit.
fn short(v: f64) -> String {
    let (v, unit) = match v {
        v if v >= 1e6 => (v / 1e6, "M"),
        v if v >= 1e3 => (v / 1e3, "k"),
        v => (v, ""),
    };
    let digits = if v >= 100.0 {
        0
    } else if v >= 10.0 {
        1
    } else {
        2
    };
    format!("{v:.digits$}{unit}")
}

#[cfg(test)]
mod tests {
    use super::short;

    #[test]
    fn numbers_are_short() {
        assert_eq!(
            [short(1_234_567.0), short(45_678.0), short(999.0), short(1.5)],
            ["1.23M", "45.7k", "999", "1.50"]
        );
    }
}
