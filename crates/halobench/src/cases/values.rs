//! Values from a few bytes to very many.

use super::{Base, Case, Database, Params};
use crate::workload::{Order, Pattern};

/// Sizes with their names.
const SIZES: [(&str, usize); 8] = [
    ("32", 32),
    ("128", 128),
    ("512", 512),
    ("2k", 2 << 10),
    ("8k", 8 << 10),
    ("32k", 32 << 10),
    ("128k", 128 << 10),
    ("1m", 1 << 20),
];
/// What `ops` entries hold together is written at every size.
const STANDARD_ENTRY: u64 = 116;
/// Bytes in a commit, about.
const COMMIT_BYTES: u64 = 100 << 10;

/// Writes, gets and a pass at every size.
pub fn cases(base: &Base) -> Vec<Case> {
    let random = Params { pattern: Pattern::Random, ..base.params.clone() };
    let bytes = random.ops * STANDARD_ENTRY;
    SIZES
        .iter()
        .map(|&(word, value_len)| {
            let params = Params { value_len, ..random.clone() };
            let entry = (params.key_len + value_len) as u64;
            let n = (bytes / entry).max(64);
            let batch = (COMMIT_BYTES / entry).clamp(1, 1000);
            Database::new(&format!("values-{word}"), &params, n)
                .put(&format!("write-v{word}"), params.load_order(), n, batch)
                .read(&format!("read-v{word}"), Order::Uniform, n)
                .iterate(&format!("iterate-v{word}"))
                .case()
        })
        .collect()
}

/// Values that fill memory.
pub fn huge(base: &Base) -> Vec<Case> {
    let random = Params { pattern: Pattern::Random, ..base.params.clone() };
    [
        ("256m", 256usize << 20, random.ops.clamp(1, 1000)),
        ("1g", 1 << 30, random.ops.div_ceil(4).clamp(1, 100)),
    ]
    .into_iter()
    .map(|(word, value_len, n)| {
        let params = Params { value_len, ..random.clone() };
        Database::new(&format!("huge-{word}"), &params, n)
            .put(&format!("write-v{word}"), params.load_order(), n, 1)
            .read(&format!("read-v{word}"), Order::Up, n)
            .case()
    })
    .collect()
}
