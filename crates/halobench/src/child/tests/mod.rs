//! Lies are found out, and honest engines are not accused.

mod lies;
mod mixes;
mod phases;

use super::run;
use crate::engine::liar::{Lie, Store};
use crate::engine::{Compression, Config, Durability};
use crate::spec::{Background, Ending, Event, Kind, Mix, Phase, PhaseResult, Plan};
use crate::workload::{DataSet, Order, Pattern, ValueKind};

/// Keys, and operations of a phase.
const N: u64 = 600;

/// One operation after the other, by three threads.
fn phase(kind: Kind, order: Order, stream: u64) -> Phase {
    Phase {
        case: format!("{kind:?} {order:?} {stream}"),
        kind,
        order,
        ops: N,
        threads: if kind == Kind::Iterate { 1 } else { 3 },
        batch: 1,
        range_size: 20,
        settle: true,
        stream,
        rate: 0.0,
        seconds: 0.0,
        backward: false,
        mix: None,
        background: None,
    }
}

fn load() -> Phase {
    Phase { batch: 7, ..phase(Kind::Write, Order::Up, 0) }
}

/// These phases, on keys at random.
fn plan(phases: Vec<Phase>) -> Plan {
    Plan {
        name: "test".into(),
        engine: "liar".into(),
        dir: std::path::PathBuf::new(),
        config: Config {
            write_buffer: 1 << 20,
            cache: 1 << 20,
            durability: Durability::Process,
            compression: Compression::Lz4,
            threads: 3,
            expected_bytes: 1 << 20,
            rocksdb_lib: None,
        },
        set: DataSet {
            n: N,
            encoding: Pattern::Random.encoding(),
            key_len: 16,
            value_len: 40,
            value_kind: ValueKind::Half,
            seed: 5,
        },
        phases,
        settle_limit_s: 1,
        latency_every: 1,
    }
}

/// The single case of a kind and a pattern: what reads or deletes is loaded first.
fn case(kind: Kind, pattern: Pattern) -> Plan {
    let order = match kind {
        Kind::Write => pattern.write_order(),
        Kind::Delete => pattern.delete_order(),
        Kind::Iterate => Order::Up,
        _ => pattern.read_order(),
    };
    let own = phase(kind, order, 1);
    let mut plan = plan(if kind == Kind::Write { vec![own] } else { vec![load(), own] });
    plan.set.encoding = pattern.encoding();
    plan
}

/// What came of a plan.
#[derive(Default)]
struct Outcome {
    phases: Vec<PhaseResult>,
    end: Option<Ending>,
    error: Option<String>,
}

impl Outcome {
    /// Wrong answers of the last phase.
    fn wrong(&self) -> u64 {
        assert_eq!(self.error, None);
        self.phases.last().unwrap().wrong
    }

    /// Wrong answers from beginning to end, and the first words.
    fn all_wrong(&self) -> (u64, Vec<&str>) {
        assert_eq!(self.error, None);
        let end = self.end.as_ref().unwrap();
        let words = self.phases.iter().flat_map(|p| &p.wrong_examples).chain(&end.wrong_examples);
        let count = self.phases.iter().map(|p| p.wrong).sum::<u64>() + end.wrong;
        (count, words.map(String::as_str).collect())
    }
}

/// Runs a plan on a store that lies in this way.
fn outcome(plan: &Plan, lie: Lie) -> Outcome {
    let dir = tempfile::tempdir().unwrap();
    let plan = Plan { dir: dir.path().into(), ..plan.clone() };
    let store = Store::new(lie);
    let mut outcome = Outcome::default();
    let open = |name: &str, dir: &std::path::Path, config: &_| store.open(name, dir, config);
    outcome.error = run(&plan, &open, &mut |event| {
        match event {
            Event::Phase(p) => outcome.phases.push(*p),
            Event::End(e) => outcome.end = Some(*e),
            _ => {}
        }
        Ok(())
    })
    .err();
    outcome
}

/// Runs it on an honest store: nothing may be wrong.
fn honest(plan: &Plan) -> Outcome {
    let outcome = outcome(plan, Lie::Honest);
    assert_eq!(outcome.error, None);
    assert_eq!(outcome.all_wrong(), (0, vec![]), "{:?}", plan.phases.last());
    outcome
}

/// Wrong answers in the last phase.
fn wrong(plan: &Plan, lie: Lie) -> u64 {
    outcome(plan, lie).wrong()
}
