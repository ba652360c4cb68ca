//! The end of a table: its properties, and the footer that locates and vouches for every section.

use super::{Checked, Damage, get_u32, get_u64};
use crate::io::checksum::{checksum, place};

pub(super) const FOOTER: usize = 128;
const MAGIC: &[u8; 8] = b"HALOTBL\0";
const FORMAT: u32 = 1;

/// Where a section lies, and its checksum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Section {
    pub(super) offset: u64,
    pub(super) len: u64,
    pub(super) sum: u64,
}

/// The footer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Footer {
    pub(super) id: u64,
    pub(super) filter: Section,
    pub(super) index: Section,
    pub(super) dictionary: Section,
    pub(super) properties: Section,
}

impl Footer {
    /// The footer's bytes at `offset`, and its checksum.
    pub(super) fn encode(&self, offset: u64) -> ([u8; FOOTER], u64) {
        let mut out = [0; FOOTER];
        out[..8].copy_from_slice(MAGIC);
        out[8..12].copy_from_slice(&FORMAT.to_le_bytes());
        out[16..24].copy_from_slice(&self.id.to_le_bytes());
        for (i, section) in self.sections().iter().enumerate() {
            for (j, n) in [section.offset, section.len, section.sum].into_iter().enumerate() {
                out[24 + i * 24 + j * 8..][..8].copy_from_slice(&n.to_le_bytes());
            }
        }
        let sum = checksum(&out[..FOOTER - 8], place(self.id, offset));
        out[FOOTER - 8..].copy_from_slice(&sum.to_le_bytes());
        (out, sum)
    }

    fn sections(&self) -> [Section; 4] {
        [self.filter, self.index, self.dictionary, self.properties]
    }

    /// The footer in `bytes`, which lie at `offset` of the file that should be table `id`, and its checksum.
    pub(super) fn decode(bytes: &[u8; FOOTER], id: u64, offset: u64) -> Checked<(Footer, u64)> {
        if bytes[..8] != *MAGIC {
            return Err(Damage::Corrupt("there is no table footer at its end"));
        }
        if get_u32(bytes, 8) != Some(FORMAT) {
            return Err(Damage::Unsupported("a format version"));
        }
        let number = |at: usize| get_u64(bytes, at).unwrap_or_default();
        let sum = number(FOOTER - 8);
        if number(16) != id {
            return Err(Damage::Corrupt("it is another table than its name says"));
        }
        if sum != checksum(&bytes[..FOOTER - 8], place(id, offset)) {
            return Err(Damage::Corrupt("the footer's checksum does not match"));
        }
        let section = |i: usize| {
            let at = 24 + i * 24;
            Section { offset: number(at), len: number(at + 8), sum: number(at + 16) }
        };
        let footer = Footer {
            id,
            filter: section(0),
            index: section(1),
            dictionary: section(2),
            properties: section(3),
        };
        // Nothing between the sections, nothing outside of the file.
        let mut end = footer.filter.offset;
        for section in footer.sections() {
            if section.offset != end {
                return Err(Damage::Corrupt("the sections do not join"));
            }
            end = end.checked_add(section.len).ok_or(Damage::Corrupt("a section is too long"))?;
        }
        if end != offset {
            return Err(Damage::Corrupt("the sections do not end at the footer"));
        }
        Ok((footer, sum))
    }
}

/// What a table says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Properties {
    pub(super) entries: u64,
    pub(super) deletes: u64,
    pub(super) raw_bytes: u64,
    pub(super) min_version: u64,
    pub(super) max_version: u64,
    pub(super) keys: u64,
    pub(super) page_bytes: u32,
    pub(super) group_bytes: u32,
    pub(super) smallest: Box<[u8]>,
    pub(super) largest: Box<[u8]>,
}

impl Properties {
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        for n in [self.entries, self.deletes, self.raw_bytes, self.min_version, self.max_version, self.keys] {
            out.extend_from_slice(&n.to_le_bytes());
        }
        let lens = [self.smallest.len() as u32, self.largest.len() as u32];
        for n in [self.page_bytes, self.group_bytes].into_iter().chain(lens) {
            out.extend_from_slice(&n.to_le_bytes());
        }
        out.extend_from_slice(&self.smallest);
        out.extend_from_slice(&self.largest);
    }

    pub(super) fn decode(bytes: &[u8]) -> Checked<Properties> {
        const FIXED: usize = 64;
        const MALFORMED: Damage = Damage::Corrupt("the properties are malformed");
        let keys = bytes.get(FIXED..).ok_or(MALFORMED)?;
        let number = |at| get_u64(bytes, at).unwrap_or_default();
        let short = |at| get_u32(bytes, at).unwrap_or_default();
        let (smallest_len, largest_len) = (short(56) as usize, short(60) as usize);
        if smallest_len.checked_add(largest_len) != Some(keys.len()) {
            return Err(MALFORMED);
        }
        let (smallest, largest) = keys.split_at(smallest_len);
        Ok(Properties {
            entries: number(0),
            deletes: number(8),
            raw_bytes: number(16),
            min_version: number(24),
            max_version: number(32),
            keys: number(40),
            page_bytes: short(48),
            group_bytes: short(52),
            smallest: smallest.into(),
            largest: largest.into(),
        })
    }
}
