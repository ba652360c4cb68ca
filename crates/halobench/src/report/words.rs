//! Sentences about a run that several forms of the report share.

use super::figures::{Figures, Verdict};
use super::metrics::{METRICS, index};
use super::stats::{median, spread};
use super::units::{bytes, ratio, thousands};
use super::{Report, Run};
use crate::cases::Case;
use crate::engine::{Compression, Durability};
use crate::machine::Machine;
use crate::spec::{Kind, Phase};

/// What a run was: the suite's name, or the case's.
pub fn title(report: &Report) -> String {
    if let Some(suite) = &report.suite {
        return format!("the {suite} suite");
    }
    // Older files tell the suite in the command only.
    let mut args = report.command.iter();
    while let Some(arg) = args.next() {
        if arg == "--suite" {
            if let Some(name) = args.next() {
                return format!("the {name} suite");
            }
        } else if let Some(name) = arg.strip_prefix("--suite=") {
            return format!("the {name} suite");
        }
    }
    match report.case_names()[..] {
        [] => "nothing".into(),
        [one] => one.to_string(),
        ref many => format!("{} cases", many.len()),
    }
}

/// What was left out and why, what rows were run otherwise than asked, and what else is to be known about one: a line
/// for each engine and reason, with all cases that it is about; and whether the machine was busy.
pub fn notes(report: &Report) -> Vec<String> {
    let mut lines: Vec<(&str, String, Vec<&str>)> = Vec::new();
    for run in &report.runs {
        for words in run_notes(run) {
            let (engine, case) = (run.engine.as_str(), run.case.as_str());
            match lines.iter_mut().find(|(e, w, _)| *e == engine && *w == words) {
                Some((_, _, cases)) if cases.contains(&case) => {}
                Some((_, _, cases)) => cases.push(case),
                None => lines.push((engine, words, vec![case])),
            }
        }
    }
    let lines =
        lines.into_iter().map(|(engine, words, cases)| format!("{engine}, {}: {words}", cases.join(", ")));
    lines.chain(busy(&report.machine)).collect()
}

/// What is to be known about a run beside its figures.
fn run_notes(run: &Run) -> impl Iterator<Item = String> {
    let left_out = run.left_out.iter().map(|why| format!("left out: {why}"));
    let class = run.other_class.map(|c| {
        format!("run in another durability class, compared with nobody (†): commits survive {}", survives(c))
    });
    left_out.chain(class).chain(run.notes.iter().cloned())
}

/// The notes on an engine's row of a database, of all rounds, each once; and the most memory that it held under a limit.
pub fn row_notes(report: &Report, engine: &str, case: &str) -> Vec<String> {
    let runs = || report.runs.iter().filter(|r| r.engine == engine && r.case == case);
    let mut lines: Vec<String> = Vec::new();
    for words in runs().flat_map(run_notes) {
        if !lines.contains(&words) {
            lines.push(words);
        }
    }
    let peak = runs().filter_map(|r| r.limited_peak).max();
    lines.extend(
        peak.map(|p| format!("held at most {} under its memory limit, page cache included", bytes(p))),
    );
    lines
}

/// Above this share of the processors' time in other processes, figures are noisy.
const OTHERS: f64 = 0.1;
/// The same for other machines on the same hardware.
const STEAL: f64 = 0.02;

fn busy(machine: &Machine) -> Option<String> {
    (machine.others_share > OTHERS || machine.steal_share > STEAL).then(|| {
        format!(
            "warning: other processes used {:.0}% of the processors, other machines {:.0}%: figures are noisy",
            machine.others_share * 100.0,
            machine.steal_share * 100.0
        )
    })
}

/// What commits survive.
pub fn survives(durability: Durability) -> &'static str {
    match durability {
        Durability::None => "nothing, not even a killed process",
        Durability::Process => "a killed process, not power loss",
        Durability::Interval => "a killed process; power loss takes the last interval",
        Durability::Sync => "power loss",
    }
}

/// How values are compressed where the engine can.
pub fn compression(c: Compression) -> &'static str {
    match c {
        Compression::None => "none",
        Compression::Lz4 => "LZ4",
    }
}

/// How a kind of phase is called.
pub fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Write => "puts",
        Kind::Read => "gets",
        Kind::Mixed => "gets and puts at once",
        Kind::Delete => "removals",
        Kind::Seek => "seeks",
        Kind::Range => "ranges",
        Kind::Iterate => "entries of a pass",
        Kind::Mix => "operations of a mix",
    }
}

fn plural(n: usize, one: &str) -> String {
    if n == 1 { format!("1 {one}") } else { format!("{} {one}s", thousands(n as f64)) }
}

/// A phase in one line: what, how much, on how much, how.
pub fn phase(case: &Case, p: &Phase) -> String {
    let what = match p.kind {
        Kind::Range => format!("ranges of {}", p.range_size),
        k => kind(k).into(),
    };
    let mut parts = vec![
        format!("{} {what}", thousands(p.ops as f64)),
        plural(p.threads, "thread"),
        format!("{} keys of {} + {} B", thousands(case.set.n as f64), case.set.key_len, case.set.value_len),
    ];
    if matches!(p.kind, Kind::Write | Kind::Delete) {
        parts.push(if p.batch > 1 {
            format!("{} in a commit", thousands(p.batch as f64))
        } else {
            "each a commit".into()
        });
    }
    if let Some(m) = p.mix {
        let shares = [
            (m.read, "get"),
            (m.update, "overwrite"),
            (m.insert, "insert"),
            (m.scan, "scan"),
            (m.modify, "read-modify-write"),
        ];
        let shares: Vec<String> =
            shares.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} % {what}")).collect();
        parts.push(shares.join(", "));
        if m.latest {
            parts.push("newest keys preferred".into());
        }
    }
    if p.backward {
        parts.push("backwards".into());
    }
    if let Some(b) = p.background {
        let rate = if b.rate > 0.0 { format!("{} writes/s", thousands(b.rate)) } else { "full speed".into() };
        parts.push(format!("while {} write at {rate}", plural(b.threads, "thread")));
    }
    if p.rate > 0.0 {
        parts.push(format!("open loop, {} arrivals/s", thousands(p.rate)));
    }
    if p.seconds > 0.0 {
        parts.push(format!("at most {:.0} s", p.seconds));
    }
    if case.config.durability == Durability::Sync {
        parts.push("synced".into());
    }
    if let Some(limit) = case.memory_limit {
        parts.push(format!("in {} of memory", bytes(limit)));
    }
    parts.join(" · ")
}

/// The terms of a database in one line.
pub fn terms(case: &Case) -> String {
    let c = &case.config;
    format!(
        "commits survive {}; write buffer {}, cache {}, compression {}; keys {} B, values {} B ({:?})",
        survives(c.durability),
        bytes(c.write_buffer as u64),
        bytes(c.cache as u64),
        compression(c.compression),
        case.set.key_len,
        case.set.value_len,
        case.set.value_kind,
    )
}

/// How far throughput differed between rounds: the median spread and the worst one with its place, in words.
pub fn noise(figures: &Figures<'_>) -> Option<String> {
    let mut spreads = Vec::new();
    for (c, place) in figures.places.iter().enumerate() {
        for (e, engine) in figures.report.engines.iter().enumerate() {
            let values = figures.values(c, index("ops_per_s"), e);
            if values.len() > 1 {
                spreads.extend(spread(&values).map(|s| (s, place.name, engine.name.as_str())));
            }
        }
    }
    let middle = median(&spreads.iter().map(|s| s.0).collect::<Vec<_>>())?;
    let (worst, case, engine) = spreads.into_iter().max_by(|a, b| a.0.total_cmp(&b.0))?;
    Some(format!(
        "throughput of the same work differed between rounds by {:.0} % (median of all rows), at worst by {:.0} % \
         ({engine}, {case})",
        middle * 100.0,
        worst * 100.0
    ))
}

/// How the subject did against the best of the others, by a metric.
#[derive(Clone, Debug, Default)]
pub struct Score {
    /// Cases won, with the ratio.
    pub won: Vec<(String, f64)>,
    /// Cases within 5 %.
    pub even: Vec<(String, f64)>,
    /// Cases lost, with the ratio and to whom, worst first.
    pub lost: Vec<(String, f64, String)>,
}

/// The score of an engine.
pub fn score(figures: &Figures<'_>, metric: usize, engine: usize) -> Score {
    let mut score = Score::default();
    for (c, place) in figures.places.iter().enumerate() {
        let Some(r) = figures.ratio(c, metric, engine) else { continue };
        match r.verdict() {
            Verdict::Won => score.won.push((place.name.into(), r.median)),
            Verdict::Even => score.even.push((place.name.into(), r.median)),
            Verdict::Lost => {
                let to = figures.report.engines[r.peer].name.clone();
                score.lost.push((place.name.into(), r.median, to));
            }
        }
    }
    score.lost.sort_by(|a, b| a.1.total_cmp(&b.1));
    score
}

/// The run in a sentence or two: how often the subject is best, by how much, and what it loses.
pub fn verdict(figures: &Figures<'_>) -> String {
    let Some(subject) = figures.subject() else {
        return "No engine ran to an end, so there is nothing to compare.".into();
    };
    let name = &figures.report.engines[subject].name;
    let s = score(figures, index("ops_per_s"), subject);
    let compared = s.won.len() + s.even.len() + s.lost.len();
    if compared == 0 {
        return match (0..figures.places.len()).any(|c| figures.is_void(c, subject)) {
            true => format!("{name} gave wrong answers: its figures are void."),
            false => format!("{name} ran without a peer, so there are figures but no ratios."),
        };
    }
    let mut text =
        format!("By throughput {name} is ahead of every other engine in {} of {compared} cases", s.won.len());
    let won: Vec<f64> = s.won.iter().map(|w| w.1).collect();
    if let Some(m) = median(&won).filter(|_| won.len() > 1) {
        text += &format!(" (median {} the best of them)", ratio(m));
    }
    if !s.even.is_empty() {
        text += &format!(", even with the best in {}", s.even.len());
    }
    match s.lost.as_slice() {
        [] => text += "; it loses none.",
        lost => {
            let few: Vec<String> =
                lost.iter().take(3).map(|(case, r, to)| format!("{case} ({} of {to})", ratio(*r))).collect();
            let more = if lost.len() > 3 { format!(" and {} more", lost.len() - 3) } else { String::new() };
            text += &format!("; it loses {}: {}{more}.", lost.len(), few.join(", "));
        }
    }
    text + &behind(figures, subject)
}

/// The metrics but throughput in which most cases are lost, at most three.
fn behind(figures: &Figures<'_>, subject: usize) -> String {
    let mut lost: Vec<(&str, usize, usize)> = (1..METRICS.len())
        .map(|m| {
            let s = score(figures, m, subject);
            (METRICS[m].label, s.lost.len(), s.won.len() + s.even.len() + s.lost.len())
        })
        .filter(|(_, lost, _)| *lost > 0)
        .collect();
    // By share; of equal ones the first.
    lost.sort_by(|a, b| (b.1 * a.2).cmp(&(a.1 * b.2)));
    let few: Vec<String> =
        lost.iter().take(3).map(|(label, n, of)| format!("{label} ({n} of {of})")).collect();
    match few.as_slice() {
        [] => String::new(),
        _ => format!(" By other figures it is most often behind the best in {}.", few.join(", ")),
    }
}

/// What the marks of a grid mean.
pub fn metric_sentence(metric: usize) -> String {
    let m = &METRICS[metric];
    format!("{} {} is better.", m.help, if m.more_is_better { "More" } else { "Less" })
}

/// The command line, quoted for a shell, the program by its bare name.
pub fn command(report: &Report) -> String {
    let mut words = report.command.iter().enumerate().map(|(i, word)| {
        let word = if i == 0 { word.rsplit('/').next().unwrap_or(word) } else { word };
        let plain =
            !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || "-_=.,:/+%@".contains(c));
        if plain { word.to_string() } else { format!("'{}'", word.replace('\'', r"'\''")) }
    });
    let first = words.next().unwrap_or_else(|| "halobench".into());
    words.fold(first, |line, w| line + " " + &w)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_to_be_known_is_said_once_and_a_busy_machine_too() {
        let run = |case: &str| Run { engine: "e".into(), case: case.into(), ..Run::default() };
        let left_out = Run { left_out: Some("why".into()), ..run("c") };
        let limited = |peak| Run { notes: vec!["so".into()], limited_peak: Some(peak), ..run("d") };
        let runs = vec![left_out.clone(), left_out, limited(1 << 20), limited(2 << 20)];
        let mut report = Report { runs, ..Report::default() };
        assert_eq!(notes(&report), ["e, c: left out: why", "e, d: so"]);
        let row = row_notes(&report, "e", "d");
        assert!(row.len() == 2 && row[0] == "so" && row[1].contains(&bytes(2 << 20)), "{row:?}");
        assert!(row_notes(&report, "f", "d").is_empty());
        report.machine.others_share = 0.5;
        assert!(notes(&report)[2].contains("used 50% of the processors"));
    }
}
