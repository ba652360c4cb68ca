//! The memtable beside a skip list and a B-tree that hold copies: 600,000 entries of 16 B keys and 100 B values.
//!
//! Times are per entry. Entries are written into the log's memory beforehand: what the memtable costs on top of the
//! log is what is measured; the others copy key and value, which the log does for the memtable.

use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use crossbeam_skiplist::SkipMap;
use halocline::bench_internals::MemtableBench;
use std::cell::LazyCell;
use std::collections::BTreeMap;
use std::hint::black_box;
use std::time::Duration;

const ENTRIES: usize = 600_000;
const BATCH: usize = 1000;

#[derive(Clone, Copy)]
enum Pattern {
    Random,
    Sequential,
}

impl Pattern {
    fn name(self) -> &'static str {
        match self {
            Pattern::Random => "random",
            Pattern::Sequential => "sequential",
        }
    }

    /// Zero-padded decimals, distinct.
    fn keys(self) -> Vec<[u8; 16]> {
        (0..ENTRIES as u64)
            .map(|n| match self {
                Pattern::Random => mix(n as u32).into(),
                Pattern::Sequential => n,
            })
            .map(|n: u64| format!("{n:016}").into_bytes().try_into().unwrap())
            .collect()
    }
}

/// A permutation of the 32-bit numbers (the end of MurmurHash3).
fn mix(mut n: u32) -> u32 {
    n = (n ^ n >> 16).wrapping_mul(0x85EB_CA6B);
    n = (n ^ n >> 13).wrapping_mul(0xC2B2_AE35);
    n ^ n >> 16
}

fn shuffled(keys: &[[u8; 16]]) -> Vec<[u8; 16]> {
    let mut keys = keys.to_vec();
    let mut seed = 1u64;
    for at in (1..keys.len()).rev() {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        keys.swap(at, (seed >> 33) as usize % (at + 1));
    }
    keys
}

fn benches(c: &mut Criterion) {
    let value = [7u8; 100];
    let mut group = c.benchmark_group("memtable");
    group
        .sample_size(10)
        .warm_up_time(Duration::from_millis(500))
        .throughput(Throughput::Elements(ENTRIES as u64));
    for pattern in [Pattern::Random, Pattern::Sequential] {
        let keys = pattern.keys();
        let log = MemtableBench::new(&keys, &value);
        group.bench_function(BenchmarkId::new("insert", pattern.name()), |b| {
            b.iter_batched(
                || log.empty(),
                |mut table| {
                    table.insert_each();
                    table
                },
                BatchSize::PerIteration,
            );
        });
        group.bench_function(BenchmarkId::new("insert, batches of 1000", pattern.name()), |b| {
            b.iter_batched(
                || log.empty(),
                |mut table| {
                    table.insert_batches(BATCH);
                    table
                },
                BatchSize::PerIteration,
            );
        });
        for (threads, batch) in [(2, 1), (8, 1), (8, BATCH)] {
            let name = format!("insert, {threads} threads, batches of {batch}");
            group.bench_function(BenchmarkId::new(name, pattern.name()), |b| {
                b.iter_batched(
                    || log.empty(),
                    |mut table| {
                        table.insert_threads(threads, batch);
                        table
                    },
                    BatchSize::PerIteration,
                );
            });
        }
        let table = LazyCell::new(|| {
            let mut table = log.empty();
            table.insert_batches(BATCH);
            table
        });
        let probes = shuffled(&keys);
        group.bench_function(BenchmarkId::new("get", pattern.name()), |b| {
            b.iter(|| {
                for key in &probes {
                    black_box(table.get(key));
                }
            })
        });
        group.bench_function(BenchmarkId::new("get, batches of 100", pattern.name()), |b| {
            b.iter(|| {
                for keys in probes.chunks(100) {
                    black_box(table.get_batch(keys));
                }
            })
        });
        group.bench_function(BenchmarkId::new("iterate", pattern.name()), |b| {
            b.iter(|| black_box(table.iterate()))
        });
        group.bench_function(BenchmarkId::new("seek, 10 entries", pattern.name()), |b| {
            b.iter(|| {
                for key in probes.iter().step_by(10) {
                    black_box(table.seek(key, 10));
                }
            })
        });
    }
    group.finish();

    let mut group = c.benchmark_group("others");
    group
        .sample_size(10)
        .warm_up_time(Duration::from_millis(500))
        .throughput(Throughput::Elements(ENTRIES as u64));
    for pattern in [Pattern::Random, Pattern::Sequential] {
        let keys = pattern.keys();
        group.bench_function(BenchmarkId::new("BTreeMap insert", pattern.name()), |b| {
            b.iter_batched(
                BTreeMap::new,
                |mut map| {
                    for key in &keys {
                        map.insert(key.to_vec(), value.to_vec());
                    }
                    map
                },
                BatchSize::PerIteration,
            );
        });
        group.bench_function(BenchmarkId::new("SkipMap insert", pattern.name()), |b| {
            b.iter_batched(
                SkipMap::new,
                |map| {
                    for key in &keys {
                        map.insert(key.to_vec(), value.to_vec());
                    }
                    map
                },
                BatchSize::PerIteration,
            );
        });
        // Built only for the benchmarks that were asked for.
        let tree = LazyCell::new(|| {
            keys.iter().map(|key| (key.to_vec(), value.to_vec())).collect::<BTreeMap<Vec<u8>, Vec<u8>>>()
        });
        let list = LazyCell::new(|| {
            keys.iter().map(|key| (key.to_vec(), value.to_vec())).collect::<SkipMap<Vec<u8>, Vec<u8>>>()
        });
        let probes = shuffled(&keys);
        group.bench_function(BenchmarkId::new("BTreeMap get", pattern.name()), |b| {
            b.iter(|| {
                for key in &probes {
                    black_box(tree.get(key.as_slice()));
                }
            })
        });
        group.bench_function(BenchmarkId::new("SkipMap get", pattern.name()), |b| {
            b.iter(|| {
                for key in &probes {
                    black_box(list.get(key.as_slice()));
                }
            })
        });
        group.bench_function(BenchmarkId::new("BTreeMap iterate", pattern.name()), |b| {
            b.iter(|| tree.iter().fold(0u64, |sum, (k, v)| sum + u64::from(k[15]) + u64::from(v[0])))
        });
        group.bench_function(BenchmarkId::new("SkipMap iterate", pattern.name()), |b| {
            b.iter(|| list.iter().fold(0u64, |sum, e| sum + u64::from(e.key()[15]) + u64::from(e.value()[0])))
        });
    }
    group.finish();
}

criterion_group!(all, benches);
criterion_main!(all);
