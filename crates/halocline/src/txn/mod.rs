//! Transactions: reads and writes that take place at one moment, or not at all.
//!
//! # How
//!
//! A transaction reads from a snapshot and collects its writes beside ([`write_set`]). To commit, it reserves its place in
//! the log like any commit, which orders it after everything below and before everything above. Then it waits until what
//! is below is complete, and checks that nothing it read was changed between its snapshot and its place
//! ([`reads`]). If so, all its reads are as true at its place as they were at its snapshot: it took place there, at one
//! moment. If not, it leaves a pad in the log and fails with a conflict.
//!
//! That is optimistic concurrency control with backward validation (Kung and Robinson, 1981), with the log as the order and as
//! the list of what others wrote. Plain writes are transactions that read nothing: they are never checked, never wait, and
//! are seen by those who must be. Serializable transactions and plain writes are strictly serializable, in the order of
//! their log addresses; those that write nothing, and get nothing for update, take place at their snapshot.
//!
//! # Levels
//!
//! | level | reads | checked at commit |
//! |---|---|---|
//! | read uncommitted | the newest of each key | `get_for_update` |
//! | read committed | each call as of its own moment | `get_for_update` |
//! | repeatable read | a snapshot | keys that were read, also through ranges |
//! | snapshot | a snapshot | keys that are written, `get_for_update` |
//! | serializable | a snapshot | keys and ranges that were read, absent keys and empty ranges included |
//!
//! Nothing uncommitted is ever shown to anyone, at any level.
//!
//! # Locks
//!
//! A pessimistic transaction also locks the keys that it writes or gets for update, as it does so ([`locks`]). It waits for the
//! other holder instead of failing at its commit; the checks stay, for those who take no locks.

mod gate;
mod iter;
mod locks;
mod options;
mod prepared;
mod reads;
mod transaction;
mod tx;
mod update;
mod write_set;

pub(crate) use gate::Gate;
pub use iter::TxIter;
pub(crate) use locks::{Holder, Locks};
pub use options::{Isolation, LockMode, TxOptions};
pub(crate) use prepared::{PreparedSet, recover as recover_prepared};
pub use transaction::Transaction;
pub use tx::{Savepoint, Tx};
pub(crate) use write_set::{WriteCursor, WriteSet};
