//! Bad endings: a child that dies, hangs or floods is a clear row; a full disk is an error in words; an interrupted run
//! leaves nothing behind.

use halobench::cases::Params;
use halobench::run::{Job, run};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
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

/// Writes a program that reads its plan and does as `body` says.
fn script(dir: &Path, name: &str, body: &str) -> PathBuf {
    let path = dir.join(name);
    std::fs::write(&path, format!("#!/bin/sh\n{body}\n")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path
}

/// The error of the only row of a job, in the table, too.
fn error(job: &Job) -> String {
    let report = run(job, &mut |_| {}).unwrap();
    assert_eq!(report.runs.len(), 1);
    assert_eq!(report.troubles().len(), 1);
    let table = halobench::report::table::text(&report);
    assert!(table.contains("FAILED"), "{table}");
    let work = job.dir.as_ref().unwrap();
    assert_eq!(std::fs::read_dir(work).unwrap().count(), 0, "nothing is left in {}", work.display());
    report.runs[0].error.clone().unwrap()
}

/// The error of a child that does as `body` says, within a minute.
fn fate(body: &str) -> String {
    fate_within(Duration::from_secs(60), body)
}

fn fate_within(timeout: Duration, body: &str) -> String {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let program = script(dir.path(), "child", &format!("read plan\n{body}"));
    error(&job(dir.path(), &program, timeout))
}

#[test]
fn a_child_that_dies_says_of_what_and_its_last_words() {
    let words = fate("echo '{\"begin\":\"the writes\"}'\necho 'out of luck' >&2\nkill -9 $$");
    assert!(words.starts_with("the writes: the process died (signal 9"), "{words}");
    assert!(words.ends_with(": out of luck"), "{words}");
    assert_eq!(fate("kill -SEGV $$"), "start: the process died (signal 11: segmentation fault)");
    assert_eq!(fate("kill -ABRT $$"), "start: the process died (signal 6: it ended itself)");
    assert_eq!(fate("exit 7"), "start: the process died (exit code 7)");
    assert_eq!(fate("exit 0"), "start: the process died (exit code 0)");
}

#[test]
fn a_child_that_cannot_be_started_says_so() {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let words = error(&job(dir.path(), Path::new("/nonexistent/program"), Duration::from_secs(60)));
    assert!(words.contains("starting /nonexistent/program"), "{words}");
}

#[test]
fn garbage_on_its_output_hides_nothing_that_it_says() {
    let words = fate("echo noise\necho '{\"failed\":\"the disk is full\"}'\nexit 1");
    assert!(words.ends_with("the disk is full"), "{words}");
    // Bytes that are no text, a line of a megabyte without an end, and the plan itself.
    let words = fate(
        "printf '\\377\\376\\000\\n'\nhead -c 1000000 /dev/zero\necho\necho \"$plan\"\n\
         echo '{\"begin\":\"the end\"}'\nexit 3",
    );
    assert_eq!(words, "the end: the process died (exit code 3)");
}

#[test]
fn a_flood_of_words_is_cut() {
    let words = fate("head -c 3000000 /dev/zero | tr '\\0' x >&2\nexit 3");
    assert!(words.starts_with("start: the process died (exit code 3): xxx"), "{words}");
    assert!(words.len() < 1000, "{}", words.len());
    let words = fate("yes words | head -n 300000 >&2\necho 'the last' >&2\nexit 3");
    assert_eq!(
        words,
        "start: the process died (exit code 3): words / words / words / words / words / the last"
    );
}

#[test]
fn a_child_that_hangs_is_stopped() {
    let start = Instant::now();
    let second = Duration::from_secs(1);
    assert_eq!(fate_within(second, "exec sleep 1000"), "start: not done after 1 s: stopped");
    // It cannot be told to end, does not read what it is told, says it is done and stays.
    let stays = fate_within(second, "trap '' TERM INT HUP\nexec >&-\nwhile :; do sleep 1; done");
    assert_eq!(stays, "start: the process closed its output and did not end: stopped");
    assert!(start.elapsed() < Duration::from_secs(60));
}

#[test]
fn what_a_child_started_ends_with_it() {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let pid_file = dir.path().join("pid");
    let gone = |how: &str, timeout| {
        // The grandchild holds all pipes open.
        let body = format!("read plan\nsleep 1000 &\necho $! > {}\n{how}", pid_file.display());
        let program = script(dir.path(), "child", &body);
        let words = error(&job(dir.path(), &program, Duration::from_secs(timeout)));
        let stat = format!("/proc/{}/stat", std::fs::read_to_string(&pid_file).unwrap().trim());
        // Somebody else waits for it, perhaps later.
        let ended = || std::fs::read_to_string(&stat).map_or(true, |s| s.contains(") Z"));
        wait("the grandchild ends", &ended);
        words
    };
    assert_eq!(gone("exit 5", 60), "start: the process died (exit code 5)");
    assert_eq!(gone("wait", 1), "start: not done after 1 s: stopped");
}

#[test]
fn a_folder_that_cannot_be_is_refused() {
    let out = Command::new(env!("CARGO_BIN_EXE_halobench"))
        .args(["run", "-e", "null", "-o", "10", "--dir", "/dev/null/below"])
        .output()
        .unwrap();
    let words = String::from_utf8_lossy(&out.stderr);
    assert_eq!(out.status.code(), Some(2), "{words}");
    assert!(words.contains("creating /dev/null/below: Not a directory"), "{words}");
}

/// A job of a real engine, in children that `prelude` prepares.
fn real(dir: &Path, engine: &str, prelude: &str) -> Job {
    let own = env!("CARGO_BIN_EXE_halobench");
    let program = script(dir, &format!("{engine}-child"), &format!("{prelude}\nexec {own} \"$@\""));
    let mut job = job(dir, &program, Duration::from_secs(60));
    job.engines = vec![engine.into()];
    job.cases[0].phases[0].ops = 100_000;
    job.cases[0].set.n = 100_000;
    job
}

/// Whether an error tells its cause. LMDB calls a write that was cut short an input/output error, whatever cut it.
fn tells(engine: &str, error: &str, cause: &str) -> bool {
    error.contains(cause) || engine == "lmdb" && error.contains("Input/output error")
}

#[test]
fn a_file_that_must_not_grow_is_an_error_in_words() {
    let _alone = alone();
    for engine in ["halocline", "lmdb"] {
        let dir = tempfile::tempdir().unwrap();
        // In blocks of 512 bytes: half a megabyte.
        let job = real(dir.path(), engine, "trap '' XFSZ\nulimit -f 1000");
        let words = error(&job);
        assert!(tells(engine, &words, "File too large"), "{engine}: {words}");
    }
}

/// A small file system, unmounted in the end.
struct Small(PathBuf);

impl Drop for Small {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
fn a_full_disk_is_an_error_in_words() {
    let _alone = alone();
    for engine in ["halocline", "lmdb"] {
        let dir = tempfile::tempdir().unwrap();
        let mut job = real(dir.path(), engine, "");
        let work = dir.path().join("work");
        std::fs::create_dir(&work).unwrap();
        let mount = ["-t", "tmpfs", "-o", "size=8m", "halobench-test"];
        if !Command::new("mount").args(mount).arg(&work).output().is_ok_and(|o| o.status.success()) {
            eprintln!("skipped: no file system can be mounted here");
            return;
        }
        let _small = Small(work.clone());
        job.dir = Some(work);
        let words = error(&job);
        assert!(tells(engine, &words, "No space left on device"), "{engine}: {words}");
    }
}

fn wait(what: &str, done: &dyn Fn() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Starts the command, waits for its database, sends `signals` (to its process group where one begins with `g`); its
/// exit code, and what it printed.
fn interrupted(args: &[&str], signals: &[&str]) -> (Option<i32>, String) {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let work = dir.path().join("work");
    let printed = dir.path().join("printed");
    let out = std::fs::File::create(&printed).unwrap();
    let mut parent = Command::new(env!("CARGO_BIN_EXE_halobench"))
        .args(args)
        .arg("--dir")
        .arg(&work)
        .stdout(out.try_clone().unwrap())
        .stderr(out)
        .process_group(0)
        .spawn()
        .unwrap();
    let has_data = || {
        let entries = std::fs::read_dir(&work).into_iter().flatten().flatten();
        let db = |p: PathBuf| p.join("db/data.mdb").exists() || p.join("kills/db/data.mdb").exists();
        entries.map(|e| e.path()).any(db)
    };
    wait("the database appears", &has_data);
    for signal in signals {
        let (group, signal) = match signal.strip_prefix('g') {
            Some(signal) => ("-", signal),
            None => ("", *signal),
        };
        let target = format!("{group}{}", parent.id());
        // The second signal may find nobody.
        let _ = Command::new("kill").args(["-s", signal, "--", &target]).output().unwrap();
    }
    let status = parent.wait().unwrap();
    wait("the folder is removed", &|| std::fs::read_dir(&work).unwrap().count() == 0);
    (status.code(), std::fs::read_to_string(&printed).unwrap())
}

const LONG: [&str; 7] = ["run", "-e", "lmdb", "-o", "200000000", "--rounds", "1"];

#[test]
fn an_interrupted_run_leaves_nothing_behind() {
    for signals in [&["INT"][..], &["gINT"], &["gINT", "gINT"], &["TERM"], &["HUP"]] {
        let (code, printed) = interrupted(&LONG, signals);
        assert_eq!(code, Some(130), "{signals:?}: {printed}");
    }
}

#[test]
fn an_interrupted_run_keeps_what_it_has() {
    let dir = tempfile::tempdir().unwrap();
    let json = dir.path().join("r.json");
    let args = [
        "run",
        "-e",
        "null,lmdb",
        "-o",
        "1000000",
        "-t",
        "1",
        "--rounds",
        "2",
        "--json",
        json.to_str().unwrap(),
    ];
    let (code, printed) = interrupted(&args, &["gINT"]);
    assert_eq!(code, Some(130), "{printed}");
    let report = halobench::report::Report::load(&json).unwrap();
    assert!(report.interrupted);
    let ended: Vec<_> = report.runs.iter().map(|r| (r.engine.as_str(), r.error.as_deref())).collect();
    assert_eq!(ended, [("null", None)], "{printed}");
}

#[test]
fn a_child_whose_parent_was_killed_cleans_up_and_goes() {
    assert_eq!(interrupted(&LONG, &["KILL"]).0, None);
}

#[test]
fn an_interrupted_test_of_durability_says_how_far_it_came() {
    let args = ["verify-durability", "-e", "lmdb", "--longest-ms", "1000000"];
    let (code, printed) = interrupted(&args, &["INT"]);
    assert_eq!(code, Some(130), "{printed}");
    assert!(printed.contains("lmdb process: stopped\n"), "{printed}");
    assert!(printed.contains("lmdb sync: stopped before\n"), "{printed}");
    assert_eq!(interrupted(&args, &["gINT", "gINT"]).0, Some(130));
    assert_eq!(interrupted(&args, &["KILL"]).0, None);
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
