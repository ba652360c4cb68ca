//! A binary fuse filter with 8-bit fingerprints: 9 bits per key for 0.4 % false positives (Graf and Lemire, "Binary
//! Fuse Filters: Fast and Smaller Than Xor Filters", 2022).
//!
//! Each key has three places in three neighbouring segments; the bytes there, xored, give its fingerprint.
//! Construction peels: it repeatedly takes a place that only one key uses, until no key is left, and then sets the
//! bytes in the opposite order. If it gets stuck another seed is tried.

use super::super::prefetch;

const ATTEMPTS: u32 = 100;

/// A binary fuse filter.
pub(in super::super) struct Fuse8 {
    seed: u64,
    segment_len: u32,
    /// How many segments a key's first place may lie in; the array has two more.
    segments: u32,
    fingerprints: Box<[u8]>,
}

#[inline]
fn mix(hash: u64, seed: u64) -> u64 {
    let mut h = hash.wrapping_add(seed);
    h = (h ^ (h >> 33)).wrapping_mul(0xFF51_AFD7_ED55_8CCD);
    h = (h ^ (h >> 33)).wrapping_mul(0xC4CE_B9FE_1A85_EC53);
    h ^ (h >> 33)
}

#[inline]
fn fingerprint(mixed: u64) -> u8 {
    (mixed ^ (mixed >> 32)) as u8
}

#[inline]
fn places(mixed: u64, segment_len: u32, segments: u32) -> [usize; 3] {
    let span = u64::from(segments) * u64::from(segment_len);
    let first = ((u128::from(mixed) * u128::from(span)) >> 64) as usize;
    let (segment, mask) = (segment_len as usize, segment_len as usize - 1);
    [
        first,
        (first + segment) ^ ((mixed >> 18) as usize & mask),
        (first + 2 * segment) ^ (mixed as usize & mask),
    ]
}

impl Fuse8 {
    /// A filter over those hashes; sorts them and drops duplicates. `None` if no seed works.
    pub(super) fn build(hashes: &mut Vec<u64>) -> Option<Fuse8> {
        hashes.sort_unstable();
        hashes.dedup();
        let n = hashes.len();
        if n > 1 << 30 {
            return None;
        }
        let size = (n.max(2)) as f64;
        let segment_len = 1u32 << ((size.ln() / 3.33f64.ln() + 2.25) as u32).min(18);
        let factor = (0.875 + 0.25 * 1e6f64.ln() / size.ln()).max(1.125);
        let capacity = if n <= 1 { 0 } else { (size * factor).round() as u32 };
        let segments = capacity.div_ceil(segment_len).saturating_sub(2).max(1);
        let array_len = (segments + 2) as usize * segment_len as usize;

        let mut seed = 0x726B_2B9D_438B_9D4Du64;
        // Per place: how many keys use it, and the xor of their hashes (and so the hash, when it is one).
        let mut counts = vec![0u8; array_len];
        let mut sums = vec![0u64; array_len];
        let mut order: Vec<(u64, u32)> = Vec::with_capacity(n);
        let mut single: Vec<u32> = Vec::with_capacity(array_len);
        for _ in 0..ATTEMPTS {
            seed = mix(seed, 0x9E37_79B9_7F4A_7C15);
            counts.fill(0);
            sums.fill(0);
            order.clear();
            single.clear();
            // First places grow with the mixed hash, so going through the keys by its top bits keeps the three
            // places near in the cache.
            let mut overflow = false;
            let mut add = |mixed: u64| {
                for place in places(mixed, segment_len, segments) {
                    overflow |= counts[place] == u8::MAX;
                    counts[place] = counts[place].wrapping_add(1);
                    sums[place] ^= mixed;
                }
            };
            if n < 1 << 16 {
                hashes.iter().for_each(|&hash| add(mix(hash, seed)));
            } else {
                by_top_bits(hashes, seed).into_iter().for_each(&mut add);
            }
            if overflow {
                continue;
            }
            single.extend((0..array_len as u32).filter(|&place| counts[place as usize] == 1));
            while let Some(place) = single.pop() {
                if counts[place as usize] != 1 {
                    continue;
                }
                let mixed = sums[place as usize];
                order.push((mixed, place));
                for other in places(mixed, segment_len, segments) {
                    counts[other] -= 1;
                    sums[other] ^= mixed;
                    if counts[other] == 1 {
                        single.push(other as u32);
                    }
                }
            }
            if order.len() != n {
                continue;
            }
            let mut fingerprints = vec![0u8; array_len].into_boxed_slice();
            for &(mixed, place) in order.iter().rev() {
                let others =
                    places(mixed, segment_len, segments).into_iter().filter(|&p| p != place as usize);
                fingerprints[place as usize] = others.fold(fingerprint(mixed), |f, p| f ^ fingerprints[p]);
            }
            return Some(Fuse8 { seed, segment_len, segments, fingerprints });
        }
        None
    }

    /// The filter with these parts, or `None` if it cannot be one.
    pub(super) fn from_parts(seed: u64, segment_len: u32, segments: u32, bytes: &[u8]) -> Option<Fuse8> {
        let expected = (u64::from(segments) + 2) * u64::from(segment_len);
        let valid = segment_len.is_power_of_two()
            && segment_len <= 1 << 18
            && segments >= 1
            && expected == bytes.len() as u64;
        valid.then(|| Fuse8 { seed, segment_len, segments, fingerprints: bytes.into() })
    }

    pub(super) fn seed(&self) -> u64 {
        self.seed
    }

    pub(super) fn segment_len(&self) -> u32 {
        self.segment_len
    }

    pub(super) fn segments(&self) -> u32 {
        self.segments
    }

    pub(super) fn fingerprints(&self) -> &[u8] {
        &self.fingerprints
    }

    #[inline]
    pub(super) fn prefetch(&self, hash: u64) {
        for place in places(mix(hash, self.seed), self.segment_len, self.segments) {
            prefetch(&raw const self.fingerprints[place]);
        }
    }

    #[inline]
    pub(super) fn may_contain(&self, hash: u64) -> bool {
        let mixed = mix(hash, self.seed);
        let [a, b, c] = places(mixed, self.segment_len, self.segments);
        fingerprint(mixed) == self.fingerprints[a] ^ self.fingerprints[b] ^ self.fingerprints[c]
    }
}

/// The mixed hashes, roughly ordered: by their top 10 bits.
fn by_top_bits(hashes: &[u64], seed: u64) -> Vec<u64> {
    const BITS: u32 = 10;
    let mut starts = [0usize; (1 << BITS) + 1];
    for &hash in hashes {
        starts[(mix(hash, seed) >> (64 - BITS)) as usize + 1] += 1;
    }
    for i in 1..starts.len() {
        starts[i] += starts[i - 1];
    }
    let mut sorted = vec![0; hashes.len()];
    for &hash in hashes {
        let mixed = mix(hash, seed);
        let start = &mut starts[(mixed >> (64 - BITS)) as usize];
        sorted[*start] = mixed;
        *start += 1;
    }
    sorted
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::checksum::key_hash;

    #[test]
    fn no_key_is_denied_and_few_strangers_pass() {
        for n in [0u64, 1, 2, 3, 10, 100, 1_000, 30_000, 200_000] {
            let mut hashes: Vec<u64> = (0..n).map(|i| key_hash(&i.to_be_bytes())).collect();
            let fuse = Fuse8::build(&mut hashes).unwrap();
            assert!(hashes.iter().all(|&h| fuse.may_contain(h)), "{n}");
            let strangers = 100_000u64;
            let passed =
                (0..strangers).filter(|i| fuse.may_contain(key_hash(&(i + (1 << 40)).to_be_bytes()))).count();
            assert!((passed as f64) < strangers as f64 * 0.006, "{n}: {passed}");
            if n >= 30_000 {
                assert!(fuse.fingerprints().len() as f64 * 8.0 / (n as f64) < 10.5, "{n}");
            }
        }
    }

    #[test]
    fn duplicate_hashes_are_one_key() {
        let mut hashes = vec![5; 1000];
        hashes.extend(0..1000);
        let fuse = Fuse8::build(&mut hashes).unwrap();
        assert!((0..1000).all(|h| fuse.may_contain(h)));
    }

    #[test]
    fn malformed_parts_are_refused() {
        assert!(Fuse8::from_parts(1, 3, 1, &[0; 9]).is_none());
        assert!(Fuse8::from_parts(1, 0, 1, &[]).is_none());
        assert!(Fuse8::from_parts(1, 4, 0, &[0; 8]).is_none());
        assert!(Fuse8::from_parts(1, 4, u32::MAX, &[0; 8]).is_none());
        assert!(Fuse8::from_parts(1, 4, 1, &[0; 12]).is_some());
    }
}
