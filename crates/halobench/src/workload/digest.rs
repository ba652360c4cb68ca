//! A digest of the values that were read: a sum, so that neither order nor threads matter, and cheap enough for the
//! timed loops.

use super::rng;

/// The first eight bytes, or all of them and zeros.
#[inline]
pub(super) fn first(value: &[u8]) -> u64 {
    match value.first_chunk() {
        Some(bytes) => u64::from_le_bytes(*bytes),
        None => value.iter().rev().fold(0, |word, &b| word << 8 | u64::from(b)),
    }
}

/// The digest of one value, to be added (with wrapping) to others'.
#[inline]
pub fn digest(value: &[u8]) -> u64 {
    let first = first(value);
    let last = value.last_chunk().map_or(first, |bytes| u64::from_le_bytes(*bytes));
    of_ends(first, last, value.len())
}

/// The digest of a value of `len` bytes with these ends.
#[inline]
pub(super) fn of_ends(first: u64, last: u64, len: usize) -> u64 {
    rng::mix(first.wrapping_add(rng::mix(last)).wrapping_add(len as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_and_length_count() {
        let value: Vec<u8> = (0..100).collect();
        let all = digest(&value);
        for at in [0, 7, 92, 99] {
            let mut other = value.clone();
            other[at] ^= 1;
            assert_ne!(digest(&other), all);
        }
        assert_ne!(digest(&value[..99]), all);
        assert_ne!(digest(b"ab"), digest(b"ab\0"));
        assert_eq!(digest(b""), 0);
    }
}
