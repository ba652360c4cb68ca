//! Lies are found out, and honest engines are not accused.

use super::run;
use crate::cases::Params;
use crate::engine::Durability;
use crate::engine::liar::{Lie, Store};
use crate::spec::{Ending, Event, Kind, PhaseResult, Plan};
use crate::workload::{Pattern, ValueKind};
use clap::ValueEnum;

fn params(kind: Kind, pattern: Pattern) -> Params {
    Params {
        workload: kind.into(),
        pattern,
        ops: 600,
        threads: 3,
        batch: 7,
        value_len: 40,
        range_size: 20,
        write_buffer: 1 << 20,
        cache: 1 << 20,
        seed: 5,
        ..Params::default()
    }
}

/// Runs a case on a store that lies in this way.
fn outcome(params: &Params, lie: Lie) -> (Vec<PhaseResult>, Ending) {
    let dir = tempfile::tempdir().unwrap();
    let case = params.case();
    assert_eq!(case.config.durability, Durability::Process);
    let plan = Plan {
        name: case.name,
        engine: "liar".into(),
        dir: dir.path().into(),
        config: case.config,
        set: case.set,
        phases: case.phases,
        settle_limit_s: 1,
        latency_every: 1,
    };
    let store = Store::new(lie);
    let (mut phases, mut end) = (Vec::new(), None);
    let open = |name: &str, dir: &std::path::Path, config: &_| store.open(name, dir, config);
    run(&plan, &open, &mut |event| {
        match event {
            Event::Phase(p) => phases.push(*p),
            Event::End(e) => end = Some(*e),
            _ => {}
        }
        Ok(())
    })
    .unwrap();
    (phases, end.unwrap())
}

/// Wrong answers in the last phase, and after the reopening.
fn wrong(params: &Params, lie: Lie) -> (u64, u64) {
    let (phases, end) = outcome(params, lie);
    (phases.last().unwrap().wrong, end.wrong)
}

#[test]
fn an_honest_engine_is_right_in_every_case() {
    for &kind in Kind::value_variants().iter().filter(|&&k| k != Kind::Mix) {
        for &pattern in Pattern::value_variants() {
            for batch in [1, 7] {
                let p = Params { batch, ..params(kind, pattern) };
                let (phases, end) = outcome(&p, Lie::Honest);
                let last = phases.last().unwrap();
                assert_eq!(
                    (last.wrong, end.wrong),
                    (0, 0),
                    "{kind:?} {pattern:?}: {:?}",
                    last.wrong_examples
                );
                assert_eq!(last.ops, 600);
                assert!(last.ops_per_s > 0.0);
                let samples = if kind == Kind::Iterate {
                    0
                } else if matches!(kind, Kind::Write | Kind::Delete) && batch > 1 {
                    200u64.div_ceil(batch) * 3
                } else {
                    600
                };
                assert_eq!(last.latency.samples, samples, "{kind:?} {pattern:?} {batch}");
            }
        }
    }
}

#[test]
fn short_and_ramp_values_are_right_too() {
    for value_kind in ValueKind::value_variants() {
        for value_len in [1, 7, 9, 40] {
            let p = Params { value_kind: *value_kind, value_len, ..params(Kind::Mixed, Pattern::Zipfian) };
            assert_eq!(wrong(&p, Lie::Honest), (0, 0), "{value_kind:?} {value_len}");
        }
    }
}

#[test]
fn equal_states_have_equal_digests() {
    let digest = |threads| {
        let p = Params { threads, ..params(Kind::Write, Pattern::Random) };
        outcome(&p, Lie::Honest).0.last().unwrap().digest.clone().unwrap()
    };
    assert_eq!(digest(1), digest(4));
}

#[test]
fn lost_keys_are_found_by_gets_scans_and_the_final_count() {
    for kind in [Kind::Write, Kind::Read, Kind::Range, Kind::Iterate, Kind::Seek, Kind::Mixed] {
        let (phases, end) = outcome(&params(kind, Pattern::Random), Lie::LosesKeys);
        assert!(phases.iter().all(|p| p.wrong > 0), "{kind:?}");
        assert!(end.wrong > 0);
    }
}

#[test]
fn old_values_are_found() {
    // One thread: a get of a key's loaded value behind its overwrite in the same phase is plausible to other threads,
    // so what tells is the state behind the phase.
    assert!(wrong(&params(Kind::Write, Pattern::Zipfian), Lie::IgnoresOverwrite).0 > 0);
    assert!(wrong(&params(Kind::Write, Pattern::Uniform), Lie::IgnoresOverwrite).0 > 0);
    assert!(wrong(&params(Kind::Mixed, Pattern::Uniform), Lie::IgnoresOverwrite).0 > 0);
    let mut case = params(Kind::Mixed, Pattern::Uniform).case();
    let mut gets = case.phases[1].clone();
    (gets.kind, gets.case, gets.stream) = (Kind::Read, "gets".into(), 2);
    case.phases.push(gets);
    let dir = tempfile::tempdir().unwrap();
    let store = Store::new(Lie::OldValue);
    let plan = Plan {
        name: case.name,
        engine: "liar".into(),
        dir: dir.path().into(),
        config: case.config,
        set: case.set,
        phases: case.phases,
        settle_limit_s: 1,
        latency_every: 1,
    };
    let mut found = 0;
    run(&plan, &|n, d, c| store.open(n, d, c), &mut |event| {
        if let Event::Phase(p) = event {
            found = p.wrong;
        }
        Ok(())
    })
    .unwrap();
    assert!(found > 0);
}

#[test]
fn scans_out_of_order_or_with_holes_are_found() {
    for lie in [Lie::ReordersScan, Lie::SkipsInScan] {
        for kind in [Kind::Range, Kind::Iterate] {
            assert!(wrong(&params(kind, Pattern::Random), lie).0 > 0, "{lie:?} {kind:?}");
            assert!(wrong(&params(kind, Pattern::Seq), lie).0 > 0, "{lie:?} {kind:?}");
        }
    }
    assert!(wrong(&params(Kind::Seek, Pattern::Random), Lie::SeeksTooFar).0 > 0);
    assert!(wrong(&params(Kind::Range, Pattern::Random), Lie::SeeksTooFar).0 > 0);
}

#[test]
fn damage_is_found() {
    assert!(wrong(&params(Kind::Read, Pattern::Random), Lie::CorruptsValue).0 > 0);
    assert!(wrong(&params(Kind::Write, Pattern::Random), Lie::CorruptsValue).0 > 0);
    assert!(wrong(&params(Kind::Delete, Pattern::Random), Lie::KeepsDeleted).0 > 0);
    let (before, after) = wrong(&params(Kind::Write, Pattern::Random), Lie::ForgetsOnReopen);
    assert_eq!(before, 0);
    assert!(after > 0);
}
