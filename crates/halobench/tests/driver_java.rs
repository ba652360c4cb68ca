//! The Java driver: its own tests, and its engines beside the lab's own in a plan with a phase of each kind. Needs a JDK and
//! Maven, and the network once; without them these tests say so, loudly, and pass.

use halobench::cases::Case;
use halobench::driver::{self, Driver};
use halobench::engine::{Compression, Config, Durability};
use halobench::run::{Job, run};
use halobench::spec::{Background, Kind, Mix, Phase, PhaseResult};
use halobench::workload::{DataSet, Encoding, Order, ValueKind};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Whether the tools are here. If not, says so past the test's captured output.
fn tools() -> bool {
    let runs =
        |program: &str| Command::new(program).arg("-version").output().is_ok_and(|o| o.status.success());
    let here = runs("javac") && runs("mvn");
    if !here {
        let words = "SKIPPED: the Java driver is NOT tested: javac or mvn is missing (Debian: default-jdk-headless maven)";
        let _ = writeln!(std::io::stderr(), "{words}");
    }
    here
}

fn java() -> &'static dyn Driver {
    driver::all().into_iter().find(|d| d.name() == "Java").unwrap()
}

#[test]
fn the_drivers_own_tests_pass() {
    if !tools() {
        return;
    }
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("drivers/java");
    let out = tempfile::tempdir().unwrap();
    // The build's folder is elsewhere: the sources are a part of the program.
    let done = Command::new("mvn")
        .args(["-q", "-B", "-Dstyle.color=never", "test"])
        .arg(format!("-Dout={}", out.path().display()))
        .current_dir(&sources)
        .output()
        .unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stdout));
    let reports = out.path().join("surefire-reports");
    let suites = std::fs::read_dir(reports).unwrap().count();
    assert!(suites >= 4, "{suites} reports of tests");
}

fn phase(kind: Kind, order: Order, stream: u64) -> Phase {
    let writes = matches!(kind, Kind::Write | Kind::Delete);
    // With one thread it is certain which write survives, and so what the digest of the state is.
    let threads = if matches!(kind, Kind::Read | Kind::Range | Kind::Seek | Kind::Delete) { 3 } else { 1 };
    Phase {
        case: format!("{stream}-{kind:?}"),
        kind,
        order,
        ops: 2000,
        threads,
        batch: if writes { 50 } else { 1 },
        range_size: 20,
        settle: false,
        stream,
        rate: 0.0,
        seconds: 0.0,
        backward: false,
        mix: None,
        background: None,
    }
}

fn phases() -> Vec<Phase> {
    let mix = Mix { read: 30, update: 20, insert: 20, scan: 20, modify: 10, latest: true };
    vec![
        phase(Kind::Write, Order::Up, 0),
        phase(Kind::Read, Order::Zipf, 1),
        phase(Kind::Seek, Order::Uniform, 2),
        phase(Kind::Range, Order::Uniform, 3),
        Phase { backward: true, ..phase(Kind::Range, Order::Uniform, 4) },
        phase(Kind::Iterate, Order::Up, 5),
        Phase { backward: true, ..phase(Kind::Iterate, Order::Up, 6) },
        phase(Kind::Mixed, Order::Zipf, 7),
        Phase { mix: Some(mix), ..phase(Kind::Mix, Order::Zipf, 8) },
        phase(Kind::Read, Order::Uniform, 9),
        phase(Kind::Delete, Order::Shuffled, 10),
        Phase { ops: 500, ..phase(Kind::Write, Order::Zipf, 11) },
        Phase { rate: 4000.0, ops: 400, ..phase(Kind::Read, Order::Uniform, 12) },
    ]
}

/// All keys are there when the background begins, so that what it overwrites does not change what is where.
fn disturbed() -> Vec<Phase> {
    let background = Some(Background { threads: 1, rate: 500.0, ops: 10_000 });
    vec![phase(Kind::Write, Order::Up, 0), Phase { background, ..phase(Kind::Range, Order::Uniform, 1) }]
}

/// Runs the plans on these engines; the phases of each, of all plans.
fn results(
    engines: &[&str],
    durability: Durability,
    encoding: Encoding,
    dir: &Path,
) -> Vec<Vec<PhaseResult>> {
    let set = DataSet {
        n: 3000,
        encoding,
        key_len: 20,
        value_len: 100,
        value_kind: if encoding == Encoding::Uuid { ValueKind::Prose } else { ValueKind::Half },
        seed: 7,
    };
    let config = Config {
        write_buffer: 1 << 20,
        cache: 8 << 20,
        durability,
        compression: Compression::None,
        threads: 3,
        expected_bytes: set.bytes(),
        rocksdb_lib: None,
    };
    let job = Job {
        engines: engines.iter().map(|&e| e.into()).collect(),
        cases: [("all", phases()), ("disturbed", disturbed())]
            .map(|(name, phases)| Case {
                name: name.into(),
                about: String::new(),
                memory_limit: None,
                config: config.clone(),
                set: set.clone(),
                // A name is given once in a run.
                phases: phases
                    .into_iter()
                    .map(|p| Phase { case: format!("{name}-{}", p.case), ..p })
                    .collect(),
            })
            .into(),
        rounds: 1,
        dir: Some(dir.into()),
        settle_limit_s: 1,
        timeout: Duration::from_secs(600),
        program: Some(PathBuf::from(env!("CARGO_BIN_EXE_halobench"))),
        ..Job::default()
    };
    let report = run(&job, &mut |_| {}).unwrap();
    assert!(report.troubles().is_empty(), "{:#?}", report.troubles());
    assert!(report.engines.iter().all(|e| e.missing.is_none()), "{:#?}", report.engines);
    assert_eq!(report.runs.len(), 2 * engines.len());
    let of = |engine: &&str| {
        report.runs.iter().filter(|r| r.engine == *engine).flat_map(|r| r.phases.clone()).collect()
    };
    engines.iter().map(of).collect()
}

#[test]
fn its_engines_answer_as_the_labs_own_do() {
    if !tools() {
        return;
    }
    java().build(&mut |step| println!("{step}")).unwrap();
    let dir = tempfile::tempdir().unwrap();
    for encoding in [Encoding::Hashed, Encoding::Uuid] {
        let ours = results(&["halocline", "xodus", "null-java"], Durability::Process, encoding, dir.path());
        let mapdb = results(&["mapdb"], Durability::None, encoding, dir.path()).remove(0);
        let expected = &ours[0];
        for (name, found) in [("xodus", &ours[1]), ("mapdb", &mapdb)] {
            assert_eq!(found.len(), expected.len());
            for (a, b) in expected.iter().zip(found) {
                let at = format!("{name} {}", b.case);
                assert_eq!((a.ops, &a.read_digest), (b.ops, &b.read_digest), "{at}");
                assert_eq!(a.latency.samples, b.latency.samples, "{at}");
                assert_eq!(a.parts.keys().collect::<Vec<_>>(), b.parts.keys().collect::<Vec<_>>(), "{at}");
                assert!(b.histogram.is_some() || b.latency.samples == 0, "{at}");
                assert!(b.usage.cpu_user_s >= 0.0 && b.memory.anon > 0 && b.space.files > 0, "{at}");
                // How far the background came is a matter of time.
                if a.background_ops == 0 {
                    assert_eq!(
                        (a.live_bytes, &a.digest, a.user_bytes),
                        (b.live_bytes, &b.digest, b.user_bytes),
                        "{at}"
                    );
                }
            }
            let last = &found[found.len() - 1];
            assert!(last.background_ops > 0);
        }
        assert_eq!(ours[2].len(), expected.len());
        assert!(expected.iter().filter(|p| p.digest.is_some()).count() >= 6);
        assert!(expected.iter().filter(|p| p.read_digest.is_some()).count() >= 7);
    }
}
