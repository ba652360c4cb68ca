//! What the page's script draws from: every figure as it is shown, nothing left to compute.

use super::grid;
use crate::report::figures::Figures;
use crate::report::groups::{Family, Group};
use crate::report::histogram::{QUANTILES, curve_of};
use crate::report::metrics::{METRICS, index, is_null};
use crate::report::stats::median;
use crate::report::words;
use crate::spec::PhaseResult;
use serde_json::{Value, json};

/// Points of a series over time; longer ones are thinned, see [`rates`].
const POINTS: usize = 400;

/// The whole view.
pub fn view(figures: &Figures<'_>, groups: &[Group], families: &[Family]) -> Value {
    let report = figures.report;
    let engines: Vec<Value> = report
        .engines
        .iter()
        .map(|e| json!({"name": e.name, "null": is_null(&e.name), "missing": e.missing.is_some()}))
        .collect();
    let metrics: Vec<Value> = METRICS
        .iter()
        .map(|m| json!({"name": m.name, "label": m.label, "help": m.help, "unit": m.unit.name(), "more": m.more_is_better}))
        .collect();
    let families: Vec<Value> = families
        .iter()
        .map(|f| json!({"name": f.name, "knob": f.knob.name(), "axis": f.knob.axis(), "points": f.points}))
        .collect();
    json!({
        "subject": figures.subject(),
        "rounds": report.rounds,
        "engines": engines,
        "columns": grid::columns(figures),
        "metrics": metrics,
        "quantiles": QUANTILES,
        "groups": groups.iter().map(|g| json!({"name": g.name, "cases": g.cases})).collect::<Vec<_>>(),
        "cases": (0..figures.places.len()).map(|c| case(figures, c)).collect::<Vec<_>>(),
        "families": families,
    })
}

fn case(figures: &Figures<'_>, c: usize) -> Value {
    let engines = 0..figures.report.engines.len();
    let cells: Vec<Vec<Value>> =
        (0..METRICS.len()).map(|m| engines.clone().map(|e| cell(figures, c, m, e)).collect()).collect();
    let why: Vec<Option<&str>> = engines
        .clone()
        .map(|e| figures.median(c, index("ops_per_s"), e).is_none().then(|| figures.why_not(c, e)))
        .collect();
    let other: Vec<Option<&str>> =
        engines.clone().map(|e| figures.other_class(c, e).map(words::survives)).collect();
    let sound = |e: usize| -> Vec<(u32, &PhaseResult)> {
        if figures.is_void(c, e) { Vec::new() } else { figures.results(c, e).collect() }
    };
    let curves: Vec<Value> = engines
        .clone()
        .map(|e| {
            let results: Vec<&PhaseResult> = sound(e).into_iter().map(|(_, p)| p).collect();
            curve_of(&results).map_or(Value::Null, |points| json!(points))
        })
        .collect();
    let over_time: Vec<Value> = engines.map(|e| typical(&sound(e)).map_or(Value::Null, rates)).collect();
    json!({
        "name": figures.places[c].name,
        "batch": figures.places[c].phase.batch,
        "cells": cells,
        "why": why,
        "other": other,
        "curves": curves,
        "time": over_time,
    })
}

/// Values of the rounds, the median in words, the ratio with its range and peer, and the subject's to this engine.
fn cell(figures: &Figures<'_>, c: usize, m: usize, e: usize) -> Value {
    let values: Vec<f64> = figures.values(c, m, e).into_iter().map(short).collect();
    let Some(mid) = figures.median(c, m, e) else { return Value::Null };
    let versus = figures.subject().filter(|&s| s != e).and_then(|s| figures.versus(c, m, s, e)).map(short);
    let ratio = figures
        .ratio(c, m, e)
        .map(|r| json!([short(r.median), short(r.min), short(r.max), r.peer, grid::shade(&r)]));
    json!([values, METRICS[m].unit.show(mid), ratio, versus])
}

/// Five digits are enough for a chart.
fn short(v: f64) -> f64 {
    format!("{v:.4e}").parse().unwrap_or(v)
}

/// The round whose throughput is the median one, or the nearest below.
fn typical<'a>(results: &[(u32, &'a PhaseResult)]) -> Option<&'a PhaseResult> {
    let mid = median(&results.iter().map(|(_, p)| p.ops_per_s).collect::<Vec<_>>())?;
    let off = |p: &PhaseResult| (p.ops_per_s - mid).abs();
    results.iter().map(|(_, p)| *p).min_by(|a, b| off(a).total_cmp(&off(b)))
}

/// Operations a second over time, as pairs: the end of an interval, and the rate within it; the first one twice. A long series is thinned so
/// that stalls stay: of neighbouring intervals, the slowest and the fastest are kept.
fn rates(result: &PhaseResult) -> Value {
    let mut before = (0.0, 0);
    let mut points: Vec<(f64, f64)> = Vec::new();
    for &(at, ops) in &result.series {
        if at > before.0 {
            points.push((at, (ops.saturating_sub(before.1)) as f64 / (at - before.0)));
            before = (at, ops);
        }
    }
    // The last interval may be a sliver, in which some threads were done already.
    if points.len() > 1 && points[points.len() - 1].0 - points[points.len() - 2].0 < points[0].0 / 2.0 {
        points.pop();
    }
    if points.len() < 2 {
        return Value::Null;
    }
    if points.len() > POINTS {
        points = points.chunks(points.len().div_ceil(POINTS / 2 - 1)).flat_map(extremes).collect();
    }
    // A point holds for the time before it: the first one from the start on.
    points.insert(0, (0.0, points[0].1));
    json!(points.into_iter().map(|(t, r)| [short(t), short(r)]).collect::<Vec<_>>())
}

/// The slowest and the fastest, in the order of time.
fn extremes(chunk: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let by_rate = |a: &&(f64, f64), b: &&(f64, f64)| a.1.total_cmp(&b.1);
    let (min, max) = (chunk.iter().min_by(by_rate), chunk.iter().max_by(by_rate));
    let mut kept: Vec<(f64, f64)> = min.into_iter().chain(max).copied().collect();
    kept.sort_by(|a, b| a.0.total_cmp(&b.0));
    kept.dedup();
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stall_survives_the_thinning() {
        let mut ops = 0;
        let series: Vec<(f64, u64)> = (1..=3000u32)
            .map(|s| {
                ops += if s == 1500 { 0 } else { 1000 };
                (f64::from(s), ops)
            })
            .collect();
        let view = rates(&PhaseResult { series, ..PhaseResult::default() });
        let points = view.as_array().unwrap();
        assert!(points.len() <= POINTS, "{}", points.len());
        assert!(points.contains(&json!([1500.0, 0.0])));
        assert_eq!(rates(&PhaseResult { series: vec![(0.9, 5)], ..PhaseResult::default() }), Value::Null);
    }
}
