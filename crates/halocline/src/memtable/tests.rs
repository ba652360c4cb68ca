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
