//! Many threads: invariants hold, everything ends, and nobody starves.

use super::*;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};

fn number(value: Option<halocline::Value>) -> u64 {
    value.map_or(0, |v| u64::from_le_bytes(v.to_vec().try_into().unwrap()))
}

#[test]
fn a_contended_counter_counts() {
    for options in [
        TxOptions::new(),
        at(Isolation::Snapshot),
        at(Isolation::RepeatableRead),
        TxOptions::new().pessimistic(),
    ] {
        let db = scratch();
        let (threads, each) = (8, 150u64);
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    for _ in 0..each {
                        db.update_with(&options, |tx| {
                            let n = number(tx.get(b"n")?);
                            tx.put(b"n", (n + 1).to_le_bytes())
                        })
                        .unwrap();
                    }
                });
            }
        });
        assert_eq!(number(db.get(b"n").unwrap()), threads * each, "{options:?}");
    }
}

/// Money moves between accounts of two families; every reader sees all of it, whatever is flushed and merged meanwhile.
#[test]
fn transfers_keep_the_sum() {
    let dir = tempfile::tempdir().unwrap();
    let db = halocline::Options::new().write_buffer(1 << 20).open(dir.path().join("db")).unwrap();
    let family = db.column_family("savings").unwrap();
    let accounts = 20u64;
    for i in 0..accounts {
        db.put(i.to_be_bytes(), 100u64.to_le_bytes()).unwrap();
        family.put(i.to_be_bytes(), 100u64.to_le_bytes()).unwrap();
    }
    let total = accounts * 200;
    let done = AtomicBool::new(false);
    let checks = AtomicU64::new(0);
    std::thread::scope(|scope| {
        let movers: Vec<_> = (0..4u64)
            .map(|t| {
                let (db, family) = (&db, &family);
                scope.spawn(move || {
                    let mut state = t + 1;
                    for _ in 0..400 {
                        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                        let (from, to) = ((state >> 40) % accounts, (state >> 50) % accounts);
                        db.update(|tx| {
                            let a = number(tx.get(from.to_be_bytes())?);
                            let b = number(tx.get_cf(family, to.to_be_bytes())?);
                            let amount = (state >> 33) % (a + 1);
                            tx.put(from.to_be_bytes(), (a - amount).to_le_bytes())?;
                            tx.put_cf(family, to.to_be_bytes(), (b + amount).to_le_bytes())
                        })
                        .unwrap();
                        // Back again, so that no account runs dry.
                        db.update(|tx| {
                            let b = number(tx.get_cf(family, to.to_be_bytes())?);
                            let a = number(tx.get(to.to_be_bytes())?);
                            tx.put_cf(family, to.to_be_bytes(), (b / 2).to_le_bytes())?;
                            tx.put(to.to_be_bytes(), (a + b - b / 2).to_le_bytes())
                        })
                        .unwrap();
                    }
                })
            })
            .collect();
        for flusher in [true, false] {
            let (db, family, done, checks) = (&db, &family, &done, &checks);
            scope.spawn(move || {
                while !done.load(SeqCst) {
                    if flusher {
                        db.flush().unwrap();
                    } else {
                        db.compact_range(..).unwrap();
                    }
                    let tx = db.begin(TxOptions::new());
                    let sum = |iter: halocline::TxIter<'_>| -> u64 {
                        iter.map(|i| number(Some(i.unwrap().1))).sum()
                    };
                    let seen = sum(tx.range(..)) + sum(tx.range_cf(family, ..));
                    tx.commit().unwrap();
                    assert_eq!(seen, total);
                    checks.fetch_add(1, SeqCst);
                }
            });
        }
        for mover in movers {
            mover.join().unwrap();
        }
        done.store(true, SeqCst);
    });
    assert!(checks.load(SeqCst) > 0);
}

/// A plain writer changes the key all the time: only alone can the transaction win, and it does.
#[test]
fn an_update_ends_against_any_writer() {
    let db = scratch();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut i = 0u64;
                while !done.load(SeqCst) {
                    db.put(b"k", i.to_le_bytes()).unwrap();
                    i += 1;
                }
            });
        }
        let mut attempts = 0;
        for _ in 0..3 {
            db.update(|tx| {
                attempts += 1;
                tx.get(b"k")?;
                // Long enough for a rival to come in between, unless there are none.
                for _ in 0..100 {
                    std::thread::yield_now();
                }
                tx.put(b"mine", b"")
            })
            .unwrap();
        }
        done.store(true, SeqCst);
        assert!(attempts >= 3);
    });
    assert!(db.get(b"mine").unwrap().is_some());
}

/// Alone, a transaction's own thread may still write past it, and everybody goes on afterwards.
#[test]
fn alone_is_not_stuck_with_itself() {
    let db = scratch();
    let mut attempts = 0;
    db.update(|tx| {
        attempts += 1;
        tx.get(b"k")?;
        db.put(b"k", attempts.to_string())?;
        tx.put(b"mine", b"")
    })
    .unwrap();
    assert_eq!(attempts, 9);
    std::thread::scope(|scope| {
        scope.spawn(|| db.put(b"other", b"").unwrap());
    });
    assert_eq!(db.iter().count(), 3);
}
