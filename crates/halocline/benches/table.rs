//! Tables: point reads, seeks and scans, mapped and by `pread`, raw and LZ4; building; filters.
//!
//! Uniformly random 16-byte keys, 100-byte values of which half are random and half repeat. `HALOCLINE_RECORDS` sets
//! the size (default 500,000).

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use halocline::bench_internals_table::{BenchTable, Shape, build_filter};
use std::hint::black_box;

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
}

type Key = [u8; 16];

#[expect(clippy::disallowed_methods, reason = "the size of a benchmark is the user's to choose")]
fn records() -> usize {
    std::env::var("HALOCLINE_RECORDS").ok().and_then(|n| n.parse().ok()).unwrap_or(500_000)
}

fn keys() -> Vec<Key> {
    let mut random = Random(1);
    let mut keys: Vec<Key> = (0..records())
        .map(|_| {
            let mut key = [0; 16];
            key[..8].copy_from_slice(&random.next().to_be_bytes());
            key[8..].copy_from_slice(&random.next().to_be_bytes());
            key
        })
        .collect();
    keys.sort_unstable();
    keys
}

fn values(n: usize) -> Vec<[u8; 100]> {
    let mut random = Random(2);
    (0..n)
        .map(|_| {
            let mut value = [0; 100];
            for chunk in value[..50].chunks_mut(8) {
                chunk.copy_from_slice(&random.next().to_le_bytes()[..chunk.len()]);
            }
            value
        })
        .collect()
}

fn shapes() -> [(&'static str, Shape); 5] {
    let raw = Shape { lz4: false, dictionary_bytes: 0, fuse: false, pread: false };
    [
        ("raw-mapped", raw),
        ("lz4-mapped", Shape { lz4: true, ..raw }),
        ("lz4-dictionary-mapped", Shape { lz4: true, dictionary_bytes: 8 << 10, ..raw }),
        ("raw-pread", Shape { pread: true, fuse: true, ..raw }),
        ("lz4-pread", Shape { pread: true, lz4: true, ..raw }),
    ]
}

fn tables(c: &mut Criterion) {
    let dir = tempfile::tempdir().expect("a directory");
    let keys = keys();
    let values = values(4096);
    let mut order: Vec<usize> = (0..keys.len()).collect();
    let mut random = Random(3);
    for i in (1..order.len()).rev() {
        order.swap(i, (random.next() % (i as u64 + 1)) as usize);
    }
    let entries = || keys.iter().enumerate().map(|(i, key)| (key, &values[i % values.len()]));
    for (name, shape) in shapes() {
        let path = dir.path().join(name);
        let table = BenchTable::build(&path, shape, entries());
        println!("{name}: {} MB, {} KB in memory", table.file_len() >> 20, table.memory_bytes() >> 10);
        let mut group = c.benchmark_group(format!("table/{name}"));
        group.sample_size(20);
        let mut at = 0;
        let mut pick = || {
            at = (at + 1) % order.len();
            &keys[order[at]]
        };
        group.bench_function("get", |b| b.iter(|| assert_eq!(table.get(pick()), Some(100))));
        let mut cursor = table.cursor();
        group.bench_function("seek", |b| b.iter(|| assert!(cursor.seek(pick()))));
        group.bench_function("fence", |b| b.iter(|| table.fence(pick())));
        group.sample_size(10);
        group.throughput(Throughput::Elements(keys.len() as u64));
        group.bench_function("scan keys", |b| b.iter(|| cursor.scan(false, false)));
        group.bench_function("scan values", |b| b.iter(|| cursor.scan(true, false)));
        group.bench_function("scan values back", |b| b.iter(|| cursor.scan(true, true)));
        if !shape.pread {
            let path = dir.path().join("built");
            group.bench_function("build", |b| {
                b.iter(|| BenchTable::build(&path, shape, entries()).file_len())
            });
        }
        group.finish();
        let _ = std::fs::remove_file(path);
    }
}

fn filters(c: &mut Criterion) {
    let dir = tempfile::tempdir().expect("a directory");
    let keys = keys();
    let mut random = Random(4);
    let hashes: Vec<u64> = (0..keys.len()).map(|_| random.next()).collect();
    for fuse in [false, true] {
        let mut group = c.benchmark_group(if fuse { "filter/fuse8" } else { "filter/bloom12" });
        group.sample_size(10);
        let shape = Shape { lz4: false, dictionary_bytes: 0, fuse, pread: true };
        let table = BenchTable::build(&dir.path().join("t"), shape, keys.iter().map(|key| (key, b"")));
        let mut key = [0; 16];
        group.bench_function("probe an absent key", |b| {
            b.iter(|| {
                key[..8].copy_from_slice(&random.next().to_le_bytes());
                black_box(table.may_contain(&key))
            })
        });
        group.throughput(Throughput::Elements(hashes.len() as u64));
        group.bench_function("build", |b| b.iter(|| build_filter(&hashes, fuse)));
        group.finish();
    }
}

criterion_group!(benches, tables, filters);
criterion_main!(benches);
