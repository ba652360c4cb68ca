//! The memory budget: what each part of the engine holds, against one limit.
//!
//! The parts count for themselves, with one relaxed atomic addition per allocation of a node, a filter or a cursor,
//! each on a line of its own. Nothing is refused here: whoever can give way (the cache, above all) looks at
//! [`Budget::room`] and does.

use crate::sync::Padded;
use crate::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::Arc;

/// Who holds memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// Nodes of memtables; their entries lie in the log.
    MemtableNodes,
    /// Filters of open tables.
    Filters,
    /// Fences and dictionaries of open tables.
    Fences,
    /// Hot decoded groups.
    Cache,
    /// Buffers of cursors.
    Iterators,
}

impl Part {
    /// All parts, in order.
    pub(crate) const ALL: [Part; 5] =
        [Part::MemtableNodes, Part::Filters, Part::Fences, Part::Cache, Part::Iterators];

    /// Its name in reports.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Part::MemtableNodes => "memtable nodes",
            Part::Filters => "filters",
            Part::Fences => "fences",
            Part::Cache => "cache",
            Part::Iterators => "iterators",
        }
    }
}

/// What is held, at about one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    parts: [usize; Part::ALL.len()],
    /// Bytes that all parts together should not exceed.
    pub(crate) limit: usize,
}

impl Usage {
    /// Bytes one part holds.
    pub(crate) fn of(&self, part: Part) -> usize {
        self.parts[part as usize]
    }

    /// Bytes all parts hold.
    pub(crate) fn total(&self) -> usize {
        self.parts.iter().sum()
    }
}

/// Bytes held by each part, and the limit of the sum.
pub(crate) struct Budget {
    parts: [Padded<AtomicUsize>; Part::ALL.len()],
    limit: usize,
}

impl Budget {
    /// A budget of `limit` bytes, none of them held.
    pub(crate) fn new(limit: usize) -> Arc<Budget> {
        Arc::new(Budget { parts: Default::default(), limit })
    }

    fn part(&self, part: Part) -> &AtomicUsize {
        &self.parts[part as usize].0
    }

    /// Counts `bytes` as held until [`Budget::release`].
    pub(crate) fn charge(&self, part: Part, bytes: usize) {
        self.part(part).fetch_add(bytes, Relaxed);
    }

    /// Counts `bytes`, charged before, as free again.
    pub(crate) fn release(&self, part: Part, bytes: usize) {
        let before = self.part(part).fetch_sub(bytes, Relaxed);
        debug_assert!(before >= bytes, "{} released more than they held", part.name());
    }

    /// Sets what a part holds that keeps its own account.
    pub(crate) fn set(&self, part: Part, bytes: usize) {
        self.part(part).store(bytes, Relaxed);
    }

    /// Counts `bytes` as held for as long as the result lives.
    pub(crate) fn hold(self: &Arc<Self>, part: Part, bytes: usize) -> Held {
        self.charge(part, bytes);
        Held { budget: Arc::clone(self), part, bytes }
    }

    /// Bytes `part` may hold beside what the others hold now.
    pub(crate) fn room(&self, part: Part) -> usize {
        let usage = self.usage();
        self.limit.saturating_sub(usage.total() - usage.of(part))
    }

    /// What is held now.
    pub(crate) fn usage(&self) -> Usage {
        Usage { parts: Part::ALL.map(|part| self.part(part).load(Relaxed)), limit: self.limit }
    }
}

/// Bytes counted in a budget until this is dropped.
pub(crate) struct Held {
    budget: Arc<Budget>,
    part: Part,
    bytes: usize,
}

impl Held {
    /// Changes how many bytes are held.
    pub(crate) fn resize(&mut self, bytes: usize) {
        if bytes > self.bytes {
            self.budget.charge(self.part, bytes - self.bytes);
        } else {
            self.budget.release(self.part, self.bytes - bytes);
        }
        self.bytes = bytes;
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.budget.release(self.part, self.bytes);
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;

    #[test]
    fn parts_are_counted_apart_and_together() {
        let budget = Budget::new(1000);
        budget.charge(Part::MemtableNodes, 300);
        let mut filter = budget.hold(Part::Filters, 200);
        budget.set(Part::Cache, 400);
        assert_eq!((budget.usage().total(), budget.room(Part::Cache)), (900, 500));
        filter.resize(350);
        assert_eq!((budget.usage().of(Part::Filters), budget.room(Part::Cache)), (350, 350));
        filter.resize(50);
        budget.release(Part::MemtableNodes, 300);
        assert_eq!(budget.usage().total(), 450);
        drop(filter);
        assert_eq!(Part::ALL.map(|part| budget.usage().of(part)), [0, 0, 0, 400, 0]);
        budget.charge(Part::Fences, 5000);
        assert_eq!(budget.room(Part::Cache), 0);
    }
}
