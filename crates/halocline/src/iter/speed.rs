//! What a step costs: `cargo test --release -p halocline --lib iter::speed -- --ignored --nocapture`.
//!
//! The sources are as cheap as sources can be, so the figures are those of the combinators. 16-byte keys without and
//! with a shared prefix of 24 bytes, which puts all differences behind the heads.

use super::{Merging, Prefixed, Source, VersionMerge};
use crate::Result;
use crate::entry::{Kind, Prefix};
use std::hint::black_box;
use std::ops::Bound;
use std::rc::Rc;
use std::time::Instant;

/// Keys of one length in one buffer.
#[derive(Clone)]
struct Flat {
    keys: Rc<[u8]>,
    width: usize,
    at: usize,
}

impl Flat {
    fn end(&self) -> usize {
        self.keys.len() / self.width
    }
    fn key_at(&self, at: usize) -> &[u8] {
        &self.keys[at * self.width..(at + 1) * self.width]
    }
    fn bound(&self, before: impl Fn(&[u8]) -> bool) -> usize {
        let (mut low, mut high) = (0, self.end());
        while low < high {
            let middle = (low + high) / 2;
            if before(self.key_at(middle)) { low = middle + 1 } else { high = middle }
        }
        low
    }
}

impl Source for Flat {
    fn seek_first(&mut self) -> Result<()> {
        self.at = 0;
        Ok(())
    }
    fn seek_last(&mut self) -> Result<()> {
        self.at = self.end().wrapping_sub(1);
        Ok(())
    }
    fn seek(&mut self, key: &[u8]) -> Result<()> {
        self.at = self.bound(|k| k < key);
        Ok(())
    }
    fn seek_for_prev(&mut self, key: &[u8]) -> Result<()> {
        self.at = self.bound(|k| k <= key).wrapping_sub(1);
        Ok(())
    }
    #[inline]
    fn next(&mut self) -> Result<()> {
        self.at += 1;
        Ok(())
    }
    #[inline]
    fn prev(&mut self) -> Result<()> {
        self.at = self.at.wrapping_sub(1);
        Ok(())
    }
    #[inline]
    fn valid(&self) -> bool {
        self.at < self.end()
    }
    #[inline]
    fn key(&self) -> &[u8] {
        self.key_at(self.at)
    }
    #[inline]
    fn kind(&self) -> Kind {
        Kind::Put
    }
    #[inline]
    fn version(&self) -> u64 {
        0
    }
    fn value(&mut self) -> Result<&[u8]> {
        Ok(&[])
    }
}

/// `total` numbers dealt to `k` sources: at random, or nine in ten to the last one.
fn deal(total: u64, k: usize, skewed: bool, prefix: usize) -> Vec<Flat> {
    let mut keys = vec![Vec::new(); k];
    let mut random = 88_172_645_463_325_252u64;
    for n in 0..total {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let i = if skewed && !random.is_multiple_of(10) { k - 1 } else { (random >> 32) as usize % k };
        keys[i].extend(std::iter::repeat_n(b'p', prefix));
        keys[i].extend_from_slice(format!("{n:016}").as_bytes());
    }
    keys.into_iter().map(|keys| Flat { keys: keys.into(), width: 16 + prefix, at: 0 }).collect()
}

fn per_step(total: u64, mut run: impl FnMut() -> u64) -> f64 {
    let mut best = f64::MAX;
    for _ in 0..5 {
        let start = Instant::now();
        assert_eq!(black_box(run()), total);
        best = best.min(start.elapsed().as_nanos() as f64 / total as f64);
    }
    best
}

#[test]
#[ignore = "a measurement, for release builds"]
fn steps() {
    const TOTAL: u64 = 1_000_000;
    println!("ns a step      sources  forward  backward  versions");
    for (name, skewed, prefix) in [("even", false, 0), ("9 in 10 last", true, 0), ("long prefix", false, 24)]
    {
        for k in [1, 2, 3, 8] {
            let sources = deal(TOTAL, k, skewed, prefix);
            let mut merged = Merging::new(sources.clone());
            let forward = per_step(TOTAL, || {
                let mut n = 0;
                merged.seek_first().unwrap();
                while merged.valid() {
                    black_box(merged.key());
                    n += 1;
                    merged.next().unwrap();
                }
                n
            });
            let backward = per_step(TOTAL, || {
                let mut n = 0;
                merged.seek_last().unwrap();
                while merged.valid() {
                    black_box(merged.key());
                    n += 1;
                    merged.prev().unwrap();
                }
                n
            });
            let mut versions = VersionMerge::new(sources, &[], |_: &[u8]| false);
            let versions = per_step(TOTAL, || {
                let mut n = 0;
                versions.seek_first().unwrap();
                while versions.valid() {
                    black_box(versions.version());
                    n += 1;
                    versions.next().unwrap();
                }
                n
            });
            println!("{name:14} {k:7} {forward:8.1} {backward:9.1} {versions:9.1}");
        }
    }
}

#[test]
#[ignore = "a measurement, for release builds"]
fn steps_in_a_family_within_bounds() {
    const TOTAL: u64 = 1_000_000;
    println!("ns a step, one family's prefix stripped, upper bound set");
    for k in [1, 2, 3, 8] {
        let family = |mut flat: Flat| {
            let mut keys = Vec::new();
            for at in 0..flat.end() {
                keys.push(0);
                keys.extend_from_slice(flat.key_at(at));
            }
            (flat.keys, flat.width) = (keys.into(), flat.width + 1);
            Prefixed::new(flat, Prefix::of(0))
        };
        let mut merged = Merging::new(deal(TOTAL, k, false, 0).into_iter().map(family).collect());
        merged.set_bounds(Bound::Included(b"0"), Bound::Excluded(b"1"));
        let forward = per_step(TOTAL, || {
            let mut n = 0;
            merged.seek_first().unwrap();
            while merged.valid() {
                black_box(merged.key());
                n += 1;
                merged.next().unwrap();
            }
            n
        });
        println!("{k} sources {forward:8.1}");
    }
}

/// Seeks that go on a little each time, and seeks all over. The sources search all their keys for either.
#[test]
#[ignore = "a measurement, for release builds"]
fn seeks() {
    const TOTAL: u64 = 1_000_000;
    println!("ns a seek      sources   3 on    anywhere");
    for k in [1, 2, 3, 8] {
        let mut merged = Merging::new(deal(TOTAL, k, false, 0));
        let mut measure = |step: u64| {
            let keys: Vec<[u8; 16]> = (0..TOTAL / 3)
                .map(|i| format!("{:016}", i * step % TOTAL).into_bytes().try_into().unwrap())
                .collect();
            per_step(TOTAL / 3, || {
                for key in &keys {
                    merged.seek(key).unwrap();
                    assert_eq!(black_box(merged.key()), key);
                }
                TOTAL / 3
            })
        };
        let (near, far) = (measure(3), measure(618_033));
        println!("               {k:7} {near:7.1} {far:9.1}");
    }
}
