//! The `halocline` command: load, read, scan, check and demonstrate a Halocline database.
//!
//! Results go to standard output; progress and messages go to standard error. [`failure`] has the exit codes.

mod args;
mod commands;
mod demo;
mod escape;
mod failure;
mod formats;
mod output;

use args::{Cli, Command};
use clap::Parser;
use failure::Outcome;
use std::io::Write as _;
use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = Cli::parse();
    match run(cli.command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if let Some(message) = failure.message() {
                // Standard error may be closed as well; there is nobody left to tell then.
                let _ = writeln!(std::io::stderr(), "halocline: {message}");
            }
            ExitCode::from(failure.code())
        }
    }
}

fn run(command: Command) -> Outcome {
    match command {
        Command::Load(args) => commands::load::run(&args),
        Command::Get(args) => commands::point::get(&args),
        Command::Put(args) => commands::point::put(&args),
        Command::Delete(args) => commands::point::delete(&args),
        Command::Scan(args) => commands::scan::scan(&args),
        Command::Count(args) => commands::scan::count(&args),
        Command::Stats(args) => commands::state::stats(&args),
        Command::Compact(args) => commands::state::compact(&args),
        Command::Check(args) => commands::state::check(&args),
        Command::Dump(args) => commands::dump::run(&args),
        Command::Demo(args) => demo::run(&args),
        Command::DemoWorker(args) => demo::worker::run(&args),
    }
}
