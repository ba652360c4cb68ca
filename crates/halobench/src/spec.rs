//! What a child process is told to do, and what it tells back: JSON, one line each.
//!
//! The parent writes a [`Plan`] to the child's standard input and keeps it open: its end tells the child that the
//! parent is gone. The child writes an [`Event`] a line to its standard output. A driver in another language speaks the
//! same lines.

use crate::engine::Config;
use crate::workload::{DataSet, Order};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// What a phase does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Puts.
    Write,
    /// Gets.
    Read,
    /// Gets and puts, by a fair coin, at once.
    Mixed,
    /// Removals.
    Delete,
    /// Seeks, each reading the key it lands on.
    Seek,
    /// Seeks, each followed by a number of entries.
    Range,
    /// One pass over everything.
    Iterate,
    /// A mix of operations, each drawn by its share: see [`Mix`].
    Mix,
}

/// Shares of a [`Kind::Mix`], in percent; they add up to 100. Which operation is which, and of which id, is specified in
/// `docs/lab/generators.md`. All loaded keys must be there. Puts are committed one by one; each scan makes a cursor of its
/// own, so that it sees what was written before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Mix {
    /// Gets of a key that is there.
    pub read: u32,
    /// Puts to a key that is there.
    pub update: u32,
    /// Puts of a key that is not there yet: the ids behind the loaded ones, each once. The data set must have them: a
    /// plan that inserts has an `n` above the `ops` of its load.
    pub insert: u32,
    /// Seeks to a key that is there, each followed by as many entries as are drawn, evenly up to `range_size`.
    pub scan: u32,
    /// A get and a put of the same key, one operation.
    pub modify: u32,
    /// Whether gets prefer the newest keys instead of following the phase's order.
    pub latest: bool,
}

/// Threads that write while a phase of reads (gets, seeks, ranges, passes) goes on, until its last read is done. They
/// overwrite loaded ids drawn evenly, each put committed on its own. Meanwhile each seek and range makes a cursor of its
/// own, and that is part of its latency: it sees what was written before it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Background {
    /// How many threads.
    pub threads: usize,
    /// Writes a second, of all of them; 0 means as fast as they can.
    pub rate: f64,
    /// Most writes of all of them. Choose more than the rate can bring: where they run out (then `background_ops` is
    /// this number), the rest of the reads is undisturbed.
    pub ops: u64,
}

impl Kind {
    /// Whether it changes the data.
    pub fn changes(self) -> bool {
        matches!(self, Kind::Write | Kind::Mixed | Kind::Delete | Kind::Mix)
    }
}

/// One timed (or loading) stretch of work.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Phase {
    /// The case it belongs to; empty for a load, which is not reported.
    pub case: String,
    /// What it does.
    pub kind: Kind,
    /// In which order it visits the ids.
    pub order: Order,
    /// Number of operations.
    pub ops: u64,
    /// Number of threads.
    pub threads: usize,
    /// Writes in a commit.
    pub batch: u64,
    /// Entries in a range.
    pub range_size: u32,
    /// Whether to settle afterwards.
    pub settle: bool,
    /// The phase's number: sets its draws and its versions apart from other phases'. Below 2^20, and no two phases of a
    /// plan have the same.
    pub stream: u64,
    /// Arrivals a second, of all threads: an open loop with Poisson arrivals for each thread, whose latencies count from
    /// the moment an operation was due. A batch arrives as one; it counts as many operations as it has. 0 means a
    /// closed loop. Not for [`Kind::Iterate`].
    #[serde(default, skip_serializing_if = "is_zero")]
    pub rate: f64,
    /// Ends the phase after so many seconds, even if operations are left; each thread ends its operation or batch. 0 means
    /// no such end. What the database must hold follows from what each thread did.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub seconds: f64,
    /// Whether ranges, passes and the scans of a mix go from the back to the front: a range reads the entry of its key
    /// and those before it.
    #[serde(default, skip_serializing_if = "is_false")]
    pub backward: bool,
    /// The shares of a [`Kind::Mix`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mix: Option<Mix>,
    /// Writes that go on meanwhile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub background: Option<Background>,
}

fn is_zero(x: &f64) -> bool {
    *x == 0.0
}

fn is_none_done(x: &u64) -> bool {
    *x == 0
}

fn is_false(x: &bool) -> bool {
    !*x
}

/// A database's life: opened empty, worked on phase by phase, closed, reopened and checked.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Plan {
    /// A name for progress and errors.
    pub name: String,
    /// Which engine.
    pub engine: String,
    /// A folder for it alone, that the child may remove.
    pub dir: PathBuf,
    /// The terms.
    pub config: Config,
    /// The keys and values.
    pub set: DataSet,
    /// The work.
    pub phases: Vec<Phase>,
    /// Longest wait for the engine's background work, in seconds.
    pub settle_limit_s: u64,
    /// Times one operation in this many.
    pub latency_every: u64,
}

/// Percentiles in nanoseconds.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Latency {
    /// Whether one sample is a whole batch.
    pub per_batch: bool,
    /// Samples taken.
    pub samples: u64,
    /// Mean.
    pub mean_ns: f64,
    /// Standard deviation.
    #[serde(default)]
    pub stddev_ns: f64,
    /// Shortest.
    #[serde(default)]
    pub min_ns: u64,
    /// Median.
    pub p50_ns: u64,
    /// 95th percentile.
    pub p95_ns: u64,
    /// 99th percentile.
    pub p99_ns: u64,
    /// 99.9th percentile.
    pub p999_ns: u64,
    /// 99.99th percentile.
    pub p9999_ns: u64,
    /// Longest.
    pub max_ns: u64,
}

/// Differences of counters over a stretch of time.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Usage {
    /// Seconds of CPU in user mode.
    pub cpu_user_s: f64,
    /// Seconds of CPU in the kernel.
    pub cpu_system_s: f64,
    /// Times a thread waited.
    pub switches_voluntary: u64,
    /// Times a thread was made to wait.
    pub switches_involuntary: u64,
    /// Bytes fetched from the disk.
    pub read_bytes: u64,
    /// Bytes of pages made dirty, to be written to the disk.
    pub write_bytes: u64,
    /// Of these, bytes never written because their file went away first.
    pub cancelled_write_bytes: u64,
}

/// Peaks of resident memory, in bytes.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Memory {
    /// Of the process's own.
    pub anon: u64,
    /// Of mapped files.
    pub file: u64,
    /// Of shared memory.
    pub shmem: u64,
    /// The harness's own part of `anon`: keys to visit, values, expectations.
    pub harness: u64,
}

/// Bytes in a folder.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Space {
    /// Blocks allocated.
    pub allocated: u64,
    /// Lengths of the files.
    pub apparent: u64,
    /// Number of files.
    pub files: u64,
}

/// After the engine's background work was awaited.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Settled {
    /// How long it took.
    pub seconds: f64,
    /// False if the limit was reached first.
    pub done: bool,
    /// Since the phase began, so with the phase itself.
    pub usage: Usage,
    /// In the folder then.
    pub space: Space,
}

/// What a phase was found to be.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct PhaseResult {
    /// The case.
    pub case: String,
    /// Operations done.
    pub ops: u64,
    /// From the first thread's start to the last one's end.
    pub seconds: f64,
    /// Operations a second.
    pub ops_per_s: f64,
    /// Bytes of keys and values that were written.
    pub user_bytes: u64,
    /// Latencies.
    pub latency: Latency,
    /// The same as an HDR histogram of nanoseconds: V2 encoding, not compressed, base64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub histogram: Option<String>,
    /// Latencies of each sort of operation, where a phase has several: `get` and `put` of a mixed phase; `read`,
    /// `update`, `insert`, `scan` and `modify` of a mix; `background` for the background's puts, which `latency` leaves
    /// out.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub parts: BTreeMap<String, Latency>,
    /// Operations of the background's writers; `ops` leaves them out, `user_bytes` has them.
    #[serde(default, skip_serializing_if = "is_none_done")]
    pub background_ops: u64,
    /// In an open loop, the most seconds by which an operation began behind the moment it was due: if it is large, the
    /// engine did not hold the rate, and `ops_per_s` is what it held.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub lag_s: f64,
    /// Seconds since the start, and operations done by then: a point every 0.1 s in a phase of up to a minute, else one
    /// a second; the last one is at the end.
    pub series: Vec<(f64, u64)>,
    /// Counters.
    pub usage: Usage,
    /// Memory.
    pub memory: Memory,
    /// The folder at the end of the phase.
    pub space: Space,
    /// Bytes of keys and values that the database holds.
    pub live_bytes: u64,
    /// After settling, if that was asked for.
    pub settled: Option<Settled>,
    /// Wrong answers, while timed and in the check of the state behind it.
    pub wrong: u64,
    /// The first few of them, in words.
    pub wrong_examples: Vec<String>,
    /// Digest of all values read while timed, where reads do not race with writes (gets, ranges and passes without
    /// background): the wrapping sum, over the values that gets and cursors lent, of `mix(first + mix(last) + length)`,
    /// where first and last are the value's first and last eight bytes, little endian (a shorter value is padded with
    /// zeros behind it). Sixteen hex digits. Engines that gave the same answers have the same digest, unless the phase
    /// ended by time or an earlier race of writers left it open which write survived.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_digest: Option<String>,
    /// Digest of the whole state, where it was checked: equal states have equal digests.
    pub digest: Option<String>,
    /// What the engine says about itself.
    pub stats: BTreeMap<String, String>,
}

/// The end of a plan.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Ending {
    /// Seconds the close took.
    pub close_s: f64,
    /// The folder after the close.
    pub space: Space,
    /// Counters from the first open to the close.
    pub usage: Usage,
    /// Bytes of keys and values written over the whole plan.
    pub user_bytes: u64,
    /// Bytes of keys and values that the database holds.
    pub live_bytes: u64,
    /// Seconds the reopening took.
    pub reopen_s: f64,
    /// Wrong entries found after it.
    pub wrong: u64,
    /// The first few of them, in words.
    pub wrong_examples: Vec<String>,
}

/// What a child says.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// It begins a phase (a case's name, or what else it does).
    Begin(String),
    /// It measured a phase.
    Phase(Box<PhaseResult>),
    /// It closed and reopened the database, and all is done.
    End(Box<Ending>),
    /// It cannot go on: in which phase, after how many operations, and why. The phases before it stand.
    Failed(String),
}
