//! The grid as a Markdown table, for a README or a page of results.

use super::Report;
use super::figures::{EVEN, Figures, Verdict};
use super::metrics::{index, is_null};
use super::units::{Unit, date, ratio, thousands};
use super::words;
use std::fmt::Write;

/// Title, verdict, grid of throughput, what could not run, troubles, terms and the command.
pub fn text(report: &Report) -> String {
    let figures = Figures::of(report);
    let mut out = format!("# Measured: {}\n\n{}\n\n", words::title(report), words::verdict(&figures));
    grid(&mut out, &figures);
    let missing: Vec<_> =
        report.engines.iter().filter_map(|e| Some((&e.name, e.missing.as_ref()?))).collect();
    if !missing.is_empty() {
        out.push_str("Not run here:\n\n");
        for (name, how) in missing {
            let _ = writeln!(out, "- `{name}`: {}", line(how));
        }
        out.push('\n');
    }
    let troubles = report.troubles();
    if !troubles.is_empty() {
        out.push_str("**Troubles**\n\n");
        for t in troubles {
            let _ = writeln!(out, "- {}", line(&t));
        }
        out.push('\n');
    }
    let notes = words::notes(report);
    if !notes.is_empty() {
        out.push_str("Notes:\n\n");
        for note in notes {
            let _ = writeln!(out, "- {}", line(&note));
        }
        out.push('\n');
    }
    let m = &report.machine;
    let _ = writeln!(
        out,
        "{}, {} rounds; {}, {} threads, {} GB, {}, {}; load {:.1} at the start.",
        date(report.started_unix_s),
        report.rounds,
        m.cpu,
        m.threads,
        m.memory_bytes >> 30,
        m.kernel,
        m.file_system,
        m.load
    );
    if let Some(case) = report.cases.first() {
        let _ = writeln!(out, "Terms of the first case: {}.", words::terms(case));
    }
    if let Some(noise) = words::noise(&figures) {
        let _ = writeln!(out, "Noise: {noise}.");
    }
    let versions: Vec<String> = report
        .engines
        .iter()
        .filter(|e| !is_null(&e.name))
        .filter_map(|e| Some(format!("{} {}", e.name, e.version.as_ref()?)))
        .collect();
    let _ = writeln!(out, "Engines: {}.\n\n```sh\n{}\n```", versions.join(", "), words::command(report));
    out
}

/// The grid alone: cases by engines, throughput and its ratio to the best of the others.
pub fn grid(out: &mut String, figures: &Figures<'_>) {
    let report = figures.report;
    let ops = index("ops_per_s");
    let shown: Vec<usize> =
        (0..report.engines.len()).filter(|&e| report.engines[e].missing.is_none()).collect();
    let names: Vec<String> = shown.iter().map(|&e| cell(&report.engines[e].name)).collect();
    let _ = writeln!(out, "| case | {} |", names.join(" | "));
    let _ = writeln!(out, "|---|{}", "---:|".repeat(shown.len()));
    for (c, place) in figures.places.iter().enumerate() {
        let _ = write!(out, "| {} |", cell(place.name));
        for &e in &shown {
            let words = match (figures.median(c, ops, e), figures.ratio(c, ops, e)) {
                (None, _) => format!("**{}**", figures.why_not(c, e)),
                (Some(v), None) if figures.other_class(c, e).is_some() => format!("† {}", Unit::Rate.show(v)),
                (Some(v), None) => Unit::Rate.show(v),
                (Some(v), Some(r)) => {
                    let times = ratio(r.median);
                    let marked = match r.verdict() {
                        Verdict::Won => format!("**{times}** ▲"),
                        Verdict::Lost => format!("{times} ▼"),
                        Verdict::Even => format!("{times} ≈"),
                    };
                    format!("{marked}<br>{}", Unit::Rate.show(v))
                }
            };
            let _ = write!(out, " {words} |");
        }
        out.push('\n');
    }
    let _ = writeln!(
        out,
        "\nEach cell: throughput against the best of the other engines in the same round (median of {} rounds), and the \
         absolute figure below. ▲ won, ▼ lost, ≈ within {:.0} %; `null` stores nothing and is nobody's peer.\n",
        thousands(f64::from(report.rounds)),
        (EVEN - 1.0) * 100.0
    );
}

/// Nothing in a cell ends it.
fn cell(text: &str) -> String {
    line(text).replace('|', "\\|")
}

fn line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('<', "&lt;")
}
