//! Which keys lie behind which: what the ranges of a phase must see.

#[cfg(test)]
use super::digest;
use super::expect::Expect;
use super::keys::Keys;
use super::ops::Ops;
use super::values::Values;
use std::collections::HashMap;

/// The present ids in the order of their keys. It is made before anything is measured.
#[derive(Clone, Debug)]
pub struct Sorted {
    /// By place; empty where the ids below `count` are there and are in order.
    order: Vec<u32>,
    /// By id: how many present keys are smaller.
    rank: Vec<u32>,
    count: u64,
}

impl Sorted {
    /// The ids that `expect` has.
    pub fn new(keys: &Keys, expect: &Expect) -> Sorted {
        let count = expect.count();
        if keys.in_order() && expect.has_all_below(count) {
            return Sorted { order: Vec::new(), rank: Vec::new(), count };
        }
        let mut all: Vec<(u64, u32)> = (0..expect.ids()).map(|id| (keys.sort_key(id), id as u32)).collect();
        all.sort_unstable();
        let (mut order, mut rank) = (Vec::with_capacity(count as usize), vec![0; all.len()]);
        for (_, id) in all {
            rank[id as usize] = order.len() as u32;
            if expect.has(u64::from(id)) {
                order.push(id);
            }
        }
        Sorted { order, rank, count }
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The place of `id`, or of the next behind it if it is not there.
    #[inline]
    pub fn place(&self, id: u64) -> u64 {
        self.rank.get(id as usize).map_or(id.min(self.count), |&r| u64::from(r))
    }

    /// Whether `id` is one of them.
    #[inline]
    pub fn knows(&self, id: u64) -> bool {
        let place = self.place(id);
        place < self.count && self.id(place) == id
    }

    /// The id at a place below [`count`](Self::count).
    #[inline]
    pub fn id(&self, place: u64) -> u64 {
        self.order.get(place as usize).map_or(place, |&id| u64::from(id))
    }

    /// Places of a range of up to `size` entries from `id` on, or from it back.
    pub fn range(&self, id: u64, size: u64, backward: bool) -> std::ops::Range<u64> {
        let start = self.place(id);
        if backward {
            let end = start + u64::from(self.knows(id));
            end.saturating_sub(size)..end
        } else {
            start..(start + size).min(self.count)
        }
    }

    /// Bytes of memory held.
    pub fn memory(&self) -> usize {
        (self.order.capacity() + self.rank.capacity()) * 4
    }
}

/// Where each range of a phase must end.
#[derive(Clone, Debug)]
pub struct Ranges {
    sorted: Sorted,
    last: Vec<u32>,
    other: HashMap<u64, u32>,
    size: u32,
    backward: bool,
}

impl Ranges {
    /// The ends of ranges of up to `size >= 1` entries that start at the ids of `ops`.
    pub fn new(ops: &Ops, sorted: Sorted, size: u32, backward: bool) -> Ranges {
        let mut other = HashMap::new();
        let last = (0..ops.count())
            .map(|j| {
                let places = sorted.range(ops.id(j), u64::from(size), backward);
                let count = (places.end - places.start) as u32;
                if count < size {
                    other.insert(j, count);
                }
                match (count, backward) {
                    (0, _) => 0,
                    (_, true) => sorted.id(places.start) as u32,
                    (_, false) => sorted.id(places.end - 1) as u32,
                }
            })
            .collect();
        Ranges { sorted, last, other, size, backward }
    }

    /// The id at which operation `j` ends, if it sees any.
    #[inline]
    pub fn last(&self, j: u64) -> u64 {
        u64::from(self.last[j as usize])
    }

    /// Entries that operation `j` sees.
    #[inline]
    pub fn count(&self, j: u64) -> u32 {
        if self.other.is_empty() { self.size } else { self.other.get(&j).copied().unwrap_or(self.size) }
    }

    /// The digest of all values that these operations see, if every present key has its first value.
    pub fn digest(&self, values: &Values, ops: &Ops, done: &[std::ops::Range<u64>]) -> u64 {
        // The sum of the values before each place: a range is then a difference.
        let mut sums = Vec::with_capacity(self.sorted.count() as usize + 1);
        let mut sum = 0u64;
        sums.push(sum);
        for place in 0..self.sorted.count() {
            sum = sum.wrapping_add(values.digest(self.sorted.id(place)));
            sums.push(sum);
        }
        let of = |j| {
            let places = self.sorted.range(ops.id(j), u64::from(self.size), self.backward);
            sums[places.end as usize].wrapping_sub(sums[places.start as usize])
        };
        done.iter().cloned().flatten().map(of).fold(0, u64::wrapping_add)
    }

    /// Bytes of memory held, roughly.
    pub fn memory(&self) -> usize {
        self.sorted.memory() + self.last.capacity() * 4 + self.other.capacity() * 24
    }
}

#[cfg(test)]
mod tests {
    use super::super::{DataSet, Encoding, Order, ValueKind};
    use super::*;
    use std::collections::BTreeMap;

    /// Every third key of some is not there.
    fn check(encoding: Encoding, backward: bool, holes: bool) {
        let set =
            DataSet { n: 300, encoding, key_len: 16, value_len: 20, value_kind: ValueKind::Half, seed: 5 };
        let generator = set.generator().unwrap();
        let ops = Ops::new(Order::Uniform, 300, 200, 5, 0);
        let mut expect = Expect::new(300);
        let mut map = BTreeMap::new();
        let mut key = vec![0; 16];
        for id in (0..300).filter(|id| !holes || id % 3 > 0) {
            expect.insert(id);
            generator.keys.encode(id, &mut key);
            map.insert(key.clone(), id);
        }
        let ranges = Ranges::new(&ops, Sorted::new(&generator.keys, &expect), 10, backward);
        let mut sum = 0u64;
        let mut value = vec![0; 20];
        for j in 0..200 {
            generator.keys.encode(ops.id(j), &mut key);
            let seen: Vec<u64> = if backward {
                map.range(..=key.clone()).rev().take(10).map(|(_, &id)| id).collect()
            } else {
                map.range(key.clone()..).take(10).map(|(_, &id)| id).collect()
            };
            assert_eq!(ranges.count(j) as usize, seen.len(), "{encoding:?} {backward} {holes}");
            if let Some(last) = seen.last() {
                assert_eq!(ranges.last(j), *last);
            }
            for id in seen {
                generator.values.fill(id, 0, &mut value);
                sum = sum.wrapping_add(digest(&value));
            }
        }
        assert_eq!(ranges.digest(&generator.values, &ops, &[0..50, 50..200]), sum);
    }

    #[test]
    fn ranges_end_where_a_sorted_map_says() {
        for encoding in [Encoding::Ordered, Encoding::Hashed, Encoding::Uuid] {
            for backward in [false, true] {
                check(encoding, backward, false);
                check(encoding, backward, true);
            }
        }
    }
}
