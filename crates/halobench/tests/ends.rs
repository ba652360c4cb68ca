//! Processes that end before their time: a child that dies is a clear row, and an interrupted run leaves nothing.

use halobench::cases::Params;
use halobench::run::{Job, run};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

fn job(dir: &Path, program: &Path, timeout: Duration) -> Job {
    let case =
        Params { ops: 100, threads: 1, write_buffer: 1 << 20, cache: 1 << 20, ..Params::default() }.case();
    Job {
        engines: vec!["null".into()],
        cases: vec![case],
        rounds: 1,
        dir: Some(dir.join("work")),
        settle_limit_s: 1,
        timeout,
        program: Some(program.into()),
        ..Job::default()
    }
}

/// One test at a time, so that no other thread forks while a script is open for writing.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

#[test]
fn a_dead_silent_or_unstartable_child_is_a_row_with_the_reason() {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let script = |name: &str, body: &str| {
        let path = dir.path().join(name);
        std::fs::write(&path, format!("#!/bin/sh\nread plan\n{body}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path
    };
    let error = |program: &Path, timeout| {
        let report = run(&job(dir.path(), program, timeout), &mut |_| {}).unwrap();
        assert_eq!(report.runs.len(), 1);
        assert_eq!(report.troubles().len(), 1);
        let table = halobench::report::table::text(&report);
        assert!(table.contains("FAILED"), "{table}");
        report.runs[0].error.clone().unwrap()
    };
    let long = Duration::from_secs(60);
    let killed = script("killed", "echo '{\"begin\":\"the writes\"}'\necho 'out of luck' >&2\nkill -9 $$");
    let words = error(&killed, long);
    assert!(words.starts_with("the writes: the process died (signal 9"), "{words}");
    assert!(words.ends_with(": out of luck"), "{words}");

    let quits = script("quits", "exit 7");
    assert_eq!(error(&quits, long), "start: the process died (exit code 7)");

    let fails = script("fails", "echo noise\necho '{\"failed\":\"the disk is full\"}'\nexit 1");
    assert!(error(&fails, long).ends_with("the disk is full"));

    let hangs = script("hangs", "exec sleep 100");
    let start = Instant::now();
    assert_eq!(error(&hangs, Duration::from_secs(1)), "start: not done after 1 s: stopped");
    assert!(start.elapsed() < Duration::from_secs(30));

    assert!(error(Path::new("/nonexistent/program"), long).contains("starting /nonexistent/program"));
    assert_eq!(std::fs::read_dir(dir.path().join("work")).unwrap().count(), 0);
}

/// Starts a long run, waits for its database, ends it with `signal`; the exit code.
fn interrupted(signal: &str) -> Option<i32> {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let mut parent = Command::new(env!("CARGO_BIN_EXE_halobench"))
        .args(["run", "-e", "lmdb", "-o", "200000000", "--rounds", "1", "--dir"])
        .arg(dir.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let wait = |what: &str, done: &dyn Fn() -> bool| {
        let start = Instant::now();
        while !done() {
            assert!(start.elapsed() < Duration::from_secs(60), "{what}");
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    let is_empty = || std::fs::read_dir(dir.path()).unwrap().count() == 0;
    let has_data = || {
        let entries = std::fs::read_dir(dir.path()).unwrap().flatten();
        entries.map(|e| e.path().join("db/data.mdb")).any(|p| p.exists())
    };
    wait("the database appears", &has_data);
    assert!(Command::new("kill").args([signal, &parent.id().to_string()]).status().unwrap().success());
    let status = parent.wait().unwrap();
    wait("the folder is removed", &is_empty);
    status.code()
}

#[test]
fn ctrl_c_leaves_nothing_behind() {
    assert_eq!(interrupted("-INT"), Some(130));
}

#[test]
fn a_child_whose_parent_was_killed_cleans_up_and_goes() {
    assert_eq!(interrupted("-KILL"), None);
}

#[test]
fn an_interrupted_suite_keeps_and_shows_what_it_has() {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    let parent = Command::new(env!("CARGO_BIN_EXE_halobench"))
        .args(["run", "--suite", "threads", "-e", "null,lmdb", "-o", "30000", "--rounds", "1000", "--out"])
        .arg(&out)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let result = out.join("result.json");
    let start = Instant::now();
    while !halobench::report::Report::load(&result).is_ok_and(|r| r.runs.len() > 3) {
        assert!(start.elapsed() < Duration::from_secs(120), "no results are kept");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(Command::new("kill").args(["-INT", &parent.id().to_string()]).status().unwrap().success());
    let ended = parent.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&ended.stdout);
    assert_eq!(ended.status.code(), Some(130), "{said}");
    assert!(said.contains("interrupted: these are the figures of"), "{said}");
    assert!(said.contains("threads-write-t1"), "{said}");
    let report = halobench::report::Report::load(&result).unwrap();
    assert!(report.interrupted && report.runs.iter().all(|r| r.error.is_none()));
    assert!(out.join("report.html").is_file());
    assert!(!out.join("databases").exists(), "no database is left");
}
