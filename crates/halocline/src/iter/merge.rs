//! Several sources, from newest to oldest, as one.

use super::Source;
use super::tournament::{Tournament, compare_tails, head};
use crate::entry::Kind;
use crate::{Error, Result, Value};
use std::cmp::Ordering;
use std::ops::Bound;

/// Where all sources stand, relative to the cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    /// Anywhere: nothing was sought yet, or a source failed.
    Unknown,
    /// Each at its first entry at or behind the winner's key; exhausted ones have none.
    Forward,
    /// Each at its last entry at or before the winner's key.
    Backward,
}

/// An end of the range that is shown, with its head so that most keys need no more than an integer compared.
struct Limit {
    key: Vec<u8>,
    head: u128,
}

impl Limit {
    /// The smallest key that is not before the bound: the one itself, or what directly follows it.
    fn new(key: &[u8], itself: bool) -> Limit {
        let mut key = key.to_vec();
        if !itself {
            key.push(0);
        }
        Limit { head: head(&key), key }
    }

    /// Whether `key` is at or behind this.
    #[inline]
    fn reached_by(&self, key: &[u8], key_head: u128) -> bool {
        match key_head.cmp(&self.head) {
            Ordering::Equal => compare_tails(key, &self.key) != Ordering::Less,
            order => order == Ordering::Greater,
        }
    }
}

/// Sources as one: each key once, from the newest source that has it, without the deleted ones (unless asked for).
///
/// Every source shows each key at most once, and the sources are given newest first. A step forward or back moves the
/// sources that stood at the key and costs about `log2(k)` comparisons of cached heads for each; nothing is allocated,
/// and no value is touched unless it is asked for.
///
/// Moving off either end, or out of the bounds, leaves the cursor not valid; it takes a seek to go on. The same holds
/// after an error.
///
/// A seek forward (`seek` after `seek` or `next`) or back (`seek_for_prev` after `seek_for_prev` or `prev`) moves only
/// the sources that stand before the new key, so a seek to a near key costs little.
pub(crate) struct Merging<S> {
    sources: Vec<S>,
    tournament: Tournament,
    order: Order,
    valid: bool,
    /// The first key shown.
    lower: Option<Limit>,
    /// The first key not shown any more.
    upper: Option<Limit>,
    /// The key of the last seek, while no step was made since: no source has an entry between it and where it stands.
    sought: Vec<u8>,
    sought_holds: bool,
}

impl<S: Source> Merging<S> {
    /// Merges `sources`, newest first; not positioned.
    pub(crate) fn new(sources: Vec<S>) -> Self {
        Merging {
            tournament: Tournament::new(sources.len()),
            sources,
            order: Order::Unknown,
            valid: false,
            lower: None,
            upper: None,
            sought: Vec::new(),
            sought_holds: false,
        }
    }

    /// Shows only keys within these bounds from now on. The cursor is not positioned afterwards.
    pub(crate) fn set_bounds(&mut self, lower: Bound<&[u8]>, upper: Bound<&[u8]>) {
        self.lower = match lower {
            Bound::Included(key) => Some(Limit::new(key, true)),
            Bound::Excluded(key) => Some(Limit::new(key, false)),
            Bound::Unbounded => None,
        };
        self.upper = match upper {
            Bound::Included(key) => Some(Limit::new(key, false)),
            Bound::Excluded(key) => Some(Limit::new(key, true)),
            Bound::Unbounded => None,
        };
        self.lose();
    }

    /// Forgets the position.
    fn lose(&mut self) {
        self.order = Order::Unknown;
        self.valid = false;
        self.sought_holds = false;
    }

    fn checked(&mut self, moved: Result<()>) -> Result<()> {
        if moved.is_err() {
            self.lose();
        }
        moved
    }

    /// Moves every source with `seek` and orders them anew.
    fn place(&mut self, order: Order, mut seek: impl FnMut(&mut S) -> Result<()>) -> Result<()> {
        for source in &mut self.sources {
            seek(source)?;
        }
        self.order = order;
        self.tournament.build(&self.sources, order == Order::Backward);
        Ok(())
    }

    /// Moves on from the winner's entry, in the present direction, to the next that is shown; or first of all looks
    /// whether the present one is.
    #[inline]
    fn settle(&mut self, mut step: bool) -> Result<()> {
        let backward = self.order == Order::Backward;
        loop {
            if step {
                let source = &mut self.sources[self.tournament.index()];
                if backward {
                    source.prev()?
                } else {
                    source.next()?
                }
                self.tournament.replay(&self.sources);
            }
            step = true;
            let Some(winner) = self.tournament.winner() else {
                self.valid = false;
                return Ok(());
            };
            let source = &self.sources[winner];
            let outside = match (&self.lower, &self.upper) {
                (Some(lower), _) if backward => !lower.reached_by(source.key(), self.tournament.head()),
                (_, Some(upper)) if !backward => upper.reached_by(source.key(), self.tournament.head()),
                _ => false,
            };
            if outside {
                self.valid = false;
                return Ok(());
            }
            if !self.tournament.shadowed() && source.kind() != Kind::Delete {
                self.valid = true;
                return Ok(());
            }
        }
    }

    /// `settle` after a step, with one source: no tournament.
    #[inline]
    fn step_only(&mut self, backward: bool) -> Result<()> {
        let source = &mut self.sources[0];
        loop {
            if backward {
                source.prev()?
            } else {
                source.next()?
            }
            self.valid = source.valid();
            if !self.valid {
                break;
            }
            if source.kind() == Kind::Delete {
                continue;
            }
            match (&self.lower, &self.upper) {
                (Some(lower), _) if backward => self.valid = source.key() >= &lower.key[..],
                (_, Some(upper)) if !backward => self.valid = source.key() < &upper.key[..],
                _ => {}
            }
            break;
        }
        Ok(())
    }

    /// Turns all sources round at the winner's key: to their nearest entry on its other side.
    fn turn(&mut self, order: Order) -> Result<()> {
        self.sought_holds = false;
        self.place(order, |source| match (order == Order::Backward, source.valid()) {
            (true, true) => source.prev(),
            (true, false) => source.seek_last(),
            (false, true) => source.next(),
            (false, false) => source.seek_first(),
        })?;
        self.settle(false)
    }

    /// One step. With one source the order is not kept up: it is always right for the source itself.
    #[inline]
    fn step(&mut self, order: Order) -> Result<()> {
        debug_assert!(self.valid);
        if self.sources.len() == 1 {
            self.order = order;
            return self.step_only(order == Order::Backward);
        }
        if self.order != order {
            return self.turn(order);
        }
        self.sought_holds = false;
        self.settle(true)
    }

    /// How the winner's key compares with `key`; `None` if there is no winner.
    #[inline]
    fn winner_vs(&self, key: &[u8], key_head: u128) -> Option<Ordering> {
        let winner = self.tournament.winner()?;
        Some(
            self.tournament
                .head()
                .cmp(&key_head)
                .then_with(|| compare_tails(self.sources[winner].key(), key)),
        )
    }

    /// To the first entry at or behind `key` (backward: the last at or before).
    fn seek_in(&mut self, order: Order, key: &[u8]) -> Result<()> {
        let forward = order == Order::Forward;
        let key_head = head(key);
        // Whether `key` is before all entries where the sources stand, in this direction, or among them.
        let behind = if forward { Ordering::Less } else { Ordering::Greater };
        let in_front = self.order == order
            && self.sources.len() > 1
            && (self.winner_vs(key, key_head).is_some_and(|winner| winner != behind.reverse())
                || self.sought_holds && key.cmp(&self.sought) != behind);
        if in_front {
            while self.winner_vs(key, key_head) == Some(behind) {
                let source = &mut self.sources[self.tournament.index()];
                if forward {
                    source.seek(key)?
                } else {
                    source.seek_for_prev(key)?
                }
                self.tournament.replay(&self.sources);
            }
        } else if forward {
            self.place(order, |source| source.seek(key))?;
        } else {
            self.place(order, |source| source.seek_for_prev(key))?;
        }
        self.sought.clear();
        self.sought.extend_from_slice(key);
        self.sought_holds = true;
        self.settle(false)
    }

    fn first(&mut self) -> Result<()> {
        if let Some(lower) = self.lower.take() {
            let sought = self.seek_in(Order::Forward, &lower.key);
            self.lower = Some(lower);
            return sought;
        }
        self.sought_holds = false;
        self.place(Order::Forward, S::seek_first)?;
        self.settle(false)
    }

    fn last(&mut self) -> Result<()> {
        self.sought_holds = false;
        let Some(upper) = self.upper.as_ref() else {
            self.place(Order::Backward, S::seek_last)?;
            return self.settle(false);
        };
        let end = upper.key.clone();
        self.place(Order::Backward, |source| {
            source.seek_for_prev(&end)?;
            // The bound itself is outside.
            if source.valid() && source.key() == end { source.prev() } else { Ok(()) }
        })?;
        self.settle(false)
    }
}

impl<S: Source> Source for Merging<S> {
    fn seek_first(&mut self) -> Result<()> {
        let moved = self.first();
        self.checked(moved)
    }

    fn seek_last(&mut self) -> Result<()> {
        let moved = self.last();
        self.checked(moved)
    }

    fn seek(&mut self, key: &[u8]) -> Result<()> {
        let moved = match &self.lower {
            Some(lower) if key < &lower.key[..] => self.first(),
            _ => self.seek_in(Order::Forward, key),
        };
        self.checked(moved)
    }

    fn seek_for_prev(&mut self, key: &[u8]) -> Result<()> {
        let moved = match &self.upper {
            Some(upper) if key >= &upper.key[..] => self.last(),
            _ => self.seek_in(Order::Backward, key),
        };
        self.checked(moved)
    }

    #[inline]
    fn next(&mut self) -> Result<()> {
        let moved = self.step(Order::Forward);
        self.checked(moved)
    }

    #[inline]
    fn prev(&mut self) -> Result<()> {
        let moved = self.step(Order::Backward);
        self.checked(moved)
    }

    #[inline]
    fn valid(&self) -> bool {
        self.valid
    }

    #[inline]
    fn key(&self) -> &[u8] {
        debug_assert!(self.valid);
        self.sources[self.tournament.index()].key()
    }

    #[inline]
    fn kind(&self) -> Kind {
        debug_assert!(self.valid);
        self.sources[self.tournament.index()].kind()
    }

    #[inline]
    fn version(&self) -> u64 {
        debug_assert!(self.valid);
        self.sources[self.tournament.index()].version()
    }

    fn value(&mut self) -> Result<&[u8]> {
        debug_assert!(self.valid);
        let failed = |_: &Error| {
            (self.order, self.valid, self.sought_holds) = (Order::Unknown, false, false);
        };
        self.sources[self.tournament.index()].value().inspect_err(failed)
    }

    fn pinned_value(&mut self) -> Result<Value> {
        debug_assert!(self.valid);
        let value = self.sources[self.tournament.index()].pinned_value();
        if value.is_err() {
            self.lose();
        }
        value
    }

    fn value_len(&mut self) -> Result<usize> {
        debug_assert!(self.valid);
        let len = self.sources[self.tournament.index()].value_len();
        if len.is_err() {
            self.lose();
        }
        len
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::iter::testing::{Item, Probe, VecSource};
    use proptest::prelude::*;
    use std::collections::BTreeMap;
    use std::rc::Rc;

    #[derive(Clone, Debug)]
    enum Op {
        First,
        Last,
        Seek(Vec<u8>),
        SeekForPrev(Vec<u8>),
        Next,
        Prev,
        Bounds(Bound<Vec<u8>>, Bound<Vec<u8>>),
        Fail(usize),
    }

    /// Few keys, so that they collide; some longer than a head, some of all ones.
    fn key() -> impl Strategy<Value = Vec<u8>> {
        prop_oneof![
            proptest::collection::vec(0u8..3, 0..4),
            proptest::collection::vec(0u8..2, 0..3).prop_map(|tail| [&[7; 15], &tail[..]].concat()),
            (14usize..19).prop_map(|n| vec![0xFF; n]),
        ]
    }

    fn bound() -> impl Strategy<Value = Bound<Vec<u8>>> {
        prop_oneof![key().prop_map(Bound::Included), key().prop_map(Bound::Excluded), Just(Bound::Unbounded)]
    }

    fn op() -> impl Strategy<Value = Op> {
        prop_oneof![
            1 => Just(Op::First),
            1 => Just(Op::Last),
            4 => key().prop_map(Op::Seek),
            4 => key().prop_map(Op::SeekForPrev),
            8 => Just(Op::Next),
            8 => Just(Op::Prev),
            1 => (bound(), bound()).prop_map(|(lower, upper)| Op::Bounds(lower, upper)),
            1 => (1usize..8).prop_map(Op::Fail),
        ]
    }

    fn within(key: &[u8], lower: &Bound<Vec<u8>>, upper: &Bound<Vec<u8>>) -> bool {
        (match lower {
            Bound::Included(end) => key >= &end[..],
            Bound::Excluded(end) => key > &end[..],
            Bound::Unbounded => true,
        }) && match upper {
            Bound::Included(end) => key <= &end[..],
            Bound::Excluded(end) => key < &end[..],
            Bound::Unbounded => true,
        }
    }

    fn as_slice(bound: &Bound<Vec<u8>>) -> Bound<&[u8]> {
        match bound {
            Bound::Included(key) => Bound::Included(key),
            Bound::Excluded(key) => Bound::Excluded(key),
            Bound::Unbounded => Bound::Unbounded,
        }
    }

    /// Sources for these maps from a key to whether it is put; versions fall from source to source.
    fn sources(maps: &[BTreeMap<Vec<u8>, bool>], probe: &Rc<Probe>) -> Vec<VecSource> {
        let source = |(i, map): (usize, &BTreeMap<Vec<u8>, bool>)| {
            let version = (maps.len() - i) as u64;
            let items = map.iter().map(|(key, put)| match put {
                true => Item::put(key, version, &[i as u8]),
                false => Item::delete(key, version),
            });
            VecSource::new(items.collect()).watched(probe)
        };
        maps.iter().enumerate().map(source).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(500))]
        #[test]
        fn a_merge_shows_what_a_map_would(
            maps in proptest::collection::vec(proptest::collection::btree_map(key(), any::<bool>(), 0..12), 0..7),
            ops in proptest::collection::vec(op(), 1..60),
        ) {
            let probe = Rc::default();
            let mut merged = Merging::new(sources(&maps, &probe));
            let mut newest = BTreeMap::new();
            for (i, map) in maps.iter().enumerate().rev() {
                newest.extend(map.iter().map(|(key, put)| (key.clone(), (i, *put))));
            }
            newest.retain(|_, (_, put)| *put);
            let mut all: Vec<_> = newest.clone().into_iter().collect();
            let mut at = None::<usize>;
            for op in ops {
                let moved = match &op {
                    Op::First => { at = Some(0); merged.seek_first() }
                    Op::Last => { at = all.len().checked_sub(1); merged.seek_last() }
                    Op::Seek(key) => {
                        at = Some(all.partition_point(|(k, _)| k < key));
                        merged.seek(key)
                    }
                    Op::SeekForPrev(key) => {
                        at = all.partition_point(|(k, _)| k <= key).checked_sub(1);
                        merged.seek_for_prev(key)
                    }
                    Op::Next if merged.valid() => { at = at.map(|at| at + 1); merged.next() }
                    Op::Prev if merged.valid() => { at = at.and_then(|at| at.checked_sub(1)); merged.prev() }
                    Op::Next | Op::Prev => continue,
                    Op::Bounds(low, high) => {
                                                merged.set_bounds(as_slice(low), as_slice(high));
                        all = newest.clone().into_iter().filter(|(k, _)| within(k, low, high)).collect();
                        prop_assert!(!merged.valid());
                        continue;
                    }
                    Op::Fail(n) => { probe.fail_in.set(*n); continue }
                };
                if moved.is_err() {
                    prop_assert!(!merged.valid());
                    at = None;
                    continue;
                }
                let expected = at.and_then(|at| all.get(at));
                prop_assert_eq!(merged.valid().then(|| merged.key().to_vec()), expected.map(|(k, _)| k.clone()), "{:?}", op);
                if let Some((_, (source, put))) = expected {
                    prop_assert_eq!(merged.kind() == Kind::Put, *put);
                    prop_assert_eq!(merged.version(), (maps.len() - source) as u64);
                    if *put {
                        prop_assert_eq!(merged.value().unwrap(), &[*source as u8]);
                    }
                }
            }
        }
    }

    fn numbered(keys: impl Iterator<Item = u32>, version: u64) -> Vec<Item> {
        keys.map(|n| Item::put(&n.to_be_bytes(), version, b"v")).collect()
    }

    #[test]
    fn keys_are_iterated_without_a_value_decoded() {
        let probe = Rc::default();
        let sources = (0..4).map(|i| VecSource::new(numbered(i..50, 9 - u64::from(i))).watched(&probe));
        let mut merged = Merging::new(sources.collect());
        merged.seek_first().unwrap();
        let mut n = 0;
        while merged.valid() {
            n += 1;
            merged.next().unwrap();
        }
        assert_eq!((n, probe.values.get()), (50, 0));
    }

    #[test]
    fn long_streaks_end_where_they_must() {
        // Stretches of keys belong to one source; now and then a single key of another lies within.
        let owner = |n: u32| if n.is_multiple_of(37) { n / 37 % 5 } else { n / 100 % 5 };
        let source = |i| VecSource::new(numbered((0..3000).filter(|n| owner(*n) == i), u64::from(9 - i)));
        let mut merged = Merging::new((0..5).map(source).collect());
        merged.seek_first().unwrap();
        for n in 0..3000u32 {
            assert_eq!((merged.key(), merged.version()), (&n.to_be_bytes()[..], u64::from(9 - owner(n))));
            merged.next().unwrap();
        }
        assert!(!merged.valid());
        merged.seek_last().unwrap();
        for n in (0..3000u32).rev() {
            assert_eq!(merged.key(), n.to_be_bytes());
            merged.prev().unwrap();
        }
        assert!(!merged.valid());
    }

    #[test]
    fn a_near_seek_moves_only_the_sources_behind_it() {
        // Source i has the keys i, i + 4, ...; each is at its own one near 0.
        let probes: Vec<Rc<Probe>> = (0..4).map(|_| Rc::default()).collect();
        let sources = (0..4u32).map(|i| {
            let last = if i == 3 { 8 } else { 400 };
            VecSource::new(numbered((i..last).step_by(4), 1)).watched(&probes[i as usize])
        });
        let mut merged = Merging::new(sources.collect());
        let seeks = || probes.iter().map(|probe| probe.seeks.get()).collect::<Vec<_>>();
        merged.seek(&0u32.to_be_bytes()).unwrap();
        assert_eq!(seeks(), [1, 1, 1, 1]);
        merged.seek(&2u32.to_be_bytes()).unwrap();
        assert_eq!((merged.key(), seeks()), (&2u32.to_be_bytes()[..], vec![2, 2, 1, 1]));
        // The same again, and a key in front of which all stand already.
        merged.seek(&2u32.to_be_bytes()).unwrap();
        assert_eq!(seeks(), [2, 2, 1, 1]);
        merged.seek(&100u32.to_be_bytes()).unwrap();
        assert_eq!((merged.key(), seeks()), (&100u32.to_be_bytes()[..], vec![3, 3, 2, 2]));
        // The last source is exhausted, and is left alone.
        merged.next().unwrap();
        merged.seek(&200u32.to_be_bytes()).unwrap();
        assert_eq!((merged.key(), seeks()), (&200u32.to_be_bytes()[..], vec![4, 4, 3, 2]));
        merged.seek(&1000u32.to_be_bytes()).unwrap();
        assert!(!merged.valid());
        merged.seek(&2000u32.to_be_bytes()).unwrap();
        assert_eq!((merged.valid(), seeks()), (false, vec![5, 5, 4, 2]));
        // Back again: everybody moves.
        merged.seek(&0u32.to_be_bytes()).unwrap();
        assert_eq!((merged.key(), seeks()), (&0u32.to_be_bytes()[..], vec![6, 6, 5, 3]));
    }

    #[test]
    fn many_deletions_are_passed_over() {
        let dead = (0..1000u32).map(|n| Item::delete(&n.to_be_bytes(), 2)).collect();
        let mut merged = Merging::new(vec![VecSource::new(dead), VecSource::new(numbered(0..1001, 1))]);
        merged.seek_first().unwrap();
        assert_eq!(merged.key(), 1000u32.to_be_bytes());
        merged.next().unwrap();
        assert!(!merged.valid());
    }
}
