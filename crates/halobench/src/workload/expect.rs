//! What must be in the database: which ids, and which version of each.
//!
//! Writes that visit each id once have version 0. In a phase that may write an id repeatedly (uniform, zipfian,
//! mixed), operation `j` writes version `j + 1`. Threads race, so the survivor is the last write of *some* thread: two
//! bits an operation say which these are, and a value's tag says which version it is.

use super::values::Read;
use super::{Generator, Ops};

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
    pub fn get(&self, i: u64) -> bool {
        self.words.get((i / 64) as usize).is_some_and(|w| w >> (i % 64) & 1 == 1)
    }
    /// Puts `i` in; whether it was not there.
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
}

/// The repeated writes of one phase.
#[derive(Clone, Debug)]
struct Overwrites {
    ops: Ops,
    /// Operations that are some thread's last write to their id.
    last: Bits,
    /// Ids written.
    touched: Bits,
}

/// The expected state.
#[derive(Clone, Debug)]
pub struct Expect {
    n: u64,
    present: Bits,
    over: Option<Overwrites>,
}

impl Expect {
    /// An empty database, for ids below `n`.
    pub fn new(n: u64) -> Expect {
        Expect { n, present: Bits::new(n), over: None }
    }

    /// How many keys there are.
    pub fn count(&self) -> u64 {
        self.present.count()
    }

    /// Whether all ids are present, at version 0.
    pub fn is_plain(&self) -> bool {
        self.over.is_none() && self.count() == self.n
    }

    /// Whether `id` has a value.
    pub fn has(&self, id: u64) -> bool {
        self.present.get(id)
    }

    /// Every operation wrote version 0.
    pub fn write_once(&mut self, ops: &Ops) {
        for j in 0..ops.count() {
            self.present.insert(ops.id(j));
        }
    }

    /// Operations wrote version `j + 1`; in a mixed phase, only those whose coin says so.
    pub fn overwrite(&mut self, ops: &Ops, threads: usize, mixed: bool) -> Result<(), String> {
        if self.over.is_some() {
            return Err("only one phase of a run may write keys repeatedly".into());
        }
        let mut over =
            Overwrites { ops: ops.clone(), last: Bits::new(ops.count()), touched: Bits::new(self.n) };
        for t in 0..threads {
            let mut seen = Bits::new(self.n);
            for j in ops.share(t, threads).rev() {
                let id = ops.id(j);
                if (!mixed || ops.writes(j)) && seen.insert(id) {
                    over.last.insert(j);
                    over.touched.insert(id);
                    self.present.insert(id);
                }
            }
        }
        self.over = Some(over);
        Ok(())
    }

    /// Every operation deleted.
    pub fn delete(&mut self, ops: &Ops) {
        (0..ops.count()).for_each(|j| self.present.remove(ops.id(j)));
    }

    /// Whether `value` is what `id` must have now, when nothing is writing.
    pub fn check(&self, generator: &Generator, id: u64, value: &[u8]) -> bool {
        if !self.has(id) {
            return false;
        }
        let Some(over) = &self.over else { return generator.values.is(id, 0, value) };
        match generator.values.read(id, value) {
            Read::Wrong => false,
            Read::Unversioned => true,
            Read::Version(0) => !over.touched.get(id),
            Read::Version(v) => over.last.get(v - 1) && over.ops.id(v - 1) == id,
        }
    }

    /// Bytes of memory held, roughly.
    pub fn memory(&self) -> usize {
        let over = self
            .over
            .as_ref()
            .map_or(0, |o| o.ops.memory() + (o.last.words.len() + o.touched.words.len()) * 8);
        self.present.words.len() * 8 + over
    }
}

/// Whether `value` is one that a mixed phase over a loaded set may show for `id` while it runs: the loaded one, or one
/// that some operation of the phase writes to `id`.
pub fn plausible(generator: &Generator, ops: &Ops, id: u64, value: &[u8]) -> bool {
    match generator.values.read(id, value) {
        Read::Wrong => false,
        Read::Unversioned | Read::Version(0) => true,
        Read::Version(v) => v <= ops.count() && ops.id(v - 1) == id && ops.writes(v - 1),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{DataSet, Encoding, Order, ValueKind};
    use super::*;

    #[test]
    fn the_last_write_of_some_thread_is_expected_and_no_other() {
        let set = DataSet {
            n: 50,
            encoding: Encoding::Hashed,
            key_len: 16,
            value_len: 20,
            value_kind: ValueKind::Half,
            seed: 3,
        };
        let generator = set.generator().unwrap();
        let ops = Ops::new(Order::Uniform, 50, 400, 3, 0);
        let mut expect = Expect::new(50);
        expect.overwrite(&ops, 2, false).unwrap();
        let mut value = vec![0; 20];
        for j in 0..400 {
            let id = ops.id(j);
            let end = if j < 200 { 200 } else { 400 };
            let last_of_thread = (j + 1..end).all(|k| ops.id(k) != id);
            generator.values.fill(id, j + 1, &mut value);
            assert_eq!(expect.check(&generator, id, &value), last_of_thread, "operation {j}");
            generator.values.fill(id, 0, &mut value);
            assert!(!expect.check(&generator, id, &value));
        }
        let distinct: std::collections::HashSet<u64> = (0..400).map(|j| ops.id(j)).collect();
        assert_eq!(expect.count(), distinct.len() as u64);
    }
}
