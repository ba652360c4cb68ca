//! Saturated random writes with reads among them, long enough for every engine's background work to fall behind.

use super::{Base, Case, Database, Params};
use crate::spec::{Background, Kind, Mix};
use crate::workload::{Order, Pattern};

const SECONDS: f64 = 600.0;
/// No engine here does more a second; the ids of all operations are drawn before the clock starts, four bytes each.
const OPS_A_SECOND: f64 = 400_000.0;
/// Seconds of the second case over those of the first.
const READS_SHARE: f64 = 0.2;

/// First every thread writes nine times and reads once; then one thread reads beside writers that never pause, so that a
/// stall of theirs shows in its latency.
pub fn cases(base: &Base) -> Vec<Case> {
    let params = Params { pattern: Pattern::Random, ..base.params.clone() };
    let seconds = base.seconds.unwrap_or(SECONDS);
    let bound = |seconds: f64| (seconds * OPS_A_SECOND).max(1000.0) as u64;
    let writers = params.threads;
    let n = params.ops;
    let writes = Database::new("stalls-writes", &params, n)
        .about("nine writes to a read, by every thread, as fast as they can")
        .load()
        .phase_with("stalls-write", Kind::Mix, Order::Uniform, bound(seconds), |p| {
            p.mix = Some(Mix { update: 90, read: 10, ..Mix::default() });
            p.seconds = seconds;
        });
    let brief = (seconds * READS_SHARE).max(1.0);
    let reads = Database::new("stalls-reads", &params, n)
        .about("one reader beside writers that never pause")
        .load()
        .phase_with("stalls-read", Kind::Read, Order::Uniform, bound(brief), |p| {
            p.threads = 1;
            p.seconds = brief;
            p.background = Some(Background { threads: writers, rate: 0.0, ops: bound(brief) });
        });
    [writes, reads].map(Database::case).into()
}
