//! The figures for other programs: a line a case, engine and metric.

use super::Report;
use super::figures::Figures;
use super::metrics::METRICS;
use super::stats::{median, range};
use super::summary::number;

/// The header's columns. `ratio` is to the best peer, median of the rounds, above 1 is better; `state` is `ok` or why
/// there is no value.
pub const HEADER: [&str; 9] =
    ["case", "engine", "metric", "median", "min", "max", "rounds", "ratio_to_best_peer", "state"];

/// One line a case, engine and metric that has values, and one for each row that has none at all.
pub fn text(report: &Report) -> String {
    let figures = Figures::of(report);
    let mut out = ::csv::Writer::from_writer(Vec::new());
    let mut put = |fields: &[&str]| out.write_record(fields).expect("memory takes every write");
    put(&HEADER);
    for (c, place) in figures.places.iter().enumerate() {
        for (e, engine) in report.engines.iter().enumerate() {
            for (m, metric) in METRICS.iter().enumerate() {
                let values = figures.values(c, m, e);
                if let (Some(mid), Some((min, max))) = (median(&values), range(&values)) {
                    let ratio =
                        figures.ratio(c, m, e).map_or_else(String::new, |r| format!("{:.4}", r.median));
                    let [mid, min, max] = [mid, min, max].map(number);
                    let rounds = values.len().to_string();
                    put(&[place.name, &engine.name, metric.name, &mid, &min, &max, &rounds, &ratio, "ok"]);
                } else if m == 0 {
                    put(&[place.name, &engine.name, metric.name, "", "", "", "0", "", figures.why_not(c, e)]);
                }
            }
        }
    }
    let bytes = out.into_inner().expect("memory takes every write");
    String::from_utf8(bytes).expect("only text was written")
}
