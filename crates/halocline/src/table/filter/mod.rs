//! Filters: what says that a key is surely not in a table, for one cache miss or three.
//!
//! A filter is made of the [`key_hash`](crate::io::checksum::key_hash) of every key. It never denies a key that is
//! there; of those that are not it lets about 0.5 % through.

mod bloom;
mod fuse;

use super::{Checked, Damage, FilterKind, get_u32, get_u64};
use bloom::Bloom;
use fuse::Fuse8;

/// A filter in memory.
pub(super) enum Filter {
    None,
    Bloom(Bloom),
    Fuse8(Fuse8),
}

const BLOOM: u8 = 1;
const FUSE8: u8 = 2;

impl Filter {
    /// A filter over the keys with these hashes, which may be reordered.
    pub(super) fn build(kind: FilterKind, hashes: &mut Vec<u64>) -> Filter {
        match kind {
            FilterKind::None => Filter::None,
            FilterKind::Bloom { bits_per_key } => Filter::Bloom(Bloom::build(hashes, bits_per_key)),
            // A set of hashes for which no seed works is all but impossible; a table needs its filter all the same.
            FilterKind::Fuse8 => match Fuse8::build(hashes) {
                Some(fuse) => Filter::Fuse8(fuse),
                None => Filter::Bloom(Bloom::build(hashes, 12)),
            },
        }
    }

    /// Appends the filter section.
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Filter::None => {}
            Filter::Bloom(bloom) => {
                out.extend_from_slice(&[BLOOM, bloom.probes(), 0, 0, 0, 0, 0, 0]);
                for block in bloom.blocks() {
                    for word in block {
                        out.extend_from_slice(&word.to_le_bytes());
                    }
                }
            }
            Filter::Fuse8(fuse) => {
                out.extend_from_slice(&[FUSE8, 0, 0, 0, 0, 0, 0, 0]);
                out.extend_from_slice(&fuse.seed().to_le_bytes());
                out.extend_from_slice(&fuse.segment_len().to_le_bytes());
                out.extend_from_slice(&fuse.segments().to_le_bytes());
                out.extend_from_slice(fuse.fingerprints());
            }
        }
    }

    /// The filter of a section.
    pub(super) fn decode(bytes: &[u8]) -> Checked<Filter> {
        const MALFORMED: Damage = Damage::Corrupt("the filter is malformed");
        if bytes.is_empty() {
            return Ok(Filter::None);
        }
        let (head, rest) = bytes.split_first_chunk::<8>().ok_or(MALFORMED)?;
        match head[0] {
            BLOOM => Bloom::from_bytes(head[1], rest).map(Filter::Bloom).ok_or(MALFORMED),
            FUSE8 => {
                let (Some(seed), Some(segment_len), Some(segments), Some(fingerprints)) =
                    (get_u64(rest, 0), get_u32(rest, 8), get_u32(rest, 12), rest.get(16..))
                else {
                    return Err(MALFORMED);
                };
                Fuse8::from_parts(seed, segment_len, segments, fingerprints)
                    .map(Filter::Fuse8)
                    .ok_or(MALFORMED)
            }
            _ => Err(Damage::Unsupported("a filter")),
        }
    }

    /// Whether a key with that hash may be there.
    #[inline]
    pub(super) fn may_contain(&self, hash: u64) -> bool {
        match self {
            Filter::None => true,
            Filter::Bloom(bloom) => bloom.may_contain(hash),
            Filter::Fuse8(fuse) => fuse.may_contain(hash),
        }
    }

    /// Asks for the cache lines that [`may_contain`](Filter::may_contain) will read.
    #[inline]
    pub(super) fn prefetch(&self, hash: u64) {
        match self {
            Filter::None => {}
            Filter::Bloom(bloom) => bloom.prefetch(hash),
            Filter::Fuse8(fuse) => fuse.prefetch(hash),
        }
    }

    pub(super) fn memory_bytes(&self) -> usize {
        match self {
            Filter::None => 0,
            Filter::Bloom(bloom) => bloom.blocks().len() * 64,
            Filter::Fuse8(fuse) => fuse.fingerprints().len(),
        }
    }
}
