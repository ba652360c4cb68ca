//! Value groups: how they are stored, and back.
//!
//! A group is worth encoding if that saves an eighth. Where several groups in a row were not, most of the following
//! are not tried either: random bytes cost next to nothing.

use super::{Checked, Codec, Damage, lz4};
use crate::entry::MAX_VALUE;

pub(super) const RAW: u8 = 0;
pub(super) const LZ4: u8 = 1;
pub(super) const ZSTD: u8 = 2;

/// The largest group there can be: one value, or a few small ones before it.
const MAX_RAW: usize = MAX_VALUE + (64 << 10);
/// After so many failures in a row, all but one group in [`TRY_EVERY`] are stored raw untried.
const PATIENCE: u32 = 16;
const TRY_EVERY: u32 = 16;

/// Encodes the groups of one table.
pub(super) struct Encoder {
    codec: Codec,
    lz4: lz4::Encoder,
    failures: u32,
    /// Scratch space of the page builder.
    pub(super) firsts: Vec<u16>,
}

impl Encoder {
    pub(super) fn new(codec: Codec, dictionary: &[u8]) -> Encoder {
        Encoder { codec, lz4: lz4::Encoder::new(dictionary), failures: 0, firsts: Vec::new() }
    }

    /// Appends `raw` as it is to be stored, and returns how that is.
    pub(super) fn encode(&mut self, raw: &[u8], out: &mut Vec<u8>) -> u8 {
        if self.codec != Codec::None && raw.len() >= 32 && self.worth_trying() {
            let budget = raw.len() - raw.len() / 8;
            if let Some(codec) = self.compress(raw, budget, out) {
                self.failures = 0;
                return codec;
            }
            self.failures += 1;
        }
        out.extend_from_slice(raw);
        RAW
    }

    fn worth_trying(&mut self) -> bool {
        if self.failures < PATIENCE {
            return true;
        }
        // Counts up to the next try, which either resets it or goes on counting.
        self.failures += 1;
        self.failures.is_multiple_of(TRY_EVERY)
    }

    fn compress(&mut self, raw: &[u8], budget: usize, out: &mut Vec<u8>) -> Option<u8> {
        match self.codec {
            Codec::None => None,
            Codec::Lz4 if raw.len() <= lz4::MAX_INPUT => self.lz4.encode(raw, budget, out).then_some(LZ4),
            #[cfg(feature = "lz4")]
            Codec::Lz4 => {
                let base = out.len();
                out.resize(base + lz4_flex::block::get_maximum_output_size(raw.len()), 0);
                let len = lz4_flex::block::compress_into(raw, &mut out[base..]);
                let len = len.ok().filter(|&len| len <= budget);
                out.truncate(base + len.unwrap_or(0));
                len.map(|_| LZ4)
            }
            #[cfg(not(feature = "lz4"))]
            Codec::Lz4 => None,
            #[cfg(feature = "zstd")]
            Codec::Zstd(level) => {
                let encoded = zstd::bulk::compress(raw, level).ok().filter(|e| e.len() <= budget)?;
                out.extend_from_slice(&encoded);
                Some(ZSTD)
            }
            #[cfg(not(feature = "zstd"))]
            Codec::Zstd(_) => None,
        }
    }
}

/// Decodes at least the first `upto` of the `raw_len` bytes of a group into the start of `out`, which may be longer.
pub(super) fn decode(
    codec: u8,
    stored: &[u8],
    raw_len: usize,
    upto: usize,
    dictionary: &[u8],
    out: &mut Vec<u8>,
) -> Checked<()> {
    const MALFORMED: Damage = Damage::Corrupt("a value group does not decode");
    if raw_len > MAX_RAW {
        return Err(MALFORMED);
    }
    match codec {
        // No block is longer than 255 times its stored bytes, so no more than that is allocated.
        LZ4 if raw_len / 255 <= stored.len() => {
            let upto = if upto >= raw_len { usize::MAX } else { upto };
            lz4::decode(stored, raw_len, upto, dictionary, out).ok_or(MALFORMED)
        }
        LZ4 => Err(MALFORMED),
        #[cfg(feature = "zstd")]
        ZSTD => {
            out.clear();
            let mut decoder = zstd::stream::read::Decoder::with_buffer(stored).map_err(|_| MALFORMED)?;
            // Grows as it decodes, and no further than stated.
            let mut limited = std::io::Read::take(&mut decoder, raw_len as u64 + 1);
            std::io::Read::read_to_end(&mut limited, out).map_err(|_| MALFORMED)?;
            if out.len() == raw_len { Ok(()) } else { Err(MALFORMED) }
        }
        #[cfg(not(feature = "zstd"))]
        ZSTD => Err(Damage::Unsupported("Zstandard, which was left out of this build")),
        _ => Err(Damage::Unsupported("a codec")),
    }
}
