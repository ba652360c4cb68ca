//! The API end to end on small data: what a new user would try first.

use std::time::Duration;

use halocline::{Compaction, Compression, Db, Durability, LogMode, Options, TableAccess, WriteBatch};

fn every_option(test: impl Fn(Options)) {
    for mode in [LogMode::Mapped, LogMode::Written] {
        for access in [TableAccess::Mapped, TableAccess::Pread] {
            for compression in [Compression::Lz4, Compression::None] {
                test(
                    Options::new()
                        .log_mode(mode)
                        .table_access(access)
                        .compression(compression)
                        .compress_from(0)
                        .write_buffer(64 << 10),
                );
            }
        }
    }
    for compaction in [Compaction::Leveled, Compaction::Tiered] {
        test(Options::new().compaction(compaction).write_buffer(64 << 10));
    }
    test(Options::new().durability(Durability::None).write_buffer(64 << 10));
    test(Options::new().durability(Durability::Interval(Duration::from_millis(5))).write_buffer(64 << 10));
}

fn key(i: u64) -> Vec<u8> {
    format!("key{:08}", i.wrapping_mul(7919) % 100_003).into_bytes()
}

#[test]
fn what_is_written_is_read_back_before_and_after_flushes_merges_and_reopening() {
    every_option(|options| {
        let dir = tempfile::tempdir().unwrap();
        let db = options.clone().open(dir.path()).unwrap();
        let n = 5_000u64;
        for i in 0..n {
            db.put(key(i), format!("value {i}")).unwrap();
        }
        for i in (0..n).step_by(3) {
            db.delete(key(i)).unwrap();
        }
        let verify = |db: &Db| {
            for i in 0..n {
                let value = db.get(key(i)).unwrap();
                let expected = (i % 3 != 0).then(|| format!("value {i}"));
                assert_eq!(value.as_deref(), expected.as_ref().map(|v| v.as_bytes()), "{options:?}: key {i}");
            }
            let keys: Vec<_> = db.iter().keys().map(|k| k.unwrap().to_vec()).collect();
            assert_eq!(keys.len() as u64, n - n.div_ceil(3));
            assert!(keys.is_sorted());
            let mut back: Vec<_> = db.iter().rev().map(|e| e.unwrap().0.to_vec()).collect();
            back.reverse();
            assert_eq!(keys, back);
        };
        verify(&db);
        db.flush().unwrap();
        verify(&db);
        db.compact_range(..).unwrap();
        verify(&db);
        db.wait_idle().unwrap();
        db.close().unwrap();
        drop(db);
        let db = options.clone().open(dir.path()).unwrap();
        verify(&db);
        drop(db);
        let report = options.clone().check(dir.path()).unwrap();
        assert!(report.is_sound(), "{report:?}");
        verify(&options.clone().open_read_only(dir.path()).unwrap());
    });
}

#[test]
fn a_batch_commits_across_column_families_and_a_snapshot_stays() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path()).unwrap();
    let users = db.column_family("users").unwrap();
    let mut batch = WriteBatch::new();
    batch.put(b"n", b"1");
    batch.put_cf(&users, b"ada", b"engineer");
    db.write(&batch).unwrap();
    let before = db.snapshot().unwrap();
    batch.clear();
    batch.put(b"n", b"2");
    batch.delete_cf(&users, b"ada");
    db.write(&batch).unwrap();
    db.flush().unwrap();
    assert_eq!(before.get(b"n").unwrap().unwrap(), b"1");
    assert_eq!(before.get_cf(&users, b"ada").unwrap().unwrap(), b"engineer");
    assert_eq!(db.get(b"n").unwrap().unwrap(), b"2");
    assert!(users.get(b"ada").unwrap().is_none());
    db.compact_range(..).unwrap();
    assert_eq!(before.get(b"n").unwrap().unwrap(), b"1");
    assert_eq!(before.range_cf(&users, b"a"..b"b").count(), 1);
    assert!(db.drop_column_family("users").unwrap());
    assert!(users.get(b"ada").is_err());
    assert_eq!(db.column_families().unwrap(), ["default"]);
}
