//! The process that runs one engine through one plan, so that engines share no heap, no page tables and no counters,
//! and one that dies takes only its own row along.

mod check;
mod clock;
mod latency;
mod pace;
mod phase;
mod plan;
mod resources;
#[cfg(test)]
mod tests;
mod timed;
mod work;

use crate::durability;
use crate::engine::{self, Engine, Result};
use crate::spec::{Ending, Event, Plan};
use crate::workload::Expect;
use std::io::{BufRead, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The hidden argument that makes a program a child.
pub const ARGUMENT: &str = "__halobench-child";

/// A program that starts runs calls this first in `main`: in a child it does the child's work and does not return.
pub fn enter_if_child() {
    let mut args = std::env::args_os().skip(1);
    if args.next().is_some_and(|a| a == ARGUMENT) {
        std::process::exit(child());
    }
}

fn child() -> i32 {
    let mut line = String::new();
    let read = std::io::stdin().lock().read_line(&mut line);
    if let Some(task) = durability::task_in(&line) {
        watch_parent(task.dir.clone());
        end_on_panic();
        return durability::child::run(&task, end);
    }
    let plan: Plan = match read.map(|_| serde_json::from_str(&line)) {
        Ok(Ok(plan)) => plan,
        Ok(Err(e)) => return say(&Event::Failed(format!("reading the plan: {e}"))).map_or(2, |()| 2),
        Err(_) => return 2,
    };
    watch_parent(plan.dir.clone());
    end_on_panic();
    let mut emit = |event: Event| say(&event);
    match run(&plan, &engine::open, &mut emit) {
        Ok(()) => 0,
        Err(e) => say(&Event::Failed(e)).map_or(1, |()| 1),
    }
}

fn say(event: &Event) -> Result<()> {
    let line = serde_json::to_string(event).map_err(|e| e.to_string())?;
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush()).map_err(|e| format!("telling the parent: {e}"))
}

/// When the parent goes, its end of our standard input closes: leave nothing behind.
fn watch_parent(dir: PathBuf) {
    std::thread::spawn(move || {
        let mut rest = [0; 64];
        while matches!(std::io::stdin().read(&mut rest), Ok(n) if n > 0) {}
        // Engines' threads go on meanwhile: what they make after the first pass goes in the next.
        for _ in 0..20 {
            if std::fs::remove_dir_all(&dir).is_ok() || !dir.exists() {
                break;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        end(3);
    });
}

/// Ends the process at once, without the exit handlers of libraries whose threads still run.
fn end(code: i32) -> ! {
    // SAFETY: takes no memory of ours; nothing runs afterwards.
    unsafe { libc::_exit(code) }
}

/// A thread that panics would leave the others waiting for it: end the process, after the words.
fn end_on_panic() {
    let words = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        words(info);
        end(101);
    }));
}

/// How a plan's engine is opened; tests put their own in.
pub type Opener<'a> = &'a dyn Fn(&str, &Path, &engine::Config) -> Result<Box<dyn Engine>>;

/// Runs a plan in this process, telling `emit` what happens.
pub fn run(plan: &Plan, open: Opener<'_>, emit: &mut dyn FnMut(Event) -> Result<()>) -> Result<()> {
    plan::check(plan)?;
    let generator = plan.set.generator()?;
    let mut expect = Expect::new(plan.set.n);
    let db = plan.dir.join("db");
    std::fs::create_dir_all(&db).map_err(|e| format!("creating {}: {e}", db.display()))?;
    let start = resources::usage();
    let mut opened = Some(start);
    let engine = open(&plan.engine, &db, &plan.config)?;
    let mut user_bytes = 0;
    let mut live_bytes = 0;
    for (index, phase) in plan.phases.iter().enumerate() {
        let name = plan::name(phase);
        emit(Event::Begin(name.into()))?;
        let result = phase::run(plan, index, &*engine, &generator, &mut expect, opened.take())
            .map_err(|e| format!("{name}: {e}"))?;
        user_bytes += result.user_bytes;
        live_bytes = result.live_bytes;
        emit(Event::Phase(Box::new(result)))?;
    }
    emit(Event::Begin("close and reopen".into()))?;
    let stores = engine.stores();
    let closing = Instant::now();
    engine.close()?;
    let mut ending = Ending {
        close_s: closing.elapsed().as_secs_f64(),
        space: resources::space(&plan.dir),
        usage: resources::usage_since(&start),
        user_bytes,
        live_bytes,
        ..Ending::default()
    };
    let opening = Instant::now();
    let engine = open(&plan.engine, &db, &plan.config)?;
    ending.reopen_s = opening.elapsed().as_secs_f64();
    if stores {
        let (wrong, _) = check::state(&*engine, &generator, &expect)?;
        ending.wrong = wrong.count;
        ending.wrong_examples = wrong.examples;
    }
    engine.close()?;
    emit(Event::End(Box::new(ending)))
}
