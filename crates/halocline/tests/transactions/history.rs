//! Random transactions on every level, by many threads, with flushes, merges and power failures in between; and a checker of
//! what they saw.
//!
//! Each value is the list of all writes to its key so far (Kingsbury and Alvaro, *Elle*, 2020): a write reads the list and
//! appends its own number. So what a read returns says which writes came before it, in which order. From that follow the
//! dependencies of Adya's thesis: `ww` and `wr` (b overwrote or read what a wrote) and `rw` (b overwrote what a read). What a
//! level forbids is a kind of cycle:
//!
//! | level | must be without cycles |
//! |---|---|
//! | read uncommitted, read committed | `ww`, `wr` |
//! | repeatable read | `ww`, `wr`, `rw`, but for keys that a range did not find |
//! | snapshot | `(ww or wr or session) ; rw?` (Cerone and Gotsman, 2016): neither lost updates nor long forks |
//! | serializable | all, with the order within a thread |
//!
//! Environment: `HALOCLINE_HISTORY_TRANSACTIONS` (of each level), `HALOCLINE_SEED`.

use halocline::io::sim::{CrashMode, SimVfs};
use halocline::{Db, ErrorKind, Isolation, Options, TxOptions};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

const KEYS: u64 = 12;
const THREADS: usize = 4;

struct Rng(u64);

impl Rng {
    fn next(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

#[expect(clippy::disallowed_methods, reason = "a test may use the environment")]
fn env(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |v| v.parse().expect("a number"))
}

type Key = u64;
/// A write: its transaction's number times 4, and which of its writes it is.
type Write = u32;

fn encode(list: &[Write]) -> Vec<u8> {
    list.iter().flat_map(|w| w.to_le_bytes()).collect()
}

fn decode(bytes: &[u8]) -> Vec<Write> {
    bytes.chunks_exact(4).map(|c| u32::from_le_bytes(c.try_into().unwrap())).collect()
}

/// A list that was read, without the reader's own writes.
#[derive(Clone, Debug)]
struct Read {
    key: Key,
    list: Vec<Write>,
    /// A range went over the key and did not find it.
    unseen: bool,
}

/// A transaction that was committed.
#[derive(Clone, Debug)]
struct Tx {
    id: u32,
    thread: usize,
    reads: Vec<Read>,
    writes: Vec<(Key, Write)>,
}

struct Run<'a> {
    level: Isolation,
    next: &'a AtomicU32,
    /// Numbers that were rolled back or refused.
    aborted: &'a Mutex<HashSet<u32>>,
}

impl Run<'_> {
    /// One transaction; what it did, if it was committed.
    fn one(&self, db: &Db, thread: usize, rng: &mut Rng) -> Option<Tx> {
        let id = self.next.fetch_add(1, SeqCst);
        let mut options = TxOptions::new().isolation(self.level);
        if rng.next(8) == 0 {
            options = options.pessimistic().lock_timeout(std::time::Duration::from_millis(20));
        }
        let mut tx = db.begin(options);
        let mut done = Tx { id, thread, reads: Vec::new(), writes: Vec::new() };
        let result = self.work(&mut tx, &mut done, rng);
        let outcome = result.and_then(|()| {
            if rng.next(20) == 0 {
                return Ok(false);
            }
            tx.commit().map(|()| true)
        });
        match outcome {
            Ok(true) => return Some(done),
            Ok(false) => {}
            Err(e)
                if matches!(e.kind(), ErrorKind::Conflict | ErrorKind::Deadlock | ErrorKind::LockTimeout) => {
            }
            Err(e) => panic!("{e}"),
        }
        self.aborted.lock().unwrap().insert(id);
        None
    }

    fn work(&self, tx: &mut halocline::Tx<'_>, done: &mut Tx, rng: &mut Rng) -> halocline::Result<()> {
        // Below repeatable read nothing else keeps two appends from losing one.
        let for_update = self.level < Isolation::RepeatableRead;
        for _ in 0..1 + rng.next(4) {
            let key = rng.next(KEYS);
            match rng.next(10) {
                0..=3 => {
                    let list = tx.get(key.to_be_bytes())?.map_or(Vec::new(), |v| decode(&v));
                    done.note(key, list, false);
                }
                4 => {
                    let (low, high) = (key.min(6), key.min(6) + 1 + rng.next(6));
                    let range = low.to_be_bytes()..high.to_be_bytes();
                    let backward = rng.next(2) == 0;
                    let items: halocline::Result<Vec<_>> =
                        if backward { tx.range(range).rev().collect() } else { tx.range(range).collect() };
                    let mut found = BTreeMap::new();
                    for (k, v) in items? {
                        found.insert(u64::from_be_bytes(k.to_vec().try_into().unwrap()), decode(&v));
                    }
                    for key in low..high {
                        match found.remove(&key) {
                            Some(list) => done.note(key, list, false),
                            None => done.note(key, Vec::new(), true),
                        }
                    }
                }
                _ => {
                    if done.writes.len() == 4 {
                        continue;
                    }
                    let old = if for_update {
                        tx.get_for_update(key.to_be_bytes())?
                    } else {
                        tx.get(key.to_be_bytes())?
                    };
                    let mut list = old.map_or(Vec::new(), |v| decode(&v));
                    done.note(key, list.clone(), false);
                    let write = done.id * 4 + done.writes.len() as u32;
                    list.push(write);
                    done.writes.push((key, write));
                    tx.put(key.to_be_bytes(), encode(&list))?;
                }
            }
        }
        Ok(())
    }
}

impl Tx {
    fn note(&mut self, key: Key, mut list: Vec<Write>, unseen: bool) {
        while list.last().is_some_and(|w| w / 4 == self.id) {
            list.pop();
        }
        self.reads.push(Read { key, list, unseen });
    }
}

fn lists(db: &Db) -> BTreeMap<Key, Vec<Write>> {
    (0..KEYS)
        .map(|key| (key, db.get(key.to_be_bytes()).unwrap().map_or(Vec::new(), |v| decode(&v))))
        .collect()
}

/// The dependencies among committed transactions, by their places in `txs`.
#[derive(Default)]
struct Graph {
    /// `ww` and `wr`.
    depends: Vec<(usize, usize)>,
    rw: Vec<(usize, usize)>,
    session: Vec<(usize, usize)>,
}

/// Draws the graph, and panics at what no level allows: dirty reads, half-made reads, lost writes, torn transactions.
fn graph(txs: &[Tx], lists: &BTreeMap<Key, Vec<Write>>, aborted: &HashSet<u32>, level: Isolation) -> Graph {
    let place: HashMap<u32, usize> = txs.iter().enumerate().map(|(i, tx)| (tx.id, i)).collect();
    let of = |w: Write| *place.get(&(w / 4)).unwrap_or_else(|| panic!("{w} is nobody's committed write"));
    let mut graph = Graph::default();
    for (key, list) in lists {
        let distinct: HashSet<_> = list.iter().collect();
        assert_eq!(distinct.len(), list.len(), "key {key}: a write is there twice");
        for pair in list.windows(2).filter(|p| p[0] / 4 != p[1] / 4) {
            graph.depends.push((of(pair[0]), of(pair[1])));
        }
    }
    let mut last_of_thread: HashMap<usize, usize> = HashMap::new();
    for (i, tx) in txs.iter().enumerate() {
        for (key, write) in &tx.writes {
            assert!(lists[key].contains(write), "{level:?}: the write {write} to key {key} is lost");
        }
        for read in &tx.reads {
            let all = &lists[&read.key];
            for w in &read.list {
                assert!(!aborted.contains(&(w / 4)), "{level:?}: a dirty read of {w} (G1a)");
            }
            let n = read.list.len();
            assert!(
                n <= all.len() && all[..n] == read.list[..],
                "{level:?}: transaction {} read {:?} of key {}, which is no prefix of {all:?}",
                tx.id,
                read.list,
                read.key
            );
            if let (Some(last), Some(next)) = (read.list.last(), all.get(n)) {
                assert!(last / 4 != next / 4, "{level:?}: an intermediate read of {last} (G1b)");
            }
            if let Some(&last) = read.list.last() {
                graph.depends.push((of(last), i));
            }
            if let Some(&next) = all.get(n)
                && of(next) != i
                && !(read.unseen && level == Isolation::RepeatableRead)
            {
                graph.rw.push((i, of(next)));
            }
        }
        if let Some(before) = last_of_thread.insert(tx.thread, i) {
            graph.session.push((before, i));
        }
    }
    graph
}

/// The places of a cycle, if there is one.
fn cycle(n: usize, edges: &[(usize, usize)]) -> Option<Vec<usize>> {
    let mut next = vec![Vec::new(); n];
    edges.iter().for_each(|&(a, b)| next[a].push(b));
    // 0: not seen, 1: on the path, 2: done.
    let mut state = vec![0u8; n];
    for root in 0..n {
        if state[root] != 0 {
            continue;
        }
        let mut path = vec![(root, 0)];
        state[root] = 1;
        while let Some((at, i)) = path.last_mut() {
            match next[*at].get(*i) {
                Some(&to) => {
                    *i += 1;
                    match state[to] {
                        0 => {
                            state[to] = 1;
                            path.push((to, 0));
                        }
                        1 => {
                            let from = path.iter().position(|&(p, _)| p == to).unwrap();
                            return Some(path[from..].iter().map(|&(p, _)| p).collect());
                        }
                        _ => {}
                    }
                }
                None => {
                    state[*at] = 2;
                    path.pop();
                }
            }
        }
    }
    None
}

/// Panics, with the cycle, if the level forbids it.
fn check(txs: &[Tx], lists: &BTreeMap<Key, Vec<Write>>, aborted: &HashSet<u32>, level: Isolation) {
    let graph = graph(txs, lists, aborted, level);
    let mut edges = graph.depends.clone();
    match level {
        Isolation::ReadUncommitted | Isolation::ReadCommitted => {}
        Isolation::RepeatableRead => edges.extend(&graph.rw),
        Isolation::Serializable => edges.extend(graph.rw.iter().chain(&graph.session)),
        Isolation::Snapshot => {
            edges.extend(&graph.session);
            let mut rw = vec![Vec::new(); txs.len()];
            graph.rw.iter().for_each(|&(a, b)| rw[a].push(b));
            let composed: Vec<_> =
                edges.iter().flat_map(|&(a, b)| rw[b].iter().map(move |&c| (a, c))).collect();
            edges.extend(composed);
        }
    }
    if let Some(cycle) = cycle(txs.len(), &edges) {
        let words: Vec<_> = cycle.iter().map(|&i| format!("{:?}", txs[i])).collect();
        panic!("{level:?}: a cycle of {}:\n{}", cycle.len(), words.join("\n"));
    }
}

fn open(disk: &SimVfs) -> Db {
    Options::new().vfs(Arc::new(disk.clone())).write_buffer(1 << 20).open("db").unwrap()
}

/// `count` transactions of a level, over three lives of the database: power fails in the middle of the first two.
fn history(level: Isolation, count: u64, seed: u64) {
    let next = AtomicU32::new(1);
    let aborted = Mutex::new(HashSet::new());
    let mut disk = SimVfs::new(seed);
    let mut kept: Vec<Tx> = Vec::new();
    for life in 0..3u64 {
        let db = open(&disk);
        let before = lists(&db);
        let stop = AtomicBool::new(false);
        let committed: Mutex<Vec<Tx>> = Mutex::new(Vec::new());
        let image: Mutex<Option<SimVfs>> = Mutex::new(None);
        let run = Run { level, next: &next, aborted: &aborted };
        std::thread::scope(|scope| {
            let workers: Vec<_> = (0..THREADS)
                .map(|thread| {
                    let (db, run, committed, image, disk) = (&db, &run, &committed, &image, &disk);
                    scope.spawn(move || {
                        let mut rng = Rng(seed ^ (life << 8) ^ (thread as u64) << 16);
                        let each = count / 3 / THREADS as u64 + 1;
                        for n in 0..each {
                            let tx = run.one(db, thread, &mut rng);
                            committed.lock().unwrap().extend(tx);
                            if life < 2 && thread == 0 && n == each / 2 {
                                let mode = [CrashMode::DropUnsynced, CrashMode::Torn][rng.next(2) as usize];
                                *image.lock().unwrap() = Some(disk.crash(seed + life, mode));
                            }
                        }
                    })
                })
                .collect();
            scope.spawn(|| {
                for n in 0.. {
                    if stop.load(SeqCst) {
                        break;
                    }
                    match n % 3 {
                        0 => db.flush().unwrap(),
                        1 => db.sync().unwrap(),
                        _ => db.compact_range(..).unwrap(),
                    }
                    std::thread::yield_now();
                }
            });
            for worker in workers {
                worker.join().unwrap();
            }
            stop.store(true, SeqCst);
        });
        let committed = committed.into_inner().unwrap();
        let all: Vec<Tx> = kept.iter().cloned().chain(committed).collect();
        let now = lists(&db);
        check(&all, &now, &aborted.lock().unwrap(), level);
        drop(db);
        let Some(image) = image.into_inner().unwrap() else { return };

        // What the power failure left: of each transaction all or nothing, and nothing without what it depends on.
        let db = open(&image);
        let left = lists(&db);
        for key in 0..KEYS {
            let (left, now, before) = (&left[&key], &now[&key], &before[&key]);
            assert!(now.starts_with(left), "key {key} has {left:?}, which never was: later {now:?}");
            assert!(left.len() >= before.len() || !left.starts_with(before) || before.starts_with(left));
        }
        let visible: Vec<bool> = all
            .iter()
            .map(|tx| {
                let seen = tx.writes.iter().filter(|(key, w)| left[key].contains(w)).count();
                assert!(seen == 0 || seen == tx.writes.len(), "{level:?}: half of {tx:?} survived");
                seen > 0
            })
            .collect();
        let drawn = graph(&all, &now, &aborted.lock().unwrap(), level);
        for (a, b) in drawn.depends {
            let wrote = !all[a].writes.is_empty();
            assert!(
                !visible[b] || visible[a] || !wrote,
                "{level:?}: {:?} survived without {:?}, which it comes after",
                all[b],
                all[a]
            );
        }
        kept = all.into_iter().zip(visible).filter(|(_, visible)| *visible).map(|(tx, _)| tx).collect();
        drop(db);
        disk = image;
    }
}

#[test]
fn histories_are_what_their_levels_say() {
    let count = env("HALOCLINE_HISTORY_TRANSACTIONS", 4200);
    let seed = env("HALOCLINE_SEED", 1);
    for level in super::LEVELS {
        println!("{level:?}, {count} transactions, seed {seed}");
        history(level, count, seed);
    }
}

/// A checker that cannot fail is worth nothing: each forbidden history is made up, and found.
mod vigilance {
    use super::*;

    fn tx(id: u32, reads: &[(Key, &[Write])], writes: &[(Key, Write)]) -> Tx {
        let reads =
            reads.iter().map(|&(key, list)| Read { key, list: list.to_vec(), unseen: false }).collect();
        Tx { id, thread: id as usize, reads, writes: writes.to_vec() }
    }

    /// Whether the checker refuses the history at the level.
    fn refused(level: Isolation, txs: &[Tx], lists: &[(Key, &[Write])]) -> bool {
        let lists: BTreeMap<Key, Vec<Write>> = lists.iter().map(|&(k, l)| (k, l.to_vec())).collect();
        let aborted = HashSet::from([99]);
        std::panic::catch_unwind(|| check(txs, &lists, &aborted, level)).is_err()
    }

    #[test]
    fn write_skew_is_refused_where_it_should_be() {
        let txs = [tx(1, &[(0, &[]), (1, &[])], &[(0, 4)]), tx(2, &[(0, &[]), (1, &[])], &[(1, 8)])];
        let lists: [(Key, &[Write]); 2] = [(0, &[4]), (1, &[8])];
        assert!(refused(Isolation::Serializable, &txs, &lists));
        assert!(refused(Isolation::RepeatableRead, &txs, &lists));
        assert!(!refused(Isolation::Snapshot, &txs, &lists));
        assert!(!refused(Isolation::ReadCommitted, &txs, &lists));
    }

    #[test]
    fn a_long_fork_is_refused_by_snapshot() {
        let txs = [
            tx(1, &[], &[(0, 4)]),
            tx(2, &[], &[(1, 8)]),
            tx(3, &[(0, &[4]), (1, &[])], &[]),
            tx(4, &[(0, &[]), (1, &[8])], &[]),
        ];
        let lists: [(Key, &[Write]); 2] = [(0, &[4]), (1, &[8])];
        assert!(refused(Isolation::Snapshot, &txs, &lists));
        assert!(refused(Isolation::Serializable, &txs, &lists));
        assert!(!refused(Isolation::ReadCommitted, &txs, &lists));
    }

    #[test]
    fn dirty_intermediate_lost_and_circular_are_refused_everywhere() {
        for level in super::super::LEVELS {
            let aborted = [tx(1, &[(0, &[396])], &[])];
            assert!(refused(level, &aborted, &[(0, &[])]), "{level:?} G1a");
            let intermediate = [tx(1, &[], &[(0, 4), (0, 5)]), tx(2, &[(0, &[4])], &[])];
            assert!(refused(level, &intermediate, &[(0, &[4, 5])]), "{level:?} G1b");
            let circular = [tx(1, &[(1, &[8])], &[(0, 4)]), tx(2, &[(0, &[4])], &[(1, 8)])];
            assert!(refused(level, &circular, &[(0, &[4]), (1, &[8])]), "{level:?} G1c");
            let lost = [tx(1, &[], &[(0, 4)]), tx(2, &[], &[(0, 8)])];
            assert!(refused(level, &lost, &[(0, &[8])]), "{level:?} lost");
            let interleaved = [tx(1, &[], &[(0, 4), (1, 5)]), tx(2, &[], &[(0, 8), (1, 9)])];
            assert!(refused(level, &interleaved, &[(0, &[4, 8]), (1, &[9, 5])]), "{level:?} G0");
        }
    }

    #[test]
    fn a_read_of_the_past_after_ones_own_commit_is_refused_by_serializable() {
        let mut later = tx(3, &[(0, &[])], &[]);
        later.thread = 1;
        let txs = [tx(1, &[], &[(0, 4)]), later];
        assert!(refused(Isolation::Serializable, &txs, &[(0, &[4])]));
        assert!(!refused(Isolation::ReadCommitted, &txs, &[(0, &[4])]));
    }
}
