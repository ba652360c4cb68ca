//! Tests what each engine's durability classes claim: kills a process that commits, again and again, and looks what is
//! left.
//!
//! A child opens the engine in a class and commits numbered writes from several threads ([`work`]); it notes each
//! commit that returned in a file that survives it ([`ledger`]). The parent kills it with SIGKILL at a random moment.
//! Another child opens the database and writes down every entry ([`child`]), and the parent compares (`judge`). The
//! database is kept from kill to kill. A kill leaves the page cache as it is, so it tells nothing about power loss; for
//! that, the calls by which commits ask for it are counted ([`syncs`]).
//!
//! `docs/lab/durability.md` describes the method and its limits.

pub mod child;
mod judge;
mod kills;
pub mod ledger;
pub mod syncs;
pub mod table;
pub mod task;
pub mod work;

use crate::child::ARGUMENT;
use crate::driver::Start;
use crate::engine::registry::{self, Entry, How};
use crate::engine::{Compression, Config, Durability};
use crate::interrupt;
use crate::machine::{self, Machine};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use syncs::Syncs;

/// What to test.
#[derive(Clone, Debug)]
pub struct Job {
    /// Names of engines.
    pub engines: Vec<String>,
    /// Classes; empty for all that each engine has.
    pub classes: Vec<Durability>,
    /// Kills of each engine in each class.
    pub kills: u32,
    /// Threads that commit.
    pub threads: u64,
    /// Slots of each thread (see [`work`]).
    pub slots: u64,
    /// Writes in a batch.
    pub batch: u64,
    /// The seed of keys, values and moments.
    pub seed: u64,
    /// Longest time from the open to the kill.
    pub longest: Duration,
    /// Bytes of a memtable: small, so that kills fall into flushes and merges.
    pub write_buffer: usize,
    /// Whether to count syncs, too.
    pub syncs: bool,
    /// Where databases go; a temporary folder otherwise.
    pub dir: Option<PathBuf>,
    /// RocksDB's library, instead of the fetched one.
    pub rocksdb_lib: Option<PathBuf>,
    /// Longest wait for an open, and for a check.
    pub timeout: Duration,
    /// The program to start as a child: one that calls [`crate::child::enter_if_child`]. This one otherwise.
    pub program: Option<PathBuf>,
}

impl Default for Job {
    fn default() -> Job {
        Job {
            engines: Vec::new(),
            classes: Vec::new(),
            kills: 20,
            threads: 4,
            slots: 1024,
            batch: 10,
            seed: 42,
            longest: Duration::from_millis(400),
            write_buffer: 1 << 20,
            syncs: true,
            dir: None,
            rocksdb_lib: None,
            timeout: Duration::from_secs(60),
            program: None,
        }
    }
}

/// Where a test stands.
#[derive(Clone, Debug)]
pub struct Step<'a> {
    /// Rows done.
    pub done: usize,
    /// Rows in all.
    pub of: usize,
    /// The engine.
    pub engine: &'a str,
    /// The class.
    pub class: Durability,
    /// What goes on.
    pub doing: String,
}

/// What a class was found to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The engine, or the class, is not here: the row says why.
    Missing,
    /// Not tested, though it should have been: the row says why.
    Untested,
    /// It kept what it claims.
    AsClaimed,
    /// It kept more.
    Better,
    /// It broke its claim.
    Worse,
}

/// An engine in a class.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Row {
    /// The engine.
    pub engine: String,
    /// Its version.
    pub version: String,
    /// The class.
    pub class: Durability,
    /// The setting that gives it.
    pub setting: String,
    /// Kills.
    pub kills: u32,
    /// Of these, kills before the database was open.
    pub kills_while_opening: u32,
    /// Commits that returned.
    pub acked: u64,
    /// Of these, commits that were gone (see `judge::Findings` for this and the next three).
    pub lost: u64,
    /// Kills that lost any.
    pub kills_with_loss: u32,
    /// Lost commits of threads whose newer commits were there.
    pub holes: u64,
    /// Batches of which a part was there.
    pub torn: u64,
    /// Entries that nobody wrote.
    pub wrong: u64,
    /// Keys for which `get` and a scan differed.
    pub disagreements: u64,
    /// Opens or scans that failed after a kill. The first one ends the row, except in the class that claims nothing: it
    /// goes on with an empty database there.
    pub failed_opens: u32,
    /// Median of the times that opens after kills took, in seconds.
    pub reopen_median_s: f64,
    /// The longest of them.
    pub reopen_max_s: f64,
    /// How one thread's commits sync, if that was counted.
    pub syncs: Option<Syncs>,
    /// Why it was not.
    pub syncs_missing: Option<String>,
    /// Why the row is not what was asked for.
    pub error: Option<String>,
    /// The judgement.
    pub verdict: Verdict,
    /// What there is to say about it.
    pub notes: Vec<String>,
    /// The first few faults, in words.
    pub examples: Vec<String>,
}

/// What a test found.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Table {
    /// The format of this file.
    pub format: u32,
    /// The lab's version.
    pub halobench: String,
    /// The command line.
    pub command: Vec<String>,
    /// When it began.
    pub started_unix_s: u64,
    /// Where.
    pub machine: Machine,
    /// Threads that committed.
    pub threads: u64,
    /// Writes in a batch.
    pub batch: u64,
    /// The seed.
    pub seed: u64,
    /// Longest time from an open to a kill, in milliseconds.
    pub longest_ms: u64,
    /// Bytes of a memtable.
    pub write_buffer: usize,
    /// Whether it was stopped before its end.
    pub interrupted: bool,
    /// The rows.
    pub rows: Vec<Row>,
}

impl Row {
    fn new(entry: &Entry, version: &str, class: Durability, setting: &str) -> Row {
        Row {
            engine: entry.name.into(),
            version: version.into(),
            class,
            setting: setting.into(),
            kills: 0,
            kills_while_opening: 0,
            acked: 0,
            lost: 0,
            kills_with_loss: 0,
            holes: 0,
            torn: 0,
            wrong: 0,
            disagreements: 0,
            failed_opens: 0,
            reopen_median_s: 0.0,
            reopen_max_s: 0.0,
            syncs: None,
            syncs_missing: None,
            error: None,
            verdict: Verdict::Untested,
            notes: Vec::new(),
            examples: Vec::new(),
        }
    }

    fn add(&mut self, found: &judge::Findings, checked: &task::Checked) {
        self.acked += found.acked;
        self.lost += found.lost;
        self.kills_with_loss += u32::from(found.lost > 0);
        self.holes += found.holes;
        self.torn += found.torn;
        self.wrong += found.wrong;
        self.disagreements += checked.disagreements;
        let kill = self.kills;
        let more = found.examples.iter().chain((checked.disagreements > 0).then_some(&checked.example));
        self.examples.extend(more.map(|words| format!("kill {kill}: {words}")));
        self.examples.truncate(6);
    }

    /// A database that could not be opened or read has lost everything.
    fn add_failed_open(&mut self, acked: u64, words: &str) {
        self.failed_opens += 1;
        self.acked += acked;
        self.lost += acked;
        self.kills_with_loss += u32::from(acked > 0);
        self.examples.push(format!("kill {}: {words}", self.kills));
        self.examples.truncate(6);
    }

    /// Judges the figures.
    fn judge(&mut self) {
        let mut worse = Vec::new();
        let mut better = Vec::new();
        let mut notes = Vec::new();
        for (count, what) in [
            (self.wrong, "entries that nobody wrote"),
            (self.disagreements, "answers of get and scan that differ"),
        ] {
            if count > 0 {
                worse.push(format!("{count} {what}"));
            }
        }
        let broken = [
            (u64::from(self.failed_opens), "times it could not be opened, or not be read, after a kill"),
            (self.lost, "acknowledged commits are gone"),
            (self.torn, "batches are torn"),
            (self.holes, "of the lost commits came before commits of the same thread that are there"),
        ];
        for (count, what) in broken {
            if count > 0 {
                let list = if self.class == Durability::None { &mut notes } else { &mut worse };
                list.push(format!("{count} {what}"));
            }
        }
        if self.class == Durability::None
            && self.kills > 0
            && self.acked > 0
            && self.lost + u64::from(self.failed_opens) == 0
        {
            better.push("no kill took anything".to_string());
        }
        if let Some(s) = &self.syncs {
            let unseen = if s.blind() { " (some syncs cannot be seen)" } else { "" };
            match self.class {
                Durability::Sync if s.bare > 0 && s.blind() => {
                    notes.push(format!("{} of {} commits without a sync{unseen}", s.bare, s.commits));
                }
                Durability::Sync if s.bare > 0 => {
                    worse.push(format!("{} of {} commits returned without a sync", s.bare, s.commits));
                }
                Durability::Interval if s.safe() == 0 && !s.blind() => {
                    worse.push(format!("no sync in {:.1} s", s.seconds));
                }
                Durability::None | Durability::Process if s.commits > 0 && s.bare == 0 => {
                    better.push("each commit syncs".to_string());
                }
                _ => {}
            }
        }
        let tested = self.kills > 0 && (self.error.is_none() || !worse.is_empty());
        self.verdict = match (tested, worse.is_empty(), better.is_empty()) {
            (false, ..) => Verdict::Untested,
            (true, false, _) => Verdict::Worse,
            (true, true, false) => Verdict::Better,
            (true, true, true) => Verdict::AsClaimed,
        };
        self.notes = [worse, better, notes].concat();
    }
}

impl Table {
    /// The format this program writes.
    pub const FORMAT: u32 = 1;

    /// Whether every row of what is here was tested, and none broke its claim.
    pub fn is_good(&self) -> bool {
        self.rows.iter().all(|r| !matches!(r.verdict, Verdict::Worse | Verdict::Untested))
    }
}

/// Tests every engine of a job in every class; `observe` is told where it stands. A test that cannot be made is a row
/// that says so; an error is one of the job.
pub fn verify(job: &Job, observe: &mut dyn FnMut(&Step<'_>)) -> Result<Table, String> {
    work::Work::new(task::Shape {
        threads: job.threads,
        slots: job.slots,
        batch: job.batch,
        seed: job.seed,
    })?;
    if job.kills == 0 {
        return Err("no kill to make".into());
    }
    let parent = job.dir.clone().unwrap_or_else(std::env::temp_dir);
    std::fs::create_dir_all(&parent).map_err(|e| format!("creating {}: {e}", parent.display()))?;
    let program = match &job.program {
        Some(p) => p.clone(),
        None => std::env::current_exe().map_err(|e| format!("finding this program: {e}"))?,
    };
    let mut rows = Vec::new();
    for name in &job.engines {
        let entry = registry::find(name)?;
        let found = entry.availability(job.rocksdb_lib.as_deref());
        let version = found.version.unwrap_or_default();
        if job.classes.is_empty() {
            rows.extend(entry.classes.iter().map(|&(c, setting)| Row::new(&entry, &version, c, setting)));
        }
        for &class in &job.classes {
            let setting = entry.classes.iter().find(|&&(c, _)| c == class).map(|&(_, words)| words);
            let mut row = Row::new(&entry, &version, class, setting.unwrap_or("-"));
            if setting.is_none() {
                row.error = Some("it has no such class".into());
                row.verdict = Verdict::Missing;
            }
            rows.push(row);
        }
        if let Some(why) = found.missing {
            for row in rows.iter_mut().filter(|r| r.engine == *name) {
                row.error = Some(why.clone());
                row.verdict = Verdict::Missing;
            }
        }
    }
    let mut table = Table {
        format: Table::FORMAT,
        halobench: env!("CARGO_PKG_VERSION").into(),
        command: std::env::args().collect(),
        started_unix_s: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs()),
        machine: machine::here(&parent),
        threads: job.threads,
        batch: job.batch,
        seed: job.seed,
        longest_ms: job.longest.as_millis() as u64,
        write_buffer: job.write_buffer,
        interrupted: false,
        rows,
    };
    let of = table.rows.len();
    interrupt::set_running(true);
    for (done, row) in table.rows.iter_mut().enumerate() {
        if interrupt::requested() {
            row.error = Some("stopped before".into());
        }
        if row.error.is_some() {
            continue;
        }
        let start = match registry::find(&row.engine)?.how {
            How::Here { .. } => Start { program: program.clone(), args: vec![ARGUMENT.into()] },
            How::Driver(driver) => match driver.start() {
                Ok(start) => start,
                Err(e) => {
                    row.error = Some(e);
                    row.verdict = Verdict::Missing;
                    continue;
                }
            },
        };
        let temp = tempfile::Builder::new()
            .prefix("halobench-")
            .tempdir_in(&parent)
            .map_err(|e| format!("creating a folder in {}: {e}", parent.display()))?;
        interrupt::set_dir(Some(temp.path()));
        let (engine, class, blank) = (row.engine.clone(), row.class, row.clone());
        test(job, start, temp.path(), row, &mut |doing| {
            observe(&Step { done, of, engine: &engine, class, doing });
        });
        if interrupt::requested() {
            // What the interruption broke off says nothing about the engine.
            *row = Row { error: Some("stopped".into()), ..blank };
        }
        temp.close().map_err(|e| format!("removing a temporary folder: {e}"))?;
        interrupt::set_dir(None);
    }
    interrupt::set_running(false);
    table.interrupted = interrupt::requested();
    Ok(table)
}

/// Tests one row.
fn test(job: &Job, start: Start, dir: &std::path::Path, row: &mut Row, observe: &mut dyn FnMut(String)) {
    let engine = row.engine.clone();
    let config = Config {
        write_buffer: job.write_buffer,
        cache: 8 << 20,
        durability: row.class,
        compression: Compression::Lz4,
        threads: job.threads as usize,
        expected_bytes: job.threads * job.slots * (job.batch + 1) * 300 + (64 << 20),
        rocksdb_lib: job.rocksdb_lib.clone(),
    };
    let mut subject = kills::Subject { job, start, engine: &engine, config, dir };
    let kills = job.kills;
    row.error = subject.kills(row, &mut |kill| observe(format!("kill {} of {kills}", kill + 1))).err();
    if job.syncs && row.kills > 0 {
        observe("counting syncs".into());
        // Enough memory that none of them is a flush's.
        subject.config.write_buffer = 256 << 20;
        match subject.syncs(row.class == Durability::Interval) {
            Ok(syncs) => row.syncs = Some(syncs),
            Err(e) => row.syncs_missing = Some(e),
        }
    }
    row.judge();
}

/// The task in a child's first line, if it is one.
pub fn task_in(line: &str) -> Option<task::Task> {
    serde_json::from_str::<task::Line>(line).ok().map(|line| line.durability)
}

/// The engine's claim in each class, in the words of the table's legend.
pub fn claim(class: Durability) -> &'static str {
    match class {
        Durability::None => "nothing: a killed process may take commits",
        Durability::Process => "commits survive a killed process",
        Durability::Interval => "commits survive a killed process, and are synced at intervals",
        Durability::Sync => "commits survive power loss",
    }
}
