//! LZ4 blocks of about a kilobyte, against a dictionary.
//!
//! The format is LZ4's own; what is particular here is the size. A general encoder clears 8 to 16 KB of hash table
//! and, given a dictionary, hashes all of it, for every block: more work than a 1 KB block itself. This encoder starts
//! each block from a template of its table, in which the dictionary's positions already are. The decoder can stop
//! early, since a point read wants one value of a group.
//!
//! Safe code throughout: the decoder takes any bytes.

/// Bytes behind the decoded ones that the decoder may scribble on.
const SLACK: usize = 32;
/// Longest input: positions are 16 bits, dictionary included.
pub(super) const MAX_INPUT: usize = 46 << 10;
/// Longest dictionary.
pub(super) const MAX_DICTIONARY: usize = 16 << 10;
/// The last match begins at least so many bytes before the end, and the last bytes are literals.
const MATCH_LIMIT: usize = 12;
const LAST_LITERALS: usize = 5;
/// After `2^SKIP` misses in a row the search goes in steps of 2, then 3, ... : over random bytes it hurries.
const SKIP: u32 = 4;

/// Encodes blocks against one dictionary.
pub(super) struct Encoder {
    /// The dictionary, then the input.
    window: Vec<u8>,
    dictionary_len: usize,
    bits: u32,
    /// Position + 1 of the last place with that hash, 0 for none.
    table: Vec<u16>,
    template: Vec<u16>,
}

#[inline]
fn hash(word: u32, bits: u32) -> usize {
    (word.wrapping_mul(2_654_435_761) >> (32 - bits)) as usize
}

#[inline]
fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("4 bytes"))
}

impl Encoder {
    pub(super) fn new(dictionary: &[u8]) -> Encoder {
        let dictionary = &dictionary[..dictionary.len().min(MAX_DICTIONARY)];
        let bits = if dictionary.is_empty() { 10 } else { 12 };
        let mut template = vec![0; 1 << bits];
        for at in 0..dictionary.len().saturating_sub(3) {
            template[hash(word(dictionary, at), bits)] = at as u16 + 1;
        }
        Encoder {
            window: dictionary.to_vec(),
            dictionary_len: dictionary.len(),
            bits,
            table: vec![0; 1 << bits],
            template,
        }
    }

    /// Appends `input` as a block to `out` if that takes at most `budget` bytes; says whether it did.
    pub(super) fn encode(&mut self, input: &[u8], budget: usize, out: &mut Vec<u8>) -> bool {
        if input.len() > MAX_INPUT || input.len() <= MATCH_LIMIT {
            return false;
        }
        self.window.truncate(self.dictionary_len);
        self.window.extend_from_slice(input);
        self.table.copy_from_slice(&self.template);
        let base = out.len();
        let (window, bits) = (&self.window[..], self.bits);
        let table = &mut self.table[..1 << bits];
        let limit = base + budget;
        let last_start = window.len() - MATCH_LIMIT;
        let match_end = window.len() - LAST_LITERALS;
        let mut anchor = self.dictionary_len;
        let mut at = anchor;
        'block: loop {
            let mut misses = 1 << SKIP;
            let mut found;
            loop {
                if at > last_start {
                    break 'block;
                }
                let here = word(window, at);
                let slot = &mut table[hash(here, bits)];
                found = usize::from(*slot);
                *slot = at as u16 + 1;
                if found != 0 && word(window, found - 1) == here {
                    found -= 1;
                    break;
                }
                at += misses >> SKIP;
                misses += 1;
            }
            while at > anchor && found > 0 && window[at - 1] == window[found - 1] {
                at -= 1;
                found -= 1;
            }
            let offset = at - found;
            let len = 4 + super::common_prefix(&window[found + 4..], &window[at + 4..match_end]);
            if !emit(window, anchor..at, Some((offset, len)), limit, out) {
                out.truncate(base);
                return false;
            }
            at += len;
            anchor = at;
            if at <= last_start {
                table[hash(word(window, at - 2), bits)] = at as u16 - 1;
            }
        }
        let fits = emit(window, anchor..window.len(), None, limit, out);
        if !fits {
            out.truncate(base);
        }
        fits
    }
}

/// Appends a sequence, literals and then a match, unless `out` would grow beyond `limit`.
#[inline]
fn emit(
    window: &[u8],
    literals: std::ops::Range<usize>,
    matched: Option<(usize, usize)>,
    limit: usize,
    out: &mut Vec<u8>,
) -> bool {
    let count = literals.len();
    if out.len() + count + count / 255 + 4 > limit {
        return false;
    }
    let match_code = matched.map_or(0, |(_, len)| len - 4);
    out.push((count.min(15) << 4 | match_code.min(15)) as u8);
    put_len(count, out);
    out.extend_from_slice(&window[literals]);
    if let Some((offset, _)) = matched {
        out.extend_from_slice(&(offset as u16).to_le_bytes());
        put_len(match_code, out);
    }
    true
}

/// The bytes that continue a length of 15 or more.
#[inline]
fn put_len(n: usize, out: &mut Vec<u8>) {
    if n >= 15 {
        let mut rest = n - 15;
        while rest >= 255 {
            out.push(255);
            rest -= 255;
        }
        out.push(rest as u8);
    }
}

/// Decodes `block`, which should be of `raw_len` bytes, into the start of `out`, which is made longer than that. May
/// stop once the first `upto` bytes are there; without an early stop the length must come out exactly. `None` if the
/// block is malformed.
pub(super) fn decode(
    block: &[u8],
    raw_len: usize,
    upto: usize,
    dictionary: &[u8],
    out: &mut Vec<u8>,
) -> Option<()> {
    if out.len() < raw_len + SLACK {
        out.resize(raw_len + SLACK, 0);
    }
    let out = &mut out[..raw_len + SLACK];
    let (mut from, mut to) = (0, 0);
    loop {
        let token = usize::from(*block.get(from)?);
        from += 1;
        let literals = token >> 4;
        if literals < 15
            && let Some(source) = block.get(from..from + 16)
        {
            // 16 bytes at a time, whatever the count: the slack takes what is too much.
            out.get_mut(to..to + 16)?.copy_from_slice(source);
            from += literals;
            to += literals;
            if to > raw_len {
                return None;
            }
        } else {
            let literals = take_len(literals, block, &mut from)?;
            let source = block.get(from..from.checked_add(literals)?)?;
            let end = to.checked_add(literals).filter(|&end| end <= raw_len)?;
            out[to..end].copy_from_slice(source);
            from += literals;
            to = end;
            if from == block.len() {
                return (to == raw_len).then_some(());
            }
        }
        if to >= upto {
            return Some(());
        }
        let offset = usize::from(u16::from_le_bytes([*block.get(from)?, *block.get(from + 1)?]));
        from += 2;
        let mut len = 4 + take_len(token & 15, block, &mut from)?;
        if offset == 0 || len > raw_len - to {
            return None;
        }
        if offset > to {
            let before = offset - to;
            let start = dictionary.len().checked_sub(before)?;
            let count = len.min(before);
            out[to..to + count].copy_from_slice(&dictionary[start..start + count]);
            to += count;
            len -= count;
            if len == 0 {
                if to >= upto {
                    return Some(());
                }
                continue;
            }
        }
        let start = to - offset;
        if offset >= 16 {
            let mut done = 0;
            while done < len {
                let chunk: [u8; 16] = out[start + done..start + done + 16].try_into().expect("16 bytes");
                out[to + done..to + done + 16].copy_from_slice(&chunk);
                done += 16;
            }
        } else if offset == 1 {
            let byte = out[start];
            out[to..to + len].fill(byte);
        } else {
            // What is copied becomes part of what can be copied.
            let mut done = 0;
            while done < len {
                let count = (offset + done).min(len - done);
                out.copy_within(start..start + count, to + done);
                done += count;
            }
        }
        to += len;
        if to >= upto {
            return Some(());
        }
    }
}

/// A length whose first 4 bits are `n`.
#[inline]
fn take_len(mut n: usize, block: &[u8], from: &mut usize) -> Option<usize> {
    if n == 15 {
        loop {
            let byte = *block.get(*from)?;
            *from += 1;
            n = n.checked_add(usize::from(byte))?;
            if byte != 255 {
                break;
            }
        }
    }
    Some(n)
}

#[cfg(test)]
mod tests {
    use super::super::tests::noise;
    use super::*;
    use proptest::prelude::*;

    fn text(seed: u64, n: usize) -> Vec<u8> {
        let words = ["alpha", "beta", "{\"id\":", "0000", " ", "gamma-delta", "x"];
        let mut out = Vec::new();
        for byte in noise(seed, n) {
            out.extend_from_slice(words[usize::from(byte) % words.len()].as_bytes());
            if out.len() >= n {
                break;
            }
        }
        out.truncate(n);
        out
    }

    fn round_trip(input: &[u8], dictionary: &[u8]) -> Option<usize> {
        let mut encoder = Encoder::new(dictionary);
        let mut block = vec![1, 2];
        // Twice: the first leaves nothing behind that the second could trip over.
        for _ in 0..2 {
            block.truncate(2);
            if !encoder.encode(input, 2 * input.len() + 32, &mut block) {
                assert_eq!(block.len(), 2);
                return None;
            }
        }
        let block = &block[2..];
        let mut out = Vec::new();
        decode(block, input.len(), usize::MAX, dictionary, &mut out).unwrap();
        assert_eq!(&out[..input.len()], input);
        for upto in [0, 1, input.len() / 2, input.len()] {
            out.fill(0xA5);
            decode(block, input.len(), upto, dictionary, &mut out).unwrap();
            assert_eq!(&out[..upto], &input[..upto]);
        }
        #[cfg(feature = "lz4")]
        {
            let other = lz4_flex::block::decompress_with_dict(block, input.len(), dictionary).unwrap();
            assert_eq!(other, input);
        }
        Some(block.len())
    }

    #[test]
    fn blocks_come_back() {
        for n in [13, 14, 20, 100, 300, 1024, 5000, MAX_INPUT] {
            for input in [vec![0; n], noise(n as u64, n), text(n as u64, n)] {
                let dictionary = text(77, 4096);
                assert!(round_trip(&input, &[]).is_some(), "{n}");
                assert!(round_trip(&input, &dictionary).is_some(), "{n}");
                assert!(round_trip(&input, &input[..n.min(MAX_DICTIONARY)]).is_some(), "{n}");
            }
        }
        assert!(round_trip(&[], &[]).is_none());
        assert!(round_trip(&[7; 12], &[]).is_none());
    }

    #[test]
    fn a_dictionary_saves() {
        let record = |n: u32| {
            format!("{{\"id\":{n},\"name\":\"user {n}\",\"active\":true,\"city\":null}}").into_bytes()
        };
        let (input, dictionary) = (record(4711), [record(10), record(12345)].concat());
        let (plain, against) = (round_trip(&input, &[]).unwrap(), round_trip(&input, &dictionary).unwrap());
        assert!(against * 2 < plain, "{against} {plain}");
        let dictionary = noise(6, 4096);
        assert!(round_trip(&dictionary[1000..2000], &dictionary).unwrap() < 20);
    }

    #[test]
    fn the_budget_holds() {
        let mut encoder = Encoder::new(&[]);
        for input in [noise(1, 1000), text(1, 1000), vec![3; 1000]] {
            for budget in (0..1100).step_by(7) {
                let mut out = Vec::new();
                let fits = encoder.encode(&input, budget, &mut out);
                assert!(out.len() <= budget && (fits || out.is_empty()));
            }
        }
    }

    #[cfg(feature = "lz4")]
    #[test]
    fn blocks_of_another_encoder_decode() {
        let mut out = Vec::new();
        for n in [1, 5, 12, 13, 100, 1000, 70_000] {
            for input in [vec![0; n], noise(n as u64, n), text(n as u64, n)] {
                let block = lz4_flex::block::compress(&input);
                decode(&block, n, usize::MAX, &[], &mut out).unwrap();
                assert_eq!(&out[..n], &input[..]);
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

        #[test]
        fn any_bytes_decode_to_something_or_nothing(
            block in prop::collection::vec(any::<u8>(), 0..200),
            raw_len in 0usize..600,
            upto in 0usize..700,
            dictionary in prop::collection::vec(any::<u8>(), 0..300),
        ) {
            let mut out = Vec::new();
            let _ = decode(&block, raw_len, upto, &dictionary, &mut out);
            #[cfg(feature = "lz4")]
            {
                // The other decoder agrees on what is well-formed.
                let ours = decode(&block, raw_len, usize::MAX, &dictionary, &mut out);
                let mut theirs = vec![0; raw_len];
                let length = lz4_flex::block::decompress_into_with_dict(&block, &mut theirs, &dictionary);
                if ours.is_some() {
                    prop_assert_eq!(length.ok(), Some(raw_len));
                    prop_assert_eq!(&out[..raw_len], &theirs[..]);
                }
            }
        }

        #[test]
        fn damaged_blocks_do_not_escape(at in any::<prop::sample::Index>(), byte in any::<u8>(), seed in any::<u64>()) {
            let (input, dictionary) = (text(seed, 800), text(6, 2000));
            let mut encoder = Encoder::new(&dictionary);
            let mut block = Vec::new();
            prop_assert!(encoder.encode(&input, 2000, &mut block));
            let at = at.index(block.len());
            block[at] ^= byte;
            let mut out = Vec::new();
            let _ = decode(&block, input.len(), usize::MAX, &dictionary, &mut out);
            let _ = decode(&block[..at], input.len(), usize::MAX, &dictionary, &mut out);
        }
    }
}
