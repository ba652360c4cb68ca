//! Writers that overwrite while the phase's own threads read.

use super::{Shared, Watch};
use crate::engine::{Result, Session};
use std::ops::Range;
use std::sync::atomic::Ordering;

/// One of them.
pub struct Writer<'a> {
    shared: &'a Shared<'a>,
    share: Range<u64>,
    key: Vec<u8>,
    value: Vec<u8>,
    /// Times it.
    pub watch: Watch<'a>,
    /// Puts done: the first ones of its share.
    pub done: u64,
}

impl<'a> Writer<'a> {
    /// Writer `t`, if the phase has a background.
    pub fn new(shared: &'a Shared<'a>, t: usize) -> Option<Writer<'a>> {
        let (ops, _) = shared.background?;
        let threads = shared.phase.background?.threads;
        Some(Writer {
            shared,
            share: ops.share(t, threads),
            key: vec![0; shared.generator.keys.len()],
            value: vec![0; shared.generator.values.len()],
            watch: Watch::new(0, shared.latency_every, shared.quiet),
            done: 0,
        })
    }

    /// Writes until the phase's own threads are done.
    pub fn run(&mut self, session: &mut dyn Session) -> Result<()> {
        let (Some((ops, versions)), Some(background)) =
            (self.shared.background, self.shared.phase.background)
        else {
            return Ok(());
        };
        let stream = self.shared.phase.stream + super::super::plan::NUMBERS;
        let generator = self.shared.generator;
        self.watch.start(generator.set.seed, stream, background.threads, background.rate);
        for j in self.share.clone() {
            let id = ops.id(j);
            generator.keys.encode(id, &mut self.key);
            generator.values.fill(id, versions.base + j + 1, &mut self.value);
            if !self.watch.go(j, 1) {
                break;
            }
            self.watch.time(|| session.put(&self.key, &self.value))?;
            self.done += 1;
        }
        Ok(())
    }
}

impl Shared<'_> {
    /// Ends everything: a thread failed.
    pub fn abort(&self) {
        self.over.store(true, Ordering::Relaxed);
        self.quiet.store(true, Ordering::Relaxed);
    }
}
