//! Every case of the articles that this project began with: the three that compare TidesDB with RocksDB (`v3`, and `v8`
//! for the cases that the articles on 7.0.7 and 8.2.1 share), the one on SplinterDB and the one on Xodus; then synced
//! writes, thread scaling, and benchtool's own keys and values (`compat`).
//!
//! Where two of an article's cases do the same work (its "random write" and its "batch 1000"), there is one here.

use super::{Base, Case, Database, Params, scaling, splinter, xodus};
use crate::engine::Durability;
use crate::spec::Kind;
use crate::workload::{Order, Pattern, ValueKind};

/// Operations of the case to which `--ops` belongs: the articles' random write of ten million.
pub const STANDARD: u64 = 10_000_000;

/// One of the articles' cases: its number of operations at full size, its keys, its threads, its commits.
#[derive(Clone, Copy)]
struct Row {
    name: &'static str,
    full: u64,
    pattern: Pattern,
    threads: usize,
    batch: u64,
}

const fn row(name: &'static str, full: u64, pattern: Pattern, threads: usize, batch: u64) -> Row {
    Row { name, full, pattern, threads, batch }
}

const M: u64 = 1_000_000;
use Pattern::{Compat, Random, Seq, Timestamp, Zipfian};

/// TidesDB 3.0 and RocksDB 10.7.5: puts, then a pass.
const V3_WRITES: [Row; 9] = [
    row("v3-write-seq-t1", M, Seq, 1, 1),
    row("v3-write-random-t1", M, Random, 1, 1),
    row("v3-write-random-t2", M, Random, 2, 1),
    row("v3-write-random-t4", M, Random, 4, 1),
    row("v3-write-random-t8", M, Random, 8, 1),
    row("v3-write-stress-t8", 5 * M, Random, 8, 1),
    row("v3-write-random-t4-b10", M, Random, 4, 10),
    row("v3-write-random-t4-b100", M, Random, 4, 100),
    row("v3-write-random-t4-b1000", M, Random, 4, 1000),
];

/// Puts, then as many gets, then a pass.
const V3_MIXED: [Row; 6] = [
    row("v3-mixed-random-t1", M, Random, 1, 1),
    row("v3-mixed-random-t4", M, Random, 4, 1),
    row("v3-mixed-zipfian-t4", M / 2, Zipfian, 4, 1),
    row("v3-mixed-timestamp-t4", M / 2, Timestamp, 4, 1),
    row("v3-mixed-random-t4-b100", M, Random, 4, 100),
    row("v3-mixed-random-t4-b1000", M, Random, 4, 1000),
];

const V3_DELETES: [Row; 6] = [
    row("v3-delete-random-t1", M, Random, 1, 1),
    row("v3-delete-random-t4", M, Random, 4, 1),
    row("v3-delete-zipfian-t4", M / 2, Zipfian, 4, 1),
    row("v3-delete-random-t4-b10", M, Random, 4, 10),
    row("v3-delete-random-t4-b100", M, Random, 4, 100),
    row("v3-delete-random-t4-b1000", M, Random, 4, 1000),
];

/// TidesDB 7.0.7 with RocksDB 10.7.5, and 8.2.1 with 10.10.1. The writes of 1000 in a commit are in cases below.
const V8_WRITES: [Row; 4] = [
    row("v8-write-random-b1", 10 * M, Random, 8, 1),
    row("v8-write-random-b10", 10 * M, Random, 8, 10),
    row("v8-write-random-b100", 10 * M, Random, 8, 100),
    row("v8-write-random-b10000", 10 * M, Random, 8, 10_000),
];

const V8_DELETES: [Row; 3] = [
    row("v8-delete-random-b1", 5 * M, Random, 8, 1),
    row("v8-delete-random-b100", 5 * M, Random, 8, 100),
    row("v8-delete-random-b1000", 5 * M, Random, 8, 1000),
];

/// benchtool's own keys and values.
const COMPAT_MIXED: [Row; 5] = [
    row("compat-mixed-t1", M, Compat, 1, 1),
    row("compat-mixed-t4", M, Compat, 4, 1),
    row("compat-mixed-t8-b1000", 5 * M, Compat, 8, 1000),
    row("compat-mixed-seq-t8-b1000", 10 * M, Seq, 8, 1000),
    row("compat-mixed-zipfian-t8-b1000", 5 * M, Zipfian, 8, 1000),
];

/// All of them.
pub fn cases(base: &Base) -> Vec<Case> {
    let maker = Maker { base };
    let mut cases: Vec<Case> = Vec::new();
    cases.extend(V3_WRITES.iter().map(|r| maker.write(r)));
    cases.extend(V3_MIXED.iter().map(|r| maker.mixed(r, &maker.params(r))));
    let kilobyte = row("v3-mixed-random-t4-v1024", M / 2, Random, 4, 1);
    cases.push(maker.mixed(&kilobyte, &Params { value_len: 1024, ..maker.params(&kilobyte) }));
    let small = row("v3-mixed-random-t4-k8-v32", M, Random, 4, 1);
    cases.push(maker.mixed(&small, &Params { key_len: 8, value_len: 32, ..maker.params(&small) }));
    cases.extend(V3_DELETES.iter().map(|r| maker.delete(r)));
    cases.extend(maker.v8());
    cases.extend(
        [("seq", Seq), ("random", Random)].map(|(word, pattern)| maker.eight_kilobytes(word, pattern)),
    );
    cases.extend(maker.synced());
    cases.extend(scaling::threads(&Base {
        params: Params { ops: base.scaled(M, STANDARD), ..base.params.clone() },
        seconds: base.seconds,
    }));
    cases.extend(maker.compat());
    cases.extend(splinter::cases(base));
    cases.extend(xodus::cases(base));
    cases
}

struct Maker<'a> {
    base: &'a Base,
}

impl Maker<'_> {
    fn ops(&self, full: u64) -> u64 {
        self.base.scaled(full, STANDARD)
    }

    fn params(&self, row: &Row) -> Params {
        Params { pattern: row.pattern, threads: row.threads, batch: row.batch, ..self.base.params.clone() }
    }

    fn write(&self, row: &Row) -> Case {
        let (params, n) = (self.params(row), self.ops(row.full));
        Database::new(row.name, &params, n)
            .put(row.name, params.order(Kind::Write), n, row.batch)
            .iterate(&format!("{}-iter", row.name))
            .case()
    }

    fn mixed(&self, row: &Row, params: &Params) -> Case {
        let n = self.ops(row.full);
        Database::new(row.name, params, n)
            .put(&format!("{}-put", row.name), params.order(Kind::Write), n, row.batch)
            .read(&format!("{}-get", row.name), params.order(Kind::Read), n)
            .iterate(&format!("{}-iter", row.name))
            .case()
    }

    fn delete(&self, row: &Row) -> Case {
        let (params, n) = (self.params(row), self.ops(row.full));
        Database::new(row.name, &params, n)
            .load()
            .delete(row.name, params.order(Kind::Delete), n, row.batch)
            .case()
    }

    /// The newer articles' cases, by eight threads.
    fn v8(&self) -> Vec<Case> {
        let random = Params { pattern: Random, threads: 8, ..self.base.params.clone() };
        let seq = Params { pattern: Seq, ..random.clone() };
        let (ten, five, one, half) = (self.ops(10 * M), self.ops(5 * M), self.ops(M), self.ops(M / 2));
        let write_seq = Database::new("v8-write-seq", &seq, ten)
            .put("v8-write-seq", Order::Up, ten, 1000)
            .iterate("v8-write-seq-iter");
        let write_random = Database::new("v8-write-random", &random, ten)
            .about("the articles' random write, which is also their batch of 1000; then their random read")
            .put("v8-write-random", random.load_order(), ten, 1000)
            .iterate("v8-write-random-iter")
            .read("v8-read-random", Order::Uniform, ten);
        let mixed_random = Database::new("v8-mixed-random", &random, five)
            .about("random mixed, then the articles' random and zipfian seeks")
            .put("v8-mixed-random-put", random.load_order(), five, 1000)
            .read("v8-mixed-random-get", Order::Uniform, five)
            .iterate("v8-mixed-random-iter")
            .phase("v8-seek-random", Kind::Seek, Order::Uniform, five)
            .phase("v8-seek-zipfian", Kind::Seek, Order::Zipf, five);
        let zipfian = Database::new("v8-zipfian", &Params { pattern: Zipfian, ..random.clone() }, five)
            .about("the articles' zipfian write, a pass, and the gets of their zipfian mixed")
            .put("v8-write-zipfian", Order::Zipf, five, 1000)
            .iterate("v8-write-zipfian-iter")
            .read("v8-mixed-zipfian-get", Order::Zipf, five);
        let seek_seq =
            Database::new("v8-seek-seq", &seq, five).load().phase("v8-seek-seq", Kind::Seek, Order::Up, five);
        let range = Database::new("v8-range-random-100", &random, one).load().range(
            "v8-range-random-100",
            Order::Uniform,
            one,
            100,
        );
        let wide = Database::new("v8-range-random-1000", &random, half).load().range(
            "v8-range-random-1000",
            Order::Uniform,
            half,
            1000,
        );
        let range_seq = Database::new("v8-range-seq-100", &seq, one).load().range(
            "v8-range-seq-100",
            Order::Up,
            one,
            100,
        );
        let large = Params { key_len: 256, value_len: 4096, ..random.clone() };
        let large = Database::new("v8-write-k256-v4096", &large, one)
            .put("v8-write-k256-v4096", large.load_order(), one, 1000)
            .iterate("v8-write-k256-v4096-iter");
        let fifty = self.ops(50 * M);
        let small = Params { value_len: 64, ..random.clone() };
        let small = Database::new("v8-write-v64", &small, fifty)
            .put("v8-write-v64", small.load_order(), fifty, 1000)
            .iterate("v8-write-v64-iter");
        let shared =
            [write_seq, write_random, mixed_random, zipfian, seek_seq, range, wide, range_seq, large, small];
        let mut cases: Vec<Case> = shared.map(Database::case).into();
        cases.extend(V8_WRITES.iter().map(|r| self.write(r)));
        cases.extend(V8_DELETES.iter().map(|r| self.delete(r)));
        cases
    }

    /// The newer articles' large values, by two threads: everything on one database.
    fn eight_kilobytes(&self, word: &str, pattern: Pattern) -> Case {
        let n = self.ops(100_000);
        let params = Params { pattern, threads: 2, value_len: 8192, ..self.base.params.clone() };
        let order = params.order(Kind::Read);
        let name = |what: &str| format!("v7-8k-{word}-{what}");
        Database::new(&format!("v7-8k-{word}"), &params, n)
            .put(&name("put"), params.order(Kind::Write), n, 1)
            .read(&name("get"), order, n)
            .phase(&name("seek"), Kind::Seek, order, n)
            .range(&name("range100"), order, n, 100)
            .iterate(&name("iter"))
            .case()
    }

    /// benchtool with `--sync`.
    fn synced(&self) -> Vec<Case> {
        [
            ("sync-write-t1", 20_000, 1, 1),
            ("sync-write-t8", 100_000, 8, 1),
            ("sync-write-t8-b1000", 2 * M, 8, 1000),
        ]
        .map(|(name, full, threads, batch)| {
            let row = row(name, full, Random, threads, batch);
            let params = Params { durability: Durability::Sync, ..self.params(&row) };
            let n = self.ops(full);
            Database::new(name, &params, n).put(name, params.load_order(), n, batch).case()
        })
        .into()
    }

    /// benchtool's keys, values and sequence: puts of values that compress twelve to one, then gets in the order of
    /// writing.
    fn compat(&self) -> Vec<Case> {
        let ramp = |params: Params| Params { value_kind: ValueKind::Ramp, ..params };
        let mut cases: Vec<Case> =
            COMPAT_MIXED.iter().map(|r| self.mixed(r, &ramp(self.params(r)))).collect();
        let params = ramp(Params { pattern: Compat, threads: 8, ..self.base.params.clone() });
        let (ten, one) = (self.ops(10 * M), self.ops(M));
        let reads = Database::new("compat-write-read", &params, ten)
            .put("compat-write-t8-b1000", Order::Up, ten, 1000)
            .iterate("compat-write-t8-b1000-iter")
            .read("compat-read-t8", Order::Up, ten)
            .phase("compat-seek-t8", Kind::Seek, Order::Up, self.ops(5 * M));
        let ranges = Database::new("compat-range-100", &params, one).load().range(
            "compat-range-100",
            Order::Up,
            one,
            100,
        );
        let deletes = Database::new("compat-delete", &params, self.ops(5 * M)).load().delete(
            "compat-delete-t8-b1000",
            Order::Up,
            self.ops(5 * M),
            1000,
        );
        cases.extend([reads, ranges, deletes].map(Database::case));
        cases
    }
}
