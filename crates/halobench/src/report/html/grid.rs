//! The grid: cases by engines, each cell the ratio to the best peer; and how often the subject wins by each metric.

use super::escape::text as esc;
use crate::report::figures::{EVEN, Figures, Ratio, Verdict};
use crate::report::groups::Group;
use crate::report::metrics::{METRICS, index, is_null};
use crate::report::units::ratio;
use crate::report::words;
use std::fmt::Write;

/// The engines that have a column: those that could run, the subject first and `null` last.
pub fn columns(figures: &Figures<'_>) -> Vec<usize> {
    let engines = &figures.report.engines;
    let mut all: Vec<usize> = (0..engines.len()).filter(|&e| engines[e].missing.is_none()).collect();
    let subject = figures.subject();
    all.sort_by_key(|&e| (is_null(&engines[e].name), Some(e) != subject, e));
    all
}

/// A cell's class: won or lost in four steps, by the ratio.
pub fn shade(r: &Ratio) -> String {
    let times = r.median.max(1.0 / r.median);
    let step = match times {
        t if t < 1.5 => 1,
        t if t < 3.0 => 2,
        t if t < 10.0 => 3,
        _ => 4,
    };
    match r.verdict() {
        Verdict::Won => format!("w{step}"),
        Verdict::Lost => format!("l{step}"),
        Verdict::Even => "even".into(),
    }
}

/// The section with the grid of throughput. The script puts other metrics into the same cells.
pub fn section(o: &mut String, figures: &Figures<'_>, groups: &[Group]) {
    let columns = columns(figures);
    let engines = &figures.report.engines;
    o.push_str(
        "<section id=\"grid\" aria-labelledby=\"h-grid\"><h2 id=\"h-grid\">Every case, every engine</h2>\n",
    );
    controls(o, figures);
    o.push_str("<div class=\"scroll tall\" tabindex=\"0\" role=\"region\" aria-label=\"Grid of ratios; scrolls sideways\">");
    o.push_str("<table class=\"grid\"><caption id=\"caption\">Throughput against the best of the other engines</caption>");
    o.push_str("<thead><tr><th scope=\"col\" class=\"corner\">case</th>");
    for &e in &columns {
        let note = if is_null(&engines[e].name) { "<small>the harness alone</small>" } else { "" };
        let _ = write!(
            o,
            "<th scope=\"col\" data-e=\"{e}\"><span class=\"e{e} tag\">{}</span>{note}</th>",
            esc(&engines[e].name)
        );
    }
    o.push_str("</tr></thead>\n");
    for group in groups {
        let _ = writeln!(
            o,
            "<tbody><tr class=\"group\"><th scope=\"rowgroup\"><a href=\"#{}\">{}</a></th><td colspan=\"{}\"></td></tr>",
            group.id,
            group.name,
            columns.len()
        );
        for &c in &group.cases {
            let name = esc(figures.places[c].name);
            let _ = write!(o, "<tr data-c=\"{c}\"><th scope=\"row\"><a href=\"#case-{c}\">{name}</a></th>");
            for &e in &columns {
                cell(o, figures, c, e);
            }
            o.push_str("</tr>\n");
        }
        o.push_str("</tbody>\n");
    }
    o.push_str("<tfoot><tr><th scope=\"row\">best of all, cases</th>");
    let ops = index("ops_per_s");
    for &e in &columns {
        let s = words::score(figures, ops, e);
        let of = s.won.len() + s.even.len() + s.lost.len();
        let words = if of == 0 { "–".into() } else { format!("{} of {of}", s.won.len()) };
        let _ = write!(o, "<td data-e=\"{e}\">{words}</td>");
    }
    o.push_str("</tr></tfoot></table></div>\n");
    let other = figures.report.runs.iter().any(|r| r.other_class.is_some());
    let _ = writeln!(
        o,
        "<p class=\"key\"><span class=\"w3\">▲ won</span> <span class=\"even\">≈ within {:.0} %</span> <span class=\"l3\">▼ lost</span> \
         <span>◇ the rounds disagree</span> <span class=\"void\">VOID</span> a wrong answer.{} \
         A ratio is the median of the ratios within each round; above 1 is better, for costs too. Darker is further from 1.</p>",
        (EVEN - 1.0) * 100.0,
        if other { " <span>†</span> run in another durability class, compared with nobody." } else { "" }
    );
    missing(o, figures);
    o.push_str("</section>\n");
}

fn controls(o: &mut String, figures: &Figures<'_>) {
    o.push_str("<div class=\"controls js\"><label>Metric <select id=\"metric\">");
    for (m, metric) in METRICS.iter().enumerate() {
        if figures.measured(m) {
            let _ = write!(o, "<option value=\"{m}\">{}</option>", metric.label);
        }
    }
    o.push_str("</select></label>");
    if let Some(subject) = figures.subject() {
        let name = esc(&figures.report.engines[subject].name);
        let _ = write!(
            o,
            "<fieldset id=\"against\"><legend class=\"unseen\">Compared</legend>\
             <label><input type=\"radio\" name=\"against\" value=\"best\" checked><span>each to the best other</span></label>\
             <label><input type=\"radio\" name=\"against\" value=\"subject\"><span>{name} to each</span></label></fieldset>"
        );
    }
    let _ = writeln!(o, "<p id=\"help\">{}</p></div>", words::metric_sentence(0));
}

fn cell(o: &mut String, figures: &Figures<'_>, c: usize, e: usize) {
    let ops = index("ops_per_s");
    let Some(v) = figures.median(c, ops, e) else {
        let why = figures.why_not(c, e);
        let class = match why {
            "VOID" => "void",
            "FAILED" => "failed",
            _ => "none",
        };
        let _ = write!(o, "<td class=\"{class}\">{why}</td>");
        return;
    };
    let absolute = METRICS[ops].unit.show(v);
    match figures.ratio(c, ops, e) {
        Some(r) => {
            let mark = match r.verdict() {
                Verdict::Won => "▲",
                Verdict::Lost => "▼",
                Verdict::Even => "≈",
            };
            let unsure = if r.unsure() { " ◇" } else { "" };
            let _ = write!(
                o,
                "<td class=\"{}\"><b>{mark} {}{unsure}</b><small>{absolute}</small></td>",
                shade(&r),
                ratio(r.median)
            );
        }
        None => {
            let other = if figures.other_class(c, e).is_some() { "† " } else { "" };
            let _ = write!(o, "<td class=\"none\"><small>{other}{absolute}</small></td>");
        }
    }
}

/// The engines that could not run, and how to get them.
fn missing(o: &mut String, figures: &Figures<'_>) {
    let missing: Vec<_> =
        figures.report.engines.iter().filter_map(|e| Some((e, e.missing.as_ref()?))).collect();
    if missing.is_empty() {
        return;
    }
    o.push_str(
        "<div class=\"scroll\"><table class=\"plain missing\"><caption>Not run here</caption><thead><tr>",
    );
    o.push_str("<th scope=\"col\">engine</th><th scope=\"col\">what it is</th><th scope=\"col\">how to get it</th></tr></thead><tbody>");
    for (engine, how) in missing {
        let _ = write!(
            o,
            "<tr><th scope=\"row\">{}</th><td>{}</td><td>{}</td></tr>",
            esc(&engine.name),
            esc(&engine.about),
            esc(how)
        );
    }
    o.push_str("</tbody></table></div>\n");
}

/// For each metric, how many cases the subject wins and loses against the best of the others.
pub fn scores(o: &mut String, figures: &Figures<'_>) {
    let Some(subject) = figures.subject() else { return };
    let rows: Vec<(usize, words::Score)> = (0..METRICS.len())
        .map(|m| (m, words::score(figures, m, subject)))
        .filter(|(_, s)| s.won.len() + s.even.len() + s.lost.len() > 0)
        .collect();
    if rows.is_empty() {
        return;
    }
    let name = esc(&figures.report.engines[subject].name);
    let _ = write!(
        o,
        "<section id=\"scores\" aria-labelledby=\"h-scores\"><h2 id=\"h-scores\">{name} by metric</h2>\n<div class=\"scroll\">\
         <table class=\"plain scores\"><caption>Cases in which {name} is better, even or worse than the best of all others</caption>\
         <thead><tr><th scope=\"col\">metric</th><th scope=\"col\" class=\"n\">▲ won</th><th scope=\"col\" class=\"n\">≈ even</th>\
         <th scope=\"col\" class=\"n\">▼ lost</th><th scope=\"col\">of all</th></tr></thead><tbody>"
    );
    for (m, s) in rows {
        let (won, even, lost) = (s.won.len(), s.even.len(), s.lost.len());
        let share = |n: usize| n as f64 * 100.0 / (won + even + lost) as f64;
        let worst = s.lost.first().map_or(String::new(), |(case, r, to)| {
            format!("<small>worst: {} of {}, {}</small>", ratio(*r), esc(to), esc(case))
        });
        let _ = writeln!(
            o,
            "<tr><th scope=\"row\">{}{worst}</th><td class=\"n\">{won}</td><td class=\"n\">{even}</td><td class=\"n\">{lost}</td>\
             <td><span class=\"share\" aria-hidden=\"true\"><i class=\"w3\" style=\"width:{:.1}%\"></i>\
             <i class=\"even\" style=\"width:{:.1}%\"></i><i class=\"l3\" style=\"width:{:.1}%\"></i></span></td></tr>",
            METRICS[m].label,
            share(won),
            share(even),
            share(lost)
        );
    }
    o.push_str("</tbody></table></div></section>\n");
}
