//! Tables against a plain list of their entries.

use super::*;
use crate::entry::Kind;
use crate::iter::{Source, Visibility};
use proptest::prelude::*;

fn kinds() -> impl Strategy<Value = Kind> {
    prop_oneof![
        6 => Just(Kind::Put),
        2 => Just(Kind::Delete),
        1 => Just(Kind::PutTtl),
        1 => Just(Kind::Merge),
        1 => Just(Kind::LargeValue),
    ]
}

fn keys() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        // Few symbols: prefixes of one another, zeros where heads are padded.
        4 => prop::collection::vec(prop_oneof![Just(0u8), Just(1), Just(255)], 0..7),
        3 => (0u32..500).prop_map(|n| format!("user{n:06}").into_bytes()),
        2 => (0u64..500).prop_map(|n| (n << 50).to_be_bytes().to_vec()),
        1 => prop::collection::vec(any::<u8>(), 0..40),
        1 => (0usize..3000, 0u8..3).prop_map(|(n, b)| [vec![7; n], vec![b]].concat()),
    ]
}

fn values() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        2 => Just(Vec::new()),
        3 => prop::collection::vec(any::<u8>(), 0..30),
        3 => (any::<u8>(), 0usize..300).prop_map(|(b, n)| vec![b; n]),
        2 => (0u32..1000, 1usize..60).prop_map(|(n, r)| format!("{{\"id\":{n},\"name\":\"x\"}}").repeat(r).into_bytes()),
        2 => Just(vec![9; 20]),
        1 => (any::<u64>(), 0usize..9000).prop_map(|(seed, n)| noise(seed, n)),
    ]
}

/// Bytes that do not compress.
pub(crate) fn noise(mut seed: u64, n: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(n + 8);
    while out.len() < n {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        out.extend_from_slice(&(seed ^ (seed >> 29)).to_le_bytes());
    }
    out.truncate(n);
    out
}

/// Entries in the order of a table: keys ascending, versions descending, 0 at most once and last.
fn items() -> impl Strategy<Value = Vec<Item>> {
    let versions = prop_oneof![
        3 => Just(vec![0u64]),
        1 => prop::collection::vec(prop_oneof![0u64..6, 1_000_000u64..1_000_300, any::<u64>()], 1..9),
        1 => Just((1..60).collect()),
    ];
    let plain = any::<bool>();
    (
        prop::collection::btree_map(keys(), (versions, any::<u64>()), 1..150),
        plain,
        prop::collection::vec((kinds(), values()), 1..40),
    )
        .prop_map(|(keys, plain, pool)| {
            let mut items = Vec::new();
            for (key, (mut versions, seed)) in keys {
                if plain {
                    versions = vec![0];
                }
                versions.sort_unstable_by(|a, b| b.cmp(a));
                versions.dedup();
                for version in versions {
                    let (kind, value) =
                        &pool[(seed.wrapping_add(version.wrapping_mul(31)) % pool.len() as u64) as usize];
                    let kind = if plain && seed % 4 != 0 { Kind::Put } else { *kind };
                    let value = if kind == Kind::Delete { Vec::new() } else { value.clone() };
                    items.push(Item { key: key.clone(), version, kind, value });
                }
            }
            items
        })
}

fn options() -> impl Strategy<Value = TableOptions> {
    let filter = prop_oneof![
        Just(FilterKind::None),
        (6u32..16).prop_map(|bits_per_key| FilterKind::Bloom { bits_per_key }),
        Just(FilterKind::Fuse8),
    ];
    let codecs = vec![
        Codec::None,
        #[cfg(feature = "lz4")]
        Codec::Lz4,
        #[cfg(feature = "zstd")]
        Codec::Zstd(1),
    ];
    (
        prop_oneof![Just(256usize), 256usize..3000, Just(4096), Just(32 << 10)],
        prop_oneof![Just(64usize), 64usize..2000, Just(1024), Just(32 << 10)],
        prop::sample::select(codecs),
        filter,
        prop_oneof![Just(0usize), Just(4096)],
    )
        .prop_map(|(page_bytes, group_bytes, compression, filter, dictionary_bytes)| TableOptions {
            page_bytes,
            group_bytes,
            compression,
            filter,
            dictionary_bytes,
        })
}

fn shown(items: &[Item], visibility: Visibility) -> Vec<&Item> {
    match visibility {
        Visibility::All => items.iter().collect(),
        Visibility::Before(before) => {
            let mut shown: Vec<&Item> = Vec::new();
            for item in items {
                let visible = item.version == 0 || item.version < before;
                if visible && shown.last().is_none_or(|last| last.key != item.key) {
                    shown.push(item);
                }
            }
            shown
        }
    }
}

fn assert_here(cursor: &mut TableCursor, expected: Option<&&Item>) {
    assert_eq!(cursor.valid(), expected.is_some());
    if let Some(item) = expected {
        assert_eq!((cursor.key(), cursor.version(), cursor.kind()), (&item.key[..], item.version, item.kind));
        if item.key.len() % 3 != 0 {
            assert_eq!(cursor.value().unwrap(), &item.value[..]);
        }
        if item.key.len() % 2 == 0 {
            assert_eq!(cursor.pinned_value().unwrap(), &item.value[..]);
        }
    }
}

fn check(items: &[Item], options: &TableOptions, access: Access, probes: &[Vec<u8>], befores: &[u64]) {
    let (file, meta) = write(items, options, 7);
    let table = Table::open(file, path(), meta.clone(), access, None).unwrap();
    assert_eq!(table.verify().unwrap(), items.len() as u64);
    assert_eq!((&*meta.smallest, &*meta.largest), (&items[0].key[..], &items[items.len() - 1].key[..]));
    let hash = |key: &[u8]| crate::io::checksum::key_hash(key);
    assert!(items.iter().all(|item| table.may_contain(hash(&item.key))));

    let visibilities = befores.iter().map(|&b| Visibility::Before(b)).chain([Visibility::All]);
    for visibility in visibilities {
        let shown = shown(items, visibility);
        let mut cursor = table.cursor(visibility);
        cursor.seek_first().unwrap();
        for item in &shown {
            assert_here(&mut cursor, Some(item));
            cursor.next().unwrap();
        }
        assert!(!cursor.valid());
        for probe in probes {
            let at = shown.partition_point(|item| item.key < *probe);
            cursor.seek(probe).unwrap();
            assert_here(&mut cursor, shown.get(at));
            if cursor.valid() {
                cursor.next().unwrap();
                assert_here(&mut cursor, shown.get(at + 1));
            }
        }
        let Visibility::Before(before) = visibility else { continue };
        cursor.seek_last().unwrap();
        for item in shown.iter().rev() {
            assert_here(&mut cursor, Some(item));
            cursor.prev().unwrap();
        }
        assert!(!cursor.valid());
        for probe in probes {
            let at = shown.partition_point(|item| item.key <= *probe);
            cursor.seek_for_prev(probe).unwrap();
            assert_here(&mut cursor, at.checked_sub(1).map(|at| &shown[at]));
            // Back and forth.
            if cursor.valid() {
                cursor.prev().unwrap();
                assert_here(&mut cursor, at.checked_sub(2).map(|at| &shown[at]));
                if cursor.valid() {
                    cursor.next().unwrap();
                    assert_here(&mut cursor, Some(&shown[at - 1]));
                    cursor.next().unwrap();
                    assert_here(&mut cursor, shown.get(at));
                }
            }
            let expected = shown.iter().find(|item| item.key == *probe);
            let hit = table.get(probe, before).unwrap();
            assert_eq!(
                hit.map(|hit| (hit.kind, hit.value.to_vec())),
                expected.map(|item| (item.kind, item.value.clone()))
            );
            assert_eq!(
                table.contains(probe, before).unwrap(),
                expected.map(|item| (item.kind, item.version))
            );
            let mut out = vec![1];
            table.get_into(probe, before, &mut out).unwrap();
            assert_eq!(&out[1..], expected.map_or(&[][..], |item| &item.value));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn a_table_answers_as_the_list_it_was_made_from(
        items in items(),
        options in options(),
        mapped in any::<bool>(),
        strangers in prop::collection::vec(keys(), 0..20),
        before in prop_oneof![1u64..70, 1_000_000u64..1_000_300],
    ) {
        let mut probes = strangers;
        for item in items.iter().step_by(1 + items.len() / 60) {
            probes.push(item.key.clone());
            probes.push([&item.key[..], &[0]].concat());
        }
        let access = if mapped { Access::Mapped } else { Access::Pread };
        check(&items, &options, access, &probes, &[before, u64::MAX]);
    }
}
