//! A run: each engine through each case, one process each, in interleaved rounds (A B C, then C B A, ...).

pub(crate) mod guest;
mod process;

use crate::cases::Case;
use crate::child::ARGUMENT;
use crate::driver::Start;
use crate::engine::registry::{self, Availability, How};
use crate::report::{Report, Run};
use crate::spec::Plan;
use crate::{interrupt, machine};
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// What to run.
#[derive(Clone, Debug)]
pub struct Job {
    /// Names of engines.
    pub engines: Vec<String>,
    /// The cases.
    pub cases: Vec<Case>,
    /// How often.
    pub rounds: u32,
    /// Where databases go; a temporary folder otherwise.
    pub dir: Option<PathBuf>,
    /// RocksDB's library, instead of the fetched one.
    pub rocksdb_lib: Option<PathBuf>,
    /// Longest wait for an engine's background work, in seconds.
    pub settle_limit_s: u64,
    /// Times one operation in this many.
    pub latency_every: u64,
    /// Longest life of a child.
    pub timeout: Duration,
    /// The program to start as a child: one that calls [`crate::child::enter_if_child`]. This one otherwise.
    pub program: Option<PathBuf>,
}

/// Where a run stands.
#[derive(Clone, Debug)]
pub struct Step<'a> {
    /// Children done.
    pub done: usize,
    /// Children in all.
    pub of: usize,
    /// From 0.
    pub round: u32,
    /// The engine.
    pub engine: &'a str,
    /// The case.
    pub case: &'a str,
    /// What the child does now.
    pub doing: &'a str,
}

/// Runs a job; `observe` is told where it stands.
pub fn run(job: &Job, observe: &mut dyn FnMut(&Step<'_>)) -> Result<Report, String> {
    let parent = job.dir.clone().unwrap_or_else(std::env::temp_dir);
    std::fs::create_dir_all(&parent).map_err(|e| format!("creating {}: {e}", parent.display()))?;
    let program = match &job.program {
        Some(p) => p.clone(),
        None => std::env::current_exe().map_err(|e| format!("finding this program: {e}"))?,
    };
    let engines = available(job)?;
    let mut report = Report {
        format: Report::FORMAT,
        halobench: env!("CARGO_PKG_VERSION").into(),
        command: std::env::args().collect(),
        started_unix_s: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs()),
        machine: machine::here(&parent),
        engines,
        rounds: job.rounds,
        cases: job.cases.clone(),
        runs: Vec::new(),
    };
    let runnable: Vec<String> =
        report.engines.iter().filter(|e| e.missing.is_none()).map(|e| e.name.clone()).collect();
    let of = runnable.len() * job.cases.len() * job.rounds as usize;
    for round in 0..job.rounds {
        for case in &job.cases {
            let mut order = runnable.clone();
            if round % 2 == 1 {
                order.reverse();
            }
            for engine in order {
                let done = report.runs.len();
                let temp = tempfile::Builder::new()
                    .prefix("halobench-")
                    .tempdir_in(&parent)
                    .map_err(|e| format!("creating a folder in {}: {e}", parent.display()))?;
                interrupt::set_dir(Some(temp.path()));
                let mut config = case.config.clone();
                config.rocksdb_lib.clone_from(&job.rocksdb_lib);
                let plan = Plan {
                    name: case.name.clone(),
                    engine: engine.clone(),
                    dir: temp.path().into(),
                    config,
                    set: case.set.clone(),
                    phases: case.phases.clone(),
                    settle_limit_s: job.settle_limit_s,
                    latency_every: job.latency_every,
                };
                let start = match registry::find(&engine)?.how {
                    How::Here { .. } => Start { program: program.clone(), args: vec![ARGUMENT.into()] },
                    How::Driver(driver) => driver.start()?,
                };
                let mut begin = |doing: &str| {
                    observe(&Step { done, of, round, engine: &engine, case: &case.name, doing });
                };
                let outcome = process::run(&start, &plan, job.timeout, &mut begin);
                report.runs.push(Run {
                    round,
                    engine: engine.clone(),
                    case: case.name.clone(),
                    phases: outcome.phases,
                    ending: outcome.ending,
                    error: outcome.error,
                });
                interrupt::set_dir(None);
                temp.close().map_err(|e| format!("removing a temporary folder: {e}"))?;
            }
        }
    }
    Ok(report)
}

/// Which of the job's engines can be run.
fn available(job: &Job) -> Result<Vec<Availability>, String> {
    if job.cases.is_empty() || job.rounds == 0 {
        return Err("no case or no round to run".into());
    }
    let mut seen = Vec::new();
    for name in &job.engines {
        if !seen.contains(name) {
            seen.push(name.clone());
        }
    }
    seen.iter().map(|name| Ok(registry::find(name)?.availability(job.rocksdb_lib.as_deref()))).collect()
}
