//! A look at everything, for one who has a few minutes.

use super::{Base, Case, Database, Params};
use crate::engine::Durability;
use crate::spec::Kind;
use crate::workload::{Order, Pattern};

/// Synced commits are few: a disk does some hundreds of syncs a second.
const SYNCED_COMMITS: u64 = 1000;

/// Writes, reads behind an unreported load (so that engines of every durability class can take part), larger values and
/// synced commits.
pub fn cases(base: &Base) -> Vec<Case> {
    let n = base.params.ops;
    let random = Params { pattern: Pattern::Random, ..base.params.clone() };
    let writes = Database::new("quick-writes", &random, n)
        .about("random writes in commits of 1,000, then single ones, reads at the same time, removals")
        .put("fill-random-b1000", random.load_order(), n, 1000)
        .put("overwrite-zipfian-b1", Order::Zipf, base.fewer(4, 1000), 1)
        .phase("read-write-random", Kind::Mixed, Order::Uniform, base.fewer(2, 1000))
        .delete("delete-random-b1000", Order::Shuffled, n, 1000);
    let sequential = Params { pattern: Pattern::Seq, ..random.clone() };
    let in_order = Database::new("quick-writes-in-order", &sequential, n)
        .about("sequential writes in commits of 1,000")
        .put("fill-seq-b1000", Order::Up, n, 1000);
    let reads = Database::new("quick-reads", &random, n)
        .about("reads of a settled database, in any durability class")
        .load()
        .read("read-random", Order::Uniform, n)
        .read("read-zipfian", Order::Zipf, n)
        .phase("seek-random", Kind::Seek, Order::Uniform, base.fewer(2, 1000))
        .range("range-random-100", Order::Uniform, base.fewer(20, 100), 100)
        .iterate("iterate");
    let large = Params { value_len: 4096, ..random.clone() };
    let few = base.fewer(20, 100);
    let large_values = Database::new("quick-values-4k", &large, few)
        .about("values of 4,096 bytes")
        .put("fill-values-4k-b10", large.load_order(), few, 10)
        .read("read-values-4k", Order::Uniform, few);
    let synced = Params { durability: Durability::Sync, ..random };
    let commits = base.fewer(200, 40).min(SYNCED_COMMITS);
    let durable = Database::new("quick-synced", &synced, commits)
        .about("single writes, each synced to the disk")
        .put("fill-random-sync", synced.load_order(), commits, 1);
    [writes, in_order, reads, large_values, durable].map(Database::case).into()
}
