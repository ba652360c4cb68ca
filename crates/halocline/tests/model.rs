//! Random operations against a model: an ordered map for each column family, and a copy of all of them for each snapshot,
//! iterator and cursor that is held.
//!
//! Environment: `HALOCLINE_MODEL_RUNS` (databases on the simulated disk; on the file system a quarter as many),
//! `HALOCLINE_MODEL_OPS` (operations on each), `HALOCLINE_SEED` (replays from that seed on; failures print it, with the
//! operations left after shrinking).

#![expect(clippy::disallowed_methods, reason = "a test may use the clock, the environment and sleeps")]

mod common;

use common::Rng;
use halocline::io::sim::{CrashMode, SimVfs};
use halocline::{
    ColumnFamily, Cursor, Db, Durability, ErrorKind, Iter, Options, Snapshot, Value, WriteBatch,
};
use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;

type Map = BTreeMap<Vec<u8>, Arc<[u8]>>;
type Pair = (Vec<u8>, Arc<[u8]>);
/// A write of a batch: its family, its key, and what it puts there.
type Write = (usize, Vec<u8>, Option<Arc<[u8]>>);
type Range = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// The names of the column families; the first is the default one.
const FAMILIES: [&str; 3] = ["default", "users", "log"];

/// One operation. Numbers choose among what is there when it runs, so any subset of a sequence can run.
#[derive(Clone, Debug)]
enum Op {
    Put(usize, Vec<u8>, Arc<[u8]>),
    Delete(usize, Vec<u8>),
    Batch(Vec<Write>, u8),
    Get(usize, Vec<u8>),
    MultiGet(usize, Vec<Vec<u8>>),
    Scan(usize, Range, u64),
    Prefix(usize, Vec<u8>, u64),
    Snapshot,
    SnapshotGet(u64, usize, Vec<u8>),
    SnapshotScan(u64, usize, Range, u64),
    DropSnapshot(u64),
    HoldIter(usize, Range, bool),
    StepIter(u64, u64),
    HoldCursor(usize),
    StepCursor(u64, Vec<Step>),
    Flush,
    Compact(Range),
    WaitIdle,
    Sync,
    Reopen(u64, bool),
    ReopenKilled(u64),
    ReopenCrashed(u64),
    CreateFamily(usize),
    DropFamily(usize),
    VerifyAll,
}

#[derive(Clone, Debug)]
enum Step {
    First,
    Last,
    Seek(Vec<u8>),
    SeekForPrev(Vec<u8>),
    Next,
    Prev,
}

fn bound(rng: &mut Rng) -> Bound<Vec<u8>> {
    match rng.below(5) {
        0 => Bound::Unbounded,
        1..=2 => Bound::Included(common::key(rng)),
        _ => Bound::Excluded(common::key(rng)),
    }
}

fn range(rng: &mut Rng) -> Range {
    (bound(rng), bound(rng))
}

fn op(rng: &mut Rng) -> Op {
    let cf = rng.below(3) as usize;
    match rng.below(1000) {
        0..=299 => Op::Put(cf, common::key(rng), common::value(rng).into()),
        300..=419 => Op::Delete(cf, common::key(rng)),
        420..=519 => {
            let n = if rng.once_in(30) { 300 } else { 1 + rng.below(12) };
            let write = |rng: &mut Rng| {
                let value = (!rng.once_in(4)).then(|| common::value(rng).into());
                (rng.below(3) as usize, common::key(rng), value)
            };
            Op::Batch((0..n).map(|_| write(rng)).collect(), rng.below(4) as u8)
        }
        520..=649 => Op::Get(cf, common::key(rng)),
        650..=679 => Op::MultiGet(cf, (0..rng.below(40)).map(|_| common::key(rng)).collect()),
        680..=729 => Op::Scan(cf, range(rng), rng.next()),
        730..=749 => {
            let mut prefix = common::key(rng);
            prefix.truncate(rng.below(6) as usize);
            Op::Prefix(cf, prefix, rng.next())
        }
        750..=769 => Op::Snapshot,
        770..=799 => Op::SnapshotGet(rng.next(), cf, common::key(rng)),
        800..=814 => Op::SnapshotScan(rng.next(), cf, range(rng), rng.next()),
        815..=829 => Op::DropSnapshot(rng.next()),
        830..=839 => Op::HoldIter(cf, range(rng), rng.once_in(2)),
        840..=869 => Op::StepIter(rng.next(), rng.next()),
        870..=879 => Op::HoldCursor(cf),
        880..=909 => {
            let step = |rng: &mut Rng| match rng.below(12) {
                0 => Step::First,
                1 => Step::Last,
                2 => Step::Seek(common::key(rng)),
                3 => Step::SeekForPrev(common::key(rng)),
                4..=8 => Step::Next,
                _ => Step::Prev,
            };
            Op::StepCursor(rng.next(), (0..1 + rng.below(15)).map(|_| step(rng)).collect())
        }
        910..=924 => Op::Flush,
        925..=931 => {
            Op::Compact(if rng.once_in(2) { (Bound::Unbounded, Bound::Unbounded) } else { range(rng) })
        }
        932..=936 => Op::WaitIdle,
        937..=944 => Op::Sync,
        945..=954 => Op::Reopen(rng.next(), rng.once_in(2)),
        955..=964 => Op::ReopenKilled(rng.next()),
        965..=969 => Op::ReopenCrashed(rng.next()),
        970..=984 => Op::CreateFamily(cf),
        985..=990 => Op::DropFamily(cf),
        _ => Op::VerifyAll,
    }
}

/// A column family of the model: the handle to it, and what is in it.
#[derive(Clone)]
struct Family {
    /// `None` for the default one.
    handle: Option<ColumnFamily>,
    map: Map,
    /// Which creation of it this is.
    birth: u64,
}

struct Held<T> {
    it: T,
    rest: VecDeque<Pair>,
    /// For cursors.
    at: Option<usize>,
}

enum Disk {
    Sim(SimVfs),
    Real(tempfile::TempDir),
}

struct Run {
    rng: Rng,
    disk: Disk,
    db: Db,
    durability: Durability,
    families: [Option<Family>; 3],
    births: u64,
    snapshots: Vec<(Snapshot, [Option<Family>; 3])>,
    iters: Vec<Held<Iter>>,
    cursors: Vec<Held<Cursor>>,
    values: Vec<(Value, Arc<[u8]>)>,
}

fn within(map: &Map, range: &Range) -> VecDeque<Pair> {
    let above = |k: &Vec<u8>| match &range.0 {
        Bound::Unbounded => true,
        Bound::Included(low) => k >= low,
        Bound::Excluded(low) => k > low,
    };
    let below = |k: &Vec<u8>| match &range.1 {
        Bound::Unbounded => true,
        Bound::Included(high) => k <= high,
        Bound::Excluded(high) => k < high,
    };
    map.iter().filter(|(k, _)| above(k) && below(k)).map(|(k, v)| (k.clone(), v.clone())).collect()
}

#[track_caller]
fn same_item(
    found: Option<halocline::Result<(halocline::Key, Value)>>,
    expected: Option<Pair>,
) -> Option<Value> {
    let found = found.map(|item| item.expect("an iterator failed"));
    match (found, expected) {
        (None, None) => None,
        (Some((k, v)), Some((ek, ev))) => {
            assert!(*k == *ek, "an iterator gave key {}, not {}", common::show(&k), common::show(&ek));
            assert!(
                *v == *ev,
                "an iterator gave a wrong value of {}: {} for {}",
                common::show(&k),
                common::show(&v),
                common::show(&ev)
            );
            Some(v)
        }
        (found, expected) => {
            let name = |k: Option<&[u8]>| k.map_or("the end".to_owned(), common::show);
            let (found, expected) = (found.as_ref().map(|e| &*e.0), expected.as_ref().map(|e| &*e.0));
            panic!("an iterator gave {}, not {}", name(found), name(expected));
        }
    }
}

/// Drains an iterator: forwards, backwards, or from both ends in turns that `order` decides.
#[track_caller]
fn drain(mut iter: Iter, mut expected: VecDeque<Pair>, order: u64) {
    let mut rng = Rng::new(order);
    let mode = order % 3;
    loop {
        let front = mode == 0 || mode == 2 && rng.once_in(2);
        let (found, expected) =
            if front { (iter.next(), expected.pop_front()) } else { (iter.next_back(), expected.pop_back()) };
        let end = expected.is_none();
        same_item(found, expected);
        if end {
            break;
        }
    }
    assert!(iter.next().is_none() && iter.next_back().is_none(), "an iterator goes on behind its end");
}

impl Run {
    fn new(seed: u64, real: bool) -> Run {
        let mut rng = Rng::new(seed);
        let disk = if real { Disk::Real(tempfile::tempdir().unwrap()) } else { Disk::Sim(SimVfs::new(seed)) };
        let (db, durability) = open(&disk, &mut rng);
        let default = Family { handle: None, map: Map::new(), birth: 0 };
        Run {
            rng,
            disk,
            db,
            durability,
            families: [Some(default), None, None],
            births: 0,
            snapshots: Vec::new(),
            iters: Vec::new(),
            cursors: Vec::new(),
            values: Vec::new(),
        }
    }

    fn get(&self, cf: usize, key: &[u8]) -> halocline::Result<Option<Value>> {
        match &self.families[cf].as_ref().unwrap().handle {
            None => self.db.get(key),
            Some(handle) => handle.get(key),
        }
    }

    fn scan(&self, cf: usize, range: Range) -> Iter {
        match &self.families[cf].as_ref().unwrap().handle {
            None => self.db.range(range),
            Some(handle) => handle.range(range),
        }
    }

    #[track_caller]
    fn check_value(&mut self, key: &[u8], found: Option<Value>, expected: Option<Arc<[u8]>>) {
        let shown = |v: Option<&[u8]>| v.map_or("nothing".to_owned(), common::show);
        assert!(
            found.as_deref() == expected.as_deref(),
            "get of {} gave {}, not {}",
            common::show(key),
            shown(found.as_deref()),
            shown(expected.as_deref())
        );
        if let (Some(found), Some(expected)) = (found, expected)
            && self.rng.once_in(10)
        {
            if self.values.len() >= 30 {
                let at = self.rng.below(30) as usize;
                let (value, expected) = self.values.swap_remove(at);
                assert!(*value == *expected, "a value that was held changed");
            }
            self.values.push((found, expected));
        }
    }

    fn run(&mut self, op: &Op) {
        match op {
            Op::Put(cf, key, value) => {
                let Some(family) = &mut self.families[*cf] else { return };
                match &family.handle {
                    None => self.db.put(key, value).unwrap(),
                    Some(handle) => handle.put(key, value).unwrap(),
                }
                family.map.insert(key.clone(), value.clone());
            }
            Op::Delete(cf, key) => {
                let Some(family) = &mut self.families[*cf] else { return };
                match &family.handle {
                    None => self.db.delete(key).unwrap(),
                    Some(handle) => handle.delete(key).unwrap(),
                }
                family.map.remove(key);
            }
            Op::Batch(writes, durability) => {
                let mut batch = WriteBatch::new();
                for (cf, key, value) in writes {
                    let Some(family) = &mut self.families[*cf] else { continue };
                    match (&family.handle, value) {
                        (None, Some(value)) => batch.put(key, value),
                        (None, None) => batch.delete(key),
                        (Some(handle), Some(value)) => batch.put_cf(handle, key, value),
                        (Some(handle), None) => batch.delete_cf(handle, key),
                    }
                    match value {
                        Some(value) => family.map.insert(key.clone(), value.clone()),
                        None => family.map.remove(key),
                    };
                }
                match durability {
                    0 => self.db.write_with(&batch, Durability::Sync).unwrap(),
                    1 => self.db.write_with(&batch, Durability::None).unwrap(),
                    _ => self.db.write(&batch).unwrap(),
                }
            }
            Op::Get(cf, key) => {
                let Some(family) = &self.families[*cf] else { return };
                let expected = family.map.get(key).cloned();
                let contains = match &family.handle {
                    None => self.db.contains(key),
                    Some(handle) => handle.contains(key),
                };
                assert_eq!(contains.unwrap(), expected.is_some(), "contains({})", common::show(key));
                self.check_value(key, self.get(*cf, key).unwrap(), expected);
            }
            Op::MultiGet(cf, keys) => {
                let Some(family) = &self.families[*cf] else { return };
                let expected: Vec<_> = keys.iter().map(|k| family.map.get(k).cloned()).collect();
                let found = match &family.handle {
                    None => self.db.multi_get(keys),
                    Some(handle) => handle.multi_get(keys),
                };
                let found = found.unwrap();
                assert_eq!(found.len(), keys.len());
                for ((key, found), expected) in keys.iter().zip(found).zip(expected) {
                    self.check_value(key, found, expected);
                }
            }
            Op::Scan(cf, range, order) => {
                let Some(family) = &self.families[*cf] else { return };
                let expected = within(&family.map, range);
                drain(self.scan(*cf, range.clone()), expected.clone(), *order);
                let keys: Vec<_> =
                    self.scan(*cf, range.clone()).keys().map(|k| k.unwrap().to_vec()).collect();
                assert!(keys.iter().eq(expected.iter().map(|(k, _)| k)), "the keys of a scan differ");
            }
            Op::Prefix(cf, prefix, order) => {
                let Some(family) = &self.families[*cf] else { return };
                let all = within(&family.map, &(Bound::Unbounded, Bound::Unbounded));
                let expected = all.into_iter().filter(|(k, _)| k.starts_with(prefix)).collect();
                let iter = match &family.handle {
                    None => self.db.prefix(prefix),
                    Some(handle) => handle.prefix(prefix),
                };
                drain(iter, expected, *order);
            }
            Op::Snapshot => {
                if self.snapshots.len() < 6 {
                    self.snapshots.push((self.db.snapshot().unwrap(), self.families.clone()));
                }
            }
            Op::SnapshotGet(which, cf, key) => {
                let Some(i) = choose(*which, self.snapshots.len()) else { return };
                let (snapshot, families) = &self.snapshots[i];
                let Some(family) = &families[*cf] else { return };
                let found = match &family.handle {
                    None => snapshot.get(key),
                    Some(handle) => snapshot.get_cf(handle, key),
                };
                if self.is_current(*cf, family) {
                    let expected = family.map.get(key).cloned();
                    self.check_value(key, found.unwrap(), expected);
                } else {
                    assert_eq!(found.unwrap_err().kind(), ErrorKind::Missing, "a dropped family answers");
                }
            }
            Op::SnapshotScan(which, cf, range, order) => {
                let Some(i) = choose(*which, self.snapshots.len()) else { return };
                let (snapshot, families) = &self.snapshots[i];
                let Some(family) = &families[*cf] else { return };
                if self.is_current(*cf, family) {
                    let iter = match &family.handle {
                        None => snapshot.range(range.clone()),
                        Some(handle) => snapshot.range_cf(handle, range.clone()),
                    };
                    drain(iter, within(&family.map, range), *order);
                }
            }
            Op::DropSnapshot(which) => {
                if let Some(i) = choose(*which, self.snapshots.len()) {
                    self.snapshots.swap_remove(i);
                }
            }
            Op::HoldIter(cf, range, from_snapshot) => {
                let last = if *from_snapshot { self.snapshots.last() } else { None };
                let held = match last {
                    Some((snapshot, families)) => {
                        let family = families[0].as_ref().unwrap();
                        Held { it: snapshot.range(range.clone()), rest: within(&family.map, range), at: None }
                    }
                    None => {
                        let Some(family) = &self.families[*cf] else { return };
                        Held { it: self.scan(*cf, range.clone()), rest: within(&family.map, range), at: None }
                    }
                };
                if self.iters.len() >= 4 {
                    let done = self.iters.remove(0);
                    drain(done.it, done.rest, 2);
                }
                self.iters.push(held);
            }
            Op::StepIter(which, order) => {
                let Some(i) = choose(*which, self.iters.len()) else { return };
                let held = &mut self.iters[i];
                let mut order = Rng::new(*order);
                for _ in 0..1 + order.below(8) {
                    let (found, expected) = if order.once_in(2) {
                        (held.it.next(), held.rest.pop_front())
                    } else {
                        (held.it.next_back(), held.rest.pop_back())
                    };
                    let kept = expected.clone();
                    if let (Some(value), Some((_, expected))) = (same_item(found, expected), kept)
                        && self.values.len() < 30
                    {
                        self.values.push((value, expected));
                    }
                }
            }
            Op::HoldCursor(cf) => {
                let Some(family) = &self.families[*cf] else { return };
                let it = match &family.handle {
                    None => self.db.cursor(),
                    Some(handle) => handle.cursor(),
                };
                let rest = within(&family.map, &(Bound::Unbounded, Bound::Unbounded));
                if self.cursors.len() >= 3 {
                    self.cursors.remove(0);
                }
                self.cursors.push(Held { it: it.unwrap(), rest, at: None });
            }
            Op::StepCursor(which, steps) => {
                if let Some(i) = choose(*which, self.cursors.len()) {
                    let held = &mut self.cursors[i];
                    steps.iter().for_each(|step| step_cursor(held, step));
                }
            }
            Op::Flush => self.db.flush().unwrap(),
            Op::Compact(range) => self.db.compact_range(range.clone()).unwrap(),
            Op::WaitIdle => self.db.wait_idle().unwrap(),
            Op::Sync => self.db.sync().unwrap(),
            Op::Reopen(seed, explicitly) => {
                if *explicitly {
                    self.db.close().unwrap();
                    let key = b"user0000";
                    assert_eq!(self.db.put(key, b"").unwrap_err().kind(), ErrorKind::Closed);
                    self.db.close().unwrap();
                }
                self.reopen(*seed, None);
            }
            Op::ReopenKilled(seed) => match &self.disk {
                Disk::Sim(disk) if self.durability != Durability::None => {
                    let image = disk.kill();
                    self.reopen(*seed, Some(image));
                }
                _ => self.reopen(*seed, None),
            },
            Op::ReopenCrashed(seed) => {
                let Disk::Sim(disk) = &self.disk else { return };
                self.db.sync().unwrap();
                let mode =
                    [CrashMode::DropUnsynced, CrashMode::RandomPieces, CrashMode::Torn][*seed as usize % 3];
                let image = disk.crash(*seed, mode);
                self.reopen(*seed, Some(image));
            }
            Op::CreateFamily(cf) => {
                let handle = self.db.column_family(FAMILIES[*cf]).unwrap();
                assert_eq!(handle.name(), FAMILIES[*cf]);
                if self.families[*cf].is_none() {
                    self.births += 1;
                    self.families[*cf] =
                        Some(Family { handle: Some(handle), map: Map::new(), birth: self.births });
                }
            }
            Op::DropFamily(cf) => {
                if *cf == 0 {
                    let refused = self.db.drop_column_family(FAMILIES[0]).unwrap_err();
                    assert_eq!(refused.kind(), ErrorKind::InvalidArgument);
                    return;
                }
                let was = self.families[*cf].take();
                assert_eq!(self.db.drop_column_family(FAMILIES[*cf]).unwrap(), was.is_some());
                if let Some(handle) = was.and_then(|family| family.handle) {
                    assert_eq!(handle.get(b"a").unwrap_err().kind(), ErrorKind::Missing);
                    assert_eq!(handle.put(b"a", b"").unwrap_err().kind(), ErrorKind::Missing);
                }
            }
            Op::VerifyAll => self.verify_all(),
        }
    }

    fn is_current(&self, cf: usize, family: &Family) -> bool {
        self.families[cf].as_ref().is_some_and(|now| now.birth == family.birth)
    }

    /// Opens again, with other options: on `image` if there is one, else after the end of the open database.
    fn reopen(&mut self, seed: u64, image: Option<SimVfs>) {
        // Iterators, cursors and values may outlive the handle; those on snapshots hold the database open.
        self.snapshots.clear();
        for family in self.families.iter_mut().flatten() {
            family.handle = None;
        }
        let old = match image {
            Some(image) => Some((std::mem::replace(&mut self.disk, Disk::Sim(image)), self.db.clone())),
            None => {
                self.db.close().unwrap();
                None
            }
        };
        let (db, durability) = open(&self.disk, &mut Rng::new(seed));
        self.db = db;
        self.durability = durability;
        drop(old);
        let names: Vec<_> = (0..3).filter(|&cf| self.families[cf].is_some()).map(|cf| FAMILIES[cf]).collect();
        let mut found = self.db.column_families().unwrap();
        assert_eq!(found[0], "default");
        found.sort();
        let mut sorted = names;
        sorted.sort();
        assert_eq!(found, sorted);
        for (cf, name) in FAMILIES.iter().enumerate().skip(1) {
            if let Some(family) = &mut self.families[cf] {
                family.handle = Some(self.db.find_column_family(name).unwrap().unwrap());
            }
        }
        self.verify_all();
    }

    fn verify_all(&mut self) {
        for (cf, name) in FAMILIES.iter().enumerate() {
            let Some(family) = &self.families[cf] else {
                assert!(self.db.find_column_family(name).unwrap().is_none());
                continue;
            };
            let all = (Bound::Unbounded, Bound::Unbounded);
            let expected = within(&family.map, &all);
            for (key, value) in expected.clone() {
                let found = self.get(cf, &key).unwrap();
                self.check_value(&key, found, Some(value));
            }
            drain(self.scan(cf, all.clone()), expected.clone(), 0);
            drain(self.scan(cf, all), expected, 1);
        }
        for (value, expected) in &self.values {
            assert!(**value == **expected, "a value that was held changed");
        }
    }

    fn end(mut self) {
        self.verify_all();
        for held in self.iters.drain(..) {
            drain(held.it, held.rest, 2);
        }
        self.snapshots.clear();
        self.cursors.clear();
        self.db.close().unwrap();
        let (options, dir) = place(&self.disk, &mut Rng::new(1));
        let report = options.clone().check(&dir).unwrap();
        assert!(report.is_sound(), "{report:?}");
        let db = options.open_read_only(&dir).unwrap();
        let map = &self.families[0].as_ref().unwrap().map;
        drain(db.iter(), within(map, &(Bound::Unbounded, Bound::Unbounded)), 0);
    }
}

fn choose(which: u64, from: usize) -> Option<usize> {
    (from > 0).then(|| (which % from as u64) as usize)
}

fn step_cursor(held: &mut Held<Cursor>, step: &Step) {
    let Held { it: cursor, rest: entries, at } = held;
    let n = entries.len();
    *at = match step {
        Step::First => {
            cursor.seek_first().unwrap();
            (n > 0).then_some(0)
        }
        Step::Last => {
            cursor.seek_last().unwrap();
            n.checked_sub(1)
        }
        Step::Seek(key) => {
            cursor.seek(key).unwrap();
            let i = entries.partition_point(|(k, _)| k < key);
            (i < n).then_some(i)
        }
        Step::SeekForPrev(key) => {
            cursor.seek_for_prev(key).unwrap();
            entries.partition_point(|(k, _)| k <= key).checked_sub(1)
        }
        Step::Next => {
            let Some(i) = *at else { return };
            cursor.next().unwrap();
            (i + 1 < n).then_some(i + 1)
        }
        Step::Prev => {
            let Some(i) = *at else { return };
            cursor.prev().unwrap();
            i.checked_sub(1)
        }
    };
    match *at {
        None => assert!(
            !cursor.valid(),
            "a cursor is at {} after {step:?}, not at the end",
            common::show(cursor.key())
        ),
        Some(i) => {
            let (key, value) = &entries[i];
            assert!(cursor.valid(), "a cursor is at the end after {step:?}, not at {}", common::show(key));
            assert!(
                cursor.key() == key,
                "a cursor is at {}, not {}",
                common::show(cursor.key()),
                common::show(key)
            );
            assert!(
                cursor.value().unwrap() == &**value,
                "a cursor gives a wrong value of {}",
                common::show(key)
            );
        }
    }
}

fn place(disk: &Disk, rng: &mut Rng) -> (Options, PathBuf) {
    let options = common::options(rng);
    match disk {
        Disk::Sim(disk) => {
            disk.set_mapped_writes(!rng.once_in(4));
            (options.vfs(Arc::new(disk.clone())), PathBuf::from("/db"))
        }
        Disk::Real(dir) => (options, dir.path().join("db")),
    }
}

fn open(disk: &Disk, rng: &mut Rng) -> (Db, Durability) {
    let (mut options, dir) = place(disk, rng);
    let durability = if rng.once_in(6) { Durability::None } else { Durability::Process };
    if durability == Durability::None {
        options = options.durability(Durability::None);
    }
    let db = options.clone().open(&dir).unwrap_or_else(|e| panic!("could not open with {options:?}: {e}"));
    (db, durability)
}

/// Runs the operations; the number of the one that failed, and how.
fn attempt(seed: u64, real: bool, ops: &[Op]) -> Result<(), (usize, String)> {
    let mut at = 0;
    let result = catch_unwind(AssertUnwindSafe(|| {
        let mut run = Run::new(seed, real);
        for (i, op) in ops.iter().enumerate() {
            at = i;
            run.run(op);
        }
        at = ops.len();
        run.end();
    }));
    result.map_err(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        (at, text.or_else(|| panic.downcast_ref::<&str>().map(|s| s.to_string())).unwrap_or_default())
    })
}

/// Drops chunks of operations as long as the rest still fails.
fn shrink(seed: u64, real: bool, mut ops: Vec<Op>, mut failure: (usize, String)) -> (Vec<Op>, String) {
    ops.truncate(failure.0 + 1);
    let mut attempts = common::size("HALOCLINE_SHRINK", 80);
    let mut chunk = ops.len().div_ceil(2);
    while chunk > 0 && attempts > 0 {
        let mut start = 0;
        while start < ops.len() && attempts > 0 {
            let mut fewer = ops.clone();
            fewer.drain(start..(start + chunk).min(ops.len()));
            attempts -= 1;
            match attempt(seed, real, &fewer) {
                Err(again) => {
                    fewer.truncate(again.0 + 1);
                    (ops, failure) = (fewer, again);
                }
                Ok(()) => start += chunk,
            }
        }
        chunk /= 2;
    }
    (ops, failure.1)
}

fn check(seed: u64, real: bool) {
    let mut rng = Rng::new(seed ^ 0xC0FFEE);
    let n = common::size("HALOCLINE_MODEL_OPS", 400);
    let ops: Vec<Op> = (0..n).map(|_| op(&mut rng)).collect();
    if let Err(failure) = attempt(seed, real, &ops) {
        let first = failure.1.clone();
        eprintln!("seed {seed} failed ({first}); shrinking");
        let (ops, message) = shrink(seed, real, ops, failure);
        let shown: Vec<String> = ops.iter().map(|op| format!("  {}", short(op))).collect();
        panic!(
            "replay with HALOCLINE_SEED={seed}: {first}\nafter shrinking: {message}\n{}",
            shown.join("\n")
        );
    }
}

/// An operation in a line.
fn short(op: &Op) -> String {
    match op {
        Op::Put(cf, key, value) => format!("Put({cf}, {}, {} bytes)", common::show(key), value.len()),
        Op::Batch(writes, durability) => {
            let writes: Vec<_> = writes
                .iter()
                .map(|(cf, k, v)| format!("{cf} {} {:?}", common::show(k), v.as_ref().map(|v| v.len())))
                .collect();
            format!("Batch([{}], {durability})", writes.join(", "))
        }
        Op::Get(cf, key) => format!("Get({cf}, {})", common::show(key)),
        Op::Delete(cf, key) => format!("Delete({cf}, {})", common::show(key)),
        other => {
            let mut text = format!("{other:?}");
            text.truncate(300);
            text
        }
    }
}

#[test]
fn the_database_and_a_map_agree_on_the_simulated_disk() {
    for seed in common::seeds("HALOCLINE_MODEL_RUNS", 60) {
        check(seed, false);
    }
}

#[test]
fn the_database_and_a_map_agree_on_the_file_system() {
    let seeds = common::seeds("HALOCLINE_MODEL_RUNS", 60);
    let n = (seeds.end - seeds.start).div_ceil(4);
    for seed in seeds.start..seeds.start + n {
        check(seed, true);
    }
}
