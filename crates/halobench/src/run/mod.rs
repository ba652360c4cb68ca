//! A run: each engine through each case, one process each, in interleaved rounds (A B C, then C B A, ...).
//!
//! What is known so far is kept: the report is saved behind every child, and an interrupted run returns what it has.

pub mod cgroup;
pub mod classes;
pub mod eta;
pub(crate) mod guest;
mod process;

use crate::cases::{self, Case};
use crate::child::ARGUMENT;
use crate::driver::Start;
use crate::engine::registry::{self, Availability, How};
use crate::report::{Report, Run};
use crate::spec::Plan;
use crate::{interrupt, machine};
use cgroup::Group;
use eta::Durations;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// What to run.
#[derive(Clone, Debug)]
pub struct Job {
    /// Names of engines.
    pub engines: Vec<String>,
    /// The cases.
    pub cases: Vec<Case>,
    /// The suite they are from.
    pub suite: Option<String>,
    /// How often.
    pub rounds: u32,
    /// Where databases go; a temporary folder otherwise.
    pub dir: Option<PathBuf>,
    /// Whether databases stay when they are done with.
    pub keep: bool,
    /// The file to keep the report in while the run goes on.
    pub save: Option<PathBuf>,
    /// RocksDB's library, instead of the fetched one.
    pub rocksdb_lib: Option<PathBuf>,
    /// Longest wait for an engine's background work, in seconds.
    pub settle_limit_s: u64,
    /// Times one operation in this many.
    pub latency_every: u64,
    /// Longest life of a child.
    pub timeout: Duration,
    /// An engine that needed more seconds for a case has no further round of it; 0 for no such bound.
    pub skip_slow: f64,
    /// Whether an engine without a case's durability class is run in another.
    pub any_durability: bool,
    /// The program to start as a child: one that calls [`crate::child::enter_if_child`]. This one otherwise.
    pub program: Option<PathBuf>,
}

impl Default for Job {
    fn default() -> Job {
        Job {
            engines: Vec::new(),
            cases: Vec::new(),
            suite: None,
            rounds: 3,
            dir: None,
            keep: false,
            save: None,
            rocksdb_lib: None,
            settle_limit_s: 600,
            latency_every: 1,
            timeout: Duration::from_secs(3600),
            skip_slow: 0.0,
            any_durability: false,
            program: None,
        }
    }
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
    /// Seconds that are left, this child's own included, when it began.
    pub left_s: Option<f64>,
    /// What came of it, when it ended.
    pub ended: Option<&'a Run>,
}

/// One child to be.
#[derive(Clone, Debug)]
struct Turn<'a> {
    round: u32,
    case: &'a Case,
    engine: &'a Availability,
}

/// Runs a job; `observe` is told where it stands.
pub fn run(job: &Job, observe: &mut dyn FnMut(&Step<'_>)) -> Result<Report, String> {
    if job.cases.is_empty() || job.rounds == 0 {
        return Err("no case or no round to run".into());
    }
    cases::check(&job.cases)?;
    let parent = job.dir.clone().unwrap_or_else(std::env::temp_dir);
    std::fs::create_dir_all(&parent).map_err(|e| format!("creating {}: {e}", parent.display()))?;
    room(&parent, &job.cases)?;
    let engines = available(job)?;
    let before = machine::Snapshot::now();
    let mut report = Report {
        format: Report::FORMAT,
        halobench: env!("CARGO_PKG_VERSION").into(),
        command: std::env::args().collect(),
        started_unix_s: now(),
        machine: machine::here(&parent),
        engines: engines.clone(),
        rounds: job.rounds,
        cases: job.cases.clone(),
        suite: job.suite.clone(),
        ..Report::default()
    };
    interrupt::set_running(true);
    let done = turns_of(job, &engines, &parent, &mut report, &before, observe);
    interrupt::set_running(false);
    done?;
    Ok(report)
}

/// Takes all turns in their order.
fn turns_of(
    job: &Job,
    engines: &[Availability],
    parent: &Path,
    report: &mut Report,
    before: &machine::Snapshot,
    observe: &mut dyn FnMut(&Step<'_>),
) -> Result<(), String> {
    let program = match &job.program {
        Some(p) => p.clone(),
        None => std::env::current_exe().map_err(|e| format!("finding this program: {e}"))?,
    };
    let turns = turns(job, engines);
    let mut durations = Durations::default();
    // Engines that were too slow for a case, or that died of it twice.
    let mut slow: BTreeSet<(String, String)> = BTreeSet::new();
    for (done, turn) in turns.iter().enumerate() {
        if interrupt::requested() {
            report.interrupted = true;
            break;
        }
        let (engine, case) = (turn.engine.name.as_str(), turn.case.name.as_str());
        let key = (engine.to_string(), case.to_string());
        let blank = Run { round: turn.round, engine: engine.into(), case: case.into(), ..Run::default() };
        let rest = turns[done..].iter().filter(|t| {
            !slow.contains(&(t.engine.name.clone(), t.case.name.clone()))
                && classes::choose(t.engine, t.case, job.any_durability).is_ok()
        });
        let mut step = Step {
            done,
            of: turns.len(),
            round: turn.round,
            engine,
            case,
            doing: "",
            left_s: durations.sum(rest.map(|t| (t.engine.name.as_str(), t.case.name.as_str()))),
            ended: None,
        };
        let result = if slow.contains(&key) {
            let words = format!("needed more than {} s before (--skip-slow): fewer rounds", job.skip_slow);
            Run { left_out: Some(words), ..blank }
        } else {
            match classes::choose(turn.engine, turn.case, job.any_durability) {
                Err(words) => Run { left_out: Some(words), ..blank },
                Ok(choice) => {
                    let mut begin = |doing: &str| observe(&Step { doing, ..step.clone() });
                    let result = one(job, turn, &choice, &program, parent, blank, &mut begin)?;
                    durations.add(engine, case, result.seconds);
                    result
                }
            }
        };
        if job.skip_slow > 0.0 && result.seconds > job.skip_slow {
            slow.insert(key);
        }
        if interrupt::requested() {
            // A child that was stopped has nothing to say.
            report.interrupted = true;
        } else {
            step.ended = Some(&result);
            observe(&step);
            report.runs.push(result);
        }
        report.ended_unix_s = now();
        report.machine.end(before);
        if let Some(path) = &job.save {
            report.save(path)?;
        }
    }
    Ok(())
}

/// All children to be, in the order of their turns.
fn turns<'a>(job: &'a Job, engines: &'a [Availability]) -> Vec<Turn<'a>> {
    let mut turns = Vec::new();
    for round in 0..job.rounds {
        for case in &job.cases {
            let runnable = engines.iter().filter(|e| e.missing.is_none());
            let turn = |engine| Turn { round, case, engine };
            if round % 2 == 1 {
                turns.extend(runnable.rev().map(turn));
            } else {
                turns.extend(runnable.map(turn));
            }
        }
    }
    turns
}

/// One child, from its empty folder to the folder's removal.
fn one(
    job: &Job,
    turn: &Turn<'_>,
    choice: &classes::Choice,
    program: &Path,
    parent: &Path,
    mut result: Run,
    begin: &mut dyn FnMut(&str),
) -> Result<Run, String> {
    let (engine, case) = (&turn.engine.name, turn.case);
    let temp = tempfile::Builder::new()
        .prefix("halobench-")
        .tempdir_in(parent)
        .map_err(|e| format!("creating a folder in {}: {e}", parent.display()))?;
    interrupt::set_dir(Some(temp.path()));
    let mut config = case.config.clone();
    config.rocksdb_lib.clone_from(&job.rocksdb_lib);
    config.durability = choice.class;
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
    result.other_class = choice.other.then_some(choice.class);
    result.notes.extend(choice.note.clone());
    let group = case.memory_limit.and_then(|limit| match Group::new(limit) {
        Ok(group) => Some(group),
        Err(why) => {
            result.notes.push(format!("run without its memory limit of {} MB: {why}", limit >> 20));
            None
        }
    });
    let started = Instant::now();
    let start = match registry::find(engine)?.how {
        How::Here { .. } => Ok(Start { program: program.into(), args: vec![ARGUMENT.into()] }),
        How::Driver(driver) => driver.start(),
    };
    match start {
        Ok(start) => {
            let outcome = process::run(&start, &plan, job.timeout, group.as_ref(), begin);
            (result.phases, result.ending, result.error) = (outcome.phases, outcome.ending, outcome.error);
        }
        Err(why) => result.error = Some(why),
    }
    result.seconds = started.elapsed().as_secs_f64();
    result.limited_peak = group.as_ref().and_then(Group::peak);
    drop(group);
    if job.keep {
        interrupt::set_dir(None);
        result.notes.push(format!("its database is kept in {}", temp.keep().display()));
    } else {
        // A second interruption finishes the removal that it finds under way.
        let removed = remove(temp);
        interrupt::set_dir(None);
        if !interrupt::requested() {
            removed?;
        }
    }
    Ok(result)
}

/// A child that was killed may be writing its last: what it made after one pass goes in the next.
fn remove(temp: tempfile::TempDir) -> Result<(), String> {
    let path = temp.path().to_path_buf();
    let mut removed = temp.close();
    for _ in 0..20 {
        if removed.is_ok() || !path.exists() {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(50));
        removed = std::fs::remove_dir_all(&path);
    }
    removed.map_err(|e| format!("removing {}: {e}", path.display()))
}

/// Which of the job's engines can be run; each once.
fn available(job: &Job) -> Result<Vec<Availability>, String> {
    let mut seen = Vec::new();
    for name in &job.engines {
        if !seen.contains(name) {
            seen.push(name.clone());
        }
    }
    seen.iter().map(|name| Ok(registry::find(name)?.availability(job.rocksdb_lib.as_deref()))).collect()
}

/// Refuses data that cannot fit on the disk.
fn room(dir: &Path, cases: &[Case]) -> Result<(), String> {
    let (Some(free), Some(most)) =
        (machine::free_bytes(dir), cases.iter().max_by_key(|c| c.config.expected_bytes))
    else {
        return Ok(());
    };
    let needed = most.config.expected_bytes;
    if needed > free {
        let gb = |bytes: u64| bytes as f64 / 1e9;
        return Err(format!(
            "{}: {:.1} GB of keys and values, but {} has {:.1} GB free; choose another folder with --dir, fewer \
             operations with --ops or --scale, or leave the case out with --filter",
            most.name,
            gb(needed),
            dir.display(),
            gb(free)
        ));
    }
    Ok(())
}

/// Seconds since 1970.
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs())
}
