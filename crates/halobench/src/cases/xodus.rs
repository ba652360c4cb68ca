//! The article that compares Xodus with RocksDB: ten million pairs of UUIDs, as text, written by one thread in
//! transactions of 100, then the database's size, then one scan.

use super::{Base, Case, Database, Params};
use crate::workload::{Order, Pattern};

/// The article's number of pairs.
pub const STANDARD: u64 = 10_000_000;
/// A UUID as text.
const UUID_TEXT: usize = 36;

/// The article's case. The size is a figure of the writing phase, settled, and of the close.
pub fn cases(base: &Base) -> Vec<Case> {
    let n = base.scaled(STANDARD, STANDARD);
    let params = Params {
        pattern: Pattern::Uuid,
        key_len: UUID_TEXT,
        value_len: UUID_TEXT,
        threads: 1,
        ..base.params.clone()
    };
    let case = Database::new("xodus-uuid", &params, n)
        .about("10 M pairs of UUIDs at full size, transactions of 100, one thread")
        .put("xodus-write-uuid-b100", Order::Up, n, 100)
        .read("xodus-read-uuid", Order::Uniform, n)
        .iterate("xodus-iterate-uuid")
        .case();
    vec![case]
}
