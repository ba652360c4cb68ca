//! Point reads: memtables newest first, then runs newest first, each behind its filter.

use super::core::{Core, Version};
use super::stats::Counters;
use crate::cache::{Place, Records};
use crate::entry::{Kind, MAX_PREFIX, Prefix};
use crate::io::checksum::key_hash;
use crate::memtable::Found;
use crate::sync::Arc;
use crate::table::Table;
use crate::tree::version::Family;
use crate::{Error, ErrorKind, Result, Value};
use std::cell::{Cell, RefCell};

/// An internal key on the stack if it is short.
pub(crate) struct InternalKey {
    short: [u8; 96],
    long: Vec<u8>,
    len: usize,
}

impl InternalKey {
    #[inline]
    pub(crate) fn new(family: u32, key: &[u8]) -> InternalKey {
        let prefix = Prefix::of(family);
        let prefix = prefix.as_slice();
        let len = prefix.len() + key.len();
        let mut short = [0; 96];
        let mut long = Vec::new();
        if len <= short.len() {
            short[..prefix.len()].copy_from_slice(prefix);
            short[prefix.len()..len].copy_from_slice(key);
        } else {
            long.reserve_exact(MAX_PREFIX + key.len());
            long.extend_from_slice(prefix);
            long.extend_from_slice(key);
        }
        InternalKey { short, long, len }
    }

    #[inline]
    pub(crate) fn as_slice(&self) -> &[u8] {
        if self.len <= self.short.len() { &self.short[..self.len] } else { &self.long }
    }
}

impl Core {
    /// The value of `key` as of `before`, or the newest one for `u64::MAX`.
    #[inline]
    pub(crate) fn get(&self, family: u32, key: &[u8], before: u64) -> Result<Option<Value>> {
        self.counters.gets.add(1);
        let version = self.version.pin();
        check_family(&version, family)?;
        let cached = self.cached(family, key, before);
        if let Some((found, memory)) = find_in_memtables(&version, family, key, before) {
            return match found.kind {
                Kind::Put => Ok(Some(Value::mapped(memory, found.offset, found.len))),
                Kind::Delete => Ok(None),
                other => Err(unsupported(other)),
            };
        }
        if let Some((records, place)) = cached
            && let Some(value) = records.get(place, version.flushes, key)
        {
            self.pay_memtables(&version);
            return Ok(Some(value));
        }
        self.pay_tax(&version);
        match find_in_tables(&self.counters, &version, family, key, |table, key| table.get(key, before))? {
            Some(hit) => match hit.kind {
                Kind::Put => {
                    if let Some((records, place)) = cached {
                        records.offer(place, version.flushes, key, &hit.value);
                    }
                    Ok(Some(hit.value))
                }
                Kind::Delete => Ok(None),
                other => Err(unsupported(other)),
            },
            None => Ok(None),
        }
    }

    /// Copies the value of `key` into `out`; false if there is none.
    pub(crate) fn get_into(&self, family: u32, key: &[u8], out: &mut Vec<u8>) -> Result<bool> {
        self.counters.gets.add(1);
        out.clear();
        let version = self.version.pin();
        check_family(&version, family)?;
        let cached = self.cached(family, key, u64::MAX);
        let kind = match find_in_memtables(&version, family, key, u64::MAX) {
            Some((found, memory)) => {
                // SAFETY: the memtable gives out only entries whose bytes are final.
                out.extend_from_slice(unsafe { memory.slice(found.offset, found.len) });
                Some(found.kind)
            }
            None => {
                if let Some((records, place)) = cached
                    && records.get_into(place, version.flushes, key, out)
                {
                    self.pay_memtables(&version);
                    return Ok(true);
                }
                self.pay_tax(&version);
                let sink = RefCell::new(&mut *out);
                let look =
                    |table: &Arc<Table>, key: &[u8]| table.get_into(key, u64::MAX, &mut sink.borrow_mut());
                let kind = find_in_tables(&self.counters, &version, family, key, look)?.map(|(kind, _)| kind);
                if let Some((records, place)) = cached
                    && kind == Some(Kind::Put)
                {
                    records.offer(place, version.flushes, key, out);
                }
                kind
            }
        };
        match kind {
            None | Some(Kind::Delete) => Ok(false),
            Some(Kind::Put) => Ok(true),
            Some(other) => Err(unsupported(other)),
        }
    }

    /// The record cache, and where in it `key` would be; `None` if this read is not to use it.
    #[inline]
    fn cached(&self, family: u32, key: &[u8], before: u64) -> Option<(&Records, Place)> {
        let records = self.records.as_ref().filter(|_| before == u64::MAX)?;
        Some((records, records.place(family, || key_hash(key))?))
    }

    /// Adds up what this read pays for what is not merged yet.
    #[inline]
    fn pay_tax(&self, version: &Version) {
        let memtables = version.sealed.len() + usize::from(!version.active.memtable.is_empty());
        let runs = version.tree.families.first().map_or(0, |family| family.runs.len());
        if memtables + runs > 0 {
            self.heat.point_read(self, memtables, runs);
        }
    }

    /// What a read that the cache answered pays: it went past the memtables, but not through the runs.
    #[inline]
    fn pay_memtables(&self, version: &Version) {
        let memtables = version.sealed.len() + usize::from(!version.active.memtable.is_empty());
        if memtables > 0 {
            self.heat.point_read(self, memtables, 0);
        }
    }

    /// Whether `key` has a value as of `before`.
    pub(crate) fn contains(&self, family: u32, key: &[u8], before: u64) -> Result<bool> {
        self.counters.gets.add(1);
        let version = self.version.pin();
        check_family(&version, family)?;
        let cached = self.cached(family, key, before);
        let kind = match find_in_memtables(&version, family, key, before) {
            Some((found, _)) => Some(found.kind),
            None if cached.is_some_and(|(records, place)| records.contains(place, version.flushes, key)) => {
                return Ok(true);
            }
            None => find_in_tables(&self.counters, &version, family, key, |table, key| {
                table.contains(key, before)
            })?
            .map(|(kind, _)| kind),
        };
        match kind {
            None | Some(Kind::Delete) => Ok(false),
            Some(Kind::Put) => Ok(true),
            Some(other) => Err(unsupported(other)),
        }
    }
}

pub(crate) fn unsupported(kind: Kind) -> Error {
    Error::new(
        ErrorKind::Unsupported,
        format!("the key's newest entry is of kind {kind:?}, which this build cannot read"),
    )
}

/// The newest visible version in the memtables, and the memory it lies in.
#[inline]
fn find_in_memtables<'v>(
    version: &'v Version,
    family: u32,
    key: &[u8],
    before: u64,
) -> Option<(Found, &'v Arc<crate::io::Mapping>)> {
    if version.active.memtable.is_empty() && version.sealed.is_empty() {
        return None;
    }
    let internal = InternalKey::new(family, key);
    std::iter::once(&version.active)
        .chain(&version.sealed)
        .filter(|mem| mem.segment.base() < before && !mem.memtable.is_empty())
        .find_map(|mem| Some((mem.memtable.get(internal.as_slice(), before)?, mem.memtable.memory())))
}

thread_local! {
    /// How well this thread's reads fare without the last run's filter: it rises by one with each key found there and
    /// falls by `MISS` with each that is not, from 0 to `TRUST`.
    static FOUND_LAST: Cell<u32> = const { Cell::new(0) };
}

thread_local! {
    /// Filters this thread asked, and that said no, since it last told: told in portions, since a shared counter at each
    /// would cost as much as the filter.
    static FILTERS: Cell<(u32, u32)> = const { Cell::new((0, 0)) };
}

/// Filters asked between two tellings.
const FILTER_PORTION: u32 = 256;

/// Asks a table's filter, and counts.
#[inline]
fn may_contain(counters: &Counters, table: &Table, hash: u64) -> bool {
    let may = table.may_contain(hash);
    let (asked, no) = FILTERS.get();
    let (asked, no) = (asked + 1, no + u32::from(!may));
    if asked == FILTER_PORTION {
        counters.filters_asked.add(u64::from(asked));
        counters.filters_no.add(u64::from(no));
        FILTERS.set((0, 0));
    } else {
        FILTERS.set((asked, no));
    }
    may
}

/// What a read that finds nothing takes off: a page searched in vain costs about as much as this many filters asked.
const MISS: u32 = 12;
/// From half of this on, the last run's filter is not asked: nearly all reads find their key, and then a filter only costs its
/// three cache misses.
const TRUST: u32 = 128;

/// Asks the tables that may hold `key`, newest first, until one does.
#[inline]
fn find_in_tables<T>(
    counters: &Counters,
    version: &Version,
    family: u32,
    key: &[u8],
    look: impl Fn(&Arc<Table>, &[u8]) -> Result<Option<T>>,
) -> Result<Option<T>> {
    let family: &Family<Table> = version.tree.family(family).ok_or_else(|| dropped(family))?;
    if !family.runs.is_empty() {
        let hash = key_hash(key);
        let runs = || family.runs.iter().filter_map(|run| run.find(key));
        // Fetch all filter lines at once, then test: the misses overlap.
        runs().for_each(|table| table.prefetch_filter(hash));
        for table in runs() {
            if may_contain(counters, table, hash)
                && let Some(hit) = look(table, key)?
            {
                return Ok(Some(hit));
            }
        }
    }
    let Some(table) = family.last.find(key) else { return Ok(None) };
    let trust = FOUND_LAST.get();
    if trust < TRUST / 2 && !may_contain(counters, table, key_hash(key)) {
        FOUND_LAST.set(trust.saturating_sub(1));
        return Ok(None);
    }
    let found = look(table, key)?;
    FOUND_LAST.set(if found.is_some() { (trust + 1).min(TRUST) } else { trust.saturating_sub(MISS) });
    Ok(found)
}

/// Fails if the family was dropped: its entries may still be in the memtables. The default one never is.
#[inline]
fn check_family(version: &Version, family: u32) -> Result<()> {
    if family != 0 && version.tree.family(family).is_none() { Err(dropped(family)) } else { Ok(()) }
}

/// The column family was dropped while a handle to it was kept.
#[cold]
pub(crate) fn dropped(family: u32) -> Error {
    Error::new(ErrorKind::Missing, format!("the column family (number {family}) was dropped"))
}
