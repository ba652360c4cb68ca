//! A real process, killed with SIGKILL at random moments, on the real file system.
//!
//! The test binary starts itself as a child that writes from eight threads and reports every acknowledgement through a
//! pipe. The parent kills it, reads what it reported, opens the directory, and checks: all that was acknowledged is
//! there, nothing is there that was never attempted, batches are whole across column families, and each thread's commits
//! are a prefix. Then the next child goes on in the same directory. Some are killed while they open it.
//!
//! Environment: `HALOCLINE_KILLS` (kills in all), `HALOCLINE_SEED`.

#![expect(clippy::disallowed_methods, reason = "a test may use the clock, the environment and sleeps")]

mod common;

use common::Rng;
use halocline::{Compaction, Db, Durability, LogMode, Options, WriteBatch};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

const THREADS: usize = 8;
/// A commit removes the record that its thread wrote this many commits ago.
const WINDOW: u64 = 40;
const CHILD: &str = "HALOCLINE_KILL_CHILD";

fn value(thread: usize, n: u64) -> Vec<u8> {
    let mut rng = Rng::new(n * 8 + thread as u64);
    let len = if rng.once_in(200) { 90_000 } else { rng.below(600) };
    common::bytes(rng.next(), len as usize)
}

fn key(thread: usize, n: u64) -> Vec<u8> {
    format!("{thread}/{n:08}").into_bytes()
}

fn options(seed: u64) -> (Options, Durability) {
    let mut rng = Rng::new(seed);
    let durability = match rng.below(8) {
        0 => Durability::None,
        1..=2 => Durability::Sync,
        3..=4 => Durability::Interval(Duration::from_millis(3)),
        _ => Durability::Process,
    };
    let options = Options::new()
        .log_mode(rng.pick(&[LogMode::Mapped, LogMode::Written]))
        .compaction(rng.pick(&[Compaction::Lazy, Compaction::Leveled, Compaction::Tiered]))
        .write_buffer(rng.pick(&[64 << 10, 256 << 10, 1 << 20]))
        .durability(durability);
    (options, durability)
}

/// The child's part: does nothing in an ordinary run of the tests.
#[test]
fn child() {
    let Ok(dir) = std::env::var(CHILD) else { return };
    // Each line is one write to the pipe: what was acknowledged is in the parent's hands before the thread goes on.
    let report = |text: String| {
        let mut pipe = std::fs::OpenOptions::new().write(true).open("/proc/self/fd/1").unwrap();
        pipe.write_all(text.as_bytes()).unwrap();
    };
    let (options, _) = options(common::size("HALOCLINE_KILL_OPTIONS", 0));
    let db = options.open(Path::new(&dir)).unwrap();
    let family = db.column_family("second").unwrap();
    report("opened\n".into());
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (db, family, report) = (&db, &family, &report);
            scope.spawn(move || {
                let latest = db.get(format!("latest{thread}")).unwrap();
                let mut n = latest.map_or(0, |v| u64::from_le_bytes((*v).try_into().unwrap()));
                let mut batch = WriteBatch::new();
                loop {
                    n += 1;
                    batch.clear();
                    batch.put(key(thread, n), value(thread, n));
                    batch.put_cf(family, key(thread, n), n.to_le_bytes());
                    if let Some(old) = n.checked_sub(WINDOW) {
                        batch.delete(key(thread, old));
                        batch.delete_cf(family, key(thread, old));
                    }
                    batch.put(format!("latest{thread}"), n.to_le_bytes());
                    db.write(&batch).unwrap();
                    report(format!("done {thread} {n}\n"));
                    if thread == 0 && n % 500 == 0 {
                        db.flush().unwrap();
                    }
                }
            });
        }
    });
}

/// Runs a child until its end by SIGKILL; the last acknowledgement of each thread.
fn run_and_kill(dir: &Path, options: u64, rng: &mut Rng) -> [u64; THREADS] {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child", "--nocapture", "--test-threads=1"])
        .env(CHILD, dir)
        .env("HALOCLINE_KILL_OPTIONS", options.to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let (lines, received) = channel();
    let out = BufReader::new(child.stdout.take().unwrap());
    let reader = std::thread::spawn(move || {
        let mut acknowledged = [0; THREADS];
        for line in out.lines().map_while(Result::ok) {
            let words: Vec<&str> = line.split(' ').collect();
            match words[..] {
                ["done", thread, n] => acknowledged[thread.parse::<usize>().unwrap()] = n.parse().unwrap(),
                // The harness may have begun the line.
                _ if line.ends_with("opened") => _ = lines.send(()),
                _ => {}
            }
        }
        acknowledged
    });
    if rng.once_in(4) {
        // While it opens, most likely.
        std::thread::sleep(Duration::from_micros(2_000 + rng.below(40_000)));
    } else {
        match received.recv_timeout(Duration::from_secs(60)) {
            Ok(()) => std::thread::sleep(Duration::from_micros(rng.below(250_000))),
            Err(RecvTimeoutError::Timeout) => {
                child.kill().unwrap();
                panic!("the child hangs while it opens");
            }
            Err(RecvTimeoutError::Disconnected) => {}
        }
    }
    let ended = child.try_wait().unwrap();
    child.kill().unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(ended.is_none(), "the child failed: {}", String::from_utf8_lossy(&output.stderr));
    reader.join().unwrap()
}

/// Checks everything; the number of the last commit of each thread.
fn verify(db: &Db, least: &[u64; THREADS], most: &[u64; THREADS]) -> [u64; THREADS] {
    let family = db.find_column_family("second").unwrap();
    let mut latest = [0; THREADS];
    let mut expected = 0;
    for thread in 0..THREADS {
        let found = db.get(format!("latest{thread}")).unwrap();
        let n = found.map_or(0, |v| u64::from_le_bytes((*v).try_into().unwrap()));
        assert!(
            n >= least[thread],
            "thread {thread}: commit {} was acknowledged, and only {n} is there",
            least[thread]
        );
        assert!(
            n <= most[thread],
            "thread {thread}: commit {n} is there, and only {} were attempted",
            most[thread]
        );
        latest[thread] = n;
        for i in n.saturating_sub(WINDOW - 1).max(1)..=n {
            let value_found = db.get(key(thread, i)).unwrap();
            assert!(
                value_found.as_deref() == Some(&value(thread, i)),
                "thread {thread}: commit {i} of {n} is not whole"
            );
            let other = family.as_ref().unwrap().get(key(thread, i)).unwrap();
            assert!(other.as_deref() == Some(&i.to_le_bytes()), "thread {thread}: commit {i} of {n} is torn");
            expected += 1;
        }
        expected += u64::from(n > 0);
    }
    let count = db.iter().inspect(|item| assert!(item.is_ok())).count() as u64;
    assert_eq!(count, expected, "there are phantoms");
    latest
}

#[test]
fn what_was_acknowledged_survives_kill_9() {
    let kills = common::size("HALOCLINE_KILLS", 20);
    let mut rng = Rng::new(common::size("HALOCLINE_SEED", 1));
    let mut done = 0;
    let mut commits = 0;
    while done < kills {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().join("db");
        let mut latest = [0; THREADS];
        for _ in 0..(4 + rng.below(6)).min(kills - done) {
            let seed = rng.next();
            let (options, durability) = options(seed);
            let acknowledged = run_and_kill(&dir, seed, &mut rng);
            done += 1;
            let mut least = latest;
            let mut most = latest;
            for thread in 0..THREADS {
                let last = acknowledged[thread].max(latest[thread]);
                // Each thread begins a commit only when the one before was reported.
                most[thread] = last + 1;
                if durability != Durability::None {
                    least[thread] = last;
                }
            }
            let start = Instant::now();
            let read_only = rng.once_in(2);
            let opened =
                if read_only { options.clone().open_read_only(&dir) } else { options.clone().open(&dir) };
            let db = match opened {
                Ok(db) => db,
                Err(e)
                    if e.kind() == halocline::ErrorKind::Missing
                        && latest == [0; THREADS]
                        && acknowledged == latest =>
                {
                    continue;
                }
                Err(e) => panic!("kill {done}, options seed {seed} ({options:?}): could not open: {e}"),
            };
            println!("kill {done}: {options:?}, acknowledged {acknowledged:?}");
            let found = verify(&db, &least, &most);
            commits += found.iter().sum::<u64>() - latest.iter().sum::<u64>();
            latest = found;
            if !read_only && rng.once_in(2) {
                db.close().unwrap();
                assert!(options.check(&dir).unwrap().is_sound());
            }
            assert!(start.elapsed() < Duration::from_secs(60), "recovery takes for ever");
        }
    }
    println!("{done} kills, {commits} commits");
    assert!(commits > 0);
}
