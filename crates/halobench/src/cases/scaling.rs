//! How throughput follows the size of a commit and the number of threads.

use super::{Base, Case, Database, Params};
use crate::workload::{Order, Pattern};

/// Writes in a commit.
pub const BATCHES: [u64; 5] = [1, 10, 100, 1000, 10_000];
/// Threads.
pub const THREADS: [usize; 5] = [1, 2, 4, 8, 16];

/// Random writes in commits of every size, each into an empty database.
pub fn batches(base: &Base) -> Vec<Case> {
    let random = Params { pattern: Pattern::Random, ..base.params.clone() };
    let ops = random.ops;
    BATCHES
        .iter()
        .map(|batch| {
            let name = format!("batch-{batch}");
            Database::new(&name, &random, ops).put(&name, random.load_order(), ops, *batch).case()
        })
        .collect()
}

/// Single random writes by every number of threads, each into an empty database; then reads of one database.
pub fn threads(base: &Base) -> Vec<Case> {
    let random = Params { pattern: Pattern::Random, ..base.params.clone() };
    let ops = random.ops;
    let mut cases: Vec<Case> = THREADS
        .iter()
        .map(|&threads| {
            let name = format!("threads-write-t{threads}");
            let params = Params { threads, ..random.clone() };
            Database::new(&name, &params, ops).put(&name, params.load_order(), ops, 1).case()
        })
        .collect();
    let mut reads = Database::new("threads-read", &random, ops).load();
    for threads in THREADS {
        let name = format!("threads-read-t{threads}");
        let kind = crate::spec::Kind::Read;
        reads = reads.phase_with(&name, kind, Order::Uniform, ops, |p| p.threads = threads);
    }
    cases.push(reads.case());
    cases
}
