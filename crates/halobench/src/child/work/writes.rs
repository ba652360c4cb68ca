//! Puts and removals, one by one or in batches.

use super::{Shared, Worker};
use crate::engine::{Result, Session};
use std::ops::Range;

impl Shared<'_> {
    /// The version that operation `j` writes.
    #[inline]
    pub(super) fn version(&self, j: u64) -> u64 {
        self.versions.map_or(0, |v| v.base + j + 1)
    }
}

impl Worker<'_> {
    pub(super) fn puts(&mut self, session: &mut dyn Session) -> Result<()> {
        for j in self.share.clone() {
            self.fill(self.shared.ops.id(j), self.shared.version(j));
            if !self.watch.go(j, 1) {
                break;
            }
            self.watch.time(|| session.put(&self.key, &self.value))?;
            self.puts += 1;
            self.step();
        }
        Ok(())
    }

    /// Makes the key and the value of `id` at `version`.
    #[inline]
    pub(super) fn fill(&mut self, id: u64, version: u64) {
        self.shared.generator.keys.encode(id, &mut self.key);
        self.shared.generator.values.fill(id, version, &mut self.value);
    }

    pub(super) fn deletes(&mut self, session: &mut dyn Session) -> Result<()> {
        for j in self.share.clone() {
            self.shared.generator.keys.encode(self.shared.ops.id(j), &mut self.key);
            if !self.watch.go(j, 1) {
                break;
            }
            self.watch.time(|| session.delete(&self.key))?;
            self.step();
        }
        Ok(())
    }

    /// A latency here is a whole batch's, with the making of its keys and values.
    pub(super) fn batches(&mut self, session: &mut dyn Session, put: bool) -> Result<()> {
        let Range { mut start, end } = self.share.clone();
        let shared = self.shared;
        let Shared { generator, ops, phase, .. } = *shared;
        while start < end {
            let stop = (start + phase.batch).min(end);
            if !self.watch.go(start, stop - start) {
                break;
            }
            let (key, value) = (&mut self.key, &mut self.value);
            self.watch.time(|| {
                for j in start..stop {
                    let id = ops.id(j);
                    generator.keys.encode(id, key);
                    if put {
                        generator.values.fill(id, shared.version(j), value);
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
}
