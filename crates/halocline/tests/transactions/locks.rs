//! Pessimistic transactions: they wait instead of failing, deadlocks are told by name, and plain writers respect locks.

use super::*;
use std::sync::Barrier;
use std::time::Duration;

#[test]
fn a_counter_with_locks_never_conflicts() {
    for level in [Isolation::ReadCommitted, Isolation::Serializable] {
        let db = scratch();
        let (threads, each) = (4, 200u64);
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    for _ in 0..each {
                        let mut tx = db.begin(at(level).pessimistic().lock_timeout(Duration::from_secs(60)));
                        let n = tx
                            .get_for_update(b"n")
                            .unwrap()
                            .map_or(0, |v| u64::from_le_bytes(v.to_vec().try_into().unwrap()));
                        tx.put(b"n", (n + 1).to_le_bytes()).unwrap();
                        tx.commit().unwrap();
                    }
                });
            }
        });
        assert_eq!(db.get(b"n").unwrap().unwrap(), (threads * each).to_le_bytes());
    }
}

#[test]
fn a_lock_is_waited_for_and_the_wait_has_an_end() {
    let db = scratch();
    let mut holder = db.begin(TxOptions::new().pessimistic());
    holder.put(b"k", b"1").unwrap();
    let mut other = db.begin(TxOptions::new().pessimistic().lock_timeout(Duration::from_millis(20)));
    let late = other.put(b"k", b"2").unwrap_err();
    assert_eq!(late.kind(), ErrorKind::LockTimeout);
    assert!(late.to_string().contains("\"k\""), "{late}");
    other.put(b"j", b"2").unwrap();
    holder.commit().unwrap();
    other.put(b"k", b"2").unwrap();
    other.commit().unwrap();
    assert_eq!(text(db.get(b"k").unwrap()).unwrap(), "2");
}

#[test]
fn a_deadlock_is_found_at_once_and_told_by_name() {
    let db = scratch();
    let barrier = Barrier::new(3);
    let errors: Vec<String> = std::thread::scope(|scope| {
        let handles: Vec<_> = (0..3u8)
            .map(|i| {
                let (db, barrier) = (&db, &barrier);
                scope.spawn(move || {
                    let mut tx =
                        db.begin(TxOptions::new().pessimistic().lock_timeout(Duration::from_secs(600)));
                    tx.put([b'a' + i], b"").unwrap();
                    barrier.wait();
                    let second = tx.put([b'a' + (i + 1) % 3], b"");
                    let error = second.err().map(|e| {
                        assert_eq!(e.kind(), ErrorKind::Deadlock);
                        e.to_string()
                    });
                    match error {
                        Some(_) => tx.rollback(),
                        None => tx.commit().unwrap(),
                    }
                    error
                })
            })
            .collect();
        handles.into_iter().filter_map(|h| h.join().unwrap()).collect()
    });
    assert_eq!(errors.len(), 1, "one gives way, the others go on: {errors:?}");
    for key in ["\"a\"", "\"b\"", "\"c\""] {
        assert!(errors[0].contains(key), "{}", errors[0]);
    }
}

#[test]
fn plain_writers_and_optimistic_commits_wait_for_locks() {
    let db = scratch();
    let mut holder = db.begin(TxOptions::new().pessimistic());
    assert!(holder.get_for_update(b"k").unwrap().is_none());
    std::thread::scope(|scope| {
        let plain = scope.spawn(|| db.put(b"k", b"plain"));
        let batch = scope.spawn(|| {
            let mut batch = halocline::WriteBatch::new();
            batch.put(b"a", b"batch");
            batch.put(b"k", b"batch");
            db.write(&batch)
        });
        let optimistic = scope.spawn(|| db.update(|tx| tx.put(b"k", b"optimistic")));
        #[expect(clippy::disallowed_methods, reason = "that something does not happen takes time to show")]
        std::thread::sleep(Duration::from_millis(50));
        assert!(db.get(b"k").unwrap().is_none() && db.get(b"a").unwrap().is_none());
        // Other keys are free.
        db.put(b"free", b"").unwrap();
        holder.put(b"k", b"mine").unwrap();
        holder.commit().unwrap();
        plain.join().unwrap().unwrap();
        batch.join().unwrap().unwrap();
        optimistic.join().unwrap().unwrap();
    });
    assert_ne!(text(db.get(b"k").unwrap()).unwrap(), "mine");
}

#[test]
fn a_plain_write_does_not_wait_for_ever() {
    let db = scratch();
    let mut holder = db.begin(TxOptions::new().pessimistic());
    holder.put(b"k", b"").unwrap();
    assert_eq!(db.put(b"k", b"own thread").unwrap_err().kind(), ErrorKind::LockTimeout);
    drop(holder);
    db.put(b"k", b"free").unwrap();
}

#[test]
fn locks_end_with_rollback_savepoint_and_drop() {
    let db = scratch();
    let quick = || db.begin(TxOptions::new().pessimistic().lock_timeout(Duration::from_millis(5)));
    let mut tx = quick();
    tx.put(b"a", b"").unwrap();
    let savepoint = tx.savepoint();
    tx.put(b"b", b"").unwrap();
    assert!(quick().put(b"b", b"").is_err());
    tx.rollback_to(&savepoint).unwrap();
    quick().put(b"b", b"").unwrap();
    assert!(quick().put(b"a", b"").is_err());
    tx.rollback();
    quick().put(b"a", b"").unwrap();
    let mut tx = quick();
    tx.put(b"a", b"").unwrap();
    drop(tx);
    quick().put(b"a", b"").unwrap();
}

/// A stable transaction that locks a key which was changed since its snapshot is told at once.
#[test]
fn a_key_that_changed_is_told_when_it_is_locked() {
    for level in [Isolation::RepeatableRead, Isolation::Snapshot, Isolation::Serializable] {
        let db = scratch();
        let mut tx = db.begin(at(level).pessimistic());
        tx.get(b"other").unwrap();
        db.put(b"k", b"new").unwrap();
        assert_eq!(tx.get_for_update(b"k").unwrap_err().kind(), ErrorKind::Conflict, "{level:?}");
    }
}
