//! db_bench's benchmarks by their names.
//!
//! As there, each `fill*` begins a new database and what follows works on it; reads without a fill before them are given
//! a load. Keys are numbers in order (`--num` of them) in hex. Unlike there, `fillrandom` writes each key once, in random
//! order (db_bench's `filluniquerandom`), so that every answer behind it can be checked.

use super::{Case, Database, Params};
use crate::engine::Durability;
use crate::spec::{Background, Kind, Mix};
use crate::workload::{Order, Pattern};

/// The names, with what each does.
pub const NAMES: &[(&str, &str)] = &[
    ("fillseq", "puts in the order of keys, into an empty database"),
    ("fillrandom", "puts in random order, each key once, into an empty database"),
    ("filluniquerandom", "the same"),
    ("fillbatch", "fillseq in commits of 1,000"),
    ("fillsync", "fillrandom with synced commits, a thousandth as many"),
    ("fill100K", "fillrandom of values of 100,000 bytes, a thousandth as many"),
    ("overwrite", "puts of keys drawn evenly"),
    ("readrandom", "gets of keys drawn evenly"),
    ("readseq", "a pass from front to back"),
    ("readreverse", "a pass from back to front"),
    ("readhot", "gets from a hundredth of the keys: here by Zipf's law"),
    ("seekrandom", "seeks of keys drawn evenly"),
    ("readwhilewriting", "gets while one more thread writes"),
    ("seekrandomwhilewriting", "seeks while one more thread writes"),
    ("readrandomwriterandom", "nine gets to a put"),
    ("updaterandom", "a get and a put of the same key"),
    ("deleterandom", "removals of keys drawn evenly"),
    ("deleteseq", "removals in the order of keys"),
];

/// Steps that say when to wait for background work: every writing phase waits here anyway.
const WAITS: [&str; 5] = ["compact", "compact0", "flush", "waitforcompaction", "stats"];

/// The cases of a list of names, parted by commas. `ops` of `params` is `--num`.
pub fn cases(list: &str, params: &Params) -> Result<Vec<Case>, String> {
    let mut made: Vec<Case> = Vec::new();
    let mut current: Option<(Database, bool)> = None;
    let mut seen: Vec<String> = Vec::new();
    for name in list.split(',').map(str::trim).filter(|n| !n.is_empty()) {
        if WAITS.contains(&name) {
            continue;
        }
        if !NAMES.iter().any(|(n, _)| *n == name) {
            let names: Vec<&str> = NAMES.iter().map(|(n, _)| *n).collect();
            return Err(format!("no benchmark is called {name:?}; there are {}", names.join(", ")));
        }
        let times = seen.iter().filter(|n| *n == name).count();
        seen.push(name.into());
        let case = if times == 0 { name.to_string() } else { format!("{name}-{}", times + 1) };
        if name.starts_with("fill") {
            made.extend(current.take().map(|(db, _)| db.case()));
            current = Some((fill(name, &case, params), false));
            continue;
        }
        let (db, deleted) = current.take().unwrap_or_else(|| {
            (
                Database::new(&format!("db_bench-{}", made.len() + 1), &sequential(params), params.ops)
                    .load(),
                false,
            )
        });
        if deleted && name.starts_with("seek") {
            return Err(format!("{name} behind a removal: seeks are checked against keys that are there"));
        }
        current = Some((phase(db, name, &case, params), deleted || name.starts_with("delete")));
    }
    made.extend(current.map(|(db, _)| db.case()));
    if made.is_empty() { Err("no benchmark is named".into()) } else { Ok(made) }
}

fn sequential(params: &Params) -> Params {
    Params { pattern: Pattern::Seq, ..params.clone() }
}

fn fill(name: &str, case: &str, params: &Params) -> Database {
    let mut params = sequential(params);
    let (mut n, mut batch, mut order) = (params.ops, params.batch, Order::Shuffled);
    match name {
        "fillseq" => order = Order::Up,
        "fillbatch" => (order, batch) = (Order::Up, 1000),
        "fillsync" => (n, params.durability) = ((n / 1000).max(1), Durability::Sync),
        "fill100K" => (n, params.value_len) = ((n / 1000).max(1), 100_000),
        _ => {}
    }
    Database::new(&format!("db_bench-{case}"), &params, n).put(case, order, n, batch)
}

fn phase(db: Database, name: &str, case: &str, params: &Params) -> Database {
    let n = params.ops;
    let mix = Mix::default();
    let writer = Background { threads: 1, rate: 0.0, ops: n.saturating_mul(10) };
    match name {
        "overwrite" => db.put(case, Order::Uniform, n, params.batch),
        "readseq" => db.iterate(case),
        "readreverse" => db.phase_with(case, Kind::Iterate, Order::Up, n, |p| p.backward = true),
        "readhot" => db.read(case, Order::Zipf, n),
        "seekrandom" => db.phase(case, Kind::Seek, Order::Uniform, n),
        "readwhilewriting" => db.beside(case, Kind::Read, n, writer),
        "seekrandomwhilewriting" => db.beside(case, Kind::Seek, n, writer),
        "readrandomwriterandom" => db.mix(case, Order::Uniform, n, Mix { read: 90, update: 10, ..mix }),
        "updaterandom" => db.mix(case, Order::Uniform, n, Mix { modify: 100, ..mix }),
        "deleterandom" => db.delete(case, Order::Uniform, n, params.batch),
        "deleteseq" => db.delete(case, Order::Up, n, params.batch),
        _ => db.read(case, Order::Uniform, n),
    }
}
