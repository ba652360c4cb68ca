//! The checksum of every file format here: XXH3, 64 bits, seeded with where the bytes belong.

/// The checksum of `bytes` that belong at `place`: the seed makes a piece that was put elsewhere not match.
#[inline]
pub(crate) fn checksum(bytes: &[u8], place: u64) -> u64 {
    xxhash_rust::xxh3::xxh3_64_with_seed(bytes, place)
}

/// Mixes a file's identity and an offset in it into one `place`.
#[inline]
pub(crate) fn place(file: u64, offset: u64) -> u64 {
    (file.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ offset).wrapping_mul(0xD6E8_FEB8_6659_FD93) ^ (file << 32)
}

/// The hash of a user key, for filters: one function everywhere, so that it is computed once per read.
#[inline]
pub(crate) fn key_hash(key: &[u8]) -> u64 {
    xxhash_rust::xxh3::xxh3_64(key)
}
