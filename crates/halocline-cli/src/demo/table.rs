//! The demo's result: a table with an engine a column, and how it compares with Halocline.

use super::memory::Peak;
use crate::output::{bytes, seconds};
use serde::Serialize;
use std::time::Duration;

/// What was measured of one engine.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    pub records: u64,
    pub load: Duration,
    pub get: Duration,
    pub scan: Duration,
    pub reopen: Duration,
    pub disk_bytes: u64,
    pub peak: Peak,
    /// Each thing that did not verify.
    pub wrong: Vec<String>,
}

/// A column: an engine that was measured, or why it was not.
#[derive(Clone, Debug)]
pub struct Column {
    pub name: String,
    pub result: Result<Measured, Missing>,
}

/// Why an engine was not measured.
#[derive(Clone, Debug)]
pub enum Missing {
    /// It is not on this machine; how to get it.
    Absent(String),
    /// It was started, and failed.
    Failed(String),
}

/// A figure of one engine: how it is written, and what is compared.
struct Figure {
    text: String,
    /// Less is better, in whatever unit; 0 cannot be compared.
    cost: f64,
}

/// A row: its title, and how its figure is taken.
struct Row {
    title: &'static str,
    name: &'static str,
    figure: fn(&Measured) -> Figure,
}

const ROWS: [Row; 7] = [
    Row { title: "load, records a second", name: "load", figure: |m| rate(m.records, m.load) },
    Row { title: "random get, a second", name: "get", figure: |m| rate(m.records, m.get) },
    Row { title: "full scan, records a second", name: "scan", figure: |m| rate(m.records, m.scan) },
    Row {
        title: "reopen and first get",
        name: "reopen",
        figure: |m| Figure { text: seconds(m.reopen), cost: m.reopen.as_secs_f64() },
    },
    Row {
        title: "on disk",
        name: "disk",
        figure: |m| Figure { text: bytes(m.disk_bytes), cost: m.disk_bytes as f64 },
    },
    Row {
        title: "peak memory, anonymous",
        name: "anonymous memory",
        figure: |m| Figure { text: bytes(m.peak.anonymous), cost: m.peak.anonymous as f64 },
    },
    Row {
        title: "peak memory, mapped files",
        name: "mapped memory",
        figure: |m| Figure { text: bytes(m.peak.file), cost: m.peak.file as f64 },
    },
];

fn rate(records: u64, time: Duration) -> Figure {
    let time = time.as_secs_f64().max(1e-9);
    let rate = records as f64 / time;
    let text = match rate {
        _ if rate >= 999_500.0 => format!("{:.2} M", rate / 1e6),
        _ => format!("{:.0} K", rate / 1e3),
    };
    Figure { text, cost: time / (records as f64).max(1.0) }
}

/// A comparison of one row with one peer: above 1, Halocline is better.
#[derive(Clone, Debug, Serialize)]
pub struct Ratio {
    pub what: &'static str,
    pub peer: String,
    pub ratio: f64,
}

/// The table as text, and the comparisons in it. The first column is Halocline's.
pub fn render(columns: &[Column]) -> (String, Vec<Ratio>) {
    let mut ratios = Vec::new();
    let mut cells: Vec<Vec<String>> = Vec::new();
    let mut head = vec![String::new()];
    let measured: Vec<(&str, &Measured)> = columns
        .iter()
        .filter_map(|column| column.result.as_ref().ok().map(|measured| (column.name.as_str(), measured)))
        .collect();
    for (at, (name, _)) in measured.iter().enumerate() {
        head.push((*name).to_owned());
        if at > 0 {
            head.push(String::new());
        }
    }
    cells.push(head);
    for row in &ROWS {
        let mut line = vec![row.title.to_owned()];
        let mut own = None;
        for (name, measured) in &measured {
            let figure = (row.figure)(measured);
            line.push(if measured.wrong.is_empty() { figure.text } else { "WRONG".into() });
            let cost = if measured.wrong.is_empty() { figure.cost } else { 0.0 };
            match own {
                None => own = Some(cost),
                Some(own) if own > 0.0 && cost > 0.0 => {
                    let ratio = cost / own;
                    line.push(format!("{ratio:.2}x"));
                    ratios.push(Ratio { what: row.name, peer: (*name).to_owned(), ratio });
                }
                Some(_) => line.push("-".into()),
            }
        }
        cells.push(line);
    }
    (aligned(&cells), ratios)
}

/// Columns of text, the first to the left and the others to the right.
fn aligned(cells: &[Vec<String>]) -> String {
    let columns = cells.iter().map(Vec::len).max().unwrap_or(0);
    let width = |at: usize| {
        cells.iter().filter_map(|line| line.get(at)).map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut out = String::new();
    for (number, line) in cells.iter().enumerate() {
        for (at, cell) in line.iter().enumerate() {
            match at {
                0 => out.push_str(&format!("{cell:<0$}", widths[0])),
                _ => out.push_str(&format!("  {cell:>0$}", widths[at])),
            }
        }
        out.truncate(out.trim_end_matches(' ').len());
        out.push('\n');
        if number == 0 {
            let total = widths.iter().sum::<usize>() + 2 * columns.saturating_sub(1);
            out.push_str(&"-".repeat(total));
            out.push('\n');
        }
    }
    out
}

/// The table in words: how many comparisons Halocline wins, and each that it loses.
pub fn verdict(ratios: &[Ratio]) -> String {
    if ratios.is_empty() {
        return "No other engine was measured, so there is nothing to compare.".into();
    }
    let behind: Vec<_> = ratios
        .iter()
        .filter(|ratio| ratio.ratio < 1.0)
        .map(|ratio| format!("\n  {} against {} ({:.2}x)", ratio.what, ratio.peer, ratio.ratio))
        .collect();
    let ahead = ratios.len() - behind.len();
    let mut text = format!("Halocline is ahead in {ahead} of {} comparisons", ratios.len());
    if behind.is_empty() {
        text.push('.');
    } else {
        text.push_str(&format!("; it is behind in:{}", behind.concat()));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(factor: u64) -> Measured {
        Measured {
            records: 1000,
            load: Duration::from_millis(factor),
            get: Duration::from_millis(2 * factor),
            scan: Duration::from_micros(100 * factor),
            reopen: Duration::from_millis(5),
            disk_bytes: 1_000_000 / factor,
            peak: Peak { anonymous: 5_000_000, file: 0 },
            wrong: Vec::new(),
        }
    }

    fn column(name: &str, result: Result<Measured, Missing>) -> Column {
        Column { name: name.into(), result }
    }

    #[test]
    fn ratios_say_how_many_times_better_halocline_is() {
        let columns = [
            column("Halocline", Ok(measured(1))),
            column("Other", Ok(measured(4))),
            column("Gone", Err(Missing::Absent("no".into()))),
        ];
        let (table, ratios) = render(&columns);
        let of = |what: &str| ratios.iter().find(|ratio| ratio.what == what).map(|ratio| ratio.ratio);
        assert_eq!(of("load"), Some(4.0));
        assert_eq!(of("reopen"), Some(1.0));
        assert_eq!(of("disk"), Some(0.25));
        assert_eq!(of("mapped memory"), None);
        assert!(table.contains("1.00 M") && table.contains("250 K") && table.contains("0.25x"), "{table}");
        assert!(!table.contains("Gone"));
        assert_eq!(
            verdict(&ratios),
            "Halocline is ahead in 5 of 6 comparisons; it is behind in:\n  disk against Other (0.25x)"
        );
    }

    #[test]
    fn wrong_answers_void_the_figures() {
        let mut wrong = measured(1);
        wrong.wrong.push("3 values differ".into());
        let (table, ratios) = render(&[column("Halocline", Ok(measured(1))), column("Other", Ok(wrong))]);
        assert!(ratios.is_empty());
        assert_eq!(table.matches("WRONG").count(), ROWS.len());
    }

    #[test]
    fn alone_there_is_nothing_to_compare() {
        let (table, ratios) = render(&[column("Halocline", Ok(measured(1)))]);
        assert!(table.contains("reopen and first get") && ratios.is_empty());
        assert!(verdict(&ratios).starts_with("No other engine"));
    }
}
