//! A transaction sees what it wrote: by key, by range, both ways, from the first key to the many thousandth; and goes back to
//! savepoints.

use super::*;
use std::collections::BTreeMap;

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

fn same(tx: &halocline::Tx<'_>, model: &Model) {
    let forward: Vec<_> = tx.range(..).map(|i| i.unwrap()).map(|(k, v)| (k.to_vec(), v.to_vec())).collect();
    let expected: Vec<_> = model.iter().map(|(k, v)| (k.clone(), v.clone())).collect();
    assert!(forward == expected, "{} entries where {} are expected", forward.len(), expected.len());
    let mut backward: Vec<_> =
        tx.range(..).rev().map(|i| i.unwrap()).map(|(k, v)| (k.to_vec(), v.to_vec())).collect();
    backward.reverse();
    assert!(backward == expected);
}

/// Random writes over a database that has some, against a map; with savepoints.
#[test]
fn reads_and_ranges_see_own_writes_over_the_database() {
    let mut state = 11u64;
    let mut random = move |n: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % n
    };
    for level in LEVELS {
        let db = scratch();
        let mut model = Model::new();
        for i in (0..500).step_by(2) {
            let key = format!("{i:04}").into_bytes();
            db.put(&key, b"db").unwrap();
            model.insert(key, b"db".to_vec());
            if i == 200 {
                db.flush().unwrap();
            }
        }
        let mut tx = db.begin(at(level));
        let mut saved = Vec::new();
        for step in 0..1500 {
            let key = format!("{:04}", random(520)).into_bytes();
            match random(10) {
                0..=2 => {
                    tx.delete(&key).unwrap();
                    model.remove(&key);
                }
                3 if random(20) == 0 => saved.push((tx.savepoint(), model.clone())),
                4 if random(20) == 0 && !saved.is_empty() => {
                    let (savepoint, then) = &saved[random(saved.len() as u64) as usize];
                    match tx.rollback_to(savepoint) {
                        Ok(()) => model = then.clone(),
                        // It was made behind one that was gone back to.
                        Err(e) => assert_eq!(e.kind(), ErrorKind::InvalidArgument),
                    }
                }
                _ => {
                    let value = step.to_string().into_bytes();
                    tx.put(&key, &value).unwrap();
                    model.insert(key.clone(), value);
                }
            }
            let probe = format!("{:04}", random(520)).into_bytes();
            assert_eq!(tx.get(&probe).unwrap().map(|v| v.to_vec()), model.get(&probe).cloned());
            if step % 100 == 0 {
                same(&tx, &model);
                let (a, b) = (format!("{:04}", random(300)), format!("{:04}", 300 + random(200)));
                let part: Vec<_> =
                    tx.range(a.as_bytes()..b.as_bytes()).map(|i| i.unwrap().0.to_vec()).collect();
                let range = a.into_bytes()..b.into_bytes();
                assert_eq!(part, model.range(range).map(|(k, _)| k.clone()).collect::<Vec<_>>());
            }
        }
        same(&tx, &model);
        tx.commit().unwrap();
        same(&db.begin(at(level)), &model);
    }
}

/// Well past any table of fixed size.
#[test]
fn a_hundred_thousand_own_writes_are_all_seen() {
    let db = scratch();
    let family = db.column_family("f").unwrap();
    let mut tx = db.begin(TxOptions::new());
    let n = 100_000u64;
    for i in 0..n {
        let key = (i.wrapping_mul(0x9E37_79B9_7F4A_7C15)).to_be_bytes();
        tx.put_cf(&family, key, i.to_le_bytes()).unwrap();
    }
    for i in (0..n).step_by(97) {
        let key = (i.wrapping_mul(0x9E37_79B9_7F4A_7C15)).to_be_bytes();
        assert_eq!(tx.get_cf(&family, key).unwrap().unwrap(), i.to_le_bytes());
        assert!(tx.get(key).unwrap().is_none());
    }
    assert_eq!(tx.range_cf(&family, ..).count() as u64, n);
    assert_eq!(tx.range(..).count(), 0);
    assert!(family.get(0u64.to_be_bytes()).unwrap().is_none());
    tx.commit().unwrap();
    assert_eq!(family.iter().count() as u64, n);
}

#[test]
fn a_transaction_beyond_its_bound_is_refused_before_anything_is_written() {
    let db = scratch();
    let mut tx = db.begin(TxOptions::new().max_bytes(1000));
    tx.put(b"a", [0; 500]).unwrap();
    let refused = tx.put(b"b", [0; 600]).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidArgument);
    assert!(refused.to_string().contains("1000"), "{refused}");
    // It goes on without the write that was too much.
    assert!(tx.get(b"b").unwrap().is_none());
    tx.put(b"c", [0; 300]).unwrap();
    tx.commit().unwrap();
    assert_eq!(db.iter().count(), 2);
}

#[test]
fn savepoints_are_gone_with_those_before_them() {
    let db = scratch();
    let mut tx = db.begin(TxOptions::new());
    let first = tx.savepoint();
    tx.put(b"a", b"1").unwrap();
    let second = tx.savepoint();
    tx.put(b"a", b"2").unwrap();
    tx.rollback_to(&second).unwrap();
    assert_eq!(text(tx.get(b"a").unwrap()).unwrap(), "1");
    tx.put(b"b", b"2").unwrap();
    tx.rollback_to(&second).unwrap();
    assert!(tx.get(b"b").unwrap().is_none());
    tx.rollback_to(&first).unwrap();
    assert!(tx.get(b"a").unwrap().is_none());
    assert!(tx.rollback_to(&second).is_err());
    tx.put(b"c", b"3").unwrap();
    tx.release(first).unwrap();
    tx.commit().unwrap();
    assert_eq!(db.iter().map(|i| i.unwrap().0.to_vec()).collect::<Vec<_>>(), [b"c"]);
}

#[test]
fn hooks_run_once_and_only_after_a_commit() {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
    let db = scratch();
    let ran = Arc::new(AtomicU32::new(0));
    let hook = |add: u32| {
        let ran = Arc::clone(&ran);
        move || {
            ran.fetch_add(add, SeqCst);
        }
    };
    let mut tx = db.begin(TxOptions::new());
    tx.on_commit(hook(1));
    let savepoint = tx.savepoint();
    tx.on_commit(hook(10));
    tx.rollback_to(&savepoint).unwrap();
    tx.put(b"a", b"").unwrap();
    assert_eq!(ran.load(SeqCst), 0);
    tx.commit_and_reset().unwrap();
    assert_eq!(ran.load(SeqCst), 1);
    tx.on_commit(hook(100));
    tx.reset();
    tx.commit().unwrap();
    assert_eq!(ran.load(SeqCst), 1);
    let mut tries = 0;
    db.update(|tx| {
        tries += 1;
        tx.on_commit(hook(1000));
        tx.get(b"k")?;
        if tries < 3 {
            db.put(b"k", tries.to_string())?;
        }
        tx.put(b"k", b"mine")
    })
    .unwrap();
    assert_eq!((tries, ran.load(SeqCst)), (3, 1001));
}

#[test]
fn errors_and_panics_roll_back() {
    let db = scratch();
    let refused: halocline::Result<()> = db.update(|tx| {
        tx.put(b"a", b"")?;
        tx.put(vec![0; 100_000], b"")
    });
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::InvalidArgument);
    #[derive(Debug)]
    struct Mine;
    impl From<halocline::Error> for Mine {
        fn from(_: halocline::Error) -> Mine {
            Mine
        }
    }
    let mine: Result<(), Mine> = db.try_update(&TxOptions::new(), |tx| {
        tx.put(b"a", b"")?;
        Err(Mine)
    });
    assert!(mine.is_err());
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        db.update(|tx| -> halocline::Result<()> {
            tx.put(b"a", b"")?;
            panic!("on purpose")
        })
    }));
    assert!(panicked.is_err());
    assert_eq!(db.iter().count(), 0);
    db.put(b"b", b"").unwrap();
}
