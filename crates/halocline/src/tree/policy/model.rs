//! The policies played out on fake tables: every job is carried out on real entries, jobs overlap and end in any
//! order, and after each the tree must show what was written.

use super::*;
use crate::table::TableMeta;
use crate::tree::edit::Edit;
use crate::tree::version::Tree;
use std::collections::{BTreeMap, HashMap};

/// Raw bytes of an entry.
const ENTRY: u64 = 100;
/// Entries of a flush.
const FLUSH: u64 = 500;

#[derive(Debug)]
struct Fake {
    meta: TableMeta,
    /// (key, version, whether it is a deletion)
    entries: Vec<(u64, u64, bool)>,
}

impl TableLike for Fake {
    fn meta(&self) -> &TableMeta {
        &self.meta
    }
}

fn key(n: u64) -> [u8; 8] {
    n.to_be_bytes()
}

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }
    fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(n)) >> 64) as u64
    }
    fn unit(&mut self) -> f64 {
        self.next() as f64 / u64::MAX as f64
    }
}

struct Model {
    tree: Tree<Fake>,
    params: Params,
    pressure: Pressure,
    busy: Busy,
    under_way: Vec<(u64, Job, Cuts)>,
    truth: BTreeMap<u64, (u64, bool)>,
    random: Random,
    next_id: u64,
    version: u64,
    /// Bytes written to tables, and by flushes alone.
    written: u64,
    flushed: u64,
    jobs: usize,
    deepest: usize,
}

impl Model {
    fn new(policy: Policy, seed: u64) -> Model {
        let flush = FLUSH * ENTRY;
        Model {
            tree: Tree::default()
                .apply(&[Edit::AddFamily { id: 3, name: "f".into() }], |_| unreachable!())
                .unwrap(),
            params: Params { policy, target: flush, flush, max_job: 8 * flush },
            pressure: Pressure::default(),
            busy: Busy::default(),
            under_way: Vec::new(),
            truth: BTreeMap::new(),
            random: Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1),
            next_id: 1,
            version: 0,
            written: 0,
            flushed: 0,
            jobs: 0,
            deepest: 0,
        }
    }

    fn family(&self) -> &Arc<Family<Fake>> {
        self.tree.family(3).unwrap()
    }

    fn id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id - 1
    }

    /// Cuts sorted entries into tables.
    fn tables(&mut self, entries: &BTreeMap<u64, (u64, bool)>, mut cuts: Cuts) -> HashMap<u64, Arc<Fake>> {
        let mut tables = HashMap::new();
        let mut open: Vec<(u64, u64, bool)> = Vec::new();
        let mut close = |model: &mut Model, entries: Vec<(u64, u64, bool)>| {
            let (Some(first), Some(last)) = (entries.first(), entries.last()) else { return };
            let id = model.id();
            let raw_bytes = entries.len() as u64 * ENTRY;
            let meta = TableMeta {
                id,
                file_len: raw_bytes,
                footer_sum: 0,
                entries: entries.len() as u64,
                deletes: entries.iter().filter(|e| e.2).count() as u64,
                raw_bytes,
                max_version: entries.iter().map(|e| e.1).max().unwrap(),
                smallest: key(first.0).into(),
                largest: key(last.0).into(),
            };
            model.written += raw_bytes;
            tables.insert(id, Arc::new(Fake { meta, entries }));
        };
        for (&k, &(version, deleted)) in entries {
            if cuts.before(&key(k), open.len() as u64 * ENTRY) {
                close(self, std::mem::take(&mut open));
            }
            open.push((k, version, deleted));
        }
        close(self, open);
        tables
    }

    fn apply(&mut self, edits: &[Edit], tables: &HashMap<u64, Arc<Fake>>) {
        self.tree = self.tree.apply(edits, |meta| Ok(Arc::clone(&tables[&meta.id]))).unwrap();
    }

    fn flush(&mut self, writes: impl IntoIterator<Item = (u64, bool)>) {
        let mut entries = BTreeMap::new();
        for (k, deleted) in writes {
            self.version += 1;
            entries.insert(k, (self.version, deleted));
            self.truth.insert(k, (self.version, deleted));
        }
        let raw = entries.len() as u64 * ENTRY;
        self.flushed += raw;
        let cuts = Cuts::flush(self.family(), &self.params, raw);
        let tables = self.tables(&entries, cuts);
        let run = self.id();
        let mut edits = vec![Edit::NewRun { family: 3, run, tier: 0, after: None }];
        edits.extend(tables.values().map(|t| Edit::AddTable { family: 3, run, meta: t.meta.clone() }));
        self.apply(&edits, &tables);
    }

    /// Begins a job, if there is one.
    fn begin(&mut self) -> bool {
        let Some(job) = pick(self.family(), &self.params, &self.busy, self.pressure) else { return false };
        self.start(job);
        true
    }

    fn start(&mut self, job: Job) {
        self.jobs += 1;
        assert!(self.jobs < 200_000, "merging does not come to an end: {job:?}");
        let ticket = self.busy.claim(&job);
        let cuts = Cuts::job(self.family(), &self.params, &job);
        self.under_way.push((ticket, job, cuts));
        if self.under_way.last().unwrap().1.trivial {
            self.end(self.under_way.len() - 1);
        }
    }

    /// Carries out a job under way.
    fn end(&mut self, at: usize) {
        let (ticket, job, cuts) = self.under_way.swap_remove(at);
        let family = Arc::clone(self.family());
        let mut entries = BTreeMap::new();
        if !job.trivial {
            for &(run, table) in &job.inputs {
                for &(k, version, deleted) in &family.run(run).unwrap().table(table).unwrap().entries {
                    entries.entry(k).or_insert((version, deleted));
                }
            }
            if job.is_bottom {
                entries.retain(|_, (_, deleted)| !*deleted);
            }
        }
        let tables = self.tables(&entries, cuts);
        let outputs: Vec<TableMeta> = tables.values().map(|t| t.meta.clone()).collect();
        let new_run = self.id();
        let edits = job.edits(&self.tree, &outputs, new_run).unwrap();
        self.apply(&edits, &tables);
        self.busy.release(ticket);
    }

    /// Works as `threads` background threads would, for so many steps.
    fn work(&mut self, threads: usize, steps: usize) {
        for _ in 0..steps {
            while self.under_way.len() < threads && self.begin() {}
            if self.under_way.is_empty() {
                return;
            }
            let at = self.random.below(self.under_way.len() as u64) as usize;
            self.end(at);
        }
    }

    fn settle(&mut self) {
        self.work(3, usize::MAX);
        assert_eq!(self.busy.len(), 0);
    }

    /// What the tree shows must be what was written; versions get older downwards.
    fn check(&self) {
        let mut seen: HashMap<u64, (u64, u64, bool)> = HashMap::new();
        let mut tier = 0;
        for run in self.family().all_runs() {
            assert!(run.tier >= tier, "tiers are out of order");
            tier = run.tier;
            for &(k, version, deleted) in run.tables().iter().flat_map(|t| &t.entries) {
                let newest = seen.entry(k).or_insert((version, version, deleted));
                assert!(
                    version == newest.1 && newest.0 == version || version < newest.1,
                    "key {k} is out of order"
                );
                newest.1 = version;
            }
        }
        for (k, &(version, deleted)) in &self.truth {
            match seen.get(k) {
                Some(&(newest, _, d)) => assert_eq!((newest, d), (version, deleted), "key {k}"),
                None => {
                    assert!(deleted || matches!(self.params.policy, Policy::Fifo { .. }), "key {k} is lost")
                }
            }
        }
    }

    fn amplification(&self) -> f64 {
        self.written as f64 / self.flushed as f64
    }

    fn depth(&self) -> usize {
        self.family().runs.len()
    }
}

const LAZY: Policy = Policy::Lazy { min_runs: 2, max_runs: 8 };

fn load(
    policy: Policy,
    flushes: u64,
    seed: u64,
    mut next: impl FnMut(&mut Random, u64) -> (u64, bool),
) -> Model {
    let mut model = Model::new(policy, seed);
    for flush in 0..flushes {
        let writes: Vec<_> = (0..FLUSH).map(|i| next(&mut model.random, flush * FLUSH + i)).collect();
        model.flush(writes);
        model.work(1, usize::MAX);
        model.deepest = model.deepest.max(model.depth());
    }
    model.settle();
    model.check();
    model
}

#[test]
#[ignore = "prints a table"]
fn amplification_table() {
    for policy in [LAZY, Policy::Tiered, Policy::Leveled] {
        for flushes in [20, 100, 200, 400] {
            let random = load(policy, flushes, 1, |r, _| (r.next(), false));
            let update = load(policy, flushes, 1, |r, _| (r.below(20 * FLUSH), false));
            let sequential = load(policy, flushes, 1, |_, i| (i, false));
            let shape = |m: &Model| {
                let pieces = m.family().all_runs().map(|r| r.tables().len()).sum::<usize>();
                format!("{:5.2} ({:2} runs, {:4} tables)", m.amplification(), m.deepest, pieces)
            };
            println!(
                "{policy:?} {flushes}: random {} updates {} sequential {}",
                shape(&random),
                shape(&update),
                shape(&sequential)
            );
        }
    }
}

#[test]
fn amplification_of_a_random_load_is_within_the_model() {
    // 1 + (L - 2) + the last run's share: 2.4 at 18 flushes and 3.9 at 100 for at most 8 runs.
    let short = load(LAZY, 20, 5, |r, _| (r.next(), false));
    assert!(short.amplification() < 2.7, "{}", short.amplification());
    let long = load(LAZY, 200, 6, |r, _| (r.next(), false));
    assert!(long.amplification() < 4.2, "{}", long.amplification());
    assert!(long.deepest <= 9 + 5 + 2, "{} runs", long.deepest);
    let tiered = load(Policy::Tiered, 60, 7, |r, _| (r.next(), false));
    assert!(tiered.amplification() < 2.8, "{}", tiered.amplification());
}

#[test]
fn a_sequential_load_is_written_once_and_leaves_no_small_tables() {
    for policy in [LAZY, Policy::Tiered, Policy::Leveled] {
        let model = load(policy, 30, 8, |_, i| (i, false));
        assert_eq!((model.amplification(), model.depth()), (1.0, 0));
    }
    // Flushes of a hundredth of a table.
    let mut model = Model::new(LAZY, 9);
    for flush in 0..1000 {
        model.flush((0..5).map(|i| (flush * 5 + i, false)));
        model.work(1, usize::MAX);
    }
    model.check();
    assert!(model.amplification() < 5.0, "{}", model.amplification());
    let tables = model.family().last.tables().len();
    assert!(tables <= 40, "{tables} tables for ten tables' worth of data");
}

/// Flushes of all kinds, by seed.
fn writes(kind: u64, random: &mut Random, flush: u64) -> Vec<(u64, bool)> {
    let n = 20 + random.below(FLUSH);
    let (from, width) = (random.below(5000), 1 + random.below(5000));
    (0..n)
        .map(|i| match kind {
            0 => (random.below(20_000), false),
            1 => (flush * FLUSH + i, false),
            2 => ((random.unit().powi(4) * 20_000.0) as u64, random.below(8) == 0),
            3 => (random.below(8000), random.below(2) == 0),
            4 => (from + random.below(width), random.below(10) == 0),
            5 => (flush * 100 + random.below(150), false),
            6 => (u64::MAX - flush * FLUSH - i, false),
            _ => (random.below(10) * 1_000_000 + i, random.below(20) == 0),
        })
        .collect()
}

#[test]
fn every_policy_keeps_versions_in_order_and_comes_to_rest() {
    for seed in 1..=48 {
        let policy = [LAZY, Policy::Tiered, Policy::Leveled, LAZY][seed as usize % 4];
        let mut model = Model::new(policy, seed);
        if seed % 3 == 0 {
            // So small that components have to be merged in parts.
            model.params.max_job = model.params.target;
        }
        let mut kind = model.random.below(8);
        for flush in 0..40 {
            if model.random.below(10) == 0 {
                kind = model.random.below(8);
                model.pressure = Pressure {
                    read_heat: model.random.unit() as f32,
                    write_debt: model.random.unit() as f32,
                };
            }
            let writes = writes(kind, &mut model.random, flush);
            model.flush(writes);
            let steps = model.random.below(12) as usize;
            model.work(3, steps);
            if flush % 8 == 0 {
                model.check();
            }
        }
        model.settle();
        model.check();
        if let Policy::Lazy { min_runs, max_runs } = policy {
            let limit = model.pressure.runs(min_runs, max_runs);
            for (tier, range) in
                [0, 1, 2, 3].map(|t| (t, model.family().runs.iter().filter(|r| r.tier == t).count()))
            {
                let limit = if tier == 0 { limit } else { (limit / 2).max(1) };
                assert!(range <= limit + 1, "seed {seed}: {range} runs in tier {tier}, limit {limit}");
            }
            assert_eq!(debt(model.family(), &model.params).runs_over, 0);
        }
        // Any policy can take over from any other.
        model.params.policy = [Policy::Leveled, LAZY, Policy::Tiered][seed as usize % 3];
        model.settle();
        model.check();
        // And all of it can be brought into the last run.
        loop {
            match pick_range(model.family(), &model.params, &model.busy, (Bound::Unbounded, Bound::Unbounded))
            {
                RangePick::Job(job) => model.start(job),
                RangePick::Busy => model.end(0),
                RangePick::Done => break,
            }
        }
        model.check();
        assert_eq!(model.depth(), 0);
        assert_eq!(model.family().last.deletes, 0);
    }
}

#[test]
fn what_is_deleted_is_freed_without_a_further_write() {
    let mut model = Model::new(LAZY, 3);
    for flush in 0..40 {
        let writes: Vec<_> = (0..FLUSH).map(|i| ((flush * FLUSH + i) * 7919 % 20_000, false)).collect();
        model.flush(writes);
        model.work(1, usize::MAX);
    }
    let full = model.family().bytes();
    for flush in 0..40 {
        model.flush((0..FLUSH).map(|i| ((flush * FLUSH + i) * 6007 % 20_000, true)));
        model.work(1, usize::MAX);
    }
    model.settle();
    model.check();
    let left = model.family().bytes();
    assert!(left * 20 < full, "{left} of {full} bytes are left");
}

#[test]
fn reads_shrink_the_number_of_runs() {
    let mut model = load(LAZY, 6, 11, |r, _| (r.below(3000), false));
    assert!(model.depth() >= 4);
    model.pressure = Pressure { read_heat: 1.0, write_debt: 0.0 };
    model.settle();
    model.check();
    assert!(model.depth() <= 2);
}

#[test]
fn fifo_drops_the_oldest_and_brings_nothing_back() {
    for seed in 1..10 {
        let max_bytes = 6 * FLUSH * ENTRY;
        let mut model = Model::new(Policy::Fifo { max_bytes }, seed);
        for flush in 0..40 {
            let writes = writes([0, 1, 4, 5][seed as usize % 4], &mut model.random, flush);
            model.flush(writes);
            model.work(2, usize::MAX);
            model.check();
            assert!(model.family().bytes() <= max_bytes);
        }
        // Flushes alone wrote.
        assert_eq!(model.amplification(), 1.0);
    }
}

#[test]
fn compacting_a_range_leaves_the_rest() {
    let mut model = load(LAZY, 40, 12, |r, _| (r.below(40_000), false));
    assert!(model.depth() > 0);
    let (from, to) = (key(1000), key(1500));
    let range = (Bound::Included(&from[..]), Bound::Excluded(&to[..]));
    while let RangePick::Job(job) = pick_range(model.family(), &model.params, &model.busy, range) {
        model.start(job);
        if !model.under_way.is_empty() {
            assert!(matches!(
                pick_range(model.family(), &model.params, &model.busy, range),
                RangePick::Busy | RangePick::Job(_)
            ));
            model.end(0);
        }
    }
    model.check();
    assert!(model.family().runs.iter().all(|r| r.overlapping_bounds(range.0, range.1).is_empty()));
    assert!(model.depth() > 0);
}

#[test]
fn cuts_follow_the_last_runs_boundaries() {
    let model = load(LAZY, 40, 13, |r, _| (r.next(), false));
    let family = model.family();
    let boundaries: Vec<_> = family.last.tables().iter().map(|t| t.meta.smallest.clone()).collect();
    assert!(boundaries.len() > 20);
    let newest = family.runs.first().unwrap();
    assert!(newest.tables().len() > 4);
    for pair in newest.tables().windows(2) {
        let (end, start) = (&pair[0].meta.largest, &pair[1].meta.smallest);
        let inside = boundaries.iter().any(|b| b > end && b <= start);
        assert!(inside || pair[0].meta.raw_bytes >= model.params.target / 2);
    }
}
