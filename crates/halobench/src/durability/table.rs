//! The table for people, as text and as Markdown.

use super::{Row, Table, Verdict, claim};
use crate::engine::Durability;
use std::fmt::Write;

/// A class's name on the command line.
pub fn class(class: Durability) -> &'static str {
    match class {
        Durability::None => "none",
        Durability::Process => "process",
        Durability::Interval => "interval",
        Durability::Sync => "sync",
    }
}

const TITLES: [&str; 13] = [
    "engine",
    "class",
    "setting",
    "kills",
    "acknowledged",
    "lost",
    "torn",
    "order broken",
    "wrong",
    "failed opens",
    "reopen",
    "syncs/commit",
    "verdict",
];

/// Columns before this one are words, aligned to the left; so is the last.
const WORDS: usize = 3;

fn cells(row: &Row) -> [String; 13] {
    let tested = row.kills > 0;
    let number = |n: u64| if tested { thousands(n) } else { String::new() };
    let ms = |s: f64| format!("{:.1}", s * 1e3);
    let reopen = if row.reopen_max_s > 0.0 {
        format!("{} / {} ms", ms(row.reopen_median_s), ms(row.reopen_max_s))
    } else {
        String::new()
    };
    [
        row.engine.clone(),
        class(row.class).into(),
        row.setting.clone(),
        number(row.kills.into()),
        number(row.acked),
        number(row.lost),
        number(row.torn),
        number(row.holes),
        number(row.wrong + row.disagreements),
        number(row.failed_opens.into()),
        reopen,
        syncs(row),
        verdict(row),
    ]
}

/// A group of commits may share a sync; with one thread there is nobody to share it with.
fn syncs(row: &Row) -> String {
    match &row.syncs {
        None => String::new(),
        Some(s) if row.class == Durability::Interval => {
            format!("{:.1} a second", s.safe() as f64 / s.seconds.max(1e-9))
        }
        Some(s) if s.safe() == 0 => "0".into(),
        Some(s) => {
            let each = s.safe() as f64 / s.commits.max(1) as f64;
            if each < 0.01 { "< 0.01".into() } else { format!("{each:.2}") }
        }
    }
}

fn verdict(row: &Row) -> String {
    match row.verdict {
        Verdict::Missing => "not here".into(),
        Verdict::Untested => "not tested".into(),
        Verdict::AsClaimed => "as claimed".into(),
        Verdict::Better => "better than claimed".into(),
        Verdict::Worse => "WORSE than claimed".into(),
    }
}

/// `1234567` as `1,234,567`.
fn thousands(n: u64) -> String {
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

/// What is to be said about single rows.
fn remarks(table: &Table) -> Vec<String> {
    let mut out = Vec::new();
    for row in &table.rows {
        let mut said: Vec<String> = row.notes.clone();
        said.extend(row.error.clone());
        said.extend(row.syncs_missing.as_ref().map(|e| format!("syncs not counted: {e}")));
        if let Some(s) = &row.syncs {
            if s.synchronous_opens > 0 {
                let n = s.synchronous_opens;
                said.push(format!("opened {n} files with O_DSYNC, whose writes sync and are not counted"));
            }
            if s.io_uring {
                said.push("uses io_uring, whose syncs are not counted".into());
            }
            if s.ranges > 0 {
                said.push(format!("{} calls of sync_file_range, which are no syncs", s.ranges));
            }
        }
        if !row.examples.is_empty() {
            said.push(format!("for example: {}", row.examples.join("; ")));
        }
        if !said.is_empty() {
            out.push(format!("{} {}: {}", row.engine, class(row.class), said.join("; ")));
        }
    }
    out
}

fn heading(table: &Table) -> String {
    let interrupted = if table.interrupted { "; stopped before its end" } else { "" };
    format!(
        "Kills at random moments up to {} ms behind an open (one in {} while opening), {} threads, single puts and batches \
         of {}, {} KiB of memtable, seed {}; {}, kernel {}{interrupted}.",
        table.longest_ms,
        super::kills::WHILE_OPENING,
        table.threads,
        table.batch,
        table.write_buffer >> 10,
        table.seed,
        table.machine.file_system,
        table.machine.kernel,
    )
}

fn legend(table: &Table) -> impl Iterator<Item = String> {
    let all = [Durability::None, Durability::Process, Durability::Interval, Durability::Sync];
    let used: Vec<_> = all.into_iter().filter(|c| table.rows.iter().any(|r| r.class == *c)).collect();
    used.into_iter().map(|c| format!("{}: {}", class(c), claim(c)))
}

/// The table as text.
pub fn text(table: &Table) -> String {
    let mut lines = vec![TITLES.map(String::from)];
    lines.extend(table.rows.iter().map(cells));
    let widths: Vec<usize> =
        (0..TITLES.len()).map(|i| lines.iter().map(|l| l[i].chars().count()).max().unwrap_or(0)).collect();
    let mut out = heading(table) + "\n\n";
    for line in &lines {
        let mut shown = String::new();
        for (i, (cell, &width)) in line.iter().zip(&widths).enumerate() {
            let _ = match i {
                0 => write!(shown, "{cell:<width$}"),
                i if i < WORDS || i == TITLES.len() - 1 => write!(shown, "  {cell:<width$}"),
                _ => write!(shown, "  {cell:>width$}"),
            };
        }
        out.push_str(shown.trim_end());
        out.push('\n');
    }
    out.push('\n');
    for line in remarks(table).into_iter().chain(legend(table)) {
        out.push_str(&line);
        out.push('\n');
    }
    out
}

/// The table as Markdown.
pub fn markdown(table: &Table) -> String {
    let row = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let mut out = heading(table) + "\n\n";
    out.push_str(&row(&TITLES.map(String::from)));
    out.push_str(&row(&std::array::from_fn::<_, 13, _>(|i| {
        let words = i < WORDS || i == TITLES.len() - 1;
        if words { "---".into() } else { "--:".into() }
    })));
    for r in &table.rows {
        let mut cells = cells(r).map(|c| c.replace('|', "\\|"));
        if !cells[2].is_empty() {
            cells[2] = format!("`{}`", cells[2]);
        }
        if r.verdict == Verdict::Worse {
            cells[12] = format!("**{}**", cells[12]);
        }
        out.push_str(&row(&cells));
    }
    out.push('\n');
    for line in remarks(table) {
        let _ = writeln!(out, "- {line}");
    }
    out
}

/// All figures, as JSON.
pub fn json(table: &Table) -> Result<String, String> {
    serde_json::to_string_pretty(table).map(|text| text + "\n").map_err(|e| e.to_string())
}
