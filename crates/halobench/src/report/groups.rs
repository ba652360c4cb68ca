//! Cases in groups: by what they do, and families that differ in a single knob (batch, threads, value size, range).

use super::figures::{Figures, Place};
use crate::spec::Kind;
use std::collections::BTreeMap;

/// A group of cases, by their places.
pub struct Group {
    /// For people.
    pub name: &'static str,
    /// For links.
    pub id: &'static str,
    /// Places of its cases, in the order of the plans.
    pub cases: Vec<usize>,
}

const GROUPS: [(&str, &str, &[Kind]); 5] = [
    ("Writes", "writes", &[Kind::Write]),
    ("Point reads", "reads", &[Kind::Read]),
    ("Seeks and scans", "scans", &[Kind::Seek, Kind::Range, Kind::Iterate]),
    ("Mixes", "mixes", &[Kind::Mixed, Kind::Mix]),
    ("Removals", "removals", &[Kind::Delete]),
];

/// The groups that have cases.
pub fn groups(figures: &Figures<'_>) -> Vec<Group> {
    GROUPS
        .iter()
        .map(|&(name, id, kinds)| {
            let cases = (0..figures.places.len())
                .filter(|&c| kinds.contains(&figures.places[c].phase.kind))
                .collect();
            Group { name, id, cases }
        })
        .filter(|g| !g.cases.is_empty())
        .collect()
}

/// A knob that a family of cases turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Knob {
    /// Writes in a commit.
    Batch,
    /// Threads.
    Threads,
    /// Bytes of a value.
    ValueSize,
    /// Entries in a range.
    RangeSize,
}

const KNOBS: [Knob; 4] = [Knob::Batch, Knob::Threads, Knob::ValueSize, Knob::RangeSize];

impl Knob {
    /// For people.
    pub fn name(self) -> &'static str {
        match self {
            Knob::Batch => "batch size",
            Knob::Threads => "threads",
            Knob::ValueSize => "value size",
            Knob::RangeSize => "range length",
        }
    }

    /// What an axis of it counts.
    pub fn axis(self) -> &'static str {
        match self {
            Knob::Batch => "writes in a commit",
            Knob::Threads => "threads",
            Knob::ValueSize => "bytes of a value",
            Knob::RangeSize => "entries of a range",
        }
    }

    fn of(self, place: &Place<'_>) -> u64 {
        match self {
            Knob::Batch => place.phase.batch,
            Knob::Threads => place.phase.threads as u64,
            Knob::ValueSize => place.case.set.value_len as u64,
            Knob::RangeSize => u64::from(place.phase.range_size),
        }
    }
}

/// Cases that differ in one knob alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Family {
    /// Which.
    pub knob: Knob,
    /// What their names have in common.
    pub name: String,
    /// The knob's values, rising, and the case of each.
    pub points: Vec<(u64, usize)>,
}

/// Everything about a case but the knobs, and but what is scaled along with them: the number of operations and keys.
fn terms(place: &Place<'_>, without: Knob) -> String {
    let (case, p) = (place.case, place.phase);
    let before: Vec<String> = case
        .phases
        .iter()
        .take_while(|q| q.case != p.case)
        .filter(|q| q.kind.changes())
        .map(|q| format!("{:?} {:?}", q.kind, q.order))
        .collect();
    let knobs: Vec<u64> = KNOBS
        .iter()
        .filter(|&&k| k != without && (k != Knob::RangeSize || matches!(p.kind, Kind::Range | Kind::Mix)))
        .map(|k| k.of(place))
        .collect();
    let (c, s) = (&case.config, &case.set);
    format!(
        "{:?} {:?} {} {} {} {:?} {:?} | {knobs:?} | {before:?} | {} {} {:?} {:?} | {:?} {} {:?}",
        p.kind,
        p.order,
        p.backward,
        p.rate,
        p.seconds,
        p.mix,
        p.background,
        c.write_buffer,
        c.cache,
        c.durability,
        c.compression,
        s.encoding,
        s.key_len,
        s.value_kind,
    )
}

/// All families of two cases and more.
pub fn families(figures: &Figures<'_>) -> Vec<Family> {
    let mut out = Vec::new();
    for knob in KNOBS {
        let mut by_terms: BTreeMap<String, Vec<(u64, usize)>> = BTreeMap::new();
        for (c, place) in figures.places.iter().enumerate() {
            let kind = place.phase.kind;
            let turns = match knob {
                Knob::Batch => matches!(kind, Kind::Write | Kind::Delete),
                Knob::RangeSize => kind == Kind::Range,
                Knob::Threads | Knob::ValueSize => true,
            };
            if turns {
                by_terms.entry(terms(place, knob)).or_default().push((knob.of(place), c));
            }
        }
        let mut of_knob: Vec<Family> = Vec::new();
        for mut points in by_terms.into_values() {
            points.sort_unstable();
            points.dedup_by_key(|p| p.0);
            if points.len() > 1 {
                let names: Vec<&str> = points.iter().map(|&(_, c)| figures.places[c].name).collect();
                of_knob.push(Family { knob, name: common(&names), points });
            }
        }
        of_knob.sort_by_key(|f| f.points.iter().map(|p| p.1).min());
        out.extend(of_knob);
    }
    out
}

/// The words that all names share.
fn common(names: &[&str]) -> String {
    let first = names.first().copied().unwrap_or("");
    let shared: Vec<&str> =
        first.split('-').filter(|word| names.iter().all(|n| n.split('-').any(|w| w == *word))).collect();
    shared.join("-")
}
