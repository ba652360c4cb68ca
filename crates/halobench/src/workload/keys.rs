//! Key ids and their bytes.
//!
//! A data set has the ids `0..n`. An encoding maps an id to `k` bytes, and back, so that a scan can be checked
//! entry by entry without a table of the keys.
//!
//! ```text
//! ordered    hex(id)                        sequential and reverse writes; byte order is id order
//! hashed     hex(mix(id + salt))            random, uniform, zipfian: ids in order are keys at random
//! timestamp  hex(base + id * 1000 + jitter) microseconds, one event a millisecond, jitter below 1000
//! uuid       16 bytes of a version 4 UUID; with k >= 36 its text form, padded with '0' behind it
//! compat     hex(byte_reverse(id))          the "random" of benchtool: a byte-reversed counter
//!
//! hex(x): 16 lower-case digits; left-padded with '0' to k if k > 16; if k < 16, ordered: the low k digits,
//!         the others: the 8 bytes of x, big endian, left-padded with '0' to k
//! ```

use super::rng;
use serde::{Deserialize, Serialize};

/// How ids become bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Encoding {
    /// The id, in order.
    Ordered,
    /// A bijective hash of the id.
    Hashed,
    /// Microseconds since 1970, a millisecond apart.
    Timestamp,
    /// A version 4 UUID.
    Uuid,
    /// benchtool's byte-reversed counter.
    Compat,
}

/// The first timestamp, in microseconds: 2023-11-14T22:13:20Z.
const TIMESTAMP_BASE: u64 = 1_700_000_000_000_000;
const VERSION_MASK: u64 = 0xF000;
const VARIANT_MASK: u64 = 0xC000_0000_0000_0000;

/// An encoding with its size and salt.
#[derive(Clone, Copy, Debug)]
pub struct Keys {
    encoding: Encoding,
    len: usize,
    salt: u64,
}

impl Keys {
    /// Keys of `len` bytes. Fails, in words, where `len` cannot hold every id below `n`.
    pub fn new(encoding: Encoding, len: usize, n: u64, seed: u64) -> Result<Keys, String> {
        let least = match encoding {
            Encoding::Ordered => 16 - (n.max(1).leading_zeros() as usize / 4),
            Encoding::Uuid => 16,
            _ => 8,
        };
        if len < least || len > 511 {
            return Err(format!("keys of {len} bytes: this pattern needs {least} to 511 bytes"));
        }
        Ok(Keys { encoding, len, salt: rng::stream(seed, 1) })
    }

    /// Bytes of a key.
    #[expect(clippy::len_without_is_empty, reason = "a size, not a container")]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Writes the key of `id` into `out`, which has `len` bytes.
    #[inline]
    pub fn encode(&self, id: u64, out: &mut [u8]) {
        match self.encoding {
            Encoding::Ordered => hex_padded(id, out),
            Encoding::Hashed => whole(rng::mix(id.wrapping_add(self.salt)), out),
            Encoding::Timestamp => whole(self.timestamp(id), out),
            Encoding::Compat => whole(id.swap_bytes(), out),
            Encoding::Uuid => self.encode_uuid(id, out),
        }
    }

    /// The id whose key this is, if it is one. The id may lie outside the data set.
    #[inline]
    pub fn decode(&self, key: &[u8]) -> Option<u64> {
        if key.len() != self.len {
            return None;
        }
        match self.encoding {
            Encoding::Ordered => unhex_padded(key),
            Encoding::Hashed => Some(rng::unmix(read_whole(key)?).wrapping_sub(self.salt)),
            Encoding::Timestamp => {
                let t = read_whole(key)?;
                let id = t.checked_sub(TIMESTAMP_BASE)? / 1000;
                (self.timestamp(id) == t).then_some(id)
            }
            Encoding::Compat => Some(read_whole(key)?.swap_bytes()),
            Encoding::Uuid => self.decode_uuid(key),
        }
    }

    /// Whether ids in order are keys in order.
    pub fn in_order(&self) -> bool {
        matches!(self.encoding, Encoding::Ordered | Encoding::Timestamp)
    }

    /// A number that orders ids as their keys are ordered (for UUIDs, by their first half).
    pub fn sort_key(&self, id: u64) -> u64 {
        match self.encoding {
            Encoding::Ordered => id,
            Encoding::Hashed => rng::mix(id.wrapping_add(self.salt)),
            Encoding::Timestamp => self.timestamp(id),
            Encoding::Uuid => (u128::from_be_bytes(self.uuid(id)) >> 64) as u64,
            Encoding::Compat => id.swap_bytes(),
        }
    }

    fn timestamp(&self, id: u64) -> u64 {
        TIMESTAMP_BASE + id * 1000 + rng::reduce(rng::at(self.salt, id), 1000)
    }

    fn uuid(&self, id: u64) -> [u8; 16] {
        let hi = (rng::mix(id.wrapping_add(self.salt)) & !VERSION_MASK) | 0x4000;
        let lo = (rng::mix(id ^ self.salt) & !VARIANT_MASK) | 0x8000_0000_0000_0000;
        (u128::from(hi) << 64 | u128::from(lo)).to_be_bytes()
    }

    fn encode_uuid(&self, id: u64, out: &mut [u8]) {
        let uuid = self.uuid(id);
        if out.len() < 36 {
            out[..16].copy_from_slice(&uuid);
            out[16..].fill(b'0');
            return;
        }
        let mut at = 0;
        for (i, byte) in uuid.into_iter().enumerate() {
            if matches!(i, 4 | 6 | 8 | 10) {
                out[at] = b'-';
                at += 1;
            }
            out[at] = HEX[usize::from(byte >> 4)];
            out[at + 1] = HEX[usize::from(byte & 15)];
            at += 2;
        }
        out[36..].fill(b'0');
    }

    fn decode_uuid(&self, key: &[u8]) -> Option<u64> {
        let uuid: [u8; 16] = if key.len() < 36 {
            key[..16].try_into().ok()?
        } else {
            let mut digits = [0u8; 32];
            let mut from = key[..36].iter().filter(|&&b| b != b'-');
            for d in &mut digits {
                *d = *from.next()?;
            }
            let (hi, lo) = digits.split_at(16);
            (u128::from(unhex(hi)?) << 64 | u128::from(unhex(lo)?)).to_be_bytes()
        };
        // The variant's two bits replaced two bits of the low half's hash: try the four.
        let lo = u128::from_be_bytes(uuid) as u64;
        (0..4u64)
            .map(|top| rng::unmix((lo & !VARIANT_MASK) | top << 62) ^ self.salt)
            .find(|&id| id < 1 << 32 && self.uuid(id) == uuid)
    }
}

const HEX: &[u8; 16] = b"0123456789abcdef";

/// 16 hex digits of `x`, eight at a time in a register.
#[inline]
pub(super) fn hex(x: u64, out: &mut [u8; 16]) {
    #[inline]
    fn eight(x: u32) -> [u8; 8] {
        // Spread the nibbles to bytes, then add '0', and 39 more where the nibble is above 9.
        let mut n = u64::from(x);
        n = (n | n << 16) & 0x0000_FFFF_0000_FFFF;
        n = (n | n << 8) & 0x00FF_00FF_00FF_00FF;
        n = (n | n << 4) & 0x0F0F_0F0F_0F0F_0F0F;
        let above_9 = ((n + 0x0606_0606_0606_0606) >> 4) & 0x0101_0101_0101_0101;
        (n + 0x3030_3030_3030_3030 + above_9 * 39).to_be_bytes()
    }
    out[..8].copy_from_slice(&eight((x >> 32) as u32));
    out[8..].copy_from_slice(&eight(x as u32));
}

#[inline]
fn hex_padded(x: u64, out: &mut [u8]) {
    let mut digits = [0; 16];
    hex(x, &mut digits);
    let n = out.len();
    if n == 16 {
        out.copy_from_slice(&digits);
    } else if n > 16 {
        out[..n - 16].fill(b'0');
        out[n - 16..].copy_from_slice(&digits);
    } else {
        out.copy_from_slice(&digits[16 - n..]);
    }
}

/// All 64 bits of `x`, in digits or, where these do not fit, in bytes.
#[inline]
fn whole(x: u64, out: &mut [u8]) {
    if out.len() >= 16 {
        return hex_padded(x, out);
    }
    let pad = out.len() - 8;
    out[..pad].fill(b'0');
    out[pad..].copy_from_slice(&x.to_be_bytes());
}

#[inline]
fn read_whole(key: &[u8]) -> Option<u64> {
    if key.len() >= 16 {
        return unhex_padded(key);
    }
    let (pad, bytes) = key.split_last_chunk()?;
    pad.iter().all(|&b| b == b'0').then(|| u64::from_be_bytes(*bytes))
}

#[inline]
pub(super) fn unhex(digits: &[u8]) -> Option<u64> {
    let mut x = 0u64;
    for &b in digits {
        let nibble = match b {
            b'0'..=b'9' => b - b'0',
            b'a'..=b'f' => b - b'a' + 10,
            _ => return None,
        };
        x = x << 4 | u64::from(nibble);
    }
    Some(x)
}

#[inline]
fn unhex_padded(key: &[u8]) -> Option<u64> {
    let pad = key.len().saturating_sub(16);
    if key[..pad].iter().any(|&b| b != b'0') {
        return None;
    }
    unhex(&key[pad..])
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Encoding; 5] =
        [Encoding::Ordered, Encoding::Hashed, Encoding::Timestamp, Encoding::Uuid, Encoding::Compat];

    #[test]
    fn every_key_decodes_to_its_id() {
        for e in ALL {
            for len in [8, 9, 15, 16, 20, 36, 40, 511] {
                if e == Encoding::Uuid && len < 16 {
                    continue;
                }
                let keys = Keys::new(e, len, u64::from(u32::MAX), 42).unwrap();
                let mut key = vec![0; len];
                for id in (0..1000).chain([65_535, 10_000_000, u64::from(u32::MAX)]) {
                    keys.encode(id, &mut key);
                    assert_eq!(keys.decode(&key), Some(id), "{e:?} {len} {id}");
                }
            }
        }
    }

    #[test]
    fn foreign_keys_do_not_decode_into_the_set() {
        for e in ALL {
            let keys = Keys::new(e, 16, 1000, 42).unwrap();
            assert!(keys.decode(b"short").is_none());
            assert!(keys.decode(b"zzzzzzzzzzzzzzzz").is_none_or(|id| id >= 1000), "{e:?}");
        }
    }

    #[test]
    fn ordered_keys_are_in_order() {
        for e in [Encoding::Ordered, Encoding::Timestamp] {
            for len in [8, 12, 16] {
                let keys = Keys::new(e, len, 100_000, 42).unwrap();
                let (mut a, mut b) = (vec![0; len], vec![0; len]);
                for id in 0..1000 {
                    keys.encode(id, &mut a);
                    keys.encode(id + 1, &mut b);
                    assert!(a < b, "{e:?} {id}");
                }
            }
        }
    }

    #[test]
    fn short_keys_are_refused_where_they_would_collide() {
        assert!(Keys::new(Encoding::Ordered, 8, 1_000_000, 42).is_ok());
        assert!(Keys::new(Encoding::Ordered, 4, 1_000_000, 42).is_err());
        assert!(Keys::new(Encoding::Hashed, 8, 1000, 42).is_ok());
        assert!(Keys::new(Encoding::Hashed, 7, 1000, 42).is_err());
        assert!(Keys::new(Encoding::Uuid, 15, 1000, 42).is_err());
        assert!(Keys::new(Encoding::Hashed, 512, 1000, 42).is_err());
    }

    #[test]
    fn hex_agrees_with_format() {
        for j in 0..1000 {
            let x = rng::at(1, j);
            let mut out = [0; 16];
            hex(x, &mut out);
            assert_eq!(std::str::from_utf8(&out).unwrap(), format!("{x:016x}"));
        }
    }

    #[test]
    fn vectors() {
        let text = |e, len, id| {
            let mut key = vec![0; len];
            Keys::new(e, len, 1000, 42).unwrap().encode(id, &mut key);
            key
        };
        assert_eq!(text(Encoding::Ordered, 16, 255), b"00000000000000ff");
        assert_eq!(text(Encoding::Ordered, 20, 255), b"000000000000000000ff");
        assert_eq!(text(Encoding::Compat, 16, 1), b"0100000000000000");
        let uuid = String::from_utf8(text(Encoding::Uuid, 36, 0)).unwrap();
        assert_eq!((&uuid[14..15], &uuid[8..9]), ("4", "-"));
        assert!("89ab".contains(&uuid[19..20]));
    }
}
