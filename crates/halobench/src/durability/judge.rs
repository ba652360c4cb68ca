//! The judge: compares what is left after a kill with what was acknowledged.
//!
//! It is told, for each thread, the number acknowledged last and the number begun last, and every entry of the
//! database. Numbers are never used twice, so an entry tells which commit it is of. What an earlier check has seen is
//! the base of the next one: a loss is counted once.

use super::ledger::Progress;
use super::work::{Place, Work};
use std::collections::BTreeSet;

/// Most examples kept.
const EXAMPLES: usize = 4;

/// What one check found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// Commits acknowledged since the check before.
    pub acked: u64,
    /// Acknowledged commits that are gone, though nothing newer replaced them. Those that an earlier check had seen
    /// count too.
    pub lost: u64,
    /// Of the lost ones, those that are gone although the same thread's newer commits are there: what survived is no
    /// prefix of what was committed.
    pub holes: u64,
    /// Batches of which only a part is there.
    pub torn: u64,
    /// Entries that nobody wrote: an unknown key, a value that is not its commit's, a commit that never began, one key
    /// twice or out of order.
    pub wrong: u64,
    /// The first few of them, in words.
    pub examples: Vec<String>,
}

impl Findings {
    fn say(&mut self, words: String) {
        if self.examples.len() < EXAMPLES {
            self.examples.push(words);
        }
    }
}

/// What is known of an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Seen {
    /// No such key.
    Nothing,
    /// The value of that commit.
    Commit(u64),
    /// A value nobody wrote.
    Garbage,
}

/// Knows what must be in a database.
pub struct Judge {
    work: Work,
    /// By id, what the check before saw.
    seen: Vec<Seen>,
    /// By thread, the number begun last before the check before.
    base: Vec<u64>,
}

impl Judge {
    /// The judge of an empty database.
    pub fn new(work: Work) -> Judge {
        let (ids, threads) = (work.ids() as usize, work.shape.threads as usize);
        Judge { work, seen: vec![Seen::Nothing; ids], base: vec![0; threads] }
    }

    /// The number a thread's next commit goes behind.
    pub fn base(&self, thread: u64) -> u64 {
        self.base[thread as usize]
    }

    /// Commits acknowledged since the check before.
    pub fn acked(&self, progress: &[Progress]) -> u64 {
        progress.iter().zip(&self.base).map(|(p, base)| p.acked.saturating_sub(*base)).sum()
    }

    /// Judges the entries of a dump (see [`super::task::Task::dump`]).
    pub fn check(&mut self, progress: &[Progress], dump: &[u8]) -> Findings {
        let mut found = Findings { acked: self.acked(progress), ..Findings::default() };
        let seen = self.read(progress, dump, &mut found);
        for thread in 0..self.work.shape.threads {
            self.thread(thread, progress[thread as usize], &seen, &mut found);
        }
        self.seen = seen;
        for (base, p) in self.base.iter_mut().zip(progress) {
            *base = (*base).max(p.started);
        }
        found
    }

    /// What each id holds.
    fn read(&self, progress: &[Progress], mut dump: &[u8], found: &mut Findings) -> Vec<Seen> {
        let mut seen = vec![Seen::Nothing; self.seen.len()];
        let mut last: Option<&[u8]> = None;
        let mut right = Vec::new();
        while !dump.is_empty() {
            let Some((key, value, rest)) = entry(dump) else {
                found.wrong += 1;
                found.say("the dump ends inside an entry".into());
                break;
            };
            dump = rest;
            let shown = String::from_utf8_lossy(key);
            if last.is_some_and(|last| last >= key) {
                found.wrong += 1;
                found.say(format!("key {shown} is not behind the one before it"));
            }
            last = Some(key);
            let Some(place) = self.work.place_of(key) else {
                found.wrong += 1;
                found.say(format!("key {shown} was never written"));
                continue;
            };
            let id = self.work.id(place);
            let number = value.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
            let begun = progress[place.thread as usize].started;
            self.work.value(id, number, &mut right);
            let written = number >= 1
                && number <= begun
                && number % self.work.shape.slots == place.slot
                && !self.work.removes(number, place.index);
            seen[id as usize] = if written && right == value {
                Seen::Commit(number)
            } else {
                found.wrong += 1;
                found.say(format!(
                    "key {shown} (thread {}, slot {}, index {}) has {} bytes that nobody wrote",
                    place.thread,
                    place.slot,
                    place.index,
                    value.len()
                ));
                Seen::Garbage
            };
        }
        seen
    }

    fn thread(&self, thread: u64, progress: Progress, seen: &[Seen], found: &mut Findings) {
        let base = self.base(thread);
        let work = &self.work;
        let of = |all: &[Seen], slot, index| all[work.id(Place { thread, slot, index }) as usize];
        // The newest commit of this thread that left anything.
        let mut newest = 0;
        for slot in 0..work.shape.slots {
            for index in 0..work.keys_in(slot) {
                if let Seen::Commit(n) = of(seen, slot, index) {
                    newest = newest.max(n);
                }
            }
        }
        for slot in 0..work.shape.slots {
            let keys = || (0..work.keys_in(slot)).map(|index| of(seen, slot, index));
            let before = || (0..work.keys_in(slot)).map(|index| of(&self.seen, slot, index));
            if keys().any(|s| s == Seen::Garbage) {
                continue; // Counted as wrong; which commit it was of cannot be told.
            }
            // A slot is whole if it holds exactly what one commit leaves, or nothing.
            let first = number(of(seen, slot, 0));
            let whole = keys().enumerate().all(|(index, s)| {
                let gone = first == 0 || work.removes(first, index as u64);
                s == if gone { Seen::Nothing } else { Seen::Commit(first) }
            });
            if !whole && !keys().eq(before()) {
                found.torn += 1;
                let held: BTreeSet<u64> = keys().map(number).collect();
                found.say(format!(
                    "a batch of thread {thread} is torn: slot {slot} holds parts of commits {held:?}"
                ));
            }
            let was = number(of(&self.seen, slot, 0));
            // Commits since the check before that are not to be seen, up to a number.
            let missing = |upto| work.commits(slot, first.max(base), upto) + u64::from(first < was);
            let lost = missing(progress.acked);
            if lost > 0 {
                found.lost += lost;
                let holes = if newest > first { missing(newest.min(progress.acked)) } else { 0 };
                found.holes += holes;
                if holes > 0 {
                    found.say(format!(
                        "thread {thread}: commit {} is gone, and commit {newest} is there",
                        work.newest(slot, newest.min(progress.acked)).max(was)
                    ));
                }
            }
        }
    }
}

fn number(seen: Seen) -> u64 {
    match seen {
        Seen::Commit(n) => n,
        Seen::Nothing | Seen::Garbage => 0,
    }
}

/// Splits off an entry.
fn entry(dump: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let (lengths, rest) = dump.split_first_chunk::<8>()?;
    let lengths = u64::from_le_bytes(*lengths);
    let (key, rest) = rest.split_at_checked((lengths & 0xffff_ffff) as usize)?;
    let (value, rest) = rest.split_at_checked((lengths >> 32) as usize)?;
    Some((key, value, rest))
}

#[cfg(test)]
mod tests {
    use super::super::task::Shape;
    use super::*;
    use std::collections::BTreeMap;

    type State = BTreeMap<Vec<u8>, Vec<u8>>;

    fn work() -> Work {
        Work::new(Shape { threads: 2, slots: 8, batch: 3, seed: 1 }).unwrap()
    }

    /// Applies commits of a thread.
    fn apply(state: &mut State, thread: u64, numbers: impl IntoIterator<Item = u64>) {
        let work = work();
        for number in numbers {
            let slot = number % 8;
            for index in 0..work.keys_in(slot) {
                let id = work.id(Place { thread, slot, index });
                let mut value = Vec::new();
                work.value(id, number, &mut value);
                if work.removes(number, index) {
                    state.remove(work.key(id).as_slice());
                } else {
                    state.insert(work.key(id).to_vec(), value);
                }
            }
        }
    }

    fn dump(state: &State) -> Vec<u8> {
        let mut out = Vec::new();
        for (k, v) in state {
            out.extend_from_slice(&(k.len() as u64 | (v.len() as u64) << 32).to_le_bytes());
            out.extend_from_slice(k);
            out.extend_from_slice(v);
        }
        out
    }

    fn key(thread: u64, slot: u64, index: u64) -> Vec<u8> {
        let work = work();
        work.key(work.id(Place { thread, slot, index })).to_vec()
    }

    fn at(acked: u64, started: u64) -> Progress {
        Progress { started, acked }
    }

    /// Judges a state in which thread 0 acknowledged 20 commits, behind a check that saw 10, and thread 1 none.
    fn judged(numbers: impl IntoIterator<Item = u64>, spoil: impl FnOnce(&mut State)) -> Findings {
        let mut judge = Judge::new(work());
        let mut state = State::new();
        apply(&mut state, 0, 1..=10);
        let first = judge.check(&[at(10, 10), at(0, 0)], &dump(&state));
        assert_eq!(first, Findings { acked: 10, ..Findings::default() });
        assert_eq!(judge.base(0), 10);
        apply(&mut state, 0, numbers);
        spoil(&mut state);
        let found = judge.check(&[at(20, 21), at(0, 1)], &dump(&state));
        assert_eq!(found.acked, 10);
        found
    }

    fn counts(f: &Findings) -> (u64, u64, u64, u64) {
        (f.lost, f.holes, f.torn, f.wrong)
    }

    #[test]
    fn all_that_was_acknowledged_and_at_most_the_one_in_flight() {
        assert_eq!(counts(&judged(11..=20, |_| {})), (0, 0, 0, 0));
        assert_eq!(counts(&judged(11..=21, |_| {})), (0, 0, 0, 0));
        // Commit 22 never began: each of its keys is wrong.
        assert_eq!(counts(&judged(11..=22, |_| {})).3, 1);
        let other = judged(11..=20, |s| apply(s, 1, 1..=1));
        assert_eq!(counts(&other), (0, 0, 0, 0), "the other thread's first commit was in flight");
    }

    #[test]
    fn a_lost_end_is_a_prefix() {
        assert_eq!(counts(&judged(11..=17, |_| {})), (3, 0, 0, 0));
        assert_eq!(counts(&judged([], |_| {})), (10, 0, 0, 0), "two laps of some slots");
    }

    #[test]
    fn a_lost_commit_in_front_of_others_is_a_hole() {
        let found = judged((11..=20).filter(|&n| n != 15), |_| {});
        assert_eq!(counts(&found), (1, 1, 0, 0));
        assert_eq!(found.examples, ["thread 0: commit 15 is gone, and commit 20 is there"]);
        // 12 is replaced by 20 anyway.
        assert_eq!(counts(&judged((11..=20).filter(|&n| n != 12), |_| {})), (0, 0, 0, 0));
        // The commit in flight is there, an acknowledged one is not.
        assert_eq!(counts(&judged([11, 12, 13, 14, 15, 16, 17, 18, 19, 21], |_| {})), (1, 1, 0, 0));
    }

    #[test]
    fn what_a_check_saw_must_stay() {
        let found = judged([], |s| {
            apply(s, 0, 11..=20);
            s.remove(&key(0, 6, 0)); // commit 14; 6 had been there
        });
        assert_eq!(counts(&found), (2, 2, 0, 0));
    }

    #[test]
    fn a_part_of_a_batch_is_torn() {
        // 19 goes to slot 3, on an even lap: three puts. 11 had removed the last.
        let found = judged(11..=20, |s| drop(s.remove(&key(0, 3, 2))));
        assert_eq!(counts(&found), (0, 0, 1, 0));
        assert!(found.examples[0].contains("slot 3 holds parts of commits {0, 19}"), "{:?}", found.examples);
        // 13 goes to slot 5 and removes its last key, which 5 had put.
        let mut old = State::new();
        apply(&mut old, 0, 5..=5);
        let found = judged(11..=20, |s| {
            s.insert(key(0, 5, 2), old[&key(0, 5, 2)].clone());
        });
        assert_eq!(counts(&found), (0, 0, 1, 0));
        // The one in flight must be whole or absent too.
        let found = judged(11..=21, |s| drop(s.remove(&key(0, 5, 1))));
        assert_eq!(counts(&found), (0, 0, 1, 0));
    }

    #[test]
    fn entries_nobody_wrote_are_wrong() {
        let flip = judged(11..=20, |s| s.get_mut(&key(0, 4, 0)).unwrap()[12] ^= 1);
        assert_eq!(counts(&flip), (0, 0, 0, 1));
        let cut = judged(11..=20, |s| s.get_mut(&key(0, 4, 0)).unwrap().truncate(12));
        assert_eq!(counts(&cut), (0, 0, 0, 1));
        let empty = judged(11..=20, |s| s.get_mut(&key(0, 4, 0)).unwrap().clear());
        assert_eq!(counts(&empty), (0, 0, 0, 1));
        let stranger = judged(11..=20, |s| drop(s.insert(b"stranger".to_vec(), vec![])));
        assert_eq!(counts(&stranger), (0, 0, 0, 1));
        let swapped = judged(11..=20, |s| {
            let other = s[&key(0, 3, 0)].clone();
            s.insert(key(0, 4, 0), other);
        });
        assert_eq!(counts(&swapped), (0, 0, 0, 1));
    }

    #[test]
    fn a_dump_out_of_order_or_cut_is_wrong() {
        let mut judge = Judge::new(work());
        let mut state = State::new();
        apply(&mut state, 0, 2..=2);
        let one = dump(&state);
        let progress = [at(2, 2), at(0, 0)];
        assert_eq!(judge.check(&progress, &[&one[..], &one[..]].concat()).wrong, 1);
        assert_eq!(judge.check(&progress, &one[..one.len() - 1]).wrong, 1);
    }

    #[test]
    fn a_loss_is_counted_once() {
        let mut judge = Judge::new(work());
        let mut state = State::new();
        apply(&mut state, 0, 1..=3);
        assert_eq!(judge.check(&[at(9, 9), at(0, 0)], &dump(&state)).lost, 6);
        assert_eq!(judge.check(&[at(9, 9), at(0, 0)], &dump(&state)), Findings::default());
    }
}
