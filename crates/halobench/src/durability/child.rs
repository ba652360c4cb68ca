//! The process that is killed, and the one that looks what is left.

use super::ledger::{Ledger, state};
use super::task::{Checked, Mode, Said, Task};
use super::work::{Place, Work};
use crate::engine::{self, Engine, Result};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::time::Instant;

/// Does a task in this process; the exit code. `end` ends the process without exit handlers.
pub fn run(task: &Task, end: fn(i32) -> !) -> i32 {
    let done = match task.mode {
        Mode::Write => write(task),
        Mode::Check => check(task),
    };
    let (said, code) = match done {
        Ok(checked) => (Said::Checked(checked), 0),
        Err(words) => (Said::Failed(words), 1),
    };
    say(&said);
    if task.mode == Mode::Check && !task.close {
        end(code);
    }
    code
}

fn open(task: &Task, ledger: &Ledger) -> Result<(Box<dyn Engine>, f64)> {
    let db = &task.db;
    std::fs::create_dir_all(db).map_err(|e| format!("creating {}: {e}", db.display()))?;
    ledger.set_state(state::OPENING);
    let start = Instant::now();
    let engine = engine::open(&task.engine, db, &task.config)?;
    let took = start.elapsed();
    if !engine.stores() {
        return Err(format!("{} stores nothing", task.engine));
    }
    ledger.set_open_ns(took.as_nanos() as u64);
    Ok((engine, took.as_secs_f64()))
}

/// Commits until killed; returns only if the database cannot be opened.
fn write(task: &Task) -> Result<Checked> {
    let work = Work::new(task.shape)?;
    let ledger = Ledger::open(&task.ledger, task.shape.threads)?;
    let (engine, _) = open(task, &ledger)?;
    ledger.set_state(state::OPEN);
    let (engine, ledger, work) = (&*engine, &ledger, &work);
    std::thread::scope(|scope| {
        for thread in 0..task.shape.threads {
            scope.spawn(move || {
                let Err(words) = commits(engine, ledger, work, thread);
                say(&Said::Failed(words));
                // SAFETY: ends the process at once; the other threads would go on committing for ever.
                unsafe { libc::_exit(1) }
            });
        }
    });
    Err("no thread to write".into())
}

fn say(said: &Said) {
    if let Ok(line) = serde_json::to_string(said) {
        let mut out = std::io::stdout().lock();
        let _ = writeln!(out, "{line}").and_then(|()| out.flush());
    }
}

/// One thread's commits, without end.
fn commits(
    engine: &dyn Engine,
    ledger: &Ledger,
    work: &Work,
    thread: u64,
) -> std::result::Result<std::convert::Infallible, String> {
    let mut session = engine.session()?;
    let mut value = Vec::new();
    let mut number = ledger.progress(thread).acked;
    loop {
        number += 1;
        let slot = number % work.shape.slots;
        let keys = work.keys_in(slot);
        ledger.begin(thread, number);
        let done = (|| {
            for index in 0..keys {
                let id = work.id(Place { thread, slot, index });
                let key = work.key(id);
                if work.removes(number, index) {
                    session.batch_delete(&key)?;
                    continue;
                }
                work.value(id, number, &mut value);
                if keys == 1 {
                    session.put(&key, &value)?;
                } else {
                    session.batch_put(&key, &value)?;
                }
            }
            if keys > 1 { session.commit() } else { Ok(()) }
        })();
        done.map_err(|e: String| format!("commit {number} of thread {thread}: {e}"))?;
        ledger.acknowledge(thread, number);
    }
}

/// Writes all entries to the dump, and asks for each key once more by `get`.
fn check(task: &Task) -> Result<Checked> {
    let work = Work::new(task.shape)?;
    let ledger = Ledger::open(&task.ledger, task.shape.threads)?;
    let (engine, open_s) = open(task, &ledger)?;
    let mut checked = Checked { open_s, ..Checked::default() };
    // What the scan found of each id: a digest of its value, 0 for none.
    let mut scanned = vec![0; work.ids() as usize];
    let failed = |e: std::io::Error| format!("writing {}: {e}", task.dump.display());
    let mut dump = BufWriter::new(File::create(&task.dump).map_err(failed)?);
    {
        let mut session = engine.session()?;
        let mut cursor = session.cursor()?;
        let mut more = cursor.seek_first().map_err(|e| format!("the first entry: {e}"))?;
        while more {
            checked.entries += 1;
            if checked.entries > 2 * work.ids() {
                return Err(format!("a scan does not end: {} entries, {} keys", checked.entries, work.ids()));
            }
            let key = cursor.key().to_vec();
            let value = cursor.value().map_err(|e| format!("entry {}: {e}", checked.entries))?;
            if let Some(place) = work.place_of(&key) {
                scanned[work.id(place) as usize] = digest(value);
            }
            let lengths = (key.len() as u64 | (value.len() as u64) << 32).to_le_bytes();
            for bytes in [&lengths, &key[..], value] {
                dump.write_all(bytes).map_err(failed)?;
            }
            more = cursor.next().map_err(|e| format!("behind entry {}: {e}", checked.entries))?;
        }
    }
    dump.into_inner().map_err(|e| failed(e.into_error()))?;
    {
        let mut session = engine.session()?;
        for id in (0..work.ids()).filter(|&id| work.place(id).is_some()) {
            let got = session.get(&work.key(id)).map_err(|e| format!("get: {e}"))?.map_or(0, digest);
            if got != scanned[id as usize] {
                checked.disagreements += 1;
                if checked.example.is_empty() {
                    let said = |digest| if digest == 0 { "nothing" } else { "a value" };
                    checked.example = format!(
                        "get says {} where the scan says {}{}",
                        said(got),
                        said(scanned[id as usize]),
                        if got != 0 && scanned[id as usize] != 0 { ", another one" } else { "" }
                    );
                }
            }
        }
    }
    if task.close {
        engine.close()?;
    } else {
        // Not even dropped: the process ends with the database open.
        std::mem::forget(engine);
    }
    Ok(checked)
}

/// Never 0.
fn digest(value: &[u8]) -> u64 {
    xxhash_rust::xxh3::xxh3_64(value) | 1
}
