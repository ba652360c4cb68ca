//! `summary`, `report` and `compare`: result files shown again. A run's folder stands for the result file in it.

use super::{code, output};
use clap::Args;
use halobench::report::{Report, compare, csv, html, markdown, summary, table};
use std::path::{Path, PathBuf};

#[derive(Args)]
pub struct SummaryArgs {
    /// A result file, or the folder of a run.
    file: PathBuf,
    /// As tab-separated values: case, metric, engine, value, ratio to the best peer (above 1 is better).
    #[arg(long)]
    tsv: bool,
    /// Only the grid of ratios, not the tables of all figures.
    #[arg(long, conflicts_with = "tsv")]
    grid: bool,
}

#[derive(Args)]
pub struct ReportArgs {
    /// A result file, or the folder of a run.
    file: PathBuf,
    /// Write one self-contained HTML page here.
    #[arg(long, value_name = "OUT")]
    html: Option<PathBuf>,
    /// Print the grid as a Markdown table.
    #[arg(long)]
    markdown: bool,
    /// Print all figures as CSV.
    #[arg(long)]
    csv: bool,
}

#[derive(Args)]
pub struct CompareArgs {
    /// The earlier result file, or its run's folder.
    old: PathBuf,
    /// The later one.
    new: PathBuf,
}

fn load(path: &Path) -> Result<Report, String> {
    if path.is_dir() { Report::load(&path.join(output::RESULT)) } else { Report::load(path) }
}

/// `summary`.
pub fn summarize(args: &SummaryArgs) -> Result<u8, String> {
    let report = load(&args.file)?;
    let text = match (args.tsv, args.grid) {
        (true, _) => summary::tsv(&report),
        (_, true) => table::grid(&report),
        _ => table::text(&report),
    };
    print!("{text}");
    Ok(code::GOOD)
}

/// `report`; without a form, the grid.
pub fn report(args: &ReportArgs) -> Result<u8, String> {
    let report = load(&args.file)?;
    if args.markdown {
        print!("{}", markdown::text(&report));
    }
    if args.csv {
        print!("{}", csv::text(&report));
    }
    if let Some(path) = &args.html {
        html::write(&report, path)?;
        eprintln!("the page: {}", path.display());
    } else if !args.markdown && !args.csv {
        print!("{}", table::grid(&report));
    }
    Ok(code::GOOD)
}

/// `compare`: trouble if anything got worse.
pub fn compare(args: &CompareArgs) -> Result<u8, String> {
    let comparison = compare::compare(&load(&args.old)?, &load(&args.new)?);
    print!("{}", comparison.text());
    Ok(if comparison.regressed() { code::TROUBLE } else { code::GOOD })
}
