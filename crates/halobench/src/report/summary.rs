//! The summary as tab-separated values: one line a case, metric and engine.

use super::Report;
use super::metrics::{METRICS, NULL, is_void, median};
use std::fmt::Write;

/// The header's columns.
pub const HEADER: &str = "case\tmetric\tengine\tvalue\tratio_to_best_peer";

/// `case, metric, engine, value, ratio to the best peer`. The value is the median of the rounds; the ratio says how
/// many times better than the best other engine of the same round (null is no peer): above 1 is better, for costs too.
/// A void or missing row has the words for it in place of the value.
pub fn tsv(report: &Report) -> String {
    let mut out = format!("{HEADER}\n");
    for case in report.case_names() {
        for metric in METRICS {
            for engine in &report.engines {
                let values = report.values(case, metric, &engine.name);
                let value = match median(&values) {
                    Some(v) => number(v),
                    None if metric.name == "ops_per_s" => why_not(report, case, &engine.name),
                    None => continue,
                };
                let ratio = if engine.name == NULL { None } else { report.ratio(case, metric, &engine.name) };
                let ratio = ratio.map_or_else(|| "-".into(), |r| format!("{r:.3}"));
                writeln!(out, "{case}\t{}\t{}\t{value}\t{ratio}", metric.name, engine.name)
                    .expect("a string takes every write");
            }
        }
    }
    out
}

/// Why an engine has no figure for a case.
pub fn why_not(report: &Report, case: &str, engine: &str) -> String {
    if report.engines.iter().any(|e| e.name == engine && e.missing.is_some()) {
        return "unavailable".into();
    }
    let holder = report.cases.iter().find(|c| c.phases.iter().any(|p| p.case == case));
    let mut runs =
        report.runs.iter().filter(|r| r.engine == engine && holder.is_some_and(|c| c.name == r.case));
    if runs.clone().any(is_void) {
        "VOID".into()
    } else if runs.any(|r| r.error.is_some()) {
        "FAILED".into()
    } else {
        "not run".into()
    }
}

/// Four significant digits, and all digits of large whole numbers.
fn number(v: f64) -> String {
    if v == 0.0 {
        "0".into()
    } else if v.abs() >= 1000.0 {
        format!("{v:.0}")
    } else {
        let digits = (3 - v.abs().log10().floor() as i32).clamp(0, 9) as usize;
        format!("{v:.digits$}")
    }
}
