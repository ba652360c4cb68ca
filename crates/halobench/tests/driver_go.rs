//! The driver in Go: its engines answer rightly, in whole runs and in every kind of phase; they end in the same states and
//! read the same values as Halocline; a driver that dies, or cannot be built, is a row that says so.
//!
//! Needs Go, and its module proxy once. Without Go the tests say that they were skipped.

use base64::Engine as _;
use halobench::cases::Params;
use halobench::report::Report;
use halobench::spec::{Background, Event, Kind, Mix, Phase, PhaseResult, Plan};
use halobench::workload::{Order, ValueKind};
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

const ENGINES: [&str; 3] = ["badger", "bbolt", "pebble"];

/// A cache of these tests' own, kept between runs of them.
fn cache() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("cache")
}

fn halobench(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_halobench"));
    command.args(args).env("HALOBENCH_CACHE", cache());
    command
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn said(out: &Output) -> String {
    format!("{}{}", text(&out.stdout), text(&out.stderr))
}

/// The driver's program, built by a run that names one of its engines; nothing if there is no Go.
fn driver() -> Option<&'static Path> {
    static DRIVER: OnceLock<Option<PathBuf>> = OnceLock::new();
    let found = DRIVER.get_or_init(|| {
        if !Command::new("go").arg("version").output().is_ok_and(|o| o.status.success()) {
            return None;
        }
        let out = halobench(&["run", "-e", "null-go", "-o", "10", "--rounds", "1"]).output().unwrap();
        assert!(out.status.success(), "{}", said(&out));
        assert!(text(&out.stdout).lines().any(|l| l.trim_start().starts_with("null-go")), "{}", said(&out));
        // Other states of the sources may have left theirs.
        let program = |e: std::io::Result<std::fs::DirEntry>| {
            let program = e.unwrap().path().join("halobench-go");
            Some((program.metadata().ok()?.modified().ok()?, program))
        };
        let programs = std::fs::read_dir(cache()).unwrap().filter_map(program);
        Some(programs.max().unwrap().1)
    });
    if found.is_none() {
        println!("SKIPPED: there is no Go here, so the driver in Go is NOT TESTED (https://go.dev/dl)");
    }
    found.as_deref()
}

#[test]
fn whole_runs_are_right_and_agree_with_halocline() {
    if driver().is_none() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let json = dir.path().join("r.json");
    for (workload, pattern) in [
        ("write", "random"),
        ("read", "zipfian"),
        ("range", "uuid"),
        ("delete", "reverse"),
        ("iterate", "seq"),
    ] {
        let work = dir.path().join("work");
        let mut command = halobench(&["run", "-e", "halocline,badger,bbolt,pebble,null-go", "--rounds", "1"]);
        command.args(["-w", workload, "-p", pattern, "-o", "4000", "-t", "3", "-b", "10"]);
        let out = command.arg("--dir").arg(&work).arg("--json").arg(&json).output().unwrap();
        assert!(out.status.success(), "{workload} {pattern}: {}", said(&out));
        let report = Report::load(&json).unwrap();
        assert_eq!(report.runs.len(), 5);
        let of = |engine: &str| {
            let run = report.runs.iter().find(|r| r.engine == engine).unwrap();
            assert!(run.error.is_none() && run.ending.is_some(), "{engine}: {:?}", run.error);
            run.phases.iter().map(|p| (p.ops, p.digest.clone(), p.read_digest.clone())).collect::<Vec<_>>()
        };
        for engine in ENGINES {
            assert_eq!(of(engine), of("halocline"), "{workload} {pattern} {engine}");
        }
        assert_eq!(std::fs::read_dir(&work).unwrap().count(), 0, "databases are removed");
    }
}

/// A phase behind a load of 2000 keys; one thread, so that what survives is no matter of chance.
fn phase(stream: u64, kind: Kind, order: Order) -> Phase {
    Phase {
        case: format!("{stream}-{kind:?}"),
        kind,
        order,
        ops: 1500,
        threads: 1,
        batch: 1,
        range_size: 30,
        settle: false,
        stream,
        rate: 0.0,
        seconds: 0.0,
        backward: false,
        mix: None,
        background: None,
    }
}

/// Every kind of phase. The first `n` of them have results that do not depend on time.
fn phases() -> (Vec<Phase>, usize) {
    let everything = Mix { read: 30, update: 20, insert: 20, scan: 20, modify: 10, latest: true };
    let mut all = vec![
        Phase { ops: 2000, batch: 100, threads: 3, settle: true, ..phase(0, Kind::Write, Order::Up) },
        Phase { threads: 3, ..phase(1, Kind::Read, Order::Zipf) },
        Phase { threads: 2, ..phase(2, Kind::Seek, Order::Uniform) },
        Phase { threads: 2, backward: true, ..phase(3, Kind::Range, Order::Uniform) },
        Phase { threads: 2, backward: true, ..phase(4, Kind::Iterate, Order::Up) },
        phase(5, Kind::Mixed, Order::Zipf),
        Phase { mix: Some(everything), ..phase(6, Kind::Mix, Order::Zipf) },
        Phase { mix: Some(everything), backward: true, ..phase(7, Kind::Mix, Order::Uniform) },
        Phase { rate: 20_000.0, ..phase(8, Kind::Read, Order::Uniform) },
    ];
    let n = all.len();
    let background = Some(Background { threads: 2, rate: 5000.0, ops: 1_000_000 });
    all.extend([
        Phase { threads: 2, background, rate: 5000.0, ..phase(11, Kind::Range, Order::Uniform) },
        Phase { threads: 2, background, rate: 8000.0, ..phase(12, Kind::Read, Order::Uniform) },
        Phase { threads: 2, ops: 100_000_000, seconds: 0.2, ..phase(13, Kind::Mixed, Order::Up) },
        Phase { ops: 300, batch: 7, ..phase(14, Kind::Delete, Order::Shuffled) },
        Phase { threads: 2, ..phase(15, Kind::Range, Order::Uniform) },
    ]);
    (all, n)
}

fn plan(engine: &str, dir: &Path, phases: Vec<Phase>) -> Plan {
    let case = Params {
        ops: 4000,
        threads: 3,
        key_len: 20,
        value_len: 50,
        value_kind: ValueKind::Json,
        range_size: 30,
        write_buffer: 1 << 20,
        cache: 1 << 20,
        seed: 9,
        ..Params::default()
    }
    .case();
    Plan {
        name: "all".into(),
        engine: engine.into(),
        dir: dir.into(),
        config: case.config,
        set: case.set,
        phases,
        settle_limit_s: 60,
        latency_every: 1,
    }
}

/// Starts a process on a plan.
fn start(command: &mut Command, plan: &Plan) -> Child {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let line = serde_json::to_string(plan).unwrap();
    writeln!(child.stdin.as_mut().unwrap(), "{line}").unwrap();
    child
}

/// What a process says about a plan, to its end.
fn results(command: &mut Command, plan: &Plan) -> Vec<PhaseResult> {
    let mut child = start(command, plan);
    let (mut all, mut ended) = (Vec::new(), false);
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        match serde_json::from_str::<Event>(&line.unwrap()).unwrap() {
            Event::Phase(p) => all.push(*p),
            Event::End(end) => {
                assert_eq!(end.wrong, 0, "{}: {:?}", plan.engine, end.wrong_examples);
                assert!(end.usage.cpu_user_s > 0.0 && end.space.files > 0 && end.reopen_s > 0.0);
                ended = true;
            }
            Event::Failed(words) => panic!("{}: {words}", plan.engine),
            Event::Begin(_) => {}
        }
    }
    assert!(child.wait().unwrap().success());
    assert!(ended);
    all
}

#[test]
fn every_kind_of_phase_is_right_and_agrees_with_halocline() {
    let Some(driver) = driver() else { return };
    let (phases, exact) = phases();
    let run = |command: &mut Command, engine: &str| {
        let dir = tempfile::tempdir().unwrap();
        let results = results(command, &plan(engine, dir.path(), phases.clone()));
        assert_eq!(results.len(), phases.len());
        for (phase, result) in phases.iter().zip(&results) {
            let name = format!("{engine} {}", phase.case);
            assert_eq!(result.wrong, 0, "{name}: {:?}", result.wrong_examples);
            assert!(result.ops > 0 && result.memory.anon > 0 && result.memory.harness > 0, "{name}");
            assert_eq!(result.series.last().unwrap().1, result.ops, "{name}");
            if let Some(encoded) = &result.histogram {
                let bytes = base64::engine::general_purpose::STANDARD.decode(encoded).unwrap();
                let h: Histogram<u64> = Deserializer::new().deserialize(&mut bytes.as_slice()).unwrap();
                assert_eq!(h.len(), result.latency.samples, "{name}");
                assert_eq!(h.value_at_quantile(0.99), result.latency.p99_ns, "{name}");
            }
        }
        results
    };
    let ours = run(&mut halobench(&["__halobench-child"]), "halocline");
    for engine in ENGINES {
        let theirs = run(&mut Command::new(driver), engine);
        for (phase, (a, b)) in phases.iter().zip(ours.iter().zip(&theirs)).take(exact) {
            let name = format!("{engine} {}", phase.case);
            assert_eq!((a.ops, a.user_bytes, a.live_bytes), (b.ops, b.user_bytes, b.live_bytes), "{name}");
            assert_eq!((&a.digest, &a.read_digest), (&b.digest, &b.read_digest), "{name}");
            assert_eq!(a.latency.samples, b.latency.samples, "{name}");
            let samples =
                |r: &PhaseResult| r.parts.iter().map(|(k, l)| (k.clone(), l.samples)).collect::<Vec<_>>();
            assert_eq!(samples(a), samples(b), "{name}");
        }
        for result in &theirs[exact..exact + 2] {
            assert!(result.background_ops > 0 && result.digest.is_some(), "{engine} {}", result.case);
        }
    }
}

#[test]
fn a_driver_that_dies_is_a_row_that_says_so() {
    if driver().is_none() {
        return;
    }
    let out = halobench(&["run", "-e", "null-go,null", "-o", "1000", "--rounds", "1"])
        .env("HALOBENCH_DRIVER_CRASH", "phase")
        .output()
        .unwrap();
    assert_eq!(out.status.code(), Some(1), "{}", said(&out));
    let table = text(&out.stdout);
    assert!(
        table.contains("write-random-b1: the process died (exit code 70): ended by HALOBENCH_DRIVER_CRASH"),
        "{table}"
    );
    assert!(table.lines().any(|l| l.trim_start().starts_with("null ")), "{table}");
}

#[test]
fn a_driver_whose_parent_goes_cleans_up_and_goes_too() {
    let Some(driver) = driver() else { return };
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("plan");
    let write = Phase { ops: 4_000_000_000, ..phase(0, Kind::Write, Order::Up) };
    let mut plan = plan("null-go", &dir, vec![write]);
    plan.set.n = 4_000_000_000;
    let mut child = start(&mut Command::new(driver), &plan);
    let begun = Instant::now();
    while !dir.join("db").exists() {
        assert!(begun.elapsed() < Duration::from_secs(60), "no folder appears");
        std::thread::sleep(Duration::from_millis(10));
    }
    drop(child.stdin.take());
    assert_eq!(child.wait().unwrap().code(), Some(3));
    assert!(!dir.exists());
}

#[test]
fn without_go_the_row_says_how_to_get_it() {
    let cache = tempfile::tempdir().unwrap();
    let out = halobench(&["run", "-e", "pebble,null", "-o", "1000", "--rounds", "1"])
        .env("HALOBENCH_CACHE", cache.path())
        .env("PATH", "")
        .output()
        .unwrap();
    let table = text(&out.stdout);
    assert!(out.status.success(), "{}", said(&out));
    assert!(table.contains("pebble: not run: ") && table.contains("install Go"), "{table}");
    assert!(table.lines().any(|l| l.trim_start().starts_with("null")), "{table}");
}
