//! The log: a chain of segments that are the memtables' memory.
//!
//! ```text
//!   pool ──take──▶ active segment ──seal──▶ sealed segments ──tables durable──▶ pool
//! ```
//!
//! - [`record`]: one commit in bytes. Every record carries its own address, so a recycled file needs no clearing.
//! - [`segment`]: a file, or anonymous memory, with a place in the address space; rooms in it are reserved by one
//!   `fetch_add`.
//! - [`slots`]: who is still writing below an address.
//! - [`pool`]: segments made ahead of need, and recycled.
//! - [`sync`]: group commit.
//! - [`recovery`]: from files back to sealed segments.
//!
//! An address (LSN) is the base of a segment plus the offset in its file, and is the version of what lies there. The
//! bases of successive segments grow, so addresses order all commits. A segment's seal names the base of the next
//! one: recovery follows that chain from the *floor*, the address below which everything is in tables.

pub(crate) mod bench;
pub(crate) mod pool;
pub(crate) mod record;
pub(crate) mod recovery;
pub(crate) mod segment;
pub(crate) mod slots;
pub(crate) mod sync;
#[cfg(all(test, not(shuttle)))]
mod tests;
