//! Halocline: an embedded, ordered, transactional key-value engine.
//!
//! ```
//! # fn main() -> halocline::Result<()> {
//! # let dir = tempfile::tempdir().unwrap();
//! # let path = dir.path().join("data");
//! let db = halocline::Db::open(&path)?;
//! db.put(b"apple", b"red")?;
//! db.put(b"plum", b"blue")?;
//! assert_eq!(db.get(b"apple")?.unwrap(), b"red");
//! for item in db.range(b"a"..b"c") {
//!     let (key, value) = item?;
//!     assert_eq!((&*key, &*value), (b"apple".as_slice(), b"red".as_slice()));
//! }
//! # Ok(())
//! # }
//! ```
#![deny(missing_docs, unsafe_op_in_unsafe_fn)]
#![cfg_attr(test, expect(clippy::disallowed_methods, reason = "tests may look at the clock and wait"))]

mod cache;
mod db;
mod entry;
mod error;
pub mod io;
mod iter;
mod key;
mod log;
mod memtable;
mod sync;
mod table;
mod tree;
mod txn;
mod value;

/// What the benchmarks measure of the inside. Not part of the interface: it changes without notice.
#[doc(hidden)]
pub mod bench_internals {
    pub use crate::log::bench::LogBench;
    pub use crate::memtable::MemtableBench;
}

pub use db::{
    CheckReport, ColumnFamily, Compaction, Compression, Cursor, Damage, Db, Durability, Iter, KeyRange, Keys,
    LevelStats, LogMode, MemoryStats, Options, Snapshot, Stats, TableAccess, WriteBatch,
};
pub use error::{Error, ErrorKind, Result};
pub use key::Key;
pub use txn::{Isolation, LockMode, Savepoint, Transaction, Tx, TxIter, TxOptions};
pub use value::Value;

/// The README's program is compiled and run with the documentation tests.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

/// So are the guide's.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/transactions.md")]
struct TransactionsGuide;

#[doc(hidden)]
pub use table::bench as bench_internals_table;
