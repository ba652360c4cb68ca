//! Figures about an open database.

use super::core::Core;
use crate::sync::Counter;

/// What is counted as it happens.
#[derive(Default)]
pub(crate) struct Counters {
    pub(crate) user_bytes: Counter,
    pub(crate) gets: Counter,
    pub(crate) table_bytes: Counter,
    pub(crate) manifest_bytes: Counter,
    pub(crate) log_bytes: Counter,
    pub(crate) rotations: Counter,
    pub(crate) flushes: Counter,
    pub(crate) flush_ns: Counter,
    pub(crate) merges: Counter,
    pub(crate) merge_ns: Counter,
    pub(crate) moves: Counter,
    pub(crate) stalls: Counter,
    pub(crate) stall_ns: Counter,
    pub(crate) helped: Counter,
    pub(crate) superseded: Counter,
    pub(crate) filters_asked: Counter,
    pub(crate) filters_no: Counter,
}

/// Figures about an open database, as of the call.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Stats {
    /// The levels of all column families, summed: tiers of upper runs from the newest, the last run last.
    pub levels: Vec<LevelStats>,
    /// Bytes of keys and values that users committed since the open.
    pub user_bytes_written: u64,
    /// Bytes written to tables since the open, by flushes and merges.
    pub table_bytes_written: u64,
    /// Bytes written to tables and to the manifest since the open: all but the log.
    pub bytes_written: u64,
    /// Bytes of log that were filled since the open. What the kernel writes of them depends on when it does: a recycled
    /// segment may be overwritten before it was ever written back.
    pub log_bytes_written: u64,
    /// `table_bytes_written / user_bytes_written`.
    pub write_amplification: f64,
    /// Bytes of the files on disk: tables and log segments.
    pub disk_bytes: u64,
    /// Memory, by part.
    pub memory: MemoryStats,
    /// Distinct keys in each memtable, summed; deleted ones are counted too.
    pub memtable_keys: u64,
    /// Sealed memtables that wait for their flush.
    pub sealed_memtables: usize,
    /// Snapshots that are alive.
    pub snapshots: usize,
    /// Flushes, and the nanoseconds they took in all.
    pub flushes: u64,
    /// Nanoseconds from the beginning to the end of flushes, summed.
    pub flush_ns: u64,
    /// Merges that rewrote tables.
    pub merges: u64,
    /// Nanoseconds from the beginning to the end of merges, summed.
    pub merge_ns: u64,
    /// Merges that only moved tables down.
    pub trivial_moves: u64,
    /// Times that a writer had to wait for a flush.
    pub stalls: u64,
    /// Nanoseconds that writers waited so.
    pub stall_ns: u64,
    /// Turns that writers in debt took at flushes and merges.
    pub helped: u64,
    /// Syncs of the log.
    pub log_syncs: u64,
    /// Versions that flushes and merges left out because newer ones hide them.
    pub superseded: u64,
    /// Point reads.
    pub gets: u64,
    /// Filters that point reads asked, and that said no and so saved a page. Told by each thread in portions of 256.
    pub filters_asked: u64,
    /// See `filters_asked`.
    pub filters_negative: u64,
    /// Lookups in the caches, of records and of decoded groups, that found theirs. While most miss, few are made.
    pub cache_hits: u64,
    /// Lookups in the caches that did not find theirs.
    pub cache_misses: u64,
}

/// Bytes of memory of an open database, by part.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct MemoryStats {
    /// Nodes and version chains of the memtables.
    pub memtables: u64,
    /// Log segments: file-backed where they are mapped.
    pub segments: u64,
    /// Filters, fences and dictionaries of the tables.
    pub tables: u64,
    /// The caches, of records and of decoded groups.
    pub cache: u64,
}

/// One level: the runs of a tier.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct LevelStats {
    /// The tier: 0 for flushed runs, 255 for the last run.
    pub tier: u8,
    /// Sorted runs.
    pub runs: usize,
    /// Table files.
    pub files: usize,
    /// Bytes of these.
    pub bytes: u64,
    /// Entries in these, all versions.
    pub entries: u64,
}

impl Core {
    pub(crate) fn stats(&self) -> Stats {
        let version = self.version.load_arc();
        let c = &self.counters;
        let mut stats = Stats {
            user_bytes_written: c.user_bytes.get(),
            table_bytes_written: c.table_bytes.get(),
            bytes_written: c.table_bytes.get() + c.manifest_bytes.get(),
            log_bytes_written: c.log_bytes.get() + version.active.segment.used(),
            sealed_memtables: version.sealed.len(),
            snapshots: self.snapshots.list().len(),
            flushes: c.flushes.get(),
            flush_ns: c.flush_ns.get(),
            merges: c.merges.get(),
            merge_ns: c.merge_ns.get(),
            trivial_moves: c.moves.get(),
            stalls: c.stalls.get(),
            stall_ns: c.stall_ns.get(),
            helped: c.helped.get(),
            log_syncs: self.group.syncs(),
            superseded: c.superseded.get(),
            gets: c.gets.get(),
            filters_asked: c.filters_asked.get(),
            filters_negative: c.filters_no.get(),
            disk_bytes: self.pool.disk_bytes(),
            ..Stats::default()
        };
        stats.write_amplification = stats.table_bytes_written as f64 / stats.user_bytes_written.max(1) as f64;
        for mem in std::iter::once(&version.active).chain(&version.sealed) {
            stats.memtable_keys += mem.memtable.keys();
            stats.memory.memtables += mem.memtable.used_bytes() as u64;
            stats.memory.segments += mem.segment.raw().len();
            if mem.segment.raw().file.is_some() {
                stats.disk_bytes += mem.segment.raw().len();
            }
        }
        for run in
            version.tree.families.iter().flat_map(|family| family.all_runs()).filter(|run| !run.is_empty())
        {
            let i = match stats.levels.binary_search_by_key(&run.tier, |level| level.tier) {
                Ok(i) => i,
                Err(i) => {
                    stats.levels.insert(i, LevelStats { tier: run.tier, ..LevelStats::default() });
                    i
                }
            };
            let level = &mut stats.levels[i];
            level.runs += 1;
            level.files += run.tables().len();
            level.bytes += run.bytes;
            level.entries += run.entries;
            stats.disk_bytes += run.bytes;
            stats.memory.tables += run.tables().iter().map(|table| table.memory_bytes() as u64).sum::<u64>();
        }
        let records = self.records.as_ref().map(|records| records.stats()).unwrap_or_default();
        let groups = self.cache.as_ref().map(|groups| groups.stats()).unwrap_or_default();
        stats.memory.cache = (records.bytes + groups.bytes) as u64;
        stats.cache_hits = records.hits + groups.hits;
        stats.cache_misses = records.misses + groups.misses;
        stats
    }
}
