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
        "--out",
        path(&dir.path().join("out")),
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
    assert!(text(&out.stderr).contains("no suite is called \"nope\"; there are quick, core, seeds"));
    let out = halobench(&["run", "-e", "null", "-p", "zigzag"]);
    assert_eq!(out.status.code(), Some(2));
    assert!(text(&out.stderr).contains("timestamp"), "{}", text(&out.stderr));
    let out = halobench(&["run", "-e", "null", "-p", "uuid", "-k", "8"]);
    assert_eq!(out.status.code(), Some(2));
    assert!(text(&out.stderr).contains("keys of 8 bytes: this pattern needs 16 to 511 bytes"));
    let out = halobench(&["run", "-e", "null", "-o", "10", "-t", "0"]);
    assert!(text(&out.stderr).contains("threads, batch and range size must be at least 1"));
    // Thirty terabytes are more than the folder has.
    let out = halobench(&["run", "-e", "null", "-o", "30M", "-v", "1M"]);
    assert_eq!(out.status.code(), Some(2));
    assert!(text(&out.stderr).contains("GB free; choose another folder with --dir"), "{}", text(&out.stderr));
}

#[test]
fn rocksdb_answers_rightly() {
    if halobench::engine::rocksdb::fetch::library(None, None).is_err() {
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

#[test]
fn a_suite_is_listed_with_its_sizes_and_not_run() {
    let out = halobench(&["run", "--suite", "seeds", "--list", "--scale", "0.5", "--filter", "v8-*random*"]);
    let list = text(&out.stdout);
    assert!(out.status.success(), "{}", text(&out.stderr));
    let row = list.lines().find(|l| l.starts_with("v8-write-random ")).unwrap_or_else(|| panic!("{list}"));
    assert_eq!(row.split_whitespace().nth(2), Some("500,000"), "{row}");
    assert!(!list.contains("v3-"), "{list}");
    let suites = text(&halobench(&["suites"]).stdout);
    for suite in halobench::cases::SUITES {
        assert!(suites.lines().any(|l| l.starts_with(suite.name)), "{suites}");
        let out = halobench(&["run", "--suite", suite.name, "--list"]);
        assert!(out.status.success(), "{}: {}", suite.name, text(&out.stderr));
    }
    let out = halobench(&["run", "--suite", "quick", "--filter", "nothing-like-this", "--list"]);
    assert_eq!(out.status.code(), Some(2));
    assert!(text(&out.stderr).contains("there are fill-random-b1000"), "{}", text(&out.stderr));
}

#[test]
fn a_case_appends_benchtools_rows() {
    let dir = tempfile::tempdir().unwrap();
    let rows = dir.path().join("rows.csv");
    for name in ["one", "two"] {
        let out = halobench(&[
            "case",
            "-e",
            "lmdb,null",
            "-o",
            "2000",
            "-b",
            "10",
            "-t",
            "2",
            "--rounds",
            "1",
            "--csv",
            path(&rows),
            "--test-name",
            name,
            "-d",
            path(&dir.path().join("db")),
        ]);
        assert!(out.status.success(), "{}{}", text(&out.stdout), text(&out.stderr));
    }
    let rows = std::fs::read_to_string(rows).unwrap();
    let rows: Vec<Vec<&str>> = rows.lines().map(|l| l.split(',').collect()).collect();
    assert_eq!(rows.len(), 1 + 2 * 2 * 3, "a header; two runs, two engines, puts, gets and a pass");
    assert!(rows.iter().all(|r| r.len() == 33));
    assert_eq!(&rows[0][..3], ["engine", "test_name", "operation"]);
    assert_eq!(&rows[1][..3], ["lmdb", "one", "PUT"]);
    let operations: Vec<&str> = rows[7..10].iter().map(|r| r[2]).collect();
    assert_eq!((rows[7][1], operations), ("two", vec!["PUT", "GET", "ITER"]));
    assert_eq!(&rows[3][24..], ["mixed", "random", "1", "2000", "1", "16", "100", "100", "0"]);
}

#[test]
fn a_suite_leaves_a_folder_and_says_what_it_left_out() {
    let dir = tempfile::tempdir().unwrap();
    let out_dir = dir.path().join("out");
    let run = |filter: &str, more: &[&str]| {
        let mut args = vec!["run", "--suite", "quick", "--scale", "0.005", "-e", "lmdb,redb,null"];
        args.extend(["--rounds", "1", "--filter", filter, "--out", path(&out_dir)]);
        args.extend(more);
        let out = halobench(&args);
        assert!(out.status.success(), "{}{}", text(&out.stdout), text(&out.stderr));
        text(&out.stdout)
    };
    let said = run("read-random,fill-seq*", &[]);
    assert!(
        said.contains("redb, quick-writes-in-order: left out: redb has no durability class process"),
        "{said}"
    );
    assert!(said.contains("redb, quick-reads: loaded in class sync"), "{said}");
    let mut names: Vec<String> =
        std::fs::read_dir(&out_dir).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    assert_eq!(names, ["report.html", "result.json", "summary.tsv", "tables.txt"]);
    let report = halobench::report::Report::load(&out_dir.join("result.json")).unwrap();
    assert_eq!((report.suite.as_deref(), report.runs.len(), report.interrupted), (Some("quick"), 6, false));
    let compared = halobench(&["compare", path(&out_dir), path(&out_dir)]);
    assert!(compared.status.success(), "{}", text(&compared.stderr));

    let said = run("fill-seq*", &["--any-durability", "--keep"]);
    assert!(said.contains("redb, quick-writes-in-order: run in another durability class"), "{said}");
    let kept = std::fs::read_dir(out_dir.join("databases")).unwrap().count();
    assert_eq!((kept, said.matches("its database is kept in").count()), (3, 3), "{said}");
}

#[test]
fn a_memory_limit_holds_or_its_row_says_that_it_does_not() {
    let dir = tempfile::tempdir().unwrap();
    let json = dir.path().join("r.json");
    let out = halobench(&[
        "run",
        "-e",
        "lmdb",
        "-w",
        "write",
        "-o",
        "20000",
        "--rounds",
        "1",
        "--memory-limit",
        "96M",
        "--dir",
        path(dir.path()),
        "--json",
        path(&json),
    ]);
    assert!(out.status.success(), "{}{}", text(&out.stdout), text(&out.stderr));
    let report = halobench::report::Report::load(&json).unwrap();
    let run = &report.runs[0];
    match run.limited_peak {
        Some(peak) => assert!(peak > 1 << 20 && peak <= 96 << 20, "{peak}"),
        None => assert!(run.notes[0].contains("run without its memory limit of 96 MB"), "{:?}", run.notes),
    }
    assert_eq!(report.cases[0].memory_limit, Some(96 << 20));
}
