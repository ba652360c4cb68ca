//! Two-phase commit: what is prepared stays so over kills and power loss, holds its keys and what it has read, and is decided
//! once.

use super::*;
use halocline::io::sim::{CrashMode, SimVfs};
use halocline::{Durability, Options, Transaction};
use std::sync::Arc;

fn on(disk: &SimVfs) -> Db {
    Options::new().vfs(Arc::new(disk.clone())).write_buffer(1 << 20).open("db").unwrap()
}

fn blocked(result: halocline::Result<()>) -> bool {
    match result {
        Ok(()) => false,
        Err(e) if e.kind() == ErrorKind::LockTimeout => true,
        Err(e) => panic!("{e}"),
    }
}

fn prepare(db: &Db, name: &str) {
    let family = db.column_family("f").unwrap();
    let mut tx = db.begin(TxOptions::new());
    assert_eq!(text(tx.get(b"read").unwrap()).unwrap(), "0");
    assert_eq!(tx.range_cf(&family, b"a"..b"b").count(), 0);
    tx.put(b"written", b"1").unwrap();
    tx.delete(b"read too").unwrap();
    tx.put_cf(&family, b"x", b"1").unwrap();
    tx.prepare(name).unwrap();
}

fn setup(db: &Db) {
    db.put(b"read", b"0").unwrap();
    db.put(b"read too", b"0").unwrap();
    db.sync().unwrap();
}

/// Nothing of it is seen, and nobody comes in between.
fn holds(db: &Db, plainly: bool) {
    let family = db.column_family("f").unwrap();
    assert!(db.get(b"written").unwrap().is_none() && db.get(b"read too").unwrap().is_some());
    assert!(family.get(b"x").unwrap().is_none());
    if plainly {
        // Each waits for a second.
        assert!(blocked(db.put(b"written", b"other")));
        assert!(blocked(db.put(b"read", b"other")));
        assert!(blocked(family.put(b"ab", b"phantom")));
        assert!(blocked(db.update(|tx| tx.put_cf(&family, b"x", b"other"))));
    }
    let quick = || db.begin(TxOptions::new().pessimistic().lock_timeout(std::time::Duration::from_millis(1)));
    assert!(blocked(quick().put(b"written", b"other")));
    assert!(blocked(quick().put(b"read", b"other")));
    assert!(blocked(quick().put_cf(&family, b"ab", b"phantom")));
    assert!(blocked(quick().put_cf(&family, b"x", b"other")));
    // What it has only read may be read, and everything else written.
    assert_eq!(text(db.get(b"read").unwrap()).unwrap(), "0");
    db.put(b"free", b"").unwrap();
    family.put(b"b", b"").unwrap();
    assert_eq!(db.prepared(), [b"name"]);
    assert_eq!(db.column_families().unwrap(), ["default", "f"]);
}

fn committed(db: &Db) -> bool {
    let family = db.column_family("f").unwrap();
    let all = [
        db.get(b"written").unwrap().is_some(),
        db.get(b"read too").unwrap().is_none(),
        family.get(b"x").unwrap().is_some(),
    ];
    assert!(all == [true; 3] || all == [false; 3], "half of it: {all:?}");
    all[0]
}

#[test]
fn a_prepared_transaction_outlives_kills_and_power_loss() {
    for mode in [None, Some(CrashMode::DropUnsynced), Some(CrashMode::Torn)] {
        for decide in [true, false] {
            for flush in [true, false] {
                let disk = SimVfs::new(7);
                let db = on(&disk);
                setup(&db);
                prepare(&db, "name");
                holds(&db, false);
                if flush {
                    db.compact_range(..).unwrap();
                }
                let disk = match mode {
                    None => disk.kill(),
                    Some(mode) => disk.crash(3, mode),
                };
                let db = on(&disk);
                holds(&db, mode.is_none() && decide && flush);
                if decide {
                    db.commit_prepared("name", Durability::Sync).unwrap();
                } else {
                    db.rollback_prepared("name").unwrap();
                }
                let disk = match mode {
                    None => disk.kill(),
                    Some(mode) => disk.crash(4, mode),
                };
                for db in [&db, &on(&disk)] {
                    assert_eq!(committed(db), decide);
                    assert!(db.prepared().is_empty());
                    assert_eq!(
                        db.commit_prepared("name", Durability::Process).unwrap_err().kind(),
                        ErrorKind::Missing
                    );
                    db.put(b"read", b"1").unwrap();
                    db.put(b"written", b"1").unwrap();
                }
            }
        }
    }
}

/// Power fails before any operation on the disk, in both phases: before it is prepared nothing is there, afterwards it is
/// prepared, and once its commit was acknowledged it is committed.
#[test]
fn a_crash_in_the_middle_leaves_one_of_three_states() {
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
    let disk = SimVfs::new(11);
    let db = on(&disk);
    setup(&db);
    db.column_family("f").unwrap();
    // How far it had got for certain, and how far it may have got, in steps: none, prepared, committed.
    let reached = Arc::new((AtomicUsize::new(0), AtomicUsize::new(0)));
    let images: Arc<Mutex<Vec<(SimVfs, usize, usize)>>> = Arc::default();
    let (kept, steps) = (Arc::clone(&images), Arc::clone(&reached));
    disk.set_observer(Some(Arc::new(move |disk: &SimVfs, n: u64| {
        let mode = if n.is_multiple_of(2) { CrashMode::DropUnsynced } else { CrashMode::Torn };
        // In this order: what is acknowledged now was so when the image was taken.
        let least = steps.0.load(SeqCst);
        let image = disk.crash(n, mode);
        kept.lock().unwrap().push((image, least, steps.1.load(SeqCst)));
    })));
    reached.1.store(1, SeqCst);
    prepare(&db, "name");
    reached.0.store(1, SeqCst);
    db.flush().unwrap();
    reached.1.store(2, SeqCst);
    db.commit_prepared("name", Durability::Sync).unwrap();
    reached.0.store(2, SeqCst);
    db.flush().unwrap();
    disk.set_observer(None);
    drop(db);
    let images = std::mem::take(&mut *images.lock().unwrap());
    let mut seen = [0; 3];
    for (image, least, most) in images {
        let db = on(&image);
        let state = match (db.prepared().len(), committed(&db)) {
            (0, false) => 0,
            (1, false) => 1,
            (0, true) => 2,
            other => panic!("{other:?}"),
        };
        assert!((least..=most).contains(&state), "{state} where {least} to {most} is right");
        seen[state] += 1;
    }
    assert!(seen.iter().all(|&n| n > 0), "{seen:?}");
}

#[test]
fn what_cannot_be_committed_cannot_be_prepared() {
    let db = scratch();
    db.put(b"k", b"0").unwrap();
    let reader = || {
        let mut tx: Transaction<'_> = db.begin(TxOptions::new());
        tx.get(b"k").unwrap();
        tx.put(b"w", b"").unwrap();
        tx
    };
    let late = reader();
    db.put(b"k", b"1").unwrap();
    assert!(conflicts(late.prepare("late")));
    db.put(b"w", b"free again").unwrap();

    reader().prepare("one").unwrap();
    // It writes what the other has locked.
    assert!(conflicts(reader().prepare("two")));
    // A name is taken until it is decided.
    let mut other = db.begin(TxOptions::new());
    other.put(b"elsewhere", b"").unwrap();
    assert_eq!(other.prepare("one").unwrap_err().kind(), ErrorKind::InvalidArgument);
    // Two may have read the same.
    let mut shares = db.begin(TxOptions::new());
    shares.get(b"k").unwrap();
    shares.put(b"v", b"").unwrap();
    shares.prepare("shares").unwrap();
    db.commit_prepared("one", Durability::Process).unwrap();
    assert!(blocked(db.put(b"k", b"2")));
    db.rollback_prepared("shares").unwrap();
    db.put(b"k", b"2").unwrap();
    assert_eq!(db.iter().map(|i| i.unwrap().0.to_vec()).collect::<Vec<_>>(), [b"k", b"w"]);
    let mut hooked = db.begin(TxOptions::new());
    hooked.on_commit(|| {});
    assert_eq!(hooked.prepare("hooked").unwrap_err().kind(), ErrorKind::InvalidArgument);
    assert!(db.begin(TxOptions::new()).prepare("").is_err());
}

/// Even one that runs alone respects what is prepared, and tells so instead of waiting for ever.
#[test]
fn alone_does_not_pass_a_prepared_transaction() {
    let db = scratch();
    let mut tx = db.begin(TxOptions::new());
    tx.put(b"held", b"").unwrap();
    tx.prepare("p").unwrap();
    let mut attempts = 0;
    let refused = db.update(|tx| {
        attempts += 1;
        tx.get(b"k")?;
        if attempts < 9 {
            db.put(b"k", attempts.to_string())?;
        }
        if attempts == 9 { tx.put(b"held", b"mine") } else { tx.put(b"other", b"") }
    });
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::LockTimeout);
    db.commit_prepared("p", Durability::Process).unwrap();
    db.put(b"held", b"free").unwrap();
}
