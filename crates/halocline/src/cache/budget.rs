//! The memory budget: what each part of the engine holds, against one limit.
//!
//! Each part keeps its own account and reports it here now and then. Nothing is refused: whoever can give way (the
//! cache, above all) looks at [`Budget::room`] and does. The figures are read one by one, so they are of about one
//! moment.
//!
//! Shared by all threads.

use crate::sync::Padded;
use crate::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::Arc;

/// Who holds memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// Nodes of memtables; their entries lie in the log.
    MemtableNodes,
    /// Filters, fences and dictionaries of open tables.
    Tables,
    /// What is kept because it was read.
    Cache,
}

const PARTS: usize = 3;

/// Bytes held by each part, and the limit of the sum.
pub(crate) struct Budget {
    parts: [Padded<AtomicUsize>; PARTS],
    limit: usize,
}

impl Budget {
    /// A budget of `limit` bytes, none of them held.
    pub(crate) fn new(limit: usize) -> Arc<Budget> {
        Arc::new(Budget { parts: Default::default(), limit })
    }

    /// Sets what a part holds.
    pub(crate) fn set(&self, part: Part, bytes: usize) {
        self.parts[part as usize].0.store(bytes, Relaxed);
    }

    /// Bytes `part` may hold beside what the others hold now.
    pub(crate) fn room(&self, part: Part) -> usize {
        let others = self.parts.iter().enumerate().filter(|(i, _)| *i != part as usize);
        self.limit.saturating_sub(others.map(|(_, bytes)| bytes.0.load(Relaxed)).sum())
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;

    #[test]
    fn a_part_has_the_room_that_the_others_leave() {
        let budget = Budget::new(1000);
        assert_eq!(budget.room(Part::Cache), 1000);
        budget.set(Part::MemtableNodes, 300);
        budget.set(Part::Tables, 200);
        budget.set(Part::Cache, 400);
        assert_eq!((budget.room(Part::Cache), budget.room(Part::Tables)), (500, 300));
        budget.set(Part::Tables, 50);
        assert_eq!(budget.room(Part::Cache), 650);
        budget.set(Part::Tables, 5000);
        assert_eq!(budget.room(Part::Cache), 0);
    }
}
