//! What the lab relies on, asked of every engine that runs in this process and is here: the same answers from each.
//!
//! An engine that says that its cursor does not go backward is not asked to. [`LIVE_CURSORS`] see writes that go on.

use super::registry::{self, Entry, How};
use super::{Compression, Config, Cursor, Durability, Engine, Session};
use crate::workload::rng;
use std::collections::BTreeMap;
use std::time::Duration;
use tempfile::TempDir;

/// Engines whose cursors are no stable views: a cost that they do not pay, told in the lab's pages.
const LIVE_CURSORS: [&str; 1] = ["sled"];

const LIMIT: Duration = Duration::from_secs(60);

type Pairs = Vec<(Vec<u8>, Vec<u8>)>;

/// An engine and a folder for its database.
struct Place {
    entry: Entry,
    dir: TempDir,
    durability: Durability,
}

impl Place {
    fn name(&self) -> &'static str {
        self.entry.name
    }

    fn open(&self) -> Box<dyn Engine> {
        self.entry
            .open(self.dir.path(), &config(self.durability))
            .unwrap_or_else(|e| panic!("opening {}: {e}", self.name()))
    }
}

/// Small, so that tables are written and merged.
fn config(durability: Durability) -> Config {
    Config {
        write_buffer: 256 << 10,
        cache: 4 << 20,
        durability,
        compression: Compression::Lz4,
        threads: 4,
        expected_bytes: 16 << 20,
        rocksdb_lib: None,
    }
}

/// Does `work` on an empty database of every engine, in the class that survives a kill or else its first one.
fn each(work: impl Fn(&Place)) {
    let mut any = false;
    for entry in registry::all() {
        if entry.name == "null" || !matches!(entry.how, How::Here { .. }) {
            continue;
        }
        if entry.availability(None).version.is_none() {
            continue;
        }
        any = true;
        let durability = entry
            .classes
            .iter()
            .map(|&(class, _)| class)
            .find(|&class| class == Durability::Process)
            .unwrap_or(entry.classes[0].0);
        work(&Place { entry, dir: tempfile::tempdir().unwrap(), durability });
    }
    assert!(any, "there is always an engine");
}

fn get(session: &mut dyn Session, key: &[u8]) -> Option<Vec<u8>> {
    session.get(key).unwrap().map(<[u8]>::to_vec)
}

fn entry(cursor: &mut dyn Cursor) -> (Vec<u8>, Vec<u8>) {
    let key = cursor.key().to_vec();
    (key, cursor.value().unwrap().to_vec())
}

/// Everything, first to last.
fn pass(cursor: &mut dyn Cursor) -> Pairs {
    let mut found = Vec::new();
    let mut more = cursor.seek_first().unwrap();
    while more {
        found.push(entry(cursor));
        more = cursor.next().unwrap();
    }
    found
}

/// Everything, last to first.
fn pass_back(cursor: &mut dyn Cursor) -> Pairs {
    let mut found = Vec::new();
    let mut more = cursor.seek_last().unwrap();
    while more {
        found.push(entry(cursor));
        more = cursor.prev().unwrap();
    }
    found
}

/// Whether the cursor goes backward.
fn goes_back(cursor: &mut dyn Cursor) -> bool {
    match cursor.seek_last() {
        Ok(_) => true,
        Err(e) if e == "this engine's cursor does not go backward" => false,
        Err(e) => panic!("{e}"),
    }
}

/// A key of 16 bytes.
fn key(i: u64) -> Vec<u8> {
    format!("key{i:013}").into_bytes()
}

fn all_of(model: &BTreeMap<Vec<u8>, Vec<u8>>) -> Pairs {
    model.iter().map(|(k, v)| (k.clone(), v.clone())).collect()
}

#[test]
fn a_put_is_read_back_and_a_delete_removes_it() {
    each(|place| {
        let name = place.name();
        let engine = place.open();
        let mut s = engine.session().unwrap();
        assert_eq!(get(&mut *s, &key(1)), None, "{name}");
        s.put(&key(1), b"one").unwrap();
        s.put(&key(2), b"two").unwrap();
        assert_eq!(get(&mut *s, &key(1)).unwrap(), b"one", "{name}");
        s.put(&key(1), b"uno").unwrap();
        assert_eq!(get(&mut *s, &key(1)).unwrap(), b"uno", "{name}");
        s.delete(&key(1)).unwrap();
        s.delete(&key(3)).unwrap();
        assert_eq!(get(&mut *s, &key(1)), None, "{name}");
        assert_eq!(get(&mut *s, &key(2)).unwrap(), b"two", "{name}");
        s.put(&key(1), b"again").unwrap();
        assert_eq!(get(&mut *s, &key(1)).unwrap(), b"again", "{name}");
        drop(s);
        engine.close().unwrap();
    });
}

#[test]
fn a_batch_is_seen_whole_and_in_its_order() {
    each(|place| {
        let name = place.name();
        let engine = place.open();
        let (mut s, mut other) = (engine.session().unwrap(), engine.session().unwrap());
        other.put(&key(0), b"old").unwrap();
        s.commit().unwrap();
        for i in 0..100 {
            s.batch_put(&key(i), b"first").unwrap();
        }
        s.batch_put(&key(7), b"second").unwrap();
        s.batch_delete(&key(8)).unwrap();
        s.batch_delete(&key(9)).unwrap();
        s.batch_put(&key(9), b"after").unwrap();
        assert_eq!(get(&mut *other, &key(0)).unwrap(), b"old", "{name}: before its commit");
        assert_eq!(get(&mut *other, &key(50)), None, "{name}: before its commit");
        s.commit().unwrap();
        for session in [&mut s, &mut other] {
            assert_eq!(get(&mut **session, &key(0)).unwrap(), b"first", "{name}");
            assert_eq!(get(&mut **session, &key(7)).unwrap(), b"second", "{name}");
            assert_eq!(get(&mut **session, &key(8)), None, "{name}");
            assert_eq!(get(&mut **session, &key(9)).unwrap(), b"after", "{name}");
            assert_eq!(pass(&mut *session.cursor().unwrap()).len(), 99, "{name}");
        }
        // The batch is empty now: committing again must not bring it back.
        other.put(&key(0), b"new").unwrap();
        s.commit().unwrap();
        assert_eq!(get(&mut *s, &key(0)).unwrap(), b"new", "{name}");
        drop((s, other));
        engine.close().unwrap();
    });
}

#[test]
fn an_empty_database_has_no_entry() {
    each(|place| {
        let name = place.name();
        let engine = place.open();
        for round in 0..2 {
            let mut s = engine.session().unwrap();
            assert_eq!(get(&mut *s, &key(1)), None, "{name}");
            {
                let mut c = s.cursor().unwrap();
                assert!(!c.seek_first().unwrap(), "{name}");
                assert!(!c.seek(&key(1)).unwrap(), "{name}");
                if goes_back(&mut *c) {
                    assert!(!c.seek_last().unwrap(), "{name}");
                    assert!(!c.seek_back(&key(1)).unwrap(), "{name}");
                }
            }
            // The second round looks at one that was emptied.
            if round == 0 {
                (0..50).for_each(|i| s.put(&key(i), b"x").unwrap());
                (0..50).for_each(|i| s.delete(&key(i)).unwrap());
            }
            drop(s);
            assert!(engine.settle(LIMIT).unwrap(), "{name}");
        }
        engine.close().unwrap();
    });
}

#[test]
fn a_seek_lands_at_the_key_or_behind_it() {
    each(|place| {
        let name = place.name();
        let engine = place.open();
        let mut s = engine.session().unwrap();
        // 10, 20, ... 990, put in another order.
        (1..100).for_each(|i| s.put(&key(i * 37 % 100 * 10), &key(i)).unwrap());
        let mut c = s.cursor().unwrap();
        assert!(c.seek(&key(500)).unwrap(), "{name}");
        assert_eq!(c.key(), key(500), "{name}");
        assert!(c.seek(&key(501)).unwrap(), "{name}");
        assert_eq!(c.key(), key(510), "{name}");
        assert!(c.next().unwrap(), "{name}");
        assert_eq!(c.key(), key(520), "{name}");
        assert!(c.seek(b"a").unwrap(), "{name}");
        assert_eq!(c.key(), key(10), "{name}");
        assert!(c.seek(&key(990)).unwrap(), "{name}");
        assert!(!c.next().unwrap(), "{name}");
        assert!(!c.seek(&key(991)).unwrap(), "{name}");
        assert!(c.seek(&key(20)).unwrap(), "{name}: after a seek that found nothing");
        assert_eq!(c.key(), key(20), "{name}");
        if goes_back(&mut *c) {
            assert!(c.seek_back(&key(500)).unwrap(), "{name}");
            assert_eq!(c.key(), key(500), "{name}");
            assert!(c.seek_back(&key(499)).unwrap(), "{name}");
            assert_eq!(c.key(), key(490), "{name}");
            assert!(c.prev().unwrap(), "{name}");
            assert_eq!(c.key(), key(480), "{name}");
            assert!(c.seek_back(b"z").unwrap(), "{name}");
            assert_eq!(c.key(), key(990), "{name}");
            assert!(c.seek_back(&key(10)).unwrap(), "{name}");
            assert!(!c.prev().unwrap(), "{name}");
            assert!(!c.seek_back(&key(9)).unwrap(), "{name}");
            assert!(c.seek_back(&key(20)).unwrap(), "{name}: after a seek that found nothing");
            assert_eq!(c.key(), key(20), "{name}");
            // Turns.
            assert!(c.next().unwrap(), "{name}");
            assert_eq!(c.key(), key(30), "{name}");
            assert!(c.next().unwrap(), "{name}");
            assert_eq!(c.key(), key(40), "{name}");
            assert!(c.prev().unwrap(), "{name}");
            assert_eq!(c.key(), key(30), "{name}");
            assert!(c.seek(&key(700)).unwrap(), "{name}");
            assert!(c.prev().unwrap(), "{name}");
            assert_eq!(c.key(), key(690), "{name}");
            assert!(c.seek_last().unwrap() && c.prev().unwrap() && c.next().unwrap(), "{name}");
            assert_eq!(c.key(), key(990), "{name}");
        }
        drop(c);
        drop(s);
        engine.close().unwrap();
    });
}

#[test]
fn keys_and_values_of_all_sizes_are_kept() {
    each(|place| {
        let name = place.name();
        let mut model = BTreeMap::new();
        for (i, len) in [0, 1, 100, 1 << 20].into_iter().enumerate() {
            for key_len in [16, 255] {
                let value: Vec<u8> = (0..len as u64).map(|j| rng::at(i as u64, j / 8) as u8).collect();
                model.insert(vec![b'a' + i as u8; key_len], value);
            }
        }
        let engine = place.open();
        let mut s = engine.session().unwrap();
        for (n, (k, v)) in model.iter().enumerate() {
            if n % 2 == 0 {
                s.put(k, v).unwrap();
            } else {
                s.batch_put(k, v).unwrap();
                s.commit().unwrap();
            }
        }
        let check = |s: &mut dyn Session| {
            for (k, v) in &model {
                assert!(get(s, k).as_ref() == Some(v), "{name}: a value of {} bytes", v.len());
            }
            assert!(pass(&mut *s.cursor().unwrap()) == all_of(&model), "{name}");
        };
        check(&mut *s);
        drop(s);
        assert!(engine.settle(LIMIT).unwrap(), "{name}");
        check(&mut *engine.session().unwrap());
        engine.close().unwrap();
        let engine = place.open();
        check(&mut *engine.session().unwrap());
        engine.close().unwrap();
    });
}

#[test]
fn sessions_of_two_threads_see_each_others_writes() {
    each(|place| {
        let name = place.name();
        let engine = place.open();
        let barrier = std::sync::Barrier::new(2);
        std::thread::scope(|scope| {
            for t in 0..2 {
                let (engine, barrier) = (&engine, &barrier);
                scope.spawn(move || {
                    let mut s = engine.session().unwrap();
                    for i in 0..300 {
                        s.put(&key(i * 2 + t), &key(t)).unwrap();
                        assert_eq!(get(&mut *s, &key(i * 2 + t)).unwrap(), key(t), "{name}");
                    }
                    barrier.wait();
                    for i in 0..600 {
                        assert_eq!(get(&mut *s, &key(i)).unwrap(), key(i % 2), "{name}");
                    }
                    // In turns: what one wrote, the other reads next, though it has read an older state before.
                    for turn in 0..20 {
                        barrier.wait();
                        if turn % 2 == t {
                            s.put(&key(0), &key(turn)).unwrap();
                            s.delete(&key(turn + 1)).unwrap();
                        }
                        barrier.wait();
                        assert_eq!(get(&mut *s, &key(0)).unwrap(), key(turn), "{name}");
                        assert_eq!(get(&mut *s, &key(turn + 1)), None, "{name}");
                        assert_eq!(pass(&mut *s.cursor().unwrap()).len() as u64, 599 - turn, "{name}");
                    }
                });
            }
        });
        engine.close().unwrap();
    });
}

#[test]
fn a_cursor_is_a_stable_view() {
    each(|place| {
        let name = place.name();
        if LIVE_CURSORS.contains(&name) {
            return;
        }
        let engine = place.open();
        let (mut reader, mut writer) = (engine.session().unwrap(), engine.session().unwrap());
        (0..2000).for_each(|i| writer.batch_put(&key(i * 2), &[b'a'; 100]).unwrap());
        writer.commit().unwrap();
        let mut c = reader.cursor().unwrap();
        // Writes go on before its first move and while it is on its way.
        writer.put(&key(1), b"new").unwrap();
        let mut more = c.seek_first().unwrap();
        let mut seen = 0;
        while more {
            assert_eq!(c.key(), key(seen * 2), "{name}");
            assert_eq!(c.value().unwrap(), [b'a'; 100], "{name}");
            if seen % 10 == 0 {
                writer.put(&key((seen + 7) * 2), b"overwritten").unwrap();
                writer.delete(&key((seen + 8) * 2)).unwrap();
                writer.put(&key((seen + 9) * 2 + 1), b"new").unwrap();
            }
            seen += 1;
            more = c.next().unwrap();
        }
        assert_eq!(seen, 2000, "{name}");
        assert!(c.seek(&key(1)).unwrap(), "{name}");
        assert_eq!(c.key(), key(2), "{name}: a seek in the view");
        if goes_back(&mut *c) {
            assert_eq!(pass_back(&mut *c).len(), 2000, "{name}");
        }
        drop(c);
        assert_eq!(get(&mut *reader, &key(1)).unwrap(), b"new", "{name}");
        let now = pass(&mut *reader.cursor().unwrap());
        assert_eq!(now.len(), 2001, "{name}");
        drop((reader, writer));
        engine.close().unwrap();
    });
}

#[test]
fn random_writes_settle_and_come_back_after_each_reopening() {
    each(|place| {
        let name = place.name();
        let mut model: BTreeMap<Vec<u8>, Vec<u8>> = BTreeMap::new();
        let mut draws = 0;
        let mut draw = |n: u64| {
            draws += 1;
            rng::reduce(rng::at(1, draws), n)
        };
        for _ in 0..3 {
            let engine = place.open();
            let mut s = engine.session().unwrap();
            for _ in 0..100 {
                let n = 1 + draw(50);
                for _ in 0..n {
                    let k = key(draw(3000));
                    let v = vec![b'a' + draw(26) as u8; draw(400) as usize];
                    let delete = draw(4) == 0;
                    match (delete, n % 4 == 0) {
                        (true, true) => s.delete(&k).unwrap(),
                        (true, false) => s.batch_delete(&k).unwrap(),
                        (false, true) => s.put(&k, &v).unwrap(),
                        (false, false) => s.batch_put(&k, &v).unwrap(),
                    }
                    if delete {
                        model.remove(&k)
                    } else {
                        model.insert(k, v)
                    };
                }
                s.commit().unwrap();
                let k = key(draw(3000));
                assert_eq!(get(&mut *s, &k).as_ref(), model.get(&k), "{name}");
            }
            let check = |s: &mut dyn Session| {
                let mut c = s.cursor().unwrap();
                assert!(pass(&mut *c) == all_of(&model), "{name}");
                if goes_back(&mut *c) {
                    let mut found = pass_back(&mut *c);
                    found.reverse();
                    assert!(found == all_of(&model), "{name}: backward");
                }
            };
            check(&mut *s);
            drop(s);
            assert!(engine.settle(LIMIT).unwrap(), "{name} did not settle");
            check(&mut *engine.session().unwrap());
            engine.close().unwrap();
        }
    });
}

#[test]
fn every_class_keeps_what_was_committed_before_a_clean_close() {
    each(|place| {
        for &(durability, _) in place.entry.classes {
            let place = Place {
                entry: registry::find(place.name()).unwrap(),
                dir: tempfile::tempdir().unwrap(),
                durability,
            };
            let name = place.name();
            let engine = place.open();
            let mut s = engine.session().unwrap();
            s.put(&key(1), b"put").unwrap();
            s.batch_put(&key(2), b"batch").unwrap();
            s.commit().unwrap();
            drop(s);
            engine.close().unwrap();
            let engine = place.open();
            let mut s = engine.session().unwrap();
            assert_eq!(get(&mut *s, &key(1)).as_deref(), Some(&b"put"[..]), "{name}, {durability:?}");
            assert_eq!(get(&mut *s, &key(2)).as_deref(), Some(&b"batch"[..]), "{name}, {durability:?}");
            drop(s);
            engine.close().unwrap();
        }
    });
}

/// Tells a process started by the test below which engine, class and folder to write to before it kills itself.
const VICTIM: &str = "HALOBENCH_TEST_VICTIM";

#[test]
fn what_was_committed_survives_a_kill_in_every_class_that_says_so() {
    if let Ok(told) = std::env::var(VICTIM) {
        die_while_writing(&told);
    }
    each(|place| {
        for &(durability, _) in place.entry.classes {
            if durability == Durability::None {
                continue;
            }
            let name = place.name();
            let place =
                Place { entry: registry::find(name).unwrap(), dir: tempfile::tempdir().unwrap(), durability };
            let told = serde_json::to_string(&(name, durability, place.dir.path())).unwrap();
            let status = std::process::Command::new(std::env::current_exe().unwrap())
                .args([
                    "--exact",
                    "engine::conformance::what_was_committed_survives_a_kill_in_every_class_that_says_so",
                ])
                .env(VICTIM, told)
                .stdout(std::process::Stdio::null())
                .status()
                .unwrap();
            assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(libc::SIGKILL), "{name}");
            let engine = place.open();
            let mut s = engine.session().unwrap();
            for i in 0..40 {
                assert_eq!(
                    get(&mut *s, &key(i)).as_deref(),
                    Some(&b"kept"[..]),
                    "{name}, {durability:?}, {i}"
                );
            }
            drop(s);
            engine.close().unwrap();
        }
    });
}

/// Commits, and ends the process at once by a signal that nothing catches.
fn die_while_writing(told: &str) -> ! {
    let (name, durability, dir): (String, Durability, std::path::PathBuf) =
        serde_json::from_str(told).unwrap();
    let engine = registry::find(&name).unwrap().open(&dir, &config(durability)).unwrap();
    let mut s = engine.session().unwrap();
    (0..30).for_each(|i| s.put(&key(i), b"kept").unwrap());
    (30..40).for_each(|i| s.batch_put(&key(i), b"kept").unwrap());
    s.commit().unwrap();
    // SAFETY: a system call without pointers.
    unsafe { libc::raise(libc::SIGKILL) };
    unreachable!("SIGKILL is never handled")
}
