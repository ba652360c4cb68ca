//! Crashes at every I/O boundary of the simulated disk.
//!
//! One thread commits, counting; flushes and merges run in the background. At the operations that change what is on the
//! disk, images are taken: of a killed process and of a machine that lost power, in every mode. Each image must open, and
//! hold exactly what some prefix of the commits leads to, whole across column families: all that was acknowledged, after a
//! kill; all that was acknowledged as durable, after a crash; never more than was attempted. It must then take writes,
//! be sound, and stay what it was after another crash. Images are also taken while images are being recovered.
//!
//! Environment: `HALOCLINE_CRASH_RUNS` (workloads), `HALOCLINE_CRASH_COMMITS` (in each), `HALOCLINE_CRASH_ONE_IN` (images
//! are taken at one in so many operations; 1 is all), `HALOCLINE_SEED`. The background makes the exact moments differ from
//! run to run: a failure prints what is needed to find the workload, and how the image was made.

#![expect(clippy::disallowed_methods, reason = "a test may use the clock, the environment and sleeps")]

mod common;

use common::Rng;
use halocline::io::sim::{CrashMode, Observer, SimVfs};
use halocline::{ColumnFamily, Compaction, Db, Durability, LogMode, Options, WriteBatch};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const DIR: &str = "/db";
const MODES: [CrashMode; 3] = [CrashMode::DropUnsynced, CrashMode::RandomPieces, CrashMode::Torn];

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

/// One write: its family (0 is the default one), its key, and what it puts there.
type Write = (usize, Vec<u8>, Option<Vec<u8>>);

/// What happens to column families, at the commit before which it happens. Families are numbered by creation: one that is
/// dropped and made again is another.
#[derive(Clone, Copy, Debug)]
struct Change {
    at: u64,
    family: usize,
    create: bool,
}

fn name_of(family: usize) -> String {
    // Two names in turns, so that names come back.
    format!("family {}", family % 2)
}

/// The plan of a workload: everything that is written is a function of the seed and the number of the commit.
struct Plan {
    seed: u64,
    changes: Vec<Change>,
    big: bool,
}

impl Plan {
    fn new(seed: u64, commits: u64) -> Plan {
        let mut rng = Rng::new(seed);
        let mut changes = Vec::new();
        let step = commits / 7 + 1;
        for family in 1..4 {
            let at = step * (2 * family as u64 - 1) + rng.below(step);
            changes.push(Change { at, family, create: true });
            // The one before last is dropped just before its name is used again.
            if family > 1 {
                let at = at + rng.below(step);
                changes.push(Change { at, family: family - 1, create: false });
            }
        }
        changes.sort_by_key(|change| change.at);
        Plan { seed, changes, big: rng.once_in(3) }
    }

    /// The families that are there after `done` changes, without the default one.
    fn families(&self, done: usize) -> Vec<usize> {
        let mut there = Vec::new();
        for change in &self.changes[..done] {
            if change.create {
                there.push(change.family);
            } else {
                there.retain(|f| *f != change.family);
            }
        }
        there
    }

    /// The writes of commit `n` while the changes before it are done.
    fn commit(&self, n: u64) -> Vec<Write> {
        let done = self.changes.iter().filter(|change| change.at <= n).count();
        let families = self.families(done);
        let mut rng = Rng::new(self.seed ^ n.wrapping_mul(0x1234_5678_9ABC_DEF1));
        // The counter is in one family of every commit, so that the newest commit can be told.
        let home = if families.is_empty() || !rng.once_in(4) { 0 } else { rng.pick(&families) };
        let mut writes = vec![(home, b"counter".to_vec(), Some(n.to_le_bytes().to_vec()))];
        if rng.once_in(4) {
            return writes;
        }
        for _ in 0..1 + rng.below(8) {
            let family = if families.is_empty() || rng.once_in(2) { 0 } else { rng.pick(&families) };
            let key = format!("key{:03}", rng.below(90)).into_bytes();
            let len = match rng.below(40) {
                0 => 0,
                1 if self.big => 70_000 + rng.below(100_000),
                1..=4 => rng.below(8_000),
                _ => rng.below(200),
            };
            let value = (!rng.once_in(4)).then(|| {
                let mut value = n.to_le_bytes().to_vec();
                value.extend(common::bytes(rng.next(), len as usize));
                value
            });
            writes.push((family, key, value));
        }
        writes
    }
}

/// What was done, as the images' checkers see it.
struct Oracle {
    plan: Plan,
    /// The content of each family after each 32nd commit.
    checkpoints: Mutex<Vec<BTreeMap<usize, Map>>>,
    attempted: AtomicU64,
    acknowledged: AtomicU64,
    durable: AtomicU64,
    changes_attempted: AtomicU64,
    changes_done: AtomicU64,
}

const CHECKPOINT: u64 = 32;

fn apply(families: &mut BTreeMap<usize, Map>, writes: Vec<Write>) {
    for (family, key, value) in writes {
        let map = families.entry(family).or_default();
        match value {
            Some(value) => map.insert(key, value),
            None => map.remove(&key),
        };
    }
}

impl Oracle {
    /// The content of each family after commit `n`.
    fn state(&self, n: u64) -> BTreeMap<usize, Map> {
        let mut checkpoints = self.checkpoints.lock().unwrap();
        while (checkpoints.len() as u64) <= n / CHECKPOINT {
            let mut state = checkpoints.last().cloned().unwrap_or_default();
            let last = (checkpoints.len() as u64) * CHECKPOINT;
            if last > 0 {
                (last - CHECKPOINT + 1..=last).for_each(|i| apply(&mut state, self.plan.commit(i)));
            }
            checkpoints.push(state);
        }
        let mut state = checkpoints[(n / CHECKPOINT) as usize].clone();
        drop(checkpoints);
        (n / CHECKPOINT * CHECKPOINT + 1..=n).for_each(|i| apply(&mut state, self.plan.commit(i)));
        state
    }
}

/// What an image may hold: commits and changes of families, from the least to the most.
#[derive(Clone, Copy, Debug)]
struct Limits {
    commits: (u64, u64),
    changes: (usize, usize),
}

thread_local! {
    /// Whether this thread is the one that commits, which no image need wait for.
    static COMMITS: Cell<bool> = const { Cell::new(false) };
    static NESTED: Cell<bool> = const { Cell::new(false) };
}

struct Harness {
    seed: u64,
    oracle: Oracle,
    /// Held by the committing thread while it stores.
    quiet: Mutex<()>,
    rng: Mutex<Rng>,
    one_in: u64,
    images: AtomicU64,
    kills: AtomicU64,
    nested: AtomicU64,
    failure: Mutex<Option<String>>,
    failed: AtomicBool,
}

impl Harness {
    fn rng(&self) -> Rng {
        Rng::new(self.rng.lock().unwrap().next())
    }

    /// Perhaps takes an image of `disk`, and checks it.
    fn boundary(self: &Arc<Self>, disk: &SimVfs, op: u64) {
        let mut rng = self.rng();
        if self.failed.load(SeqCst) || !rng.once_in(self.one_in) {
            return;
        }
        if rng.once_in(20) {
            disk.write_back(rng.next());
        }
        let kill = rng.once_in(3);
        let _quiet = if kill && !COMMITS.get() {
            // The committer may be waiting for the very thread that this is.
            let start = Instant::now();
            loop {
                match self.quiet.try_lock() {
                    Ok(guard) => break Some(guard),
                    Err(_) if start.elapsed() < Duration::from_millis(20) => std::thread::yield_now(),
                    Err(_) => return,
                }
            }
        } else {
            None
        };
        let oracle = &self.oracle;
        let least = if kill { oracle.acknowledged.load(SeqCst) } else { oracle.durable.load(SeqCst) };
        let changes_least = oracle.changes_done.load(SeqCst) as usize;
        let (image, how) = if kill {
            (disk.kill(), "kill()".to_owned())
        } else {
            let (seed, mode) = (rng.next(), rng.pick(&MODES));
            (disk.crash(seed, mode), format!("crash({seed}, {mode:?})"))
        };
        let limits = Limits {
            commits: (least, oracle.attempted.load(SeqCst)),
            changes: (changes_least, oracle.changes_attempted.load(SeqCst) as usize),
        };
        drop(_quiet);
        self.images.fetch_add(1, SeqCst);
        self.kills.fetch_add(u64::from(kill), SeqCst);
        let durable = oracle.durable.load(SeqCst).min(least);
        self.guard(&format!("operation {op}, {how}"), || self.check_image(&image, limits, durable, &mut rng));
    }

    /// Runs a check; keeps the first failure.
    fn guard(&self, what: &str, check: impl FnOnce()) {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(check)) {
            let text = panic.downcast_ref::<String>().cloned();
            let text =
                text.or_else(|| panic.downcast_ref::<&str>().map(|s| s.to_string())).unwrap_or_default();
            self.failed.store(true, SeqCst);
            self.failure
                .lock()
                .unwrap()
                .get_or_insert(format!("HALOCLINE_SEED={}: {what}: {text}", self.seed));
        }
    }

    /// Everything that must hold of an image. `durable`: what a further crash must leave.
    fn check_image(self: &Arc<Self>, image: &SimVfs, limits: Limits, durable: u64, rng: &mut Rng) {
        let options = options(rng, image);
        if rng.once_in(8) {
            let before = content(image);
            // A creation that was cut short is no database yet.
            match options.clone().open_read_only(DIR) {
                Ok(db) => drop(self.verify(&db, limits)),
                Err(e) => assert!(limits.commits.0 == 0, "could not open read-only: {e}"),
            }
            assert!(content(image) == before, "opening read-only changed a file");
        }
        let nest = !NESTED.get() && rng.once_in(4);
        if nest {
            let (harness, nested_seed) = (Arc::clone(self), Mutex::new(Rng::new(rng.next())));
            let observer: Observer = Arc::new(move |disk: &SimVfs, op| {
                let mut rng = Rng::new(nested_seed.lock().unwrap().next());
                if NESTED.get() || !rng.once_in(3) {
                    return;
                }
                NESTED.set(true);
                let (seed, mode) = (rng.next(), rng.pick(&MODES));
                let (again, least, how) = if rng.once_in(3) {
                    (disk.kill(), limits.commits.0, "then kill()".to_owned())
                } else {
                    (disk.crash(seed, mode), durable, format!("then crash({seed}, {mode:?})"))
                };
                harness.nested.fetch_add(1, SeqCst);
                let limits = Limits { commits: (least, limits.commits.1), changes: limits.changes };
                harness.guard(&format!("an image at operation {op} of a recovery, {how}"), || {
                    harness.check_image(&again, limits, durable, &mut rng);
                });
                NESTED.set(false);
            });
            image.set_observer(Some(observer));
        }
        let db = options.clone().open(DIR).unwrap_or_else(|e| panic!("could not open with {options:?}: {e}"));
        image.set_observer(None);
        let (n, changes) = self.verify(&db, limits);

        // What was recovered is durable, and so is what is synced now.
        let exactly = Limits { commits: (n, n), changes: (changes, changes) };
        if rng.once_in(4) {
            let again = image.crash(rng.next(), rng.pick(&MODES));
            let db = Options::new().vfs(Arc::new(again)).write_buffer(64 << 10).open(DIR).unwrap();
            self.verify(&db, exactly);
        }
        if rng.once_in(3) {
            let mut expected = Map::new();
            for i in 0..1 + rng.below(60) {
                let (key, value) =
                    (format!("more{i}").into_bytes(), common::bytes(i, rng.below(3000) as usize));
                db.put(&key, &value).unwrap();
                expected.insert(key, value);
            }
            match rng.below(4) {
                0 => db.compact_range(..).unwrap(),
                1 => db.flush().unwrap(),
                2 => db.sync().unwrap(),
                _ => {}
            }
            let again = rng.once_in(2).then(|| image.kill());
            if again.is_none() {
                db.close().unwrap();
            }
            let disk = again.as_ref().unwrap_or(image);
            let options = options.clone().vfs(Arc::new(disk.clone()));
            if again.is_none() {
                let report = options.clone().check(DIR).unwrap();
                assert!(report.is_sound(), "{report:?}");
            }
            let db = options.open(DIR).unwrap_or_else(|e| panic!("could not open a second time: {e}"));
            for (key, value) in &expected {
                assert!(db.get(key).unwrap().as_deref() == Some(value), "a write after recovery is lost");
            }
            for key in expected.keys() {
                db.delete(key).unwrap();
            }
            self.verify(&db, exactly);
        }
    }

    /// Reads everything; the numbers of commits and of changes it is the state after.
    fn verify(&self, db: &Db, limits: Limits) -> (u64, usize) {
        let plan = &self.oracle.plan;
        let names = db.column_families().unwrap();
        let changes = (limits.changes.0..=limits.changes.1).rev().find(|&done| {
            let mut expected: Vec<String> = plan.families(done).into_iter().map(name_of).collect();
            expected.insert(0, "default".into());
            expected == names
        });
        let changes =
            changes.unwrap_or_else(|| panic!("the column families are {names:?}, limits {limits:?}"));
        let mut found: BTreeMap<usize, Map> = BTreeMap::new();
        for family in std::iter::once(0).chain(plan.families(changes)) {
            let (handle, iter) = match family {
                0 => (None, db.iter()),
                _ => {
                    let handle = db.find_column_family(&name_of(family)).unwrap().unwrap();
                    let iter = handle.iter();
                    (Some(handle), iter)
                }
            };
            let map: Map = iter
                .map(|item| item.map(|(k, v)| (k.to_vec(), v.to_vec())))
                .collect::<Result<_, _>>()
                .unwrap();
            for (key, value) in map.iter().step_by(7) {
                let got = match &handle {
                    None => db.get(key),
                    Some(handle) => handle.get(key),
                };
                assert!(got.unwrap().as_deref() == Some(value), "get differs from the iterator");
            }
            found.insert(family, map);
        }
        let count = |map: &Map| {
            map.get(b"counter".as_slice()).map_or(0, |v| u64::from_le_bytes(v[..8].try_into().unwrap()))
        };
        // The newest commit's counter may have been in a family that is dropped since: then any number up to the next
        // commit that is seen elsewhere will do.
        let least = found.values().map(count).max().unwrap_or(0);
        assert!(least <= limits.commits.1, "commit {least} was never attempted: {limits:?}");
        let mut why = String::new();
        for n in least.max(limits.commits.0)..=limits.commits.1 {
            let expected = self.oracle.state(n);
            let mut differs = String::new();
            for (family, map) in &found {
                let empty = Map::new();
                let expected = expected.get(family).unwrap_or(&empty);
                if map != expected {
                    differs = first_difference(*family, map, expected);
                    break;
                }
            }
            if differs.is_empty() {
                return (n, changes);
            }
            if why.is_empty() {
                why = format!("after commit {n}: {differs}");
            }
            // A later commit with its counter in a family that is there would have shown.
            let mut writes = plan.commit(n + 1).into_iter();
            if writes.any(|(family, key, _)| key == b"counter" && found.contains_key(&family)) {
                break;
            }
        }
        panic!("not the state after a prefix of the commits (counter {least}, {limits:?}): {why}");
    }
}

fn first_difference(family: usize, found: &Map, expected: &Map) -> String {
    let commit = |v: Option<&Vec<u8>>| match v {
        None => "nothing".to_owned(),
        Some(v) if v.len() < 8 => format!("{} bytes", v.len()),
        Some(v) => format!("commit {}'s {} bytes", u64::from_le_bytes(v[..8].try_into().unwrap()), v.len()),
    };
    let differs = |key: &&Vec<u8>| found.get(*key) != expected.get(*key);
    let key = found.keys().chain(expected.keys()).find(differs).unwrap();
    format!(
        "family {family}, key {}: {} instead of {}",
        common::show(key),
        commit(found.get(key)),
        commit(expected.get(key))
    )
}

fn content(disk: &SimVfs) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    disk.files().into_iter().map(|(path, _)| (path.clone(), disk.read_file(&path).unwrap())).collect()
}

fn options(rng: &mut Rng, disk: &SimVfs) -> Options {
    common::options(rng).vfs(Arc::new(disk.clone()))
}

/// Commits according to the plan, with images all the while.
fn run(seed: u64, log_mode: LogMode) -> (u64, u64, u64) {
    let commits = common::size("HALOCLINE_CRASH_COMMITS", 400);
    let mut rng = Rng::new(seed ^ 0xABCD);
    let disk = SimVfs::new(seed);
    let harness = Arc::new(Harness {
        seed,
        oracle: Oracle {
            plan: Plan::new(seed, commits),
            checkpoints: Mutex::default(),
            attempted: AtomicU64::new(0),
            acknowledged: AtomicU64::new(0),
            durable: AtomicU64::new(0),
            changes_attempted: AtomicU64::new(0),
            changes_done: AtomicU64::new(0),
        },
        quiet: Mutex::new(()),
        rng: Mutex::new(Rng::new(seed)),
        one_in: common::size("HALOCLINE_CRASH_ONE_IN", 6),
        images: AtomicU64::new(0),
        kills: AtomicU64::new(0),
        nested: AtomicU64::new(0),
        failure: Mutex::new(None),
        failed: AtomicBool::new(false),
    });
    COMMITS.set(true);
    let observer = {
        let harness = Arc::clone(&harness);
        Arc::new(move |disk: &SimVfs, op| harness.boundary(disk, op))
    };
    disk.set_observer(Some(observer));
    let base = Options::new()
        .vfs(Arc::new(disk.clone()))
        .log_mode(log_mode)
        .write_buffer(rng.pick(&[64 << 10, 64 << 10, 128 << 10]))
        .compaction(rng.pick(&[Compaction::Lazy, Compaction::Leveled, Compaction::Tiered]))
        .compaction_threads(1 + rng.below(2) as usize);
    let default = rng.pick(&[
        Durability::Process,
        Durability::Process,
        Durability::Interval(Duration::from_millis(2)),
        Durability::Sync,
    ]);
    let mut db = base.clone().durability(default).open(DIR).unwrap();
    let oracle = &harness.oracle;
    let mut handles: BTreeMap<usize, ColumnFamily> = BTreeMap::new();
    let mut changes = oracle.plan.changes.clone().into_iter().peekable();
    // From time to time nothing is synced for long, then everything.
    for n in 1..=commits {
        if harness.failed.load(SeqCst) {
            break;
        }
        while let Some(change) = changes.next_if(|change| change.at <= n) {
            oracle.changes_attempted.fetch_add(1, SeqCst);
            let quiet = harness.quiet.lock().unwrap();
            if change.create {
                handles.insert(change.family, db.column_family(&name_of(change.family)).unwrap());
            } else {
                handles.remove(&change.family);
                assert!(db.drop_column_family(&name_of(change.family)).unwrap());
            }
            drop(quiet);
            oracle.changes_done.fetch_add(1, SeqCst);
        }
        let mut batch = WriteBatch::new();
        for (family, key, value) in oracle.plan.commit(n) {
            match (handles.get(&family), value) {
                (Some(handle), Some(value)) => batch.put_cf(handle, key, value),
                (Some(handle), None) => batch.delete_cf(handle, key),
                (None, Some(value)) => batch.put(key, value),
                (None, None) => batch.delete(key),
            }
        }
        let durability = if rng.once_in(15) { Durability::Sync } else { default };
        oracle.attempted.store(n, SeqCst);
        {
            let _quiet = harness.quiet.lock().unwrap();
            db.write_with(&batch, durability).unwrap();
        }
        oracle.acknowledged.store(n, SeqCst);
        if durability == Durability::Sync {
            oracle.durable.store(n, SeqCst);
        }
        match rng.below(120) {
            0 => db.sync().unwrap(),
            1 => db.flush().unwrap(),
            2 => db.compact_range(..).unwrap(),
            3 => {
                handles.clear();
                db.close().unwrap();
                let durability = default;
                db = base.clone().durability(durability).open(DIR).unwrap();
                for family in oracle.plan.families(oracle.changes_done.load(SeqCst) as usize) {
                    handles.insert(family, db.find_column_family(&name_of(family)).unwrap().unwrap());
                }
            }
            _ => {
                if rng.once_in(10) {
                    harness.boundary(&disk, disk.ops());
                }
                continue;
            }
        }
        oracle.durable.store(n, SeqCst);
    }
    if !harness.failed.load(SeqCst) {
        db.close().unwrap();
    }
    disk.set_observer(None);
    drop((handles, db));
    COMMITS.set(false);
    if let Some(failure) = harness.failure.lock().unwrap().take() {
        panic!("{failure}");
    }
    let figure = |counter: &AtomicU64| counter.load(SeqCst);
    (figure(&harness.images), figure(&harness.kills), figure(&harness.nested))
}

fn runs(log_mode: LogMode) {
    let (mut images, mut kills, mut nested) = (0, 0, 0);
    for seed in common::seeds("HALOCLINE_CRASH_RUNS", 2) {
        let (i, k, n) = run(seed, log_mode);
        images += i;
        kills += k;
        nested += n;
    }
    println!("{images} images, {kills} of them of killed processes, and {nested} of recoveries");
    assert!(images > 0 && kills > 0, "no image was taken");
}

/// What each of many writers knows of its own commits.
#[derive(Default)]
struct Writer {
    attempted: AtomicU64,
    acknowledged: AtomicU64,
    durable: AtomicU64,
}

const WRITERS: usize = 4;

fn mark(writer: usize, n: u64) -> Vec<u8> {
    format!("{writer}/{n:06}").into_bytes()
}

/// Checks an image taken amid many writers: each one's commits are a prefix, with all that `least` demands, and a commit
/// is there only if all that were acknowledged before it began are: its record lists them.
fn check_writers(image: &SimVfs, least: &[u64], most: &[u64], rng: &mut Rng) {
    let options = options(rng, image);
    let db = options.clone().open(DIR).unwrap_or_else(|e| panic!("could not open with {options:?}: {e}"));
    let second = db.find_column_family("second").unwrap();
    let mut last = Vec::new();
    let mut before = Vec::new();
    for writer in 0..WRITERS {
        let found = db.get(format!("last {writer}")).unwrap();
        let numbers: Vec<u64> = found.map_or(vec![0; 1 + WRITERS], |v| {
            v.chunks(8).map(|n| u64::from_le_bytes(n.try_into().unwrap())).collect()
        });
        let n = numbers[0];
        assert!(
            n >= least[writer],
            "writer {writer}: commit {} was promised, {n} is the last",
            least[writer]
        );
        assert!(n <= most[writer], "writer {writer}: commit {n} was never attempted");
        for i in 1..=n {
            let value = db.get(mark(writer, i)).unwrap();
            assert!(
                value.is_some_and(|v| v == common::bytes(i, 150)),
                "writer {writer}: commit {i} of {n} is missing"
            );
            let second = second.as_ref().unwrap().get(mark(writer, i)).unwrap();
            assert!(second.is_some(), "writer {writer}: commit {i} of {n} is torn");
        }
        last.push(n);
        before.push(numbers);
    }
    assert_eq!(
        db.iter().count() as u64,
        last.iter().map(|n| n + u64::from(*n > 0)).sum::<u64>(),
        "there are phantoms"
    );
    for (writer, numbers) in before.iter().enumerate() {
        for other in 0..WRITERS {
            assert!(
                last[other] >= numbers[1 + other],
                "commit {} of writer {writer} is there, and commit {} of writer {other}, from before it, is not",
                last[writer],
                numbers[1 + other]
            );
        }
    }
}

fn many_writers(seed: u64, log_mode: LogMode) -> u64 {
    let commits = common::size("HALOCLINE_CRASH_COMMITS", 400) / 2;
    let disk = SimVfs::new(seed);
    let writers: Arc<[Writer; WRITERS]> = Arc::default();
    let images = Arc::new(AtomicU64::new(0));
    let failure: Arc<Mutex<Option<String>>> = Arc::default();
    let one_in = common::size("HALOCLINE_CRASH_ONE_IN", 6) * 3;
    let db = Options::new()
        .vfs(Arc::new(disk.clone()))
        .log_mode(log_mode)
        .write_buffer(64 << 10)
        .compaction_threads(1)
        .open(DIR)
        .unwrap();
    let second = db.column_family("second").unwrap();
    let observer: Observer = {
        let (writers, images, failure) = (Arc::clone(&writers), Arc::clone(&images), Arc::clone(&failure));
        let rng = Mutex::new(Rng::new(seed));
        Arc::new(move |disk: &SimVfs, op| {
            let mut rng = Rng::new(rng.lock().unwrap().next());
            if !rng.once_in(one_in) || failure.lock().unwrap().is_some() {
                return;
            }
            let read = |counter: fn(&Writer) -> &AtomicU64| -> Vec<u64> {
                writers.iter().map(|writer| counter(writer).load(SeqCst)).collect()
            };
            // Stores through a mapping go on meanwhile, so that only a written log has an instant to be killed at.
            let kill = log_mode == LogMode::Written && rng.once_in(3);
            let least = if kill { read(|w| &w.acknowledged) } else { read(|w| &w.durable) };
            let (crash_seed, mode) = (rng.next(), rng.pick(&MODES));
            let image = if kill { disk.kill() } else { disk.crash(crash_seed, mode) };
            let most = read(|w| &w.attempted);
            images.fetch_add(1, SeqCst);
            let checked = catch_unwind(AssertUnwindSafe(|| {
                check_writers(&image, &least, &most, &mut rng);
                // And once more, after a crash at the end of the recovery.
                let again = image.crash(crash_seed, mode);
                check_writers(&again, &least, &most, &mut rng);
            }));
            if let Err(panic) = checked {
                let text = panic.downcast_ref::<String>().cloned().unwrap_or_default();
                let how = if kill { "kill()".to_owned() } else { format!("crash({crash_seed}, {mode:?})") };
                failure.lock().unwrap().get_or_insert(format!(
                    "HALOCLINE_SEED={seed}: {log_mode:?}, many writers, operation {op}, {how}: {text}"
                ));
            }
        })
    };
    disk.set_observer(Some(observer));
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let (db, second, writers) = (&db, &second, &writers);
            scope.spawn(move || {
                let mut rng = Rng::new(seed * 10 + writer as u64);
                for n in 1..=commits {
                    let mut batch = WriteBatch::new();
                    batch.put(mark(writer, n), common::bytes(n, 150));
                    batch.put_cf(second, mark(writer, n), b"");
                    let mut last = n.to_le_bytes().to_vec();
                    for other in writers.iter() {
                        last.extend(other.acknowledged.load(SeqCst).to_le_bytes());
                    }
                    batch.put(format!("last {writer}"), last);
                    let durability = if rng.once_in(12) { Durability::Sync } else { Durability::Process };
                    writers[writer].attempted.store(n, SeqCst);
                    db.write_with(&batch, durability).unwrap();
                    writers[writer].acknowledged.store(n, SeqCst);
                    if durability == Durability::Sync {
                        writers[writer].durable.store(n, SeqCst);
                    }
                }
            });
        }
    });
    disk.set_observer(None);
    if let Some(failure) = failure.lock().unwrap().take() {
        panic!("{failure}");
    }
    images.load(SeqCst)
}

#[test]
fn images_amid_many_writers_are_prefixes() {
    let mut images = 0;
    for seed in common::seeds("HALOCLINE_CRASH_RUNS", 2) {
        images += many_writers(seed, LogMode::Mapped) + many_writers(seed, LogMode::Written);
    }
    println!("{images} images");
    assert!(images > 0, "no image was taken");
}

#[test]
fn every_image_of_a_mapped_log_is_a_prefix_with_all_that_was_promised() {
    runs(LogMode::Mapped);
}

#[test]
fn every_image_of_a_written_log_is_a_prefix_with_all_that_was_promised() {
    runs(LogMode::Written);
}
