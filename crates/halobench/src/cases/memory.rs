//! Data of four times the memory that the engine's process may hold, page cache included.

use super::{Base, Case, Database, Params};
use crate::spec::Kind;
use crate::workload::{Order, Pattern, ValueKind};

/// Unless the user gives one.
const LIMIT: u64 = 512 << 20;
const DATA_OVER_MEMORY: u64 = 4;
const VALUE: usize = 1000;

/// Values do not compress, so that the data is as large on the disk; `ops` above 0 sets the number of keys instead.
pub fn cases(base: &Base) -> Vec<Case> {
    let limit = base.params.memory_limit.unwrap_or(LIMIT);
    let params = Params {
        pattern: Pattern::Random,
        value_len: VALUE,
        value_kind: ValueKind::Incompressible,
        ..base.params.clone()
    }
    .within(limit);
    let entry = (params.key_len + VALUE) as u64;
    let n = if params.ops == 0 { limit * DATA_OVER_MEMORY / entry } else { params.ops };
    let part = |divisor: u64| (n / divisor).max(1);
    let case = Database::new("memory", &params, n)
        .about("incompressible values, four times the memory limit")
        .put("memory-fill-random-b100", params.load_order(), n, 100)
        .read("memory-read-uniform", Order::Uniform, part(10))
        .read("memory-read-zipfian", Order::Zipf, part(5))
        .phase("memory-seek", Kind::Seek, Order::Uniform, part(20))
        .range("memory-range-100", Order::Uniform, part(200), 100)
        .iterate("memory-iterate")
        .put("memory-overwrite-zipfian", Order::Zipf, part(5), 1)
        .phase("memory-read-write", Kind::Mixed, Order::Uniform, part(10))
        .case();
    vec![case]
}
