//! `verify-durability`.

use super::{code, say};
use clap::Args;
use halobench::durability;
use halobench::engine::{Durability, registry};
use halobench::interrupt;
use halobench::report::metrics::is_null;
use indicatif::{ProgressBar, ProgressStyle};
use std::path::PathBuf;
use std::time::Duration;

#[derive(Args)]
pub struct DurabilityArgs {
    /// Engines, parted by commas; all that can be run, if none is named.
    #[arg(short, long, value_delimiter = ',')]
    engines: Vec<String>,
    /// Classes, parted by commas; all that each engine has, if none is named.
    #[arg(long, value_enum, value_delimiter = ',')]
    classes: Vec<Durability>,
    /// Kills of each engine in each class.
    #[arg(long, default_value_t = 20)]
    kills: u32,
    /// Threads that commit.
    #[arg(short, long, default_value_t = 4)]
    threads: u64,
    /// Writes in a batch.
    #[arg(short, long, default_value_t = 10)]
    batch: u64,
    /// The seed of keys, values and moments.
    #[arg(long, default_value_t = 42)]
    seed: u64,
    /// Longest time from an open to a kill, in milliseconds.
    #[arg(long, default_value_t = 400)]
    longest_ms: u64,
    /// Do not count syncs.
    #[arg(long)]
    no_syncs: bool,
    /// Print the table as Markdown.
    #[arg(long)]
    markdown: bool,
    /// Write all figures to this file.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Where databases go.
    #[arg(long)]
    dir: Option<PathBuf>,
    /// Longest wait for an open or a check, in seconds.
    #[arg(long, default_value_t = 60)]
    timeout: u64,
    /// A RocksDB library of your own, with the C API.
    #[arg(long, value_name = "FILE")]
    rocksdb_lib: Option<PathBuf>,
}

/// `verify-durability`: trouble if a class broke its claim or a row could not be tested.
pub fn verify(args: &DurabilityArgs) -> Result<u8, String> {
    let all = || {
        let here = |e: &registry::Entry| e.availability(args.rocksdb_lib.as_deref()).missing.is_none();
        registry::all().into_iter().filter(|e| !is_null(e.name) && here(e)).map(|e| e.name.into()).collect()
    };
    let job = durability::Job {
        engines: if args.engines.is_empty() { all() } else { args.engines.clone() },
        classes: args.classes.clone(),
        kills: args.kills,
        threads: args.threads,
        batch: args.batch,
        seed: args.seed,
        longest: Duration::from_millis(args.longest_ms),
        syncs: !args.no_syncs,
        dir: args.dir.clone(),
        rocksdb_lib: args.rocksdb_lib.clone(),
        timeout: Duration::from_secs(args.timeout),
        ..durability::Job::default()
    };
    interrupt::install()?;
    let bar = ProgressBar::new(0);
    bar.set_style(
        ProgressStyle::with_template("{elapsed_precise} [{bar:24}] {pos}/{len} {msg}")
            .map_err(|e| e.to_string())?,
    );
    bar.enable_steady_tick(Duration::from_millis(500));
    let table = durability::verify(&job, &mut |step| {
        bar.set_length(step.of as u64);
        bar.set_position(step.done as u64);
        bar.set_message(format!("{} {}: {}", step.engine, durability::table::class(step.class), step.doing));
    })?;
    bar.finish_and_clear();
    let shown = if args.markdown { durability::table::markdown } else { durability::table::text };
    say::text(&shown(&table));
    if let Some(path) = &args.json {
        std::fs::write(path, durability::table::json(&table)?)
            .map_err(|e| format!("writing {}: {e}", path.display()))?;
        say::line(&format!("all figures: {}", path.display()));
    }
    Ok(match (table.interrupted, table.is_good()) {
        (true, _) => code::INTERRUPTED,
        (false, true) => code::GOOD,
        (false, false) => code::TROUBLE,
    })
}
