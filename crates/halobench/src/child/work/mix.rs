//! A mix of operations, each drawn by its share.
//!
//! While threads write, a read may return what was there before or any version that the phase writes to that key, but behind
//! a thread's own put not what was there before. Scans are judged by their order and by the loaded keys, which are always
//! there; what the mix inserts may or may not be seen, except that a thread's gets must find its own inserts.

use super::super::check::show;
use super::Worker;
use super::previous::Previous;
use super::scans::{Walk, walk};
use crate::engine::{Cursor, Result, Session};
use crate::workload::{Bits, Mixed, Racing, Sorted, Turn};

/// One scan in so many is gone over again, untimed, and every entry checked.
const INSPECT: u64 = 64;

/// What judges the answers of one thread.
struct Judge<'a> {
    mixed: &'a Mixed,
    racing: Racing<'a>,
    /// Loaded ids that this thread has overwritten.
    mine: Bits,
    /// Inserted ids lie below here.
    end: u64,
}

impl Worker<'_> {
    pub(super) fn mix(&mut self, session: &mut dyn Session) -> Result<()> {
        let shared = self.shared;
        let mixed = shared.mixed.ok_or("a mix without its operations")?;
        let racing = shared.racing().ok_or("a mix without versions")?;
        let inserted = mixed.inserts(0..self.share.start);
        let end = mixed.first() + inserted + mixed.inserts(self.share.start..shared.ops.count());
        let mut judge = Judge { mixed, racing, mine: Bits::new(mixed.ops().ids()), end };
        let (mut next, mut own) = (mixed.first() + inserted, 0);
        let mut previous = Previous::default();
        for j in self.share.clone() {
            let turn = mixed.turn(j);
            let id = match turn {
                Turn::Insert => next,
                Turn::Read => mixed.read_id(j, own, next),
                _ => mixed.id(j),
            };
            match turn {
                Turn::Insert => self.fill(id, 0),
                Turn::Update | Turn::Modify => self.fill(id, shared.version(j)),
                Turn::Read | Turn::Scan => shared.generator.keys.encode(id, &mut self.key),
            }
            if !self.watch.go(j, 1) {
                break;
            }
            let part = turn as usize;
            match turn {
                Turn::Insert | Turn::Update => {
                    self.watch.time_part(part, || session.put(&self.key, &self.value))?;
                    self.puts += 1;
                }
                Turn::Read => {
                    let found = self.watch.time_part(part, || session.get(&self.key))?;
                    let right = found.is_some_and(|v| self.right(&judge, id, v));
                    let found = found.map(<[u8]>::len);
                    self.judge_get(right, found);
                }
                Turn::Modify => {
                    // What was read is judged between the get and the put, within the time: it is lent until then.
                    let (generator, mine) = (shared.generator, judge.mine.get(id));
                    let (found, right) = self.watch.time_part(part, || {
                        let found = session.get(&self.key)?;
                        let right = found.is_some_and(|v| racing.seen(generator, id, v, mine));
                        let found = found.map(<[u8]>::len);
                        session.put(&self.key, &self.value)?;
                        Ok::<_, String>((found, right))
                    })?;
                    self.puts += 1;
                    self.judge_get(right, found);
                }
                Turn::Scan => {
                    let (size, backward) = (mixed.scan_len(j), shared.phase.backward);
                    let (mut cursor, walked) = self.watch.time_part(part, || {
                        let mut cursor = session.cursor()?;
                        let walked = walk(&mut *cursor, &self.key, size, backward, &mut previous)?;
                        Ok::<_, String>((cursor, walked))
                    })?;
                    let whole = self.done.is_multiple_of(INSPECT);
                    self.judge_scan(&judge, id, size, &walked, &mut previous, &mut *cursor, whole)?;
                }
            }
            match turn {
                Turn::Insert => (next, own) = (next + 1, own + 1),
                Turn::Update | Turn::Modify => {
                    judge.mine.insert(id);
                }
                _ => {}
            }
            self.step();
        }
        Ok(())
    }

    /// Whether `id` may have this value now.
    fn right(&self, judge: &Judge<'_>, id: u64, value: &[u8]) -> bool {
        let generator = self.shared.generator;
        if id < judge.mixed.ops().ids() {
            return judge.racing.seen(generator, id, value, judge.mine.get(id));
        }
        if (judge.mixed.first()..judge.end).contains(&id) {
            return generator.values.is(id, 0, value);
        }
        // An earlier mix inserted it.
        judge.racing.plausible(generator, id, value)
    }

    #[inline]
    fn judge_get(&mut self, right: bool, found: Option<usize>) {
        if !right && self.judge {
            self.wrong_get(found);
        }
    }

    /// Notes a scan from the loaded `id` if it cannot be right.
    #[expect(clippy::too_many_arguments, reason = "one call; what a scan was asked for and what it found")]
    fn judge_scan(
        &mut self,
        judge: &Judge<'_>,
        id: u64,
        size: u32,
        walk: &Walk,
        previous: &mut Previous,
        cursor: &mut dyn Cursor,
        whole: bool,
    ) -> Result<()> {
        if !self.judge {
            return Ok(());
        }
        let sorted = self.shared.sorted.ok_or("a mix that scans without the order of its keys")?;
        let last = self.shared.generator.keys.decode(previous.key());
        let right = walk.ordered
            && walk.exact
            && last.is_some_and(|last| {
                let between = between(sorted, id, last, self.shared.phase.backward);
                // No known key was left out, and if the scan ended early, it was at the end of all keys.
                last < self.shared.generator.set.n
                    && between <= u64::from(walk.count)
                    && (walk.count == size || between == to_end(sorted, id, self.shared.phase.backward))
            })
            && (walk.count < size || last.is_some_and(|last| self.right_known(judge, last, cursor)))
            && (!whole || self.inspect(judge, id, walk, previous, cursor)?);
        if !right {
            self.wrong.note(|| format!("a scan of {size} from {} was wrong", show(&self.key)));
        }
        Ok(())
    }

    fn right_known(&self, judge: &Judge<'_>, id: u64, cursor: &mut dyn Cursor) -> bool {
        cursor.value().is_ok_and(|value| self.right(judge, id, value))
    }

    /// Goes over a scan again, on the same view: every key is one that may be there, none that must be is left out, and
    /// every value is one that its key may have.
    fn inspect(
        &self,
        judge: &Judge<'_>,
        id: u64,
        walk: &Walk,
        previous: &mut Previous,
        cursor: &mut dyn Cursor,
    ) -> Result<bool> {
        let backward = self.shared.phase.backward;
        let sorted = self.shared.sorted.ok_or("a mix that scans without the order of its keys")?;
        let mut more = if backward { cursor.seek_back(&self.key)? } else { cursor.seek(&self.key)? };
        let (mut count, mut known) = (0, 0);
        let mut last = None;
        let keys = &self.shared.generator.keys;
        previous.clear();
        while more {
            if !previous.precedes(cursor.key(), backward) {
                return Ok(false);
            }
            let Some(at) = keys.decode(cursor.key()) else { return Ok(false) };
            if at >= self.shared.generator.set.n || !self.right(judge, at, cursor.value()?) {
                return Ok(false);
            }
            known += u64::from(self.shared.expect.has(at));
            last = Some(at);
            count += 1;
            more = count < walk.count && if backward { cursor.prev()? } else { cursor.next()? };
        }
        Ok(count == walk.count && last.is_some_and(|last| known == between(sorted, id, last, backward)))
    }
}

/// How many of the known keys lie from `id`'s to `last`'s, both counted if they are known. `id` is.
fn between(sorted: &Sorted, id: u64, last: u64, backward: bool) -> u64 {
    let (from, to) = if backward { (last, id) } else { (id, last) };
    let to_end = sorted.place(to) + u64::from(sorted.knows(to));
    to_end.saturating_sub(sorted.place(from))
}

/// How many of the known keys lie from `id`'s to the end of all.
fn to_end(sorted: &Sorted, id: u64, backward: bool) -> u64 {
    if backward { sorted.place(id) + 1 } else { sorted.count() - sorted.place(id) }
}
