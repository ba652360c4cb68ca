//! Each anomaly at each level: forbidden where the level says so, and where it is allowed it is shown to happen, so that no level
//! is stricter by accident of the test.

use super::*;

/// Calls `f` for every level and everything that may happen in between.
fn everywhere(mut f: impl FnMut(Isolation, Between, &Db)) {
    for level in LEVELS {
        for between in BETWEEN {
            f(level, between, &scratch());
        }
    }
}

/// G1a, G1b: nothing of a transaction is seen before its commit, or ever if it is rolled back.
#[test]
fn dirty_reads_never_happen() {
    for level in LEVELS {
        let db = scratch();
        db.put(b"x", b"0").unwrap();
        let mut writer = db.begin(at(level));
        writer.put(b"x", b"1").unwrap();
        writer.put(b"x", b"2").unwrap();
        let reader = db.begin(at(level));
        assert_eq!(text(reader.get(b"x").unwrap()).unwrap(), "0");
        assert_eq!(reader.range(..).count(), 1);
        writer.rollback();
        assert_eq!(text(reader.get(b"x").unwrap()).unwrap(), "0");
        assert_eq!(text(db.get(b"x").unwrap()).unwrap(), "0");
    }
}

/// G0: the writes of two transactions are not interleaved.
#[test]
fn dirty_writes_never_happen() {
    everywhere(|level, between, db| {
        let (mut a, mut b) = (db.begin(at(level)), db.begin(at(level)));
        a.put(b"x", b"a").unwrap();
        b.put(b"x", b"b").unwrap();
        b.put(b"y", b"b").unwrap();
        a.put(b"y", b"a").unwrap();
        assert!(!conflicts(a.commit()));
        between.happen(db);
        // Blind writes conflict with nobody: one transaction comes behind the other as a whole.
        assert!(!conflicts(b.commit()), "{level:?}");
        assert_eq!(text(db.get(b"x").unwrap()), text(db.get(b"y").unwrap()));
    });
}

#[test]
fn reads_repeat_from_repeatable_read_on() {
    everywhere(|level, between, db| {
        db.put(b"x", b"old").unwrap();
        let tx = db.begin(at(level));
        assert_eq!(text(tx.get(b"x").unwrap()).unwrap(), "old");
        db.put(b"x", b"new").unwrap();
        between.happen(db);
        let again = text(tx.get(b"x").unwrap()).unwrap();
        let scanned = tx.range(b"x"..=b"x").next().unwrap().unwrap().1;
        let expected = if level >= Isolation::RepeatableRead { "old" } else { "new" };
        assert_eq!((again.as_str(), &*scanned), (expected, expected.as_bytes()), "{level:?} {between:?}");
        // It wrote nothing: it took place when it read.
        assert!(!conflicts(tx.commit()));
    });
}

/// P4: both read, both write what they read and one more.
#[test]
fn updates_are_lost_only_below_repeatable_read() {
    everywhere(|level, between, db| {
        db.put(b"x", b"0").unwrap();
        let mut tx = db.begin(at(level));
        tx.get(b"x").unwrap();
        db.put(b"x", b"other").unwrap();
        between.happen(db);
        tx.put(b"x", b"mine").unwrap();
        let lost = level < Isolation::RepeatableRead;
        assert_eq!(conflicts(tx.commit()), !lost, "{level:?} {between:?}");
        assert_eq!(text(db.get(b"x").unwrap()).unwrap(), if lost { "mine" } else { "other" });
    });
}

#[test]
fn what_is_got_for_update_is_never_lost() {
    everywhere(|level, between, db| {
        for key in [b"x", b"absent".as_slice()] {
            db.put(b"x", b"0").unwrap();
            let mut tx = db.begin(at(level));
            tx.get_for_update(key).unwrap();
            db.put(key, b"other").unwrap();
            between.happen(db);
            tx.put(b"elsewhere", b"mine").unwrap();
            assert!(conflicts(tx.commit()), "{level:?} {between:?}");
            db.delete(b"absent").unwrap();
        }
    });
}

/// A read before the key was got for update does not count at the lower levels: the later one does.
#[test]
fn read_committed_may_get_for_update_what_changed_before() {
    for level in [Isolation::ReadUncommitted, Isolation::ReadCommitted] {
        let db = scratch();
        db.put(b"x", b"0").unwrap();
        let mut tx = db.begin(at(level));
        tx.get(b"x").unwrap();
        tx.get_for_update(b"y").unwrap();
        db.put(b"x", b"1").unwrap();
        assert_eq!(text(tx.get_for_update(b"x").unwrap()).unwrap(), "1");
        tx.put(b"x", b"2").unwrap();
        assert!(!conflicts(tx.commit()));
    }
}

/// G2-item: each reads both and writes the one that the other does not.
#[test]
fn write_skew_is_forbidden_by_repeatable_read_and_serializable() {
    everywhere(|level, between, db| {
        db.put(b"x", b"1").unwrap();
        db.put(b"y", b"1").unwrap();
        let (mut a, mut b) = (db.begin(at(level)), db.begin(at(level)));
        for tx in [&a, &b] {
            tx.get(b"x").unwrap();
            tx.get(b"y").unwrap();
        }
        a.put(b"x", b"0").unwrap();
        b.put(b"y", b"0").unwrap();
        assert!(!conflicts(a.commit()));
        between.happen(db);
        let forbidden = matches!(level, Isolation::RepeatableRead | Isolation::Serializable);
        assert_eq!(conflicts(b.commit()), forbidden, "{level:?} {between:?}");
    });
}

/// G2: each counts the rows and adds one if there are none.
#[test]
fn phantoms_are_forbidden_by_serializable_alone() {
    everywhere(|level, between, db| {
        let (mut a, mut b) = (db.begin(at(level)), db.begin(at(level)));
        for (tx, key) in [(&mut a, b"row1"), (&mut b, b"row2")] {
            assert_eq!(tx.prefix(b"row").count(), 0);
            tx.put(key, b"").unwrap();
        }
        assert!(!conflicts(a.commit()));
        between.happen(db);
        assert_eq!(conflicts(b.commit()), level == Isolation::Serializable, "{level:?} {between:?}");
    });
}

/// The items that a range returned count as read at repeatable read, what it did not return does not.
#[test]
fn repeatable_read_covers_the_keys_that_a_range_returned() {
    for between in BETWEEN {
        for (changed, conflict) in [(b"b", true), (b"c", false)] {
            let db = scratch();
            db.put(b"a", b"").unwrap();
            db.put(b"b", b"").unwrap();
            let mut tx = db.begin(at(Isolation::RepeatableRead));
            assert_eq!(tx.range(..).count(), 2);
            tx.put(b"z", b"").unwrap();
            db.put(changed, b"new").unwrap();
            between.happen(&db);
            assert_eq!(conflicts(tx.commit()), conflict, "{changed:?} {between:?}");
        }
    }
}

/// A view over several keys is of one moment from repeatable read on, and within one call at read committed.
#[test]
fn a_call_sees_whole_commits() {
    for level in LEVELS.into_iter().skip(1) {
        let db = scratch();
        let done = &std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            let writer = &db.db;
            scope.spawn(move || {
                for i in 0..3000u32 {
                    let mut batch = halocline::WriteBatch::new();
                    batch.put(b"x", i.to_be_bytes());
                    batch.put(b"y", i.to_be_bytes());
                    writer.write(&batch).unwrap();
                }
                done.store(true, std::sync::atomic::Ordering::SeqCst);
            });
            while !done.load(std::sync::atomic::Ordering::SeqCst) {
                let tx = db.begin(at(level));
                let both = tx.multi_get(&[b"x", b"y"]).unwrap();
                assert_eq!(both[0].as_deref(), both[1].as_deref(), "{level:?}");
                let values: Vec<_> = tx.range(..).map(|item| item.unwrap().1.to_vec()).collect();
                assert!(values.windows(2).all(|w| w[0] == w[1]), "{level:?}");
            }
        });
    }
}

/// A reader between two writers sees a state that some order explains (Fekete, O'Neil and O'Neil, 2004).
#[test]
fn the_read_only_anomaly_is_forbidden() {
    let db = scratch();
    db.put(b"checking", b"0").unwrap();
    db.put(b"savings", b"0").unwrap();
    let mut withdraw = db.begin(at(Isolation::Serializable));
    withdraw.get(b"checking").unwrap();
    withdraw.get(b"savings").unwrap();
    let mut deposit = db.begin(at(Isolation::Serializable));
    deposit.get(b"savings").unwrap();
    deposit.put(b"savings", b"20").unwrap();
    assert!(!conflicts(deposit.commit()));
    let report = db.begin(at(Isolation::Serializable));
    assert_eq!(text(report.get(b"savings").unwrap()).unwrap(), "20");
    assert_eq!(text(report.get(b"checking").unwrap()).unwrap(), "0");
    assert!(!conflicts(report.commit()));
    // With the overdraft fee it did not see the deposit, which the report has seen before it.
    withdraw.put(b"checking", b"-11").unwrap();
    assert!(conflicts(withdraw.commit()));
}
