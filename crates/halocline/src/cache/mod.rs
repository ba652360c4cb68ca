//! The caches, of hot records and of decoded value groups, and the memory budget.
//!
//! - [`Records`]: values of hot keys, asked before any table is.
//! - [`HotGroups`]: decoded groups that were asked for more than once, within a byte budget.
//! - [`Budget`]: what the parts of the engine that hold memory hold, counted, and how much they may.
//!
//! Everything here is shared by all threads.

mod budget;
mod counters;
mod groups;
mod records;
mod set;
#[cfg(all(test, not(shuttle)))]
mod speed;

pub(crate) use budget::{Budget, Part};
pub(crate) use groups::HotGroups;
pub(crate) use records::{Place, Records};

use crate::table::GroupCache;
