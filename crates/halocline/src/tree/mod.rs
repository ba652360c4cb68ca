//! The tree of runs: what tables there are, in which order, how that is made durable, and what to merge next.
//!
//! - `run`, `version`: the immutable shape of the tree, and the edits that lead from one to the next;
//! - `edit`, `manifest`: these edits in bytes, and the append-only log of them that recovery reads;
//! - `pin`: how readers hold on to the newest immutable version without a lock or a shared counter;
//! - `policy`: pure functions from the shape to the next merge.
//!
//! `docs/design/050-tree.md` draws the formats and gives the reasons.

pub(crate) mod edit;
pub(crate) mod flush;
pub(crate) mod heat;
pub(crate) mod manifest;
pub(crate) mod merge_job;
pub(crate) mod output;
pub(crate) mod pacing;
pub(crate) mod pin;
pub(crate) mod policy;
pub(crate) mod run;
mod state;
pub(crate) mod turns;
pub(crate) mod version;
