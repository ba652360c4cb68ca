//! The article that compares SplinterDB with RocksDB: random inserts, point queries, ranges of 10, by one thread, without
//! a log, on a database in memory and on one many times as large.

use super::seeds::STANDARD;
use super::{Base, Case, Database, Params};
use crate::engine::Durability;
use crate::workload::{Order, Pattern};

/// The article's machine had so many bytes of memory a row of its large databases: 16 GB for 2 B rows.
const ROWS: [(&str, u64, usize); 2] = [("v100", 50_000_000, 100), ("v200", 25_000_000, 200)];
const LARGE_ROWS: [(&str, u64, usize); 2] = [("v100", 2_000_000_000, 100), ("v200", 1_000_000_000, 200)];
/// The large databases, unless at full size: a two-hundredth of the article's a tenth of scale.
const LARGE_DIVISOR: u64 = 20;
/// Data over memory in them. The article has fifteen; that much of so small a database leaves no room for the caches.
const DATA_OVER_MEMORY: u64 = 4;
/// No engine works in less.
const LEAST_LIMIT: u64 = 64 << 20;

/// The four databases.
pub fn cases(base: &Base) -> Vec<Case> {
    let cached = ROWS.iter().map(|&(word, full, value_len)| {
        let n = base.scaled(full, STANDARD);
        let params = params(base, value_len);
        queries(&format!("splinter-cached-{word}"), &params, n, "the article's database in memory")
    });
    let large = LARGE_ROWS.iter().map(|&(word, full, value_len)| {
        let full_size = base.params.ops >= STANDARD;
        let n = base.scaled(full, STANDARD) / if full_size { 1 } else { LARGE_DIVISOR };
        let mut params = params(base, value_len);
        if !full_size {
            let limit = n * (params.key_len + value_len) as u64 / DATA_OVER_MEMORY;
            params = params.within(base.params.memory_limit.unwrap_or(limit.max(LEAST_LIMIT)));
        }
        let about =
            "the article's database larger than memory: fewer rows under a memory limit, unless at full size";
        queries(&format!("splinter-io-{word}"), &params, n, about)
    });
    cached.chain(large).collect()
}

/// SplinterDB has no log, and the article ran RocksDB without one.
fn params(base: &Base, value_len: usize) -> Params {
    Params {
        pattern: Pattern::Random,
        threads: 1,
        value_len,
        durability: Durability::None,
        ..base.params.clone()
    }
}

fn queries(name: &str, params: &Params, n: u64, about: &str) -> Case {
    Database::new(name, params, n)
        .about(about)
        .put(&format!("{name}-insert"), params.load_order(), n, 1)
        .read(&format!("{name}-point"), Order::Uniform, (n / 5).max(1))
        .range(&format!("{name}-range10"), Order::Uniform, (n / 50).max(1), 10)
        .case()
}
