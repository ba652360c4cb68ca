//! The knobs of a single case, as benchtool's flags say it.

use super::{Case, Database};
use crate::engine::{Compression, Config, Durability};
use crate::spec::Kind;
use crate::workload::{DataSet, Encoding, Order, Pattern, ValueKind};
use serde::{Deserialize, Serialize};

/// What a single case does, by benchtool's names and a few more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Workload {
    /// Puts into an empty database.
    #[default]
    Write,
    /// Gets, after a load.
    Read,
    /// Puts into an empty database, then as many gets, as benchtool does it: not at once.
    Mixed,
    /// Gets and puts at once, by a fair coin, after a load.
    Concurrent,
    /// Removals, after a load.
    Delete,
    /// Seeks, after a load, each reading the key it lands on.
    Seek,
    /// Seeks, after a load, each followed by a number of entries.
    Range,
    /// One pass over everything, after a load.
    Iterate,
}

impl From<Kind> for Workload {
    /// The case whose own phase is of this kind.
    fn from(kind: Kind) -> Workload {
        match kind {
            Kind::Write => Workload::Write,
            Kind::Read => Workload::Read,
            Kind::Mixed | Kind::Mix => Workload::Concurrent,
            Kind::Delete => Workload::Delete,
            Kind::Seek => Workload::Seek,
            Kind::Range => Workload::Range,
            Kind::Iterate => Workload::Iterate,
        }
    }
}

/// The knobs of a single case, and the terms of a suite.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Params {
    /// What it does.
    pub workload: Workload,
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
    /// What commits survive.
    pub durability: Durability,
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
    /// Whether a pass over everything follows, as benchtool makes one behind each run.
    pub iterate: bool,
    /// Bytes of memory that the engine's process may hold, page cache included.
    pub memory_limit: Option<u64>,
}

impl Default for Params {
    fn default() -> Params {
        Params {
            workload: Workload::Write,
            pattern: Pattern::Random,
            ops: 10_000_000,
            threads: 8,
            batch: 1,
            key_len: 16,
            value_len: 100,
            value_kind: ValueKind::Half,
            range_size: 100,
            durability: Durability::Process,
            write_buffer: 64 << 20,
            cache: 64 << 20,
            compression: Compression::Lz4,
            seed: 42,
            settle: true,
            iterate: false,
            memory_limit: None,
        }
    }
}

impl Params {
    /// The same under a memory limit, with terms that leave room in it: an engine may have several write buffers.
    pub fn within(self, limit: u64) -> Params {
        let most = |part: u64| usize::try_from(limit / part).unwrap_or(usize::MAX);
        Params {
            write_buffer: self.write_buffer.min(most(16)),
            cache: self.cache.min(most(8)),
            memory_limit: Some(limit),
            ..self
        }
    }
}

/// Bytes of a key that hold a hash of 64 bits in hex.
const HASHED_KEY: usize = 16;

impl Params {
    /// The terms, for a set of keys and values.
    pub fn config(&self, set: &DataSet) -> Config {
        Config {
            write_buffer: self.write_buffer,
            cache: self.cache,
            durability: self.durability,
            compression: self.compression,
            threads: self.threads,
            expected_bytes: set.bytes(),
            rocksdb_lib: None,
        }
    }

    /// `n` keys of this pattern with their values.
    pub fn set(&self, n: u64) -> DataSet {
        DataSet {
            n,
            encoding: self.encoding(),
            key_len: self.key_len,
            value_len: self.value_len,
            value_kind: self.value_kind,
            seed: self.seed,
        }
    }

    /// A random key too short for its hash is its counter, visited in random order.
    pub fn encoding(&self) -> Encoding {
        match self.pattern.encoding() {
            Encoding::Hashed if self.key_len < HASHED_KEY => Encoding::Ordered,
            other => other,
        }
    }

    /// The order of a load, which visits every id once: at random in keys where the pattern's writes are.
    pub fn load_order(&self) -> Order {
        match self.pattern {
            Pattern::Reverse => Order::Down,
            _ if self.encoding() != self.pattern.encoding() => Order::Shuffled,
            _ => Order::Up,
        }
    }

    /// The order of this pattern's own operations of a kind.
    pub fn order(&self, kind: Kind) -> Order {
        match kind {
            Kind::Write => match self.pattern.write_order() {
                Order::Up => self.load_order(),
                other => other,
            },
            Kind::Delete => self.pattern.delete_order(),
            Kind::Iterate => Order::Up,
            _ => self.pattern.read_order(),
        }
    }

    /// The name of this case: what it does on which keys, and what sets it apart.
    pub fn name(&self) -> String {
        let mut name = format!("{}-{}", word(&self.workload), word(&self.pattern));
        if matches!(self.workload, Workload::Write | Workload::Delete | Workload::Mixed) {
            name += &format!("-b{}", self.batch);
        }
        if self.workload == Workload::Range {
            name += &format!("-{}", self.range_size);
        }
        match self.durability {
            Durability::Process => {}
            other => name += &format!("-{}", word(&other)),
        }
        name
    }

    /// The single case of these knobs; what reads or deletes is loaded first.
    pub fn case(&self) -> Case {
        let name = self.name();
        let (ops, batch) = (self.ops, self.batch);
        let mut db = Database::new(&name, self, ops);
        let write = |db: Database, case: &str| db.put(case, self.order(Kind::Write), ops, batch);
        let on_load = |db: Database, kind: Kind| db.load().phase(&name, kind, self.order(kind), ops);
        db = match self.workload {
            Workload::Write => write(db, &name),
            Workload::Mixed => write(db, &format!("{name}-put")).phase(
                &format!("{name}-get"),
                Kind::Read,
                self.order(Kind::Read),
                ops,
            ),
            Workload::Read => on_load(db, Kind::Read),
            Workload::Concurrent => on_load(db, Kind::Mixed),
            Workload::Delete => db.load().delete(&name, self.order(Kind::Delete), ops, batch),
            Workload::Seek => on_load(db, Kind::Seek),
            Workload::Range => on_load(db, Kind::Range),
            Workload::Iterate => db.load().iterate(&name),
        };
        // Nothing is left to pass over behind a removal of everything.
        if self.iterate && !matches!(self.workload, Workload::Iterate | Workload::Delete) {
            db = db.iterate(&format!("{name}-iter"));
        }
        db.case()
    }
}

/// A choice's word on the command line.
pub fn word<T: clap::ValueEnum>(choice: &T) -> String {
    choice.to_possible_value().map_or_else(String::new, |v| v.get_name().to_string())
}
