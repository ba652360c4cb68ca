//! The summary as tab-separated values: one line a case, metric and engine.

use super::Report;
use super::figures::Figures;
use super::metrics::METRICS;
use std::fmt::Write;

/// The header's columns.
pub const HEADER: &str = "case\tmetric\tengine\tvalue\tratio_to_best_peer";

/// `case, metric, engine, value, ratio to the best peer`. The value is the median of the rounds; the ratio says how
/// many times better than the best other engine of the same round (null is no peer): above 1 is better, for costs too.
/// A void or missing row has the words for it in place of the value.
pub fn tsv(report: &Report) -> String {
    let mut out = format!("{HEADER}\n");
    let figures = Figures::of(report);
    for (c, place) in figures.places.iter().enumerate() {
        for (m, metric) in METRICS.iter().enumerate() {
            for (e, engine) in report.engines.iter().enumerate() {
                let value = match figures.median(c, m, e) {
                    Some(v) => number(v),
                    None if metric.name == "ops_per_s" => figures.why_not(c, e).into(),
                    None => continue,
                };
                let ratio = figures.ratio(c, m, e).map_or_else(|| "-".into(), |r| format!("{:.3}", r.median));
                writeln!(out, "{}\t{}\t{}\t{value}\t{ratio}", place.name, metric.name, engine.name)
                    .expect("a string takes every write");
            }
        }
    }
    out
}

/// Four significant digits, and all digits of large whole numbers.
pub fn number(v: f64) -> String {
    if v == 0.0 {
        "0".into()
    } else if v.abs() >= 1000.0 {
        format!("{v:.0}")
    } else {
        let digits = (3 - v.abs().log10().floor() as i32).clamp(0, 9) as usize;
        format!("{v:.digits$}")
    }
}
