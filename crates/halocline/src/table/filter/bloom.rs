//! A blocked Bloom filter: all bits of a key lie in one 64-byte block, so that a question costs one cache miss
//! (Putze, Sanders, Singler, 2007). The price against a classic filter is about 1.5 bits per key.

use super::super::prefetch;

/// One cache line of bits.
#[repr(align(64))]
#[derive(Clone, Copy)]
struct Line([u64; 8]);

/// A blocked Bloom filter.
pub(in super::super) struct Bloom {
    probes: u8,
    lines: Box<[Line]>,
}

impl Bloom {
    /// A filter over those hashes with about that many bits for each.
    pub(super) fn build(hashes: &[u64], bits_per_key: u32) -> Bloom {
        let bits_per_key = bits_per_key.clamp(4, 32) as usize;
        let count = (hashes.len() * bits_per_key).div_ceil(512).max(1);
        // Blocks are unevenly full, so fewer probes than ln 2 x bits serve best.
        let probes = ((bits_per_key * 11 + 10) / 20).clamp(2, 12) as u8;
        let mut lines = vec![Line([0; 8]); count].into_boxed_slice();
        // Hashes come in key order, so blocks at random: have the next ones fetched while one is filled.
        const AHEAD: usize = 16;
        for (i, &hash) in hashes.iter().enumerate() {
            if let Some(&later) = hashes.get(i + AHEAD) {
                prefetch(&raw const lines[block_of(later, count)]);
            }
            let line = &mut lines[block_of(hash, count)].0;
            for_each_bit(hash, probes, |word, bit| {
                line[word] |= bit;
                true
            });
        }
        Bloom { probes, lines }
    }

    /// The filter with these blocks, or `None` if it cannot be one.
    pub(super) fn from_bytes(probes: u8, blocks: &[u8]) -> Option<Bloom> {
        let (blocks, rest) = blocks.as_chunks::<64>();
        if blocks.is_empty() || !rest.is_empty() || !(1..=16).contains(&probes) {
            return None;
        }
        let lines = blocks.iter().map(|block| {
            let (words, _) = block.as_chunks::<8>();
            let mut line = Line([0; 8]);
            for (word, bytes) in line.0.iter_mut().zip(words) {
                *word = u64::from_le_bytes(*bytes);
            }
            line
        });
        Some(Bloom { probes, lines: lines.collect() })
    }

    pub(super) fn probes(&self) -> u8 {
        self.probes
    }

    pub(super) fn blocks(&self) -> impl ExactSizeIterator<Item = &[u64; 8]> {
        self.lines.iter().map(|line| &line.0)
    }

    #[inline]
    pub(super) fn prefetch(&self, hash: u64) {
        prefetch(&raw const self.lines[block_of(hash, self.lines.len())]);
    }

    #[inline]
    pub(super) fn may_contain(&self, hash: u64) -> bool {
        let line = &self.lines[block_of(hash, self.lines.len())].0;
        for_each_bit(hash, self.probes, |word, bit| line[word] & bit != 0)
    }
}

/// The high half of `hash x blocks`: uniform, and always below `blocks`.
#[inline]
fn block_of(hash: u64, blocks: usize) -> usize {
    ((u128::from(hash) * blocks as u128) >> 64) as usize
}

/// Calls `f` with the word and bit of each probe until it says false; whether it never did. The block took the
/// hash's high bits; the bits come from what a multiplication makes of the low ones, seven numbers of 9 bits to
/// a product.
#[inline]
fn for_each_bit(hash: u64, probes: u8, mut f: impl FnMut(usize, u64) -> bool) -> bool {
    let mut state = hash;
    let mut left = probes;
    while left > 0 {
        state = (state ^ (state >> 32)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let mut numbers = state ^ (state >> 32);
        for _ in 0..left.min(7) {
            if !f(numbers as usize >> 6 & 7, 1 << (numbers & 63)) {
                return false;
            }
            numbers >>= 9;
        }
        left = left.saturating_sub(7);
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::checksum::key_hash;

    #[test]
    fn no_key_is_denied_and_few_strangers_pass() {
        for (bits, bound) in [(8, 0.04), (10, 0.018), (12, 0.009), (16, 0.003)] {
            let hashes: Vec<u64> = (0..100_000u64).map(|i| key_hash(&i.to_be_bytes())).collect();
            let bloom = Bloom::build(&hashes, bits);
            assert!(hashes.iter().all(|&h| bloom.may_contain(h)));
            let strangers = 200_000u64;
            let passed = (0..strangers)
                .filter(|i| bloom.may_contain(key_hash(&(i + (1 << 40)).to_be_bytes())))
                .count();
            let rate = passed as f64 / strangers as f64;
            assert!(rate < bound, "{bits} bits: {rate}");
        }
    }

    #[test]
    fn one_key_and_none() {
        let bloom = Bloom::build(&[], 12);
        assert_eq!(bloom.blocks().len(), 1);
        assert!(!bloom.may_contain(77));
        assert!(Bloom::build(&[u64::MAX], 12).may_contain(u64::MAX));
    }

    #[test]
    fn malformed_bytes_are_refused() {
        assert!(Bloom::from_bytes(6, &[]).is_none());
        assert!(Bloom::from_bytes(6, &[0; 65]).is_none());
        assert!(Bloom::from_bytes(0, &[0; 64]).is_none());
        assert!(Bloom::from_bytes(6, &[0; 128]).is_some());
    }
}
