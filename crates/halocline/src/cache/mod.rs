//! The cache of decoded value groups, and the memory budget.
//!
//! - [`HotGroups`]: decoded groups that were asked for more than once, within a byte budget.
//! - [`Budget`]: what the parts of the engine that hold memory hold, counted, and how much they may.
//!
//! Everything here is shared by all threads.

mod budget;
mod counters;
mod groups;
mod set;
#[cfg(all(test, not(shuttle)))]
mod speed;

use std::sync::Arc;

pub(crate) use budget::{Budget, Held, Part, Usage};
pub(crate) use groups::{CacheStats, HotGroups};

/// Where table readers look for a decoded group before they decode it, and offer it afterwards.
///
/// A group is named by its table's id, which is never used again, and its offset in the file. What is offered must be
/// what was decoded there: a group never changes.
pub(crate) trait GroupCache: Send + Sync {
    /// The group, if it is there.
    fn get(&self, table: u64, offset: u64) -> Option<Arc<[u8]>>;
    /// Whether an offer of this group, which was missed, would be taken: if not, a read decodes only as far as its
    /// value and offers nothing. Asking counts as a touch.
    fn wants(&self, table: u64, offset: u64) -> bool;
    /// A group that was missed and decoded whole; kept if it is worth it. Not to be called after `wants` said no to
    /// the same touch: it would count twice, and so be taken.
    fn offer(&self, table: u64, offset: u64, decoded: &[u8]);
}
