//! Value groups: how they are stored, and back.

use super::{Checked, Codec, Damage};
use crate::entry::MAX_VALUE;

pub(super) const RAW: u8 = 0;
pub(super) const LZ4: u8 = 1;
pub(super) const ZSTD: u8 = 2;

/// The largest group there can be: one value, or a few small ones before it.
const MAX_RAW: usize = MAX_VALUE + (64 << 10);

/// Encodes the groups of one table.
pub(super) struct Encoder {
    codec: Codec,
    #[cfg(feature = "lz4")]
    table: lz4_flex::block::CompressTable,
    /// Scratch space of the page builder.
    pub(super) firsts: Vec<u16>,
}

impl Encoder {
    pub(super) fn new(codec: Codec) -> Encoder {
        Encoder {
            codec,
            #[cfg(feature = "lz4")]
            table: lz4_flex::block::CompressTable::default(),
            firsts: Vec::new(),
        }
    }

    /// Appends `raw` as it is to be stored, and returns how that is.
    pub(super) fn encode(&mut self, raw: &[u8], out: &mut Vec<u8>) -> u8 {
        match self.codec {
            #[cfg(feature = "lz4")]
            Codec::Lz4 if raw.len() > 32 => {
                let base = out.len();
                out.resize(base + lz4_flex::block::get_maximum_output_size(raw.len()), 0);
                match lz4_flex::block::compress_into_with_table(raw, &mut out[base..], &mut self.table) {
                    Ok(len) if len < raw.len() - raw.len() / 8 => {
                        out.truncate(base + len);
                        return LZ4;
                    }
                    _ => out.truncate(base),
                }
            }
            _ => {}
        }
        out.extend_from_slice(raw);
        RAW
    }
}

/// Decodes at least the first `upto` of the `raw_len` bytes of a group into `out`, replacing what is there.
pub(super) fn decode(
    codec: u8,
    stored: &[u8],
    raw_len: usize,
    upto: usize,
    dictionary: &[u8],
    out: &mut Vec<u8>,
) -> Checked<()> {
    const MALFORMED: Damage = Damage::Corrupt("a value group does not decode");
    let _ = upto;
    out.clear();
    if raw_len > MAX_RAW {
        return Err(MALFORMED);
    }
    match codec {
        RAW if stored.len() == raw_len => out.extend_from_slice(stored),
        RAW => return Err(MALFORMED),
        #[cfg(feature = "lz4")]
        LZ4 => {
            // No block is longer than 255 times its stored bytes: no more is allocated.
            if raw_len / 255 > stored.len() {
                return Err(MALFORMED);
            }
            out.resize(raw_len, 0);
            let len = lz4_flex::block::decompress_into_with_dict(stored, out, dictionary)
                .map_err(|_| MALFORMED)?;
            if len != raw_len {
                return Err(MALFORMED);
            }
        }
        LZ4 | ZSTD => return Err(Damage::Unsupported("a codec that was left out of this build")),
        _ => return Err(Damage::Unsupported("a codec")),
    }
    Ok(())
}
