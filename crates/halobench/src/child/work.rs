//! The timed loops: one function a kind of phase, run by each thread.

use super::check::{Wrong, show};
use super::latency::Recorder;
use super::resources::Progress;
use crate::engine::{Cursor, Engine, Result, Session};
use crate::spec::{Kind, Phase};
use crate::workload::{Expect, Generator, Ops, Ranges, plausible};
use std::ops::Range;

/// Operations between two reports of progress.
const STRIDE: u64 = 64;

/// What all threads of a phase share.
pub struct Shared<'a> {
    pub engine: &'a dyn Engine,
    pub generator: &'a Generator,
    pub phase: &'a Phase,
    pub ops: &'a Ops,
    pub ranges: Option<&'a Ranges>,
    pub expect: &'a Expect,
    pub latency_every: u64,
}

/// One thread's part.
pub struct Worker<'a> {
    shared: &'a Shared<'a>,
    share: Range<u64>,
    progress: &'a Progress,
    key: Vec<u8>,
    value: Vec<u8>,
    /// Latencies.
    pub latency: Recorder,
    /// Wrong answers.
    pub wrong: Wrong,
    /// Operations done.
    pub done: u64,
    /// Puts done.
    pub puts: u64,
}

impl<'a> Worker<'a> {
    /// The part of thread `t`.
    pub fn new(shared: &'a Shared<'a>, t: usize, progress: &'a Progress) -> Worker<'a> {
        Worker {
            shared,
            share: shared.ops.share(t, shared.phase.threads),
            progress,
            key: vec![0; shared.generator.keys.len()],
            value: vec![0; shared.generator.values.len()],
            latency: Recorder::new(shared.latency_every),
            wrong: Wrong::default(),
            done: 0,
            puts: 0,
        }
    }

    /// Does it; everything in here is timed.
    pub fn run(&mut self, session: &mut dyn Session) -> Result<()> {
        match self.shared.phase.kind {
            Kind::Write if self.shared.phase.batch > 1 => self.batches(session, true),
            Kind::Delete if self.shared.phase.batch > 1 => self.batches(session, false),
            Kind::Write => self.puts(session),
            Kind::Delete => self.deletes(session),
            Kind::Read => self.gets(session),
            Kind::Mixed => self.mixed(session),
            Kind::Seek => self.seeks(&mut *session.cursor()?),
            Kind::Range => self.ranges(&mut *session.cursor()?),
            Kind::Iterate => self.iterate(&mut *session.cursor()?),
            Kind::Mix => Err("not yet".into()),
        }?;
        self.progress.set(self.done);
        Ok(())
    }

    #[inline]
    fn step(&mut self) {
        self.done += 1;
        if self.done.is_multiple_of(STRIDE) {
            self.progress.set(self.done);
        }
    }

    /// The version that operation `j` writes.
    #[inline]
    fn version(&self, j: u64) -> u64 {
        if self.shared.phase.kind == Kind::Write && self.shared.phase.order.visits_once() { 0 } else { j + 1 }
    }

    fn puts(&mut self, session: &mut dyn Session) -> Result<()> {
        for j in self.share.clone() {
            self.fill(j);
            self.latency.time(|| session.put(&self.key, &self.value))?;
            self.puts += 1;
            self.step();
        }
        Ok(())
    }

    #[inline]
    fn fill(&mut self, j: u64) {
        let id = self.shared.ops.id(j);
        self.shared.generator.keys.encode(id, &mut self.key);
        self.shared.generator.values.fill(id, self.version(j), &mut self.value);
    }

    fn deletes(&mut self, session: &mut dyn Session) -> Result<()> {
        for j in self.share.clone() {
            self.shared.generator.keys.encode(self.shared.ops.id(j), &mut self.key);
            self.latency.time(|| session.delete(&self.key))?;
            self.step();
        }
        Ok(())
    }

    /// A latency here is a whole batch's, with the making of its keys and values.
    fn batches(&mut self, session: &mut dyn Session, put: bool) -> Result<()> {
        let Range { mut start, end } = self.share.clone();
        let Shared { generator, ops, phase, .. } = *self.shared;
        while start < end {
            let stop = (start + phase.batch).min(end);
            let (key, value) = (&mut self.key, &mut self.value);
            let once = phase.order.visits_once();
            self.latency.time(|| {
                for j in start..stop {
                    let id = ops.id(j);
                    generator.keys.encode(id, key);
                    if put {
                        generator.values.fill(id, if once { 0 } else { j + 1 }, value);
                        session.batch_put(key, value)?;
                    } else {
                        session.batch_delete(key)?;
                    }
                }
                session.commit()
            })?;
            self.done += stop - start;
            self.puts += if put { stop - start } else { 0 };
            self.progress.set(self.done);
            start = stop;
        }
        Ok(())
    }

    fn gets(&mut self, session: &mut dyn Session) -> Result<()> {
        let judge = self.shared.engine.stores();
        let plain = self.shared.expect.is_plain();
        for j in self.share.clone() {
            let id = self.shared.ops.id(j);
            self.shared.generator.keys.encode(id, &mut self.key);
            let found = self.latency.time(|| session.get(&self.key))?;
            let right = match found {
                Some(value) if plain => self.shared.generator.values.is(id, 0, value),
                Some(value) => self.shared.expect.check(self.shared.generator, id, value),
                None => !plain && !self.shared.expect.has(id),
            };
            if !right && judge {
                let found = found.map(<[u8]>::len);
                self.wrong.note(|| wrong_get(&self.key, found));
            }
            self.step();
        }
        Ok(())
    }

    fn mixed(&mut self, session: &mut dyn Session) -> Result<()> {
        let judge = self.shared.engine.stores();
        for j in self.share.clone() {
            if self.shared.ops.writes(j) {
                self.fill(j);
                self.latency.time(|| session.put(&self.key, &self.value))?;
                self.puts += 1;
            } else {
                let id = self.shared.ops.id(j);
                self.shared.generator.keys.encode(id, &mut self.key);
                let found = self.latency.time(|| session.get(&self.key))?;
                let right = found.is_some_and(|v| plausible(self.shared.generator, self.shared.ops, id, v));
                if !right && judge {
                    let found = found.map(<[u8]>::len);
                    self.wrong.note(|| wrong_get(&self.key, found));
                }
            }
            self.step();
        }
        Ok(())
    }

    fn seeks(&mut self, cursor: &mut dyn Cursor) -> Result<()> {
        let judge = self.shared.engine.stores();
        for j in self.share.clone() {
            self.shared.generator.keys.encode(self.shared.ops.id(j), &mut self.key);
            let right =
                self.latency.time(|| Ok::<_, String>(cursor.seek(&self.key)? && cursor.key() == self.key))?;
            if !right && judge {
                self.wrong.note(|| format!("a seek to {} did not find it", show(&self.key)));
            }
            self.step();
        }
        Ok(())
    }

    fn ranges(&mut self, cursor: &mut dyn Cursor) -> Result<()> {
        let judge = self.shared.engine.stores();
        let ranges = self.shared.ranges.ok_or("a range phase without the ends of its ranges")?;
        let size = self.shared.phase.range_size;
        let mut previous = Previous::default();
        for j in self.share.clone() {
            self.shared.generator.keys.encode(self.shared.ops.id(j), &mut self.key);
            let Worker { key, latency, .. } = self;
            let (mut count, mut ordered) = (0, true);
            latency.time(|| -> Result<()> {
                let mut more = cursor.seek(key)?;
                ordered = more && cursor.key() == key.as_slice();
                previous.clear();
                while more {
                    ordered &= previous.precedes(cursor.key());
                    std::hint::black_box(cursor.value()?);
                    count += 1;
                    more = count < size && cursor.next()?;
                }
                Ok(())
            })?;
            if judge {
                // In order, from the right key, the right number, to the right key with its value: all were there.
                let last = ranges.last(j);
                let right = ordered
                    && count == ranges.count(j)
                    && self.shared.generator.keys.decode(previous.key()) == Some(last)
                    && (count < size
                        || self.shared.expect.check(self.shared.generator, last, cursor.value()?));
                if !right {
                    self.wrong.note(|| format!("a range of {size} from {} was wrong", show(&self.key)));
                }
            }
            self.step();
        }
        Ok(())
    }

    fn iterate(&mut self, cursor: &mut dyn Cursor) -> Result<()> {
        let judge = self.shared.engine.stores();
        let value_len = self.shared.generator.values.len();
        let expected = self.shared.expect.count();
        let mut previous = Previous::default();
        let mut more = cursor.seek_first()?;
        // The engine that stores nothing never says that it is done.
        while more && (judge || self.done < expected) {
            if !previous.precedes(cursor.key()) && judge {
                self.wrong.note(|| format!("a pass returned {} out of order", show(cursor.key())));
            }
            if cursor.value()?.len() != value_len && judge {
                self.wrong.note(|| format!("{} has a value of another length", show(previous.key())));
            }
            self.step();
            more = cursor.next()?;
        }
        let count = self.done;
        if judge && count != expected {
            self.wrong.note(|| format!("a pass found {count} keys where {expected} are expected"));
        }
        Ok(())
    }
}

/// The key before, to check the order: keys of 16 bytes in a register, others in a buffer.
#[derive(Default)]
struct Previous {
    any: bool,
    short: u128,
    bytes: Vec<u8>,
}

impl Previous {
    /// Begins anew.
    fn clear(&mut self) {
        self.any = false;
    }

    /// Whether the key before is smaller, or there was none; `key` takes its place.
    #[inline]
    fn precedes(&mut self, key: &[u8]) -> bool {
        let first = !std::mem::replace(&mut self.any, true);
        if let Ok(key) = <[u8; 16]>::try_from(key) {
            // No set mixes lengths; a foreign key of another length is found by the count or by the check of the state.
            let key = u128::from_be_bytes(key);
            let before = std::mem::replace(&mut self.short, key);
            self.bytes.clear();
            return first || before < key;
        }
        let right = first || self.bytes.as_slice() < key;
        self.bytes.clear();
        self.bytes.extend_from_slice(key);
        right
    }

    /// The last key.
    fn key(&mut self) -> &[u8] {
        if self.bytes.is_empty() {
            self.bytes.extend_from_slice(&self.short.to_be_bytes());
        }
        &self.bytes
    }
}

#[cold]
fn wrong_get(key: &[u8], found: Option<usize>) -> String {
    match found {
        None => format!("{} was not found", show(key)),
        Some(len) => format!("{} has a wrong or old value, of {len} bytes", show(key)),
    }
}
