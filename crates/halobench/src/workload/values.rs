//! Values, as a function of the seed, the key's id and a version.
//!
//! A pool of pieces, each of the value's length, is made before anything is timed. A value is one piece of it with
//! a tag written over its first bytes:
//!
//! ```text
//! tag   = mix(mix(id + value_salt) + version)          64 bits; given the id, the version can be computed back
//! piece = reduce(mix(tag), pieces)                     which piece of the pool
//! value = pool[piece], its first bytes replaced:
//!         half, incompressible   tag, little endian    min(8, v) bytes
//!         text, json, prose      tag in hex            min(16, v) bytes
//! ramp    byte i is (id + i) mod 256, no tag           benchtool's value
//! ```
//!
//! Prose, and values above 64 MiB, have no pieces: they are read round and round from a ring of bytes, from a place that
//! the tag tells, so that memory stays bounded.
//!
//! A value too short for its whole tag cannot tell a version: there the version counts as 0.
//!
//! `pieces = clamp(1024 * v, 1 MiB, 64 MiB) / v`, at least 1. Words of random bytes are draws of the pool's stream,
//! little endian.

use super::{rng, text};
use serde::{Deserialize, Serialize};

/// What values are made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum ValueKind {
    /// Half random bytes, half a repeat of them, in the manner of db_bench.
    Half,
    /// Random bytes.
    Incompressible,
    /// benchtool's counting bytes; they compress twelve to one.
    Ramp,
    /// English-like words.
    Text,
    /// JSON-like records.
    Json,
    /// English prose of 1730: real text.
    Prose,
}

/// English prose: from Newton's Opticks, the edition of 1730, in ASCII.
static PROSE: &[u8; 131_072] = include_bytes!("../../assets/prose.txt");

/// Most bytes of a pool, and the longest value that is one piece of it.
const POOL_MAX: usize = 64 << 20;

/// Generates and checks values.
#[derive(Clone, Debug)]
pub struct Values {
    kind: ValueKind,
    len: usize,
    salt: u64,
    versioned: bool,
    pieces: u64,
    pool: Vec<u8>,
    /// Whether the pool is a ring of so many bytes a step, not a row of pieces.
    ring: Option<u64>,
}

impl ValueKind {
    /// Whether it is printable, its tag too.
    fn is_text(self) -> bool {
        matches!(self, ValueKind::Text | ValueKind::Json | ValueKind::Prose)
    }
}

/// What a value read turned out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Read {
    /// The value of the key at this version.
    Version(u64),
    /// A value of the key, from which the version cannot be told (ramp, or below 8 bytes).
    Unversioned,
    /// Not a value of this key.
    Wrong,
}

impl Values {
    /// Values of `len` bytes.
    pub fn new(kind: ValueKind, len: usize, seed: u64) -> Values {
        let ring = match kind {
            ValueKind::Prose => Some(1),
            ValueKind::Ramp => None,
            _ => (len > POOL_MAX).then_some(8),
        };
        let (whole, len) = (len, len.min(POOL_MAX));
        let pieces = ((1024 * len).clamp(1 << 20, POOL_MAX) / len.max(1)).max(1);
        let pool_seed = rng::stream(seed, 3);
        let mut pool = Vec::new();
        match kind {
            ValueKind::Ramp => pool.extend((0..whole + 256).map(|i| i as u8)),
            ValueKind::Prose => pool = PROSE.to_vec(),
            ValueKind::Incompressible => fill(&mut pool, pieces * len, pool_seed, &mut 0),
            ValueKind::Half => {
                let mut draw = 0;
                for _ in 0..pieces {
                    let start = pool.len();
                    let half = len.div_ceil(2);
                    fill(&mut pool, start + half, pool_seed, &mut draw);
                    pool.extend_from_within(start..start + len - half);
                }
            }
            ValueKind::Text => text::words(&mut pool, pieces * len, pool_seed),
            ValueKind::Json => text::json(&mut pool, pieces * len, pool_seed),
        }
        let versioned = kind != ValueKind::Ramp && whole >= if kind.is_text() { 16 } else { 8 };
        let pieces = pieces as u64;
        Values { kind, len: whole, salt: rng::stream(seed, 2), versioned, pieces, pool, ring }
    }

    /// Bytes of a value.
    #[expect(clippy::len_without_is_empty, reason = "a size, not a container")]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Bytes of memory held.
    pub fn memory(&self) -> usize {
        self.pool.capacity()
    }

    #[inline]
    fn tag(&self, id: u64, version: u64) -> u64 {
        let version = if self.versioned { version } else { 0 };
        rng::mix(rng::mix(id.wrapping_add(self.salt)).wrapping_add(version))
    }

    #[inline]
    fn piece(&self, tag: u64) -> &[u8] {
        let i = rng::reduce(rng::mix(tag), self.pieces) as usize * self.len;
        &self.pool[i..i + self.len]
    }

    /// Writes the tag as this kind does; returns how many bytes of `out` it took.
    #[inline]
    fn put_tag(&self, tag: u64, out: &mut [u8; 16]) -> usize {
        if self.kind.is_text() {
            super::keys::hex(tag, out);
            self.len.min(16)
        } else {
            out[..8].copy_from_slice(&tag.to_le_bytes());
            self.len.min(8)
        }
    }

    /// Where in the ring the value with this tag begins.
    fn ring_start(&self, tag: u64, step: u64) -> usize {
        (step * rng::reduce(rng::mix(tag), self.pool.len() as u64 / step)) as usize
    }

    /// The stretches of a ring that make up the value with this tag, in order.
    fn stretches(&self, tag: u64, step: u64) -> impl Iterator<Item = &[u8]> {
        let mut at = self.ring_start(tag, step);
        let mut left = self.len;
        std::iter::from_fn(move || {
            let n = left.min(self.pool.len() - at);
            let stretch = &self.pool[at..at + n];
            (at, left) = (0, left - n);
            (n > 0).then_some(stretch)
        })
    }

    /// Writes the value of `id` at `version` into `out`, which has `len` bytes.
    #[inline]
    pub fn fill(&self, id: u64, version: u64, out: &mut [u8]) {
        if self.kind == ValueKind::Ramp {
            let i = (id % 256) as usize;
            out.copy_from_slice(&self.pool[i..i + self.len]);
            return;
        }
        let tag = self.tag(id, version);
        match self.ring {
            None => out.copy_from_slice(self.piece(tag)),
            Some(step) => {
                let mut at = 0;
                for stretch in self.stretches(tag, step) {
                    out[at..at + stretch.len()].copy_from_slice(stretch);
                    at += stretch.len();
                }
            }
        }
        let mut head = [0; 16];
        let n = self.put_tag(tag, &mut head);
        out[..n].copy_from_slice(&head[..n]);
    }

    /// Whether `value` is the value of `id` at `version`.
    #[inline]
    pub fn is(&self, id: u64, version: u64, value: &[u8]) -> bool {
        if self.kind == ValueKind::Ramp {
            let i = (id % 256) as usize;
            return value == &self.pool[i..i + self.len];
        }
        let tag = self.tag(id, version);
        let mut head = [0; 16];
        let n = self.put_tag(tag, &mut head);
        if value.len() != self.len || value[..n] != head[..n] {
            return false;
        }
        let Some(step) = self.ring else { return value[n..] == self.piece(tag)[n..] };
        let mut at = 0;
        self.stretches(tag, step).all(|stretch| {
            let skip = n.saturating_sub(at).min(stretch.len());
            let same = value[at + skip..at + stretch.len()] == stretch[skip..];
            at += stretch.len();
            same
        })
    }

    /// The [`digest`](super::digest) of the first value of `id`.
    pub fn digest(&self, id: u64) -> u64 {
        if self.kind == ValueKind::Ramp || self.len < 24 {
            let mut value = vec![0; self.len];
            self.fill(id, 0, &mut value);
            return super::digest(&value);
        }
        // The ends are all that it takes, and the tag is within the first sixteen bytes.
        let tag = self.tag(id, 0);
        let mut head = [0; 16];
        self.put_tag(tag, &mut head);
        let mut last = [0; 8];
        match self.ring {
            None => last.copy_from_slice(&self.piece(tag)[self.len - 8..]),
            Some(step) => {
                let at = self.ring_start(tag, step) + self.len - 8;
                for (i, byte) in last.iter_mut().enumerate() {
                    *byte = self.pool[(at + i) % self.pool.len()];
                }
            }
        }
        super::digest::of_ends(super::digest::first(&head), u64::from_le_bytes(last), self.len)
    }

    /// What `value` is to the key `id`.
    pub fn read(&self, id: u64, value: &[u8]) -> Read {
        if !self.versioned {
            return if self.is(id, 0, value) { Read::Unversioned } else { Read::Wrong };
        }
        let tag = if self.kind.is_text() {
            value.get(..16).and_then(super::keys::unhex)
        } else {
            value.first_chunk().map(|b| u64::from_le_bytes(*b))
        };
        let Some(tag) = tag else { return Read::Wrong };
        let version = rng::unmix(tag).wrapping_sub(rng::mix(id.wrapping_add(self.salt)));
        if self.is(id, version, value) { Read::Version(version) } else { Read::Wrong }
    }
}

/// Random bytes up to a length of `to`.
fn fill(out: &mut Vec<u8>, to: usize, seed: u64, draw: &mut u64) {
    while out.len() < to {
        let word = rng::at(seed, *draw).to_le_bytes();
        *draw += 1;
        out.extend_from_slice(&word[..(to - out.len()).min(8)]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [ValueKind; 6] = [
        ValueKind::Half,
        ValueKind::Incompressible,
        ValueKind::Ramp,
        ValueKind::Text,
        ValueKind::Json,
        ValueKind::Prose,
    ];

    #[test]
    fn a_value_is_itself_and_nothing_else() {
        for kind in ALL {
            for len in [1, 7, 8, 15, 16, 24, 100, 1000, 200_000] {
                if len > 1000 && kind != ValueKind::Prose {
                    continue;
                }
                let values = Values::new(kind, len, 42);
                let mut value = vec![0; len];
                for id in 0..50 {
                    values.fill(id, 3, &mut value);
                    assert!(values.is(id, 3, &value), "{kind:?} {len}");
                    let mut other = value.clone();
                    other[len - 1] ^= 1;
                    assert!(!values.is(id, 3, &other), "{kind:?} {len}");
                    // A value of nothing but a tag always tells a version: one that nobody wrote.
                    let read = values.read(id, &other);
                    assert!(
                        read == Read::Wrong || matches!(read, Read::Version(v) if len <= 16 && v > 1 << 40)
                    );
                    assert_eq!(
                        values.read(id, &value),
                        if values.versioned { Read::Version(3) } else { Read::Unversioned }
                    );
                    if values.versioned {
                        assert!(!values.is(id, 2, &value));
                        assert!(!matches!(values.read(id + 1, &value), Read::Version(v) if v < 1 << 40));
                    }
                    assert!(!values.is(id, 3, &value[1..]));
                    values.fill(id, 0, &mut value);
                    assert_eq!(values.digest(id), crate::workload::digest(&value), "{kind:?} {len}");
                }
            }
        }
    }

    #[test]
    fn text_is_text() {
        for kind in [ValueKind::Text, ValueKind::Json, ValueKind::Prose] {
            let values = Values::new(kind, 100, 42);
            let mut value = vec![0; 100];
            values.fill(9, 0, &mut value);
            assert!(value.iter().all(|b| (b' '..=b'~').contains(b) || *b == b'\n'));
        }
    }

    #[test]
    fn half_repeats_itself() {
        let values = Values::new(ValueKind::Half, 100, 42);
        let mut value = vec![0; 100];
        values.fill(9, 0, &mut value);
        assert_eq!(value[8..50], value[58..100]);
    }

    #[test]
    fn vectors() {
        let values = Values::new(ValueKind::Half, 24, 42);
        let mut value = vec![0; 24];
        values.fill(1, 0, &mut value);
        let expected = rng::mix(rng::mix(1u64.wrapping_add(rng::stream(42, 2))));
        assert_eq!(value[..8], expected.to_le_bytes());
    }
}
