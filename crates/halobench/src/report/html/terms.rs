//! What stands behind the figures: troubles, the method, the machine, the engines, the cases' terms, the data.

use super::escape::text as esc;
use crate::engine::Durability;
use crate::report::figures::Figures;
use crate::report::metrics::{METRICS, is_null};
use crate::report::stats::confidence;
use crate::report::units::{bytes, date, duration};
use crate::report::{Report, words};
use std::fmt::Write;

/// Whether there is anything to tell in [`troubles`].
pub fn has_troubles(report: &Report) -> bool {
    !report.troubles().is_empty() || !report.shortfalls().is_empty() || !words::notes(report).is_empty()
}

/// Wrong answers, failures, and rounds that are missing.
pub fn troubles(o: &mut String, report: &Report) {
    let (troubles, short, notes) = (report.troubles(), report.shortfalls(), words::notes(report));
    if !has_troubles(report) {
        return;
    }
    let title = if troubles.is_empty() { "Notes" } else { "Troubles" };
    let _ = writeln!(
        o,
        "<section id=\"troubles\" aria-labelledby=\"h-troubles\"><h2 id=\"h-troubles\">{title}</h2>"
    );
    if !troubles.is_empty() {
        o.push_str("<ul class=\"troubles\">");
        for t in &troubles {
            let (class, word) = if t.contains(": VOID: ") { ("void", "VOID") } else { ("failed", "FAILED") };
            let rest = t.replacen(&format!(" {word}: "), " ", 1);
            let _ = write!(o, "<li><span class=\"{class}\">{word}</span> {}</li>", esc(&rest));
        }
        o.push_str("</ul>\n<p>One wrong answer voids all figures of that engine on that database, in all rounds.</p>\n");
    }
    if !notes.is_empty() {
        o.push_str("<ul class=\"notes\">");
        for n in &notes {
            let _ = write!(o, "<li>{}</li>", esc(n));
        }
        o.push_str("</ul>\n");
    }
    if !short.is_empty() {
        let _ = write!(o, "<details><summary>Fewer rounds than asked for: {}</summary><ul>", short.len());
        for s in &short {
            let _ = write!(o, "<li>{}</li>", esc(s));
        }
        o.push_str("</ul></details>\n");
    }
    o.push_str("</section>\n");
}

/// What each figure means, in short.
pub fn method(o: &mut String, figures: &Figures<'_>) {
    let rounds = figures.report.rounds;
    let worth = confidence(rounds as usize) * 100.0;
    let _ = write!(
        o,
        "<section id=\"method\" aria-labelledby=\"h-method\"><h2 id=\"h-method\">Method</h2>\n<div class=\"prose\">\
         <p>Every engine ran every case in a process of its own, in an empty folder, on the same keys, values and order of \
         operations. Rounds interleaved (A B C, then C B A), so that a machine that slows down slows all alike. Figures are \
         medians of {rounds} rounds; engines are compared within a round, and the median of these ratios is shown. The range \
         of {rounds} rounds holds the true median with a probability of {worth:.0} %, so a small lead whose rounds disagree (◇) \
         is not a lead.</p>\
         <p>Every get was compared with the value it had to return, every range and pass checked for order and number, and the \
         state behind each writing phase and after a reopening checked in full. One wrong answer voids the row. Engines that \
         were asked the same must also agree on a digest of all they read and hold.</p>\
         <p>Percentiles come from HDR histograms of three digits, all rounds merged; a percentile that fewer than one operation \
         decides is left out. With several writes in a commit, a sample is the whole commit. Unless a case says that it is an \
         open loop, it is a closed one: an operation that waits delays those behind it. The engine <code>null</code> stores \
         nothing: it shows what the harness itself costs. The whole method: <code>docs/lab/method.md</code> of the \
         repository.</p></div>\n<dl class=\"metrics\">"
    );
    for (m, metric) in METRICS.iter().enumerate() {
        if figures.measured(m) {
            let _ = write!(o, "<div><dt>{}</dt><dd>{}</dd></div>", metric.label, metric.help);
        }
    }
    o.push_str("</dl></section>\n");
}

/// Where it ran, and how quiet it was there.
pub fn machine(o: &mut String, figures: &Figures<'_>) {
    let report = figures.report;
    let m = &report.machine;
    let load = format!("{:.2} when the run began, on {} threads", m.load, m.threads);
    let busy = m.load > m.threads as f64 / 2.0;
    let cores = if m.cores > 0 { format!(" on {} cores", m.cores) } else { String::new() };
    let limit =
        m.memory_limit_bytes.map_or_else(String::new, |n| format!(", of which {} may be used", bytes(n)));
    let mut rows = vec![
        ("processor", format!("{}, {} threads{cores}", m.cpu, m.threads)),
        ("memory", bytes(m.memory_bytes) + &limit),
        ("kernel", m.kernel.clone()),
        ("file system", m.file_system.clone()),
        ("device", m.device.clone()),
        ("frequency governor", m.governor.clone()),
        (
            "load",
            if busy { format!("{load}: it was busy, take ratios and not absolute figures") } else { load },
        ),
        ("noise", words::noise(figures).unwrap_or_else(|| "one round: unknown".into())),
    ];
    if m.others_share > 0.0 || m.steal_share > 0.0 {
        let (others, stolen) = (m.others_share * 100.0, m.steal_share * 100.0);
        rows.push(("others", format!("{others:.0} % of the processors' time went to other processes, {stolen:.0} % to other machines")));
    }
    if report.ended_unix_s > report.started_unix_s {
        let took = duration((report.ended_unix_s - report.started_unix_s) as f64 * 1e9);
        rows.push((
            "took",
            format!("{took}, from {} to {}", date(report.started_unix_s), date(report.ended_unix_s)),
        ));
    }
    rows.retain(|(_, words)| !words.is_empty());
    o.push_str("<section id=\"machine\" aria-labelledby=\"h-machine\"><h2 id=\"h-machine\">The machine</h2>\n<dl class=\"facts\">");
    for (name, value) in rows {
        let _ = write!(o, "<div><dt>{name}</dt><dd>{}</dd></div>", esc(&value));
    }
    o.push_str("</dl></section>\n");
}

/// Versions, durability classes (those that the run used in bold), and what each engine says about itself.
pub fn engines(o: &mut String, report: &Report) {
    o.push_str(
        "<section id=\"engines\" aria-labelledby=\"h-engines\"><h2 id=\"h-engines\">The engines</h2>\n<p class=\"lead\">What \
         commits survive is a class, the same for all engines of a case: nothing, a killed process, power loss at intervals, \
         power loss at once. How each engine gives it; in bold, what this run used.</p>\n<div class=\"scroll\" \
         tabindex=\"0\" role=\"region\" aria-label=\"The engines\"><table class=\"plain\"><caption class=\"unseen\">The \
         engines, their versions and how each gives a durability class</caption><thead><tr><th scope=\"col\">engine</th>\
         <th scope=\"col\">what it is</th><th scope=\"col\">version</th><th scope=\"col\">durability</th></tr></thead><tbody>\n",
    );
    for e in &report.engines {
        let version = match (&e.version, &e.missing) {
            (Some(v), _) => esc(v),
            (None, Some(_)) => "not here".into(),
            (None, None) => "–".into(),
        };
        let _ = write!(
            o,
            "<tr><th scope=\"row\">{}</th><td>{}</td><td>{version}</td><td><ul>",
            esc(&e.name),
            esc(&e.about)
        );
        for (class, how) in &e.classes {
            let used = report.cases.iter().any(|c| c.config.durability == *class);
            let name = match class {
                Durability::None => "nothing",
                Durability::Process => "killed process",
                Durability::Interval => "power loss, at intervals",
                Durability::Sync => "power loss",
            };
            let name = if used { format!("<b>{name}</b>") } else { name.into() };
            let _ = write!(o, "<li>{name}: {}</li>", esc(how));
        }
        o.push_str("</ul></td></tr>\n");
    }
    o.push_str("</tbody></table></div>\n");
    stats(o, report);
    o.push_str("</section>\n");
}

/// What the engines say about themselves, of the last round of each database.
fn stats(o: &mut String, report: &Report) {
    let mut rows = String::new();
    for case in &report.cases {
        for engine in report.engines.iter().filter(|e| !is_null(&e.name)) {
            let run = report.runs.iter().rfind(|r| r.engine == engine.name && r.case == case.name);
            let Some(phase) = run.and_then(|r| r.phases.iter().rfind(|p| !p.stats.is_empty())) else {
                continue;
            };
            let said: Vec<String> = phase
                .stats
                .iter()
                .map(|(k, v)| format!("<span class=\"stat\">{} <b>{}</b></span>", esc(k), esc(v)))
                .collect();
            let _ = writeln!(
                rows,
                "<tr><th scope=\"row\">{}</th><td>{}</td><td>{}</td></tr>",
                esc(&engine.name),
                esc(&phase.case),
                said.join(" ")
            );
        }
    }
    if !rows.is_empty() {
        let _ = writeln!(
            o,
            "<details><summary>What the engines say about themselves</summary><div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Engines' own statistics\"><table class=\"plain stats\">\
             <caption class=\"unseen\">Engines' own statistics behind the last phase of each database</caption><thead><tr><th scope=\"col\">engine</th><th scope=\"col\">behind</th><th scope=\"col\">what it says</th></tr></thead><tbody>\n{rows}</tbody></table></div></details>"
        );
    }
}

/// The terms of each case.
pub fn cases(o: &mut String, figures: &Figures<'_>) {
    o.push_str(
        "<section id=\"cases\" aria-labelledby=\"h-cases\"><h2 id=\"h-cases\">The cases</h2>\n<p class=\"lead\">Cases of one database run one behind the other on it. Terms are equal for all engines; where an engine has no such knob it keeps its own way.</p>\n",
    );
    for case in &figures.report.cases {
        let about = if case.about.is_empty() { String::new() } else { esc(&case.about) + ". " };
        let _ = write!(
            o,
            "<h3>{}</h3><p class=\"sub\">{about}{}</p><ol class=\"phases\">",
            esc(&case.name),
            esc(&words::terms(case))
        );
        for phase in &case.phases {
            let name = if phase.case.is_empty() { "load" } else { &phase.case };
            let settle = if phase.settle { "; then settled" } else { "" };
            let _ = write!(
                o,
                "<li><b>{}</b> {}, order {:?}{settle}</li>",
                esc(name),
                esc(&words::phase(case, phase)),
                phase.order
            );
        }
        o.push_str("</ol>\n");
    }
    o.push_str("</section>\n");
}

/// The command line, and the result file inside the page.
pub fn raw(o: &mut String, report: &Report) {
    let _ = writeln!(
        o,
        "<section id=\"raw\" aria-labelledby=\"h-raw\"><h2 id=\"h-raw\">Again, and the data</h2>\n<p class=\"lead\">This run, on your machine:</p><pre tabindex=\"0\"><code>{}</code></pre>\n\
         <p>Every figure of every round is inside this page, in the element <code>#result</code>, as the result file of halobench {} (format {}). \
         <button id=\"download\" class=\"js\" type=\"button\">Download it as JSON</button></p>\n<p class=\"fine\">Made {}. Charts are drawn by uPlot (MIT licence).</p></section>",
        esc(&words::command(report)),
        esc(&report.halobench),
        report.format,
        date(report.started_unix_s)
    );
}
