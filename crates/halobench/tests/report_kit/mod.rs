//! A large made-up report with everything that goes wrong: ten engines, two of them not here; 45 cases; wrong answers,
//! a digest that differs, a process that died, a round that is missing; and words that would break a careless page.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use halobench::cases::{Case, Params};
use halobench::engine::Durability;
use halobench::engine::registry::Availability;
use halobench::machine::Machine;
use halobench::report::{Report, Run};
use halobench::spec::{Ending, Kind, Latency, Memory, Phase, PhaseResult, Settled, Space, Usage};
use halobench::workload::{Order, Pattern};
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Serializer, V2Serializer};
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// Would start a script, if a page let it.
pub const HOSTILE: &str = "</script><img src=x onerror=\"document.title='broken'\"><!--";

/// Names, and how fast they are beside the first.
const ENGINES: [(&str, f64); 10] = [
    ("halocline", 1.0),
    ("rocksdb", 0.3),
    ("rocksdb-default", 0.2),
    ("tidesdb", 0.36),
    ("lmdb", 0.7),
    ("fjall", 0.42),
    ("redb", 0.25),
    ("splinterdb", 0.0),
    ("xodus", 0.0),
    ("null", 40.0),
];

fn params(kind: Kind, pattern: Pattern) -> Params {
    Params {
        workload: kind.into(),
        pattern,
        ops: 1_000_000,
        batch: if matches!(kind, Kind::Write | Kind::Delete) { 100 } else { 1 },
        ..Params::default()
    }
}

fn named(params: Params, name: String) -> Case {
    let mut case = params.case();
    for phase in case.phases.iter_mut().filter(|p| !p.case.is_empty()) {
        phase.case.clone_from(&name);
    }
    Case { name, ..case }
}

/// 45 cases: 12 + 8 + 5 of writes, 8 of reads, 7 of scans, 3 of mixes, 2 of removals.
fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    let patterns = [(Pattern::Random, "random"), (Pattern::Seq, "seq")];
    for (pattern, word) in patterns {
        for batch in [1, 10, 100, 1000, 10_000, 100_000] {
            cases.push(named(
                Params { batch, ..params(Kind::Write, pattern) },
                format!("write-{word}-b{batch}"),
            ));
        }
        for threads in [1, 2, 4, 16] {
            let p = Params { threads, ..params(Kind::Write, pattern) };
            cases.push(named(p, format!("write-{word}-b100-t{threads}")));
        }
    }
    for value_len in [16, 256, 1024, 4096, 16_384] {
        let p = Params { value_len, ..params(Kind::Write, Pattern::Random) };
        cases.push(named(p, format!("write-random-b100-v{value_len}")));
    }
    for (pattern, word) in [(Pattern::Random, "random"), (Pattern::Zipfian, "zipfian")] {
        for threads in [1, 2, 4, 8] {
            let p = Params { threads, ..params(Kind::Read, pattern) };
            cases.push(named(p, format!("read-{word}-t{threads}")));
        }
    }
    cases.push(named(params(Kind::Seek, Pattern::Random), "seek-random".into()));
    for range_size in [10, 100, 1000] {
        let p = Params { range_size, ..params(Kind::Range, Pattern::Random) };
        cases.push(named(p, format!("range-random-{range_size}")));
    }
    for word in ["random", "timestamp", "uuid"] {
        cases.push(named(params(Kind::Iterate, Pattern::Random), format!("iterate-{word}")));
    }
    for word in ["random", "zipfian", "a-name-so-long-that-a-phone-has-to-break-it"] {
        cases.push(named(params(Kind::Mixed, Pattern::Random), format!("mixed-{word}")));
    }
    for (pattern, word) in patterns {
        cases.push(named(params(Kind::Delete, pattern), format!("delete-{word}-b100")));
    }
    cases
}

/// Even numbers below 1, the same ones every time.
struct Draw(u64);

impl Draw {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// Latencies around a middle, with a tail: as the percentiles and as the histogram. Middles are rounded to a sixteenth
/// of an octave, and each histogram is made once.
#[derive(Default)]
struct Latencies(BTreeMap<i32, (Latency, String)>);

impl Latencies {
    fn around(&mut self, middle_ns: f64, per_batch: bool) -> (Latency, String) {
        let step = (middle_ns.log2() * 16.0).round() as i32;
        let (latency, histogram) = self.0.entry(step).or_insert_with(|| make(step));
        (Latency { per_batch, ..latency.clone() }, histogram.clone())
    }
}

fn make(step: i32) -> (Latency, String) {
    let middle_ns = (f64::from(step) / 16.0).exp2();
    let mut draw = Draw(step as u64);
    let mut h = Histogram::<u64>::new(3).unwrap();
    for _ in 0..3000 {
        let x: f64 = draw.next();
        let tail = if x > 0.995 { 60.0 } else { 1.0 };
        h.record((middle_ns * (0.5 + draw.next()) * tail / (1.0 - x * 0.9)) as u64 + 1).unwrap();
    }
    let mut bytes = Vec::new();
    V2Serializer::new().serialize(&h, &mut bytes).unwrap();
    let at = |q| h.value_at_quantile(q);
    let latency = Latency {
        samples: h.len(),
        p50_ns: at(0.5),
        p95_ns: at(0.95),
        p99_ns: at(0.99),
        p999_ns: at(0.999),
        p9999_ns: at(0.9999),
        max_ns: h.max(),
        ..Latency::default()
    };
    (latency, STANDARD.encode(bytes))
}

fn result(
    draw: &mut Draw,
    latencies: &mut Latencies,
    case: &Case,
    phase: &Phase,
    engine: &str,
    speed: f64,
) -> PhaseResult {
    let rate = 2e6 * speed * (0.85 + 0.3 * draw.next());
    let seconds = 30.0;
    let (latency, histogram) = latencies.around(8e9 * phase.batch as f64 / rate, phase.batch > 1);
    let mut done = 0.0;
    let series = (1..=30u32)
        .map(|s| {
            let stalled = engine == "rocksdb-default" && s % 9 == 0;
            done += if stalled { 0.0 } else { rate * (0.8 + 0.4 * draw.next()) };
            (f64::from(s), done as u64)
        })
        .collect();
    let user_bytes = phase.ops * (case.set.key_len + case.set.value_len) as u64;
    let written = if phase.kind.changes() { user_bytes } else { 0 };
    let usage = |times: f64| Usage {
        cpu_user_s: phase.ops as f64 * 8.0 / rate * 0.8,
        cpu_system_s: phase.ops as f64 * 2.0 / rate,
        write_bytes: (written as f64 * times) as u64,
        ..Usage::default()
    };
    let space = |times: f64| Space { allocated: (user_bytes as f64 * times) as u64, apparent: 0, files: 9 };
    let amp = 1.2 + 4.0 * draw.next();
    PhaseResult {
        case: phase.case.clone(),
        ops: phase.ops,
        seconds,
        ops_per_s: rate,
        user_bytes: written,
        histogram: Some(histogram),
        series,
        usage: usage(amp),
        memory: Memory { anon: 90 << 20, file: (draw.next() * 5e8) as u64, shmem: 0, harness: 20 << 20 },
        space: space(1.4),
        live_bytes: user_bytes,
        settled: phase.settle.then(|| Settled {
            seconds: 2.0 * draw.next(),
            done: true,
            usage: usage(amp * 1.5),
            space: space(0.7 + draw.next()),
        }),
        parts: mixed_parts(phase, &latency),
        latency,
        read_digest: (phase.kind == Kind::Read).then(|| "00c0ffee00c0ffee".into()),
        stats: BTreeMap::from([("levels".into(), "5".into()), ("note".into(), HOSTILE.into())]),
        ..PhaseResult::default()
    }
}

/// A mix tells its gets from its puts.
fn mixed_parts(phase: &Phase, all: &Latency) -> BTreeMap<String, Latency> {
    let sorts = if phase.kind == Kind::Mixed { &["get", "put"][..] } else { &[] };
    sorts.iter().map(|s| (s.to_string(), all.clone())).collect()
}

/// The report.
pub fn large() -> Report {
    static MADE: LazyLock<Report> = LazyLock::new(build);
    MADE.clone()
}

fn build() -> Report {
    let cases = cases();
    let mut draw = Draw(1);
    let mut latencies = Latencies::default();
    let mut runs = Vec::new();
    for round in 0..3 {
        for (i, case) in cases.iter().enumerate() {
            for (e, &(engine, speed)) in ENGINES.iter().enumerate().filter(|(_, e)| e.1 > 0.0) {
                // Each case suits some engines more than others.
                let speed = speed * if (i * 7 + e * 5) % 11 < 2 && e > 0 { 6.0 } else { 1.0 };
                let phases = case.phases.iter().filter(|p| !p.case.is_empty());
                let phases =
                    phases.map(|p| result(&mut draw, &mut latencies, case, p, engine, speed)).collect();
                let ending = Ending {
                    reopen_s: 0.01 + draw.next() * 0.2,
                    space: Space { allocated: 90 << 20, ..Space::default() },
                    usage: Usage { write_bytes: 300 << 20, ..Usage::default() },
                    user_bytes: 116 << 20,
                    live_bytes: 110 << 20,
                    ..Ending::default()
                };
                runs.push(Run {
                    round,
                    engine: engine.into(),
                    case: case.name.clone(),
                    phases,
                    ending: Some(ending),
                    ..Run::default()
                });
            }
        }
    }
    let mut report = Report {
        format: Report::FORMAT,
        halobench: "0.1.0".into(),
        command: [
            "/opt/bin/halobench",
            "run",
            "--suite",
            "made-up",
            "--rounds",
            "3",
            "--json",
            "a file.json",
        ]
        .map(String::from)
        .to_vec(),
        started_unix_s: 1_795_297_880,
        machine: Machine {
            cpu: "A processor <with> brackets".into(),
            threads: 16,
            memory_bytes: 64 << 30,
            kernel: "Linux version 6.18.44".into(),
            file_system: "ext4 on /dev/vda".into(),
            governor: "performance".into(),
            load: 0.4,
            ..Machine::default()
        },
        engines: ENGINES.iter().map(|&(name, speed)| availability(name, speed)).collect(),
        rounds: 3,
        cases,
        runs,
        ..Report::default()
    };
    break_some(&mut report);
    report
}

fn availability(name: &str, speed: f64) -> Availability {
    Availability {
        name: name.into(),
        about: format!("{name}, as made up"),
        version: (speed > 0.0).then(|| "1.2.3".into()),
        missing: (speed == 0.0)
            .then(|| format!("its library is not here: build lib{name}.so and pass --{name}-lib FILE")),
        classes: vec![
            (Durability::Process, "written, not synced".into()),
            (Durability::Sync, "synced".into()),
        ],
    }
}

fn break_some(report: &mut Report) {
    let run = |runs: &mut Vec<Run>, round: u32, engine: &str, case: &str| {
        runs.iter().position(|r| r.round == round && r.engine == engine && r.case == case).unwrap()
    };
    let wrong = run(&mut report.runs, 1, "redb", "write-random-b1000");
    report.runs[wrong].phases[0].wrong = 3;
    report.runs[wrong].phases[0].wrong_examples = vec![format!("key 7 holds {HOSTILE}")];
    let differs = run(&mut report.runs, 0, "fjall", "read-zipfian-t4");
    for round in 0..3 {
        let at = run(&mut report.runs, round, "fjall", "read-zipfian-t4");
        report.runs[at].phases[0].read_digest = Some("bad0bad0bad0bad0".into());
    }
    assert!(differs < report.runs.len());
    for round in 0..3 {
        let dead = run(&mut report.runs, round, "tidesdb", "mixed-random");
        report.runs[dead] = Run {
            phases: Vec::new(),
            ending: None,
            error: Some("its process was killed by signal 11".into()),
            ..report.runs[dead].clone()
        };
    }
    // Fast, but its commits survive nothing.
    for run in report.runs.iter_mut().filter(|r| r.engine == "fjall" && r.case == "write-seq-b1") {
        run.other_class = Some(Durability::None);
        run.phases[0].ops_per_s *= 1000.0;
        run.notes = vec!["run without its memory limit".into()];
    }
    for run in report.runs.iter_mut().filter(|r| r.engine == "redb" && r.case == "write-seq-b10") {
        (run.phases, run.ending) = (Vec::new(), None);
        run.left_out = Some("too slow in the first round".into());
    }
    // Interrupted: the last round of the last cases is missing.
    report.runs.retain(|r| !(r.round == 2 && r.case.starts_with("delete-")));
    // A file of an older lab has no histograms.
    for r in report.runs.iter_mut().filter(|r| r.case == "seek-random") {
        r.phases.iter_mut().for_each(|p| p.histogram = None);
    }
    // A case of which nothing is left but its plan, in an order that no engine ran.
    if let Some(case) = report.cases.iter_mut().find(|c| c.name == "iterate-uuid") {
        case.phases.iter_mut().for_each(|p| p.order = Order::Down);
    }
    report.runs.retain(|r| r.case != "iterate-uuid");
}
