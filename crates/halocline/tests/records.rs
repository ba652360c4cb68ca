//! The cache of hot records never shows an older value than what was committed before the read, nor one of a dropped
//! column family: with tiny write buffers, so that memtables become tables and tables are merged all the time.

#![expect(clippy::disallowed_methods, reason = "tests read the environment, look at the clock and wait")]

mod common;

use common::Rng;
use halocline::{Compaction, Compression, Db, Options};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};

fn number(value: &[u8]) -> u64 {
    u64::from_le_bytes(value[..8].try_into().unwrap())
}

/// The value of the `n`th commit of a key: it says so all over.
fn value(n: u64, len: usize) -> Vec<u8> {
    n.to_le_bytes().into_iter().cycle().take(len).collect()
}

fn options() -> Options {
    Options::new().write_buffer(64 << 10).cache(1 << 20)
}

/// Each key has one writer, who counts it up. Whoever reads it gets at least what was committed when the read began
/// (for the writer: exactly that), and never less than the same thread got before.
fn counters_never_go_back(options: Options) {
    const KEYS: u64 = 64;
    let dir = tempfile::tempdir().unwrap();
    let db = options.open(dir.path().join("db")).unwrap();
    let family = db.column_family("second").unwrap();
    let committed: Vec<AtomicU64> = (0..KEYS).map(|_| AtomicU64::new(0)).collect();
    let done = AtomicBool::new(false);
    let steps = common::size("HALOCLINE_RECORD_STEPS", 12_000);
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..2u64)
            .map(|writer| {
                let (db, family, committed) = (&db, &family, &committed);
                scope.spawn(move || {
                    let mut rng = Rng::new(writer);
                    for step in 0..steps {
                        // Mostly other keys, so that these have time to become hot between their writes.
                        let filler = rng.next();
                        db.put((KEYS + filler % 5000).to_be_bytes(), [7; 100]).unwrap();
                        let key = rng.below(KEYS / 2) * 2 + writer;
                        let name = key.to_be_bytes();
                        let n = committed[key as usize].load(SeqCst);
                        if step % 4 == 0 {
                            let next = value(n + 1, 8 + (n as usize * 13) % 400);
                            if key < 32 {
                                db.put(name, next).unwrap();
                            } else {
                                family.put(name, next).unwrap();
                            }
                            committed[key as usize].store(n + 1, SeqCst);
                        }
                        let n = committed[key as usize].load(SeqCst);
                        let got = if key < 32 { db.get(name).unwrap() } else { family.get(name).unwrap() };
                        assert_eq!(got.map_or(0, |v| number(&v)), n, "a writer reads what it wrote last");
                    }
                })
            })
            .collect();
        for reader in 0..3u64 {
            let (db, family, committed, done) = (&db, &family, &committed, &done);
            scope.spawn(move || {
                let mut rng = Rng::new(100 + reader);
                let mut seen = [0; KEYS as usize];
                let mut buffer = Vec::new();
                while !done.load(SeqCst) {
                    // A hot set, and some that are not.
                    let key = if rng.once_in(4) { rng.below(KEYS) } else { rng.below(8) * 8 };
                    let name = key.to_be_bytes();
                    let before = committed[key as usize].load(SeqCst);
                    let got = match (rng.below(4), key < 32) {
                        (0, true) => db.get_into(name, &mut buffer).unwrap().then(|| buffer.clone()),
                        (1, true) => {
                            assert!(db.contains(name).unwrap() || before == 0);
                            continue;
                        }
                        (_, true) => db.get(name).unwrap().map(Vec::from),
                        (_, false) => family.get(name).unwrap().map(Vec::from),
                    };
                    let n = got.as_deref().map_or(0, number);
                    if let Some(got) = got {
                        assert_eq!(got, value(n, got.len()), "a torn value");
                        assert_eq!(got.len(), 8 + ((n as usize - 1) * 13) % 400);
                    }
                    assert!(n >= before, "key {key}: read {n} after {before} was committed");
                    assert!(n >= seen[key as usize], "key {key}: read {n} after {}", seen[key as usize]);
                    seen[key as usize] = n;
                }
            });
        }
        let results: Vec<_> = writers.into_iter().map(|writer| writer.join()).collect();
        done.store(true, SeqCst);
        results.into_iter().for_each(|result| result.unwrap());
    });
    let stats = db.stats();
    assert!(stats.flushes > 10, "{stats:?}");
    assert!(stats.cache_hits > 1000, "the cache was not used: {stats:?}");
    for key in 0..KEYS {
        let of = if key < 32 { db.get(key.to_be_bytes()) } else { family.get(key.to_be_bytes()) };
        assert_eq!(of.unwrap().map_or(0, |v| number(&v)), committed[key as usize].load(SeqCst));
    }
}

#[test]
fn counters_never_go_back_with_defaults() {
    counters_never_go_back(options());
}

#[test]
fn counters_never_go_back_uncompressed_and_tiered() {
    counters_never_go_back(options().compression(Compression::None).compaction(Compaction::Tiered));
}

/// Reads `key` until it is answered from the cache.
fn heat(db: &Db, read: impl Fn()) {
    let before = db.stats().cache_hits;
    for _ in 0..1000 {
        read();
        if db.stats().cache_hits > before + 2 {
            return;
        }
    }
    panic!("never cached: {:?}", db.stats());
}

#[test]
fn what_is_written_later_counts() {
    let dir = tempfile::tempdir().unwrap();
    let db = options().open(dir.path().join("db")).unwrap();
    for round in 0..20u64 {
        db.put(b"key", value(round, 50)).unwrap();
        db.flush().unwrap();
        heat(&db, || assert_eq!(number(&db.get(b"key").unwrap().unwrap()), round));
        // In the memtable alone, then in the tables too.
        db.put(b"key", value(1000 + round, 60)).unwrap();
        assert_eq!(number(&db.get(b"key").unwrap().unwrap()), 1000 + round);
        db.flush().unwrap();
        assert_eq!(number(&db.get(b"key").unwrap().unwrap()), 1000 + round);
        heat(&db, || assert!(db.contains(b"key").unwrap()));
        db.compact_range(..).unwrap();
        assert_eq!(number(&db.get(b"key").unwrap().unwrap()), 1000 + round);
        db.delete(b"key").unwrap();
        assert!(db.get(b"key").unwrap().is_none());
        db.flush().unwrap();
        assert!(db.get(b"key").unwrap().is_none() && !db.contains(b"key").unwrap());
        db.compact_range(..).unwrap();
        assert!(db.get(b"key").unwrap().is_none());
    }
}

#[test]
fn a_snapshot_reads_past_the_cache() {
    let dir = tempfile::tempdir().unwrap();
    let db = options().open(dir.path().join("db")).unwrap();
    db.put(b"key", b"old").unwrap();
    let snapshot = db.snapshot().unwrap();
    db.put(b"key", b"new").unwrap();
    db.flush().unwrap();
    heat(&db, || assert_eq!(db.get(b"key").unwrap().unwrap(), b"new"));
    assert_eq!(snapshot.get(b"key").unwrap().unwrap(), b"old");
    assert_eq!(db.get(b"key").unwrap().unwrap(), b"new");
}

#[test]
fn a_dropped_family_is_gone_from_the_cache() {
    let dir = tempfile::tempdir().unwrap();
    let db = options().open(dir.path().join("db")).unwrap();
    let family = db.column_family("one").unwrap();
    family.put(b"key", b"value").unwrap();
    db.put(b"key", b"default").unwrap();
    db.flush().unwrap();
    heat(&db, || assert_eq!(family.get(b"key").unwrap().unwrap(), b"value"));
    heat(&db, || assert_eq!(db.get(b"key").unwrap().unwrap(), b"default"));
    db.drop_column_family("one").unwrap();
    assert!(family.get(b"key").is_err());
    let again = db.column_family("one").unwrap();
    assert!(again.get(b"key").unwrap().is_none());
    assert_eq!(db.get(b"key").unwrap().unwrap(), b"default");
}

/// What ages out is not read from the cache either.
#[test]
fn what_a_fifo_dropped_is_gone() {
    let dir = tempfile::tempdir().unwrap();
    let options =
        options().compaction(Compaction::Fifo { max_bytes: 1 << 20 }).compression(Compression::None);
    let db = options.open(dir.path().join("db")).unwrap();
    db.put(b"key", b"value").unwrap();
    db.flush().unwrap();
    let mut rng = Rng::new(1);
    let mut gone = false;
    for n in 0..30_000u64 {
        db.put(n.to_be_bytes(), value(rng.next(), 100)).unwrap();
        gone |= db.get(b"key").unwrap().is_none();
        assert!(!gone || db.get(b"key").unwrap().is_none());
    }
    db.flush().unwrap();
    db.wait_idle().unwrap();
    assert!(db.get(b"key").unwrap().is_none());
}
