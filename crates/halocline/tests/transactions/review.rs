//! What a review found broken, each as small as it was found.

use super::*;
use halocline::{ColumnFamily, Durability, Tx};
use std::sync::mpsc;
use std::time::Duration;

fn quick() -> TxOptions {
    TxOptions::new().pessimistic().lock_timeout(Duration::from_millis(1))
}

/// Runs `work` in a thread of its own; whether it came to an end. The bound is only reached by one that never does.
fn ends(work: impl FnOnce() + Send + 'static) -> bool {
    let (done, ended) = mpsc::channel();
    std::thread::spawn(move || {
        work();
        done.send(()).unwrap();
    });
    ended.recv_timeout(Duration::from_secs(20)).is_ok()
}

/// Conflicts with itself until it is run alone, and does `work` then.
fn alone<T>(db: &Db, mut work: impl FnMut(&mut Tx<'_>) -> halocline::Result<T>) -> halocline::Result<T> {
    let mut attempts = 0u32;
    db.update(|tx| {
        attempts += 1;
        if attempts <= 8 {
            tx.get(b"!")?;
            db.put(b"!", attempts.to_string())?;
            tx.put(b"!!", b"")?;
            // Never used: this attempt is refused.
            return Ok(None);
        }
        work(tx).map(Some)
    })
    .map(|done| done.expect("the first eight attempts cannot be committed"))
}

fn kind<T>(result: halocline::Result<T>) -> Option<ErrorKind> {
    result.err().map(|e| e.kind())
}

fn prepare_reader(db: &Db, name: &str) {
    let mut tx = db.begin(TxOptions::new());
    tx.get(b"read").unwrap();
    tx.range(b"a"..b"b").for_each(|item| drop(item.unwrap()));
    tx.put(name, b"").unwrap();
    tx.prepare(name).unwrap();
}

/// A decision gives up the locks on what was read, too.
#[test]
fn what_a_prepared_transaction_has_read_is_free_after_its_decision() {
    let db = scratch();
    prepare_reader(&db, "one");
    db.commit_prepared("one", Durability::Process).unwrap();
    assert_eq!(kind(db.begin(quick()).put(b"read", b"")), None);
    let other = db.begin(TxOptions::new());
    other.range(b"x"..b"y").for_each(|item| drop(item.unwrap()));
    other.prepare("other").unwrap();
    assert_eq!(kind(db.begin(quick()).put(b"ab", b"")), None);
    db.rollback_prepared("other").unwrap();
}

/// Alone, nothing is written that a prepared transaction has read.
#[test]
fn alone_respects_what_a_prepared_transaction_has_read() {
    for key in [b"read".as_slice(), b"ab"] {
        let db = scratch();
        prepare_reader(&db, "p");
        assert_eq!(kind(alone(&db, |tx| tx.put(key, b"changed"))), Some(ErrorKind::LockTimeout));
        assert!(db.get(key).unwrap().is_none());
        db.commit_prepared("p", Durability::Process).unwrap();
    }
}

/// What holds the locks is not held up by them.
#[test]
fn a_prepared_transaction_can_be_made_and_decided_alone() {
    let db = scratch();
    prepare_reader(&db, "before");
    alone(&db, |_| {
        db.commit_prepared("before", Durability::Process)?;
        prepare_reader(&db, "within");
        db.rollback_prepared("within")
    })
    .unwrap();
    assert!(db.get(b"before").unwrap().is_some() && db.prepared().is_empty());
}

/// Below repeatable read the value may be newer than the transaction's first read. That it is gone again, and left no
/// trace in the tables, is a change, too.
#[test]
fn what_was_got_for_update_and_then_removed_has_changed() {
    for level in [Isolation::ReadUncommitted, Isolation::ReadCommitted] {
        for between in BETWEEN {
            let db = scratch();
            let mut tx = db.begin(at(level));
            tx.get_for_update(b"first").unwrap();
            db.put(b"k", b"1").unwrap();
            assert_eq!(text(tx.get_for_update(b"k").unwrap()).unwrap(), "1");
            db.delete(b"k").unwrap();
            between.happen(&db);
            tx.put(b"k", b"2").unwrap();
            assert!(conflicts(tx.commit()), "{level:?} {between:?}");
        }
    }
}

/// Also if the transaction writes nothing.
#[test]
fn what_is_got_for_update_is_the_same_at_any_commit() {
    for level in LEVELS {
        let db = scratch();
        let mut tx = db.begin(at(level));
        tx.get_for_update(b"k").unwrap();
        db.put(b"k", b"1").unwrap();
        assert!(conflicts(tx.commit()), "{level:?}");
        let mut tx = db.begin(at(level));
        tx.get_for_update(b"k").unwrap();
        tx.commit().unwrap();
        // What only reads is in nobody's way, and nobody in its.
        let mut tx = db.begin(at(level));
        tx.get(b"k").unwrap();
        db.put(b"k", b"2").unwrap();
        tx.commit_and_reset().unwrap();
        tx.get_for_update(b"k").unwrap();
        tx.reset();
        tx.get(b"k").unwrap();
        db.put(b"k", b"3").unwrap();
        tx.commit().unwrap();
    }
}

#[test]
fn alone_within_alone_ends() {
    assert!(ends(|| {
        let db = scratch();
        alone(&db, |tx| {
            alone(&db, |inner| inner.put(b"inner", b""))?;
            tx.put(b"outer", b"")
        })
        .unwrap();
        std::thread::scope(|scope| drop(scope.spawn(|| db.put(b"other", b"").unwrap())));
        assert!(db.get(b"inner").unwrap().is_some() && db.get(b"outer").unwrap().is_some());
    }));
}

/// Being alone in one database says nothing of another one.
#[test]
fn alone_in_two_databases_ends() {
    assert!(ends(|| {
        let (a, b) = (scratch(), scratch());
        alone(&a, |tx| {
            alone(&b, |inner| inner.put(b"k", b""))?;
            tx.put(b"k", b"")
        })
        .unwrap();
        assert!(a.get(b"k").unwrap().is_some() && b.get(b"k").unwrap().is_some());
    }));
}

#[test]
fn alone_in_one_database_respects_the_locks_of_another() {
    let (a, b) = (scratch(), scratch());
    let mut holder = b.begin(TxOptions::new().pessimistic());
    holder.put(b"k", b"").unwrap();
    assert_eq!(kind(alone(&a, |_| b.put(b"k", b"past the lock"))), Some(ErrorKind::LockTimeout));
}

/// Hooks come after the commit, when others can go on.
#[test]
fn a_hook_may_wait_for_another_writer() {
    assert!(ends(|| {
        let db = scratch();
        alone(&db, |tx| {
            let other = Db::clone(&db);
            tx.on_commit(move || {
                std::thread::spawn(move || other.put(b"other", b"").unwrap()).join().unwrap()
            });
            tx.put(b"k", b"")
        })
        .unwrap();
        assert!(db.get(b"other").unwrap().is_some());
    }));
}

/// A log whose end was closed holds no records up to there.
#[test]
fn a_commit_after_the_end_of_the_log_is_told_that_it_was_closed() {
    let db = scratch();
    let mut tx = db.begin(TxOptions::new());
    // So much was read that the whole segment would be walked.
    for n in 0..1100u32 {
        assert!(tx.range(n.to_be_bytes()..=n.to_be_bytes()).next().is_none());
    }
    tx.put(b"k", b"").unwrap();
    db.close().unwrap();
    assert_eq!(kind(tx.commit()), Some(ErrorKind::Closed));
}

/// Who was waited for and let go may wait for the one who waited: that is no circle.
#[test]
fn a_lock_that_was_given_up_makes_no_deadlock() {
    let db = scratch();
    let patient = || TxOptions::new().pessimistic().lock_timeout(Duration::from_secs(60));
    for _ in 0..10 {
        let mut b = db.begin(patient());
        b.put(b"1", b"").unwrap();
        let (has, waits) = mpsc::channel();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let has = has;
                let mut a = db.begin(patient());
                a.put(b"2", b"").unwrap();
                has.send(()).unwrap();
                a.put(b"1", b"").unwrap();
                a.commit().unwrap();
            });
            waits.recv().unwrap();
            // It waits soon, for certain after a while; right is what follows in any case.
            (0..10_000).for_each(|_| std::thread::yield_now());
            b.reset();
            assert_eq!(kind(b.put(b"2", b"")), None);
        });
    }
}

#[test]
fn a_savepoint_of_another_transaction_is_refused() {
    let db = scratch();
    let mut one = db.begin(TxOptions::new());
    let mut two = db.begin(TxOptions::new());
    let (of_one, of_two) = (one.savepoint(), two.savepoint());
    two.put(b"k", b"").unwrap();
    assert_eq!(kind(two.rollback_to(&of_one)), Some(ErrorKind::InvalidArgument));
    assert_eq!(two.len(), 1);
    two.rollback_to(&of_two).unwrap();
    assert_eq!(kind(two.release(of_one)), Some(ErrorKind::InvalidArgument));
    assert!(two.is_empty() && one.is_empty());
}

/// A write that was refused does not tie the commit to its column family.
#[test]
fn a_refused_write_leaves_no_column_family_behind() {
    let db = scratch();
    let family: ColumnFamily = db.column_family("f").unwrap();
    let mut tx = db.begin(TxOptions::new());
    assert_eq!(kind(tx.put_cf(&family, vec![0; 70_000], b"")), Some(ErrorKind::InvalidArgument));
    db.drop_column_family("f").unwrap();
    tx.put(b"k", b"").unwrap();
    tx.commit().unwrap();
}

/// A key that is only written, and was not seen, may have changed: a lock is no reason for a conflict where the commit has none.
#[test]
fn a_key_that_is_only_written_is_locked_whatever_it_was() {
    for level in LEVELS {
        let db = scratch();
        let mut tx = db.begin(at(level).pessimistic());
        tx.get(b"read").unwrap();
        db.put(b"k", b"other").unwrap();
        let written = tx.put(b"k", b"mine");
        if level == Isolation::Snapshot {
            assert!(conflicts(written));
            continue;
        }
        written.unwrap();
        db.put(b"read", b"other").unwrap();
        let stable = level >= Isolation::RepeatableRead;
        assert_eq!(conflicts(tx.put(b"read", b"mine")), stable, "{level:?}");
        assert_eq!(conflicts(tx.commit()), stable, "{level:?}");
    }
}

/// A value that the transaction wrote and took back was never committed, so nobody sees it, at no moment.
#[test]
fn what_a_transaction_overwrote_itself_is_never_seen() {
    let db = scratch();
    db.put(b"k", b"whole").unwrap();
    let write = |tx: &mut Tx<'_>| {
        tx.put(b"k", b"half")?;
        (0..3000u32).try_for_each(|i| tx.put(i.to_be_bytes(), b""))?;
        tx.put(b"k", b"whole")
    };
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for n in 0..20u8 {
                db.update(write).unwrap();
                let mut tx = db.begin(TxOptions::new());
                write(&mut tx).unwrap();
                tx.prepare([n]).unwrap();
                db.commit_prepared([n], Durability::Process).unwrap();
            }
            done.store(true, std::sync::atomic::Ordering::SeqCst);
        });
        while !done.load(std::sync::atomic::Ordering::SeqCst) {
            assert_eq!(db.get(b"k").unwrap().unwrap(), b"whole");
            let tx = db.begin(at(Isolation::ReadUncommitted));
            assert_eq!(tx.get(b"k").unwrap().unwrap(), b"whole");
        }
    });
}

/// What is prepared waits for its decision, however much comes after it, also where the users' data ages out.
#[test]
fn what_is_prepared_does_not_age_out() {
    let dir = tempfile::tempdir().unwrap();
    let open = || {
        let fifo = halocline::Compaction::Fifo { max_bytes: 1 << 20 };
        halocline::Options::new().compaction(fifo).open(dir.path().join("db")).unwrap()
    };
    let db = open();
    let mut state = 1u64;
    for name in [b"1", b"2", b"3"] {
        // Bytes that cannot be made fewer.
        let value: Vec<u8> = std::iter::repeat_with(|| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 56) as u8
        })
        .take(700_000)
        .collect();
        let mut tx = db.begin(TxOptions::new());
        tx.put(name, &value).unwrap();
        tx.prepare(name).unwrap();
        db.flush().unwrap();
        db.wait_idle().unwrap();
    }
    db.close().unwrap();
    drop(db);
    assert_eq!(open().prepared(), [b"1", b"2", b"3"]);
}

/// Without a log a commit is made durable by a flush. Where that fails, it is told; but what was not prepared does not come back
/// later, and what was committed cannot be rolled back.
#[test]
fn a_full_disk_decides_nothing_twice() {
    let disk = halocline::io::sim::SimVfs::new(3);
    let open = || {
        let options = halocline::Options::new().vfs(std::sync::Arc::new(disk.clone()));
        options.durability(Durability::None).open("db").unwrap()
    };
    let db = open();
    prepare_reader(&db, "there");
    let used: u64 = disk.files().iter().map(|(_, len)| len).sum();
    disk.set_capacity(used);
    let mut tx = db.begin(TxOptions::new());
    tx.put(b"k", b"").unwrap();
    assert!(kind(tx.prepare("not there")).is_some());
    assert!(kind(db.commit_prepared("there", Durability::Sync)).is_some());
    disk.set_capacity(u64::MAX);
    if db.get(b"there").unwrap().is_some() {
        assert_eq!(kind(db.rollback_prepared("there")), Some(ErrorKind::Missing));
    } else {
        db.commit_prepared("there", Durability::Sync).unwrap();
    }
    assert!(db.prepared().is_empty());
    db.flush().unwrap();
    db.close().unwrap();
    drop(db);
    let db = open();
    assert!(
        db.prepared().is_empty() && db.get(b"there").unwrap().is_some() && db.get(b"k").unwrap().is_none()
    );
}
