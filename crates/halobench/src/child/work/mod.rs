//! The timed loops: what each thread of a phase does, one function a kind of phase.
//!
//! A thread does a stretch of the phase's operations from its start on, until the stretch or the phase ends; how far it
//! came is part of what the database must hold afterwards.

mod background;
mod mix;
mod previous;
mod reads;
mod scans;
mod writes;

pub use background::Writer;

use super::check::{Wrong, show};
use super::latency::Recorder;
use super::pace::Pace;
use super::resources::Progress;
use crate::engine::{Engine, Result, Session};
use crate::spec::{Kind, Phase};
use crate::workload::{Arrivals, Expect, Generator, Mixed, Ops, Racing, Ranges, Sorted, Versions};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

/// Operations between two reports of progress.
const STRIDE: u64 = 64;

/// Names of the sorts of operations of a mixed phase.
const MIXED_PARTS: [&str; 2] = ["get", "put"];
/// Names of the sorts of operations of a mix, in the order of [`crate::workload::Turn`].
const MIX_PARTS: [&str; 5] = ["read", "update", "insert", "scan", "modify"];

/// What all threads of a phase share.
pub struct Shared<'a> {
    pub engine: &'a dyn Engine,
    pub generator: &'a Generator,
    pub phase: &'a Phase,
    pub ops: &'a Ops,
    /// What a mix does.
    pub mixed: Option<&'a Mixed>,
    /// Where ranges end.
    pub ranges: Option<&'a Ranges>,
    /// The loaded keys in order, for a mix that scans.
    pub sorted: Option<&'a Sorted>,
    pub expect: &'a Expect,
    /// The versions that the phase writes, unless it writes first values.
    pub versions: Option<Versions>,
    /// The background's operations and versions.
    pub background: Option<(&'a Ops, Versions)>,
    pub latency_every: u64,
    /// Set when the phase's time is over, or when a thread failed.
    pub over: &'a AtomicBool,
    /// Set when the phase's own threads are done.
    pub quiet: &'a AtomicBool,
}

impl<'a> Shared<'a> {
    /// What reads may see while the phase's own puts, or the background's, go on.
    fn racing(&self) -> Option<Racing<'a>> {
        let versions = match self.background {
            Some((_, versions)) => versions,
            None if self.phase.kind.changes() => self.versions?,
            None => return None,
        };
        Some(Racing { before: self.expect, versions })
    }

    /// Names of the phase's sorts of operations, if it has several.
    pub fn parts(&self) -> &'static [&'static str] {
        match self.phase.kind {
            Kind::Mixed => &MIXED_PARTS,
            Kind::Mix => &MIX_PARTS,
            _ => &[],
        }
    }
}

/// When a thread's operations begin, how long they take, and when it stops.
pub struct Watch<'a> {
    main: Recorder,
    parts: Vec<Recorder>,
    pace: Option<Box<Pace>>,
    over: &'a AtomicBool,
}

impl<'a> Watch<'a> {
    fn new(parts: usize, every: u64, over: &'a AtomicBool) -> Watch<'a> {
        let parts = (0..parts).map(|_| Recorder::new(every)).collect();
        Watch { main: Recorder::new(every), parts, pace: None, over }
    }

    /// Begins the schedule of an open loop, now.
    fn start(&mut self, seed: u64, stream: u64, threads: usize, rate: f64) {
        if rate > 0.0 {
            self.pace = Some(Box::new(Pace::new(Arrivals::new(seed, stream, threads, rate))));
        }
    }

    /// Whether the `batch` operations from `j` on may begin: waits until they are due, if the loop is open; false if
    /// the phase is over.
    #[inline]
    fn go(&mut self, j: u64, batch: u64) -> bool {
        match &mut self.pace {
            None => !self.over.load(Ordering::Relaxed),
            Some(pace) => pace.wait(j, batch, self.over),
        }
    }

    /// Runs and times an operation.
    #[inline]
    fn time<T>(&mut self, work: impl FnOnce() -> T) -> T {
        self.main.time(self.pace.as_deref(), work)
    }

    /// The same, of one of several sorts.
    #[inline]
    fn time_part<T>(&mut self, part: usize, work: impl FnOnce() -> T) -> T {
        self.parts[part].time(self.pace.as_deref(), work)
    }

    /// Latencies where there is one sort of operations.
    pub fn main(&self) -> &Recorder {
        &self.main
    }

    /// Latencies of each sort.
    pub fn parts(&self) -> &[Recorder] {
        &self.parts
    }

    /// Seconds by which an operation of an open loop began too late, at most.
    pub fn lag_s(&self) -> f64 {
        self.pace.as_ref().map_or(0.0, |p| p.lag().as_secs_f64())
    }
}

/// One thread's part.
pub struct Worker<'a> {
    shared: &'a Shared<'a>,
    share: Range<u64>,
    progress: &'a Progress,
    key: Vec<u8>,
    value: Vec<u8>,
    /// Whether answers are judged.
    judge: bool,
    /// Times and stops it.
    pub watch: Watch<'a>,
    /// Wrong answers.
    pub wrong: Wrong,
    /// Operations done: the first ones of its share.
    pub done: u64,
    /// Puts done.
    pub puts: u64,
    /// Digest of the values read.
    pub digest: u64,
}

impl<'a> Worker<'a> {
    /// The part of thread `t`.
    pub fn new(shared: &'a Shared<'a>, t: usize, progress: &'a Progress) -> Worker<'a> {
        let writes = matches!(shared.phase.kind, Kind::Write | Kind::Mixed | Kind::Mix);
        Worker {
            share: shared.ops.share(t, shared.phase.threads),
            progress,
            key: vec![0; shared.generator.keys.len()],
            value: vec![0; if writes { shared.generator.values.len() } else { 0 }],
            judge: shared.engine.stores(),
            watch: Watch::new(shared.parts().len(), shared.latency_every, shared.over),
            wrong: Wrong::default(),
            done: 0,
            puts: 0,
            digest: 0,
            shared,
        }
    }

    /// Does it; everything in here is timed.
    pub fn run(&mut self, session: &mut dyn Session) -> Result<()> {
        let phase = self.shared.phase;
        self.watch.start(self.shared.generator.set.seed, phase.stream, phase.threads, phase.rate);
        let done = match phase.kind {
            Kind::Write if phase.batch > 1 => self.batches(session, true),
            Kind::Delete if phase.batch > 1 => self.batches(session, false),
            Kind::Write => self.puts(session),
            Kind::Delete => self.deletes(session),
            Kind::Read => self.gets(session),
            Kind::Mixed => self.mixed(session),
            Kind::Seek => self.seeks(session),
            Kind::Range => self.ranges(session),
            Kind::Iterate => self.iterate(session),
            Kind::Mix => self.mix(session),
        };
        self.progress.set(self.done);
        done
    }

    #[inline]
    fn step(&mut self) {
        self.done += 1;
        if self.done.is_multiple_of(STRIDE) {
            self.progress.set(self.done);
        }
    }

    /// Notes a wrong get.
    #[cold]
    fn wrong_get(&mut self, found: Option<usize>) {
        let key = &self.key;
        self.wrong.note(|| match found {
            None => format!("{} was not found", show(key)),
            Some(len) => format!("{} has a wrong or old value, of {len} bytes", show(key)),
        });
    }
}
