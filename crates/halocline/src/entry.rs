//! An entry: one write, as it lies in the log and as the memtable points to it.
//!
//! ```text
//! tag        u8      kind in the low 4 bits, the high bits are zero; a whole tag of 0 ends a record
//! key_len    varint  bytes of the internal key (LEB128, at most 3 bytes)
//! value_len  varint  bytes of the value (LEB128, at most 5 bytes); for every kind, 0 for a delete
//! expiry     u64     only for `PutTtl`: milliseconds since 1970, little-endian
//! key        [u8]    the internal key: the column family's prefix, then the user's key
//! value      [u8]
//! ```
//!
//! An **internal key** is `prefix(column family id) ++ user key`, compared as bytes. The prefix is one byte for
//! ids below 255, else `0xFF` and the id as a big-endian u32, so families sort by id and no prefix begins another.
//!
//! The version of an entry is its log address; it is not stored.

/// What an entry does to its key. Values are part of the file formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub(crate) enum Kind {
    /// The key has this value.
    Put = 1,
    /// The key is gone.
    Delete = 2,
    /// The key has this value until a time. Reserved: refused as unsupported.
    PutTtl = 3,
    /// An operand for a merge operator. Reserved.
    Merge = 4,
    /// All keys from the key up to the value are gone. Reserved.
    RangeDelete = 5,
    /// The value is a pointer to a large-value segment. Reserved.
    LargeValue = 6,
}

impl Kind {
    /// The kind of that number, if there is one.
    pub(crate) fn from_u8(n: u8) -> Option<Kind> {
        Some(match n {
            1 => Kind::Put,
            2 => Kind::Delete,
            3 => Kind::PutTtl,
            4 => Kind::Merge,
            5 => Kind::RangeDelete,
            6 => Kind::LargeValue,
            _ => return None,
        })
    }
}

/// Longest user key, in bytes.
pub(crate) const MAX_KEY: usize = 64 << 10;
/// Longest value, in bytes.
pub(crate) const MAX_VALUE: usize = 1 << 30;
/// Longest column family prefix, in bytes.
pub(crate) const MAX_PREFIX: usize = 5;

/// The prefix of a column family's keys.
#[derive(Clone, Copy)]
pub(crate) struct Prefix {
    bytes: [u8; MAX_PREFIX],
    len: u8,
}

impl Prefix {
    /// The prefix for column family `id`.
    pub(crate) fn of(id: u32) -> Prefix {
        let mut bytes = [0; MAX_PREFIX];
        if id < 255 {
            bytes[0] = id as u8;
            Prefix { bytes, len: 1 }
        } else {
            bytes[0] = 0xFF;
            bytes[1..].copy_from_slice(&id.to_be_bytes());
            Prefix { bytes, len: 5 }
        }
    }

    /// The prefix's bytes.
    pub(crate) fn as_slice(&self) -> &[u8] {
        &self.bytes[..self.len as usize]
    }

    /// Splits an internal key into its column family and the user's key.
    pub(crate) fn split(internal: &[u8]) -> Option<(u32, &[u8])> {
        match internal.split_first()? {
            (0xFF, rest) => {
                let (id, key) = rest.split_first_chunk::<4>()?;
                Some((u32::from_be_bytes(*id), key))
            }
            (&id, key) => Some((u32::from(id), key)),
        }
    }
}

/// A decoded entry: slices into the memory it was decoded from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry<'a> {
    pub(crate) kind: Kind,
    /// The internal key.
    pub(crate) key: &'a [u8],
    /// The value; empty for a deletion.
    pub(crate) value: &'a [u8],
    /// Bytes of the whole entry.
    pub(crate) len: usize,
}

/// Bytes an entry of these lengths takes.
pub(crate) fn encoded_len(key_len: usize, value_len: usize) -> usize {
    1 + varint_len(key_len as u32) + varint_len(value_len as u32) + key_len + value_len
}

fn varint_len(n: u32) -> usize {
    match n {
        0..=0x7F => 1,
        0x80..=0x3FFF => 2,
        0x4000..=0x1F_FFFF => 3,
        0x20_0000..=0xFFF_FFFF => 4,
        _ => 5,
    }
}

/// Writes `n` as a varint at `out[at..]` and returns the offset behind it.
fn put_varint(out: &mut [u8], mut at: usize, mut n: u32) -> usize {
    while n >= 0x80 {
        out[at] = n as u8 | 0x80;
        at += 1;
        n >>= 7;
    }
    out[at] = n as u8;
    at + 1
}

fn varint(bytes: &[u8], mut at: usize) -> Option<(u32, usize)> {
    let first = *bytes.get(at)?;
    if first < 0x80 {
        return Some((u32::from(first), at + 1));
    }
    let mut n = u32::from(first & 0x7F);
    for shift in [7, 14, 21, 28] {
        at += 1;
        let byte = *bytes.get(at)?;
        if shift == 28 && byte > 0x0F {
            return None;
        }
        n |= u32::from(byte & 0x7F) << shift;
        if byte < 0x80 {
            return Some((n, at + 1));
        }
    }
    None
}

/// Encodes an entry at the start of `out`, which must have room, and returns its length. The key is given in
/// two parts so that a column family's prefix and the user's key need no joining first.
pub(crate) fn encode(out: &mut [u8], kind: Kind, prefix: &[u8], key: &[u8], value: &[u8]) -> usize {
    out[0] = kind as u8;
    let at = put_varint(out, 1, (prefix.len() + key.len()) as u32);
    let at = put_varint(out, at, value.len() as u32);
    out[at..at + prefix.len()].copy_from_slice(prefix);
    let at = at + prefix.len();
    out[at..at + key.len()].copy_from_slice(key);
    let at = at + key.len();
    out[at..at + value.len()].copy_from_slice(value);
    at + value.len()
}

/// Appends an entry to `out`.
pub(crate) fn append(out: &mut Vec<u8>, kind: Kind, prefix: &[u8], key: &[u8], value: &[u8]) {
    let mut head = [0; 11];
    head[0] = kind as u8;
    let at = put_varint(&mut head, 1, (prefix.len() + key.len()) as u32);
    let at = put_varint(&mut head, at, value.len() as u32);
    out.extend_from_slice(&head[..at]);
    out.extend_from_slice(prefix);
    out.extend_from_slice(key);
    out.extend_from_slice(value);
}

/// Decodes the entry at the start of `bytes`; `None` if it is malformed, cut short or of a kind that is not known.
/// Never panics, whatever the bytes.
#[inline]
pub(crate) fn decode(bytes: &[u8]) -> Option<Entry<'_>> {
    let kind = Kind::from_u8(*bytes.first()?)?;
    let (key_len, at) = varint(bytes, 1)?;
    let (value_len, mut at) = varint(bytes, at)?;
    if kind == Kind::PutTtl {
        at += 8;
    }
    let key_end = at.checked_add(key_len as usize)?;
    let end = key_end.checked_add(value_len as usize)?;
    if end > bytes.len() {
        return None;
    }
    Some(Entry { kind, key: bytes.get(at..key_end)?, value: bytes.get(key_end..end)?, len: end })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_survive_encoding() {
        for (key_len, value_len) in [(0, 0), (1, 0), (16, 100), (127, 128), (128, 127), (65_536, 70_000)] {
            let key = vec![7u8; key_len];
            let value = vec![9u8; value_len];
            let prefix = Prefix::of(3);
            let mut out = vec![0u8; encoded_len(key_len + 1, value_len)];
            let n = encode(&mut out, Kind::Put, prefix.as_slice(), &key, &value);
            assert_eq!(n, out.len());
            let entry = decode(&out).unwrap();
            assert_eq!((entry.kind, entry.len), (Kind::Put, n));
            assert_eq!(out[n - value_len..n], value);
            assert_eq!(Prefix::split(entry.key), Some((3, &key[..])));
            for cut in [0, 1, n / 2, n - 1] {
                if cut < n {
                    assert!(decode(&out[..cut]).is_none());
                }
            }
        }
    }

    #[test]
    fn prefixes_sort_by_id_and_none_begins_another() {
        let ids = [0, 1, 253, 254, 255, 256, 70_000, u32::MAX];
        for pair in ids.windows(2) {
            let (a, b) = (Prefix::of(pair[0]), Prefix::of(pair[1]));
            assert!(a.as_slice() < b.as_slice());
            assert!(!b.as_slice().starts_with(a.as_slice()));
            assert_eq!(Prefix::split(b.as_slice()), Some((pair[1], &[][..])));
        }
    }

    #[test]
    fn damaged_entries_are_refused() {
        assert!(decode(&[]).is_none());
        assert!(decode(&[0]).is_none());
        assert!(decode(&[9, 1, 1, 1, 1]).is_none());
        assert!(decode(&[1, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0]).is_none());
        assert!(decode(&[1, 0xFF, 0xFF, 0xFF, 0xFF, 0x0F, 0]).is_none());
    }
}
