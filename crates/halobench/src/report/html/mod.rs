//! One self-contained HTML page for a run.
//!
//! Everything is inside it: styles, the script, the chart library, the figures and the result file itself; a
//! content-security policy forbids it the network. Whatever can be text, tables and bars is made here, so that the page
//! says the same without scripts, in print and to a screen reader; the script (`assets/report.js`) adds the choice of
//! the metric, the curves and the details on demand. It computes no statistics: those come from
//! [`super::figures`], as the view of `data`.

mod case;
mod data;
mod escape;
mod grid;
mod terms;

use super::Report;
use super::figures::Figures;
use super::groups::{families, groups};
use super::units::date;
use super::words;
use escape::text as esc;
use std::fmt::Write;
use std::path::Path;

const STYLE: &str = include_str!("../../../assets/report.css");
const SCRIPT: &str = include_str!("../../../assets/report.js");
const CHARTS: &str = include_str!("../../../assets/vendor/uplot/uPlot.iife.min.js");
const CHARTS_STYLE: &str = include_str!("../../../assets/vendor/uplot/uPlot.min.css");

/// Writes the page to a file.
pub fn write(report: &Report, path: &Path) -> Result<(), String> {
    std::fs::write(path, page(report)).map_err(|e| format!("writing the page {}: {e}", path.display()))
}

/// The page.
pub fn page(report: &Report) -> String {
    let figures = Figures::of(report);
    let groups = groups(&figures);
    let families = families(&figures);
    let title = words::title(report);
    let mut out = String::with_capacity(1 << 19);
    let o = &mut out;
    put(o, "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
    put(o, "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n");
    put(o, "<meta name=\"color-scheme\" content=\"light dark\">\n");
    put(
        o,
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; \
         script-src 'unsafe-inline'; img-src data: blob:\">\n<link rel=\"icon\" href=\"data:,\">\n",
    );
    let _ = write!(o, "<title>{} · halobench</title>\n<style>\n{CHARTS_STYLE}\n{STYLE}", esc(&title));
    palette(o, report);
    put(o, "</style>\n</head>\n<body>\n");
    head(o, &figures, &title);
    put(o, "<main>\n");
    navigation(o, &groups, !families.is_empty(), terms::has_troubles(report));
    put(o, "<div class=\"overview\">\n");
    grid::section(o, &figures, &groups);
    grid::scores(o, &figures);
    put(o, "</div>\n");
    terms::troubles(o, report);
    // The switches stay in sight as long as there are charts.
    put(o, "<div class=\"charts\">\n");
    legend(o, &figures);
    for group in &groups {
        let _ = writeln!(
            o,
            "<section id=\"{0}\" aria-labelledby=\"h-{0}\"><h2 id=\"h-{0}\">{1}</h2>",
            group.id, group.name
        );
        for &c in &group.cases {
            case::card(o, &figures, c);
        }
        put(o, "</section>\n");
    }
    case::families(o, &figures, &families);
    put(o, "</div>\n");
    terms::method(o, &figures);
    terms::machine(o, &figures);
    terms::engines(o, report);
    terms::cases(o, &figures);
    terms::raw(o, report);
    put(o, "</main>\n<div id=\"tip\" role=\"tooltip\" hidden></div>\n");
    let view = data::view(&figures, &groups, &families).to_string();
    let _ = writeln!(o, "<script type=\"application/json\" id=\"view\">{}</script>", escape::json(&view));
    let raw = serde_json::to_string(report).unwrap_or_else(|e| format!("\"{e}\""));
    let _ = writeln!(o, "<script type=\"application/json\" id=\"result\">{}</script>", escape::json(&raw));
    let _ = writeln!(o, "<script>\n{CHARTS}\n</script>\n<script>\n{SCRIPT}</script>\n</body>\n</html>");
    out
}

fn put(out: &mut String, text: &str) {
    out.push_str(text);
}

/// Engine `i`'s colour is the palette's `i mod 12`-th, in light and in dark (`assets/report.css`); one that stores nothing is grey.
fn palette(out: &mut String, report: &Report) {
    for (i, engine) in report.engines.iter().enumerate() {
        let colour = if super::metrics::is_null(&engine.name) { "null".into() } else { (i % 12).to_string() };
        let _ = writeln!(out, ".e{i} {{ --c: var(--e{colour}); }}");
    }
}

fn head(o: &mut String, figures: &Figures<'_>, title: &str) {
    let report = figures.report;
    put(
        o,
        "<a class=\"skip\" href=\"#grid\">To the grid</a>\n<header>\n<div class=\"top\"><p class=\"brand\">halobench</p>",
    );
    put(
        o,
        "<button id=\"theme\" class=\"js\" type=\"button\" aria-label=\"Colours: as the system\">Colours: auto</button></div>\n",
    );
    let mut chars = title.chars();
    let capital: String = chars.next().into_iter().flat_map(char::to_uppercase).chain(chars).collect();
    let ran = report.engines.iter().filter(|e| e.missing.is_none()).count();
    let _ = writeln!(o, "<h1>{}</h1>", esc(&capital));
    let _ = writeln!(
        o,
        "<p class=\"what\">{} cases · {ran} engines · {} rounds · {} · {}, {} threads</p>",
        figures.places.len(),
        report.rounds,
        date(report.started_unix_s),
        esc(&report.machine.cpu),
        report.machine.threads
    );
    let _ = writeln!(o, "<p class=\"verdict\">{}</p>", esc(&words::verdict(figures)));
    if report.interrupted {
        put(o, "<p class=\"cut\"><strong>Interrupted</strong>: rounds, cases or engines are missing.</p>\n");
    }
    let troubles = report.troubles();
    if !troubles.is_empty() {
        let _ = writeln!(
            o,
            "<p class=\"alarm\"><a href=\"#troubles\"><strong>{}</strong>: wrong answers or failures void rows of this run.</a></p>",
            if troubles.len() == 1 { "1 trouble".into() } else { format!("{} troubles", troubles.len()) }
        );
    }
    put(o, "</header>\n");
}

fn navigation(o: &mut String, groups: &[super::groups::Group], scaling: bool, troubles: bool) {
    put(o, "<nav aria-label=\"Parts of this page\"><a href=\"#grid\">Grid</a>");
    if troubles {
        put(o, "<a href=\"#troubles\">Troubles and notes</a>");
    }
    for g in groups {
        let _ = write!(o, "<a href=\"#{}\">{}</a>", g.id, g.name);
    }
    if scaling {
        put(o, "<a href=\"#scaling\">Scaling</a>");
    }
    for (id, name) in [
        ("method", "Method"),
        ("machine", "Machine"),
        ("engines", "Engines"),
        ("cases", "Cases"),
        ("raw", "Data"),
    ] {
        let _ = write!(o, "<a href=\"#{id}\">{name}</a>");
    }
    put(o, "</nav>\n");
}

/// The engines' colours; with the script, also a switch for each.
fn legend(o: &mut String, figures: &Figures<'_>) {
    put(o, "<div class=\"legend\" role=\"group\" aria-label=\"Engines shown in the charts\">");
    for e in grid::columns(figures) {
        let name = esc(&figures.report.engines[e].name);
        let _ = write!(
            o,
            "<button type=\"button\" class=\"chip e{e}\" data-e=\"{e}\" aria-pressed=\"true\"><i></i>{name}</button>"
        );
    }
    put(o, "</div>\n");
}
