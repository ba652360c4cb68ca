//! Cases: what is run. A [`Case`] is one database's life: phases on it, some of them unreported loads. Cases that can
//! share a loaded database are phases of one [`Case`], because a load is dear.
//!
//! [`params`] makes single cases from benchtool's flags, [`dbbench`] from db_bench's names, and there is a file for each
//! suite; [`SUITES`] lists them.

mod core;
mod database;
pub mod dbbench;
mod durable;
mod memory;
pub mod params;
mod quick;
mod scaling;
mod seeds;
pub mod select;
mod smalldatum;
mod splinter;
mod stalls;
#[cfg(test)]
mod tests;
mod values;
mod xodus;
mod ycsb;

pub use database::{Database, LOAD_BATCH};
pub use params::{Params, Workload};

use crate::engine::Config;
use crate::spec::Phase;
use crate::workload::{DataSet, Keys};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// A database's life without the engine: what [`crate::spec::Plan`] has, but for the process.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Case {
    /// A name for progress and errors.
    pub name: String,
    /// The terms.
    pub config: Config,
    /// The keys and values.
    pub set: DataSet,
    /// The work.
    pub phases: Vec<Phase>,
    /// What it is for, in a few words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub about: String,
    /// Bytes of memory that the engine's process may hold, page cache included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_limit: Option<u64>,
}

impl Case {
    /// Whether what commits survive has a part in what is reported. Reads behind an unreported load cost the same in
    /// every class.
    pub fn class_matters(&self) -> bool {
        self.phases.iter().any(|p| !p.case.is_empty() && (p.kind.changes() || p.background.is_some()))
    }

    /// The reported phases.
    pub fn reported(&self) -> impl Iterator<Item = &Phase> {
        self.phases.iter().filter(|p| !p.case.is_empty())
    }
}

/// What a suite is made from.
#[derive(Clone, Debug)]
pub struct Base {
    /// The terms; `ops` is the number of operations, and of keys, of the suite's standard case.
    pub params: Params,
    /// Seconds of phases that run by the clock, where the user gave them.
    pub seconds: Option<f64>,
}

impl Base {
    /// `full` operations of an article, in the proportion of `ops` to the `standard` case's; at least a thousand, if
    /// the article has so many.
    fn scaled(&self, full: u64, standard: u64) -> u64 {
        let scaled = u128::from(full) * u128::from(self.params.ops) / u128::from(standard);
        (scaled as u64).max(full.min(1000))
    }

    /// A part of `ops`, but not so few that the clock tells nothing, if the suite has so many.
    fn fewer(&self, divisor: u64, least: u64) -> u64 {
        (self.params.ops / divisor).max(least.min(self.params.ops)).max(1)
    }
}

/// A set of cases with its defaults.
#[derive(Debug)]
pub struct Suite {
    /// Its name.
    pub name: &'static str,
    /// What it is, in a line.
    pub about: &'static str,
    /// Operations of its standard case, unless `--ops` says otherwise.
    pub ops: u64,
    /// Threads, where a case does not set its own.
    pub threads: usize,
    /// Rounds.
    pub rounds: u32,
    /// An engine that needs longer than so many seconds for a case in one round has no further round of it; 0 for no
    /// such bound.
    pub skip_slow: f64,
    /// Engines.
    pub engines: &'static [&'static str],
    /// Its cases.
    pub cases: fn(&Base) -> Vec<Case>,
}

const MAIN: &[&str] = &["halocline", "rocksdb", "lmdb", "null"];
const ARTICLES: &[&str] = &["halocline", "rocksdb", "rocksdb-default", "tidesdb", "lmdb", "null"];
const EMBEDDED: &[&str] = &["halocline", "rocksdb", "lmdb", "fjall", "redb", "sled", "sqlite", "null"];

/// The suites.
pub const SUITES: &[Suite] = &[
    Suite {
        name: "quick",
        about: "a look at everything in a few minutes: writes, reads, scans, removals, synced commits",
        ops: 200_000,
        threads: 4,
        rounds: 3,
        skip_slow: 10.0,
        engines: EMBEDDED,
        cases: quick::cases,
    },
    Suite {
        name: "core",
        about: "the nine cases that the articles' first tables show",
        ops: 10_000_000,
        threads: 8,
        rounds: 3,
        skip_slow: 0.0,
        engines: MAIN,
        cases: core::cases,
    },
    Suite {
        name: "seeds",
        about: "every case of the articles, at a tenth of their size",
        ops: seeds::STANDARD / 10,
        threads: 8,
        rounds: 3,
        skip_slow: 300.0,
        engines: ARTICLES,
        cases: seeds::cases,
    },
    Suite {
        name: "seeds-full",
        about: "every case of the articles, at full size: hours, hundreds of gigabytes, and much memory",
        ops: seeds::STANDARD,
        threads: 8,
        rounds: 3,
        skip_slow: 3600.0,
        engines: ARTICLES,
        cases: seeds::cases,
    },
    Suite {
        name: "xodus",
        about: "pairs of UUIDs in transactions of 100, by one thread: writes, size, reads, a scan",
        ops: xodus::STANDARD / 10,
        threads: 1,
        rounds: 3,
        skip_slow: 300.0,
        engines: &["halocline", "rocksdb", "xodus", "mapdb", "lmdb", "null"],
        cases: xodus::cases,
    },
    Suite {
        name: "splinterdb",
        about: "random inserts, point queries and ranges of 10 by one thread, in memory and past it, without a log",
        ops: seeds::STANDARD / 10,
        threads: 1,
        rounds: 3,
        skip_slow: 300.0,
        engines: &["halocline", "rocksdb", "splinterdb", "null"],
        cases: splinter::cases,
    },
    Suite {
        name: "smalldatum",
        about: "Mark Callaghan's sequence: fill, read, overwrite, then reads beside a rate-limited writer",
        ops: 5_000_000,
        threads: 4,
        rounds: 3,
        skip_slow: 0.0,
        engines: MAIN,
        cases: smalldatum::cases,
    },
    Suite {
        name: "ycsb",
        about: "YCSB's workloads A to F on records of 1,000 bytes",
        ops: 1_000_000,
        threads: 8,
        rounds: 3,
        skip_slow: 0.0,
        engines: MAIN,
        cases: ycsb::cases,
    },
    Suite {
        name: "stalls",
        about: "ten minutes of saturated random writes with reads (--seconds): what happens second by second",
        ops: 20_000_000,
        threads: 8,
        rounds: 1,
        skip_slow: 0.0,
        engines: &["halocline", "rocksdb", "null"],
        cases: stalls::cases,
    },
    Suite {
        name: "durable",
        about: "synced commits by 1, 2, 4, 8 and 16 threads",
        ops: 1_000,
        threads: 1,
        rounds: 3,
        skip_slow: 120.0,
        engines: EMBEDDED,
        cases: durable::cases,
    },
    Suite {
        name: "memory",
        about: "data of four times the memory limit (--memory-limit, 512M unless given)",
        ops: 0,
        threads: 4,
        rounds: 3,
        skip_slow: 600.0,
        engines: &["halocline", "rocksdb", "lmdb"],
        cases: memory::cases,
    },
    Suite {
        name: "batch",
        about: "random writes in commits of 1 to 10,000",
        ops: 1_000_000,
        threads: 8,
        rounds: 3,
        skip_slow: 300.0,
        engines: MAIN,
        cases: scaling::batches,
    },
    Suite {
        name: "threads",
        about: "random writes and reads by 1 to 16 threads",
        ops: 1_000_000,
        threads: 8,
        rounds: 3,
        skip_slow: 300.0,
        engines: MAIN,
        cases: scaling::threads,
    },
    Suite {
        name: "values",
        about: "values of 32 bytes to 1 MB, the same number of bytes of each",
        ops: 1_000_000,
        threads: 4,
        rounds: 3,
        skip_slow: 300.0,
        engines: &["halocline", "rocksdb", "rocksdb-blob", "lmdb", "null"],
        cases: values::cases,
    },
    Suite {
        name: "huge",
        about: "values of 256 MB and 1 GB: some engines refuse them, all need memory for them",
        ops: 4,
        threads: 1,
        rounds: 1,
        skip_slow: 0.0,
        engines: MAIN,
        cases: values::huge,
    },
];

/// The suite of that name.
pub fn suite(name: &str) -> Result<&'static Suite, String> {
    SUITES.iter().find(|s| s.name == name).ok_or_else(|| {
        let names: Vec<&str> = SUITES.iter().map(|s| s.name).collect();
        format!("no suite is called {name:?}; there are {}", names.join(", "))
    })
}

/// Refuses cases that cannot be run, in words: sizes that make no sense, names that stand for two things.
pub fn check(cases: &[Case]) -> Result<(), String> {
    let (mut names, mut reported) = (BTreeSet::new(), BTreeSet::new());
    for case in cases {
        let failed = |words: String| format!("{}: {words}", case.name);
        if !names.insert(&case.name) {
            return Err(failed("two databases have this name".into()));
        }
        let set = &case.set;
        if set.n == 0 || set.n > u64::from(u32::MAX) {
            return Err(failed(format!("{} keys: between 1 and {} are possible", set.n, u32::MAX)));
        }
        if set.value_len == 0 || set.value_len > MOST_VALUE_BYTES {
            let words = format!("values of {} bytes: 1 to {MOST_VALUE_BYTES} are possible", set.value_len);
            return Err(failed(words));
        }
        Keys::new(set.encoding, set.key_len, set.n, set.seed).map_err(failed)?;
        if case.phases.is_empty() {
            return Err(failed("it has nothing to do".into()));
        }
        for phase in &case.phases {
            let name = if phase.case.is_empty() { "load" } else { &phase.case };
            let failed = |words: String| format!("{name}: {words}");
            if !phase.case.is_empty() && !reported.insert(&phase.case) {
                return Err(failed("two phases have this name".into()));
            }
            check_phase(set, phase).map_err(failed)?;
        }
    }
    Ok(())
}

/// As much as the engines' interfaces have lengths for.
const MOST_VALUE_BYTES: usize = (1 << 31) - 1;
/// More threads than that are a slip of the finger.
const MOST_THREADS: usize = 1024;

fn check_phase(set: &DataSet, phase: &Phase) -> Result<(), String> {
    if phase.ops == 0 || phase.threads == 0 || phase.batch == 0 || phase.range_size == 0 {
        return Err("operations, threads, batch and range size must be at least 1".into());
    }
    let threads = phase.threads + phase.background.map_or(0, |b| b.threads);
    if threads > MOST_THREADS {
        return Err(format!("{threads} threads: at most {MOST_THREADS} are possible"));
    }
    if phase.kind == crate::spec::Kind::Write && phase.order.visits_once() && phase.ops > set.n {
        let (ops, n) = (phase.ops, set.n);
        return Err(format!("{ops} writes of {n} keys in an order that visits each once"));
    }
    if let Some(mix) = phase.mix {
        let sum = mix.read + mix.update + mix.insert + mix.scan + mix.modify;
        if sum != 100 {
            return Err(format!("the shares of its mix add up to {sum} percent, not 100"));
        }
    }
    if (phase.kind == crate::spec::Kind::Mix) != phase.mix.is_some() {
        return Err("a mix has shares, and nothing else has".into());
    }
    if phase.background.is_some_and(|b| b.threads == 0 || b.ops == 0) {
        return Err("a background writer without threads or operations".into());
    }
    Ok(())
}
