//! The command line: one file a subcommand.

mod args;
mod durability;
mod engines;
mod output;
mod progress;
mod run;
mod say;
mod setup;
mod show;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Measures embedded key-value engines side by side, in one run, with every answer checked.
#[derive(Parser)]
#[command(version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run a suite (`--suite quick` is a good first one), or a single case.
    Run(Box<args::RunArgs>),
    /// Run a single case by benchtool's flags, or a list of db_bench's benchmarks.
    Case(Box<args::RunArgs>),
    /// List the suites.
    Suites,
    /// Kill each engine again and again while it commits, and look what is left in each durability class.
    VerifyDurability(durability::DurabilityArgs),
    /// Fetch and build what engines need and is not here.
    Setup,
    /// List the engines, their durability classes, and how to get those that are missing.
    Engines(engines::EnginesArgs),
    /// Print a result file again.
    Summary(show::SummaryArgs),
    /// Show a result file as a page, a Markdown table or CSV.
    Report(show::ReportArgs),
    /// Compare two result files; the exit code is 1 if anything got worse.
    Compare(show::CompareArgs),
}

/// All is well; an answer was wrong or an engine failed; the command itself cannot be done; a run was interrupted.
mod code {
    pub const GOOD: u8 = 0;
    pub const TROUBLE: u8 = 1;
    pub const ERROR: u8 = 2;
    pub const INTERRUPTED: u8 = halobench::interrupt::EXIT_CODE as u8;
}

/// The command.
pub fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Run(args) | Command::Case(args) => run::run(&args),
        Command::Suites => suites(),
        Command::VerifyDurability(args) => durability::verify(&args),
        Command::Setup => setup::setup(),
        Command::Engines(args) => engines::engines(&args),
        Command::Summary(args) => show::summarize(&args),
        Command::Report(args) => show::report(&args),
        Command::Compare(args) => show::compare(&args),
    };
    ExitCode::from(done.unwrap_or_else(|e| {
        eprintln!("halobench: {e}");
        code::ERROR
    }))
}

fn suites() -> Result<u8, String> {
    for suite in halobench::cases::SUITES {
        say::line(&format!("{:<12} {}", suite.name, suite.about));
    }
    say::line("\n`halobench run --suite NAME --list` shows a suite's cases and their sizes.");
    Ok(code::GOOD)
}
