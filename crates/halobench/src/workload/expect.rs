//! What must be in the database: which ids, and which version of each.
//!
//! A key's first value has version 0; an overwrite by operation `j` of the phase numbered `p` has the version
//! `p * 2^40 + j + 1`, so that versions are unique over a run. Threads race, so the survivor of a phase is the last write
//! of *some* thread: a bit an operation says which these are. What was written in one phase (a layer, or two with the
//! background's writers) is an epoch; a later epoch that touched an id makes all earlier values of it old.

use super::values::Read;
use super::{Generator, Ops};
use std::ops::Range;

/// A set of small numbers.
#[derive(Clone, Debug, Default)]
pub struct Bits {
    words: Vec<u64>,
}

impl Bits {
    /// The empty set of numbers below `n`.
    pub fn new(n: u64) -> Bits {
        Bits { words: vec![0; n.div_ceil(64) as usize] }
    }
    /// Whether `i` is in it.
    #[inline]
    pub fn get(&self, i: u64) -> bool {
        self.words.get((i / 64) as usize).is_some_and(|w| w >> (i % 64) & 1 == 1)
    }
    /// Puts `i` in; whether it was not there.
    #[inline]
    pub fn insert(&mut self, i: u64) -> bool {
        let new = !self.get(i);
        self.words[(i / 64) as usize] |= 1 << (i % 64);
        new
    }
    /// Takes `i` out.
    pub fn remove(&mut self, i: u64) {
        self.words[(i / 64) as usize] &= !(1 << (i % 64));
    }
    /// How many are in it.
    pub fn count(&self) -> u64 {
        self.words.iter().map(|w| u64::from(w.count_ones())).sum()
    }
    /// Bytes of memory held.
    pub fn memory(&self) -> usize {
        self.words.capacity() * 8
    }
}

/// The version below all that the phase numbered `stream` writes.
pub fn base_version(stream: u64) -> u64 {
    stream << 40
}

/// The versions of a phase's writes: of operation `j`, `base + j + 1`.
#[derive(Clone, Copy, Debug)]
pub struct Versions {
    /// The version below the first.
    pub base: u64,
    /// How many operations there are.
    pub count: u64,
}

impl Versions {
    /// Those of `count` operations of the phase numbered `stream`.
    pub fn new(stream: u64, count: u64) -> Versions {
        Versions { base: base_version(stream), count }
    }

    /// The operation that writes `version`, if one does.
    #[inline]
    pub fn operation(&self, version: u64) -> Option<u64> {
        let j = version.wrapping_sub(self.base + 1);
        (j < self.count).then_some(j)
    }
}

/// The writes of one phase, or of its background.
#[derive(Clone, Debug)]
struct Layer {
    versions: Versions,
    /// Operations that are some thread's last write to their id.
    last: Bits,
}

/// What was written at the same time.
#[derive(Clone, Debug)]
struct Epoch {
    layers: Vec<Layer>,
    /// Ids written.
    touched: Bits,
}

/// The expected state.
#[derive(Clone, Debug)]
pub struct Expect {
    n: u64,
    present: Bits,
    epochs: Vec<Epoch>,
}

impl Expect {
    /// An empty database, for ids below `n`.
    pub fn new(n: u64) -> Expect {
        Expect { n, present: Bits::new(n), epochs: Vec::new() }
    }

    /// The ids there may be.
    pub fn ids(&self) -> u64 {
        self.n
    }

    /// How many keys there are.
    pub fn count(&self) -> u64 {
        self.present.count()
    }

    /// Whether every key has its first value.
    pub fn is_first(&self) -> bool {
        self.epochs.is_empty()
    }

    /// Whether all ids are present, at version 0.
    pub fn is_plain(&self) -> bool {
        self.is_first() && self.count() == self.n
    }

    /// Whether `id` has a value.
    #[inline]
    pub fn has(&self, id: u64) -> bool {
        self.present.get(id)
    }

    /// Whether all ids below `m` have values.
    pub fn has_all_below(&self, m: u64) -> bool {
        (0..m).all(|id| self.has(id))
    }

    /// The ids that have values.
    pub fn present(&self) -> impl Iterator<Item = u64> {
        (0..self.n).filter(|&id| self.has(id))
    }

    /// `id` was written at version 0.
    pub fn insert(&mut self, id: u64) {
        self.present.insert(id);
        self.forget(id);
    }

    /// `id` was deleted.
    pub fn delete(&mut self, id: u64) {
        self.present.remove(id);
        self.forget(id);
    }

    /// What was written to `id` before is void.
    fn forget(&mut self, id: u64) {
        self.epochs.iter_mut().for_each(|e| e.touched.remove(id));
    }

    /// Begins what is written at the same time, by [`overwrite`](Self::overwrite).
    pub fn begin_epoch(&mut self) {
        self.epochs.push(Epoch { layers: Vec::new(), touched: Bits::new(self.n) });
    }

    /// Of the operations that each thread did, those with an id wrote their versions to it, in this epoch.
    pub fn overwrite(&mut self, versions: Versions, done: &[Range<u64>], id: impl Fn(u64) -> Option<u64>) {
        let mut last = Bits::new(versions.count);
        let Some(epoch) = self.epochs.last_mut() else { return };
        for done in done {
            let mut seen = Bits::new(self.n);
            for j in done.clone().rev() {
                if let Some(id) = id(j)
                    && seen.insert(id)
                {
                    last.insert(j);
                    epoch.touched.insert(id);
                    self.present.insert(id);
                }
            }
        }
        epoch.layers.push(Layer { versions, last });
    }

    /// Whether `value` is what `id` must have now, when nothing is writing.
    pub fn check(&self, generator: &Generator, id: u64, value: &[u8]) -> bool {
        if !self.has(id) {
            return false;
        }
        if self.is_first() {
            return generator.values.is(id, 0, value);
        }
        match generator.values.read(id, value) {
            Read::Wrong => false,
            Read::Unversioned => true,
            Read::Version(v) => self.survives(id, v),
        }
    }

    /// Whether version `v`, if it was written to the present `id`, may be what it has now.
    fn survives(&self, id: u64, v: u64) -> bool {
        // A tag binds the version to the id, so that a version in a layer's range was written to this id and no other.
        for epoch in self.epochs.iter().rev() {
            let written = epoch.layers.iter().find_map(|l| l.versions.operation(v).map(|j| l.last.get(j)));
            match written {
                Some(last) => return last && epoch.touched.get(id),
                None if epoch.touched.get(id) => return false,
                None => {}
            }
        }
        v == 0
    }

    /// Bytes of memory held, roughly.
    pub fn memory(&self) -> usize {
        let epoch = |e: &Epoch| e.touched.memory() + e.layers.iter().map(|l| l.last.memory()).sum::<usize>();
        self.present.memory() + self.epochs.iter().map(epoch).sum::<usize>()
    }
}

/// What reads may see while writers overwrite.
#[derive(Clone, Copy, Debug)]
pub struct Racing<'a> {
    /// What was there before.
    pub before: &'a Expect,
    /// The writes that go on.
    pub versions: Versions,
}

impl Racing<'_> {
    /// Whether `value` is the one that `id` had before, or one that is being written to it.
    pub fn plausible(&self, generator: &Generator, id: u64, value: &[u8]) -> bool {
        self.seen(generator, id, value, false)
    }

    /// The same, but if this thread has written to the id itself, only what is being written counts.
    pub fn seen(&self, generator: &Generator, id: u64, value: &[u8], written: bool) -> bool {
        match generator.values.read(id, value) {
            Read::Wrong => false,
            Read::Unversioned => true,
            Read::Version(v) if self.versions.operation(v).is_some() => true,
            Read::Version(v) => !written && self.before.has(id) && self.before.survives(id, v),
        }
    }
}

/// What each thread did, from how many operations.
pub fn done(ops: &Ops, counts: &[u64]) -> Vec<Range<u64>> {
    let share = |(t, &count): (usize, &u64)| {
        let start = ops.share(t, counts.len()).start;
        start..start + count
    };
    counts.iter().enumerate().map(share).collect()
}

#[cfg(test)]
mod tests {
    use super::super::{DataSet, Encoding, Order, ValueKind};
    use super::*;

    fn generator() -> Generator {
        DataSet {
            n: 50,
            encoding: Encoding::Hashed,
            key_len: 16,
            value_len: 20,
            value_kind: ValueKind::Half,
            seed: 3,
        }
        .generator()
        .unwrap()
    }

    fn value(generator: &Generator, id: u64, version: u64) -> Vec<u8> {
        let mut value = vec![0; 20];
        generator.values.fill(id, version, &mut value);
        value
    }

    #[test]
    fn the_last_write_of_some_thread_is_expected_and_no_other() {
        let generator = generator();
        // The second thread was stopped early.
        for counts in [[200, 200], [200, 37]] {
            let ops = Ops::new(Order::Uniform, 50, 400, 3, 5);
            let mut expect = Expect::new(50);
            expect.begin_epoch();
            let shares = done(&ops, &counts);
            expect.overwrite(Versions::new(5, 400), &shares, |j| Some(ops.id(j)));
            for j in 0..400 {
                let id = ops.id(j);
                let share = &shares[(j / 200) as usize];
                let last = share.contains(&j) && (j + 1..share.end).all(|k| ops.id(k) != id);
                let found = value(&generator, id, base_version(5) + j + 1);
                assert_eq!(expect.check(&generator, id, &found), last, "operation {j}");
                assert!(!expect.has(id) || !expect.check(&generator, id, &value(&generator, id, 0)));
            }
            let written = shares.into_iter().flatten().map(|j| ops.id(j));
            assert_eq!(expect.count(), written.collect::<std::collections::HashSet<_>>().len() as u64);
        }
    }

    #[test]
    fn a_later_phase_makes_earlier_values_old() {
        let generator = generator();
        let mut expect = Expect::new(50);
        (0..50).for_each(|id| expect.insert(id));
        let first = |id| value(&generator, id, 0);
        let of = |phase, id| value(&generator, id, base_version(phase) + id + 1);
        assert!(expect.check(&generator, 7, &first(7)));
        // Phase 1 writes the ids below 30, phase 2 those from 20 to 39 at once with its background, which has 25 to 49.
        expect.begin_epoch();
        expect.overwrite(Versions::new(1, 30), &[0..30], Some);
        expect.begin_epoch();
        expect.overwrite(Versions::new(2, 40), &[20..40], Some);
        expect.overwrite(Versions::new(99, 50), &[25..50], Some);
        let right = |expect: &Expect, id| {
            [first(id), of(1, id), of(2, id), of(99, id)].map(|v| expect.check(&generator, id, &v))
        };
        assert_eq!(right(&expect, 10), [false, true, false, false]);
        assert_eq!(right(&expect, 22), [false, false, true, false]);
        assert_eq!(right(&expect, 27), [false, false, true, true]);
        assert_eq!(right(&expect, 45), [false, false, false, true]);
        let racing = Racing { before: &expect, versions: Versions::new(7, 50) };
        assert!(racing.plausible(&generator, 22, &of(7, 22)));
        assert!(racing.plausible(&generator, 22, &of(2, 22)));
        assert!(!racing.plausible(&generator, 22, &of(1, 22)));
        assert!(!racing.seen(&generator, 22, &of(2, 22), true));
        // Deleted, and written anew.
        expect.delete(27);
        assert_eq!(right(&expect, 27), [false; 4]);
        expect.insert(27);
        assert_eq!(right(&expect, 27), [true, false, false, false]);
    }
}
