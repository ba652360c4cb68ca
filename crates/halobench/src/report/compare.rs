//! Two result files side by side: what got better, what got worse, and what cannot be compared.
//!
//! A figure is worse if its new median is worse than the worst round of the old file, and by more than 5 %, and by more
//! than the larger spread of the two. Better is the mirror image. The rule is meant to be quiet: three rounds on a
//! shared machine differ by 10 % without any cause. Figures that a handful of operations decide (p99.99, max) and
//! pages of mapped files, which the system lends as it likes, are shown but not judged.
//!
//! A case is compared only if its terms are the same in both files: everything in its database's plan up to and with
//! its own phase.

use super::Report;
use super::figures::{Figures, Place};
use super::metrics::{METRICS, Metric, is_null};
use super::stats::{median, range, spread};
use super::table::aligned;
use super::units::date;
use serde_json::Value;
use std::fmt::Write;

/// Changes below this share are never called better or worse.
pub const LEAST: f64 = 0.05;

/// Metrics that are shown and not judged.
const NOT_JUDGED: [&str; 3] = ["p99.99_us", "max_us", "file_peak_mb"];

/// What became of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// Worse, by the rule.
    Worse,
    /// Better, by the rule.
    Better,
    /// Within the noise, or not judged.
    Same,
}

/// A figure in both files.
#[derive(Clone, Debug)]
pub struct Change {
    /// The case.
    pub case: String,
    /// The engine.
    pub engine: String,
    /// The metric.
    pub metric: &'static Metric,
    /// Median of the old rounds.
    pub old: f64,
    /// Median of the new ones.
    pub new: f64,
    /// The larger spread of the two.
    pub spread: f64,
    /// What it is called.
    pub judgement: Judgement,
}

impl Change {
    /// New over old, less 1: -0.1 says 10 % less.
    pub fn relative(&self) -> f64 {
        self.new / self.old - 1.0
    }
}

impl std::fmt::Debug for Metric {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// Two files compared.
#[derive(Clone, Debug, Default)]
pub struct Comparison {
    /// Every figure that both have, of comparable cases.
    pub changes: Vec<Change>,
    /// Rows that had figures and now are void or failed: the worst of regressions.
    pub broken: Vec<String>,
    /// Cases in both files whose terms differ, with the differences.
    pub incomparable: Vec<(String, Vec<String>)>,
    /// Cases and engines that only one file has, machines and versions that differ.
    pub notes: Vec<String>,
    head: String,
}

/// Compares an old and a new result.
pub fn compare(old: &Report, new: &Report) -> Comparison {
    let (a, b) = (Figures::of(old), Figures::of(new));
    let mut out = Comparison { head: head(old, new), ..Comparison::default() };
    out.notes = surroundings(old, new);
    for (c, place) in a.places.iter().enumerate() {
        let Some(d) = b.case(place.name) else {
            out.notes.push(format!("{}: only in the old file", place.name));
            continue;
        };
        let differences = differences(place, &b.places[d]);
        if !differences.is_empty() {
            out.incomparable.push((place.name.into(), differences));
            continue;
        }
        for (e, engine) in old.engines.iter().enumerate() {
            if let Some(f) = b.engine(&engine.name) {
                row(&mut out, (&a, c, e), (&b, d, f));
            }
        }
    }
    for place in b.places.iter().filter(|p| a.case(p.name).is_none()) {
        out.notes.push(format!("{}: only in the new file", place.name));
    }
    out
}

type At<'a> = (&'a Figures<'a>, usize, usize);

fn row(out: &mut Comparison, (a, c, e): At<'_>, (b, d, f): At<'_>) {
    let (case, engine) = (a.places[c].name, a.report.engines[e].name.as_str());
    if a.other_class(c, e) != b.other_class(d, f) {
        out.notes.push(format!("{engine}, {case}: not compared: run in different durability classes"));
        return;
    }
    match (a.median(c, 0, e).is_some(), b.median(d, 0, f).is_some()) {
        (true, false) => {
            let why = b.why_not(d, f);
            let words = format!("{engine}, {case}: {why} in the new file");
            if matches!(why, "VOID" | "FAILED" | "not reached") { &mut out.broken } else { &mut out.notes }
                .push(words);
        }
        (false, true) => out.notes.push(format!("{engine}, {case}: {} in the old file", a.why_not(c, e))),
        (false, false) => {}
        (true, true) => {
            for (m, metric) in METRICS.iter().enumerate() {
                let (old, new) = (a.values(c, m, e), b.values(d, m, f));
                out.changes.extend(judge(case, engine, metric, &old, &new));
            }
        }
    }
}

/// The rule.
fn judge(case: &str, engine: &str, metric: &'static Metric, old: &[f64], new: &[f64]) -> Option<Change> {
    let (a, b) = (median(old)?, median(new)?);
    if a <= 0.0 || b <= 0.0 {
        return None;
    }
    let spread = spread(old)?.max(spread(new)?);
    let (min, max) = range(old)?;
    // How many times worse than before, and the old rounds in that direction.
    let (worse, worst, best) = if metric.more_is_better { (a / b, min, max) } else { (b / a, max, min) };
    let beyond = |limit: f64, up: bool| if up == metric.more_is_better { b > limit } else { b < limit };
    let far = |times: f64| times - 1.0 > LEAST.max(spread);
    let judgement = if NOT_JUDGED.contains(&metric.name) || is_null(engine) {
        Judgement::Same
    } else if far(worse) && beyond(worst, false) {
        Judgement::Worse
    } else if far(1.0 / worse) && beyond(best, true) {
        Judgement::Better
    } else {
        Judgement::Same
    };
    Some(Change { case: case.into(), engine: engine.into(), metric, old: a, new: b, spread, judgement })
}

/// How two cases' terms differ, as `path: old, now new`.
fn differences(old: &Place<'_>, new: &Place<'_>) -> Vec<String> {
    let mut out = Vec::new();
    diff("", &terms(old), &terms(new), &mut out);
    out
}

/// A case's terms: its database's, and the phases up to its own. Where a library was found is none of them.
fn terms(place: &Place<'_>) -> Value {
    let mut case = place.case.clone();
    case.config.rocksdb_lib = None;
    let own = case.phases.iter().position(|p| p.case == place.name).unwrap_or(case.phases.len());
    case.phases.truncate(own + 1);
    case.name.clear();
    serde_json::to_value(&case).unwrap_or_default()
}

fn diff(path: &str, old: &Value, new: &Value, out: &mut Vec<String>) {
    let join = |key: &str| if path.is_empty() { key.to_string() } else { format!("{path}.{key}") };
    match (old, new) {
        (Value::Object(a), Value::Object(b)) => {
            let null = Value::Null;
            let keys = a.keys().chain(b.keys().filter(|k| !a.contains_key(*k)));
            for key in keys {
                diff(&join(key), a.get(key).unwrap_or(&null), b.get(key).unwrap_or(&null), out);
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (i, (x, y)) in a.iter().zip(b).enumerate() {
                diff(&join(&i.to_string()), x, y, out);
            }
        }
        (Value::Array(a), Value::Array(b)) => {
            out.push(format!("{path}: {} of them, now {}", a.len(), b.len()))
        }
        _ if old != new => out.push(format!("{path}: {old}, now {new}")),
        _ => {}
    }
}

fn surroundings(old: &Report, new: &Report) -> Vec<String> {
    let mut notes = Vec::new();
    let (a, b) = (&old.machine, &new.machine);
    let pairs = [
        ("processor", a.cpu.clone(), b.cpu.clone()),
        ("threads", a.threads.to_string(), b.threads.to_string()),
        ("memory", (a.memory_bytes >> 30).to_string() + " GB", (b.memory_bytes >> 30).to_string() + " GB"),
        ("kernel", a.kernel.clone(), b.kernel.clone()),
        ("file system", a.file_system.clone(), b.file_system.clone()),
    ];
    for (what, x, y) in pairs.into_iter().filter(|(_, x, y)| x != y) {
        notes.push(format!("another machine: {what} {x:?}, now {y:?}; compare ratios, not absolute figures"));
    }
    for engine in &old.engines {
        match new.engines.iter().find(|e| e.name == engine.name) {
            None => notes.push(format!("{}: only in the old file", engine.name)),
            Some(e) if e.version != engine.version => {
                let version = |v: &Option<String>| v.clone().unwrap_or_else(|| "not here".into());
                notes.push(format!("{}: {}, now {}", e.name, version(&engine.version), version(&e.version)));
            }
            Some(_) => {}
        }
    }
    for engine in new.engines.iter().filter(|e| old.engines.iter().all(|o| o.name != e.name)) {
        notes.push(format!("{}: only in the new file", engine.name));
    }
    notes
}

fn head(old: &Report, new: &Report) -> String {
    let of =
        |r: &Report| format!("{}, halobench {}, {} rounds", date(r.started_unix_s), r.halobench, r.rounds);
    format!("old: {}\nnew: {}\n", of(old), of(new))
}

impl Comparison {
    /// Whether anything got worse by the rule, or broke.
    pub fn regressed(&self) -> bool {
        !self.broken.is_empty() || self.of(Judgement::Worse).next().is_some()
    }

    /// The figures of a judgement.
    pub fn of(&self, judgement: Judgement) -> impl Iterator<Item = &Change> {
        self.changes.iter().filter(move |c| c.judgement == judgement)
    }

    /// For people: what broke, what got worse, what got better, throughput of all rows, and what was not compared.
    pub fn text(&self) -> String {
        let mut out = self.head.clone();
        let _ = writeln!(
            out,
            "worse: the new median is worse than the worst old round, by more than {:.0} %, and by more than the larger \
             spread\n",
            LEAST * 100.0
        );
        for words in &self.broken {
            let _ = writeln!(out, "BROKEN: {words}");
        }
        for (judgement, title) in [(Judgement::Worse, "WORSE"), (Judgement::Better, "better")] {
            let rows: Vec<Vec<String>> = self.of(judgement).map(cells).collect();
            if !rows.is_empty() {
                let _ = writeln!(out, "{title}: {}", rows.len());
                aligned(&mut out, &TITLES.map(String::from), &rows);
            }
        }
        let same = self.of(Judgement::Same).count();
        let _ = writeln!(out, "{same} figures within the noise or not judged; throughput of these:");
        let ops = self.of(Judgement::Same).filter(|c| c.metric.name == "ops_per_s");
        aligned(&mut out, &TITLES.map(String::from), &ops.map(cells).collect::<Vec<_>>());
        for (case, differences) in &self.incomparable {
            let _ = writeln!(out, "not compared: {case}: its terms differ: {}", differences.join("; "));
        }
        for note in &self.notes {
            let _ = writeln!(out, "note: {note}");
        }
        let verdict = match (self.broken.len(), self.of(Judgement::Worse).count()) {
            (0, 0) if self.changes.is_empty() => "nothing could be compared".into(),
            (0, 0) => "no regression".into(),
            (0, n) => format!("{n} regressions"),
            (b, n) => format!("{b} rows broken, {n} regressions"),
        };
        let _ = writeln!(out, "{verdict}");
        out
    }
}

const TITLES: [&str; 7] = ["", "engine", "metric", "old", "new", "change", "spread"];

fn cells(c: &Change) -> Vec<String> {
    let show = |v| c.metric.unit.show(v);
    let (change, spread) = (format!("{:+.0}%", c.relative() * 100.0), format!("{:.0}%", c.spread * 100.0));
    vec![c.case.clone(), c.engine.clone(), c.metric.name.into(), show(c.old), show(c.new), change, spread]
}
