//! Mixes: honest ones are right, lies are found while they run or behind them.

use super::*;

/// Read, update, insert, scan, modify.
fn mixed(shares: [u32; 5], latest: bool, order: Order) -> Plan {
    let [read, update, insert, scan, modify] = shares;
    let mix = Some(Mix { read, update, insert, scan, modify, latest });
    let mut plan = plan(vec![load(), Phase { mix, ..phase(Kind::Mix, order, 1) }]);
    plan.set.n = N + 300;
    plan
}

const UPDATES: [u32; 5] = [50, 50, 0, 0, 0];
const LATEST: [u32; 5] = [70, 0, 30, 0, 0];
const SCANS: [u32; 5] = [0, 0, 20, 80, 0];
const MODIFIES: [u32; 5] = [50, 0, 0, 0, 50];
const ALL: [u32; 5] = [20, 20, 20, 20, 20];

#[test]
fn an_honest_engine_is_right_in_every_mix() {
    for shares in [UPDATES, LATEST, SCANS, MODIFIES, ALL] {
        for order in [Order::Uniform, Order::Zipf] {
            for backward in [false, true] {
                for pattern in [Pattern::Random, Pattern::Seq] {
                    let mut plan = mixed(shares, shares == LATEST, order);
                    plan.phases[1].backward = backward;
                    plan.set.encoding = pattern.encoding();
                    let outcome = honest(&plan);
                    let last = &outcome.phases[1];
                    assert_eq!(last.ops, N);
                    assert_eq!(last.parts.len(), shares.iter().filter(|&&s| s > 0).count());
                    assert_eq!(last.parts.values().map(|p| p.samples).sum::<u64>(), N);
                    assert_eq!((last.latency.samples, &last.read_digest), (N, &None));
                    let inserts = last.parts.get("insert").map_or(0, |p| p.samples);
                    assert_eq!(last.live_bytes, (N + inserts) * 56);
                }
            }
        }
    }
}

#[test]
fn mixes_follow_each_other() {
    let mut plan = mixed(ALL, true, Order::Zipf);
    plan.set.n = N + 600;
    for stream in 2..4 {
        plan.phases.push(Phase { stream, ..plan.phases[1].clone() });
    }
    plan.phases.push(phase(Kind::Read, Order::Uniform, 7));
    plan.phases.push(phase(Kind::Range, Order::Uniform, 8));
    plan.phases.push(phase(Kind::Iterate, Order::Up, 9));
    honest(&plan);
    assert!(outcome(&plan, Lie::OldValue).phases[4].wrong > 0);
}

#[test]
fn lies_in_a_mix_are_found() {
    let found = |shares, lie| wrong(&mixed(shares, shares == LATEST, Order::Zipf), lie) > 0;
    for shares in [UPDATES, MODIFIES, ALL] {
        for lie in [Lie::IgnoresOverwrite, Lie::DropsOverwrites, Lie::CorruptsValue] {
            assert!(found(shares, lie), "{shares:?} {lie:?}");
        }
    }
    for lie in [Lie::LosesKeys, Lie::HidesNew] {
        assert!(found(LATEST, lie), "{lie:?}");
    }
    for lie in [Lie::ReordersScan, Lie::SkipsInScan, Lie::SeeksTooFar, Lie::LosesKeys] {
        // An engine that lost loaded keys is found by gets, too.
        assert!(found(SCANS, lie), "{lie:?}");
    }
    for lie in [Lie::ReordersBackward, Lie::SkipsBackward, Lie::SeeksTooFarBack] {
        let mut plan = mixed(SCANS, false, Order::Uniform);
        plan.phases[1].backward = true;
        assert!(wrong(&plan, lie) > 0, "{lie:?}");
    }
}

#[test]
fn a_thread_must_see_its_own_writes() {
    // The state behind the phase is right, and so is each value by itself: only who wrote knows.
    for shares in [UPDATES, MODIFIES] {
        assert!(wrong(&mixed(shares, false, Order::Zipf), Lie::OldValue) > 0, "{shares:?}");
    }
    // Scans, where they are gone over again.
    assert!(wrong(&mixed([0, 50, 0, 50, 0], false, Order::Zipf), Lie::OldValueInScans) > 0);
}

#[test]
fn mixes_that_cannot_be_done_are_refused() {
    let refused = |plan: &Plan, words: &str| {
        let error = outcome(plan, Lie::Honest).error.unwrap();
        assert!(error.contains(words), "{error}");
    };
    let mut plan = mixed(ALL, false, Order::Uniform);
    plan.set.n = N + 3;
    refused(&plan, "the data set has 603");
    plan = mixed([50, 0, 0, 0, 49], false, Order::Uniform);
    refused(&plan, "add up to 99 %");
    plan.phases[1].mix = None;
    refused(&plan, "without its shares");
    plan = mixed(ALL, false, Order::Uniform);
    plan.phases.insert(1, Phase { ops: 5, ..phase(Kind::Delete, Order::Shuffled, 2) });
    refused(&plan, "some are not there");
    let mut gets = Phase { ops: 5, ..phase(Kind::Read, Order::Uniform, 1) };
    gets.background = Some(Background { threads: 1, rate: 0.0, ops: 5 });
    plan.phases[2] = Phase { stream: 3, ..gets };
    refused(&plan, "the background overwrites the 600 keys that were loaded, and some are not there");
    plan.phases.remove(1);
    assert!(outcome(&plan, Lie::Honest).error.is_none());
}
