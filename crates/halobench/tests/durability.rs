//! The test of durability, tested: honest engines keep what they claim, and a database that was tampered with between
//! a kill and its check is found out.

use halobench::durability::{Job, Row, Table, Verdict, table, verify};
use halobench::engine::Durability;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// One test at a time, so that no other thread forks while a script is open for writing.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn job(dir: &Path, engine: &str, class: Durability) -> Job {
    Job {
        engines: vec![engine.into()],
        classes: vec![class],
        kills: 4,
        slots: 128,
        longest: Duration::from_millis(150),
        write_buffer: 256 << 10,
        syncs: false,
        dir: Some(dir.join("work")),
        program: Some(env!("CARGO_BIN_EXE_halobench").into()),
        ..Job::default()
    }
}

/// The only row of a job.
fn row(job: &Job) -> Row {
    let table = verify(job, &mut |_| {}).unwrap();
    let shown = table::text(&table);
    assert_eq!(table.rows.len(), 1, "{shown}");
    let work = job.dir.as_ref().unwrap();
    assert_eq!(std::fs::read_dir(work).unwrap().count(), 0, "nothing is left in {}", work.display());
    table.rows[0].clone()
}

/// The row of an engine whose database `deed` (a shell's words, with the database's folder as `$db`) tampers with before
/// each check: every second child is one.
fn tampered(engine: &str, class: Durability, deed: &str) -> Row {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let program = dir.path().join("child");
    let words = format!(
        "#!/bin/sh\ncd {} || exit 9\ndb=$(echo work/*/kills/db)\n\
         if [ -e is_check ]; then rm is_check; {deed}; else : > is_check; fi\n\
         exec {} \"$@\"\n",
        dir.path().display(),
        env!("CARGO_BIN_EXE_halobench")
    );
    std::fs::write(&program, words).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    row(&Job { program: Some(program), ..job(dir.path(), engine, class) })
}

#[test]
fn engines_keep_what_they_claim() {
    let _alone = alone();
    for (engine, class) in [
        ("halocline", Durability::None),
        ("halocline", Durability::Process),
        ("halocline", Durability::Interval),
        ("halocline", Durability::Sync),
        ("lmdb", Durability::Process),
        ("lmdb", Durability::Sync),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let row = row(&job(dir.path(), engine, class));
        assert!(!matches!(row.verdict, Verdict::Worse | Verdict::Untested), "{row:#?}");
        assert_eq!((row.kills, row.wrong, row.disagreements, row.failed_opens), (4, 0, 0, 0), "{row:#?}");
        assert!(row.acked > 0, "{row:#?}");
        if class > Durability::None {
            assert_eq!((row.lost, row.torn, row.holes), (0, 0, 0), "{row:#?}");
        }
    }
}

#[test]
fn a_database_without_its_last_commits_is_found_out() {
    // The log is where the newest commits are.
    let row = tampered("halocline", Durability::Process, "rm -f \"$db\"/*.log \"$db\"/log/* \"$db\"/*.seg");
    assert_eq!(row.verdict, Verdict::Worse, "{row:#?}");
    assert!(row.lost > 0 || row.failed_opens > 0, "{row:#?}");
}

#[test]
fn an_old_state_is_found_out() {
    // The first check sees the database as it is, and keeps a copy, which the later ones find.
    let row = tampered(
        "lmdb",
        Durability::Process,
        "if [ -e old ]; then cp old \"$db/data.mdb\"; else cp \"$db/data.mdb\" old; fi",
    );
    assert_eq!(row.verdict, Verdict::Worse, "{row:#?}");
    assert!(row.lost > 0, "{row:#?}");
    assert_eq!(row.failed_opens, 0, "{row:#?}");
}

#[test]
fn a_database_that_cannot_be_opened_is_found_out() {
    let row = tampered("lmdb", Durability::Sync, "echo gone > \"$db/data.mdb\"");
    assert_eq!((row.verdict, row.kills, row.failed_opens), (Verdict::Worse, 1, 1), "{row:#?}");
    assert!(row.error.is_some_and(|e| e.contains("LMDB")));
}

#[test]
fn what_cannot_be_tested_says_why() {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let null = row(&job(dir.path(), "null", Durability::Sync));
    assert_eq!((null.verdict, null.kills), (Verdict::Untested, 0));
    assert_eq!(null.error.as_deref(), Some("null stores nothing"));
    let lmdb = row(&job(dir.path(), "lmdb", Durability::None));
    assert_eq!((lmdb.verdict, lmdb.error.as_deref()), (Verdict::Missing, Some("it has no such class")));
    let dead = Job { program: Some("/bin/false".into()), ..job(dir.path(), "lmdb", Durability::Sync) };
    assert_eq!(row(&dead).error.as_deref(), Some("the process ended on its own (exit code 1)"));
    let unknown = verify(&job(dir.path(), "nosuch", Durability::Sync), &mut |_| {});
    assert!(unknown.unwrap_err().contains("no engine is called \"nosuch\""));
}

#[test]
fn syncs_are_counted_commit_by_commit() {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let syncs = |class| {
        let row = row(&Job { kills: 1, syncs: true, ..job(dir.path(), "lmdb", class) });
        assert_eq!(row.verdict, Verdict::AsClaimed, "{row:#?}");
        row.syncs.ok_or(row.syncs_missing)
    };
    match (syncs(Durability::Sync), syncs(Durability::Process)) {
        (Ok(sync), Ok(process)) => {
            assert!(sync.commits > 0 && sync.bare == 0 && sync.fsync >= sync.commits, "{sync:?}");
            assert!(
                process.commits > 0 && process.bare == process.commits && process.safe() == 0,
                "{process:?}"
            );
        }
        (Err(why), _) | (_, Err(why)) => eprintln!("skipped: {why:?}"),
    }
}

#[test]
fn the_table_is_printed_in_three_ways() {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let lmdb =
        verify(&Job { kills: 1, ..job(dir.path(), "lmdb", Durability::Process) }, &mut |_| {}).unwrap();
    let text = table::text(&lmdb);
    let line = text.lines().find(|l| l.starts_with("lmdb")).unwrap();
    assert!(line.contains("MDB_NOSYNC") && line.ends_with("as claimed"), "{text}");
    let markdown = table::markdown(&lmdb);
    let line = markdown.lines().find(|l| l.starts_with("| lmdb | process | `MDB_NOSYNC` | 1 | ")).unwrap();
    assert!(line.ends_with("| as claimed |"), "{markdown}");
    let back: Table = serde_json::from_str(&table::json(&lmdb).unwrap()).unwrap();
    assert_eq!(table::text(&back), text);
}
