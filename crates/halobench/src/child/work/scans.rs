//! Ranges and passes, forward and backward.

use super::super::check::show;
use super::Worker;
use super::previous::Previous;
use crate::engine::{Cursor, Result, Session};
use crate::workload::digest;

/// Of a pass whose values have no digest to be compared with, one entry in so many has its value checked.
const SAMPLE: u64 = 16;

/// What a walk from a key over some entries found.
pub(super) struct Walk {
    /// Entries.
    pub count: u32,
    /// Whether the first one has the key itself.
    pub exact: bool,
    /// Whether their keys were in order.
    pub ordered: bool,
    /// Of their values.
    pub digest: u64,
}

/// Seeks `key` and goes on to up to `size` entries. `previous` keeps the last one's key.
#[inline]
pub(super) fn walk(
    cursor: &mut dyn Cursor,
    key: &[u8],
    size: u32,
    backward: bool,
    previous: &mut Previous,
) -> Result<Walk> {
    let mut more = if backward { cursor.seek_back(key)? } else { cursor.seek(key)? };
    let exact = more && cursor.key() == key;
    let mut walk = Walk { count: 0, exact, ordered: true, digest: 0 };
    previous.clear();
    while more {
        walk.ordered &= previous.precedes(cursor.key(), backward);
        walk.digest = walk.digest.wrapping_add(digest(cursor.value()?));
        walk.count += 1;
        more = walk.count < size && if backward { cursor.prev()? } else { cursor.next()? };
    }
    Ok(walk)
}

impl Worker<'_> {
    pub(super) fn ranges(&mut self, session: &mut dyn Session) -> Result<()> {
        let (size, backward) = (self.shared.phase.range_size, self.shared.phase.backward);
        let mut previous = Previous::default();
        let fresh = self.shared.background.is_some();
        let mut kept = if fresh { None } else { Some(session.cursor()?) };
        if let Some(cursor) = &mut kept {
            for j in self.share.clone() {
                self.shared.generator.keys.encode(self.shared.ops.id(j), &mut self.key);
                if !self.watch.go(j, 1) {
                    break;
                }
                let walked =
                    self.watch.time(|| walk(&mut **cursor, &self.key, size, backward, &mut previous))?;
                self.judge_range(j, &walked, &mut previous, &mut **cursor)?;
            }
            return Ok(());
        }
        drop(kept);
        for j in self.share.clone() {
            self.shared.generator.keys.encode(self.shared.ops.id(j), &mut self.key);
            if !self.watch.go(j, 1) {
                break;
            }
            let (mut cursor, walked) = self.watch.time(|| {
                let mut cursor = session.cursor()?;
                let walked = walk(&mut *cursor, &self.key, size, backward, &mut previous)?;
                Ok::<_, String>((cursor, walked))
            })?;
            self.judge_range(j, &walked, &mut previous, &mut *cursor)?;
        }
        Ok(())
    }

    /// Notes the range of operation `j` if it is wrong. The cursor is where the range ended, if that was not the end of
    /// all keys.
    #[inline]
    fn judge_range(
        &mut self,
        j: u64,
        walk: &Walk,
        previous: &mut Previous,
        cursor: &mut dyn Cursor,
    ) -> Result<()> {
        self.digest = self.digest.wrapping_add(walk.digest);
        if self.judge {
            let ranges = self.shared.ranges.ok_or("a range phase without the ends of its ranges")?;
            let generator = self.shared.generator;
            let size = self.shared.phase.range_size;
            // In order, from the right key, the right number, to the right key with its value: all were there.
            let last = ranges.last(j);
            let right = walk.ordered
                && walk.exact == self.shared.expect.has(self.shared.ops.id(j))
                && walk.count == ranges.count(j)
                && (walk.count == 0 || generator.keys.decode(previous.key()) == Some(last))
                && (walk.count < size || self.right_value(last, cursor.value()?));
            if !right {
                self.wrong.note(|| format!("a range of {size} from {} was wrong", show(&self.key)));
            }
        }
        self.step();
        Ok(())
    }

    /// Whether `id` may have this value.
    fn right_value(&self, id: u64, value: &[u8]) -> bool {
        match self.shared.racing() {
            Some(racing) => racing.plausible(self.shared.generator, id, value),
            None => self.shared.expect.check(self.shared.generator, id, value),
        }
    }

    pub(super) fn iterate(&mut self, session: &mut dyn Session) -> Result<()> {
        let mut cursor = session.cursor()?;
        let (generator, backward) = (self.shared.generator, self.shared.phase.backward);
        let value_len = generator.values.len();
        let expected = self.shared.expect.count();
        let sample = self.shared.background.is_some() || !self.shared.expect.is_first();
        let mut previous = Previous::default();
        let mut more = if backward { cursor.seek_last()? } else { cursor.seek_first()? };
        let mut stopped = false;
        // The engine that stores nothing never says that it is done.
        while more && (self.judge || self.done < expected) {
            if !previous.precedes(cursor.key(), backward) && self.judge {
                self.wrong.note(|| format!("a pass returned {} out of order", show(cursor.key())));
            }
            let value = cursor.value()?;
            let mut right = value.len() == value_len;
            self.digest = self.digest.wrapping_add(digest(value));
            if sample && self.done.is_multiple_of(SAMPLE) {
                let id = generator.keys.decode(previous.key());
                right &= id.is_some_and(|id| self.right_value(id, value));
            }
            if !right && self.judge {
                self.wrong.note(|| format!("{} has a wrong or old value", show(previous.key())));
            }
            self.step();
            if !self.watch.go(self.done, 1) {
                stopped = true;
                break;
            }
            more = if backward { cursor.prev()? } else { cursor.next()? };
        }
        let count = self.done;
        if self.judge && !stopped && count != expected {
            self.wrong.note(|| format!("a pass found {count} keys where {expected} are expected"));
        }
        Ok(())
    }
}
