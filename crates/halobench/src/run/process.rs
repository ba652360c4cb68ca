//! One child: its start, what it says, its end.

use super::cgroup::Group;
use crate::driver::Start;
use crate::interrupt;
use crate::spec::{Ending, Event, PhaseResult, Plan};
use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

/// Lines kept of what a child wrote to its standard error.
const STDERR_LINES: usize = 6;

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
    let mut child = command
        .env("RUST_BACKTRACE", "0")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|e| format!("starting {}: {e}", command.get_program().display()))?;
    interrupt::set_child(Some(child.id()));
    let told = talk(&mut child, plan, timeout, outcome, doing, begin);
    if told.is_err() {
        let _ = child.kill();
    }
    interrupt::set_child(None);
    // The pipe to its standard input closes here at the latest.
    drop(child.stdin.take());
    let status = child.wait().map_err(|e| format!("waiting for the process: {e}"))?;
    let last_words = told?;
    if outcome.ending.is_none() && outcome.error.is_none() {
        return Err(format!("the process died ({}){}", death(status), tail(&last_words)));
    }
    Ok(())
}

/// Reads events until the child closes its output; the end of its standard error.
fn talk(
    child: &mut Child,
    plan: &Plan,
    timeout: Duration,
    outcome: &mut Outcome,
    doing: &mut String,
    begin: &mut dyn FnMut(&str),
) -> Result<VecDeque<String>, String> {
    let deadline = Instant::now() + timeout;
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let (Some(stdout), Some(stderr)) = (stdout, stderr) else {
        return Err("the process has no pipes".into());
    };
    let (send, receive) = mpsc::channel();
    let reader = thread::spawn(move || {
        for line in BufReader::new(stdout).lines() {
            let Ok(line) = line else { break };
            if send.send(line).is_err() {
                break;
            }
        }
    });
    let errors = thread::spawn(move || last_lines(stderr));
    let spec = serde_json::to_string(plan).map_err(|e| e.to_string())?;
    if let Some(stdin) = child.stdin.as_mut() {
        // A child that died already says so at its end.
        let _ = writeln!(stdin, "{spec}").and_then(|()| stdin.flush());
    }
    loop {
        match receive.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(line) => match serde_json::from_str::<Event>(&line) {
                Ok(Event::Begin(name)) => {
                    begin(&name);
                    *doing = name;
                }
                Ok(Event::Phase(result)) => outcome.phases.push(*result),
                Ok(Event::End(ending)) => outcome.ending = Some(*ending),
                Ok(Event::Failed(words)) => outcome.error = Some(words),
                // An engine that prints to standard output is no concern of ours.
                Err(_) => {}
            },
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {
                return Err(format!("not done after {} s: stopped", timeout.as_secs()));
            }
        }
    }
    let _ = reader.join();
    Ok(errors.join().unwrap_or_default())
}

fn last_lines(stream: impl Read) -> VecDeque<String> {
    let mut lines = VecDeque::new();
    for line in BufReader::new(stream).split(b'\n') {
        let Ok(line) = line else { break };
        if lines.len() == STDERR_LINES {
            lines.pop_front();
        }
        lines.push_back(String::from_utf8_lossy(&line).into_owned());
    }
    lines
}

/// How a process ended, in words.
fn death(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt;
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(9)) => "signal 9: killed, perhaps for want of memory".into(),
        (None, Some(11)) => "signal 11: segmentation fault".into(),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => "no status".into(),
    }
}

fn tail(lines: &VecDeque<String>) -> String {
    let words: Vec<&str> = lines
        .iter()
        .map(|l| l.trim())
        .filter(|l| !l.is_empty() && !l.starts_with("note: run with"))
        .collect();
    if words.is_empty() { String::new() } else { format!(": {}", words.join(" / ")) }
}
