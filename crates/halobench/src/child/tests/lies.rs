//! Each lie, and the kinds of phases that find it.

use super::*;
use clap::ValueEnum;

#[test]
fn an_honest_engine_is_right_in_every_case() {
    for &kind in Kind::value_variants().iter().filter(|&&k| k != Kind::Mix) {
        for &pattern in Pattern::value_variants() {
            for batch in [1, 7] {
                if batch > 1 && !matches!(kind, Kind::Write | Kind::Delete) {
                    continue;
                }
                let mut plan = case(kind, pattern);
                plan.phases.last_mut().unwrap().batch = batch;
                let outcome = honest(&plan);
                let last = outcome.phases.last().unwrap();
                assert_eq!(last.ops, N);
                assert!(last.ops_per_s > 0.0);
                let samples = match kind {
                    Kind::Iterate => 0,
                    _ if batch > 1 => 200u64.div_ceil(batch) * 3,
                    _ => N,
                };
                assert_eq!(last.latency.samples, samples, "{kind:?} {pattern:?} {batch}");
                assert_eq!(last.histogram.is_some(), samples > 0);
            }
        }
    }
}

#[test]
fn all_sizes_of_keys_and_values_are_right_too() {
    for value_kind in ValueKind::value_variants() {
        for value_len in [1, 7, 9, 40] {
            let mut plan = case(Kind::Mixed, Pattern::Zipfian);
            (plan.set.value_kind, plan.set.value_len) = (*value_kind, value_len);
            honest(&plan);
        }
    }
    for (pattern, key_len) in
        [(Pattern::Random, 8), (Pattern::Seq, 3), (Pattern::Uuid, 36), (Pattern::Compat, 511)]
    {
        for kind in [Kind::Read, Kind::Range, Kind::Iterate] {
            let mut plan = case(kind, pattern);
            plan.set.key_len = key_len;
            honest(&plan);
        }
    }
}

#[test]
fn equal_states_have_equal_digests() {
    let digest = |threads| {
        let mut plan = case(Kind::Write, Pattern::Random);
        plan.phases[0].threads = threads;
        honest(&plan).phases[0].digest.clone().unwrap()
    };
    assert_eq!(digest(1), digest(4));
}

#[test]
fn lost_keys_are_found_by_gets_scans_and_the_final_count() {
    for kind in [Kind::Write, Kind::Read, Kind::Range, Kind::Iterate, Kind::Seek, Kind::Mixed] {
        let outcome = outcome(&case(kind, Pattern::Random), Lie::LosesKeys);
        assert!(outcome.phases.iter().all(|p| p.wrong > 0), "{kind:?}");
        assert!(outcome.end.unwrap().wrong > 0);
    }
}

#[test]
fn old_values_are_found() {
    // A get of a key's loaded value behind its overwrite in the same mixed phase is plausible to other threads, so what
    // tells is the state behind the phase.
    for kind in [Kind::Write, Kind::Mixed] {
        let mut plan = case(kind, Pattern::Uniform);
        if kind == Kind::Write {
            plan.phases.insert(0, load());
        }
        assert!(wrong(&plan, Lie::IgnoresOverwrite) > 0);
        assert!(wrong(&plan, Lie::DropsOverwrites) > 0);
        assert_eq!(wrong(&plan, Lie::OldValue), 0);
        // Those who read later see it.
        plan.phases.push(phase(Kind::Read, Order::Uniform, 2));
        assert!(wrong(&plan, Lie::OldValue) > 0);
        plan.phases.last_mut().unwrap().kind = Kind::Range;
        assert!(wrong(&plan, Lie::OldValueInScans) > 0);
        let pass = phase(Kind::Iterate, Order::Up, 2);
        *plan.phases.last_mut().unwrap() = pass;
        assert!(wrong(&plan, Lie::OldValueInScans) > 0);
    }
}

#[test]
fn scans_out_of_order_or_with_holes_are_found() {
    for lie in [Lie::ReordersScan, Lie::SkipsInScan] {
        for kind in [Kind::Range, Kind::Iterate] {
            assert!(wrong(&case(kind, Pattern::Random), lie) > 0, "{lie:?} {kind:?}");
            assert!(wrong(&case(kind, Pattern::Seq), lie) > 0, "{lie:?} {kind:?}");
        }
    }
    assert!(wrong(&case(Kind::Seek, Pattern::Random), Lie::SeeksTooFar) > 0);
    assert!(wrong(&case(Kind::Range, Pattern::Random), Lie::SeeksTooFar) > 0);
}

#[test]
fn scans_backward_are_judged_as_well() {
    for kind in [Kind::Range, Kind::Iterate] {
        for pattern in [Pattern::Random, Pattern::Seq, Pattern::Uuid] {
            let mut plan = case(kind, pattern);
            plan.phases[1].backward = true;
            let backward = honest(&plan);
            for lie in [Lie::SkipsBackward, Lie::ReordersBackward] {
                assert!(wrong(&plan, lie) > 0, "{lie:?} {kind:?} {pattern:?}");
            }
            if kind == Kind::Range {
                assert!(wrong(&plan, Lie::SeeksTooFarBack) > 0, "{pattern:?}");
            }
            plan.phases[1].backward = false;
            let forward = honest(&plan);
            assert_eq!(wrong(&plan, Lie::SkipsBackward), 0);
            // A pass reads the same either way, ranges do not.
            let same = forward.phases[1].read_digest == backward.phases[1].read_digest;
            assert_eq!(same, kind == Kind::Iterate);
        }
    }
}

#[test]
fn damage_is_found() {
    assert!(wrong(&case(Kind::Read, Pattern::Random), Lie::CorruptsValue) > 0);
    assert!(wrong(&case(Kind::Write, Pattern::Random), Lie::CorruptsValue) > 0);
    assert!(wrong(&case(Kind::Delete, Pattern::Random), Lie::KeepsDeleted) > 0);
    // Passes do not compare each value, but the digest of all.
    assert!(wrong(&case(Kind::Iterate, Pattern::Random), Lie::CorruptsValue) > 0);
    let outcome = outcome(&case(Kind::Write, Pattern::Random), Lie::ForgetsOnReopen);
    assert_eq!(outcome.wrong(), 0);
    assert!(outcome.end.unwrap().wrong > 0);
}
