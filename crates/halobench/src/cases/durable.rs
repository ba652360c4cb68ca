//! Synced commits: how well an engine shares a sync among the threads that wait for one.

use super::{Base, Case, Database, Params};
use crate::engine::Durability;
use crate::workload::Pattern;

const THREADS: [usize; 5] = [1, 2, 4, 8, 16];
/// Longest time of a case, in seconds: disks differ a thousandfold.
const SECONDS: f64 = 30.0;

/// `ops` single commits a thread, by more and more threads; then commits of 100.
pub fn cases(base: &Base) -> Vec<Case> {
    let synced = Params { durability: Durability::Sync, pattern: Pattern::Random, ..base.params.clone() };
    let case = |name: &str, threads: usize, batch: u64, ops: u64| {
        let params = Params { threads, ..synced.clone() };
        Database::new(name, &params, ops)
            .phase_with(name, crate::spec::Kind::Write, params.load_order(), ops, |p| {
                p.batch = batch;
                p.seconds = base.seconds.unwrap_or(SECONDS);
            })
            .case()
    };
    let mut cases: Vec<Case> =
        THREADS.iter().map(|&t| case(&format!("sync-write-t{t}"), t, 1, synced.ops * t as u64)).collect();
    cases.push(case("sync-write-t4-b100", 4, 100, synced.ops * 100));
    cases
}
