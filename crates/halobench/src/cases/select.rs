//! Some cases of a suite: `--filter`, and the list of what there is.

use super::Case;
use std::fmt::Write;

/// Whether `text` fits `glob`: `*` stands for any characters, `?` for one; several globs are parted by commas. A glob
/// without either fits every text that has it in it.
pub fn fits(glob: &str, text: &str) -> bool {
    glob.split(',').filter(|g| !g.is_empty()).any(|g| {
        if g.contains(['*', '?']) { fits_one(g.as_bytes(), text.as_bytes()) } else { text.contains(g) }
    })
}

fn fits_one(glob: &[u8], text: &[u8]) -> bool {
    match (glob.first(), text.first()) {
        (None, None) => true,
        (Some(b'*'), _) => fits_one(&glob[1..], text) || (!text.is_empty() && fits_one(glob, &text[1..])),
        (Some(b'?'), Some(_)) => fits_one(&glob[1..], &text[1..]),
        (Some(g), Some(t)) => g == t && fits_one(&glob[1..], &text[1..]),
        _ => false,
    }
}

/// The cases whose own name or whose reported phases fit. Of a database of which only some phases do, those before them
/// that change it are kept, unreported, so that the chosen ones find the same state; the others are left out.
pub fn filter(cases: Vec<Case>, glob: &str) -> Result<Vec<Case>, String> {
    let mut known: Vec<String> = Vec::new();
    let mut chosen = Vec::new();
    for mut case in cases {
        known.extend(case.reported().map(|p| p.case.clone()));
        if fits(glob, &case.name) && case.reported().all(|p| !fits(glob, &p.case)) {
            chosen.push(case);
            continue;
        }
        let Some(last) = case.phases.iter().rposition(|p| !p.case.is_empty() && fits(glob, &p.case)) else {
            continue;
        };
        case.phases.truncate(last + 1);
        case.phases.retain(|p| fits(glob, &p.case) || p.kind.changes() || p.background.is_some());
        for phase in case.phases.iter_mut().filter(|p| !fits(glob, &p.case)) {
            phase.case.clear();
        }
        chosen.push(case);
    }
    if chosen.is_empty() {
        return Err(format!("no case fits {glob:?}; there are {}", known.join(", ")));
    }
    Ok(chosen)
}

/// The cases with their sizes, as a table; then what a round of them comes to.
pub fn list(cases: &[Case]) -> String {
    let mut rows = vec![
        ["case", "does", "operations", "threads", "commit", "keys", "key B", "value B", "class", "database"]
            .map(String::from),
    ];
    let mut bytes = 0u128;
    for case in cases {
        let writes = case.phases.iter().filter(|p| p.kind.changes()).map(|p| u128::from(p.ops)).sum::<u128>();
        bytes += writes * (case.set.key_len + case.set.value_len) as u128;
        let loads = case.phases.len() - case.reported().count();
        for (i, phase) in case.reported().enumerate() {
            let mut does = format!("{:?}", phase.kind).to_lowercase();
            if phase.kind == crate::spec::Kind::Range {
                does += &format!(" of {}", phase.range_size);
            }
            if let Some(b) = phase.background {
                does += &format!(" beside {} writers", b.threads);
            }
            let mut ops = grouped(phase.ops);
            if phase.seconds > 0.0 {
                ops = format!("{} s", phase.seconds);
            }
            let database = match i {
                0 if loads > 0 => format!("{}, loaded", case.name),
                0 => case.name.clone(),
                _ => "the same".into(),
            };
            rows.push([
                phase.case.clone(),
                does,
                ops,
                phase.threads.to_string(),
                phase.batch.to_string(),
                grouped(case.set.n),
                case.set.key_len.to_string(),
                case.set.value_len.to_string(),
                if case.class_matters() {
                    format!("{:?}", case.config.durability).to_lowercase()
                } else {
                    "any".into()
                },
                database,
            ]);
        }
    }
    let widths: Vec<usize> =
        (0..rows[0].len()).map(|i| rows.iter().map(|r| r[i].len()).max().unwrap_or(0)).collect();
    let mut out = String::new();
    for row in &rows {
        let cells: Vec<String> = row
            .iter()
            .zip(&widths)
            .enumerate()
            .map(
                |(i, (cell, width))| {
                    if (2..8).contains(&i) { format!("{cell:>width$}") } else { format!("{cell:<width$}") }
                },
            )
            .collect();
        let _ = writeln!(out, "{}", cells.join("  ").trim_end());
    }
    let reported: usize = cases.iter().map(|c| c.reported().count()).sum();
    let _ = writeln!(
        out,
        "{reported} cases on {} databases; an engine writes {:.1} GB of keys and values a round",
        cases.len(),
        bytes as f64 / 1e9
    );
    out
}

/// `1234567` as `1,234,567`.
fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    out
}
