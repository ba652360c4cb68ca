//! Many threads at once, with flushes and merges in the background.
//!
//! Environment: `HALOCLINE_CONCURRENT_OPS` (writes of each thread), `HALOCLINE_CONCURRENT_ROUNDS` (of closing under load),
//! `HALOCLINE_SEED`. Schedules differ from run to run.

#![expect(clippy::disallowed_methods, reason = "a test may use the clock, the environment and sleeps")]

mod common;

use common::Rng;
use halocline::io::sim::SimVfs;
use halocline::{Compaction, Durability, ErrorKind, LogMode, Options, Snapshot, TableAccess, WriteBatch};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

fn sim(seed: u64) -> Options {
    Options::new().vfs(Arc::new(SimVfs::new(seed)))
}

/// Every tenth version of a key is its removal.
fn is_removal(version: u64) -> bool {
    version.is_multiple_of(10)
}

/// The version in a value, which is checked as a whole.
fn version_of(value: &[u8]) -> u64 {
    let version = u64::from_le_bytes(value[..8].try_into().unwrap());
    assert!(value[8..] == common::bytes(version, value.len() - 8), "a value is not whole");
    version
}

fn value_of(version: u64) -> Vec<u8> {
    let len = if version.is_multiple_of(97) { 3_000 } else { 20 + version % 150 };
    [version.to_le_bytes().to_vec(), common::bytes(version, len as usize)].concat()
}

/// A key that one thread writes, and what it knows of it.
#[derive(Default)]
struct Owned {
    attempted: AtomicU64,
    acknowledged: AtomicU64,
}

impl Owned {
    /// Fails if `found` is no version from the one that was acknowledged before the read to the one attempted by now.
    #[track_caller]
    fn check(&self, least: u64, found: Option<&[u8]>) {
        let most = self.attempted.load(SeqCst);
        match found {
            Some(value) => {
                let version = version_of(value);
                assert!(
                    (least..=most).contains(&version),
                    "version {version}, acknowledged {least}, attempted {most}"
                );
                assert!(!is_removal(version));
            }
            None => {
                assert!((least..=most).any(is_removal), "nothing, acknowledged {least}, attempted {most}")
            }
        }
    }
}

/// Keys by number, and what was read of them.
type Seen = Vec<(usize, Option<Vec<u8>>)>;

const WRITERS: usize = 4;
const KEYS: usize = 150;

fn key(i: usize) -> Vec<u8> {
    format!("key{:05}", i * 7919 % 10_007).into_bytes()
}

/// No read may miss what was acknowledged before it, nor see what was not yet written.
fn linearizable(options: Options) {
    let db = options.open("/db").unwrap();
    let second = db.column_family("second").unwrap();
    let owned: Vec<Owned> = (0..WRITERS * KEYS).map(|_| Owned::default()).collect();
    let done = AtomicBool::new(false);
    let ops = common::size("HALOCLINE_CONCURRENT_OPS", 4_000);
    let reads = AtomicU64::new(0);
    // Odd keys are in the second family.
    let in_second = |i: usize| i % 2 == 1;
    thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|w| {
                let (db, second, owned) = (&db, &second, &owned);
                scope.spawn(move || {
                    let mut rng = Rng::new(w as u64);
                    let mut batch = WriteBatch::new();
                    for _ in 0..ops {
                        batch.clear();
                        let n = if rng.once_in(3) { 1 + rng.below(20) } else { 1 };
                        let mut touched = Vec::new();
                        for _ in 0..n {
                            let i = w + WRITERS * rng.below(KEYS as u64) as usize;
                            if touched.contains(&i) {
                                continue;
                            }
                            touched.push(i);
                            let version = owned[i].attempted.fetch_add(1, SeqCst) + 1;
                            match (in_second(i), is_removal(version)) {
                                (false, false) => batch.put(key(i), value_of(version)),
                                (false, true) => batch.delete(key(i)),
                                (true, false) => batch.put_cf(second, key(i), value_of(version)),
                                (true, true) => batch.delete_cf(second, key(i)),
                            }
                        }
                        db.write(&batch).unwrap();
                        for i in touched {
                            owned[i].acknowledged.store(owned[i].attempted.load(SeqCst), SeqCst);
                        }
                    }
                })
            })
            .collect();
        for r in 0..3u64 {
            let (db, second, owned, done, reads) = (&db, &second, &owned, &done, &reads);
            scope.spawn(move || {
                let mut rng = Rng::new(1000 + r);
                let mut held: Vec<(Snapshot, Seen)> = Vec::new();
                while !done.load(SeqCst) {
                    reads.fetch_add(1, SeqCst);
                    let acknowledged =
                        || -> Vec<u64> { owned.iter().map(|o| o.acknowledged.load(SeqCst)).collect() };
                    match rng.below(40) {
                        0 => {
                            let least = acknowledged();
                            let found: BTreeMap<_, _> = if rng.once_in(2) {
                                db.iter().map(|e| e.unwrap()).map(|(k, v)| (k.to_vec(), v.to_vec())).collect()
                            } else {
                                db.iter()
                                    .rev()
                                    .map(|e| e.unwrap())
                                    .map(|(k, v)| (k.to_vec(), v.to_vec()))
                                    .collect()
                            };
                            for i in (0..owned.len()).filter(|i| !in_second(*i)) {
                                owned[i].check(least[i], found.get(&key(i)).map(Vec::as_slice));
                            }
                        }
                        1 => {
                            let least = acknowledged();
                            let snapshot = db.snapshot().unwrap();
                            let seen = (0..20).map(|_| {
                                let i = rng.below(owned.len() as u64) as usize;
                                let found = match in_second(i) {
                                    false => snapshot.get(key(i)).unwrap(),
                                    true => snapshot.get_cf(second, key(i)).unwrap(),
                                };
                                owned[i].check(least[i], found.as_deref());
                                (i, found.map(|v| v.to_vec()))
                            });
                            let seen: Seen = seen.collect();
                            held.push((snapshot, seen));
                            if held.len() > 5 {
                                held.swap_remove(rng.below(6) as usize);
                            }
                        }
                        2..=4 if !held.is_empty() => {
                            let (snapshot, seen) = &held[rng.below(held.len() as u64) as usize];
                            for (i, was) in seen {
                                let found = match in_second(*i) {
                                    false => snapshot.get(key(*i)).unwrap(),
                                    true => snapshot.get_cf(second, key(*i)).unwrap(),
                                };
                                assert!(found.as_deref() == was.as_deref(), "a snapshot changed");
                            }
                        }
                        5 => {
                            let mut cursor = second.cursor().unwrap();
                            let i = rng.below(owned.len() as u64) as usize | 1;
                            let least = owned[i].acknowledged.load(SeqCst);
                            // The cursor's view is older than `least`.
                            drop(std::mem::replace(&mut cursor, second.cursor().unwrap()));
                            cursor.seek(key(i)).unwrap();
                            let found = cursor.valid() && cursor.key() == key(i);
                            let value = found.then(|| cursor.value().unwrap().to_vec());
                            owned[i].check(least, value.as_deref());
                        }
                        6..=8 => {
                            let some: Vec<usize> =
                                (0..20).map(|_| rng.below(owned.len() as u64 / 2) as usize * 2).collect();
                            let least: Vec<u64> =
                                some.iter().map(|i| owned[*i].acknowledged.load(SeqCst)).collect();
                            let keys: Vec<_> = some.iter().map(|i| key(*i)).collect();
                            let values = db.multi_get(&keys).unwrap();
                            for ((i, least), value) in some.iter().zip(least).zip(values) {
                                owned[*i].check(least, value.as_deref());
                            }
                        }
                        _ => {
                            let i = rng.below(owned.len() as u64) as usize;
                            let least = owned[i].acknowledged.load(SeqCst);
                            let found = if in_second(i) { second.get(key(i)) } else { db.get(key(i)) };
                            owned[i].check(least, found.unwrap().as_deref());
                        }
                    }
                }
            });
        }
        scope.spawn(|| {
            let mut rng = Rng::new(77);
            while !done.load(SeqCst) {
                match rng.below(4) {
                    0 => db.flush().unwrap(),
                    1 => db.compact_range(key(rng.below(300) as usize)..).unwrap(),
                    2 => db.wait_idle().unwrap(),
                    _ => db.sync().unwrap(),
                }
                thread::sleep(Duration::from_millis(rng.below(30)));
            }
        });
        let failed = writers.into_iter().map(|writer| writer.join()).filter(Result::is_err).count();
        done.store(true, SeqCst);
        assert_eq!(failed, 0);
    });
    for (i, owned) in owned.iter().enumerate() {
        let found = if in_second(i) { second.get(key(i)) } else { db.get(key(i)) }.unwrap();
        let last = owned.acknowledged.load(SeqCst);
        assert_eq!(last, owned.attempted.load(SeqCst));
        assert_eq!(found.map(|v| version_of(&v)), (last > 0 && !is_removal(last)).then_some(last));
    }
    println!("{} rounds of reads, {:?}", reads.load(SeqCst), db.stats());
}

#[test]
fn no_read_misses_what_was_acknowledged_nor_sees_an_older_version() {
    linearizable(sim(1).write_buffer(128 << 10).log_mode(LogMode::Mapped).compaction_threads(2));
    linearizable(
        sim(2)
            .write_buffer(64 << 10)
            .log_mode(LogMode::Written)
            .compaction(Compaction::Leveled)
            .cache(64 << 10),
    );
    linearizable(
        sim(3).write_buffer(64 << 10).durability(Durability::None).compaction(Compaction::Tiered).cache(0),
    );
    linearizable(
        sim(4)
            .write_buffer(256 << 10)
            .durability(Durability::Sync)
            .table_access(TableAccess::Pread)
            .compaction_threads(3),
    );
}

#[test]
fn snapshots_and_iterators_see_batches_whole() {
    const ACCOUNTS: u64 = 24;
    let db = sim(5).write_buffer(64 << 10).open("/db").unwrap();
    let second = db.column_family("second").unwrap();
    let account = |w: u64, i: u64| format!("account {w} {i:03}").into_bytes();
    let balance = |v: &[u8]| i64::from_le_bytes(v[..8].try_into().unwrap());
    // Of each writer, accounts in the default family sum up to 0, and so do those of both families.
    let done = AtomicBool::new(false);
    let ops = common::size("HALOCLINE_CONCURRENT_OPS", 4_000);
    thread::scope(|scope| {
        let writers: Vec<_> = (0..3u64)
            .map(|w| {
                let (db, second) = (&db, &second);
                scope.spawn(move || {
                    let mut rng = Rng::new(w);
                    let mut balances = [[0i64; ACCOUNTS as usize]; 2];
                    let mut batch = WriteBatch::new();
                    for _ in 0..ops {
                        batch.clear();
                        for (family, balances) in balances.iter_mut().enumerate() {
                            let (from, to) = (rng.below(ACCOUNTS), rng.below(ACCOUNTS));
                            let amount = rng.below(100) as i64;
                            balances[from as usize] -= amount;
                            balances[to as usize] += amount;
                            for i in [from, to] {
                                let balance = balances[i as usize];
                                let value =
                                    [balance.to_le_bytes().to_vec(), vec![7; rng.below(200) as usize]]
                                        .concat();
                                match (family, balance == 0) {
                                    (0, true) => batch.delete(account(w, i)),
                                    (0, false) => batch.put(account(w, i), value),
                                    (_, true) => batch.delete_cf(second, account(w, i)),
                                    (_, false) => batch.put_cf(second, account(w, i), value),
                                }
                            }
                        }
                        // The families differ by this much at every moment.
                        balances[0][0] += 1;
                        batch.put(account(w, 0), balances[0][0].to_le_bytes());
                        balances[1][0] -= 1;
                        batch.put_cf(second, account(w, 0), balances[1][0].to_le_bytes());
                        db.write(&batch).unwrap();
                    }
                })
            })
            .collect();
        for r in 0..2u64 {
            let (db, second, done) = (&db, &second, &done);
            scope.spawn(move || {
                let mut rng = Rng::new(50 + r);
                let mut last = [0; 3];
                while !done.load(SeqCst) {
                    let w = rng.below(3);
                    let prefix = format!("account {w} ").into_bytes();
                    let end = format!("account {w}!").into_bytes();
                    let snapshot = db.snapshot().unwrap();
                    let sum = |iter: halocline::Iter| iter.map(|e| balance(&e.unwrap().1)).sum::<i64>();
                    let first = sum(snapshot.range(&prefix[..]..&end[..]));
                    let other = sum(snapshot.range_cf(second, &prefix[..]..&end[..]));
                    assert_eq!(first, -other, "a snapshot sees a part of a batch");
                    assert!(first >= last[w as usize], "a newer snapshot sees an older state");
                    last[w as usize] = first;
                    let by_gets: i64 = (0..ACCOUNTS)
                        .filter_map(|i| snapshot.get(account(w, i)).unwrap())
                        .map(|v| balance(&v))
                        .sum();
                    assert_eq!(by_gets, first, "gets and iterators of a snapshot differ");
                    // An iterator without a snapshot: one family, as of its making, also if it takes its time.
                    let mut iter = db.prefix(&prefix);
                    let mut total = 0;
                    while let Some(item) = if rng.once_in(2) { iter.next() } else { iter.next_back() } {
                        total += balance(&item.unwrap().1);
                        if rng.once_in(10) {
                            thread::yield_now();
                        }
                    }
                    assert!(total >= first, "an iterator sees an older state than a snapshot before it");
                }
            });
        }
        scope.spawn(|| {
            while !done.load(SeqCst) {
                db.flush().unwrap();
                thread::sleep(Duration::from_millis(5));
            }
        });
        let failed = writers.into_iter().map(|writer| writer.join()).filter(Result::is_err).count();
        done.store(true, SeqCst);
        assert_eq!(failed, 0);
    });
}

#[test]
fn families_come_and_go_under_load() {
    let disk = SimVfs::new(6);
    let options = Options::new().vfs(Arc::new(disk.clone())).write_buffer(64 << 10);
    let db = options.clone().open("/db").unwrap();
    let rounds = common::size("HALOCLINE_CONCURRENT_OPS", 4_000) / 100;
    thread::scope(|scope| {
        for t in 0..4u64 {
            let db = &db;
            scope.spawn(move || {
                let mut rng = Rng::new(t);
                for round in 0..rounds {
                    let name = format!("own {t} {}", round % 3);
                    let own = db.column_family(&name).unwrap();
                    assert_eq!(own.iter().count(), 0, "a new family is not empty");
                    let mut batch = WriteBatch::new();
                    for i in 0..30u64 {
                        batch.put_cf(&own, i.to_be_bytes(), common::bytes(round, 300));
                        batch.put(format!("{t} {i}"), round.to_le_bytes());
                    }
                    db.write(&batch).unwrap();
                    let iter = own.iter();
                    if rng.once_in(3) {
                        db.flush().unwrap();
                    }
                    assert_eq!(own.iter().count(), 30);
                    // All threads make and drop this one: it may vanish at any moment.
                    let shared = db.column_family("shared").unwrap();
                    for i in 0..20u64 {
                        match shared.put(i.to_le_bytes(), b"x").and_then(|()| shared.get(i.to_le_bytes())) {
                            Ok(value) => assert!(value.is_none_or(|v| v == b"x")),
                            Err(e) => assert_eq!(e.kind(), ErrorKind::Missing, "{e}"),
                        }
                    }
                    if rng.once_in(2) {
                        db.drop_column_family("shared").unwrap();
                    }
                    assert!(db.drop_column_family(&name).unwrap());
                    assert_eq!(own.get(b"a").unwrap_err().kind(), ErrorKind::Missing);
                    assert_eq!(
                        db.write(&batch).unwrap_err().kind(),
                        ErrorKind::Missing,
                        "a batch for a dropped family"
                    );
                    assert_eq!(iter.count(), 30, "an iterator from before the drop");
                }
            });
        }
        scope.spawn(|| (0..rounds / 3).for_each(|_| db.compact_range(..).unwrap()));
    });
    let shared = db.find_column_family("shared").unwrap().is_some();
    drop(db);
    let db = options.clone().open("/db").unwrap();
    let expected: &[&str] = if shared { &["default", "shared"] } else { &["default"] };
    assert_eq!(db.column_families().unwrap(), expected);
    assert_eq!(db.iter().count(), 120);
    db.close().unwrap();
    assert!(options.check("/db").unwrap().is_sound());
}

#[test]
fn a_hot_key_takes_bounded_memory_and_disk() {
    let total: u64 = if cfg!(debug_assertions) { 200_000 } else { 1_000_000 };
    let db = sim(7).write_buffer(1 << 20).cache(0).open("/db").unwrap();
    thread::scope(|scope| {
        for t in 0..4u64 {
            let db = &db;
            scope.spawn(move || {
                for i in 0..total / 4 {
                    db.put(if i % 2 == 0 { b"hot".to_vec() } else { vec![t as u8] }, i.to_le_bytes())
                        .unwrap();
                    if i % 10_000 == 0 {
                        let stats = db.stats();
                        assert!(stats.memory.memtables + stats.memory.segments < 24 << 20, "{stats:?}");
                        assert!(stats.disk_bytes < 24 << 20, "{stats:?}");
                        assert!(stats.sealed_memtables <= 4, "{stats:?}");
                    }
                }
            });
        }
    });
    db.compact_range(..).unwrap();
    let stats = db.stats();
    assert_eq!(stats.levels.iter().map(|level| level.entries).sum::<u64>(), 5, "{stats:?}");
    assert_eq!(db.iter().count(), 5);
}

#[test]
fn what_was_taken_from_a_database_outlives_it() {
    for real in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let (options, path) = if real {
            (Options::new(), dir.path().join("db"))
        } else {
            (sim(8), std::path::PathBuf::from("/db"))
        };
        for access in [TableAccess::Mapped, TableAccess::Pread] {
            let options = options.clone().write_buffer(64 << 10).table_access(access);
            let db = options.clone().open(&path).unwrap();
            let second = db.column_family("second").unwrap();
            let put = |from: u64, version: u64| {
                for i in from..from + 300 {
                    db.put(i.to_be_bytes(), common::bytes(i + version, 400)).unwrap();
                }
            };
            put(0, 1000);
            db.flush().unwrap();
            put(200, 2000);
            let expected = |i: u64| common::bytes(i + if i < 200 { 1000 } else { 2000 }, 400);
            let snapshot = db.snapshot().unwrap();
            let mut iter = db.iter();
            let mut rev = db.iter().rev();
            let mut cursor = db.cursor().unwrap();
            let in_table = db.get(5u64.to_be_bytes()).unwrap().unwrap();
            let in_log = db.get(450u64.to_be_bytes()).unwrap().unwrap();
            assert!(iter.next().unwrap().unwrap().1 == expected(0));
            put(0, 3000);
            db.compact_range(..).unwrap();
            put(0, 4000);
            drop(db);
            // A column family keeps it open.
            let refused = options.clone().open(&path).map(|_| ()).unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::Locked);
            second.put(b"k", b"v").unwrap();
            drop(second);
            // Another handle can have it while those live, and change it.
            let other = options.clone().open(&path).unwrap();
            for i in 0..500u64 {
                other.delete(i.to_be_bytes()).unwrap();
            }
            other.compact_range(..).unwrap();
            other.close().unwrap();
            assert!(in_table == expected(5) && in_log == expected(450));
            for i in 1..500u64 {
                assert!(iter.next().unwrap().unwrap().1 == expected(i));
            }
            assert!(iter.next().is_none());
            assert!(rev.next().unwrap().unwrap().1 == expected(499));
            cursor.seek(77u64.to_be_bytes()).unwrap();
            assert!(cursor.value().unwrap() == expected(77));
            for i in (0..500u64).step_by(7) {
                assert!(
                    snapshot.get(i.to_be_bytes()).unwrap().unwrap() == expected(i),
                    "a snapshot of a closed database"
                );
            }
            assert_eq!(snapshot.iter().count(), 500);
            drop((snapshot, iter, rev, cursor));
            let last = options.open(&path).unwrap();
            assert_eq!(last.iter().count(), 0);
        }
    }
}

#[test]
fn closing_while_others_write_loses_nothing_that_was_acknowledged() {
    let rounds = common::size("HALOCLINE_CONCURRENT_ROUNDS", 60);
    let seed = common::size("HALOCLINE_SEED", 1);
    for round in 0..rounds {
        let mut rng = Rng::new(seed * 1000 + round);
        let disk = SimVfs::new(round);
        let durability =
            rng.pick(&[Durability::Process, Durability::Process, Durability::Sync, Durability::None]);
        let options = Options::new()
            .vfs(Arc::new(disk.clone()))
            .write_buffer(64 << 10)
            .durability(durability)
            .log_mode(rng.pick(&[LogMode::Mapped, LogMode::Written]));
        let db = options.clone().open("/db").unwrap();
        let wait = Duration::from_micros(rng.below(30_000));
        let acknowledged: Vec<u64> = thread::scope(|scope| {
            let writers: Vec<_> = (0..6u64)
                .map(|t| {
                    let db = db.clone();
                    scope.spawn(move || {
                        for i in 0.. {
                            let mut batch = WriteBatch::new();
                            batch.put(format!("{t} {i}"), common::bytes(i, 200));
                            batch.put(format!("{t} last"), i.to_le_bytes());
                            match db.write(&batch) {
                                Ok(()) => {}
                                Err(e) => {
                                    assert_eq!(e.kind(), ErrorKind::Closed, "{e}");
                                    return i;
                                }
                            }
                        }
                        unreachable!("writing goes on until the database is closed")
                    })
                })
                .collect();
            if round % 2 == 0 {
                let db = db.clone();
                scope.spawn(move || {
                    while let Ok(()) = db.compact_range(..) {}
                    while let Ok(()) = db.sync() {}
                });
            }
            thread::sleep(wait);
            let closed = db.close();
            let start = Instant::now();
            let ends = writers.into_iter().map(|writer| writer.join().unwrap()).collect();
            assert!(start.elapsed() < Duration::from_secs(10));
            closed.unwrap();
            ends
        });
        let report = options.clone().check("/db").unwrap();
        assert!(report.is_sound(), "round {round} ({options:?}): {report:?}");
        let db = options.clone().open("/db").unwrap();
        let mut count = 0;
        for (t, n) in acknowledged.iter().enumerate() {
            // The commit that was refused may be there or not.
            let last =
                db.get(format!("{t} last")).unwrap().map(|v| u64::from_le_bytes((*v).try_into().unwrap()));
            assert!(
                last.map_or(0, |last| last + 1) >= *n,
                "round {round} ({options:?}): thread {t} wrote {n} commits, and {last:?} is the last one"
            );
            for i in 0..*n {
                let found = db.get(format!("{t} {i}")).unwrap();
                assert!(
                    found.is_some_and(|v| v == common::bytes(i, 200)),
                    "round {round}: thread {t}, commit {i} of {n}"
                );
            }
            count += n;
        }
        assert!(db.iter().count() as u64 >= count);
    }
}
