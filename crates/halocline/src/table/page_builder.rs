//! The entries of one page, collected, and their assembly into bytes.

use super::page::{EQUAL_SUFFIXES, EQUAL_VALUES, GROUP, HEADER, KINDS, VERSIONS};
use super::{common_prefix, group, head4};
use crate::entry::Kind;
use crate::io::checksum::{checksum, place};

/// What an entry counts for in the filling of a page, beside its key and value, and a page beside its entries. Entries
/// of equal lengths take less, others a little more.
const OVERHEAD: usize = 2;
const FIXED: usize = 80;
/// Entries to become one page.
#[derive(Default)]
pub(super) struct PageBuilder {
    keys: Vec<u8>,
    key_ends: Vec<u32>,
    values: Vec<u8>,
    value_ends: Vec<u32>,
    versions: Vec<u64>,
    kinds: Vec<u8>,
    any_version: bool,
    any_kind: bool,
}

impl PageBuilder {
    pub(super) fn is_empty(&self) -> bool {
        self.key_ends.is_empty()
    }

    /// Whether an entry of these lengths should begin a new page instead. With pages of at most 32 KiB this also keeps
    /// the number of entries, and all offsets but a last one's end, within 16 bits.
    #[inline]
    pub(super) fn is_full_for(&self, key_len: usize, value_len: usize, page_bytes: usize) -> bool {
        let used = self.keys.len() + self.values.len() + self.key_ends.len() * OVERHEAD + FIXED;
        !self.is_empty() && used + key_len + value_len + OVERHEAD > page_bytes
    }

    #[inline]
    pub(super) fn add(&mut self, key: &[u8], version: u64, kind: Kind, value: &[u8]) {
        self.keys.extend_from_slice(key);
        self.key_ends.push(self.keys.len() as u32);
        self.values.extend_from_slice(value);
        self.value_ends.push(self.values.len() as u32);
        self.versions.push(version);
        self.kinds.push(kind as u8);
        self.any_version |= version != 0;
        self.any_kind |= kind != Kind::Put;
    }

    pub(super) fn clear(&mut self) {
        self.keys.clear();
        self.key_ends.clear();
        self.values.clear();
        self.value_ends.clear();
        self.versions.clear();
        self.kinds.clear();
        self.any_version = false;
        self.any_kind = false;
        if self.values.capacity() > 1 << 20 {
            self.values = Vec::new();
        }
    }

    /// The values, end to end.
    pub(super) fn values(&self) -> &[u8] {
        &self.values
    }

    fn key(&self, i: usize) -> &[u8] {
        let start = if i == 0 { 0 } else { self.key_ends[i - 1] as usize };
        &self.keys[start..self.key_ends[i] as usize]
    }

    pub(super) fn first_key(&self) -> &[u8] {
        self.key(0)
    }

    pub(super) fn last_key(&self) -> &[u8] {
        self.key(self.key_ends.len() - 1)
    }

    fn value_start(&self, i: usize) -> usize {
        if i == 0 { 0 } else { self.value_ends[i - 1] as usize }
    }

    /// The first entry of each value group: evenly filled, large values alone.
    fn cut_groups(&self, group_bytes: usize, firsts: &mut Vec<u16>) {
        firsts.clear();
        firsts.push(0);
        let groups = ((self.values.len() + group_bytes / 2) / group_bytes).max(1);
        let target = self.values.len().div_ceil(groups).min(group_bytes);
        let mut start = 0;
        for i in 1..self.value_ends.len() {
            let (from, to) = (self.value_start(i), self.value_ends[i] as usize);
            let (filled, len) = (from - start, to - from);
            // A group ends nearest to its target.
            if filled > 0 && (filled + len / 2 > target || len > group_bytes) {
                firsts.push(i as u16);
                start = from;
            }
        }
    }

    /// Appends the page's bytes to `out`, as the page at `offset` of table `id`.
    pub(super) fn finish(
        &self,
        out: &mut Vec<u8>,
        id: u64,
        offset: u64,
        group_bytes: usize,
        encoder: &mut group::Encoder,
    ) {
        let n = self.key_ends.len();
        let base = out.len();
        let prefix_len = common_prefix(self.first_key(), self.last_key());
        let suffix_len = self.key(0).len() - prefix_len;
        let value_len = self.value_ends[0] as usize;
        let mut flags = 0;
        let mut key_end = 0;
        if self.key_ends.iter().all(|&end| {
            let len = end - key_end;
            key_end = end;
            len as usize == prefix_len + suffix_len
        }) && suffix_len <= usize::from(u16::MAX)
        {
            flags |= EQUAL_SUFFIXES;
        }
        if self.value_ends.iter().enumerate().all(|(i, &end)| end as usize == (i + 1) * value_len) {
            flags |= EQUAL_VALUES;
        }
        if self.any_version {
            flags |= VERSIONS;
        }
        if self.any_kind {
            flags |= KINDS;
        }

        let mut firsts = std::mem::take(&mut encoder.firsts);
        self.cut_groups(group_bytes, &mut firsts);
        out.resize(base + HEADER + firsts.len() * GROUP, 0);
        for i in 0..n {
            out.extend_from_slice(&head4(&self.key(i)[prefix_len..]).to_le_bytes());
        }
        if flags & EQUAL_SUFFIXES == 0 {
            let mut start = 0u16;
            for i in 0..n {
                out.extend_from_slice(&start.to_le_bytes());
                start = start.wrapping_add(1 + (self.key(i).len() - prefix_len).saturating_sub(4) as u16);
            }
        }
        if flags & EQUAL_VALUES == 0 {
            for (group, &first) in firsts.iter().enumerate() {
                let last = firsts.get(group + 1).map_or(n, |&f| usize::from(f));
                let start = self.value_start(usize::from(first));
                for i in usize::from(first)..last {
                    // A group is at most 32 KiB long, or its first value is: offsets fit.
                    out.extend_from_slice(&((self.value_start(i) - start) as u16).to_le_bytes());
                }
            }
        }
        if self.any_version {
            let lowest = self.versions.iter().copied().filter(|&v| v != 0).min().unwrap_or(1);
            let highest = self.versions.iter().copied().max().unwrap_or(1);
            let width = (8 - ((highest - lowest).saturating_add(1)).leading_zeros() as usize / 8).clamp(1, 8);
            out.extend_from_slice(&lowest.to_le_bytes());
            out.push(width as u8);
            for &version in &self.versions {
                let stored = if version == 0 { 0 } else { version - lowest + 1 };
                out.extend_from_slice(&stored.to_le_bytes()[..width]);
            }
        }
        if self.any_kind {
            out.extend_from_slice(&self.kinds);
        }
        out.extend_from_slice(&self.first_key()[..prefix_len]);
        for i in 0..n {
            let suffix = &self.key(i)[prefix_len..];
            if flags & EQUAL_SUFFIXES == 0 {
                out.push(suffix.len().min(4) as u8);
            }
            out.extend_from_slice(suffix.get(4..).unwrap_or_default());
        }

        let values = out.len() - base;
        for (group, &first) in firsts.iter().enumerate() {
            let start = self.value_start(usize::from(first));
            let end = firsts.get(group + 1).map_or(self.values.len(), |&f| self.value_start(usize::from(f)));
            let codec = encoder.encode(&self.values[start..end], out);
            let stored_end = (out.len() - base) as u32;
            let entry = &mut out[base + HEADER + group * GROUP..][..GROUP];
            entry[..4].copy_from_slice(&stored_end.to_le_bytes());
            entry[4..8].copy_from_slice(&((end - start) as u32).to_le_bytes());
            entry[8..10].copy_from_slice(&first.to_le_bytes());
            entry[10] = codec;
        }
        while !(out.len() - base).is_multiple_of(8) {
            out.push(0);
        }

        let len = out.len() - base;
        let header = &mut out[base..base + HEADER];
        header[8..12].copy_from_slice(&(len as u32).to_le_bytes());
        header[12..16].copy_from_slice(&(values as u32).to_le_bytes());
        header[16..18].copy_from_slice(&(n as u16).to_le_bytes());
        header[18..20].copy_from_slice(&(firsts.len() as u16).to_le_bytes());
        header[20..22].copy_from_slice(&flags.to_le_bytes());
        if flags & EQUAL_SUFFIXES != 0 {
            header[22..24].copy_from_slice(&(suffix_len as u16).to_le_bytes());
        }
        header[24..28].copy_from_slice(&(prefix_len as u32).to_le_bytes());
        if flags & EQUAL_VALUES != 0 {
            header[28..32].copy_from_slice(&(value_len as u32).to_le_bytes());
        }
        let sum = checksum(&out[base + 8..], place(id, offset));
        out[base..base + 8].copy_from_slice(&sum.to_le_bytes());
        encoder.firsts = firsts;
    }
}
