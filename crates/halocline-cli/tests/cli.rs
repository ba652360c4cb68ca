//! The command as its users meet it: arguments, output, exit codes.

use assert_cmd::Command;
use std::path::Path;
use tempfile::TempDir;

fn halocline() -> Command {
    let mut command = Command::cargo_bin("halocline").unwrap();
    command.env_remove("NO_COLOR");
    command
}

/// Runs a command that must succeed and returns its standard output.
fn ok(args: &[&str], input: &[u8]) -> Vec<u8> {
    halocline().args(args).write_stdin(input).assert().success().get_output().stdout.clone()
}

/// Runs a command that must end with `code` and returns its standard error.
fn fails(args: &[&str], input: &[u8], code: i32) -> String {
    let output = halocline().args(args).write_stdin(input).assert().code(code).get_output().stderr.clone();
    String::from_utf8(output).unwrap()
}

fn folder() -> (TempDir, String) {
    let dir = tempfile::tempdir().unwrap();
    let db = dir.path().join("db").to_str().unwrap().to_owned();
    (dir, db)
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap()
}

#[test]
fn what_is_put_is_got_until_deleted() {
    let (_dir, db) = folder();
    ok(&["put", &db, "apple", "red"], b"");
    assert_eq!(ok(&["get", &db, "apple"], b""), b"red\n");
    assert_eq!(ok(&["get", &db, "apple", "--raw"], b""), b"red");
    assert_eq!(ok(&["get", &db, "apple", "--hex"], b""), b"726564\n");
    ok(&["delete", &db, "apple"], b"");
    let message = fails(&["get", &db, "apple"], b"", 1);
    assert!(message.contains("no such key: apple"), "{message}");
    ok(&["delete", &db, "apple", "--sync"], b"");
}

#[test]
fn any_bytes_can_be_keys_and_values() {
    let (_dir, db) = folder();
    let all: Vec<u8> = (0..=255).collect();
    ok(&["put", &db, r"k\x00\xff\\", "-"], &all);
    assert_eq!(ok(&["get", &db, r"k\0\xFF\\", "--raw"], b""), all);
    assert_eq!(text(ok(&["scan", &db, "--keys-only"], b"")), "k\\x00\\xff\\\\\n");
    let message = fails(&["get", &db, r"k\q"], b"", 2);
    assert!(message.contains(r"unknown escape `\q`"), "{message}");
}

#[test]
fn scans_have_bounds_an_order_and_a_limit() {
    let (_dir, db) = folder();
    ok(&["load", &db, "-", "--format", "tsv"], b"b\t2\na\t1\nd\t4\nc\t3\nca\t5\n");
    let keys = |more: &[&str]| {
        let args = [&["scan", &db, "--keys-only"][..], more].concat();
        text(ok(&args, b"")).split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(keys(&[]), "a b c ca d");
    assert_eq!(keys(&["--reverse"]), "d ca c b a");
    assert_eq!(keys(&["--from", "b", "--to", "ca"]), "b c");
    assert_eq!(keys(&["--prefix", "c", "--reverse"]), "ca c");
    assert_eq!(keys(&["--limit", "2"]), "a b");
    assert_eq!(keys(&["--reverse", "--limit", "1"]), "d");
    assert_eq!(ok(&["count", &db], b""), b"5\n");
    assert_eq!(ok(&["count", &db, "--prefix", "c"], b""), b"2\n");
    let message = fails(&["scan", &db, "--from", "c", "--to", "a"], b"", 2);
    assert!(message.contains("--from is behind --to"), "{message}");
}

#[test]
fn scans_write_each_format() {
    let (_dir, db) = folder();
    ok(&["put", &db, "k", "-"], b"a\tb\xFF");
    let scan = |format: &str| text(ok(&["scan", &db, "--format", format], b""));
    assert_eq!(scan("text"), "k: a\\tb\\xff\n");
    assert_eq!(scan("tsv"), "k\ta\\tb\\xff\n");
    assert_eq!(scan("jsonl"), "{\"key\":\"k\",\"value_hex\":\"610962ff\"}\n");
    assert_eq!(scan("hex"), "6b\t610962ff\n");
}

#[test]
fn files_of_each_format_are_told_apart_and_loaded() {
    let (dir, _) = folder();
    type Case<'a> = (&'a str, &'a [u8], &'a [&'a str], &'a str, &'a str);
    let cases: [Case; 5] = [
        ("words", b"one\ntwo\n", &[], "000000000002", "two"),
        ("by-line", b"one\ntwo\n", &["--key", "line"], "two", "2"),
        ("data.tsv", b"k\tv\tw\n", &[], "k", "v\tw"),
        ("data.jsonl", b"{\"id\":7,\"x\":[]}\n", &["--key", "id"], "7", "{\"id\":7,\"x\":[]}"),
        ("Packages", b"Package: a\nVersion: 1\n\nPackage: b\n", &[], "a_1", "Package: a\nVersion: 1"),
    ];
    for (name, content, options, key, value) in cases {
        let file = dir.path().join(name);
        std::fs::write(&file, content).unwrap();
        let db = dir.path().join(format!("{name}-db"));
        let (file, db) = (file.to_str().unwrap(), db.to_str().unwrap());
        let output =
            halocline().args(["load", db, file]).args(options).assert().success().get_output().clone();
        let message = text(output.stderr);
        assert!(message.starts_with("loaded ") && message.contains("records/s"), "{message}");
        assert!(output.stdout.is_empty());
        assert_eq!(text(ok(&["get", db, key], b"")), format!("{value}\n"), "{name}");
    }
}

#[test]
fn malformed_input_is_refused_with_its_line_and_the_good_part_stays() {
    let (_dir, db) = folder();
    let message =
        fails(&["load", &db, "-", "--format", "jsonl", "--key", "id"], b"{\"id\":1}\n{\"id\":}\n", 2);
    assert!(message.contains("standard input, read as jsonl: line 2: "), "{message}");
    assert_eq!(ok(&["count", &db], b""), b"1\n");
    let message = fails(&["load", &db, "-", "--format", "jsonl"], b"", 2);
    assert!(message.contains("--key must name the field"), "{message}");
}

#[test]
fn dumps_come_back_without_loss() {
    let (dir, db) = folder();
    let all: Vec<u8> = (0..=255).rev().collect();
    ok(&["put", &db, r"\x00\xff", "-"], &all);
    ok(&["put", &db, "plain", "text"], b"");
    ok(&["put", &db, "same", "in users", "--cf", "users"], b"");
    ok(&["put", &db, "same", "", "--cf", "empty value"], b"");
    for format in ["jsonl", "hex"] {
        let dump = ok(&["dump", &db, "--format", format], b"");
        let copy = dir.path().join(format!("copy-{format}"));
        let copy = copy.to_str().unwrap();
        ok(&["load", copy, "-"], &dump);
        assert_eq!(ok(&["dump", copy, "--format", format], b""), dump);
        assert_eq!(ok(&["get", copy, r"\x00\xff", "--raw"], b""), all);
        assert_eq!(ok(&["get", copy, "same", "--cf", "users"], b""), b"in users\n");
        let one = text(ok(&["dump", &db, "--cf", "users", "--format", format], b""));
        assert_eq!(one.lines().count(), 3, "{one}");
    }
}

#[test]
fn column_families_are_apart() {
    let (_dir, db) = folder();
    ok(&["put", &db, "k", "1"], b"");
    ok(&["put", &db, "k", "2", "--cf", "other"], b"");
    assert_eq!(ok(&["get", &db, "k"], b""), b"1\n");
    assert_eq!(ok(&["get", &db, "k", "--cf", "other"], b""), b"2\n");
    ok(&["delete", &db, "k", "--cf", "other"], b"");
    assert_eq!(ok(&["count", &db, "--cf", "other"], b""), b"0\n");
    assert_eq!(ok(&["count", &db], b""), b"1\n");
    let message = fails(&["get", &db, "k", "--cf", "absent"], b"", 2);
    assert!(message.contains("no column family `absent`") && message.contains("default, other"), "{message}");
}

#[test]
fn figures_are_for_people_and_for_programs() {
    let (_dir, db) = folder();
    ok(&["put", &db, "k", "v"], b"");
    let people = text(ok(&["stats", &db], b""));
    assert!(people.contains("column families  default\n") && people.contains("on disk"), "{people}");
    let json: serde_json::Value = serde_json::from_slice(&ok(&["stats", &db, "--json"], b"")).unwrap();
    assert_eq!(json["column_families"][0], "default");
    assert!(json["disk_bytes"].as_u64().unwrap() > 0);
}

#[test]
fn compaction_keeps_what_is_there() {
    let (_dir, db) = folder();
    let lines: String = (0..5000).map(|i| format!("{}\t{i}\n", i % 1000)).collect();
    ok(&["load", &db, "-", "--format", "tsv"], lines.as_bytes());
    ok(&["delete", &db, "7"], b"");
    ok(&["compact", &db], b"");
    assert_eq!(ok(&["count", &db], b""), b"999\n");
    assert_eq!(ok(&["get", &db, "8"], b""), b"4008\n");
    assert_eq!(fails(&["get", &db, "7"], b"", 1), "halocline: no such key: 7\n");
}

/// The largest of the database's tables.
fn largest_table(db: &str) -> Option<std::path::PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![Path::new(db).to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            let data = entry.metadata().unwrap();
            if data.is_dir() {
                folders.push(entry.path());
            } else if entry.path().extension().is_some_and(|extension| extension == "tbl") {
                files.push((data.len(), entry.path()));
            }
        }
    }
    files.into_iter().max().map(|(_, path)| path)
}

#[test]
fn check_finds_damage_and_names_the_place() {
    let (_dir, db) = folder();
    let lines: String = (0..20_000).map(|i| format!("key{i:05}\tvalue number {i}\n")).collect();
    ok(&["load", &db, "-", "--format", "tsv"], lines.as_bytes());
    ok(&["compact", &db], b"");
    let sound = text(ok(&["check", &db], b""));
    assert!(sound.starts_with("sound: ") && sound.contains("20,000 entries"), "{sound}");

    let file = largest_table(&db).expect("a compacted database has a table");
    let mut content = std::fs::read(&file).unwrap();
    let middle = content.len() / 2;
    content[middle] ^= 0x40;
    std::fs::write(&file, content).unwrap();
    let output = halocline().args(["check", &db]).assert().code(1).get_output().stdout.clone();
    let report = text(output);
    let name = file.file_name().unwrap().to_str().unwrap();
    assert!(report.contains("damaged: ") && report.contains(name) && report.contains("at byte"), "{report}");
    let output = halocline().args(["check", &db, "--json"]).assert().code(1).get_output().stdout.clone();
    let json: serde_json::Value = serde_json::from_slice(&output).unwrap();
    assert!(json["damages"][0]["offset"].is_u64(), "{json}");
}

#[test]
fn nothing_is_created_by_reading() {
    let (_dir, db) = folder();
    for command in [&["get", &db, "k"][..], &["scan", &db], &["count", &db], &["stats", &db], &["check", &db]]
    {
        let message = fails(command, b"", 3);
        assert!(message.starts_with("halocline: ") && message.contains(&db), "{message}");
        assert!(!Path::new(&db).exists());
    }
    fails(&["delete", &db, "k"], b"", 3);
    assert!(!Path::new(&db).exists());
    fails(&["load", &db, "/nonexistent/file"], b"", 3);
    assert!(!Path::new(&db).exists());
}

#[test]
fn wrong_usage_is_exit_code_2() {
    fails(&[], b"", 2);
    fails(&["frobnicate"], b"", 2);
    fails(&["scan", "db", "--format", "xml"], b"", 2);
    let help = text(ok(&["--help"], b""));
    assert!(help.contains("Exit codes") && !help.contains("demo-worker"), "{help}");
}

#[test]
fn a_reader_that_leaves_early_is_no_error() {
    use std::io::Read as _;
    let (_dir, db) = folder();
    let lines: String = (0..50_000).map(|i| format!("{i:06}\tsome value\n")).collect();
    ok(&["load", &db, "-", "--format", "tsv"], lines.as_bytes());
    let mut child = std::process::Command::new(assert_cmd::cargo::cargo_bin("halocline"))
        .args(["scan", &db])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut some = [0; 10];
    child.stdout.take().unwrap().read_exact(&mut some).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), text(output.stderr)), (Some(0), String::new()));
}

#[test]
fn the_demo_verifies_and_prints_a_table() {
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path().to_str().unwrap();
    let demo = ["demo", "--dir", at, "--megabytes", "2", "--engines", "lmdb", "--json"];
    let output = text(ok(&demo, b""));
    let (table, json) = output.split_once("\n{\n").unwrap();
    for row in ["load, records a second", "random get", "full scan", "reopen", "on disk", "peak memory", "x"]
    {
        assert!(table.contains(row), "{row}: {table}");
    }
    assert!(!table.contains("WRONG") && !table.contains("NOT VERIFIED"), "{table}");
    let json: serde_json::Value = serde_json::from_str(&format!("{{\n{json}")).unwrap();
    assert!(json["records"].as_u64().unwrap() > 1000);
    assert_eq!(json["kill_proof"]["lost"], 0);
    assert!(json["kill_proof"]["acknowledged"].as_u64().unwrap() > 0);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "the databases are removed");
}
