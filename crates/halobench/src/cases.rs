//! Cases: what is run, as benchtool's flags say it, and the suites.

use crate::engine::{Compression, Config, Durability};
use crate::spec::{Kind, Phase};
use crate::workload::{DataSet, Order, Pattern, ValueKind};
use serde::{Deserialize, Serialize};

/// The knobs of a single case.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Params {
    /// What it does.
    pub kind: Kind,
    /// On which keys.
    pub pattern: Pattern,
    /// Number of operations, and of keys.
    pub ops: u64,
    /// Number of threads.
    pub threads: usize,
    /// Writes in a commit.
    pub batch: u64,
    /// Bytes of a key.
    pub key_len: usize,
    /// Bytes of a value.
    pub value_len: usize,
    /// What values are made of.
    pub value_kind: ValueKind,
    /// Entries in a range.
    pub range_size: u32,
    /// Whether each commit is synced.
    pub sync: bool,
    /// Bytes of a memtable.
    pub write_buffer: usize,
    /// Bytes of the cache.
    pub cache: usize,
    /// How values are compressed.
    pub compression: Compression,
    /// The seed.
    pub seed: u64,
    /// Whether to settle after loads and writes.
    pub settle: bool,
}

/// Writes in a commit while loading.
const LOAD_BATCH: u64 = 1000;

/// A database's life without the engine: what [`crate::spec::Plan`] has, but for the process.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Case {
    /// A name for progress and errors.
    pub name: String,
    /// The terms.
    pub config: Config,
    /// The keys and values.
    pub set: DataSet,
    /// The work.
    pub phases: Vec<Phase>,
}

impl Params {
    fn config(&self, set: &DataSet) -> Config {
        Config {
            write_buffer: self.write_buffer,
            cache: self.cache,
            durability: if self.sync { Durability::Sync } else { Durability::Process },
            compression: self.compression,
            threads: self.threads,
            expected_bytes: set.bytes(),
            rocksdb_lib: None,
        }
    }

    fn set(&self, n: u64) -> DataSet {
        DataSet {
            n,
            encoding: self.pattern.encoding(),
            key_len: self.key_len,
            value_len: self.value_len,
            value_kind: self.value_kind,
            seed: self.seed,
        }
    }

    fn phase(&self, kind: Kind, order: Order) -> Phase {
        Phase {
            case: String::new(),
            kind,
            order,
            ops: self.ops,
            threads: if kind == Kind::Iterate { 1 } else { self.threads },
            batch: if matches!(kind, Kind::Write | Kind::Delete) { self.batch } else { 1 },
            range_size: self.range_size,
            settle: self.settle && kind.changes(),
            stream: 0,
            rate: 0.0,
            seconds: 0.0,
            backward: false,
            mix: None,
            background: None,
        }
    }

    /// The order in which this case's own phase visits the ids.
    fn order(&self) -> Order {
        match self.kind {
            Kind::Write => self.pattern.write_order(),
            Kind::Delete => self.pattern.delete_order(),
            Kind::Iterate => Order::Up,
            _ => self.pattern.read_order(),
        }
    }

    fn name(&self) -> String {
        let mut name = format!("{}-{}", word(&self.kind), word(&self.pattern));
        if matches!(self.kind, Kind::Write | Kind::Delete) {
            name += &format!("-b{}", self.batch);
        }
        if self.kind == Kind::Range {
            name += &format!("-{}", self.range_size);
        }
        if self.sync {
            name += "-sync";
        }
        name
    }

    /// The single case of these knobs; what reads or deletes is loaded first.
    pub fn case(&self) -> Case {
        let set = self.set(self.ops);
        let mut phases = Vec::new();
        if self.kind != Kind::Write {
            phases.push(Phase { batch: LOAD_BATCH, ..self.phase(Kind::Write, Order::Up) });
        }
        let own = Phase { case: self.name(), stream: 1, ..self.phase(self.kind, self.order()) };
        phases.push(own);
        Case { name: self.name(), config: self.config(&set), set, phases }
    }
}

/// A choice's word on the command line.
fn word<T: clap::ValueEnum>(choice: &T) -> String {
    choice.to_possible_value().map_or_else(String::new, |v| v.get_name().to_string())
}

/// The suites, by name.
pub const SUITES: [(&str, &str); 1] = [("core", "the nine cases that the articles' first tables show")];

/// The cases of a suite, scaled to `base.ops`; `base` gives threads, sizes and terms.
pub fn suite(name: &str, base: &Params) -> Result<Vec<Case>, String> {
    match name {
        "core" => Ok(core(base)),
        _ => {
            let names: Vec<&str> = SUITES.iter().map(|(n, _)| *n).collect();
            Err(format!("no suite is called {name:?}; there is {}", names.join(", ")))
        }
    }
}

/// One database carries the random load and all that reads it; two more the other writes.
fn core(base: &Params) -> Vec<Case> {
    let random = Params { pattern: Pattern::Random, batch: 1000, ..base.clone() };
    let fewer = |divisor: u64, least: u64| (base.ops / divisor).max(least.min(base.ops)).max(1);
    let mut stream = 0;
    let mut phase = |params: &Params, kind: Kind, order: Order, ops: u64| {
        stream += 1;
        let params = Params { kind, ops, ..params.clone() };
        Phase { case: params.name(), stream, ..params.phase(kind, order) }
    };
    let zipf = Params { pattern: Pattern::Zipfian, ..random.clone() };
    let many = vec![
        phase(&random, Kind::Write, Order::Up, base.ops),
        phase(&random, Kind::Read, Order::Uniform, base.ops),
        phase(&zipf, Kind::Read, Order::Zipf, base.ops),
        phase(&random, Kind::Seek, Order::Uniform, fewer(2, 100_000)),
        phase(&random, Kind::Range, Order::Uniform, fewer(10, 20_000)),
        phase(&random, Kind::Iterate, Order::Up, base.ops),
        phase(&random, Kind::Delete, Order::Shuffled, base.ops),
    ];
    let set = random.set(base.ops);
    let on_one = Case { name: "core-random".into(), config: random.config(&set), set, phases: many };

    let seq = Params { kind: Kind::Write, pattern: Pattern::Seq, ..random.clone() }.case();
    let single = Params {
        kind: Kind::Write,
        batch: 1,
        ops: fewer(5, 100_000),
        pattern: Pattern::Random,
        ..base.clone()
    }
    .case();
    vec![on_one, seq, single]
}
