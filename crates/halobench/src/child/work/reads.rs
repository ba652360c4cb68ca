//! Gets, alone or among puts, and seeks.

use super::super::check::show;
use super::Worker;
use crate::engine::{Cursor, Result, Session};
use crate::workload::digest;

impl Worker<'_> {
    pub(super) fn gets(&mut self, session: &mut dyn Session) -> Result<()> {
        let (generator, expect) = (self.shared.generator, self.shared.expect);
        let plain = expect.is_plain();
        let racing = self.shared.racing();
        for j in self.share.clone() {
            let id = self.shared.ops.id(j);
            generator.keys.encode(id, &mut self.key);
            if !self.watch.go(j, 1) {
                break;
            }
            let found = self.watch.time(|| session.get(&self.key))?;
            let right = match (found, &racing) {
                (Some(value), Some(racing)) => racing.plausible(generator, id, value),
                (Some(value), None) if plain => generator.values.is(id, 0, value),
                (Some(value), None) => expect.check(generator, id, value),
                (None, _) => !plain && !expect.has(id),
            };
            self.digest = self.digest.wrapping_add(found.map_or(0, digest));
            if !right && self.judge {
                let found = found.map(<[u8]>::len);
                self.wrong_get(found);
            }
            self.step();
        }
        Ok(())
    }

    pub(super) fn mixed(&mut self, session: &mut dyn Session) -> Result<()> {
        let (generator, expect) = (self.shared.generator, self.shared.expect);
        let racing = self.shared.racing().ok_or("a mixed phase without versions")?;
        for j in self.share.clone() {
            let id = self.shared.ops.id(j);
            if self.shared.ops.writes(j) {
                self.fill(id, self.shared.version(j));
                if !self.watch.go(j, 1) {
                    break;
                }
                self.watch.time_part(1, || session.put(&self.key, &self.value))?;
                self.puts += 1;
            } else {
                generator.keys.encode(id, &mut self.key);
                if !self.watch.go(j, 1) {
                    break;
                }
                let found = self.watch.time_part(0, || session.get(&self.key))?;
                let right = found.map_or(!expect.has(id), |v| racing.plausible(generator, id, v));
                if !right && self.judge {
                    let found = found.map(<[u8]>::len);
                    self.wrong_get(found);
                }
            }
            self.step();
        }
        Ok(())
    }

    pub(super) fn seeks(&mut self, session: &mut dyn Session) -> Result<()> {
        // Whether the seek of a key went right: it is found if it is there, and passed if it is not.
        fn seek(cursor: &mut dyn Cursor, key: &[u8]) -> Result<Option<bool>> {
            Ok(cursor.seek(key)?.then(|| cursor.key() == key))
        }
        let fresh = self.shared.background.is_some();
        let mut kept = if fresh { None } else { Some(session.cursor()?) };
        // (A cursor that is kept borrows the session for good, so that the two loops are two.)
        if let Some(cursor) = &mut kept {
            for j in self.share.clone() {
                self.shared.generator.keys.encode(self.shared.ops.id(j), &mut self.key);
                if !self.watch.go(j, 1) {
                    break;
                }
                let found = self.watch.time(|| seek(&mut **cursor, &self.key))?;
                self.judge_seek(j, found, || cursor.key().to_vec());
            }
            return Ok(());
        }
        drop(kept);
        for j in self.share.clone() {
            self.shared.generator.keys.encode(self.shared.ops.id(j), &mut self.key);
            if !self.watch.go(j, 1) {
                break;
            }
            let (cursor, found) = self.watch.time(|| {
                let mut cursor = session.cursor()?;
                let found = seek(&mut *cursor, &self.key)?;
                Ok::<_, String>((cursor, found))
            })?;
            self.judge_seek(j, found, || cursor.key().to_vec());
        }
        Ok(())
    }

    /// Notes a seek of operation `j` that landed where it must not; `found` is whether it landed on its key, if
    /// anywhere, and `at` where.
    #[inline]
    fn judge_seek(&mut self, j: u64, found: Option<bool>, at: impl FnOnce() -> Vec<u8>) {
        if found != Some(true) && self.judge {
            let there = self.shared.expect.has(self.shared.ops.id(j));
            // A key that is not there: all that is known is that what is found lies behind it.
            if there || found.is_some() && at() <= self.key {
                self.wrong.note(|| format!("a seek to {} did not find it", show(&self.key)));
            }
        }
        self.step();
    }
}
