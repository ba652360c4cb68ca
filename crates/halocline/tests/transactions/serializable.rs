//! Serializable means serializable: what other engines are known to have missed (ranges that were asked for and were empty,
//! partial or backward, absent keys, tombstones, plain writers, column families).

use super::*;
use std::ops::Bound;

/// Reads with `read`, lets another change `key`, and tells whether the commit was refused.
fn run(
    setup: &[(&str, Option<&str>)],
    between: Between,
    read: impl Fn(&halocline::Transaction<'_>),
    change: impl Fn(&Db),
) -> bool {
    let db = scratch();
    for (key, value) in setup {
        match value {
            Some(value) => db.put(key, value).unwrap(),
            None => db.delete(key).unwrap(),
        }
    }
    let mut tx = db.begin(TxOptions::new());
    read(&tx);
    change(&db);
    between.happen(&db);
    tx.put(b"result", b"").unwrap();
    conflicts(tx.commit())
}

const ROWS: [(&str, Option<&str>); 5] =
    [("b", Some("1")), ("d", Some("1")), ("f", Some("1")), ("h", Some("1")), ("j", Some("1"))];

#[test]
fn absent_keys_count() {
    for between in BETWEEN {
        let read = |tx: &halocline::Transaction<'_>| assert!(tx.get(b"a").unwrap().is_none());
        assert!(run(&[], between, read, |db| db.put(b"a", b"").unwrap()), "{between:?}");
        // One that was deleted before is as absent as any.
        assert!(run(&[("a", Some("")), ("a", None)], between, read, |db| db.put(b"a", b"").unwrap()));
        assert!(!run(&[], between, read, |db| db.put(b"ab", b"").unwrap()));
    }
}

#[test]
fn tombstones_count() {
    for between in BETWEEN {
        let read = |tx: &halocline::Transaction<'_>| assert!(tx.get(b"d").unwrap().is_some());
        assert!(run(&ROWS, between, read, |db| db.delete(b"d").unwrap()), "{between:?}");
        let scan = |tx: &halocline::Transaction<'_>| assert_eq!(tx.range(b"c"..b"i").count(), 3);
        assert!(run(&ROWS, between, scan, |db| db.delete(b"d").unwrap()), "{between:?}");
        assert!(!run(&ROWS, between, scan, |db| db.delete(b"j").unwrap()), "{between:?}");
    }
}

#[test]
fn empty_ranges_count() {
    for between in BETWEEN {
        let read = |tx: &halocline::Transaction<'_>| assert_eq!(tx.range(b"m"..b"p").count(), 0);
        for (key, conflict) in [("l", false), ("m", true), ("n", true), ("ozz", true), ("p", false)] {
            assert_eq!(
                run(&ROWS, between, read, |db| db.put(key, b"").unwrap()),
                conflict,
                "{key} {between:?}"
            );
        }
        let bounds = (Bound::Excluded(b"m"), Bound::Included(b"p"));
        let read = |tx: &halocline::Transaction<'_>| assert_eq!(tx.range(bounds).count(), 0);
        for (key, conflict) in [("m", false), ("m0", true), ("p", true), ("p0", false)] {
            assert_eq!(
                run(&ROWS, between, read, |db| db.put(key, b"").unwrap()),
                conflict,
                "{key} {between:?}"
            );
        }
    }
}

/// Only as far as it went: up to the last entry that was returned.
#[test]
fn partial_ranges_count_as_far_as_they_went() {
    for between in BETWEEN {
        let two = |tx: &halocline::Transaction<'_>| {
            assert_eq!(tx.range(b"a"..b"z").take(2).count(), 2);
        };
        for (key, conflict) in [("a", true), ("c", true), ("d", true), ("e", false), ("h", false)] {
            assert_eq!(
                run(&ROWS, between, two, |db| db.put(key, b"2").unwrap()),
                conflict,
                "{key} {between:?}"
            );
        }
        let untouched = |tx: &halocline::Transaction<'_>| drop(tx.range(..));
        assert!(!run(&ROWS, between, untouched, |db| db.put(b"a", b"").unwrap()));
    }
}

#[test]
fn backward_ranges_count() {
    for between in BETWEEN {
        let two = |tx: &halocline::Transaction<'_>| {
            assert_eq!(tx.range(b"a"..b"z").rev().take(2).count(), 2);
        };
        for (key, conflict) in
            [("a", false), ("g", false), ("h", true), ("i", true), ("k", true), ("z", false)]
        {
            assert_eq!(
                run(&ROWS, between, two, |db| db.put(key, b"2").unwrap()),
                conflict,
                "{key} {between:?}"
            );
        }
        let both = |tx: &halocline::Transaction<'_>| {
            let mut iter = tx.range(b"a"..b"z");
            iter.next().unwrap().unwrap();
            iter.next_back().unwrap().unwrap();
        };
        for (key, conflict) in
            [("a", true), ("b", true), ("c", false), ("i", false), ("j", true), ("x", true)]
        {
            assert_eq!(
                run(&ROWS, between, both, |db| db.put(key, b"2").unwrap()),
                conflict,
                "{key} {between:?}"
            );
        }
        let all_back = |tx: &halocline::Transaction<'_>| assert_eq!(tx.range(b"a"..b"z").rev().count(), 5);
        for (key, conflict) in [("a", true), ("y", true), ("z", false)] {
            assert_eq!(
                run(&ROWS, between, all_back, |db| db.put(key, b"").unwrap()),
                conflict,
                "{key} {between:?}"
            );
        }
    }
}

#[test]
fn prefixes_count() {
    for between in BETWEEN {
        let read = |tx: &halocline::Transaction<'_>| assert_eq!(tx.prefix(b"d").count(), 1);
        for (key, conflict) in [("c~", false), ("d", true), ("dx", true), ("d~~", true), ("e", false)] {
            assert_eq!(
                run(&ROWS, between, read, |db| db.put(key, b"").unwrap()),
                conflict,
                "{key} {between:?}"
            );
        }
    }
}

/// An iterator that is leaked cannot narrow its range, so all of it counts.
#[test]
fn a_forgotten_iterator_counts_whole() {
    let read = |tx: &halocline::Transaction<'_>| std::mem::forget(tx.range(b"a"..b"z"));
    assert!(run(&ROWS, Between::Little, read, |db| db.put(b"y", b"").unwrap()));
}

#[test]
fn two_ranges_at_once_are_told_apart() {
    let read = |tx: &halocline::Transaction<'_>| {
        let mut first = tx.range(b"a"..b"e");
        let mut second = tx.range(b"g"..b"z");
        first.next().unwrap().unwrap();
        second.next().unwrap().unwrap();
        drop(first);
        second.next().unwrap().unwrap();
    };
    for (key, conflict) in [("a", true), ("c", false), ("g", true), ("i", true), ("j", true), ("k", false)] {
        assert_eq!(run(&ROWS, Between::Little, read, |db| db.put(key, b"").unwrap()), conflict, "{key}");
    }
}

#[test]
fn column_families_are_apart_and_together() {
    for between in BETWEEN {
        let db = scratch();
        let family = db.column_family("other").unwrap();
        for (key, in_family, conflict) in
            [("k", true, true), ("k", false, false), ("m", true, true), ("m", false, false)]
        {
            let mut tx = db.begin(TxOptions::new());
            tx.get_cf(&family, b"k").unwrap();
            assert_eq!(tx.range_cf(&family, b"l"..b"n").filter(|i| i.as_ref().unwrap().0 != b"m").count(), 0);
            if in_family {
                family.put(key, b"").unwrap()
            } else {
                db.put(key, b"").unwrap()
            }
            between.happen(&db);
            tx.put(b"result", b"").unwrap();
            assert_eq!(conflicts(tx.commit()), conflict, "{key} {in_family} {between:?}");
        }
    }
}

/// Put and deleted again since: it reads as it did, so any outcome is right, but none may be wrong.
#[test]
fn what_came_and_went_is_no_phantom() {
    for between in BETWEEN {
        let db = scratch();
        let mut tx = db.begin(TxOptions::new());
        assert!(tx.get(b"k").unwrap().is_none());
        db.put(b"k", b"").unwrap();
        db.delete(b"k").unwrap();
        between.happen(&db);
        tx.put(b"result", b"").unwrap();
        let _ = conflicts(tx.commit());
        assert!(db.get(b"k").unwrap().is_none());
    }
}

/// A refused commit leaves nothing: not in memory, not in the log, not after a kill's worth of replay.
#[test]
fn a_refused_commit_leaves_nothing_behind() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    {
        let db = Db::open(&path).unwrap();
        for i in 0..200u32 {
            let mut tx = db.begin(TxOptions::new());
            tx.get(b"k").unwrap();
            tx.put(b"k", i.to_be_bytes()).unwrap();
            tx.put(b"refused", i.to_be_bytes()).unwrap();
            db.put(b"k", b"other").unwrap();
            assert!(conflicts(tx.commit()));
        }
        assert!(db.get(b"refused").unwrap().is_none());
        // No clean close: the log is replayed.
        std::mem::forget(db.snapshot().unwrap());
    }
    let db = Db::open(&path).unwrap();
    assert!(db.get(b"refused").unwrap().is_none());
    assert_eq!(text(db.get(b"k").unwrap()).unwrap(), "other");
}
