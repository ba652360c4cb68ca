//! YCSB's core workloads A to F, on records of ten fields of 100 bytes, here one value.

use super::{Base, Case, Database, Params};
use crate::spec::{Kind, Mix};
use crate::workload::{Order, Pattern};

/// YCSB's `user` and twenty digits.
const KEY: usize = 24;
const RECORD: usize = 1000;
/// Longest scan of E; YCSB draws its lengths evenly from 1 to this.
const SCAN: u32 = 100;

/// A, B, C and F change no record's presence and share a database. D and E insert; each has its own.
pub fn cases(base: &Base) -> Vec<Case> {
    let params = Params {
        pattern: Pattern::Zipfian,
        key_len: KEY,
        value_len: RECORD,
        range_size: SCAN,
        ..base.params.clone()
    };
    let n = params.ops;
    let mix = Mix::default();
    let shared = Database::new("ycsb-abcf", &params, n)
        .about("records of 1,000 bytes, zipfian requests")
        .load()
        .mix("ycsb-a", Order::Zipf, n, Mix { read: 50, update: 50, ..mix })
        .mix("ycsb-b", Order::Zipf, n, Mix { read: 95, update: 5, ..mix })
        .mix("ycsb-c", Order::Zipf, n, Mix { read: 100, ..mix })
        .mix("ycsb-f", Order::Zipf, n, Mix { read: 50, modify: 50, ..mix });
    // Room for the inserts: the draw is by chance, so twice their share.
    let with_room = |ops: u64| n + ops / 10 + 100;
    let latest = Database::new("ycsb-d", &params, with_room(n))
        .about("gets prefer the newest records")
        .load_first(n)
        .mix("ycsb-d", Order::Zipf, n, Mix { read: 95, insert: 5, latest: true, ..mix });
    let scans = (n / 10).max(1);
    let short = Database::new("ycsb-e", &params, with_room(scans))
        .about("scans of up to 100 records")
        .load_first(n)
        .phase_with("ycsb-e", Kind::Mix, Order::Zipf, scans, |p| {
            p.mix = Some(Mix { scan: 95, insert: 5, ..mix });
        });
    [shared, latest, short].map(Database::case).into()
}
