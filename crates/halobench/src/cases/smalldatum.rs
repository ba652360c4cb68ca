//! Mark Callaghan's sequence for small servers: fill in order, read, overwrite until there is debt, then read while a
//! rate-limited writer keeps the debt up, then pay it.
//!
//! His `multireadrandom` has no counterpart here, because few of the engines have a call for several keys. Write
//! amplification after the debt is paid is the figure `write_amp_closed` of the last case.

use super::{Base, Case, Database, Params};
use crate::spec::{Background, Kind};
use crate::workload::{Order, Pattern};

const KEY: usize = 20;
const VALUE: usize = 400;
/// His writer's two megabytes a second, in writes.
const WRITER_RATE: f64 = 2e6 / (KEY + VALUE) as f64;
/// The slowest that a read phase is expected to be, in seconds; bounds what the writer may need.
const WRITER_SECONDS: f64 = 600.0;
const RANGE: u32 = 10;

/// One database all the way.
pub fn cases(base: &Base) -> Vec<Case> {
    let params = Params {
        pattern: Pattern::Seq,
        key_len: KEY,
        value_len: VALUE,
        range_size: RANGE,
        ..base.params.clone()
    };
    let n = params.ops;
    let reads = base.fewer(5, 1000);
    let writer = Background { threads: 1, rate: WRITER_RATE, ops: (WRITER_RATE * WRITER_SECONDS) as u64 };
    let beside = |name: &str, kind: Kind, backward: bool, db: Database| {
        db.phase_with(name, kind, Order::Uniform, reads, |p| {
            p.background = Some(writer);
            p.backward = backward;
            // The debt stays until the end.
            p.settle = false;
        })
    };
    let backward = |p: &mut crate::spec::Phase| p.backward = true;
    let mut db = Database::new("smalldatum", &params, n)
        .about("fill, read, overwrite, read beside a writer of 2 MB/s")
        .phase_with("sd-fillseq", Kind::Write, Order::Up, n, |p| p.threads = 1)
        .phase_with("sd-revrange", Kind::Range, Order::Uniform, reads, backward)
        .phase("sd-readrandom", Kind::Read, Order::Uniform, reads)
        .phase("sd-fwdrange", Kind::Range, Order::Uniform, reads)
        .phase_with("sd-overwrite", Kind::Write, Order::Uniform, n, |p| p.settle = false);
    db = beside("sd-revrangewhilewriting", Kind::Range, true, db);
    db = beside("sd-fwdrangewhilewriting", Kind::Range, false, db);
    db = beside("sd-readwhilewriting", Kind::Read, false, db);
    let last =
        db.phase_with("sd-overwrite-settled", Kind::Write, Order::Uniform, base.fewer(10, 1000), |p| {
            p.settle = true;
        });
    vec![last.case()]
}
