//! Appending to the log: what a commit of one 132-byte record costs before it is indexed, from 1 and from 8 threads,
//! into a mapped and into a written log.

#![expect(clippy::disallowed_methods, reason = "a benchmark looks at the clock")]

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use halocline::bench_internals::LogBench;
use std::time::{Duration, Instant};

/// Time for `iterations` appends shared by `threads` threads.
fn timed(log: &LogBench, threads: u64, iterations: u64, body: &[u8]) -> Duration {
    let start = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| log.append((iterations / threads) as usize, body));
        }
    });
    start.elapsed()
}

fn append(c: &mut Criterion) {
    let mut group = c.benchmark_group("log append");
    group.throughput(Throughput::Elements(1)).sample_size(20);
    for (name, mapped) in [("mapped", true), ("written", false)] {
        for threads in [1, 8] {
            let dir = tempfile::tempdir().unwrap();
            let log = LogBench::new(dir.path(), mapped);
            // One lap of the ring, so that its pages are there.
            log.append(2_000_000, &[7; 116]);
            group.bench_function(BenchmarkId::new(name, threads), |b| {
                b.iter_custom(|iterations| timed(&log, threads, iterations, &[7; 116]));
            });
        }
    }
    group.finish();
}

fn sync(c: &mut Criterion) {
    let mut group = c.benchmark_group("log append and sync");
    group.sample_size(20);
    for (name, mapped) in [("mapped", true), ("written", false)] {
        let dir = tempfile::tempdir().unwrap();
        let log = LogBench::new(dir.path(), mapped);
        group.bench_function(name, |b| {
            b.iter(|| {
                log.append(1, &[7; 116]);
                log.sync();
            });
        });
    }
    group.finish();
}

criterion_group!(benches, append, sync);
criterion_main!(benches);
