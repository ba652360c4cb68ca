//! Against the claim in the module's head: whoever asks with number `n` sees `T_n` or nothing.

use super::*;
use crate::io::checksum::key_hash;
use std::collections::HashMap;

fn place(records: &Records, family: u32, key: &[u8]) -> Option<Place> {
    records.place(family, || key_hash(key))
}

fn get(records: &Records, family: u32, flushes: u64, key: &[u8]) -> Option<Value> {
    records.get(place(records, family, key)?, flushes, key)
}

fn offer(records: &Records, family: u32, flushes: u64, key: &[u8], value: &[u8]) {
    if let Some(place) = place(records, family, key) {
        records.offer(place, flushes, key, value);
    }
}

fn next(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

/// The whole truth: a value that depends on all there is, of any length.
fn truth(family: u32, flushes: u64, key: &[u8]) -> Vec<u8> {
    let mut state = key_hash(key) ^ flushes.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ u64::from(family) << 7 | 1;
    let len = next(&mut state) % 300;
    (0..len).map(|_| next(&mut state) as u8).collect()
}

fn check_sets(records: &Records) {
    for set in 0..records.sets {
        let words = records.set(Place { set, fingerprint: 1, family: 0 });
        let sequence = words[0].load(Relaxed);
        assert_eq!(sequence & 1, 0);
        if sequence == 0 {
            continue;
        }
        let directory = Directory::load(words);
        assert_eq!(usize::from(directory.begins[0]), FIRST);
        assert!(directory.begins.is_sorted());
        for i in 0..EXTENTS {
            let (len, free) = (directory.len(i), directory.fingerprints[i] == 0);
            assert!(free || len >= SMALLEST.min(HEADER), "a record needs room");
            assert!(len > 0 || directory.begins[i + 1..].iter().all(|begin| usize::from(*begin) == SET));
            if free && i + 1 < EXTENTS && directory.len(i + 1) > 0 {
                assert_ne!(directory.fingerprints[i + 1], 0, "free neighbours are one extent");
            }
            if !free {
                let record = Record::at(words, directory.begins[i].into()).unwrap();
                let key_len = (record.meta >> 16) as u16 as usize;
                assert!(HEADER + key_len.div_ceil(8) + record.value_len().div_ceil(8) <= len);
            }
        }
    }
}

#[test]
fn what_was_offered_last_or_nothing() {
    let records = Records::new(32 << 10).unwrap();
    let mut state = 7;
    let mut last: HashMap<(u32, Vec<u8>), u64> = HashMap::new();
    let mut served = 0;
    for step in 0..300_000u64 {
        let n = next(&mut state);
        let family = (n % 3) as u32;
        let key =
            vec![b'k'; (n >> 8) as usize % 10].into_iter().chain([(n >> 32) as u8 % 20]).collect::<Vec<_>>();
        let flushes = step / 5000 + (n >> 50) % 2;
        if n >> 40 & 1 == 0 {
            offer(&records, family, flushes, &key, &truth(family, flushes, &key));
            let newest = last.entry((family, key)).or_default();
            *newest = flushes.max(*newest);
        } else if let Some(value) = get(&records, family, flushes, &key) {
            assert_eq!(value, truth(family, flushes, &key));
            assert!(last[&(family, key)] >= flushes);
            served += 1;
        }
        if step % 1000 == 0 {
            check_sets(&records);
            records.aside.store(0, Relaxed);
        }
    }
    check_sets(&records);
    let stats = records.stats();
    assert!(served > 1000 && stats.hits == served, "{served} {stats:?}");
    assert!(stats.evicted > 1000 && stats.bytes <= 32 << 10, "{stats:?}");
}

#[test]
fn values_of_all_lengths_come_back_each_way() {
    let records = Records::new(1 << 20).unwrap();
    for key_len in [0, 1, 7, 8, 9, 16, 100] {
        for value_len in 0..LARGEST * 8 + 20 {
            let key = vec![value_len as u8; key_len];
            let value: Vec<u8> = (0..value_len).map(|i| (i * 7 + key_len) as u8).collect();
            let flushes = (key_len * 1000 + value_len) as u64;
            let place = place(&records, 0, &key).unwrap();
            let fits = HEADER + key_len.div_ceil(8) + value_len.div_ceil(8) <= LARGEST;
            // In a full set, not every offer is taken.
            for _ in 0..1000 {
                records.offer(place, flushes, &key, &value);
                if records.contains(place, flushes, &key) {
                    break;
                }
            }
            assert_eq!(records.contains(place, flushes, &key), fits, "{key_len} {value_len}");
            let mut out = b"before".to_vec();
            assert_eq!(records.get_into(place, flushes, &key, &mut out), fits);
            if fits {
                assert_eq!(records.get(place, flushes, &key).unwrap(), value);
                assert_eq!(out, [b"before".as_slice(), &value].concat());
            }
            assert!(records.get(place, flushes + 1, &key).is_none());
            // One that is too large leaves what was there.
            assert!(!fits || records.get(place, flushes.wrapping_sub(1), &key).is_none());
            assert!(records.get(Place { family: 1, ..place }, flushes, &key).is_none());
            records.aside.store(0, Relaxed);
        }
    }
    check_sets(&records);
}

#[test]
fn no_late_reader_takes_a_newer_record_away() {
    let records = Records::new(1 << 20).unwrap();
    offer(&records, 0, 5, b"key", b"new");
    offer(&records, 0, 4, b"key", b"old");
    assert_eq!(get(&records, 0, 5, b"key").unwrap(), b"new");
    assert!(get(&records, 0, 4, b"key").is_none());
}

/// Eight threads in two sets; the number of flushes rises, and some readers lag behind.
#[test]
fn nothing_torn_and_nothing_of_another_time() {
    let records = Records::new(2 << 10).unwrap();
    let flushes = AtomicU64::new(1);
    std::thread::scope(|scope| {
        for thread in 0..8u64 {
            let (records, flushes) = (&records, &flushes);
            scope.spawn(move || {
                let mut state = thread + 1;
                let mut served = 0;
                for step in 0..60_000u64 {
                    let n = next(&mut state);
                    if thread == 0 && step % 64 == 0 {
                        flushes.fetch_add(1, Relaxed);
                    }
                    let now = flushes.load(Relaxed).saturating_sub(n >> 60 & 1);
                    let (family, key) = ((n & 1) as u32, [b'a' + (n >> 8) as u8 % 6; 12]);
                    match get(records, family, now, &key) {
                        Some(value) => {
                            assert_eq!(value, truth(family, now, &key));
                            served += 1;
                        }
                        None => offer(records, family, now, &key, &truth(family, now, &key)),
                    }
                }
                assert!(served > 0);
            });
        }
    });
    check_sets(&records);
}

/// A value that holds what looks like records, so that remainders of it lie where extents begin later.
#[test]
fn no_value_passes_for_a_record() {
    let records = Records::new(1 << 10).unwrap();
    let mut state = 99;
    // A free extent's fingerprint is 0, and 1 is next to it for `lanes_with`.
    let victim = (0..).map(|n: u64| n.to_le_bytes()).find(|key| key_hash(key) as u16 <= 1).unwrap();
    let forged: Vec<u8> = [1, 8 << 16 | 8, u64::from_le_bytes(victim), 666]
        .iter()
        .cycle()
        .take(48)
        .flat_map(|word: &u64| word.to_le_bytes())
        .collect();
    for _ in 0..20_000 {
        let n = next(&mut state);
        let len = n as usize % forged.len() / 8 * 8;
        offer(&records, 0, 1, &[n as u8 % 32; 8], &forged[..len]);
        assert!(get(&records, 0, 1, &victim).is_none());
        records.aside.store(0, Relaxed);
    }
}

#[test]
fn hot_records_outlive_a_scan() {
    let records = Records::new(1 << 20).unwrap();
    let read = |key: u64| {
        let hit = get(&records, 0, 1, &key.to_le_bytes()).is_some();
        if !hit {
            offer(&records, 0, 1, &key.to_le_bytes(), &[7; 100]);
        }
        hit
    };
    for _ in 0..20 {
        let _ = (0..1000).filter(|key| read(*key)).count();
    }
    for key in 0..20_000 {
        read(1_000_000 + key);
        // Half of what is read is hot.
        read(key % 1000);
    }
    let hits = (0..1000).filter(|key| read(*key)).count();
    assert!(hits > 900, "{hits}");
}

#[test]
fn it_stands_aside_where_nothing_is_hot_and_comes_back() {
    let records = Records::new(64 << 10).unwrap();
    let read = |key: u64| match place(&records, 0, &key.to_le_bytes()) {
        None => false,
        Some(place) if records.contains(place, 1, &key.to_le_bytes()) => true,
        Some(place) => {
            records.offer(place, 1, &key.to_le_bytes(), &[7; 100]);
            false
        }
    };
    let mut state = 3;
    for _ in 0..2 * EPOCH {
        read(next(&mut state));
    }
    assert!(records.stats().aside);
    let asked = records.stats().misses;
    for _ in 0..100 * EPOCH {
        read(next(&mut state));
    }
    let asked = records.stats().misses - asked;
    assert!((4 * EPOCH..9 * EPOCH).contains(&asked), "{asked} of {}", 100 * EPOCH);
    // The load turns hot.
    for n in 0..20 * EPOCH {
        read(n % 100);
    }
    assert!(!records.stats().aside);
    assert!((0..100).all(read));
}

#[test]
fn memory_is_counted_where_it_is_written() {
    assert!(Records::new(0).is_none() && Records::new(SET * 8 - 1).is_none());
    let records = Records::new(16 << 20).unwrap();
    assert_eq!(records.bytes(), 0);
    assert!(get(&records, 0, 1, b"key").is_none());
    assert_eq!(records.bytes(), 0);
    offer(&records, 0, 1, b"key", b"value");
    assert_eq!(records.bytes(), PORTION);
    // Few records need little of it.
    (0..10_000u64).for_each(|n| offer(&records, 0, 1, &n.to_le_bytes(), b"value"));
    assert_eq!(records.bytes(), PORTION);
    (0..400_000u64).for_each(|n| offer(&records, 0, 1, &n.to_le_bytes(), b"value"));
    assert_eq!(records.bytes(), 16 << 20);
    let kept = (0..400_000u64).filter(|n| get(&records, 0, 1, &n.to_le_bytes()).is_some()).count();
    assert!(kept > 100_000, "{kept} of the 262,144 that have room");
    let small = Records::new(5000).unwrap();
    offer(&small, 0, 1, b"key", b"value");
    assert_eq!(small.bytes(), 4096);
}
