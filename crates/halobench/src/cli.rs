//! The command line.

use clap::{Args, Parser, Subcommand};
use halobench::cases::{self, Params};
use halobench::driver;
use halobench::engine::{Compression, registry, rocksdb};
use halobench::interrupt;
use halobench::report::{Report, summary, table};
use halobench::run::{self, Job};
use halobench::spec::Kind;
use halobench::workload::{Pattern, ValueKind};
use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// Measures embedded key-value engines side by side, in one run, with every answer checked.
#[derive(Parser)]
#[command(version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run a case, or a suite of them.
    Run(Box<RunArgs>),
    /// Fetch what engines need and is not here.
    Setup,
    /// List the engines, and how to get those that are missing.
    Engines {
        /// A RocksDB library of your own, with the C API.
        #[arg(long, value_name = "FILE")]
        rocksdb_lib: Option<PathBuf>,
    },
    /// Print a result file again.
    Summary {
        /// Written by `run --json`.
        file: PathBuf,
        /// As tab-separated values: case, metric, engine, value, ratio to the best peer (above 1 is better).
        #[arg(long)]
        tsv: bool,
    },
}

#[derive(Args)]
struct RunArgs {
    /// Engines, parted by commas.
    #[arg(short, long, value_delimiter = ',', default_value = "halocline,rocksdb,lmdb,null")]
    engines: Vec<String>,
    /// A suite instead of a single case.
    #[arg(long)]
    suite: Option<String>,
    /// What to do.
    #[arg(short, long, value_enum, default_value = "write")]
    workload: Kind,
    /// On which keys.
    #[arg(short, long, value_enum, default_value = "random")]
    pattern: Pattern,
    /// Operations, and keys.
    #[arg(short, long, default_value_t = 10_000_000)]
    ops: u64,
    /// Threads.
    #[arg(short, long, default_value_t = 8)]
    threads: usize,
    /// Writes in a commit.
    #[arg(short, long, default_value_t = 1)]
    batch: u64,
    /// Bytes of a key.
    #[arg(short, long, default_value_t = 16)]
    key_size: usize,
    /// Bytes of a value.
    #[arg(short, long, default_value_t = 100)]
    value_size: usize,
    /// What values are made of.
    #[arg(long, value_enum, default_value = "half")]
    values: ValueKind,
    /// Entries in a range.
    #[arg(long, default_value_t = 100)]
    range_size: u32,
    /// Sync each commit.
    #[arg(long)]
    sync: bool,
    /// Rounds.
    #[arg(long, default_value_t = 3)]
    rounds: u32,
    /// Write everything to this file.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Where databases go.
    #[arg(long)]
    dir: Option<PathBuf>,
    /// Bytes of a memtable, such as 64M.
    #[arg(long, alias = "memtable-size", default_value = "64M", value_parser = size)]
    write_buffer: usize,
    /// Bytes of the cache, such as 64M.
    #[arg(long, alias = "block-cache-size", default_value = "64M", value_parser = size)]
    cache: usize,
    /// How values are compressed.
    #[arg(long, value_enum, default_value = "lz4")]
    compression: Compression,
    /// The seed of keys, values and orders.
    #[arg(long, default_value_t = 42)]
    seed: u64,
    /// Measure reads at once, without waiting for the background work behind a load.
    #[arg(long)]
    no_settle: bool,
    /// Longest wait for an engine's background work, in seconds.
    #[arg(long, default_value_t = 600)]
    settle_limit: u64,
    /// Time one operation in N.
    #[arg(long, value_name = "N", default_value_t = 1)]
    latency_every: u64,
    /// Longest time for one engine and case, in seconds.
    #[arg(long, default_value_t = 3600)]
    timeout: u64,
    /// A RocksDB library of your own, with the C API.
    #[arg(long, value_name = "FILE")]
    rocksdb_lib: Option<PathBuf>,
}

/// A number of bytes, with K, M or G behind it if need be.
fn size(text: &str) -> Result<usize, String> {
    let (digits, shift) = match text.char_indices().last() {
        Some((i, 'k' | 'K')) => (&text[..i], 10),
        Some((i, 'm' | 'M')) => (&text[..i], 20),
        Some((i, 'g' | 'G')) => (&text[..i], 30),
        _ => (text, 0),
    };
    digits.parse::<usize>().ok().and_then(|n| n.checked_mul(1 << shift)).ok_or_else(|| {
        format!("{text:?} is not a size: write a number of bytes, or one with K, M or G behind it")
    })
}

/// The command.
pub fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Run(args) => bench(&args),
        Command::Setup => setup(),
        Command::Engines { rocksdb_lib } => engines(rocksdb_lib),
        Command::Summary { file, tsv } => Report::load(&file).map(|report| {
            print!("{}", if tsv { summary::tsv(&report) } else { table::text(&report) });
            true
        }),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(e) => {
            eprintln!("halobench: {e}");
            ExitCode::from(2)
        }
    }
}

/// False if an answer was wrong or an engine failed.
fn bench(args: &RunArgs) -> Result<bool, String> {
    let params = Params {
        kind: args.workload,
        pattern: args.pattern,
        ops: args.ops,
        threads: args.threads,
        batch: args.batch,
        key_len: args.key_size,
        value_len: args.value_size,
        value_kind: args.values,
        range_size: args.range_size,
        sync: args.sync,
        write_buffer: args.write_buffer,
        cache: args.cache,
        compression: args.compression,
        seed: args.seed,
        settle: !args.no_settle,
    };
    let cases = match &args.suite {
        Some(name) => cases::suite(name, &params)?,
        None => vec![params.case()],
    };
    let job = Job {
        engines: args.engines.clone(),
        cases,
        rounds: args.rounds,
        dir: args.dir.clone(),
        rocksdb_lib: args.rocksdb_lib.clone(),
        settle_limit_s: args.settle_limit,
        latency_every: args.latency_every,
        timeout: Duration::from_secs(args.timeout),
        program: None,
    };
    interrupt::install()?;
    if job.rocksdb_lib.is_none() && job.engines.iter().any(|e| e.starts_with("rocksdb")) {
        // Without the network the rows say so, and the run goes on.
        if let Err(e) = fetch_rocksdb() {
            eprintln!("halobench: RocksDB will not run: {e}");
        }
    }
    build_drivers(&job.engines);
    // Drawn only on a terminal.
    let bar = ProgressBar::new(0);
    bar.set_style(
        ProgressStyle::with_template("{elapsed_precise} [{bar:24}] {pos}/{len} {msg} (about {eta} left)")
            .map_err(|e| e.to_string())?,
    );
    bar.enable_steady_tick(Duration::from_millis(500));
    let report = run::run(&job, &mut |step| {
        bar.set_length(step.of as u64);
        bar.set_position(step.done as u64);
        bar.set_message(format!("round {}: {} {}: {}", step.round + 1, step.engine, step.case, step.doing));
    })?;
    bar.finish_and_clear();
    let mut text = table::text(&report);
    if std::io::stdout().is_terminal() {
        for word in ["VOID", "FAILED"] {
            text = text.replace(word, &format!("\x1b[31m{word}\x1b[0m"));
        }
    }
    print!("{text}");
    if let Some(path) = &args.json {
        report.save(path)?;
        println!("all figures: {}", path.display());
    }
    Ok(report.troubles().is_empty())
}

fn fetch_rocksdb() -> Result<PathBuf, String> {
    let bar = ProgressBar::new(0);
    bar.set_style(
        ProgressStyle::with_template("fetching RocksDB's library [{bar:24}] {bytes}/{total_bytes}")
            .map_err(|e| e.to_string())?,
    );
    let path = rocksdb::fetch::fetch(&mut |done, of| {
        bar.set_length(of);
        bar.set_position(done);
    });
    bar.finish_and_clear();
    path
}

/// Builds the drivers of these engines, unless that was done. Without the language's tools the rows say so, and the run
/// goes on.
fn build_drivers(engines: &[String]) {
    for driver in driver::all() {
        let wanted = driver.engines().iter().any(|guest| engines.iter().any(|e| e == guest.name));
        if wanted && let Err(e) = driver.build(&mut |step| eprintln!("{} driver: {step}", driver.name())) {
            eprintln!("halobench: the {} driver's engines will not run: {e}", driver.name());
        }
    }
}

fn setup() -> Result<bool, String> {
    let path = fetch_rocksdb()?;
    println!("RocksDB {}: {}", rocksdb::fetch::VERSION, path.display());
    let mut all_well = true;
    for driver in driver::all() {
        // One language missing is no reason to leave out the next.
        match driver.build(&mut |step| eprintln!("{} driver: {step}", driver.name())) {
            Ok(()) => println!("{} driver: ready", driver.name()),
            Err(e) => {
                all_well = false;
                println!("{} driver: {e}", driver.name());
            }
        }
    }
    Ok(all_well)
}

fn engines(rocksdb_lib: Option<PathBuf>) -> Result<bool, String> {
    for entry in registry::all() {
        let a = entry.availability(rocksdb_lib.as_deref());
        let state = match (&a.version, &a.missing) {
            (Some(version), _) => version.clone(),
            (None, missing) => format!("missing: {}", missing.as_deref().unwrap_or("")),
        };
        println!("{:<16} {:<42} {state}", a.name, a.about);
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        assert_eq!(size("4096"), Ok(4096));
        assert_eq!(size("64M"), Ok(64 << 20));
        assert_eq!(size("2g"), Ok(2 << 30));
        for bad in ["", "M", "-1", "1.5M", "99999999999G", "64é"] {
            assert!(size(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn benchtools_flags_are_understood() {
        let cli = Cli::try_parse_from(
            "halobench run -e rocksdb,lmdb -w read -p zipfian -o 5 -t 2 -b 3 -k 20 -v 9 --range-size 7 --sync \
             --memtable-size 1M --block-cache-size 2M"
                .split_whitespace(),
        )
        .unwrap();
        let Command::Run(args) = cli.command else { panic!("another command") };
        assert_eq!(args.engines, ["rocksdb", "lmdb"]);
        assert_eq!((args.ops, args.threads, args.batch, args.key_size, args.value_size), (5, 2, 3, 20, 9));
        assert_eq!((args.range_size, args.sync, args.write_buffer, args.cache), (7, true, 1 << 20, 2 << 20));
        assert!(Cli::try_parse_from(["halobench", "run", "-p", "sequential", "-w", "seek"]).is_ok());
    }
}
