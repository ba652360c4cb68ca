//! The fences: a separator in front of each page, in memory, and the search that finds a key's page.
//!
//! The 8 bytes of each separator behind the prefix common to all are its **head**. A lookup table over the range of
//! heads gives the few fences a head may lie among: where keys are evenly spread that is an interpolation without
//! arithmetic on keys, where they are not it is a binary search that has been given its first steps. Whole
//! separators are only compared among equal heads.

use super::{Checked, Damage, common_prefix, get_u32, head8};

const CONTINUES: u32 = 1 << 31;
/// So many heads are compared at once.
const NEAR: usize = 4;

/// The fences of a table.
pub(super) struct Fences {
    /// How many bytes all separators but the first (which is empty) begin with, and those bytes.
    prefix: Box<[u8]>,
    heads: Box<[u64]>,
    /// In units of 8 bytes; one more than pages: the end of the last. The top bit is that of `key_ends`, so that a
    /// search finds it where it looks anyway.
    offsets: Box<[u32]>,
    key_ends: Box<[u32]>,
    keys: Box<[u8]>,
    /// `lookup[(head - first) >> shift]` is the first fence in that part of the range.
    lookup: Box<[u32]>,
    first: u64,
    shift: u32,
}

/// Collects the fences of a table being built, and encodes them.
#[derive(Default)]
pub(super) struct FenceBuilder {
    offsets: Vec<u32>,
    key_ends: Vec<u32>,
    keys: Vec<u8>,
    last: Vec<u8>,
}

impl FenceBuilder {
    /// The next page: where it begins, in units of 8 bytes, and its first and last keys.
    pub(super) fn add(&mut self, offset: u32, first: &[u8], last: &[u8]) {
        let mut flag = 0;
        if !self.offsets.is_empty() {
            let common = common_prefix(&self.last, first);
            if common == first.len() {
                flag = CONTINUES;
            }
            self.keys.extend_from_slice(&first[..first.len().min(common + 1)]);
        }
        self.offsets.push(offset);
        self.key_ends.push(self.keys.len() as u32 | flag);
        self.last.clear();
        self.last.extend_from_slice(last);
    }

    /// Bytes the section would take now.
    pub(super) fn encoded_len(&self) -> usize {
        8 + self.offsets.len() * 8 + self.keys.len()
    }

    /// Whether another page with such a first key can still be described.
    pub(super) fn has_room_for(&self, key_len: usize) -> bool {
        self.keys.len() + key_len < CONTINUES as usize
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&(self.offsets.len() as u32).to_le_bytes());
        out.extend_from_slice(&(self.keys.len() as u32).to_le_bytes());
        for n in self.offsets.iter().chain(&self.key_ends) {
            out.extend_from_slice(&n.to_le_bytes());
        }
        out.extend_from_slice(&self.keys);
    }
}

impl Fences {
    /// Reads an index section over pages that end at `pages_end`.
    pub(super) fn decode(bytes: &[u8], pages_end: u64) -> Checked<Fences> {
        const MALFORMED: Damage = Damage::Corrupt("the index is malformed");
        let (Some(pages), Some(keys_len)) = (get_u32(bytes, 0), get_u32(bytes, 4)) else {
            return Err(MALFORMED);
        };
        let (n, keys_len) = (pages as usize, keys_len as usize);
        // On 64 bits no overflow: both are below 2^32.
        if n == 0 || bytes.len() != 8 + n * 8 + keys_len || !pages_end.is_multiple_of(8) {
            return Err(MALFORMED);
        }
        let numbers = |bytes: &[u8]| -> Vec<u32> {
            bytes.as_chunks::<4>().0.iter().map(|c| u32::from_le_bytes(*c)).collect()
        };
        let mut offsets = numbers(&bytes[8..8 + n * 4]);
        offsets.push(u32::try_from(pages_end / 8).ok().filter(|&end| end < CONTINUES).ok_or(MALFORMED)?);
        let key_ends = numbers(&bytes[8 + n * 4..8 + n * 8]);
        let keys = &bytes[8 + n * 8..];
        if offsets[0] != 0 || !offsets.is_sorted_by(|a, b| a < b) {
            return Err(Damage::Corrupt("the index places pages out of order"));
        }
        let mut end = 0;
        for (i, &key_end) in key_ends.iter().enumerate() {
            let next = (key_end & !CONTINUES) as usize;
            if next < end || next > keys_len || (i == 0 && key_end != 0) {
                return Err(MALFORMED);
            }
            end = next;
        }
        if end != keys_len {
            return Err(MALFORMED);
        }
        for (offset, key_end) in offsets.iter_mut().zip(&key_ends) {
            *offset |= key_end & CONTINUES;
        }
        let mut fences = Fences {
            prefix: Box::default(),
            heads: Box::default(),
            offsets: offsets.into(),
            key_ends: key_ends.into(),
            keys: keys.into(),
            lookup: Box::default(),
            first: 0,
            shift: 0,
        };
        for i in 1..n {
            let (before, this) = (fences.separator(i - 1), fences.separator(i));
            if before > this || (before == this && !fences.continues(i)) {
                return Err(Damage::Corrupt("the index's keys are out of order"));
            }
        }
        fences.prepare();
        Ok(fences)
    }

    /// Works out prefix, heads and lookup table.
    fn prepare(&mut self) {
        let n = self.pages();
        let prefix_len = if n > 1 { common_prefix(self.separator(1), self.separator(n - 1)) } else { 0 };
        if n > 1 {
            self.prefix = self.separator(1)[..prefix_len].into();
        }
        let mut heads = vec![0; n];
        for (i, head) in heads.iter_mut().enumerate().skip(1) {
            *head = head8(&self.separator(i)[prefix_len..]);
        }
        self.heads = heads.into();
        if n == 1 {
            return;
        }
        self.first = self.heads[1];
        let range = self.heads[n - 1] - self.first;
        self.shift = 0;
        while (range >> self.shift) as usize > n {
            self.shift += 1;
        }
        let buckets = (range >> self.shift) as usize + 1;
        let mut lookup = Vec::with_capacity(buckets + 1);
        let mut at = 1;
        for bucket in 0..buckets as u64 {
            while (self.heads[at] - self.first) >> self.shift < bucket {
                at += 1;
            }
            lookup.push(at as u32);
        }
        lookup.push(n as u32);
        self.lookup = lookup.into();
    }

    pub(super) fn pages(&self) -> usize {
        self.key_ends.len()
    }

    /// Where page `i` lies: its offset and length.
    #[inline]
    pub(super) fn page(&self, i: usize) -> (u64, usize) {
        let at = |i: usize| u64::from(self.offsets[i] & !CONTINUES) * 8;
        let (start, end) = (at(i), at(i + 1));
        (start, (end - start) as usize)
    }

    /// Where the last page ends.
    pub(super) fn end(&self) -> u64 {
        u64::from(self.offsets[self.pages()]) * 8
    }

    /// Whether page `i` begins with another version of the last key of page `i - 1`.
    #[inline]
    pub(super) fn continues(&self, i: usize) -> bool {
        self.offsets[i] & CONTINUES != 0
    }

    /// The separator in front of page `i`: greater than every key before it, at most its first key (or equal to
    /// both the last key before it and its first one, if it continues).
    pub(super) fn separator(&self, i: usize) -> &[u8] {
        let start = if i == 0 { 0 } else { self.key_ends[i - 1] & !CONTINUES } as usize;
        &self.keys[start..(self.key_ends[i] & !CONTINUES) as usize]
    }

    /// The last page whose separator is at most `key`: no entry at or before `key` lies behind it.
    #[inline]
    pub(super) fn last_page_for(&self, key: &[u8]) -> usize {
        let n = self.pages();
        if n == 1 {
            return 0;
        }
        let Some(rest) = key.strip_prefix(&*self.prefix) else {
            return if key < &*self.prefix { 0 } else { n - 1 };
        };
        let head = head8(rest);
        if head < self.first {
            return 0;
        }
        let bucket = ((head - self.first) >> self.shift) as usize;
        let Some(&[from, to]) = self.lookup.get(bucket..bucket.saturating_add(2)) else {
            return n - 1;
        };
        let (mut low, mut high) = (from as usize, to as usize);
        // The first fence with a greater head; those with an equal one are settled below. Where the table leaves few to
        // choose from, all are compared, and those behind as well, which are greater: no branch to mispredict.
        if high - low <= NEAR
            && let Some(near) = self.heads.get(low..low + NEAR)
        {
            low += near.iter().map(|&h| usize::from(h <= head)).sum::<usize>();
            high = low;
        }
        while low < high {
            let middle = low + (high - low) / 2;
            if self.heads[middle] <= head {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        if self.heads[low - 1] == head && low > 1 {
            let mut ties = low - 1;
            while ties > 1 && self.heads[ties - 1] == head {
                ties -= 1;
            }
            let (mut from, mut to) = (ties, low);
            while from < to {
                let middle = from + (to - from) / 2;
                if self.separator(middle) <= key {
                    from = middle + 1;
                } else {
                    to = middle;
                }
            }
            low = from;
        }
        low - 1
    }

    /// The first page that may hold `key`: no entry at or behind `key` lies before it.
    #[inline]
    pub(super) fn first_page_for(&self, key: &[u8]) -> usize {
        let mut page = self.last_page_for(key);
        while self.continues(page) && self.separator(page) == key {
            page -= 1;
        }
        page
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.prefix.len()
            + self.heads.len() * 8
            + self.offsets.len() * 4
            + self.key_ends.len() * 4
            + self.keys.len()
            + self.lookup.len() * 4
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fences(keys: &[&[u8]]) -> Fences {
        let mut builder = FenceBuilder::default();
        for (i, key) in keys.iter().enumerate() {
            builder.add(i as u32, key, key);
        }
        let mut bytes = Vec::new();
        builder.encode(&mut bytes);
        assert_eq!(bytes.len(), builder.encoded_len());
        Fences::decode(&bytes, keys.len() as u64 * 8).unwrap()
    }

    /// The page of a key by definition, when every page holds one key.
    fn expected(keys: &[&[u8]], key: &[u8]) -> (usize, usize) {
        let first = keys.partition_point(|k| *k < key);
        let last = keys.partition_point(|k| *k <= key);
        (first, last)
    }

    #[test]
    fn finds_the_page_whatever_the_spread() {
        let even: Vec<Vec<u8>> = (0..500u64).map(|i| (i << 40).to_be_bytes().to_vec()).collect();
        let decimal: Vec<Vec<u8>> = (0..500).map(|i| format!("user{i:012}").into_bytes()).collect();
        let skewed: Vec<Vec<u8>> = (0..64u64).map(|i| (1u64 << i).to_be_bytes().to_vec()).collect();
        let long: Vec<Vec<u8>> = (0..300u32)
            .map(|i| [b"x", &[b'p'; (2)][..], &[(i / 128) as u8; 20][..], &i.to_be_bytes()].concat())
            .collect();
        for keys in [even, decimal, skewed, long] {
            let keys: Vec<&[u8]> = keys.iter().map(|k| &k[..]).collect();
            let fences = fences(&keys);
            let mut probes: Vec<Vec<u8>> = vec![vec![], vec![0xFF; 30]];
            for key in &keys {
                probes.push(key.to_vec());
                probes.push([key, &b"\0"[..]].concat());
                probes.push(key[..key.len() - 1].to_vec());
            }
            for probe in &probes {
                let (first, last) = expected(&keys, probe);
                let page = fences.first_page_for(probe);
                // A page holds one key: either it is the one, or every key before is smaller.
                assert!(page <= first.min(keys.len() - 1), "{probe:?}");
                assert!(page + 1 >= first, "{probe:?}: {page} {first}");
                let page = fences.last_page_for(probe);
                assert!(page + 1 >= last && page <= last, "{probe:?}: {page} {last}");
            }
        }
    }

    #[test]
    fn versions_of_a_key_over_many_pages() {
        let keys: Vec<&[u8]> = vec![b"a", b"k", b"k", b"k", b"z"];
        let fences = fences(&keys);
        assert_eq!(fences.first_page_for(b"k"), 1);
        assert_eq!(fences.last_page_for(b"k"), 3);
        assert!(fences.continues(2) && fences.continues(3) && !fences.continues(4) && !fences.continues(1));
        assert_eq!(fences.first_page_for(b"j"), 0);
        assert_eq!(fences.first_page_for(b"kk"), 3);
    }

    #[test]
    fn malformed_bytes_are_refused() {
        let mut builder = FenceBuilder::default();
        builder.add(0, b"a", b"b");
        builder.add(5, b"c", b"d");
        let mut bytes = Vec::new();
        builder.encode(&mut bytes);
        assert!(Fences::decode(&bytes, 80).is_ok());
        assert!(Fences::decode(&bytes, 40).is_err());
        assert!(Fences::decode(&bytes, 81).is_err());
        for cut in 0..bytes.len() {
            assert!(Fences::decode(&bytes[..cut], 80).is_err());
        }
        for at in 0..bytes.len() {
            for byte in 0..=255 {
                let mut damaged = bytes.clone();
                damaged[at] = byte;
                // Not a panic; what is accepted can be asked.
                if let Ok(fences) = Fences::decode(&damaged, 80) {
                    assert!(fences.first_page_for(b"c") < fences.pages());
                }
            }
        }
    }
}
