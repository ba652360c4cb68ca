//! The command, from outside: runs, result files, what happens to those that cannot run.

use std::path::Path;
use std::process::{Command, Output};

fn halobench(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_halobench")).args(args).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn path(p: &Path) -> &str {
    p.to_str().unwrap()
}

#[test]
fn a_run_writes_a_table_and_a_file_that_summary_reads() {
    let dir = tempfile::tempdir().unwrap();
    let (json, work) = (dir.path().join("r.json"), dir.path().join("work"));
    let out = halobench(&[
        "run",
        "-e",
        "lmdb,null",
        "-w",
        "read",
        "-p",
        "zipfian",
        "-o",
        "5000",
        "-t",
        "2",
        "--rounds",
        "2",
        "--dir",
        path(&work),
        "--json",
        path(&json),
    ]);
    assert!(out.status.success(), "{}{}", text(&out.stdout), text(&out.stderr));
    let table = text(&out.stdout);
    assert!(table.contains("read-zipfian: 5,000 operations, 2 threads"), "{table}");
    assert!(!table.contains("VOID"));
    assert_eq!(std::fs::read_dir(&work).unwrap().count(), 0, "databases are removed");

    let tsv = text(&halobench(&["summary", path(&json), "--tsv"]).stdout);
    let rows: Vec<Vec<&str>> = tsv.lines().map(|l| l.split('\t').collect()).collect();
    assert_eq!(rows[0], ["case", "metric", "engine", "value", "ratio_to_best_peer"]);
    let find = |metric: &str, engine: &str| {
        rows.iter()
            .find(|r| r[1] == metric && r[2] == engine)
            .unwrap_or_else(|| panic!("{metric} {engine}: {tsv}"))
    };
    assert!(find("ops_per_s", "lmdb")[3].parse::<f64>().unwrap() > 0.0);
    assert!(find("p99_us", "lmdb")[3].parse::<f64>().unwrap() > 0.0);
    // Null is nobody's peer and has none, so a lone engine has no ratio.
    assert_eq!(find("ops_per_s", "lmdb")[4], "-");
    assert_eq!(find("ops_per_s", "null")[4], "-");
    assert_eq!(text(&halobench(&["summary", path(&json)]).stdout).lines().next(), table.lines().next());
}

#[test]
fn the_core_suite_runs_every_case_of_the_list() {
    let dir = tempfile::tempdir().unwrap();
    let json = dir.path().join("r.json");
    let out = halobench(&[
        "run",
        "--suite",
        "core",
        "-e",
        "lmdb,null",
        "-o",
        "4000",
        "-t",
        "3",
        "--rounds",
        "1",
        "--dir",
        path(dir.path()),
        "--json",
        path(&json),
    ]);
    assert!(out.status.success(), "{}{}", text(&out.stdout), text(&out.stderr));
    let tsv = text(&halobench(&["summary", path(&json), "--tsv"]).stdout);
    for case in [
        "write-random-b1000",
        "read-random",
        "read-zipfian",
        "seek-random",
        "range-random-100",
        "iterate-random",
        "delete-random-b1000",
        "write-seq-b1000",
        "write-random-b1",
    ] {
        let row = format!("{case}\tops_per_s\tlmdb\t");
        let line = tsv.lines().find(|l| l.starts_with(&row)).unwrap_or_else(|| panic!("no {case}: {tsv}"));
        assert!(line.split('\t').nth(3).unwrap().parse::<f64>().unwrap() > 0.0, "{line}");
    }
}

#[test]
fn an_engine_that_cannot_be_had_is_told_and_the_run_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let out = halobench(&[
        "run",
        "-e",
        "rocksdb,lmdb",
        "-o",
        "1000",
        "--rounds",
        "1",
        "--rocksdb-lib",
        "/nonexistent/librocksdb.so",
        "--dir",
        path(dir.path()),
    ]);
    let table = text(&out.stdout);
    assert!(out.status.success(), "{table}");
    assert!(table.contains("rocksdb: not run: /nonexistent/librocksdb.so is not a file"), "{table}");
    assert!(table.lines().any(|l| l.trim_start().starts_with("lmdb") && l.contains("us")), "{table}");
}

#[test]
fn unknown_names_are_refused_with_the_known_ones() {
    let out = halobench(&["run", "-e", "leveldb", "-o", "10"]);
    assert_eq!(out.status.code(), Some(2));
    assert!(text(&out.stderr).contains("no engine is called \"leveldb\"; there are halocline, rocksdb"));
    let out = halobench(&["run", "-e", "null", "--suite", "nope"]);
    assert!(text(&out.stderr).contains("there is core"));
    let out = halobench(&["run", "-e", "null", "-k", "7"]);
    assert_eq!(out.status.code(), Some(1));
    assert!(text(&out.stdout).contains("keys of 7 bytes: this pattern needs 8 to 511 bytes"));
}

#[test]
fn rocksdb_answers_rightly() {
    if halobench::engine::rocksdb::fetch::library(None).is_err() {
        println!("skipped: RocksDB's library is not in the cache; `halobench setup` fetches it");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    for (workload, pattern) in [
        ("write", "uniform"),
        ("mixed", "zipfian"),
        ("range", "uuid"),
        ("delete", "reverse"),
        ("seek", "timestamp"),
    ] {
        let out = halobench(&[
            "run",
            "-e",
            "rocksdb,rocksdb-default",
            "-w",
            workload,
            "-p",
            pattern,
            "-o",
            "5000",
            "-t",
            "3",
            "-b",
            "10",
            "--rounds",
            "1",
            "--dir",
            path(dir.path()),
        ]);
        assert!(out.status.success(), "{workload} {pattern}: {}{}", text(&out.stdout), text(&out.stderr));
    }
}
