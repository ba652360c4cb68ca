//! The tree of runs: what tables there are, in which order, how that is made durable, and what to merge next.
//!
//! - `run`, `version`: the immutable shape of the tree, and the edits that lead from one to the next;
//! - `edit`, `manifest`: these edits in bytes, and the append-only log of them that recovery reads;
//! - `pin`: how readers hold on to the newest immutable version without a lock or a shared counter;
//! - `policy`: pure functions from the shape to the next merge.
//!
//! `docs/design/050-tree.md` draws the formats and gives the reasons.

mod edit;
mod manifest;
mod pin;
mod policy;
mod run;
mod state;
pub(crate) mod version;

pub(crate) use edit::{Edit, SealedSegment};
pub(crate) use manifest::{Manifest, Presence, State};
pub(crate) use pin::{Guard, Pinned};
pub(crate) use policy::{
    Busy, Cuts, Debt, Dest, Job, Params, Policy, Pressure, RangePick, debt, pick, pick_range,
};
pub(crate) use run::{LAST_RUN, LAST_TIER, Run, TableLike};
pub(crate) use version::{Family, Tree};
