//! A case in the making: one database and the phases on it, one behind the other.

use super::{Case, Params};
use crate::spec::{Background, Kind, Mix, Phase};
use crate::workload::{DataSet, Order};

/// Writes in a commit while loading.
pub const LOAD_BATCH: u64 = 1000;

/// Builds a [`Case`]. Phases of a database differ in their draws by the order in which they are added.
#[derive(Clone, Debug)]
pub struct Database {
    name: String,
    params: Params,
    set: DataSet,
    phases: Vec<Phase>,
    about: String,
}

impl Database {
    /// An empty database for `n` keys of the pattern, the sizes and the terms of `params`.
    pub fn new(name: &str, params: &Params, n: u64) -> Database {
        let n = n.max(1);
        let set = params.set(n);
        Database { name: name.into(), params: params.clone(), set, phases: Vec::new(), about: String::new() }
    }

    /// What it is for, in a few words.
    pub fn about(mut self, words: &str) -> Database {
        self.about = words.into();
        self
    }

    /// Puts every key, unreported.
    pub fn load(self) -> Database {
        let n = self.set.n;
        self.load_first(n)
    }

    /// Puts the first `n` ids, unreported.
    pub fn load_first(self, n: u64) -> Database {
        let order = self.params.load_order();
        self.put("", order, n, LOAD_BATCH)
    }

    /// Puts in commits of `batch`. Of an order that visits each key once there are no more than keys.
    pub fn put(self, case: &str, order: Order, ops: u64, batch: u64) -> Database {
        let ops = if order.visits_once() { ops.min(self.set.n) } else { ops };
        self.phase_with(case, Kind::Write, order, ops, |p| p.batch = batch)
    }

    /// Removals in commits of `batch`.
    pub fn delete(self, case: &str, order: Order, ops: u64, batch: u64) -> Database {
        let ops = if order.visits_once() { ops.min(self.set.n) } else { ops };
        self.phase_with(case, Kind::Delete, order, ops, |p| p.batch = batch)
    }

    /// Gets by an order.
    pub fn read(self, case: &str, order: Order, ops: u64) -> Database {
        self.phase(case, Kind::Read, order, ops)
    }

    /// Ranges of `size` entries.
    pub fn range(self, case: &str, order: Order, ops: u64, size: u32) -> Database {
        self.phase_with(case, Kind::Range, order, ops, |p| p.range_size = size)
    }

    /// One pass over everything, by one thread.
    pub fn iterate(self, case: &str) -> Database {
        let n = self.set.n;
        self.phase(case, Kind::Iterate, Order::Up, n)
    }

    /// A mix of operations.
    pub fn mix(self, case: &str, order: Order, ops: u64, mix: Mix) -> Database {
        self.phase_with(case, Kind::Mix, order, ops, |p| p.mix = Some(mix))
    }

    /// Reads, seeks or ranges while others write.
    pub fn beside(self, case: &str, kind: Kind, ops: u64, background: Background) -> Database {
        self.phase_with(case, kind, Order::Uniform, ops, |p| p.background = Some(background))
    }

    /// A phase of single operations.
    pub fn phase(self, case: &str, kind: Kind, order: Order, ops: u64) -> Database {
        self.phase_with(case, kind, order, ops, |_| {})
    }

    /// A phase, changed before it is added. An empty `case` is not reported.
    pub fn phase_with(
        mut self,
        case: &str,
        kind: Kind,
        order: Order,
        ops: u64,
        change: impl FnOnce(&mut Phase),
    ) -> Database {
        let mut phase = Phase {
            case: case.into(),
            kind,
            order,
            ops: ops.max(1),
            threads: if kind == Kind::Iterate { 1 } else { self.params.threads },
            batch: 1,
            range_size: self.params.range_size,
            settle: self.params.settle && kind.changes(),
            stream: self.phases.len() as u64,
            rate: 0.0,
            seconds: 0.0,
            backward: false,
            mix: None,
            background: None,
        };
        change(&mut phase);
        self.phases.push(phase);
        self
    }

    /// The case.
    pub fn case(self) -> Case {
        let mut config = self.params.config(&self.set);
        let at_once = |p: &Phase| p.threads + p.background.map_or(0, |b| b.threads);
        config.threads = self.phases.iter().map(at_once).max().unwrap_or(1);
        Case {
            name: self.name,
            config,
            set: self.set,
            phases: self.phases,
            about: self.about,
            memory_limit: self.params.memory_limit,
        }
    }
}
