//! What the behaviour tests share: numbers from a seed, sizes from the environment, keys, values and options.

#![allow(dead_code, reason = "each test file uses a part of this")]

use halocline::{Compaction, Compression, Durability, LogMode, Options, TableAccess};
use std::time::Duration;

/// The number in environment variable `name`, else `default`.
pub fn size(name: &str, default: u64) -> u64 {
    match std::env::var(name) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{name}={text}: a number is needed")),
        Err(_) => default,
    }
}

/// Seeds `0..n` from `HALOCLINE_SEED` on, or that one alone if only it is to be replayed.
pub fn seeds(runs: &str, default: u64) -> std::ops::Range<u64> {
    match std::env::var("HALOCLINE_SEED") {
        Ok(_) => {
            let first = size("HALOCLINE_SEED", 0);
            first..first + size(runs, 1)
        }
        Err(_) => 0..size(runs, default),
    }
}

/// SplitMix64: the same numbers for a seed for ever.
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    pub fn new(seed: u64) -> Rng {
        let mut rng = Rng(seed.wrapping_mul(0xD134_2543_DE82_EF95) ^ 0x5851_F42D);
        rng.next();
        rng
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// In `[0, bound)`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// True once in `n`.
    pub fn once_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }
}

/// A key from a small space: prefixes of each other, empty, of zeros and 0xFF, numbered, and now and then long.
pub fn key(rng: &mut Rng) -> Vec<u8> {
    match rng.below(200) {
        0..=79 => {
            let len = rng.below(5);
            (0..len).map(|_| rng.pick(&[0x00, b'a', b'b', 0xFF])).collect()
        }
        80..=193 => format!("user{:04}", rng.below(250)).into_bytes(),
        194..=198 => {
            let mut key = vec![b'k'; 40 + rng.below(4) as usize * 700];
            key.push(b'0' + rng.below(4) as u8);
            key
        }
        _ => {
            let mut key = vec![0xFF; (64 << 10) - 1];
            key.push(rng.below(2) as u8);
            key
        }
    }
}

/// A value that no other call gives (unless it is short): empty to a few KB, now and then beyond a segment.
pub fn value(rng: &mut Rng) -> Vec<u8> {
    let len = match rng.below(150) {
        0..=4 => 0,
        5..=80 => rng.below(40),
        81..=125 => 100 + rng.below(200),
        126..=148 => rng.below(5_000),
        _ => 200_000,
    };
    bytes(rng.next(), len as usize)
}

/// `len` bytes that the seed determines: half of the seeds give compressible ones.
pub fn bytes(seed: u64, len: usize) -> Vec<u8> {
    let mut rng = Rng::new(seed);
    let period = if seed.is_multiple_of(2) { 8 + (seed >> 8) as usize % 100 } else { len.max(1) };
    let part: Vec<u8> = (0..period.min(len)).map(|_| rng.next() as u8).collect();
    (0..len).map(|i| part[i % period]).collect()
}

/// Random options of every kind, with small buffers.
pub fn options(rng: &mut Rng) -> Options {
    Options::new()
        .write_buffer(rng.pick(&[64 << 10, 64 << 10, 100_000, 256 << 10, 1 << 20]))
        .cache(rng.pick(&[0, 1 << 10, 64 << 10, 8 << 20]))
        .log_mode(rng.pick(&[LogMode::Auto, LogMode::Mapped, LogMode::Written]))
        .table_access(rng.pick(&[TableAccess::Auto, TableAccess::Mapped, TableAccess::Pread]))
        .compression(rng.pick(&[Compression::None, Compression::Lz4]))
        .compress_from(rng.pick(&[0, 0, 100 << 10]))
        .compaction(rng.pick(&[Compaction::Lazy, Compaction::Leveled, Compaction::Tiered]))
        .compaction_threads(1 + rng.below(2) as usize)
        .durability(rng.pick(&[
            Durability::Process,
            Durability::Process,
            Durability::Interval(Duration::from_millis(1)),
            Durability::Sync,
        ]))
}

/// A short form of bytes for messages.
pub fn show(bytes: &[u8]) -> String {
    match bytes.len() {
        0..=24 => format!("\"{}\"", bytes.escape_ascii()),
        n => format!("\"{}\"...({n} bytes)", bytes[..16].escape_ascii()),
    }
}
