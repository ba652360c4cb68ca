//! A page's bytes, interpreted in place.
//!
//! A [`Page`] is where the columns of one page lie, worked out and bounds-checked once from its header; the bytes
//! are passed to each method again, so that a cursor can own both a buffer and the layout of what is in it. Methods
//! given other bytes than those parsed, or bytes that changed, return damage or nonsense but never panic.

use super::{Checked, Damage, get_u16, get_u32, get_u64, head4};
use crate::entry::Kind;
use std::cmp::Ordering;
use std::ops::Range;

pub(super) const HEADER: usize = 32;
pub(super) const GROUP: usize = 12;

pub(super) const EQUAL_SUFFIXES: u16 = 1;
pub(super) const EQUAL_VALUES: u16 = 2;
pub(super) const VERSIONS: u16 = 4;
pub(super) const KINDS: u16 = 8;

const OUT_OF_BOUNDS: Damage = Damage::Corrupt("an offset in a page points outside of it");

/// Where the parts of a page lie.
#[derive(Clone, Copy, Debug)]
pub(super) struct Page {
    pub(super) entries: usize,
    pub(super) groups: usize,
    flags: u16,
    suffix_len: usize,
    pub(super) prefix_len: usize,
    value_len: usize,
    len: usize,
    values: usize,
    heads: usize,
    tail_starts: usize,
    value_starts: usize,
    versions: usize,
    version_width: usize,
    version_base: u64,
    kinds: usize,
    prefix: usize,
    tails: usize,
}

/// One value group of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Group {
    /// Its number in the page.
    pub(super) index: usize,
    /// The first entry whose value is in it, and the first behind it.
    pub(super) first: usize,
    pub(super) last: usize,
    /// Where it is stored, in the page.
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) raw_len: usize,
    pub(super) codec: u8,
}

impl Page {
    /// A page with nothing in it.
    pub(super) const EMPTY: Page = Page {
        entries: 0,
        groups: 0,
        flags: 0,
        suffix_len: 0,
        prefix_len: 0,
        value_len: 0,
        len: 0,
        values: 0,
        heads: 0,
        tail_starts: 0,
        value_starts: 0,
        versions: 0,
        version_width: 0,
        version_base: 0,
        kinds: 0,
        prefix: 0,
        tails: 0,
    };

    /// Works out where things lie in `bytes`, a whole page, and that they lie in it.
    #[inline]
    pub(super) fn parse(bytes: &[u8]) -> Checked<Page> {
        let header: &[u8; HEADER] =
            bytes.first_chunk().ok_or(Damage::Corrupt("a page is shorter than its header"))?;
        let u16_at = |at: usize| u16::from_le_bytes([header[at], header[at + 1]]);
        let u32_at =
            |at: usize| u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
        let len = u32_at(8) as usize;
        let values = u32_at(12) as usize;
        let entries = usize::from(u16_at(16));
        let groups = usize::from(u16_at(18));
        let flags = u16_at(20);
        if len != bytes.len() || values > len {
            return Err(Damage::Corrupt("a page's length is not what the index says"));
        }
        if entries == 0 || groups == 0 {
            return Err(Damage::Corrupt("a page is empty"));
        }
        if flags & !(EQUAL_SUFFIXES | EQUAL_VALUES | VERSIONS | KINDS) != 0 {
            return Err(Damage::Unsupported("a page flag"));
        }
        // All numbers below are at most 2^32 each: no sum of them overflows.
        let heads = HEADER + groups * GROUP;
        let tail_starts = heads + entries * 4;
        let value_starts = tail_starts + if flags & EQUAL_SUFFIXES == 0 { entries * 2 } else { 0 };
        let versions = value_starts + if flags & EQUAL_VALUES == 0 { entries * 2 } else { 0 };
        let (mut version_width, mut version_base) = (0, 0);
        let kinds = if flags & VERSIONS == 0 {
            versions
        } else {
            version_base = get_u64(bytes, versions).ok_or(OUT_OF_BOUNDS)?;
            version_width = usize::from(*bytes.get(versions + 8).ok_or(OUT_OF_BOUNDS)?);
            if !(1..=8).contains(&version_width) {
                return Err(Damage::Corrupt("the versions of a page have an impossible width"));
            }
            versions + 9 + entries * version_width
        };
        let prefix = kinds + if flags & KINDS == 0 { 0 } else { entries };
        let prefix_len = u32_at(24) as usize;
        let tails = prefix + prefix_len;
        let suffix_len = usize::from(u16_at(22));
        let tails_end =
            if flags & EQUAL_SUFFIXES == 0 { tails } else { tails + entries * suffix_len.saturating_sub(4) };
        if tails_end > values {
            return Err(Damage::Corrupt("the keys of a page reach into its values"));
        }
        Ok(Page {
            entries,
            groups,
            flags,
            suffix_len,
            prefix_len,
            value_len: u32_at(28) as usize,
            len,
            values,
            heads,
            tail_starts,
            value_starts,
            versions,
            version_width,
            version_base,
            kinds,
            prefix,
            tails,
        })
    }

    /// The bytes all keys begin with.
    #[inline]
    pub(super) fn prefix<'a>(&self, bytes: &'a [u8]) -> &'a [u8] {
        bytes.get(self.prefix..self.prefix + self.prefix_len).unwrap_or_default()
    }

    #[inline]
    fn head(&self, bytes: &[u8], i: usize) -> u32 {
        get_u32(bytes, self.heads + i * 4).unwrap_or_default()
    }

    /// How many bytes of entry `i`'s head are key, and where the suffix behind the head lies.
    #[inline]
    fn tail(&self, bytes: &[u8], i: usize) -> Checked<(usize, Range<usize>)> {
        if self.flags & EQUAL_SUFFIXES != 0 {
            let tail_len = self.suffix_len.saturating_sub(4);
            let start = self.tails + i * tail_len;
            return Ok((self.suffix_len.min(4), start..start + tail_len));
        }
        let start = self.tails + usize::from(get_u16(bytes, self.tail_starts + i * 2).ok_or(OUT_OF_BOUNDS)?);
        let end = if i + 1 < self.entries {
            self.tails + usize::from(get_u16(bytes, self.tail_starts + i * 2 + 2).ok_or(OUT_OF_BOUNDS)?)
        } else {
            self.values
        };
        if start >= end || end > self.values {
            return Err(OUT_OF_BOUNDS);
        }
        let head_len = usize::from(*bytes.get(start).ok_or(OUT_OF_BOUNDS)?);
        if head_len > 4 {
            return Err(Damage::Corrupt("a key's head has an impossible length"));
        }
        Ok((head_len, start + 1..end))
    }

    /// Asks for the cache lines of entry `i`'s value, or of the group it must be decoded from, while its key is still
    /// being compared.
    #[inline]
    pub(super) fn prefetch_value(&self, bytes: &[u8], i: usize) {
        let Ok(group) = self.group_of(bytes, i) else { return };
        let (mut at, end) = match self.value_in_group(bytes, &group, i) {
            Ok(range) if group.codec == super::group::RAW => {
                (group.start + range.start, group.start + range.end)
            }
            _ => (group.start, group.end),
        };
        // The processor itself sees a stream after a few lines.
        let end = end.min(at + 256);
        while at < end {
            super::prefetch(bytes.as_ptr().wrapping_add(at));
            at += 64;
        }
    }

    /// Sets `key`, which holds the page's prefix and maybe more, to entry `i`'s key.
    #[inline]
    pub(super) fn assemble(&self, bytes: &[u8], i: usize, key: &mut Vec<u8>) -> Checked<()> {
        let (head_len, tail) = self.tail(bytes, i)?;
        let tail = bytes.get(tail).ok_or(OUT_OF_BOUNDS)?;
        if let Some((head, rest)) =
            key.get_mut(self.prefix_len..).and_then(|k| k.split_first_chunk_mut::<4>())
            && rest.len() == tail.len()
            && head_len == 4
        {
            // As long as the key before: nothing to adjust.
            *head = self.head(bytes, i).to_be_bytes();
            rest.copy_from_slice(tail);
            return Ok(());
        }
        key.truncate(self.prefix_len);
        key.extend_from_slice(&self.head(bytes, i).to_be_bytes()[..head_len]);
        key.extend_from_slice(tail);
        Ok(())
    }

    /// Orders entry `i` against a key with the page's prefix: `head` and `rest` are what follows the prefix.
    #[inline]
    fn compare_rest(&self, bytes: &[u8], i: usize, suffix: &[u8]) -> Checked<Ordering> {
        let (head_len, tail) = self.tail(bytes, i)?;
        // Equal heads: if the lengths in them differ, the shorter key is a prefix of the longer.
        Ok(match head_len.cmp(&suffix.len().min(4)) {
            Ordering::Equal => bytes.get(tail).ok_or(OUT_OF_BOUNDS)?.cmp(suffix.get(4..).unwrap_or_default()),
            other => other,
        })
    }

    /// Whether entries `i` and `i + 1` have the same key.
    #[inline]
    pub(super) fn same_key_as_next(&self, bytes: &[u8], i: usize) -> Checked<bool> {
        if self.head(bytes, i) != self.head(bytes, i + 1) {
            return Ok(false);
        }
        let (a_len, a) = self.tail(bytes, i)?;
        let (b_len, b) = self.tail(bytes, i + 1)?;
        Ok(a_len == b_len && bytes.get(a) == bytes.get(b))
    }

    /// The first entry whose key is `key` or greater (`entries` if there is none), and whether it is `key`.
    #[inline]
    pub(super) fn lower_bound(&self, bytes: &[u8], key: &[u8]) -> Checked<(usize, bool)> {
        self.lower_bound_with(bytes, key, |_| ())
    }

    /// As [`lower_bound`](Page::lower_bound); calls `likely` with the entry that will probably be the answer, before
    /// its suffix, which may have to come from memory, is compared.
    #[inline]
    pub(super) fn lower_bound_with(
        &self,
        bytes: &[u8],
        key: &[u8],
        likely: impl FnOnce(usize),
    ) -> Checked<(usize, bool)> {
        let prefix = self.prefix(bytes);
        let Some(suffix) = key.strip_prefix(prefix) else {
            return Ok((if key < prefix { 0 } else { self.entries }, false));
        };
        let head = head4(suffix);
        let heads = bytes.get(self.heads..self.heads + self.entries * 4).ok_or(OUT_OF_BOUNDS)?;
        let (heads, _) = heads.as_chunks::<4>();
        // No branch, and vectors: quicker than halving for the few dozen entries of a page.
        let mut low = heads.iter().map(|h| u32::from(u32::from_le_bytes(*h) < head)).sum::<u32>() as usize;
        if heads.get(low).is_none_or(|h| u32::from_le_bytes(*h) != head) {
            return Ok((low, false));
        }
        likely(low);
        let mut high = low + 1;
        while heads.get(high).is_some_and(|h| u32::from_le_bytes(*h) == head) {
            high += 1;
        }
        let mut found = false;
        while low < high {
            let middle = low + (high - low) / 2;
            match self.compare_rest(bytes, middle, suffix)? {
                Ordering::Less => low = middle + 1,
                other => {
                    found |= other == Ordering::Equal;
                    high = middle;
                }
            }
        }
        Ok((low, found))
    }

    /// The first entry whose key is greater than `key`.
    pub(super) fn upper_bound(&self, bytes: &[u8], key: &[u8]) -> Checked<usize> {
        let (mut at, found) = self.lower_bound(bytes, key)?;
        if found {
            at += 1;
            while at < self.entries && self.same_key_as_next(bytes, at - 1)? {
                at += 1;
            }
        }
        Ok(at)
    }

    /// Whether any entry has a version, and so whether a key may have more than one entry here.
    #[inline]
    pub(super) fn has_versions(&self) -> bool {
        self.flags & VERSIONS != 0
    }

    #[inline]
    pub(super) fn version(&self, bytes: &[u8], i: usize) -> Checked<u64> {
        if self.flags & VERSIONS == 0 {
            return Ok(0);
        }
        let at = self.versions + 9 + i * self.version_width;
        let stored = bytes.get(at..at + self.version_width).ok_or(OUT_OF_BOUNDS)?;
        let mut number = [0; 8];
        number[..stored.len()].copy_from_slice(stored);
        match u64::from_le_bytes(number) {
            0 => Ok(0),
            n => self.version_base.checked_add(n - 1).ok_or(Damage::Corrupt("a version is out of range")),
        }
    }

    #[inline]
    pub(super) fn kind(&self, bytes: &[u8], i: usize) -> Checked<Kind> {
        if self.flags & KINDS == 0 {
            return Ok(Kind::Put);
        }
        let number = *bytes.get(self.kinds + i).ok_or(OUT_OF_BOUNDS)?;
        Kind::from_u8(number).ok_or(Damage::Unsupported("a kind of entry"))
    }

    fn group_first(&self, bytes: &[u8], group: usize) -> Checked<usize> {
        if group == self.groups {
            return Ok(self.entries);
        }
        Ok(usize::from(get_u16(bytes, HEADER + group * GROUP + 8).ok_or(OUT_OF_BOUNDS)?))
    }

    /// The group that holds entry `i`'s value.
    #[inline]
    pub(super) fn group_of(&self, bytes: &[u8], i: usize) -> Checked<Group> {
        let mut index = 0;
        while index + 1 < self.groups && self.group_first(bytes, index + 1)? <= i {
            index += 1;
        }
        self.group(bytes, index)
    }

    /// Group number `index`, which must be below `groups`.
    #[inline]
    pub(super) fn group(&self, bytes: &[u8], index: usize) -> Checked<Group> {
        let at = HEADER + index * GROUP;
        let start =
            if index == 0 { Some(self.values) } else { get_u32(bytes, at - GROUP).map(|n| n as usize) };
        let (Some(start), Some(end), Some(raw_len), Some(&codec)) =
            (start, get_u32(bytes, at), get_u32(bytes, at + 4), bytes.get(at + 10))
        else {
            return Err(OUT_OF_BOUNDS);
        };
        let (end, raw_len) = (end as usize, raw_len as usize);
        let first = self.group_first(bytes, index)?;
        let last = self.group_first(bytes, index + 1)?;
        if start < self.values || start > end || end > self.len || first >= last || last > self.entries {
            return Err(Damage::Corrupt("a value group lies outside of its page"));
        }
        Ok(Group { index, first, last, start, end, raw_len, codec })
    }

    /// Where in the decoded group entry `i`'s value lies.
    #[inline]
    pub(super) fn value_in_group(&self, bytes: &[u8], group: &Group, i: usize) -> Checked<Range<usize>> {
        let Some(ordinal) = i.checked_sub(group.first).filter(|_| i < group.last) else {
            return Err(OUT_OF_BOUNDS);
        };
        let range = if self.flags & EQUAL_VALUES != 0 {
            // At most 2^16 times 2^32.
            ordinal * self.value_len..(ordinal + 1) * self.value_len
        } else {
            let start = get_u16(bytes, self.value_starts + i * 2).ok_or(OUT_OF_BOUNDS)?;
            let end = if i + 1 < group.last {
                usize::from(get_u16(bytes, self.value_starts + i * 2 + 2).ok_or(OUT_OF_BOUNDS)?)
            } else {
                group.raw_len
            };
            usize::from(start)..end
        };
        if range.start > range.end || range.end > group.raw_len {
            return Err(Damage::Corrupt("a value lies outside of its group"));
        }
        Ok(range)
    }
}
