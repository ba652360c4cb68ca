//! The entries a memtable points to, in the memory of its log segment.
//!
//! Every offset given to these functions is one that was given to `Memtable::insert`: the entry there is completely
//! written, well formed (encoded by this process or verified by checksum) and final. Only its own bytes are read,
//! since those behind it may be in the making by another thread.

use crate::entry::Kind;
use crate::io::Mapping;
use std::sync::Arc;

pub(super) struct Entries {
    memory: Arc<Mapping>,
    base: u64,
}

/// Where the parts of an entry lie in the memory.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub(super) tag: u8,
    pub(super) key: u32,
    pub(super) key_len: u32,
    pub(super) value_len: u32,
}

impl Place {
    pub(super) fn kind(self) -> Kind {
        // The tag was checked when the entry was inserted.
        Kind::from_u8(self.tag).expect("an inserted entry has a known kind")
    }

    #[inline]
    pub(super) fn value(self) -> usize {
        self.key as usize + self.key_len as usize
    }
}

impl Entries {
    pub(super) fn new(memory: Arc<Mapping>, base: u64) -> Entries {
        Entries { memory, base }
    }

    pub(super) fn memory(&self) -> &Arc<Mapping> {
        &self.memory
    }

    pub(super) fn base(&self) -> u64 {
        self.base
    }

    #[inline(always)]
    fn byte(&self, at: usize) -> u8 {
        debug_assert!(at < self.memory.len());
        // SAFETY: `at` lies in the header of an inserted entry (see the module), which `check` found to be within
        // the memory; its bytes are final.
        unsafe { *self.memory.as_ptr().add(at) }
    }

    /// The varint at `at`, and the offset behind it.
    #[inline(always)]
    fn varint(&self, mut at: usize) -> (u32, usize) {
        let first = self.byte(at);
        if first < 0x80 {
            return (u32::from(first), at + 1);
        }
        let mut n = u32::from(first & 0x7F);
        let mut shift = 7;
        loop {
            at += 1;
            let byte = self.byte(at);
            n |= u32::from(byte & 0x7F) << shift;
            if byte < 0x80 {
                return (n, at + 1);
            }
            shift += 7;
            debug_assert!(shift <= 28);
        }
    }

    /// Takes the entry's header apart.
    #[inline(always)]
    pub(super) fn place(&self, offset: u32) -> Place {
        let at = offset as usize;
        let tag = self.byte(at);
        let (key_len, at) = self.varint(at + 1);
        let (value_len, mut at) = self.varint(at);
        if tag == Kind::PutTtl as u8 {
            at += 8;
        }
        Place { tag, key: at as u32, key_len, value_len }
    }

    /// `place` of an entry that is about to be inserted: panics if it does not lie in the memory.
    #[inline]
    pub(super) fn check(&self, offset: u32) -> Place {
        // Three bytes are the least an entry has, and all that is read of most headers.
        assert!(offset as usize + 3 <= self.memory.len(), "an entry outside of the memory");
        let place = self.place(offset);
        assert!(
            place.value() + place.value_len as usize <= self.memory.len(),
            "an entry outside of the memory"
        );
        debug_assert!(Kind::from_u8(place.tag).is_some());
        place
    }

    #[inline(always)]
    pub(super) fn bytes(&self, at: usize, len: usize) -> &[u8] {
        debug_assert!(at + len <= self.memory.len());
        // SAFETY: part of an inserted entry, which `check` found to be within the memory; its bytes are final.
        unsafe { std::slice::from_raw_parts(self.memory.as_ptr().add(at), len) }
    }

    /// The internal key of the entry at `offset`.
    #[inline(always)]
    pub(super) fn key(&self, offset: u32) -> &[u8] {
        let place = self.place(offset);
        self.bytes(place.key as usize, place.key_len as usize)
    }

    /// Asks the processor for the first line of the entry at `offset`.
    #[inline(always)]
    pub(super) fn prefetch(&self, offset: u32) {
        // Only an address, never followed: it need not be in bounds.
        prefetch(self.memory.as_ptr().wrapping_add(offset as usize));
    }

    /// The same for the first two lines: most of what a scan reads of an entry.
    #[inline(always)]
    pub(super) fn prefetch_wide(&self, offset: u32) {
        self.prefetch(offset);
        self.prefetch_at(offset, 64);
    }

    /// Asks for the line that is `ahead` bytes behind the entry's first byte.
    #[inline(always)]
    pub(super) fn prefetch_at(&self, offset: u32, ahead: usize) {
        prefetch(self.memory.as_ptr().wrapping_add(offset as usize + ahead));
    }
}

/// Asks the processor for the cache line at `at`.
#[inline(always)]
pub(super) fn prefetch<T>(at: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: prefetching has no effect that a program can see, whatever the address.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(at.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}

/// Bytes that `a` and `b` have in common at their start.
#[inline]
pub(super) fn common(a: &[u8], b: &[u8]) -> usize {
    let n = a.len().min(b.len());
    let mut at = 0;
    while let (Some(x), Some(y)) = (a.get(at..at + 8), b.get(at..at + 8)) {
        let x = u64::from_le_bytes(x.try_into().expect("8 bytes"));
        let y = u64::from_le_bytes(y.try_into().expect("8 bytes"));
        if x != y {
            return at + ((x ^ y).trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    while at < n && a[at] == b[at] {
        at += 1;
    }
    at
}

/// The 8 bytes of `key` from `at` on as a big-endian number, zeros for those behind its end: numbers compare like
/// the bytes, except that equal numbers may stand for keys that differ in trailing zeros, or later.
#[inline(always)]
pub(super) fn head_at(key: &[u8], at: usize) -> u64 {
    if key.len() >= 8 && at <= key.len() - 8 {
        // SAFETY: 8 bytes from `at` are within the key, as just checked.
        return u64::from_be(unsafe { key.as_ptr().add(at).cast::<u64>().read_unaligned() });
    }
    let rest = key.get(at..).unwrap_or(&[]);
    let mut bytes = [0; 8];
    for (to, from) in bytes.iter_mut().zip(rest) {
        *to = *from;
    }
    u64::from_be_bytes(bytes)
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;
    use crate::entry;

    #[test]
    fn headers_are_taken_apart_as_decode_does() {
        let entries = Entries::new(Arc::new(Mapping::anonymous(1 << 20).unwrap()), 7);
        let mut at = 0;
        for (key_len, value_len) in
            [(0, 0), (1, 0), (16, 100), (127, 128), (128, 127), (16_384, 3), (65_541, 70_000)]
        {
            for ttl in [false, true] {
                let len = entry::encoded_len(key_len, value_len);
                let key = vec![b'k'; key_len];
                // SAFETY: no one else knows this memory.
                let out = unsafe { entries.memory().slice_mut(at, len + 8) };
                let mut len = entry::encode(out, Kind::Put, b"", &key, &vec![b'v'; value_len]);
                if ttl {
                    // An expiry goes between the lengths and the key.
                    out[0] = Kind::PutTtl as u8;
                    out.copy_within(len - key_len - value_len..len, len - key_len - value_len + 8);
                    len += 8;
                }
                let want = entry::decode(&out[..len]).unwrap();
                let place = entries.check(at as u32);
                assert_eq!((place.kind(), entries.key(at as u32)), (want.kind, want.key));
                assert_eq!(
                    entries.bytes(place.value(), place.value_len as usize),
                    &out[len - value_len..len]
                );
                at += len;
            }
        }
    }

    #[test]
    fn heads_and_common_prefixes() {
        assert_eq!(head_at(b"", 0), 0);
        assert_eq!(head_at(b"abc", 1), u64::from_be_bytes(*b"bc\0\0\0\0\0\0"));
        assert_eq!(head_at(b"abcdefghij", 2), u64::from_be_bytes(*b"cdefghij"));
        assert_eq!(head_at(b"abcdefghij", 3), u64::from_be_bytes(*b"defghij\0"));
        assert_eq!(head_at(b"abcdefghij", 11), 0);
        for n in 0..40 {
            let mut other = [b'x'; 40];
            other[n] = b'y';
            assert_eq!(common(&[b'x'; 40], &other), n);
            assert_eq!(common(&[b'x'; 40], &other[..n]), n);
        }
    }
}
