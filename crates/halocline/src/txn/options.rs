//! How a transaction is run.

use crate::Durability;
use std::time::Duration;

/// What a transaction is protected from: which of the anomalies named by Adya (*Weak Consistency*, 1999) cannot happen to
/// it, whatever the other transactions and plain writes do.
///
/// | | dirty write, dirty read (G0, G1) | half of a commit seen | non-repeatable read | lost update | write skew (G2-item) | phantoms (G2) |
/// |---|---|---|---|---|---|---|
/// | `ReadUncommitted` | no | possible | possible | possible | possible | possible |
/// | `ReadCommitted` | no | not within one call | possible | possible | possible | possible |
/// | `RepeatableRead` | no | no | no | no | no | possible |
/// | `Snapshot` | no | no | no | no | possible | possible as write skew |
/// | `Serializable` | no | no | no | no | no | no |
///
/// (A plain [`WriteBatch`](crate::WriteBatch) that writes a key twice may show the first of the two to a read below repeatable
/// read, while it is being committed; a transaction that does never does.)
///
/// What is got with [`Tx::get_for_update`](crate::Tx::get_for_update) does not change before the commit, at any level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Isolation {
    /// Each read sees the newest value of its key. (It is never an uncommitted one: there are none in the database.)
    ReadUncommitted,
    /// Each call, an iteration included, sees what was committed when it began.
    ReadCommitted,
    /// All reads see what was committed at the first one; none of the keys that were read may have changed at the commit.
    RepeatableRead,
    /// All reads see what was committed at the first one; none of the keys that are written may have changed at the commit.
    Snapshot,
    /// As if the transactions had run one after another, in the order of their commits. Those that write nothing, and get
    /// nothing for update, take place at their first read.
    #[default]
    Serializable,
}

/// When a transaction finds out that another one is in its way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum LockMode {
    /// At its commit, which then fails with [`Conflict`](crate::ErrorKind::Conflict): best where that is rare.
    #[default]
    Optimistic,
    /// As it writes a key or gets it for update: it locks the key until its end, and waits while another one holds it. Best
    /// where many want the same keys. Plain writes wait for locks, too, while any are held.
    Pessimistic,
}

/// How a transaction is run. The default: serializable, optimistic, with the database's durability.
#[derive(Clone, Debug)]
pub struct TxOptions {
    pub(crate) isolation: Isolation,
    pub(crate) locks: LockMode,
    pub(crate) lock_timeout: Duration,
    pub(crate) durability: Option<Durability>,
    pub(crate) max_bytes: u64,
}

impl Default for TxOptions {
    fn default() -> Self {
        TxOptions {
            isolation: Isolation::default(),
            locks: LockMode::default(),
            lock_timeout: Duration::from_secs(1),
            durability: None,
            max_bytes: 2 << 30,
        }
    }
}

impl TxOptions {
    /// The defaults.
    pub fn new() -> TxOptions {
        TxOptions::default()
    }

    /// The isolation level.
    #[must_use]
    pub fn isolation(mut self, level: Isolation) -> TxOptions {
        self.isolation = level;
        self
    }

    /// Lock keys as they are written or got for update.
    #[must_use]
    pub fn pessimistic(mut self) -> TxOptions {
        self.locks = LockMode::Pessimistic;
        self
    }

    /// Longest wait for one lock; one second by default. Then the call fails with
    /// [`LockTimeout`](crate::ErrorKind::LockTimeout), and the transaction goes on.
    #[must_use]
    pub fn lock_timeout(mut self, most: Duration) -> TxOptions {
        self.lock_timeout = most;
        self
    }

    /// Commit with at least this durability; the database's default is the least.
    #[must_use]
    pub fn durability(mut self, durability: Durability) -> TxOptions {
        self.durability = Some(durability);
        self
    }

    /// Most bytes of keys and values that it may write: 2 GiB by default, at most 4 GiB less 2 MiB. A write beyond it
    /// fails, and nothing was written to the database. They are held in memory until the commit, which copies them once.
    #[must_use]
    pub fn max_bytes(mut self, most: u64) -> TxOptions {
        self.max_bytes = most;
        self
    }
}
