//! The command line.
//!
//! Every command but `demo` takes the database's directory first. Keys and bounds are read with the escapes of
//! [`crate::escape`], so that any bytes can be named.

use crate::formats::Format;
use clap::{Args, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;

/// Load, read, scan, check and demonstrate a Halocline database.
#[derive(Debug, Parser)]
#[command(name = "halocline", version, max_term_width = 100, after_help = AFTER_HELP)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

const AFTER_HELP: &str = "\
Keys: any bytes. On the command line and in text output, \\xNN stands for a byte, \\\\ for a backslash, and \
\\n, \\r, \\t, \\0 for what they usually mean.

Exit codes: 0 done; 1 no (no such key, damage found, a demo that did not verify); 2 wrong usage or malformed \
input; 3 the database or the system refused.

Results go to standard output, progress and messages to standard error. NO_COLOR is respected.";

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Load records from a file or standard input
    Load(Load),
    /// Print the value of a key
    Get(Get),
    /// Set a key to a value, creating the database if need be
    Put(Put),
    /// Remove a key
    Delete(Delete),
    /// Print entries in the order of their keys
    Scan(Scan),
    /// Count entries
    Count(Count),
    /// Print figures about the database
    Stats(Stats),
    /// Merge everything into the last level, dropping what was overwritten or deleted
    Compact(Database),
    /// Verify every file; list each damage; exit code 1 if there is any
    Check(Check),
    /// Write all entries as text that `load` reads back, without loss
    Dump(Dump),
    /// Load real text of this machine into Halocline, RocksDB and LMDB, kill it, and compare
    Demo(Demo),
    /// One measurement of the demo, in a process of its own
    #[command(hide = true)]
    DemoWorker(DemoWorker),
}

/// Where the database is.
#[derive(Debug, Args)]
pub struct Database {
    /// The database's directory
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,
}

/// Which column family.
#[derive(Debug, Args)]
pub struct Family {
    /// The column family
    #[arg(long = "cf", value_name = "NAME")]
    pub name: Option<String>,
}

#[derive(Debug, Args)]
pub struct Load {
    #[command(flatten)]
    pub db: Database,
    /// The file to read, or - for standard input
    pub file: PathBuf,
    /// The input's format; without it, told from the file's name and its first line
    #[arg(long, value_enum)]
    pub format: Option<Format>,
    /// jsonl: the field that is the key. tsv: the number of the key's column (1). lines: `number` or `line`
    #[arg(long, value_name = "FIELD")]
    pub key: Option<String>,
    #[command(flatten)]
    pub family: Family,
    /// Make every batch survive power loss before the next is read
    #[arg(long)]
    pub sync: bool,
}

#[derive(Debug, Args)]
pub struct Get {
    #[command(flatten)]
    pub db: Database,
    /// The key
    #[arg(allow_hyphen_values = true)]
    pub key: String,
    #[command(flatten)]
    pub family: Family,
    /// The value's bytes alone, without a newline behind them
    #[arg(long, conflicts_with = "hex")]
    pub raw: bool,
    /// The value in hexadecimal
    #[arg(long)]
    pub hex: bool,
}

#[derive(Debug, Args)]
pub struct Put {
    #[command(flatten)]
    pub db: Database,
    /// The key
    #[arg(allow_hyphen_values = true)]
    pub key: String,
    /// The value, taken as it stands, or - for all of standard input
    #[arg(allow_hyphen_values = true)]
    pub value: std::ffi::OsString,
    #[command(flatten)]
    pub family: Family,
    /// Return only when the write survives power loss
    #[arg(long)]
    pub sync: bool,
}

#[derive(Debug, Args)]
pub struct Delete {
    #[command(flatten)]
    pub db: Database,
    /// The key
    #[arg(allow_hyphen_values = true)]
    pub key: String,
    #[command(flatten)]
    pub family: Family,
    /// Return only when the removal survives power loss
    #[arg(long)]
    pub sync: bool,
}

/// Which keys.
#[derive(Debug, Args)]
pub struct Bounds {
    /// From this key on, itself included
    #[arg(long, value_name = "KEY", allow_hyphen_values = true)]
    pub from: Option<String>,
    /// Up to this key, itself excluded
    #[arg(long, value_name = "KEY", allow_hyphen_values = true)]
    pub to: Option<String>,
    /// Only keys that begin so
    #[arg(long, value_name = "KEY", conflicts_with_all = ["from", "to"], allow_hyphen_values = true)]
    pub prefix: Option<String>,
}

#[derive(Debug, Args)]
pub struct Scan {
    #[command(flatten)]
    pub db: Database,
    #[command(flatten)]
    pub bounds: Bounds,
    #[command(flatten)]
    pub family: Family,
    /// From the last key to the first
    #[arg(long)]
    pub reverse: bool,
    /// At most so many entries
    #[arg(long, value_name = "N")]
    pub limit: Option<u64>,
    /// Keys alone; no value is read
    #[arg(long)]
    pub keys_only: bool,
    /// How entries are written
    #[arg(long, value_enum, default_value_t = ScanFormat::Text)]
    pub format: ScanFormat,
}

/// How `scan` writes entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ScanFormat {
    /// For people: key and value, escaped; on a terminal, long values are cut
    Text,
    /// Key, a tab, value, both escaped: `load --format tsv` reads it
    Tsv,
    /// JSON objects with key and value, or key_hex and value_hex where they are not UTF-8
    Jsonl,
    /// Key, a tab, value in hexadecimal
    Hex,
}

#[derive(Debug, Args)]
pub struct Count {
    #[command(flatten)]
    pub db: Database,
    #[command(flatten)]
    pub bounds: Bounds,
    #[command(flatten)]
    pub family: Family,
}

#[derive(Debug, Args)]
pub struct Stats {
    #[command(flatten)]
    pub db: Database,
    /// As JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct Check {
    #[command(flatten)]
    pub db: Database,
    /// As JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct Dump {
    #[command(flatten)]
    pub db: Database,
    /// Only this column family; without it, all of them
    #[command(flatten)]
    pub family: Family,
    /// How entries are written
    #[arg(long, value_enum, default_value_t = DumpFormat::Jsonl)]
    pub format: DumpFormat,
}

/// How `dump` writes entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DumpFormat {
    /// JSON, a line an entry; hexadecimal where bytes are not UTF-8
    Jsonl,
    /// Hexadecimal, a line an entry
    Hex,
}

#[derive(Debug, Args)]
pub struct Demo {
    /// Where to put the databases while they are measured; they are removed at the end
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
    /// At most so many MB of text
    #[arg(long, value_name = "MB", default_value_t = 160, value_parser = clap::value_parser!(u64).range(1..=4096))]
    pub megabytes: u64,
    /// The engines to compare Halocline with, separated by commas
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_value = "rocksdb,lmdb")]
    pub engines: Vec<String>,
    /// The result as JSON too, on standard output behind the table
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct DemoWorker {
    /// What to do: `measure` or `write-until-killed`
    pub task: String,
    pub engine: String,
    pub db: PathBuf,
    pub data: PathBuf,
    /// The record to begin at
    #[arg(long, default_value_t = 0)]
    pub skip: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn keys_may_look_like_options() {
        let cli = Cli::try_parse_from(["halocline", "get", "dir", "-x"]).unwrap();
        let Command::Get(get) = cli.command else { panic!("not a get") };
        assert_eq!(get.key, "-x");
        assert!(Cli::try_parse_from(["halocline", "scan", "d", "--from", "a", "--prefix", "b"]).is_err());
    }
}
