//! I/O faults: every so manieth operation fails, once or for ever, with EIO, ENOSPC or a short transfer.
//!
//! A workload runs on the simulated disk until it fails or ends. While it does, nothing may panic, and what can be read is
//! right. After a failed sync nothing more is acknowledged. Then the fault goes away and the database is opened again: all
//! that was acknowledged is there, whole and in order; it takes writes, and is sound. The same after a power failure, for
//! what was acknowledged as durable.
//!
//! Environment: `HALOCLINE_FAULT_STEP` (the operations that fail: each so manieth one; 1 is all), `HALOCLINE_SEED`.

#![expect(clippy::disallowed_methods, reason = "a test may use the clock, the environment and sleeps")]

mod common;

use common::Rng;
use halocline::io::sim::{CrashMode, Fault, FaultFilter, FaultKind, Op, SimVfs};
use halocline::{Db, Durability, Error, ErrorKind, LogMode, Options, WriteBatch};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

const DIR: &str = "/db";
const COMMITS: u64 = 260;

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

fn options(disk: &SimVfs, mode: LogMode) -> Options {
    Options::new()
        .vfs(Arc::new(disk.clone()))
        .log_mode(mode)
        .write_buffer(64 << 10)
        .cache(16 << 10)
        .compaction_threads(1)
}

fn writes(n: u64) -> Vec<(Vec<u8>, Option<Vec<u8>>)> {
    let mut rng = Rng::new(n);
    let mut writes = vec![(b"n".to_vec(), Some(n.to_le_bytes().to_vec()))];
    for _ in 0..1 + rng.below(5) {
        let key = format!("key{:03}", rng.below(80)).into_bytes();
        let len = if rng.once_in(25) { 9_000 } else { rng.below(700) };
        writes.push((key, (!rng.once_in(5)).then(|| common::bytes(rng.next(), len as usize))));
    }
    writes
}

fn state(n: u64) -> Map {
    let mut map = Map::new();
    for (key, value) in (1..=n).flat_map(writes) {
        match value {
            Some(value) => map.insert(key, value),
            None => map.remove(&key),
        };
    }
    map
}

/// How far a workload got.
#[derive(Default, Debug)]
struct Progress {
    attempted: u64,
    acknowledged: u64,
    durable: u64,
    /// Errors, with what met them.
    errors: Vec<(String, Error)>,
    opened: bool,
}

/// Commits, syncs, flushes, reads, reopens once. A full disk is borne for a while; other failures end it, after a few more
/// attempts that must fail too.
fn work(disk: &SimVfs, mode: LogMode) -> Progress {
    let mut progress = Progress::default();
    let mut failures = 0;
    let mut db: Option<Db> = None;
    let mut n = 1;
    let mut rng = Rng::new(3);
    let mut expected = Map::new();
    let mut halted = false;
    while n <= COMMITS && failures < 4 {
        let open = match &db {
            Some(db) => db,
            None => match options(disk, mode).open(DIR) {
                Ok(opened) => {
                    progress.opened = true;
                    // A commit that failed may be there after all.
                    if progress.attempted > progress.acknowledged {
                        let found = opened
                            .get(b"n")
                            .map(|v| v.map_or(0, |v| u64::from_le_bytes((*v).try_into().unwrap())));
                        if let Ok(found) = found {
                            assert!(
                                (progress.acknowledged..=progress.attempted).contains(&found),
                                "{found}: {progress:?}"
                            );
                            progress.acknowledged = found;
                            n = found + 1;
                            expected = state(found);
                        } else {
                            failures += 1;
                            continue;
                        }
                    }
                    halted = false;
                    db.insert(opened)
                }
                Err(e) => {
                    failures += 1;
                    progress.errors.push(("open".into(), e));
                    continue;
                }
            },
        };
        let mut batch = WriteBatch::new();
        let writes = writes(n);
        for (key, value) in &writes {
            match value {
                Some(value) => batch.put(key, value),
                None => batch.delete(key),
            }
        }
        let durability = if n % 9 == 0 { Durability::Sync } else { Durability::Process };
        progress.attempted = progress.attempted.max(n);
        match open.write_with(&batch, durability) {
            Ok(()) => {
                assert!(!halted, "a commit is acknowledged after the database was halted: {progress:?}");
                progress.acknowledged = n;
                if durability == Durability::Sync {
                    progress.durable = n;
                }
                for (key, value) in writes {
                    match value {
                        Some(value) => expected.insert(key, value),
                        None => expected.remove(&key),
                    };
                }
                n += 1;
            }
            Err(e) => {
                failures += 1;
                let full = e.kind() == ErrorKind::NoSpace;
                progress.errors.push((format!("commit {n}"), e));
                // Whether it is there is not known; trying again would write it twice. Only of a disk that was full
                // before the commit had its room is it known that it is not: there the next one goes on.
                if !full {
                    halted = true;
                    assert!(open.put(b"never", b"").is_err(), "a commit is acknowledged after a failed one");
                    assert!(open.sync().is_err(), "a sync succeeds after a failed commit");
                    // Reads go on, or fail, but are never wrong. The failed commit itself may be seen or not.
                    for (key, value) in expected.iter().take(30) {
                        if let Ok(found) = open.get(key)
                            && !writes.iter().any(|(written, _)| written == key)
                        {
                            assert!(found.as_deref() == Some(value), "a wrong answer after a failure");
                        }
                    }
                    db = None;
                    continue;
                }
                std::thread::sleep(Duration::from_millis(2));
            }
        }
        let open = match &db {
            Some(open) => open,
            None => continue,
        };
        let what;
        let result = match rng.below(30) {
            0 => {
                what = "flush";
                open.flush().map(|()| true)
            }
            1 => {
                what = "sync";
                open.sync().map(|()| true)
            }
            2 => {
                what = "compact_range";
                open.compact_range(..).map(|()| true)
            }
            3 => {
                what = "close";
                let result = open.close().map(|()| true);
                db = None;
                result
            }
            4 => {
                what = "column_family";
                open.column_family("other").map(|_| false)
            }
            5..=7 => {
                what = "iterate";
                let found: halocline::Result<Map> =
                    open.iter().map(|e| e.map(|(k, v)| (k.to_vec(), v.to_vec()))).collect();
                found.map(|found| {
                    if progress.attempted == progress.acknowledged {
                        assert!(found == expected, "an iterator gives a wrong answer: {progress:?}");
                    }
                    false
                })
            }
            _ => {
                what = "get";
                let key = format!("key{:03}", rng.below(80)).into_bytes();
                open.get(&key).map(|found| {
                    if progress.attempted == progress.acknowledged {
                        let expected = expected.get(&key);
                        assert!(
                            found.as_deref() == expected.map(Vec::as_slice),
                            "a get gives a wrong answer: {progress:?}"
                        );
                    }
                    false
                })
            }
        };
        match result {
            Ok(durable) => {
                if durable {
                    progress.durable = progress.durable.max(progress.acknowledged);
                }
            }
            Err(e) => {
                failures += 1;
                progress.errors.push((what.into(), e));
            }
        }
    }
    progress
}

/// The disk without its fault: everything must be there.
fn verify(disk: &SimVfs, mode: LogMode, least: u64, most: u64, opened: bool, what: &str) {
    let db = match options(disk, mode).create(!opened).open(DIR) {
        Ok(db) => db,
        Err(e) => panic!("{what}: could not open when the fault is gone: {e}"),
    };
    let found: Map = db.iter().map(|e| e.unwrap()).map(|(k, v)| (k.to_vec(), v.to_vec())).collect();
    let n = found.get(b"n".as_slice()).map_or(0, |v| u64::from_le_bytes(v[..].try_into().unwrap()));
    assert!(n >= least, "{what}: {n} commits are there, {least} were acknowledged");
    assert!(n <= most, "{what}: {n} commits are there, {most} were attempted");
    assert!(found == state(n), "{what}: not what {n} commits lead to");
    db.put(b"after", b"wards").unwrap();
    db.compact_range(..).unwrap();
    db.close().unwrap();
    let report = options(disk, mode).check(DIR).unwrap();
    assert!(report.is_sound(), "{what}: {report:?}");
}

fn run(mode: LogMode, fault: Fault, seed: u64) -> (bool, usize) {
    let what = format!("HALOCLINE_SEED={seed}: {mode:?}, {fault:?}");
    let disk = SimVfs::new(seed);
    disk.inject(fault.clone());
    // In a thread of its own, so that a hang is told from slowness.
    let (done, finished) = channel();
    let worker = {
        let disk = disk.clone();
        std::thread::spawn(move || {
            let progress = work(&disk, mode);
            done.send(()).unwrap();
            progress
        })
    };
    if let Err(RecvTimeoutError::Timeout) = finished.recv_timeout(Duration::from_secs(60)) {
        panic!("{what}: the workload hangs");
    }
    let progress = worker.join().unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        panic!(
            "{what}: {}",
            text.or_else(|| panic.downcast_ref::<&str>().map(|s| s.to_string())).unwrap_or_default()
        )
    });
    let fired = disk.faults_fired() > 0;
    for (at, error) in &progress.errors {
        let text = error.to_string();
        assert!(!text.contains("panicked"), "{what}: {at}: {text}");
        let kinds = [ErrorKind::Io, ErrorKind::NoSpace, ErrorKind::Halted];
        assert!(kinds.contains(&error.kind()), "{what}: {at} failed as {error:?}");
        assert!(text.len() > 20, "{what}: {at}: an error that says little: {text}");
    }
    if fault.kind == FaultKind::Short {
        assert!(progress.errors.is_empty(), "{what}: a short transfer is no error: {progress:?}");
    }
    assert!(fired || progress.errors.is_empty(), "{what}: errors without a fault: {progress:?}");
    disk.clear_faults();
    let crashed = disk
        .crash(seed, [CrashMode::DropUnsynced, CrashMode::RandomPieces, CrashMode::Torn][seed as usize % 3]);
    verify(&disk, mode, progress.acknowledged, progress.attempted, progress.opened, &what);
    let opened = progress.durable > 0;
    verify(&crashed, mode, progress.durable, progress.attempted, opened, &format!("{what}, then a crash"));
    (fired, progress.errors.len())
}

fn all(mode: LogMode) {
    // How many operations a run has that meets no fault.
    let disk = SimVfs::new(1);
    let progress = work(&disk, mode);
    assert_eq!((progress.acknowledged, progress.errors.len()), (COMMITS, 0), "{progress:?}");
    let ops = disk.ops();
    let step = common::size("HALOCLINE_FAULT_STEP", 1 + ops / 30);
    let first = common::size("HALOCLINE_SEED", 0);
    let (mut runs, mut fired, mut errors) = (0, 0, 0);
    for kind in [FaultKind::Eio, FaultKind::Enospc, FaultKind::Short] {
        for forever in [false, true] {
            let mut seed = first;
            let mut at = 1 + (kind as u64 * 7 + u64::from(forever) * 3) % step;
            while at <= ops {
                let fault = Fault { kind, at, forever, matching: FaultFilter::default() };
                let (hit, met) = run(mode, fault, seed);
                runs += 1;
                fired += u32::from(hit);
                errors += met;
                seed += 1;
                // The first operations are those of creating and opening.
                at += if at < 20 { 2.min(step) } else { step };
            }
        }
    }
    println!("{mode:?}: {ops} operations; {runs} runs, {fired} met their fault, {errors} errors");
    assert!(fired > 0 && errors > 0);
}

#[test]
fn nothing_is_lost_to_faults_of_a_mapped_log() {
    all(LogMode::Mapped);
}

#[test]
fn nothing_is_lost_to_faults_of_a_written_log() {
    all(LogMode::Written);
}

#[test]
fn after_a_failed_sync_of_the_log_nothing_is_acknowledged() {
    for mode in [LogMode::Mapped, LogMode::Written] {
        for forever in [false, true] {
            for at in 1..8 {
                let disk = SimVfs::new(at);
                let db = options(&disk, mode).open(DIR).unwrap();
                let matching = FaultFilter { ops: vec![Op::Sync], path_suffix: ".log".into() };
                disk.inject(Fault { kind: FaultKind::Eio, at, forever, matching });
                let mut acknowledged = 0;
                let mut failed = false;
                for n in 1..=20u64 {
                    let mut batch = WriteBatch::new();
                    batch.put(n.to_le_bytes(), common::bytes(n, 50));
                    match db.write_with(&batch, Durability::Sync) {
                        Ok(()) => {
                            assert!(!failed, "acknowledged after a failed sync");
                            acknowledged = n;
                        }
                        Err(e) => {
                            assert!(matches!(e.kind(), ErrorKind::Io | ErrorKind::Halted), "{e:?}");
                            failed = true;
                        }
                    }
                }
                assert!(failed && db.sync().is_err() && db.flush().is_err() && db.put(b"k", b"v").is_err());
                assert!(db.get(1u64.to_le_bytes()).is_ok(), "reads go on");
                assert!(db.close().is_err(), "closing tells of it");
                disk.clear_faults();
                for crash in [None, Some(CrashMode::DropUnsynced), Some(CrashMode::Torn)] {
                    let disk = crash.map_or_else(|| disk.kill(), |mode| disk.crash(at, mode));
                    let db = options(&disk, mode).open(DIR).unwrap();
                    for n in 1..=acknowledged {
                        assert!(
                            db.get(n.to_le_bytes()).unwrap().is_some(),
                            "{mode:?}: {n} of {acknowledged} is lost"
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn a_disk_that_was_full_serves_again_when_there_is_room() {
    for mode in [LogMode::Mapped, LogMode::Written] {
        let disk = SimVfs::new(9);
        let db = options(&disk, mode).open(DIR).unwrap();
        let mut acknowledged = Vec::new();
        let mut refused = 0;
        for round in 0..6u64 {
            disk.set_capacity(if round % 2 == 0 { 600 << 10 } else { 1 << 40 });
            for i in 0..400u64 {
                let (key, value) = (round * 1000 + i, common::bytes(i * 2 + 1, 500));
                match db.put(key.to_be_bytes(), &value) {
                    Ok(()) => acknowledged.push((key, value)),
                    Err(e) => {
                        assert_eq!(e.kind(), ErrorKind::NoSpace, "{e:?}");
                        refused += 1;
                        if refused % 10 == 9 {
                            break;
                        }
                    }
                }
            }
            for (key, value) in acknowledged.iter().step_by(17) {
                assert!(db.get(key.to_be_bytes()).unwrap().is_some_and(|v| v == *value));
            }
        }
        assert!(refused > 0, "the disk never was full");
        disk.set_capacity(1 << 40);
        db.flush().unwrap();
        assert_eq!(db.iter().count(), acknowledged.len());
        db.close().unwrap();
        let db = options(&disk, mode).open(DIR).unwrap();
        assert_eq!(db.iter().count(), acknowledged.len());
    }
}
