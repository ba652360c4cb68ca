//! A case's card: bars of throughput and costs, places for the curves, and a table of all figures; and the cards of
//! families that differ in one knob.
//!
//! Bars are plain HTML: they need no script, print well, and a screen reader reads them as a list.

use super::escape::text as esc;
use super::grid;
use crate::report::figures::Figures;
use crate::report::groups::Family;
use crate::report::metrics::{METRICS, index, is_null};
use crate::report::stats::{median, range, spread};
use crate::report::units::{duration, ratio};
use crate::report::words;
use crate::spec::Latency;
use std::collections::BTreeSet;
use std::fmt::Write;

/// The card of a case.
pub fn card(o: &mut String, figures: &Figures<'_>, c: usize) {
    let place = &figures.places[c];
    let _ = writeln!(
        o,
        "<article class=\"case\" id=\"case-{c}\" aria-labelledby=\"t-{c}\"><h3 id=\"t-{c}\">{}</h3><p class=\"sub\">{}</p>\n<div class=\"panels\">",
        esc(place.name),
        esc(&words::phase(place.case, place.phase))
    );
    bars(o, figures, c, "Throughput", "median of the rounds; the line spans all of them", &["ops_per_s"]);
    let latency = if place.phase.batch > 1 { "Latency of a commit" } else { "Latency" };
    if has(figures, c, "p50_us") {
        chart(o, c, "curve", latency, "share of operations that were no slower");
    }
    if (0..figures.report.engines.len()).any(|e| figures.results(c, e).any(|(_, p)| p.series.len() > 2)) {
        chart(o, c, "time", "Throughput over time", "of the median round; stalls are dips");
    }
    bars(o, figures, c, "CPU per operation", "of all threads, background work included", &["cpu_us_per_op"]);
    let note = "dark: when the last operation was done; light: settled";
    bars(o, figures, c, "Bytes written per byte of data", note, &["write_amp_end", "write_amp_settled"]);
    bars(o, figures, c, "Space per byte of data", "on disk, settled", &["space_amp_settled"]);
    let note = "peak; dark: the process's own; light: and pages of mapped files";
    bars(o, figures, c, "Memory", note, &["anon_peak_mb", "file_peak_mb"]);
    bars(o, figures, c, "Reopening", "after a clean close", &["reopen_s"]);
    o.push_str("</div>\n");
    parts(o, figures, c);
    table(o, figures, c);
    notes(o, figures, c);
    o.push_str("</article>\n");
}

/// What else is to be known about the rows, an item for each note.
fn notes(o: &mut String, figures: &Figures<'_>, c: usize) {
    let case = &figures.places[c].case.name;
    let mut items = String::new();
    for e in grid::columns(figures) {
        let name = &figures.report.engines[e].name;
        for note in words::row_notes(figures.report, name, case) {
            let tag = format!("<span class=\"e{e} tag\">{}</span>", esc(name));
            let _ = writeln!(items, "<li>{tag}: {}</li>", esc(&note));
        }
    }
    if !items.is_empty() {
        let _ = writeln!(o, "<ul class=\"known\">{items}</ul>");
    }
}

/// Latencies of each sort of operation, where a phase has several: medians of the rounds.
fn parts(o: &mut String, figures: &Figures<'_>, c: usize) {
    let sound = |e: usize| figures.results(c, e).filter(move |_| !figures.is_void(c, e)).map(|(_, p)| p);
    let columns = grid::columns(figures);
    let sorts: BTreeSet<&str> =
        columns.iter().flat_map(|&e| sound(e)).flat_map(|p| p.parts.keys().map(String::as_str)).collect();
    if sorts.is_empty() {
        return;
    }
    let name = esc(figures.places[c].name);
    let _ = write!(
        o,
        "<details><summary>Latency by sort of operation</summary><div class=\"scroll\" tabindex=\"0\" role=\"region\" \
         aria-label=\"Latencies of {name} by sort of operation\"><table class=\"plain\"><caption class=\"unseen\">Latencies of \
         {name} by sort of operation</caption><thead><tr><th scope=\"col\">operation</th><th scope=\"col\">engine</th>"
    );
    let columns_of = ["p50", "p99", "p99.9", "max"];
    for title in columns_of {
        let _ = write!(o, "<th scope=\"col\" class=\"n\">{title}</th>");
    }
    o.push_str("</tr></thead><tbody>\n");
    for sort in sorts {
        for &e in &columns {
            let found: Vec<&Latency> =
                sound(e).filter_map(|p| p.parts.get(sort)).filter(|l| l.samples > 0).collect();
            if found.is_empty() {
                continue;
            }
            let _ = write!(
                o,
                "<tr><th scope=\"row\">{}</th><td><span class=\"e{e} tag\">{}</span></td>",
                esc(sort),
                esc(&figures.report.engines[e].name)
            );
            let of: [fn(&Latency) -> u64; 4] = [|l| l.p50_ns, |l| l.p99_ns, |l| l.p999_ns, |l| l.max_ns];
            for ns in of {
                let values: Vec<f64> = found.iter().map(|l| ns(l) as f64).collect();
                let _ = write!(
                    o,
                    "<td class=\"n\">{}</td>",
                    median(&values).map_or_else(|| "–".into(), duration)
                );
            }
            o.push_str("</tr>\n");
        }
    }
    o.push_str("</tbody></table></div></details>\n");
}

fn has(figures: &Figures<'_>, c: usize, metric: &str) -> bool {
    (0..figures.report.engines.len())
        .any(|e| !is_null(&figures.report.engines[e].name) && figures.median(c, index(metric), e).is_some())
}

fn chart(o: &mut String, c: usize, kind: &str, title: &str, note: &str) {
    let _ = writeln!(
        o,
        "<figure class=\"panel chart js\" data-chart=\"{kind}\" data-c=\"{c}\"><figcaption>{title} <small>{note}</small></figcaption><div class=\"plot\"></div></figure>"
    );
}

/// What the dark part shows, what both parts show, and the range of the rounds.
type Bar = (f64, f64, (f64, f64));

/// A bar an engine, the best one on top. A second metric is a lighter part: what it is more than the first, or for
/// memory, what comes on top of it.
fn bars(o: &mut String, figures: &Figures<'_>, c: usize, title: &str, note: &str, metrics: &[&str]) {
    if !metrics.iter().any(|m| has(figures, c, m)) {
        return;
    }
    let engines = &figures.report.engines;
    let first = index(metrics[0]);
    let stacked = metrics[0] == "anon_peak_mb";
    let value = |e: usize| -> Option<Bar> {
        let a = figures.median(c, first, e);
        let b = metrics.get(1).and_then(|m| figures.median(c, index(m), e));
        let dark = a.or(b)?;
        let both = if stacked { dark + b.unwrap_or(0.0) } else { b.unwrap_or(dark).max(dark) };
        let span = range(&figures.values(c, first, e)).unwrap_or((dark, dark));
        Some((dark, both, if metrics.len() > 1 { (both, both) } else { span }))
    };
    let mut rows: Vec<(usize, Option<Bar>)> = grid::columns(figures)
        .into_iter()
        .filter(|&e| !is_null(&engines[e].name))
        .map(|e| (e, value(e)))
        .collect();
    let sign = if METRICS[first].more_is_better { -1.0 } else { 1.0 };
    rows.sort_by(|a, b| {
        let key = |v: &Option<Bar>| v.map_or(f64::INFINITY, |v| sign * v.1);
        key(&a.1).total_cmp(&key(&b.1))
    });
    let top = rows.iter().filter_map(|(_, v)| v.map(|v| v.1.max(v.2.1))).fold(0.0, f64::max);
    let percent = |v: f64| if top > 0.0 { v * 100.0 / top } else { 0.0 };
    let unit = METRICS[first].unit;
    let _ = write!(
        o,
        "<figure class=\"panel\"><figcaption>{title} <small>{note}</small></figcaption><ul class=\"bars\">"
    );
    for (e, v) in rows {
        let other = if figures.other_class(c, e).is_some() { "† " } else { "" };
        let name = format!("{other}{}", esc(&engines[e].name));
        let Some((dark, both, (min, max))) = v else {
            let why = if figures.median(c, 0, e).is_none() { figures.why_not(c, e) } else { "–" };
            let class = if why == "VOID" { "void" } else { "none" };
            let _ = write!(
                o,
                "<li class=\"e{e}\" data-e=\"{e}\"><span class=\"who\">{name}</span><span class=\"track\"></span><span class=\"val {class}\">{why}</span></li>"
            );
            continue;
        };
        let light = if both > dark {
            format!("<i class=\"light\" style=\"width:{:.2}%\"></i>", percent(both - dark))
        } else {
            String::new()
        };
        let whisker = if max > min {
            format!("<u style=\"left:{:.2}%;width:{:.2}%\"></u>", percent(min), percent(max - min))
        } else {
            String::new()
        };
        let shown = match (metrics.len(), both > dark, stacked) {
            (2, true, true) => format!("{} + {}", unit.show(dark), unit.show(both - dark)),
            (2, true, false) if unit.show(dark) != unit.show(both) => {
                format!("{} → {}", unit.show(dark), unit.show(both))
            }
            _ => unit.show(dark),
        };
        let _ = write!(
            o,
            "<li class=\"e{e}\" data-e=\"{e}\"><span class=\"who\">{name}</span><span class=\"track\"><i style=\"width:{:.2}%\"></i>{light}{whisker}</span><span class=\"val\">{shown}</span></li>",
            percent(dark)
        );
    }
    o.push_str("</ul>");
    if metrics[0] == "ops_per_s" || metrics[0] == "cpu_us_per_op" {
        for (e, engine) in engines.iter().enumerate().filter(|(_, engine)| is_null(&engine.name)) {
            let Some(v) = figures.median(c, first, e) else { continue };
            let (name, shown) = (esc(&engine.name), unit.show(v));
            let _ = write!(o, "<p class=\"harness\">the harness alone (<code>{name}</code>): {shown}</p>");
        }
    }
    o.push_str("</figure>\n");
}

/// Every metric of every engine.
fn table(o: &mut String, figures: &Figures<'_>, c: usize) {
    let engines = &figures.report.engines;
    let columns = grid::columns(figures);
    let metrics: Vec<usize> =
        (0..METRICS.len()).filter(|&m| columns.iter().any(|&e| figures.median(c, m, e).is_some())).collect();
    let name = esc(figures.places[c].name);
    let _ = write!(
        o,
        "<details><summary>All figures</summary><div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"All figures of {name}; scrolls sideways\">\
         <table class=\"plain figures\"><caption class=\"unseen\">All figures of {name}: medians of the rounds</caption><thead><tr><th scope=\"col\">engine</th>"
    );
    for &m in &metrics {
        let _ = write!(o, "<th scope=\"col\" class=\"n\">{}</th>", METRICS[m].label);
        if m == 0 {
            o.push_str("<th scope=\"col\" class=\"n\">spread</th><th scope=\"col\" class=\"n\">to the best other</th>");
        }
    }
    o.push_str("</tr></thead><tbody>\n");
    for &e in &columns {
        let _ =
            write!(o, "<tr><th scope=\"row\"><span class=\"e{e} tag\">{}</span></th>", esc(&engines[e].name));
        if metrics.iter().all(|&m| figures.median(c, m, e).is_none()) {
            let why = figures.why_not(c, e);
            let class = if why == "VOID" { "void" } else { "none" };
            let _ = writeln!(o, "<td colspan=\"{}\" class=\"{class}\">{why}</td></tr>", metrics.len() + 2);
            continue;
        }
        for &m in &metrics {
            let shown = figures.median(c, m, e).map_or_else(|| "–".into(), |v| METRICS[m].unit.show(v));
            let _ = write!(o, "<td class=\"n\">{shown}</td>");
            if m == 0 {
                let s = spread(&figures.values(c, m, e))
                    .map_or_else(|| "–".into(), |s| format!("{:.0} %", s * 100.0));
                let r = figures.ratio(c, m, e).map_or_else(|| "–".into(), |r| ratio(r.median));
                let _ = write!(o, "<td class=\"n\">{s}</td><td class=\"n\">{r}</td>");
            }
        }
        o.push_str("</tr>\n");
    }
    o.push_str("</tbody></table></div></details>\n");
}

/// Families of cases that differ in one knob: a chart each, and the same as a table.
pub fn families(o: &mut String, figures: &Figures<'_>, families: &[Family]) {
    if families.is_empty() {
        return;
    }
    o.push_str("<section id=\"scaling\" aria-labelledby=\"h-scaling\"><h2 id=\"h-scaling\">Scaling</h2>\n<p class=\"lead\">Cases that differ in one knob alone: throughput by it.</p><div class=\"panels wide\">\n");
    let columns = grid::columns(figures);
    for (i, f) in families.iter().enumerate() {
        let _ = write!(
            o,
            "<article class=\"case\"><h3>{} <small>by {}</small></h3><figure class=\"chart js\" data-chart=\"scale\" data-c=\"{i}\"><figcaption class=\"unseen\">Throughput by {}</figcaption><div class=\"plot\"></div></figure>",
            esc(&f.name),
            f.knob.name(),
            f.knob.axis()
        );
        let _ = write!(
            o,
            "<details><summary>As a table</summary><div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Throughput by {0}\"><table class=\"plain\"><caption class=\"unseen\">Throughput by {0}</caption><thead><tr><th scope=\"col\">{0}</th>",
            f.knob.axis()
        );
        for &e in &columns {
            let _ = write!(o, "<th scope=\"col\" class=\"n\">{}</th>", esc(&figures.report.engines[e].name));
        }
        o.push_str("</tr></thead><tbody>");
        for &(x, c) in &f.points {
            let _ = write!(o, "<tr><th scope=\"row\">{x}</th>");
            for &e in &columns {
                let shown = figures
                    .median(c, 0, e)
                    .map_or_else(|| figures.why_not(c, e).into(), |v| METRICS[0].unit.show(v));
                let _ = write!(o, "<td class=\"n\">{shown}</td>");
            }
            o.push_str("</tr>");
        }
        o.push_str("</tbody></table></div></details></article>\n");
    }
    o.push_str("</div></section>\n");
}
