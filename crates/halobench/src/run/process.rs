//! One child on one plan: what it says, and what is made of its end.

use super::cgroup::Group;
use super::guest::{Guest, death};
use crate::driver::Start;
use crate::spec::{Ending, Event, PhaseResult, Plan};
use std::process::Command;
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

/// How long a child that has said everything may take to end.
const FAREWELL: Duration = Duration::from_secs(30);

/// What came of a child.
#[derive(Debug, Default)]
pub struct Outcome {
    pub phases: Vec<PhaseResult>,
    pub ending: Option<Ending>,
    pub error: Option<String>,
}

/// Starts a child on `plan`, in `group` if there is one, and waits for it; `begin` is told what it begins. Whatever goes
/// wrong is in the outcome.
pub fn run(
    start: &Start,
    plan: &Plan,
    timeout: Duration,
    group: Option<&Group>,
    begin: &mut dyn FnMut(&str),
) -> Outcome {
    let mut outcome = Outcome::default();
    let mut doing = String::from("start");
    let mut command = match group {
        Some(group) => group.command(&start.program, &start.args),
        None => {
            let mut command = Command::new(&start.program);
            command.args(&start.args);
            command
        }
    };
    if let Err(e) = converse(&mut command, plan, timeout, &mut outcome, &mut doing, begin) {
        outcome.error = Some(format!("{doing}: {e}"));
    }
    outcome
}

fn converse(
    command: &mut Command,
    plan: &Plan,
    timeout: Duration,
    outcome: &mut Outcome,
    doing: &mut String,
    begin: &mut dyn FnMut(&str),
) -> Result<(), String> {
    let deadline = Instant::now() + timeout;
    let mut guest = Guest::start(command, plan)?;
    loop {
        match guest.next(deadline.saturating_duration_since(Instant::now())) {
            Ok(Event::Begin(name)) => {
                begin(&name);
                *doing = name;
            }
            Ok(Event::Phase(result)) => outcome.phases.push(*result),
            Ok(Event::End(ending)) => outcome.ending = Some(*ending),
            Ok(Event::Failed(words)) => outcome.error = Some(words),
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {
                guest.kill()?;
                return Err(format!("not done after {} s: stopped", timeout.as_secs()));
            }
        }
    }
    guest.hang_up();
    let left = deadline.saturating_duration_since(Instant::now());
    let end = guest.end(left.clamp(Duration::from_secs(1), FAREWELL))?;
    if end.stopped {
        return Err(format!("the process closed its output and did not end: stopped{}", end.last_words));
    }
    if outcome.ending.is_none() && outcome.error.is_none() {
        return Err(format!("the process died ({}){}", death(end.status), end.last_words));
    }
    Ok(())
}
