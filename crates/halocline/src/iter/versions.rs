//! What a flush or a merge writes: all versions of its sources, thinned to those that a reader can still see.
//!
//! A reader is a snapshot `s`, which sees of each key the newest version below `s`, or *now*, which sees the newest.
//! Of a key's versions, newest first, `v` is needed exactly if some reader sees it: if a snapshot lies in `(v, w]`,
//! where `w` is the next newer version of the key, or if there is no newer one.
//!
//! ```text
//! versions    3      8      12     20        snapshots 10, 11 and 15
//! readers            ^10,11 ^15    ^now      3 goes: nobody between 4 and 8
//! stored as          0      12     20        8 is below every snapshot: seen by all, so its version goes
//! ```
//!
//! A version below every snapshot is stored as 0: there is no reader it could be hidden from. The next older one of
//! the key is then needed by nobody, so at most one entry of a key has version 0, and it is the oldest.
//!
//! A deletion that is needed hides what is older. It can go where nothing older is: none in older tables (the caller
//! knows), and none kept beneath it here, for an older snapshot. The second is known only when the key's older
//! versions have been looked at, so deletions wait, as bare version numbers: the key is the one of the entry that
//! makes them stay.

use super::Source;
use super::tournament::Tournament;
use crate::Result;
use crate::entry::Kind;

/// What a merge left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Dropped {
    /// Entries other than deletions that no reader needs any more.
    pub(crate) superseded: u64,
    /// Bytes of keys and values of these.
    pub(crate) superseded_bytes: u64,
    /// Deletions, whether superseded or with nothing left to hide.
    pub(crate) tombstones: u64,
}

/// Where the cursor is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    /// Nowhere: not started, or failed.
    Nowhere,
    /// Behind the last entry.
    End,
    /// At the winner's entry.
    Entry,
    /// At this one of the waiting deletions; the winner's entry follows the last.
    Waiting(usize),
}

/// The entries to write, by key, and newest first within one. Forward only, one entry a call.
///
/// The sources are given newest first and show all versions; of a key, everything in a newer source is newer than
/// everything in an older one. That, not the version, is what orders them: several sources may have version 0.
///
/// The snapshots must have been listed after the newest source was sealed: one that is opened later sees all that is
/// in the sources, as *now* does.
pub(crate) struct VersionMerge<S, D> {
    sources: Vec<S>,
    tournament: Tournament,
    /// Ascending.
    snapshots: Vec<u64>,
    drop_tombstones: D,
    at: At,
    /// The key whose versions are being looked at.
    key: Vec<u8>,
    key_head: u128,
    /// What `drop_tombstones` said of it, once asked.
    droppable: Option<bool>,
    /// Versions, as they would be stored, of the key's deletions that wait for an older entry to hide.
    waiting: Vec<u64>,
    /// The version to store for the winner's entry.
    stored: u64,
    /// The next newer version of the key; of the newest, none.
    newer: Option<u64>,
    dropped: Dropped,
}

impl<S: Source, D: FnMut(&[u8]) -> bool> VersionMerge<S, D> {
    /// Merges `sources`, newest first, for the readers at `snapshots` (ascending, none 0) and now. `drop_tombstones`
    /// says of a key whether nothing of it can be in anything older than the sources; it is asked once a key at most.
    pub(crate) fn new(sources: Vec<S>, snapshots: &[u64], drop_tombstones: D) -> Self {
        debug_assert!(snapshots.is_sorted() && snapshots.first() != Some(&0));
        VersionMerge {
            tournament: Tournament::new(sources.len()),
            sources,
            snapshots: snapshots.to_vec(),
            drop_tombstones,
            at: At::Nowhere,
            key: Vec::new(),
            key_head: 0,
            droppable: None,
            waiting: Vec::new(),
            stored: 0,
            newer: None,
            dropped: Dropped::default(),
        }
    }

    /// To the first entry.
    pub(crate) fn seek_first(&mut self) -> Result<()> {
        self.start(S::seek_first)
    }

    /// Moves on by one entry; must be valid. The work is that of the entries passed over.
    #[inline]
    pub(crate) fn next(&mut self) -> Result<()> {
        debug_assert!(self.valid());
        match self.at {
            At::Waiting(i) if i + 1 < self.waiting.len() => {
                self.at = At::Waiting(i + 1);
                Ok(())
            }
            At::Waiting(_) => {
                self.waiting.clear();
                self.at = At::Entry;
                Ok(())
            }
            At::Entry => {
                self.at = At::Nowhere;
                self.pass()?;
                self.find(false)
            }
            At::Nowhere | At::End => Ok(()),
        }
    }

    /// Whether there is an entry here.
    #[inline]
    pub(crate) fn valid(&self) -> bool {
        matches!(self.at, At::Entry | At::Waiting(_))
    }

    /// What it does; must be valid.
    #[inline]
    pub(crate) fn kind(&self) -> Kind {
        debug_assert!(self.valid());
        match self.at {
            At::Waiting(_) => Kind::Delete,
            _ => self.sources[self.tournament.index()].kind(),
        }
    }

    /// The version to store, 0 if every reader sees it; must be valid.
    #[inline]
    pub(crate) fn version(&self) -> u64 {
        debug_assert!(self.valid());
        match self.at {
            At::Waiting(i) => self.waiting[i],
            _ => self.stored,
        }
    }

    /// Its key; must be valid.
    #[inline]
    pub(crate) fn key(&self) -> &[u8] {
        debug_assert!(self.valid());
        &self.key
    }

    /// The log address of the winner's entry, whatever version is stored; must be valid.
    #[inline]
    pub(crate) fn address(&self) -> u64 {
        self.sources[self.tournament.index()].version()
    }

    /// Its key and value; must be valid.
    #[inline]
    pub(crate) fn entry(&mut self) -> Result<(&[u8], &[u8])> {
        debug_assert!(self.valid());
        let value = match self.at {
            At::Waiting(_) => &[],
            _ => self.sources[self.tournament.index()].value()?,
        };
        Ok((&self.key, value))
    }

    /// What was left out so far.
    pub(crate) fn dropped(&self) -> Dropped {
        self.dropped
    }

    fn start(&mut self, mut seek: impl FnMut(&mut S) -> Result<()>) -> Result<()> {
        self.at = At::Nowhere;
        self.waiting.clear();
        for source in &mut self.sources {
            seek(source)?;
        }
        self.tournament.build(&self.sources, false);
        self.find(true)
    }

    /// Moves past the winner's entry.
    #[inline]
    fn pass(&mut self) -> Result<()> {
        self.sources[self.tournament.index()].next()?;
        self.tournament.replay(&self.sources);
        Ok(())
    }

    /// Finds the next entry to show, from the winner's on; `first`: there is no key before it.
    fn find(&mut self, mut first: bool) -> Result<()> {
        loop {
            let Some(winner) = self.tournament.winner() else {
                self.forget_waiting();
                self.at = At::End;
                return Ok(());
            };
            if first || !self.is_same_key(winner) {
                self.begin_key(winner);
                first = false;
            }
            let source = &mut self.sources[winner];
            let version = source.version();
            let deletes = source.kind() == Kind::Delete;
            let needed = needed(&self.snapshots, version, self.newer);
            // A version that was dropped is 0, and what is behind it is older still.
            self.newer = Some(self.newer.map_or(version, |newer| newer.min(version)));
            if !needed {
                if deletes {
                    self.dropped.tombstones += 1;
                } else {
                    self.dropped.superseded += 1;
                    self.dropped.superseded_bytes += (self.key.len() + source.value_len()?) as u64;
                }
                self.pass()?;
                continue;
            }
            self.stored =
                if self.snapshots.first().is_none_or(|oldest| version < *oldest) { 0 } else { version };
            if deletes && *self.droppable.get_or_insert_with(|| (self.drop_tombstones)(&self.key)) {
                self.waiting.push(self.stored);
                self.pass()?;
                continue;
            }
            self.at = if self.waiting.is_empty() { At::Entry } else { At::Waiting(0) };
            return Ok(());
        }
    }

    /// Whether the winner is at the key that is being looked at.
    #[inline]
    fn is_same_key(&self, winner: usize) -> bool {
        self.tournament.head() == self.key_head && self.sources[winner].key() == self.key
    }

    #[inline]
    fn begin_key(&mut self, winner: usize) {
        self.forget_waiting();
        self.key.clear();
        self.key.extend_from_slice(self.sources[winner].key());
        self.key_head = self.tournament.head();
        self.droppable = None;
        self.newer = None;
    }

    /// The deletions that wait have nothing to hide.
    #[inline]
    fn forget_waiting(&mut self) {
        self.dropped.tombstones += self.waiting.len() as u64;
        self.waiting.clear();
    }
}

/// Whether a reader sees `version` of a key whose next newer version is `newer`.
#[inline]
fn needed(snapshots: &[u64], version: u64, newer: Option<u64>) -> bool {
    let Some(newer) = newer else { return true };
    // Few snapshots: the first above the version, then whether it is not above the newer one.
    let first = snapshots.partition_point(|snapshot| *snapshot <= version);
    snapshots.get(first).is_some_and(|snapshot| *snapshot <= newer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::iter::Visibility;
    use crate::iter::testing::{Item, VecSource};
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    /// Merges sources (newest first) for the readers at `snapshots`.
    fn merge(
        sources: &[Vec<Item>],
        snapshots: &[u64],
        droppable: impl Fn(&[u8]) -> bool,
    ) -> (Vec<Item>, Dropped) {
        let sources = sources.iter().map(|items| VecSource::seen(items.clone(), Visibility::All)).collect();
        let mut merge = VersionMerge::new(sources, snapshots, droppable);
        let mut out = Vec::new();
        merge.seek_first().unwrap();
        while merge.valid() {
            let (version, kind) = (merge.version(), merge.kind());
            let (key, value) = merge.entry().unwrap();
            out.push(Item { key: key.to_vec(), version, kind, value: value.to_vec() });
            merge.next().unwrap();
        }
        (out, merge.dropped())
    }

    /// What a reader that sees versions below `end` finds in sources, newest first.
    fn seen(sources: &[Vec<Item>], end: u64) -> BTreeMap<Vec<u8>, Vec<u8>> {
        let mut newest = BTreeMap::new();
        for item in sources.iter().flatten().filter(|item| item.version < end) {
            newest.entry(item.key.clone()).or_insert(item);
        }
        newest.retain(|_, item| item.kind == Kind::Put);
        newest.into_iter().map(|(key, item)| (key, item.value.clone())).collect()
    }

    fn key() -> impl Strategy<Value = Vec<u8>> {
        (0u8..5, any::<bool>())
            .prop_map(|(n, long)| if long { [&[9; 16], &[n][..]].concat() } else { vec![n] })
    }

    /// One thing that happens to a store of runs.
    #[derive(Clone, Debug)]
    enum Event {
        Write(Vec<u8>, bool),
        Snapshot,
        /// Of the open snapshots, this one closes.
        Release(prop::sample::Index),
        /// What was written since becomes the newest run.
        Seal,
        /// Of the runs, this many from this one on become one.
        Merge(prop::sample::Index, usize),
    }

    fn event() -> impl Strategy<Value = Event> {
        prop_oneof![
            10 => (key(), any::<bool>()).prop_map(|(key, put)| Event::Write(key, put)),
            3 => Just(Event::Snapshot),
            2 => any::<prop::sample::Index>().prop_map(Event::Release),
            3 => Just(Event::Seal),
            3 => (any::<prop::sample::Index>(), 1usize..5).prop_map(|(at, n)| Event::Merge(at, n)),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(500))]
        /// Whatever is written, sealed and merged in whatever order: every reader sees what it saw.
        #[test]
        fn no_reader_can_tell_a_merge(events in proptest::collection::vec(event(), 1..120)) {
            let mut runs: Vec<Vec<Item>> = Vec::new();
            let mut active: Vec<Item> = Vec::new();
            let mut snapshots: Vec<u64> = Vec::new();
            let mut clock = 1u64;
            let mut history: Vec<Item> = Vec::new();
            let order = |items: &mut Vec<Item>| items.sort_by(|a, b| a.key.cmp(&b.key).then(b.version.cmp(&a.version)));
            for event in events {
                match event {
                    Event::Write(key, put) => {
                        let item = if put { Item::put(&key, clock, &clock.to_le_bytes()) } else { Item::delete(&key, clock) };
                        history.insert(0, item.clone());
                        active.push(item);
                        clock += 1;
                    }
                    Event::Snapshot => if snapshots.last() != Some(&clock) { snapshots.push(clock) },
                    Event::Release(at) => if !snapshots.is_empty() { snapshots.remove(at.index(snapshots.len())); },
                    Event::Seal => {
                        order(&mut active);
                        runs.insert(0, std::mem::take(&mut active));
                    }
                    Event::Merge(at, n) => if !runs.is_empty() {
                        let from = at.index(runs.len());
                        let to = (from + n).min(runs.len());
                        let older: Vec<&Item> = runs[to..].iter().flatten().collect();
                        let inputs = &runs[from..to];
                        let (out, dropped) = merge(inputs, &snapshots, |key| older.iter().all(|item| item.key != key));
                        prop_assert!(out.is_sorted_by(|a, b| a.key < b.key || a.key == b.key && a.version > b.version));
                        let puts = |items: &[Item]| items.iter().filter(|item| item.kind == Kind::Put).count() as u64;
                        let before = inputs.concat();
                        prop_assert_eq!(puts(&before), puts(&out) + dropped.superseded);
                        prop_assert_eq!(before.len() as u64, out.len() as u64 + dropped.superseded + dropped.tombstones);
                        for item in &out {
                            prop_assert_eq!(item.version == 0, snapshots.iter().all(|s| item.version < *s));
                            // Somebody needs it: it is what a reader of this run finds.
                            let found = |reader| out.iter().find(|other| other.key == item.key && other.version < reader);
                            let needed = snapshots.iter().copied().chain([u64::MAX]).any(|reader| found(reader) == Some(item));
                            prop_assert!(needed);
                            // A deletion that stays has something to hide.
                            let hides = |other: &Item| other.key == item.key && other.version < item.version;
                            prop_assert!(item.kind == Kind::Put || out.iter().any(hides) || older.iter().any(|o| o.key == item.key));
                        }
                        runs.splice(from..to, [out]);
                    }
                }
                let mut all = vec![active.clone()];
                order(&mut all[0]);
                all.extend(runs.iter().cloned());
                for reader in snapshots.iter().copied().chain([u64::MAX]) {
                    prop_assert_eq!(seen(&all, reader), seen(&[history.clone()], reader), "reader {}", reader);
                }
            }
        }
    }

    #[test]
    fn the_example_of_this_page() {
        let versions = [20, 12, 8, 3].map(|version| Item::put(b"k", version, &[version as u8])).to_vec();
        let (out, dropped) = merge(&[versions], &[10, 11, 15], |_| true);
        assert_eq!(
            out.iter().map(|item| (item.version, item.value[0])).collect::<Vec<_>>(),
            [(20, 20), (12, 12), (0, 8)]
        );
        assert_eq!(dropped, Dropped { superseded: 1, superseded_bytes: 2, tombstones: 0 });
    }

    #[test]
    fn a_deletion_stays_while_it_hides_something() {
        let items = |versions: &[(u64, bool)]| {
            versions
                .iter()
                .map(
                    |&(version, put)| {
                        if put { Item::put(b"k", version, b"v") } else { Item::delete(b"k", version) }
                    },
                )
                .collect::<Vec<_>>()
        };
        let kinds = |versions: &[(u64, bool)], snapshots: &[u64], bottom: bool| {
            merge(&[items(versions)], snapshots, |_| bottom)
                .0
                .iter()
                .map(|item| (item.version, item.kind == Kind::Put))
                .collect::<Vec<_>>()
        };
        // Nothing beneath: gone at the bottom, kept above.
        assert_eq!(kinds(&[(9, false)], &[], true), []);
        assert_eq!(kinds(&[(9, false)], &[], false), [(0, false)]);
        // What is beneath is kept for a snapshot, so two deletions above it stay.
        assert_eq!(
            kinds(&[(9, false), (5, false), (3, true)], &[4, 7], true),
            [(9, false), (5, false), (0, true)]
        );
        // What is beneath goes too.
        assert_eq!(kinds(&[(9, false), (3, true)], &[12], true), []);
        // A deletion beneath a put: it hides nothing, the put stays.
        assert_eq!(kinds(&[(9, true), (5, false)], &[7], true), [(9, true)]);
    }

    #[test]
    fn the_filter_is_asked_once_a_key() {
        let items: Vec<Item> = (1..6).map(|version| Item::delete(b"k", version)).collect();
        let mut asked = 0;
        let source = VecSource::seen(items, Visibility::All);
        let mut merge = VersionMerge::new(vec![source], &[2, 3, 4, 5], |_| {
            asked += 1;
            false
        });
        merge.seek_first().unwrap();
        let mut n = 0;
        while merge.valid() {
            n += 1;
            merge.next().unwrap();
        }
        drop(merge);
        assert_eq!((n, asked), (5, 1));
    }
}
