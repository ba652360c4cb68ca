//! The memtable against a model, and under many threads.

use super::testing::{BASE, Log};
use crate::entry::Kind;
use crate::iter::{Source, Visibility};
use proptest::prelude::*;
use std::collections::BTreeMap;

type Model = BTreeMap<Vec<u8>, BTreeMap<u32, Vec<u8>>>;

/// What the model shows before `limit`: key, version, value.
fn shown(model: &Model, limit: u64) -> Vec<(Vec<u8>, u64, Vec<u8>)> {
    let newest = |versions: &BTreeMap<u32, Vec<u8>>| {
        let (offset, value) = versions.iter().rev().find(|(offset, _)| BASE + u64::from(**offset) < limit)?;
        Some((BASE + u64::from(*offset), value.clone()))
    };
    model.iter().filter_map(|(k, v)| newest(v).map(|(version, value)| (k.clone(), version, value))).collect()
}

fn here(cursor: &mut impl Source) -> Option<(Vec<u8>, u64, Vec<u8>)> {
    if !cursor.valid() {
        return None;
    }
    Some((cursor.key().to_vec(), cursor.version(), cursor.value().unwrap().to_vec()))
}

/// Compares all that can be read of the table with the model, as of `limit`.
fn compare(log: &Log, model: &Model, limit: u64, probes: &[Vec<u8>]) {
    let want = shown(model, limit);
    let mut cursor = log.table.cursor(Visibility::Before(limit));
    cursor.seek_first().unwrap();
    for entry in &want {
        assert_eq!(here(&mut cursor).as_ref(), Some(entry));
        cursor.next().unwrap();
    }
    assert!(!cursor.valid());
    cursor.seek_last().unwrap();
    for entry in want.iter().rev() {
        assert_eq!(here(&mut cursor).as_ref(), Some(entry));
        cursor.prev().unwrap();
    }
    assert!(!cursor.valid());
    for probe in probes {
        let hit = want.iter().find(|(key, ..)| key == probe);
        assert_eq!(log.get(probe, limit), hit.map(|(.., value)| value.clone()));
        let at = want.partition_point(|(key, ..)| key < probe);
        cursor.seek(probe).unwrap();
        assert_eq!(here(&mut cursor).as_ref(), want.get(at));
        let end = want.partition_point(|(key, ..)| key <= probe);
        cursor.seek_for_prev(probe).unwrap();
        assert_eq!(here(&mut cursor).as_ref(), end.checked_sub(1).map(|at| &want[at]));
    }
    let mut found = vec![None; probes.len()];
    log.table.get_batch(probes, limit, &mut found);
    for (probe, found) in probes.iter().zip(found) {
        assert_eq!(found, log.table.get(probe, limit));
    }
}

fn compare_all_versions(log: &Log, model: &Model) {
    let mut cursor = log.table.cursor(Visibility::All);
    cursor.seek_first().unwrap();
    for (key, versions) in model {
        for (offset, value) in versions.iter().rev() {
            assert_eq!(here(&mut cursor), Some((key.clone(), BASE + u64::from(*offset), value.clone())));
            cursor.next().unwrap();
        }
    }
    assert!(!cursor.valid());
    assert_eq!(log.table.keys(), model.len() as u64);
    assert_eq!(log.table.versions(), model.values().map(|versions| versions.len() as u64).sum::<u64>());
}

/// Keys that are hard on prefixes and heads.
fn key() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![Just(0u8), Just(1), Just(0xFF), Just(b'a'), any::<u8>()];
    prop_oneof![
        4 => prop::collection::vec(byte.clone(), 0..12),
        4 => (0..3000u32).prop_map(|n| format!("{n:016}").into_bytes()),
        2 => (0..5usize, prop::collection::vec(byte.clone(), 0..4)).prop_map(|(n, tail)| {
            [vec![b'p'; [7, 8, 9, 240, 40][n]], tail].concat()
        }),
        2 => (0..300u32).prop_map(|n| [&[b'x'; 240][..], format!("{n:016}").as_bytes()].concat()),
        1 => (0..40usize).prop_map(|n| vec![0; n]),
        1 => any::<[u8; 16]>().prop_map(|bytes| bytes.to_vec()),
    ]
}

#[derive(Clone, Debug)]
enum Order {
    AsWritten,
    Shuffled(u64),
    Batches(usize),
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn like_the_model(
        mut keys in prop::collection::vec(key(), 0..1500),
        sorted in prop_oneof![3 => Just(0), 1 => Just(1), 1 => Just(2)],
        order in prop_oneof![
            Just(Order::AsWritten),
            any::<u64>().prop_map(Order::Shuffled),
            (1..400usize).prop_map(Order::Batches),
        ],
        probes in prop::collection::vec(key(), 0..60),
        cut in 0.0..1.0f64,
    ) {
        match sorted {
            1 => keys.sort(),
            2 => keys.sort_by(|a, b| b.cmp(a)),
            _ => {}
        }
        let log = Log::new(2 << 20);
        let mut model = Model::new();
        let mut offsets = Vec::new();
        for (n, key) in keys.iter().enumerate() {
            let value = n.to_string().into_bytes();
            let offset = log.write(Kind::Put, key, &value);
            model.entry(key.clone()).or_default().insert(offset, value);
            offsets.push(offset);
        }
        let middle = offsets.get((offsets.len() as f64 * cut) as usize).map_or(BASE, |at| BASE + u64::from(*at));
        match order {
            Order::AsWritten => offsets.iter().for_each(|offset| log.table.insert(*offset)),
            Order::Shuffled(seed) => {
                let mut seed = seed | 1;
                for at in (1..offsets.len()).rev() {
                    seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    offsets.swap(at, (seed >> 33) as usize % (at + 1));
                }
                offsets.iter().for_each(|offset| log.table.insert(*offset));
            }
            Order::Batches(len) => offsets.chunks(len).for_each(|batch| log.table.insert_batch(batch)),
        }
        let mut probes = probes;
        probes.extend(keys.iter().step_by(7).cloned());
        compare(&log, &model, u64::MAX, &probes);
        compare(&log, &model, middle, &probes);
        compare_all_versions(&log, &model);
    }
}

fn decimal(n: u64) -> Vec<u8> {
    format!("{n:016}").into_bytes()
}

fn mixed(n: u64) -> u64 {
    let n = (n ^ n >> 31).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    n ^ n >> 29
}

#[test]
fn an_empty_memtable_is_small_and_shows_nothing() {
    let log = Log::new(4096);
    assert!(log.table.is_empty() && log.table.keys() == 0 && log.table.versions() == 0);
    assert!(log.table.used_bytes() < 4096, "{}", log.table.used_bytes());
    compare(&log, &Model::new(), u64::MAX, &[vec![], vec![0], vec![0xFF; 9]]);
    log.put(b"", b"empty key");
    assert!(!log.table.is_empty());
    assert_eq!(log.get(b"", u64::MAX).unwrap(), b"empty key");
    assert_eq!(log.get(b"\0", u64::MAX), None);
}

#[test]
fn long_keys_and_deep_trees() {
    let log = Log::new(80 << 20);
    let mut model = Model::new();
    let mut probes = Vec::new();
    // Keys of up to 64 KB whose first difference is far in, beyond what a node can skip, too.
    for n in 0..600u64 {
        let len = [0, 1, 8, 200, 60_000, 65_534, 65_535, 65_536, 65_541][(mixed(n) % 9) as usize];
        let mut key = vec![b'k'; len];
        key.extend(decimal(n));
        if n % 3 == 0 && len > 0 {
            key[len / 2] = n as u8;
        }
        let value = n.to_le_bytes().to_vec();
        let offset = log.put(&key, &value);
        model.entry(key.clone()).or_default().insert(offset, value);
        probes.push(key);
    }
    // Enough of short ones that inner nodes split as well: three levels.
    for n in 0..200_000 {
        let key = decimal(mixed(n));
        let offset = log.put(&key, b"v");
        model.entry(key).or_default().insert(offset, b"v".to_vec());
    }
    probes.truncate(40);
    compare(&log, &model, u64::MAX, &probes);
    compare_all_versions(&log, &model);
}

#[test]
fn runs_leave_full_leaves() {
    let per_entry = |keys: &mut dyn Iterator<Item = u64>| {
        let log = Log::new(16 << 20);
        let mut n = 0;
        for key in keys {
            log.put(&decimal(key), b"v");
            n += 1;
        }
        log.table.used_bytes() as f64 / f64::from(n)
    };
    let up = per_entry(&mut (0..100_000));
    let down = per_entry(&mut (0..100_000).rev());
    let interleaved = per_entry(&mut (0..100_000).map(|n| n % 4 * 1_000_000 + n / 4));
    let random = per_entry(&mut (0..100_000).map(mixed));
    assert!(up < 18.0 && down < 18.0 && interleaved < 20.0, "{up} {down} {interleaved}");
    assert!(random < 27.0, "{random}");
}

#[test]
fn versions_arrive_in_any_order() {
    let log = Log::new(1 << 16);
    let offsets: Vec<u32> = (0..50u8).map(|n| log.write(Kind::Put, b"key", &[n])).collect();
    for at in [10, 40, 0, 49, 20, 30, 15, 48, 1] {
        log.table.insert(offsets[at]);
    }
    let shown = |before: usize| log.get(b"key", BASE + u64::from(offsets[before])).map(|value| value[0]);
    assert_eq!(log.get(b"key", u64::MAX), Some(vec![49]));
    assert_eq!(
        [0, 1, 2, 10, 11, 16, 31, 41, 49].map(shown),
        [None, Some(0), Some(1), Some(1), Some(10), Some(15), Some(30), Some(40), Some(48)]
    );
    assert_eq!((log.table.keys(), log.table.versions()), (1, 9));
    assert_eq!(log.table.get(b"key", 3), None);
    let delete = log.write(Kind::Delete, b"key", b"");
    log.table.insert(delete);
    let found = log.table.get(b"key", u64::MAX).unwrap();
    assert_eq!((found.kind, found.version, found.len), (Kind::Delete, BASE + u64::from(delete), 0));
}

#[test]
fn a_cursor_does_not_see_what_comes_later() {
    let log = Log::new(8 << 20);
    let keys: Vec<_> = (0..2000).map(|n| decimal(mixed(n))).collect();
    let mut last = 0;
    for key in &keys[..1000] {
        last = log.put(key, b"old");
    }
    let mut want = keys[..1000].to_vec();
    want.sort();
    let mut cursor = log.table.cursor(Visibility::Before(BASE + u64::from(last) + 1));
    cursor.seek_first().unwrap();
    for (n, key) in want.iter().enumerate() {
        assert_eq!(
            here(&mut cursor).map(|(key, _, value)| (key, value)),
            Some((key.clone(), b"old".to_vec()))
        );
        cursor.next().unwrap();
        // Overwrites and new keys, in front of the cursor and behind it.
        log.put(&keys[1000 + n], b"new");
        log.put(&keys[n], b"newer");
    }
    assert!(!cursor.valid());
    cursor.seek_last().unwrap();
    for key in want.iter().rev() {
        assert_eq!(
            here(&mut cursor).map(|(key, _, value)| (key, value)),
            Some((key.clone(), b"old".to_vec()))
        );
        cursor.prev().unwrap();
    }
    assert!(!cursor.valid());
    // Turning around anywhere, across leaves as well.
    cursor.seek(&want[500]).unwrap();
    for (steps, forward) in [(3, true), (5, false), (200, true), (300, false), (1, true)] {
        for _ in 0..steps {
            if forward { cursor.next().unwrap() } else { cursor.prev().unwrap() }
        }
    }
    assert_eq!(cursor.key(), &want[500 + 3 - 5 + 200 - 300 + 1][..]);
}

#[derive(Clone, Copy, PartialEq)]
enum Load {
    Random,
    /// Each thread ascends in a range of its own.
    Ranges,
    /// All ascend together.
    Shared,
    /// 50 keys, written over and over.
    Hot,
}

/// Many threads insert, singly and in batches, while others read what is known to be there.
fn stress(load: Load) {
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
    const THREADS: u64 = 8;
    const EACH: u64 = 6000;
    let log = Log::new(THREADS as usize * EACH as usize * 64);
    let key = |thread: u64, n: u64| match load {
        Load::Random => decimal(mixed(n * THREADS + thread)),
        Load::Ranges => decimal(thread * 1_000_000 + n),
        Load::Shared => decimal(n * THREADS + thread),
        Load::Hot => decimal(mixed(n * THREADS + thread) % 50),
    };
    // How many of a thread's keys are in, so that a reader may ask for them.
    let done: [AtomicU64; THREADS as usize] = Default::default();
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (log, done) = (&log, &done[thread as usize]);
            scope.spawn(move || {
                let mut n = 0;
                while n < EACH {
                    let batch = if mixed(thread * EACH + n).is_multiple_of(3) { 50.min(EACH - n) } else { 1 };
                    let offsets: Vec<u32> = (n..n + batch)
                        .map(|n| log.write(Kind::Put, &key(thread, n), &(n * THREADS + thread).to_le_bytes()))
                        .collect();
                    match &offsets[..] {
                        [one] => log.table.insert(*one),
                        many => log.table.insert_batch(many),
                    }
                    n += batch;
                    done.store(n, Ordering::Release);
                    // Our own write is visible at once.
                    assert!(log.table.get(&key(thread, n - 1), u64::MAX).is_some());
                }
            });
        }
        for reader in 0..3u64 {
            let (log, done, over) = (&log, &done, &over);
            scope.spawn(move || {
                let mut round = reader;
                while !over.load(Ordering::Acquire) {
                    round = mixed(round + 1);
                    let thread = round % THREADS;
                    let known = done[thread as usize].load(Ordering::Acquire);
                    if known == 0 {
                        std::thread::yield_now();
                        continue;
                    }
                    let probe = key(thread, (round >> 8) % known);
                    let found = log.table.get(&probe, u64::MAX).expect("an inserted key is lost");
                    assert!(found.version >= BASE && found.len == 8);
                    // A walk from there is sorted; with distinct keys it meets all that were known before it began.
                    let known: Vec<u64> = done.iter().map(|n| n.load(Ordering::Acquire)).collect();
                    let mut cursor = log.table.cursor(Visibility::Before(u64::MAX));
                    cursor.seek(&probe).unwrap();
                    assert!(cursor.valid() && cursor.key() == probe);
                    let mut last = probe.clone();
                    let mut met = vec![0; THREADS as usize];
                    let steps = if round & 0x70 == 0 { usize::MAX } else { 30 };
                    for _ in 0..steps {
                        let id = u64::from_le_bytes(cursor.value().unwrap().try_into().unwrap());
                        let (thread, n) = (id % THREADS, id / THREADS);
                        assert_eq!(cursor.key(), key(thread, n));
                        met[thread as usize] += u64::from(n < known[thread as usize]);
                        cursor.next().unwrap();
                        if !cursor.valid() {
                            break;
                        }
                        assert!(cursor.key() > &last[..], "out of order, or repeated");
                        last = cursor.key().to_vec();
                    }
                    if !cursor.valid() && load != Load::Hot {
                        for thread in 0..THREADS {
                            let want =
                                (0..known[thread as usize]).filter(|n| key(thread, *n) >= probe).count();
                            assert_eq!(met[thread as usize], want as u64, "a walk missed or repeated keys");
                        }
                    }
                    if round & 0x700 == 0 {
                        cursor.seek_last().unwrap();
                        let mut last: Option<Vec<u8>> = None;
                        let mut count = 0;
                        while cursor.valid() {
                            assert!(last.as_ref().is_none_or(|last| cursor.key() < &last[..]));
                            last = Some(cursor.key().to_vec());
                            count += 1;
                            cursor.prev().unwrap();
                        }
                        assert!(load == Load::Hot || count >= known.iter().sum::<u64>());
                    }
                }
            });
        }
        scope.spawn(|| {
            // With a bound, so that a panic in a writer ends the test.
            for _ in 0..100_000 {
                if done.iter().all(|n| n.load(Ordering::Acquire) == EACH) {
                    break;
                }
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
            over.store(true, Ordering::Release);
        });
    });
    let mut model = Model::new();
    let mut cursor = log.table.cursor(Visibility::All);
    cursor.seek_first().unwrap();
    let mut ids = vec![];
    while cursor.valid() {
        let value = cursor.value().unwrap().to_vec();
        ids.push(u64::from_le_bytes(value[..].try_into().unwrap()));
        let offset = (cursor.version() - BASE) as u32;
        assert!(model.entry(cursor.key().to_vec()).or_default().insert(offset, value).is_none());
        cursor.next().unwrap();
    }
    ids.sort();
    assert!(ids.into_iter().eq(0..THREADS * EACH), "an entry is lost, or there twice");
    compare_all_versions(&log, &model);
    let probes: Vec<_> = (0..200).map(|n| key(n % THREADS, n)).collect();
    compare(&log, &model, u64::MAX, &probes);
    compare(&log, &model, BASE + EACH * THREADS * 16, &probes);
}

#[test]
fn many_threads_random() {
    stress(Load::Random);
}

#[test]
fn many_threads_ascending_in_ranges() {
    stress(Load::Ranges);
}

#[test]
fn many_threads_ascending_together() {
    stress(Load::Shared);
}

#[test]
fn many_threads_hot_keys() {
    stress(Load::Hot);
}
