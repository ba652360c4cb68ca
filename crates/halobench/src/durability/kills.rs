//! One engine in one class: killed again and again, and looked at after each kill.

use super::judge::Judge;
use super::ledger::{Ledger, state};
use super::syncs::{self, Syncs};
use super::task::{Checked, Line, Mode, Said, Task};
use super::work::Work;
use super::{Job, Row};
use crate::driver::Start;
use crate::engine::{Config, Durability};
use crate::interrupt;
use crate::run::guest::{End, Guest, death};
use crate::workload::rng;
use std::process::Command;
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

/// One kill in this many comes while the database is being opened.
pub const WHILE_OPENING: u64 = 4;

/// Longest wait for two syncs that come at intervals.
const LONGEST_INTERVALS: Duration = Duration::from_secs(25);

/// Longest wait for a first commit, behind an open.
const FIRST_COMMIT: Duration = Duration::from_secs(10);

/// Longest wait for the end of a process that has closed its output: on a busy machine that may take a while.
const FAREWELL: Duration = Duration::from_secs(30);

/// Between two looks at the ledger.
const POLL: Duration = Duration::from_micros(200);

/// Starts a child on a task.
fn start(start: &Start, task: &Task, watched: bool) -> Result<(Guest<Said>, Option<syncs::Watch>), String> {
    let mut command = Command::new(&start.program);
    command.args(&start.args);
    let watch = if watched {
        Some(syncs::arm(&mut command).map_err(|e| format!("watching its system calls: {e}"))?)
    } else {
        None
    };
    Ok((Guest::start(&mut command, &Line { durability: task.clone() })?, watch))
}

/// Waits until the ledger says `state`, and longer than that by `more`.
fn until(
    guest: &Guest<Said>,
    ledger: &Ledger,
    state: u64,
    more: Duration,
    deadline: Instant,
) -> Result<(), Stop> {
    let mut reached: Option<Instant> = None;
    loop {
        let now = Instant::now();
        if reached.is_none() && ledger.state() >= state {
            reached = Some(now);
        }
        let left = reached.map_or(POLL, |since| more.saturating_sub(now - since));
        if left.is_zero() {
            return Ok(());
        }
        if reached.is_none() && now > deadline {
            return Err(Stop::Said("the database was not opened in time".into()));
        }
        match guest.next(left.min(POLL)) {
            Ok(Said::Failed(words)) => return Err(Stop::Said(words)),
            Err(RecvTimeoutError::Timeout) => {}
            Ok(Said::Checked(_)) | Err(RecvTimeoutError::Disconnected) => return Err(Stop::Ended),
        }
    }
}

/// Why a child that was to be killed stopped on its own.
enum Stop {
    /// It said why, or this program does.
    Said(String),
    /// It ended, or closed its output.
    Ended,
}

impl Stop {
    fn words(self, end: &End) -> String {
        match self {
            Stop::Said(words) => words,
            Stop::Ended if end.stopped => {
                format!("the process closed its output, and had to be stopped{}", end.last_words)
            }
            Stop::Ended => format!("the process ended on its own ({}){}", death(end.status), end.last_words),
        }
    }
}

/// Kills a child; one that is about to end on its own may do so, and say of what.
fn finish(guest: Guest<Said>, reached: &Result<(), Stop>) -> Result<End, String> {
    match reached {
        Err(Stop::Ended) => guest.end(FAREWELL),
        _ => guest.kill(),
    }
}

/// The tested engine and class.
pub struct Subject<'a> {
    pub job: &'a Job,
    pub start: Start,
    pub engine: &'a str,
    pub config: Config,
    pub dir: &'a std::path::Path,
}

impl Subject<'_> {
    /// A task in a folder of its own, `part`.
    fn task(&self, mode: Mode, threads: u64, part: &str) -> Result<Task, String> {
        let dir = self.dir.join(part);
        std::fs::create_dir_all(&dir).map_err(|e| format!("creating {}: {e}", dir.display()))?;
        Ok(Task {
            mode,
            engine: self.engine.into(),
            config: Config { threads: threads as usize, ..self.config.clone() },
            ledger: dir.join("ledger"),
            dump: dir.join("dump"),
            shape: super::task::Shape {
                threads,
                slots: self.job.slots,
                batch: self.job.batch,
                seed: self.job.seed,
            },
            close: true,
            db: dir.join("db"),
            dir: self.dir.into(),
        })
    }

    /// Kills, as often as the job says; what is found goes into `row`. An error in words if it cannot go on.
    pub fn kills(&self, row: &mut Row, observe: &mut dyn FnMut(u32)) -> Result<(), String> {
        let mut task = self.task(Mode::Write, self.job.threads, "kills")?;
        let ledger = Ledger::open(&task.ledger, self.job.threads)?;
        let mut judge = Judge::new(Work::new(task.shape)?);
        let draws = rng::stream(self.job.seed, 3);
        let mut last_open = Duration::from_millis(2);
        let mut opens = Vec::new();
        for kill in 0..self.job.kills {
            if interrupt::requested() {
                return Err("stopped".into());
            }
            observe(kill);
            let draw = |j: u64| rng::at(draws, 4 * u64::from(kill) + j);
            let opening = kill > 0 && rng::reduce(draw(0), WHILE_OPENING) == 0;
            for thread in 0..self.job.threads {
                ledger.set(thread, judge.base(thread));
            }
            ledger.set_state(state::STARTED);
            task.mode = Mode::Write;
            let (guest, _) = start(&self.start, &task, false)?;
            let deadline = Instant::now() + self.job.timeout;
            let reached = if opening {
                let more = last_open.mul_f64(1.5 * rng::unit(draw(1)));
                until(&guest, &ledger, state::OPENING, more, deadline)
            } else {
                let more = self.job.longest.mul_f64(rng::unit(draw(1)));
                until(&guest, &ledger, state::OPEN, Duration::ZERO, deadline).and_then(|()| {
                    // A slow start (a cold virtual machine's) is not to be mistaken for a test.
                    let first = Instant::now() + FIRST_COMMIT;
                    let begun = |t| ledger.progress(t).acked > judge.base(t);
                    while !(0..self.job.threads).any(begun) && Instant::now() < first {
                        until(&guest, &ledger, state::OPEN, POLL, deadline)?;
                    }
                    until(&guest, &ledger, state::OPEN, more, deadline)
                })
            };
            row.kills_while_opening += u32::from(ledger.state() != state::OPEN);
            let end = finish(guest, &reached)?;
            reached.map_err(|stop| stop.words(&end))?;
            row.kills += 1;

            task.mode = Mode::Check;
            task.close = rng::reduce(draw(2), 2) == 0;
            let progress: Vec<_> = (0..self.job.threads).map(|t| ledger.progress(t)).collect();
            let checked = match self.look(&task) {
                Ok(checked) => checked,
                Err(e) if interrupt::requested() => return Err(e),
                Err(e) => {
                    row.add_failed_open(judge.acked(&progress), &e);
                    if row.class > Durability::None {
                        return Err(e);
                    }
                    // Nothing was claimed: the next kill finds a new database.
                    std::fs::remove_dir_all(&task.db)
                        .map_err(|e| format!("removing {}: {e}", task.db.display()))?;
                    judge = Judge::new(Work::new(task.shape)?);
                    continue;
                }
            };
            last_open = Duration::from_secs_f64(checked.open_s);
            opens.push(checked.open_s);
            opens.sort_unstable_by(f64::total_cmp);
            row.reopen_median_s = opens[opens.len() / 2];
            row.reopen_max_s = opens[opens.len() - 1];
            let dump =
                std::fs::read(&task.dump).map_err(|e| format!("reading {}: {e}", task.dump.display()))?;
            row.add(&judge.check(&progress, &dump), &checked);
        }
        Ok(())
    }

    /// A check, after a kill.
    fn look(&self, task: &Task) -> Result<Checked, String> {
        let (guest, _) = start(&self.start, task, false)?;
        let limit = self.job.timeout;
        let said = guest.next(limit);
        if let Err(RecvTimeoutError::Timeout) = said {
            guest.kill()?;
            return Err(format!("not checked after {} s: stopped", limit.as_secs()));
        }
        let end = guest.end(limit)?;
        match said {
            _ if end.stopped => Err(format!("the check did not end: stopped{}", end.last_words)),
            Ok(Said::Checked(_)) if !end.status.success() => {
                Err(format!("the check ended badly ({}){}", death(end.status), end.last_words))
            }
            Ok(Said::Checked(checked)) => Ok(checked),
            Ok(Said::Failed(e)) => Err(e),
            Err(_) => Err(format!("the process died ({}){}", death(end.status), end.last_words)),
        }
    }

    /// Counts the syncs of one thread's commits to an empty database, for a second; until there were two of them, if they
    /// come at `intervals`, but for at most [`LONGEST_INTERVALS`].
    pub fn syncs(&self, intervals: bool) -> Result<Syncs, String> {
        let task = self.task(Mode::Write, 1, "syncs")?;
        let ledger = Ledger::open(&task.ledger, 1)?;
        let (guest, watch) = start(&self.start, &task, true)?;
        let watch = watch.ok_or("the process is not watched")?;
        let follow = match watch.follow(Ledger::open(&task.ledger, 1)?) {
            Ok(follow) => follow,
            Err(e) => {
                guest.kill()?;
                return Err(format!("its system calls cannot be watched: {e}"));
            }
        };
        let limit = self.job.timeout;
        let mut reached = until(&guest, &ledger, state::OPEN, Duration::ZERO, Instant::now() + limit);
        let open = Instant::now();
        while reached.is_ok() {
            reached = until(&guest, &ledger, state::OPEN, Duration::from_secs(1), Instant::now() + limit);
            if !intervals
                || follow.so_far() >= 2
                || open.elapsed() > LONGEST_INTERVALS
                || interrupt::requested()
            {
                break;
            }
        }
        let seconds = open.elapsed().as_secs_f64();
        let end = finish(guest, &reached)?;
        let counted = follow.end()?;
        reached.map_err(|stop| stop.words(&end))?;
        Ok(Syncs { seconds, ..counted })
    }
}
