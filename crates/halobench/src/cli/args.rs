//! The flags of `run` and `case`: benchtool's, with db_bench's names where it has another word.

use clap::Args;
use halobench::cases::{self, Base, Case, Params, Suite, Workload, dbbench, select};
use halobench::engine::{Compression, Durability, registry};
use halobench::workload::{Pattern, ValueKind};
use std::path::PathBuf;

/// benchtool's defaults.
const OPS: u64 = 10_000_000;
const THREADS: usize = 4;
const ROUNDS: u32 = 3;
const ENGINES: [&str; 4] = ["halocline", "rocksdb", "lmdb", "null"];

#[derive(Args, Clone, Debug)]
pub struct RunArgs {
    /// Engines, parted by commas; `halobench engines` lists them. Unless given, the suite's own.
    #[arg(short, long, visible_alias = "engine", value_delimiter = ',')]
    pub engines: Vec<String>,
    /// A suite instead of a single case; `halobench suites` lists them.
    #[arg(long, conflicts_with_all = ["workload", "pattern", "sequential", "benchmarks"])]
    pub suite: Option<String>,
    /// Print the cases and their sizes, and run nothing.
    #[arg(long)]
    pub list: bool,
    /// Run only the cases that fit: a part of a name, or a glob with * and ?, several parted by commas.
    #[arg(long, value_name = "GLOB")]
    pub filter: Option<String>,
    /// Multiplies the operations of every case of a suite.
    #[arg(long, value_name = "X")]
    pub scale: Option<f64>,
    /// Seconds of cases that run by the clock.
    #[arg(long)]
    pub seconds: Option<f64>,

    /// What to do.
    #[arg(short, long, value_enum, default_value = "mixed")]
    pub workload: Workload,
    /// On which keys.
    #[arg(short, long, value_enum, default_value = "random")]
    pub pattern: Pattern,
    /// Sequential keys: the same as `-p seq`.
    #[arg(short, long, conflicts_with = "pattern")]
    pub sequential: bool,
    /// db_bench's benchmarks by name, parted by commas, instead of a workload.
    #[arg(long, conflicts_with_all = ["workload", "pattern", "sequential"], value_name = "NAMES")]
    pub benchmarks: Option<String>,
    /// Operations, and keys, such as 500000 or 10M; of a suite, those of its standard case. [default: 10M]
    #[arg(short, long, visible_aliases = ["operations", "num"], value_parser = count)]
    pub ops: Option<u64>,
    /// Threads. [default: 4]
    #[arg(short, long)]
    pub threads: Option<usize>,
    /// Writes in a commit.
    #[arg(short, long, visible_alias = "batch-size", alias = "batch_size", default_value_t = 1)]
    pub batch: u64,
    /// Bytes of a key. [default: 16]
    #[arg(short, long, alias = "key_size")]
    pub key_size: Option<usize>,
    /// Bytes of a value, such as 100 or 4K. [default: 100]
    #[arg(short, long, alias = "value_size", value_parser = size)]
    pub value_size: Option<usize>,
    /// What values are made of.
    #[arg(long, value_enum, default_value = "half")]
    pub values: ValueKind,
    /// Entries in a range.
    #[arg(long, default_value_t = 100)]
    pub range_size: u32,
    /// Make no pass over everything behind the operations of a single case.
    #[arg(long)]
    pub no_iterate: bool,

    /// What commits must survive: an engine without that class is left out, and its row says so. [default: process]
    #[arg(long, value_enum)]
    pub durability: Option<Durability>,
    /// Sync each commit: the same as `--durability sync`.
    #[arg(long, conflicts_with = "durability")]
    pub sync: bool,
    /// Run engines without the durability class in their nearest, stronger first, and show it.
    #[arg(long)]
    pub any_durability: bool,
    /// Bytes of a memtable, such as 64M.
    #[arg(long, visible_alias = "memtable-size", alias = "write_buffer_size", default_value = "64M", value_parser = size)]
    pub write_buffer: usize,
    /// Bytes of the cache, such as 64M.
    #[arg(long, visible_alias = "block-cache-size", alias = "cache_size", default_value = "64M", value_parser = size)]
    pub cache: usize,
    /// How values are compressed.
    #[arg(long, value_enum, default_value = "lz4")]
    pub compression: Compression,
    /// Memory that an engine's process may hold, page cache included, such as 512M; needs control groups.
    #[arg(long, value_parser = size)]
    pub memory_limit: Option<usize>,
    /// The seed of keys, values and orders.
    #[arg(long, default_value_t = 42)]
    pub seed: u64,
    /// Measure reads at once, without waiting for the background work behind a load.
    #[arg(long)]
    pub no_settle: bool,
    /// Longest wait for an engine's background work, in seconds.
    #[arg(long, default_value_t = 600)]
    pub settle_limit: u64,

    /// Rounds. [default: 3]
    #[arg(long)]
    pub rounds: Option<u32>,
    /// Time one operation in N.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub latency_every: u64,
    /// Longest time for one engine and database, in seconds.
    #[arg(long, default_value_t = 3600)]
    pub timeout: u64,
    /// No further rounds of what took an engine more than so many seconds; 0 for no such bound.
    #[arg(long, value_name = "SECONDS")]
    pub skip_slow: Option<f64>,
    /// Where databases go.
    #[arg(short, long, visible_alias = "db-path", alias = "db")]
    pub dir: Option<PathBuf>,
    /// Leave the databases where they are.
    #[arg(long)]
    pub keep: bool,
    /// Compare with RocksDB: adds it to the engines.
    #[arg(short, long)]
    pub compare: bool,

    /// The folder of the run's files. [default of a suite: halobench-results/TIME-SUITE]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Write all figures to this file.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Append benchtool's CSV rows to this file.
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// The name of the test in the CSV rows.
    #[arg(long)]
    pub test_name: Option<String>,
    /// Write the table to this file too.
    #[arg(short, long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// Show no progress.
    #[arg(short, long)]
    pub quiet: bool,
    /// A RocksDB library of your own, with the C API.
    #[arg(long, value_name = "FILE")]
    pub rocksdb_lib: Option<PathBuf>,

    /// benchtool's: TidesDB in its B+tree format, which is an engine of its own here.
    #[arg(long, hide = true)]
    pub use_btree: bool,
    /// benchtool's: RocksDB with BlobDB, which is an engine of its own here.
    #[arg(long, hide = true)]
    pub rocksdb_blobdb: bool,
    /// benchtool's, and always so here.
    #[arg(long, hide = true)]
    pub no_rocksdb_blobdb: bool,
    /// benchtool's, and always so here.
    #[arg(long, hide = true)]
    pub bloom_filters: bool,
    /// benchtool's, and always so here.
    #[arg(long, hide = true)]
    pub block_indexes: bool,
}

/// What the flags ask for.
#[derive(Debug)]
pub struct Chosen {
    pub suite: Option<&'static Suite>,
    pub engines: Vec<String>,
    pub cases: Vec<Case>,
    pub rounds: u32,
    pub skip_slow: f64,
}

impl RunArgs {
    /// The cases, the engines and how often; refuses what makes no sense, in words.
    pub fn chosen(&self) -> Result<Chosen, String> {
        let suite = self.suite.as_deref().map(cases::suite).transpose()?;
        if self.seconds.is_some_and(|s| !s.is_finite() || s <= 0.0) {
            return Err("--seconds wants a number above 0".into());
        }
        let params = self.params(suite)?;
        let mut cases = match (suite, &self.benchmarks) {
            (Some(suite), _) => (suite.cases)(&Base { params, seconds: self.seconds }),
            (None, Some(list)) => dbbench::cases(list, &params)?,
            (None, None) => vec![params.case()],
        };
        if let Some(glob) = &self.filter {
            cases = select::filter(cases, glob)?;
        }
        cases::check(&cases)?;
        let rounds = self.rounds.unwrap_or(suite.map_or(ROUNDS, |s| s.rounds));
        if rounds == 0 {
            return Err("--rounds wants at least 1".into());
        }
        let skip_slow = self.skip_slow.unwrap_or(suite.map_or(0.0, |s| s.skip_slow));
        Ok(Chosen { suite, engines: self.engine_names(suite)?, cases, rounds, skip_slow })
    }

    fn params(&self, suite: Option<&Suite>) -> Result<Params, String> {
        let scale = self.scale.unwrap_or(1.0);
        if !scale.is_finite() || scale <= 0.0 {
            return Err(format!("--scale {scale}: wants a number above 0, such as 0.2"));
        }
        let ops = self.ops.unwrap_or(suite.map_or(OPS, |s| s.ops));
        let scaled = if scale == 1.0 { ops } else { ((ops as f64 * scale) as u64).max(ops.min(1)) };
        let default = Params::default();
        let or = |given: usize, default: usize| if given == 0 { default } else { given };
        Ok(Params {
            workload: self.workload,
            pattern: if self.sequential { Pattern::Seq } else { self.pattern },
            ops: scaled,
            threads: self.threads.unwrap_or(suite.map_or(THREADS, |s| s.threads)),
            batch: self.batch,
            key_len: self.key_size.unwrap_or(default.key_len),
            value_len: self.value_size.unwrap_or(default.value_len),
            value_kind: self.values,
            range_size: self.range_size,
            durability: if self.sync { Durability::Sync } else { self.durability.unwrap_or_default() },
            write_buffer: or(self.write_buffer, default.write_buffer),
            cache: or(self.cache, default.cache),
            compression: self.compression,
            seed: self.seed,
            settle: !self.no_settle,
            iterate: !self.no_iterate,
            memory_limit: self.memory_limit.map(|limit| limit as u64),
        })
    }

    /// Each checked against the list; a suite's own that this build does not know are left out.
    fn engine_names(&self, suite: Option<&Suite>) -> Result<Vec<String>, String> {
        let mut names = self.engines.clone();
        if names.is_empty() {
            let own = suite.map_or(&ENGINES[..], |s| s.engines);
            names = own.iter().filter(|n| registry::find(n).is_ok()).map(|n| n.to_string()).collect();
        }
        if self.compare && !names.iter().any(|n| n == "rocksdb") {
            names.push("rocksdb".into());
        }
        for name in &mut names {
            if self.use_btree && name == "tidesdb" {
                *name = "tidesdb-btree".into();
            }
            if self.rocksdb_blobdb && name == "rocksdb" {
                *name = "rocksdb-blob".into();
            }
            registry::find(name)?;
        }
        Ok(names)
    }
}

/// A number of bytes, with K, M or G behind it if need be.
pub fn size(text: &str) -> Result<usize, String> {
    number(text, [1 << 10, 1 << 20, 1 << 30]).and_then(|n| n.try_into().ok()).ok_or_else(|| {
        format!("{text:?} is not a size: write a number of bytes, or one with K, M or G behind it")
    })
}

/// A number of operations, with k, M or G behind it for thousands, millions or billions.
fn count(text: &str) -> Result<u64, String> {
    number(text, [1000, 1_000_000, 1_000_000_000])
        .ok_or_else(|| format!("{text:?} is not a number: write digits, or some with k, M or G behind them"))
}

fn number(text: &str, units: [u64; 3]) -> Option<u64> {
    let (digits, unit) = match text.char_indices().last()? {
        (i, 'k' | 'K') => (&text[..i], units[0]),
        (i, 'm' | 'M') => (&text[..i], units[1]),
        (i, 'g' | 'G') => (&text[..i], units[2]),
        _ => (text, 1),
    };
    digits.parse::<u64>().ok()?.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Cli, Command};
    use clap::Parser;
    use halobench::spec::Kind;

    fn parse(line: &str) -> RunArgs {
        match Cli::try_parse_from(format!("halobench {line}").split_whitespace()).unwrap().command {
            Command::Run(args) | Command::Case(args) => *args,
            _ => panic!("another command"),
        }
    }

    #[test]
    fn sizes_and_counts_have_units() {
        assert_eq!(size("4096"), Ok(4096));
        assert_eq!(size("64M"), Ok(64 << 20));
        assert_eq!(size("2g"), Ok(2 << 30));
        assert_eq!((count("10M"), count("7k"), count("12")), (Ok(10_000_000), Ok(7000), Ok(12)));
        for bad in ["", "M", "-1", "1.5M", "99999999999G", "64é"] {
            assert!(size(bad).is_err() && count(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn benchtools_flags_are_understood() {
        let args = parse(
            "case -e rocksdb,lmdb -w read -p zipfian -o 5 -t 2 -b 3 -k 20 -v 9 --range-size 7 --sync \
             --memtable-size 1M --block-cache-size 0 -d /d -c -r out.txt --csv o.csv --test-name name",
        );
        let params = args.params(None).unwrap();
        assert_eq!(args.engine_names(None).unwrap(), ["rocksdb", "lmdb"]);
        assert_eq!(
            (params.ops, params.threads, params.batch, params.key_len, params.value_len),
            (5, 2, 3, 20, 9)
        );
        assert_eq!((params.range_size, params.durability), (7, Durability::Sync));
        assert_eq!((params.write_buffer, params.cache), (1 << 20, 64 << 20), "0 is the default");
        assert_eq!(args.dir, Some("/d".into()));
        assert_eq!(parse("case --engine halocline -c").engine_names(None).unwrap(), ["halocline", "rocksdb"]);
        assert_eq!(parse("case -s").params(None).unwrap().pattern, Pattern::Seq);
        assert!(parse("run -p sequential -w seek").chosen().is_ok());
        let benchtools_own = parse("case").params(None).unwrap();
        assert_eq!((benchtools_own.ops, benchtools_own.threads, benchtools_own.batch), (10_000_000, 4, 1));
        assert_eq!(benchtools_own.workload, Workload::Mixed);
    }

    #[test]
    fn db_benchs_names_are_understood() {
        let args = parse(
            "case --benchmarks=fillseq,readrandom --num=1000 --value_size=50 --threads=2 --batch_size=4",
        );
        let chosen = args.chosen().unwrap();
        assert_eq!(chosen.cases.len(), 1);
        let [fill, read] = &chosen.cases[0].phases[..] else { panic!("{:?}", chosen.cases) };
        assert_eq!((fill.kind, fill.ops, fill.batch, fill.threads), (Kind::Write, 1000, 4, 2));
        assert_eq!((read.kind, chosen.cases[0].set.value_len), (Kind::Read, 50));
    }

    #[test]
    fn a_suite_has_its_own_defaults_and_the_flags_change_them() {
        let quick = parse("run --suite quick").chosen().unwrap();
        let suite = quick.suite.unwrap();
        assert_eq!((quick.rounds, quick.skip_slow, suite.name), (3, suite.skip_slow, "quick"));
        assert!(quick.engines.iter().any(|e| e == "lmdb") && quick.engines.last().unwrap() == "null");
        assert_eq!(quick.cases[0].set.n, suite.ops);
        let small = parse("run --suite quick --scale 0.5 --ops 2000 -t 2 -e null --rounds 1 --skip-slow 0");
        let small = small.chosen().unwrap();
        assert_eq!((small.cases[0].set.n, small.cases[0].phases[0].threads), (1000, 2));
        assert_eq!((small.rounds, small.skip_slow, small.engines), (1, 0.0, vec!["null".to_string()]));
        for bad in ["--scale 0", "--scale nan", "--seconds -1", "--rounds 0", "--filter nothing"] {
            let line = format!("run --suite quick {}", bad.replace(' ', "="));
            assert!(parse(&line).chosen().is_err(), "{bad}");
        }
    }
}
