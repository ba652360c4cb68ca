//! Pools of text and JSON for values that compress as such data does.

use super::rng;
use std::io::Write;

/// Common words; the early ones are drawn more often.
const WORDS: [&str; 64] = [
    "the", "of", "and", "to", "in", "is", "that", "for", "it", "was", "on", "are", "as", "with", "they",
    "be", "at", "one", "have", "this", "from", "or", "had", "by", "word", "but", "not", "what", "all",
    "were", "when", "your", "said", "there", "use", "each", "which", "their", "time", "will", "about",
    "many", "then", "them", "write", "would", "like", "these", "long", "make", "thing", "see", "him", "two",
    "has", "look", "more", "day", "could", "come", "number", "sound", "most", "people",
];

/// The smaller of two even draws chooses, so that early words are common.
fn word(seed: u64, j: u64) -> &'static str {
    let draw = rng::at(seed, j);
    WORDS[((draw & 63).min(draw >> 6 & 63)) as usize]
}

/// Words parted by spaces, `len` bytes.
pub fn words(out: &mut Vec<u8>, len: usize, seed: u64) {
    let mut j = 0;
    while out.len() < len {
        out.extend_from_slice(word(seed, j).as_bytes());
        out.push(b' ');
        j += 1;
    }
    out.truncate(len);
}

/// Records, one a line, `len` bytes. The pool is cut into values wherever they end, as log lines in a buffer are.
pub fn json(out: &mut Vec<u8>, len: usize, seed: u64) {
    let mut j = 0;
    while out.len() < len {
        let draw = |k| rng::at(seed, j + k);
        writeln!(
            out,
            r#"{{"id":{},"name":"{} {}","active":{},"score":{}.{:02},"tags":["{}","{}"],"at":"2024-{:02}-{:02}"}}"#,
            draw(0) >> 40,
            word(seed, j + 1),
            word(seed, j + 2),
            draw(3) & 1 == 1,
            draw(4) % 100,
            (draw(4) >> 32) % 100,
            word(seed, j + 5),
            word(seed, j + 6),
            draw(7) % 12 + 1,
            draw(8) % 28 + 1,
        )
        .expect("a vector takes every write");
        j += 9;
    }
    out.truncate(len);
}
