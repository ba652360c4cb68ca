//! Phases that end by time, keep a rate, have writers beside them, write over what was written, or fail.

use super::*;

#[test]
fn later_writes_win_over_earlier_ones() {
    let overwrites = [
        (Kind::Write, Order::Uniform),
        (Kind::Mixed, Order::Zipf),
        (Kind::Write, Order::Shuffled),
        (Kind::Write, Order::Zipf),
    ];
    let mut phases = vec![load()];
    for (i, (kind, order)) in overwrites.into_iter().enumerate() {
        phases.push(Phase { batch: if i == 0 { 7 } else { 1 }, ..phase(kind, order, 1 + i as u64) });
        phases.push(phase(Kind::Read, Order::Uniform, 10 + i as u64));
    }
    let plan = plan(phases);
    honest(&plan);
    for lie in [Lie::IgnoresOverwrite, Lie::DropsOverwrites] {
        let outcome = outcome(&plan, lie);
        assert!(outcome.phases[1..].iter().all(|p| p.wrong > 0 || lie == Lie::DropsOverwrites), "{lie:?}");
        assert!(outcome.phases[1].wrong > 0 && outcome.phases[3].wrong > 0, "{lie:?}");
    }
}

#[test]
fn deleted_keys_may_come_back() {
    let plan = plan(vec![
        load(),
        phase(Kind::Write, Order::Uniform, 1),
        Phase { ops: 200, ..phase(Kind::Delete, Order::Shuffled, 2) },
        phase(Kind::Range, Order::Uniform, 3),
        Phase { backward: true, ..phase(Kind::Range, Order::Uniform, 4) },
        phase(Kind::Seek, Order::Uniform, 5),
        phase(Kind::Read, Order::Uniform, 6),
        phase(Kind::Write, Order::Up, 7),
        phase(Kind::Iterate, Order::Up, 8),
    ]);
    honest(&plan);
    let kept = outcome(&plan, Lie::KeepsDeleted);
    assert!([2, 3, 4, 6].iter().all(|&i| kept.phases[i].wrong > 0));
    assert_eq!(kept.phases[8].wrong, 0);
}

#[test]
fn a_phase_that_ends_by_time_expects_what_was_done() {
    let mixes = Mix { read: 20, update: 30, insert: 20, scan: 10, modify: 20, latest: true };
    for (kind, batch, mix) in [
        (Kind::Write, 1, None),
        (Kind::Write, 7, None),
        (Kind::Mixed, 1, None),
        (Kind::Delete, 1, None),
        (Kind::Read, 1, None),
        (Kind::Mix, 1, Some(mixes)),
    ] {
        // At this rate a thread does some thirty of its two hundred operations.
        let timed = Phase { batch, mix, seconds: 0.1, rate: 1000.0, ..phase(kind, Order::Shuffled, 1) };
        let mut plan = plan(vec![load(), timed, phase(Kind::Read, Order::Uniform, 2)]);
        plan.set.n = N + 200;
        let outcome = honest(&plan);
        assert!((1..N).contains(&outcome.phases[1].ops), "{kind:?}");
        assert!(outcome.phases[1].seconds < 5.0);
    }
}

#[test]
fn a_phase_whose_operations_run_out_ends_before_its_time() {
    let plan = plan(vec![load(), Phase { seconds: 1e6, ..phase(Kind::Read, Order::Uniform, 1) }]);
    assert_eq!(honest(&plan).phases[1].ops, N);
}

#[test]
fn an_open_loop_keeps_its_rate_and_counts_the_wait() {
    for (kind, batch) in [(Kind::Read, 1), (Kind::Write, 10), (Kind::Mixed, 1), (Kind::Range, 1)] {
        let own = Phase { rate: 6000.0, batch, ..phase(kind, Order::Uniform, 1) };
        let outcome = honest(&plan(vec![load(), own]));
        let result = &outcome.phases[1];
        // A tenth of a second, give or take; never much less.
        assert!(result.seconds > 0.05, "{}", result.seconds);
        assert_eq!(result.latency.samples, N / batch);
        assert!(result.lag_s >= 0.0);
    }
    // A rate that nothing holds: each latency has the wait of those before it in it.
    let own = Phase { rate: 1e9, ..phase(Kind::Read, Order::Uniform, 1) };
    let outcome = honest(&plan(vec![load(), own]));
    let result = &outcome.phases[1];
    assert!(result.lag_s > 0.0 && result.ops_per_s < 1e9);
    assert!(result.latency.max_ns as f64 >= result.lag_s * 0.99e9, "{result:?}");
}

fn with_writers(kind: Kind, rate: f64) -> Plan {
    let background = Some(Background { threads: 2, rate, ops: 400 });
    plan(vec![
        load(),
        Phase { background, ..phase(kind, Order::Uniform, 1) },
        phase(Kind::Read, Order::Uniform, 2),
    ])
}

#[test]
fn reads_beside_writers_are_right() {
    for kind in [Kind::Read, Kind::Seek, Kind::Range, Kind::Iterate] {
        for rate in [0.0, 5000.0] {
            for backward in [false, true] {
                let mut plan = with_writers(kind, rate);
                plan.phases[1].backward = backward;
                let outcome = honest(&plan);
                let result = &outcome.phases[1];
                assert_eq!((result.ops, &result.read_digest), (N, &None));
                assert_eq!(result.parts["background"].samples, result.background_ops);
                assert_eq!(result.user_bytes, result.background_ops * 56);
                assert!(result.digest.is_some());
            }
        }
    }
}

#[test]
fn lies_beside_writers_are_found() {
    // Paced reads, so that the writers come to write.
    let slow = |kind| {
        let mut plan = with_writers(kind, 0.0);
        plan.phases[1].rate = 6000.0;
        plan
    };
    for lie in [Lie::IgnoresOverwrite, Lie::DropsOverwrites, Lie::CorruptsValue, Lie::LosesKeys] {
        assert!(outcome(&slow(Kind::Read), lie).phases[1].wrong > 0, "{lie:?}");
    }
    for lie in [Lie::SkipsInScan, Lie::ReordersScan, Lie::SeeksTooFar] {
        assert!(outcome(&slow(Kind::Range), lie).phases[1].wrong > 0, "{lie:?}");
    }
    assert!(outcome(&slow(Kind::Seek), Lie::SeeksTooFar).phases[1].wrong > 0);
}

#[test]
fn a_failure_ends_all_threads_and_tells_how_far_they_came() {
    let fails = |limit, phase: Phase| {
        let outcome = outcome(&plan(vec![load(), phase]), Lie::FailsAfter(limit));
        assert_eq!(outcome.phases.len(), usize::from(limit >= N));
        assert!(outcome.end.is_none());
        outcome.error.unwrap()
    };
    let writes = phase(Kind::Write, Order::Uniform, 1);
    let error = fails(N + 100, writes.clone());
    assert!(error.starts_with("Write Uniform 1: failed after "), "{error}");
    assert!(error.ends_with(" of 600 operations: no space left on device"), "{error}");
    assert!(fails(100, writes.clone()).contains("Write Up 0"));
    fails(N + 3, Phase { batch: 7, ..writes });
    // The others wait for operations that are due in days.
    let background = Some(Background { threads: 1, rate: 0.0, ops: 1000 });
    fails(N + 10, Phase { background, rate: 1e-3, ..phase(Kind::Read, Order::Uniform, 1) });
}

#[test]
fn plans_that_cannot_be_run_are_refused() {
    let refused = |own: Phase, words: &str| {
        let error = outcome(&plan(vec![load(), own]), Lie::Honest).error.unwrap();
        assert!(error.contains(words), "{error}");
    };
    let read = || phase(Kind::Read, Order::Uniform, 1);
    refused(Phase { ops: 0, ..read() }, "must be at least 1");
    refused(Phase { stream: 0, ..read() }, "the same number, 0, as Write Up 0");
    refused(Phase { stream: 1 << 20, ..read() }, "must be below");
    refused(Phase { rate: -1.0, ..read() }, "from 0 on");
    refused(Phase { rate: 1.0, ..phase(Kind::Iterate, Order::Up, 1) }, "leave the rate out");
    refused(phase(Kind::Mix, Order::Up, 1), "without its shares");
    let background = Some(Background { threads: 1, rate: 0.0, ops: 1 });
    refused(
        Phase { background, ..phase(Kind::Write, Order::Uniform, 1) },
        "gets, seeks, ranges and passes only",
    );
    refused(Phase { ops: N + 1, ..phase(Kind::Write, Order::Up, 1) }, "visits each once");
}
