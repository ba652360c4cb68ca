//! Thread schedules explored by shuttle, with nodes of four slots so that a few keys split nodes at every level.
//! Run with `RUSTFLAGS="--cfg shuttle" cargo test -p halocline --lib --target-dir target-shuttle memtable`.

use super::testing::{BASE, Log};
use crate::entry::Kind;
use crate::iter::{Source, Visibility};
use crate::sync::thread;
use std::sync::Arc;

fn explore(test: impl Fn() + Send + Sync + Clone + 'static) {
    shuttle::check_random(test.clone(), 500);
    shuttle::check_pct(test, 500, 3);
}

/// A log with entries written, none inserted: `keys` in this order, with their index as the value.
fn written(keys: &[u8]) -> (Arc<Log>, Vec<u32>) {
    let log = Log::new(4096);
    let offsets = (0u8..).zip(keys).map(|(n, key)| log.write(Kind::Put, &[b'k', *key], &[n])).collect();
    (Arc::new(log), offsets)
}

fn walk(log: &Log, before: u64, forward: bool) -> Vec<u8> {
    let mut keys = vec![];
    let mut cursor = log.table.cursor(Visibility::Before(before));
    if forward {
        cursor.seek_first().unwrap()
    } else {
        cursor.seek_last().unwrap()
    }
    while cursor.valid() {
        keys.push(cursor.key()[1]);
        if forward { cursor.next().unwrap() } else { cursor.prev().unwrap() }
    }
    if !forward {
        keys.reverse();
    }
    assert!(keys.is_sorted_by(|a, b| a < b), "{keys:?}");
    keys
}

/// `keys` are inserted by three threads, the `first` ones before; walks and gets meanwhile must show these, and
/// nothing else below the address where the others begin.
fn inserts_against_readers(keys: &'static [u8], first: usize, batches: bool) {
    explore(move || {
        let (log, offsets) = written(keys);
        offsets[..first].iter().for_each(|offset| log.table.insert(*offset));
        let rest = &offsets[first..];
        let mut threads: Vec<_> = rest
            .chunks(rest.len().div_ceil(3))
            .map(|part| (log.clone(), part.to_vec()))
            .map(|(log, part)| {
                thread::spawn(move || {
                    if batches {
                        log.table.insert_batch(&part);
                    } else {
                        part.iter().for_each(|offset| log.table.insert(*offset));
                    }
                })
            })
            .collect();
        let reader = log.clone();
        let begin = BASE + u64::from(offsets[first]);
        threads.push(thread::spawn(move || {
            let mut known = keys[..first].to_vec();
            known.sort();
            assert_eq!(walk(&reader, begin, true), known);
            assert_eq!(walk(&reader, begin, false), known);
            for (n, key) in (0u8..).zip(&keys[..first]) {
                assert_eq!(reader.get(&[b'k', *key], u64::MAX), Some(vec![n]));
            }
        }));
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        let mut all = keys.to_vec();
        all.sort();
        assert_eq!(walk(&log, u64::MAX, true), all);
        assert_eq!(walk(&log, u64::MAX, false), all);
        assert_eq!(log.table.keys(), keys.len() as u64);
    });
}

#[test]
fn splits_against_readers() {
    inserts_against_readers(b"dhlptxbfj\0nrvzaceg", 5, false);
}

#[test]
fn ascending_splits_against_readers() {
    inserts_against_readers(b"abcdefghijklmnopqrstuvwxyz", 8, false);
}

#[test]
fn batches_against_readers() {
    inserts_against_readers(b"dhlptxbfj\0nrvzaceg", 5, true);
}

#[test]
fn versions_against_readers() {
    explore(|| {
        let (log, offsets) = written(b"aaaaaaaab");
        log.table.insert(offsets[3]);
        let threads: Vec<_> = [[0, 6], [5, 1], [2, 7]]
            .map(|part| (log.clone(), part.map(|n| offsets[n])))
            .into_iter()
            .map(|(log, part)| {
                thread::spawn(move || part.iter().for_each(|offset| log.table.insert(*offset)))
            })
            .collect();
        // What was there stays, whatever is put in front of it and behind it.
        let before = BASE + u64::from(offsets[4]);
        for _ in 0..3 {
            assert_eq!(log.get(b"ka", before), Some(vec![3]));
            assert!(log.get(b"ka", u64::MAX).unwrap()[0] >= 3);
        }
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        let mut cursor = log.table.cursor(Visibility::All);
        cursor.seek_first().unwrap();
        for n in [7, 6, 5, 3, 2, 1, 0] {
            assert_eq!(cursor.value().unwrap(), [n]);
            cursor.next().unwrap();
        }
        assert!(!cursor.valid());
        assert_eq!((log.table.keys(), log.table.versions()), (1, 7));
    });
}
