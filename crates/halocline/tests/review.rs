//! Interleavings and crashes that were found by reading, each as a test that fails while the defect is there.

#![expect(clippy::disallowed_methods, reason = "tests wait")]

use halocline::io::sim::{CrashMode, Observer, SimVfs};
use halocline::{Db, Durability, ErrorKind, LogMode, Options, WriteBatch};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::mpsc::channel;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

const DIR: &str = "/db";

fn options(disk: &SimVfs) -> Options {
    Options::new().vfs(Arc::new(disk.clone())).write_buffer(64 << 10)
}

/// Holds threads of one name back at their `nth` operation, counted from `arm`.
#[derive(Default)]
struct Gate {
    armed: AtomicBool,
    seen: AtomicU64,
    reached: AtomicBool,
    open: Mutex<bool>,
    opened: Condvar,
}

impl Gate {
    fn install(disk: &SimVfs, name: &'static str, nth: u64) -> Arc<Gate> {
        let gate = Arc::new(Gate::default());
        let inner = Arc::clone(&gate);
        let observer: Observer = Arc::new(move |_: &SimVfs, _| {
            let ours = std::thread::current().name() == Some(name);
            if ours && inner.armed.load(SeqCst) && inner.seen.fetch_add(1, SeqCst) + 1 == nth {
                inner.reached.store(true, SeqCst);
                let mut open = inner.open.lock().unwrap();
                while !*open {
                    open = inner.opened.wait(open).unwrap();
                }
            }
        });
        disk.set_observer(Some(observer));
        gate
    }
    fn arm(&self) {
        self.armed.store(true, SeqCst);
    }
    fn wait_reached(&self) {
        for _ in 0..5000 {
            if self.reached.load(SeqCst) {
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        panic!("the thread did not get there");
    }
    fn release(&self) {
        *self.open.lock().unwrap() = true;
        self.opened.notify_all();
    }
}

fn put_sync(db: &Db, key: &[u8], value: &[u8]) {
    let mut batch = WriteBatch::new();
    batch.put(key, value);
    db.write_with(&batch, Durability::Sync).unwrap();
}

/// After a power loss that took the header of the first unflushed segment and left a later one's, the new active
/// segment begins at an address that no chain from the recorded floor leads to.
#[test]
fn what_is_synced_after_a_recovery_that_found_no_first_segment_survives_the_next_crash() {
    let disk = SimVfs::new(1);
    // The flush thread is held at its first operation: three segments stay in the log.
    let gate = Gate::install(&disk, "halocline-flush", 1);
    let db = options(&disk).open(Path::new(DIR)).unwrap();
    gate.arm();
    for i in 0..1500u32 {
        db.put(i.to_be_bytes(), [7; 100]).unwrap();
    }
    let images: Vec<_> = (0..64).map(|seed| disk.crash(seed, CrashMode::RandomPieces)).collect();
    gate.release();
    drop(db);
    disk.set_observer(None);
    let mut lost = Vec::new();
    for (seed, image) in images.iter().enumerate() {
        let db = options(image).open(Path::new(DIR)).unwrap();
        put_sync(&db, b"acknowledged", b"synced");
        for (how, again) in [("kill", image.kill()), ("power", image.crash(1, CrashMode::DropUnsynced))] {
            match options(&again).open(Path::new(DIR)) {
                Err(e) => lost.push(format!("seed {seed}, {how}: {e}")),
                Ok(db) if db.get(b"acknowledged").unwrap().is_none() => {
                    lost.push(format!("seed {seed}, {how}: a synced commit is gone"));
                }
                Ok(_) => {}
            }
        }
    }
    assert!(lost.is_empty(), "{} of 128:\n{}", lost.len(), lost.join("\n"));
}

/// The leader of a group commit reserves room for its mark without being in flight, so that the next leader does not
/// wait for it: what that one acknowledges lies behind a gap.
#[test]
fn a_commit_behind_a_mark_that_is_being_written_survives_power_loss() {
    let disk = SimVfs::new(2);
    // Operations of a synced commit: its record, the sync, the mark.
    let gate = Gate::install(&disk, "leader", 3);
    let db = options(&disk).log_mode(LogMode::Written).write_buffer(1 << 20).open(Path::new(DIR)).unwrap();
    disk.set_mapped_writes(false);
    gate.arm();
    let leader = {
        let db = db.clone();
        std::thread::Builder::new().name("leader".into()).spawn(move || put_sync(&db, b"a", b"1")).unwrap()
    };
    gate.wait_reached();
    let (acknowledged, was_acknowledged) = channel();
    let follower = {
        let db = db.clone();
        std::thread::spawn(move || {
            put_sync(&db, b"b", b"2");
            acknowledged.send(()).unwrap();
        })
    };
    // Without the defect, the second commit waits for the mark.
    let early = was_acknowledged.recv_timeout(Duration::from_secs(2)).is_ok();
    let images = [("kill", disk.kill()), ("power", disk.crash(1, CrashMode::DropUnsynced))];
    gate.release();
    leader.join().unwrap();
    follower.join().unwrap();
    disk.set_observer(None);
    if early {
        for (how, image) in images {
            image.set_mapped_writes(false);
            match options(&image).log_mode(LogMode::Written).open(Path::new(DIR)) {
                Err(e) => println!("{how}: {e}"),
                Ok(db) => println!("{how}: b = {:?}", db.get(b"b").unwrap().map(|v| v.to_vec())),
            }
        }
        panic!("a commit was acknowledged as synced behind a gap in the log");
    }
}

/// A merge in a user's thread is not waited for by `close`: when it gives up it removes its files by name, and the
/// next handle has given the same names to its own tables.
#[test]
fn a_compaction_that_outlives_close_removes_nothing_of_the_next_handle() {
    let disk = SimVfs::new(3);
    let gate = Gate::install(&disk, "compactor", 2);
    let db = options(&disk).open(Path::new(DIR)).unwrap();
    for round in 0..2u8 {
        for i in 0..400u32 {
            db.put(i.to_be_bytes(), [round; 50]).unwrap();
        }
        db.flush().unwrap();
        db.wait_idle().unwrap();
    }
    gate.arm();
    let compactor = {
        let db = db.clone();
        std::thread::Builder::new()
            .name("compactor".into())
            .spawn(move || drop(db.compact_range(..)))
            .unwrap()
    };
    gate.wait_reached();
    let (closed, was_closed) = channel();
    let closer = std::thread::spawn(move || closed.send(db.close()).unwrap());
    if was_closed.recv_timeout(Duration::from_secs(2)).is_err() {
        gate.release();
    }
    closer.join().unwrap();
    let next = options(&disk).open(Path::new(DIR)).unwrap();
    for i in 0..400u32 {
        next.put(i.to_be_bytes(), b"new").unwrap();
    }
    next.flush().unwrap();
    gate.release();
    compactor.join().unwrap();
    next.close().unwrap();
    drop(next);
    disk.set_observer(None);
    let last = options(&disk).open(Path::new(DIR)).expect("the database opens");
    assert_eq!(last.get(7u32.to_be_bytes()).unwrap().unwrap(), b"new");
}

/// On a full disk the background tries again after a while, not all the time.
#[test]
fn a_full_disk_is_waited_out_and_not_hammered() {
    let disk = SimVfs::new(4);
    let gate = Gate::install(&disk, "halocline-flush", 1);
    let db = options(&disk).open(Path::new(DIR)).unwrap();
    gate.arm();
    for i in 0..1000u32 {
        db.put(i.to_be_bytes(), [7; 100]).unwrap();
    }
    disk.set_capacity(1);
    gate.release();
    assert_eq!(db.flush().unwrap_err().kind(), ErrorKind::NoSpace);
    std::thread::sleep(Duration::from_millis(200));
    let before = disk.ops();
    std::thread::sleep(Duration::from_secs(1));
    let ops = disk.ops() - before;
    disk.set_capacity(1 << 40);
    assert!(ops < 500, "{ops} operations in a second with nothing to do but wait");
}

/// Writers put until the database is closed under them; what was acknowledged is there after reopening.
fn acknowledged_until_close_is_kept(durability: Durability, rounds: u64) {
    for round in 0..rounds {
        let disk = SimVfs::new(round);
        let opened = || options(&disk).durability(durability).open(Path::new(DIR));
        let db = opened().unwrap();
        let writers: Vec<_> = (0..3u32)
            .map(|writer| {
                let db = db.clone();
                std::thread::spawn(move || {
                    let mut acknowledged = 0u32;
                    loop {
                        match db.put([writer.to_be_bytes(), acknowledged.to_be_bytes()].concat(), b"v") {
                            Ok(()) => acknowledged += 1,
                            Err(e) if e.kind() == ErrorKind::Closed => return acknowledged,
                            Err(e) => panic!("{durability:?}, round {round}: {e}"),
                        }
                    }
                })
            })
            .collect();
        std::thread::sleep(Duration::from_millis(5 + round % 7));
        db.close().unwrap();
        let counts: Vec<u32> = writers.into_iter().map(|w| w.join().unwrap()).collect();
        drop(db);
        let db = opened().unwrap_or_else(|e| panic!("{durability:?}, round {round}: {e}"));
        for (writer, &count) in counts.iter().enumerate() {
            for i in 0..count {
                let key = [(writer as u32).to_be_bytes(), i.to_be_bytes()].concat();
                assert!(
                    db.get(&key).unwrap().is_some(),
                    "{durability:?}, round {round}: commit {i} of {count} of writer {writer} is gone"
                );
            }
        }
    }
}

#[test]
fn a_close_among_commits_keeps_what_was_acknowledged_with_a_log() {
    acknowledged_until_close_is_kept(Durability::Process, 40);
}

#[test]
fn a_close_among_commits_keeps_what_was_acknowledged_with_syncs() {
    acknowledged_until_close_is_kept(Durability::Sync, 100);
}

#[test]
fn a_close_among_commits_keeps_what_was_acknowledged_without_a_log() {
    acknowledged_until_close_is_kept(Durability::None, 40);
}

/// A flush verifies the log's records while the leader of a group commit may still be writing a mark.
#[test]
fn flushes_among_synced_commits_find_no_damage() {
    let disk = SimVfs::new(6);
    let db = options(&disk).durability(Durability::Sync).open(Path::new(DIR)).unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let writers: Vec<_> = (0..6u32)
        .map(|writer| {
            let (db, stop) = (db.clone(), Arc::clone(&stop));
            std::thread::spawn(move || {
                let mut i = 0u32;
                while !stop.load(SeqCst) {
                    i += 1;
                    db.put([writer.to_be_bytes(), i.to_be_bytes()].concat(), b"v").unwrap();
                }
            })
        })
        .collect();
    for _ in 0..1500 {
        if let Err(e) = db.flush() {
            stop.store(true, SeqCst);
            panic!("{e}");
        }
    }
    stop.store(true, SeqCst);
    writers.into_iter().for_each(|w| w.join().unwrap());
}

/// A file of a user's whose name looks like one of ours, but is not spelt as ours are.
#[test]
fn a_foreign_file_in_the_directory_does_not_keep_the_database_shut() {
    for name in ["7.log", "+5.tbl", "9.tbl"] {
        let disk = SimVfs::new(7);
        drop(options(&disk).open(Path::new(DIR)).unwrap());
        disk.write_file(Path::new(DIR).join(name), b"mine").unwrap();
        options(&disk).open(Path::new(DIR)).unwrap_or_else(|e| panic!("{name}: {e}"));
    }
}

/// Sanity: inverted bounds, many families, long and empty keys.
#[test]
fn bounds_families_and_keys_at_their_limits() {
    let disk = SimVfs::new(5);
    let db = options(&disk).open(Path::new(DIR)).unwrap();
    for key in [&b""[..], b"a", b"m", b"z"] {
        db.put(key, key).unwrap();
    }
    let long = vec![b'q'; 64 << 10];
    db.put(&long, b"long").unwrap();
    let families: Vec<_> = (0..300).map(|i| db.column_family(&format!("f{i}")).unwrap()).collect();
    for (i, family) in families.iter().enumerate() {
        family.put(b"", format!("{i}")).unwrap();
        family.put(&long, b"x").unwrap();
    }
    let check = |db: &Db| {
        assert_eq!(db.range("z".."a").count(), 0);
        assert_eq!(db.range("z".."a").rev().count(), 0);
        assert_eq!(db.iter().count(), 5);
        assert_eq!(db.iter().rev().count(), 5);
        let mut both = db.iter();
        let mut n = 0;
        while both.next().is_some() {
            n += 1;
            n += usize::from(both.next_back().is_some());
        }
        assert_eq!(n, 5);
        assert!(both.next().is_none() && both.next_back().is_none());
        for i in 0..300 {
            let family = db.find_column_family(&format!("f{i}")).unwrap().unwrap();
            assert_eq!(family.get(b"").unwrap().unwrap(), format!("{i}").as_bytes());
            assert_eq!(family.get(&long).unwrap().unwrap(), b"x");
            assert_eq!(family.iter().count(), 2);
        }
    };
    check(&db);
    db.flush().unwrap();
    check(&db);
    db.compact_range("z".."a").unwrap();
    db.compact_range(..).unwrap();
    check(&db);
    db.close().unwrap();
    drop((families, db));
    check(&options(&disk).open(Path::new(DIR)).unwrap());
}

/// Tables without a manifest are a database that lost it, not room for a new one.
#[test]
fn creating_a_database_over_the_remains_of_another_deletes_nothing() {
    let disk = SimVfs::new(8);
    let db = options(&disk).open(Path::new(DIR)).unwrap();
    db.put(b"k", b"v").unwrap();
    db.flush().unwrap();
    db.close().unwrap();
    drop(db);
    let vfs: &dyn halocline::io::Vfs = &disk;
    for (path, _) in disk.files() {
        let name = path.file_name().unwrap().to_str().unwrap();
        if name.starts_with("MANIFEST") || name == "CURRENT" {
            vfs.remove(&path).unwrap();
        }
    }
    let tables = || disk.files().iter().filter(|(p, _)| p.extension().is_some_and(|e| e == "tbl")).count();
    assert_eq!(tables(), 1);
    let opened = options(&disk).open(Path::new(DIR));
    assert_eq!(tables(), 1, "the table is gone; opening gave {opened:?}");
    assert!(opened.is_err());
}
