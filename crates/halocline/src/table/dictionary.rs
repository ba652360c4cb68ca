//! The choice of a table's dictionary: what its LZ4 groups may refer to beside themselves.
//!
//! The first values are a sample of all. Pieces of half of them, evenly spread, become the dictionary; the other
//! half tells whether it pays. Values whose likeness lies within a group, or nowhere, do without: decoding against a
//! dictionary touches more of the cache.

use super::lz4;

/// Bytes of a piece of the sample: about a value, so that what values have in common is there in full.
const PIECE: usize = 128;
/// Groups the trial encodes.
const TRIALS: usize = 24;

/// A dictionary of at most `size` bytes for groups like those in `groups`, or nothing if it would save less than 5 %
/// of what they take without.
pub(super) fn choose(groups: &[&[u8]], size: usize) -> Vec<u8> {
    let size = size.min(lz4::MAX_DICTIONARY);
    if groups.len() < 8 || size < PIECE {
        return Vec::new();
    }
    let sample: Vec<&[u8]> = groups.iter().step_by(2).copied().collect();
    let total: usize = sample.iter().map(|group| group.len()).sum();
    let pieces = size / PIECE;
    let stride = (total / pieces).max(PIECE);
    let mut dictionary = Vec::with_capacity(size);
    let (mut start, mut next) = (0, 0);
    for group in sample {
        while next < start + group.len() && dictionary.len() + PIECE <= size {
            let at = next - start;
            dictionary.extend_from_slice(&group[at..group.len().min(at + PIECE)]);
            next += stride;
        }
        start += group.len();
    }

    let trials: Vec<&[u8]> = groups.iter().skip(1).step_by(2).copied().collect();
    let trials = trials.iter().step_by(trials.len().div_ceil(TRIALS));
    let mut with = lz4::Encoder::new(&dictionary);
    let mut without = lz4::Encoder::new(&[]);
    let (mut taken_with, mut taken_without) = (0, 0);
    let mut out = Vec::new();
    for group in trials {
        let budget = group.len() - group.len() / 8;
        for (encoder, taken) in [(&mut with, &mut taken_with), (&mut without, &mut taken_without)] {
            out.clear();
            *taken += if encoder.encode(group, budget, &mut out) { out.len() } else { group.len() };
        }
    }
    if taken_with * 20 <= taken_without * 19 { dictionary } else { Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::super::tests::noise;
    use super::*;

    fn records(n: usize) -> Vec<Vec<u8>> {
        (0..n as u64)
            .map(|i| {
                let bits = noise(i, 8);
                format!("{{\"number\":{i},\"token\":\"{bits:02x?}\",\"kind\":\"ordinary\",\"parent\":null}}")
                    .into_bytes()
            })
            .collect()
    }

    #[test]
    fn like_records_get_one() {
        let groups: Vec<Vec<u8>> = records(400).chunks(4).map(|records| records.concat()).collect();
        let groups: Vec<&[u8]> = groups.iter().map(|g| &g[..]).collect();
        let dictionary = choose(&groups, 4096);
        assert!((2048..=4096).contains(&dictionary.len()), "{}", dictionary.len());
    }

    #[test]
    fn noise_and_zeros_get_none() {
        let noisy: Vec<Vec<u8>> = (0..100).map(|i| noise(i, 1000)).collect();
        let half: Vec<Vec<u8>> = (0..100).map(|i| [noise(i, 500), vec![0; 500]].concat()).collect();
        for groups in [noisy, half] {
            let groups: Vec<&[u8]> = groups.iter().map(|g| &g[..]).collect();
            assert!(choose(&groups, 8192).is_empty());
        }
        assert!(choose(&[], 8192).is_empty());
        assert!(choose(&[&b"abc"[..]; 7], 8192).is_empty());
    }
}
