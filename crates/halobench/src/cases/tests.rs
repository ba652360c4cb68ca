//! Every suite can be run; names and sizes are what they say.

use super::select::{filter, fits, list};
use super::*;
use crate::engine::Durability;
use crate::spec::Kind;
use crate::workload::{Encoding, Order, Pattern};

fn base(suite: &Suite, scale: f64) -> Base {
    let ops = (suite.ops as f64 * scale) as u64;
    Base { params: Params { ops, threads: suite.threads, ..Params::default() }, seconds: None }
}

fn all(name: &str, scale: f64) -> Vec<Case> {
    let suite = suite(name).unwrap();
    (suite.cases)(&base(suite, scale))
}

#[test]
fn every_suite_passes_the_checks_at_every_scale() {
    for suite in SUITES {
        for scale in [1.0, 0.2, 0.001] {
            let mut base = base(suite, scale);
            base.params.ops = base.params.ops.max(u64::from(suite.ops > 0));
            let cases = (suite.cases)(&base);
            assert!(!cases.is_empty(), "{}", suite.name);
            check(&cases).unwrap_or_else(|e| panic!("{} at {scale}: {e}", suite.name));
            for case in &cases {
                assert!(case.reported().count() > 0, "{} reports nothing", case.name);
                let most =
                    case.phases.iter().map(|p| p.threads + p.background.map_or(0, |b| b.threads)).max();
                assert_eq!(Some(case.config.threads), most);
                assert!(case.config.expected_bytes > 0);
                let streams: BTreeSet<u64> = case.phases.iter().map(|p| p.stream).collect();
                assert_eq!(streams.len(), case.phases.len(), "{}: two phases draw the same", case.name);
            }
        }
    }
    assert!(suite("nope").is_err_and(|e| e.contains("quick, core, seeds")));
}

#[test]
fn a_seeds_case_has_the_articles_sizes_at_full_size() {
    let full = all("seeds-full", 1.0);
    let find = |name: &str| {
        full.iter()
            .find_map(|c| c.reported().find(|p| p.case == name).map(|p| (c, p)))
            .unwrap_or_else(|| panic!("no {name}"))
    };
    let (case, phase) = find("v8-write-random");
    assert_eq!(
        (phase.ops, phase.threads, phase.batch, case.set.key_len, case.set.value_len),
        (10_000_000, 8, 1000, 16, 100)
    );
    let (case, phase) = find("v8-range-random-1000");
    assert_eq!((phase.ops, phase.range_size, case.set.n), (500_000, 1000, 500_000));
    let (case, phase) = find("v3-mixed-random-t4-k8-v32-get");
    assert_eq!((phase.ops, case.set.key_len, case.set.value_len), (1_000_000, 8, 32));
    let (case, phase) = find("v8-write-k256-v4096");
    assert_eq!((phase.ops, case.set.key_len, case.set.value_len), (1_000_000, 256, 4096));
    assert_eq!(find("v8-write-v64").1.ops, 50_000_000);
    let (case, phase) = find("splinter-io-v100-insert");
    assert_eq!((phase.ops, phase.threads, case.memory_limit), (2_000_000_000, 1, None));
    assert_eq!(case.config.durability, Durability::None);
    let (case, phase) = find("xodus-write-uuid-b100");
    assert_eq!((phase.ops, phase.batch, phase.threads, case.set.key_len), (10_000_000, 100, 1, 36));
    let (case, _) = find("compat-mixed-t8-b1000-put");
    assert_eq!(case.set.encoding, Encoding::Compat);

    let tenth = all("seeds", 1.0);
    let large = tenth.iter().find(|c| c.name == "splinter-io-v100").unwrap();
    let limit = large.memory_limit.unwrap();
    assert!(large.set.bytes() >= 3 * limit, "{} of {limit}", large.set.bytes());
    let names =
        |cases: &[Case]| cases.iter().flat_map(|c| c.reported().map(|p| p.case.clone())).collect::<Vec<_>>();
    assert_eq!(names(&tenth), names(&full));
}

#[test]
fn random_keys_too_short_for_a_hash_are_counters_in_random_order() {
    let case = Params { key_len: 8, ops: 1000, ..Params::default() }.case();
    assert_eq!(case.set.encoding, Encoding::Ordered);
    assert_eq!(case.phases[0].order, Order::Shuffled);
    check(&[case]).unwrap();
    let case = Params { key_len: 1, ops: 1000, ..Params::default() }.case();
    assert!(check(&[case]).is_err_and(|e| e.contains("keys of 1 bytes")));
}

#[test]
fn mixed_is_benchtools_sequence_and_concurrent_is_at_once() {
    let params = Params { ops: 100, batch: 10, iterate: true, ..Params::default() };
    let kinds = |workload| {
        let case = Params { workload, ..params.clone() }.case();
        case.phases.iter().map(|p| (p.kind, p.batch, !p.case.is_empty())).collect::<Vec<_>>()
    };
    let iterate = (Kind::Iterate, 1, true);
    assert_eq!(kinds(Workload::Mixed), [(Kind::Write, 10, true), (Kind::Read, 1, true), iterate]);
    let load = (Kind::Write, LOAD_BATCH, false);
    assert_eq!(kinds(Workload::Concurrent), [load, (Kind::Mixed, 1, true), iterate]);
    assert_eq!(kinds(Workload::Delete), [load, (Kind::Delete, 10, true)]);
}

#[test]
fn impossible_sizes_are_refused_in_words() {
    let refused = |params: Params| check(&[params.case()]).unwrap_err();
    let base = Params { ops: 100, ..Params::default() };
    assert!(refused(Params { threads: 0, ..base.clone() }).contains("must be at least 1"));
    assert!(refused(Params { threads: 5000, ..base.clone() }).contains("5000 threads"));
    assert!(refused(Params { value_len: 0, ..base.clone() }).contains("values of 0 bytes"));
    assert!(refused(Params { ops: 5_000_000_000, ..base.clone() }).contains("5000000000 keys"));
    assert!(refused(Params { pattern: Pattern::Uuid, key_len: 8, ..base }).contains("keys of 8 bytes"));
}

#[test]
fn a_filter_keeps_what_the_chosen_cases_stand_on() {
    assert!(fits("v8-*", "v8-write") && !fits("v8-*", "av8-write") && fits("write", "v8-write"));
    assert!(fits("nope,v?-*e", "v8-write") && !fits("*x", "v8-write") && fits("*", ""));
    let quick = all("quick", 1.0);
    let chosen = filter(quick.clone(), "delete*,seek*").unwrap();
    assert_eq!(chosen.len(), 2);
    let shape = |case: &Case| case.phases.iter().map(|p| (p.kind, p.case.clone())).collect::<Vec<_>>();
    let unnamed = |kind| (kind, String::new());
    assert_eq!(
        shape(&chosen[0]),
        [
            unnamed(Kind::Write),
            unnamed(Kind::Write),
            unnamed(Kind::Mixed),
            (Kind::Delete, "delete-random-b1000".into())
        ]
    );
    assert_eq!(shape(&chosen[1]), [unnamed(Kind::Write), (Kind::Seek, "seek-random".into())]);
    check(&chosen).unwrap();
    assert_eq!(filter(quick.clone(), "quick-reads").unwrap()[0].phases.len(), 6);
    assert!(filter(quick, "nothing").is_err_and(|e| e.contains("read-random")));
}

#[test]
fn a_list_shows_sizes_and_shared_databases() {
    let text = list(&all("quick", 1.0));
    let line = |name: &str| text.lines().find(|l| l.starts_with(name)).unwrap_or_else(|| panic!("{text}"));
    assert!(line("fill-random-b1000 ").contains("200,000"));
    assert!(line("read-random ").ends_with("any      quick-reads, loaded"), "{text}");
    assert!(line("read-zipfian ").ends_with("the same"));
    assert!(text.lines().last().unwrap().contains("cases on 5 databases"), "{text}");
}

#[test]
fn db_bench_names_make_its_databases() {
    let params = Params { ops: 10_000, ..Params::default() };
    let made = dbbench::cases(
        "fillseq,readseq,compact,readrandom,fillsync,fill100K,overwrite,readwhilewriting",
        &params,
    );
    let made = made.unwrap();
    check(&made).unwrap();
    let names: Vec<&str> = made.iter().map(|c| c.name.as_str()).collect();
    assert_eq!(names, ["db_bench-fillseq", "db_bench-fillsync", "db_bench-fill100K"]);
    assert_eq!(made[1].config.durability, Durability::Sync);
    assert_eq!((made[2].set.n, made[2].set.value_len, made[2].phases.len()), (10, 100_000, 3));
    let every: Vec<&str> = dbbench::NAMES.iter().map(|(n, _)| *n).collect();
    let seeks_first: Vec<&str> = every.iter().filter(|n| !n.starts_with("delete")).copied().collect();
    check(&dbbench::cases(&seeks_first.join(","), &params).unwrap()).unwrap();
    check(&dbbench::cases("readrandom,readrandom", &params).unwrap()).unwrap();
    assert!(dbbench::cases("fillfast", &params).is_err_and(|e| e.contains("fillseq, fillrandom")));
    assert!(dbbench::cases("deleteseq,seekrandom", &params).is_err());
}
