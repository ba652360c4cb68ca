//! The nine cases that the articles' first tables show.

use super::{Base, Case, Database, Params, Workload};
use crate::spec::Kind;
use crate::workload::{Order, Pattern};

/// One database carries the random load and all that reads it; two more the other writes.
pub fn cases(base: &Base) -> Vec<Case> {
    let params = &base.params;
    let ops = params.ops;
    let random = Params { pattern: Pattern::Random, batch: 1000, ..params.clone() };
    let name = |workload: Workload, pattern: Pattern| Params { workload, pattern, ..random.clone() }.name();
    let many = Database::new("core-random", &random, ops)
        .put(&name(Workload::Write, Pattern::Random), random.load_order(), ops, 1000)
        .read(&name(Workload::Read, Pattern::Random), Order::Uniform, ops)
        .read(&name(Workload::Read, Pattern::Zipfian), Order::Zipf, ops)
        .phase(&name(Workload::Seek, Pattern::Random), Kind::Seek, Order::Uniform, base.fewer(2, 100_000))
        .phase(&name(Workload::Range, Pattern::Random), Kind::Range, Order::Uniform, base.fewer(10, 20_000))
        .iterate(&name(Workload::Iterate, Pattern::Random))
        .delete(&name(Workload::Delete, Pattern::Random), Order::Shuffled, ops, 1000)
        .case();
    let seq = Params { workload: Workload::Write, pattern: Pattern::Seq, ..random.clone() }.case();
    let few = base.fewer(5, 100_000);
    let single = Params { workload: Workload::Write, batch: 1, ops: few, ..random.clone() }.case();
    vec![many, seq, single]
}
