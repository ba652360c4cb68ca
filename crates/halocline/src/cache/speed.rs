//! What a lookup costs: `cargo test --release -p halocline --lib cache::speed -- --ignored --nocapture`.

use super::{GroupCache, HotGroups};
use std::hint::black_box;
use std::time::Instant;

fn numbers(n: usize, below: u64) -> Vec<u64> {
    let mut random = 88_172_645_463_325_252u64;
    let mut next = || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        ((u128::from(random) * u128::from(below)) >> 64) as u64
    };
    (0..n).map(|_| next()).collect()
}

#[test]
#[ignore = "a measurement, for release builds"]
fn lookups() {
    const N: usize = 2_000_000;
    let cache = HotGroups::new(64 << 20);
    let group = vec![7u8; 1000];
    let time = |name: &str, offsets: &[u64], each: &(dyn Fn(u64) + Sync), threads: usize| {
        let start = Instant::now();
        std::thread::scope(|scope| {
            for t in 0..threads {
                scope.spawn(move || {
                    let (front, back) = offsets.split_at(t * 1000);
                    back.iter().chain(front).for_each(|offset| each(*offset));
                });
            }
        });
        println!(
            "{name:40} {threads} threads  {:6.1} ns",
            start.elapsed().as_nanos() as f64 / offsets.len() as f64
        );
    };
    let uniform = numbers(N, 50_000_000);
    for threads in [1, 2] {
        time(
            "miss, uniform, get",
            &uniform,
            &|offset| assert!(black_box(cache.get(1, offset)).is_none()),
            threads,
        );
    }
    time(
        "miss, uniform, get and first offer",
        &uniform,
        &|offset| {
            if cache.get(2, offset).is_none() {
                cache.offer(2, offset, &group);
            }
        },
        1,
    );
    println!("{:?}", cache.stats());
    for (name, groups) in [("hit, 500 groups", 500), ("hit, 50,000 groups", 50_000)] {
        for offset in (0..groups).flat_map(|offset| [offset, offset]) {
            cache.offer(3, offset, &group);
        }
        let offsets = numbers(N, groups);
        for threads in [1, 2] {
            time(name, &offsets, &|offset| drop(black_box(cache.get(3, offset))), threads);
        }
        let one = vec![groups - 1; N];
        time("hit, one group", &one, &|offset| drop(black_box(cache.get(3, offset))), 2);
    }
    println!("{:?}", cache.stats());
    let start = Instant::now();
    cache.remove_tables(|table| table == 3);
    println!("remove a table: {:?}, {} bytes left", start.elapsed(), cache.bytes());
}
