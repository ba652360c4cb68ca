//! A transaction with an explicit end.

use super::Tx;
use super::tx::Of;
use crate::{Db, Durability, Result, TxOptions};
use std::fmt;
use std::ops::{Deref, DerefMut};

/// A transaction that is ended by a call: made by [`Db::begin`]. It has all that [`Tx`] has. Dropping it rolls it back.
///
/// ```
/// # fn main() -> halocline::Result<()> {
/// # let dir = tempfile::tempdir().unwrap();
/// # let db = halocline::Db::open(dir.path().join("data"))?;
/// let mut tx = db.begin(halocline::TxOptions::new());
/// tx.put(b"a", b"1")?;
/// assert!(db.get(b"a")?.is_none());
/// tx.commit()?;
/// assert_eq!(db.get(b"a")?.unwrap(), b"1");
/// # Ok(())
/// # }
/// ```
pub struct Transaction<'db> {
    tx: Tx<'db>,
}

impl<'db> Transaction<'db> {
    pub(crate) fn new(db: Of<'db>, options: TxOptions) -> Transaction<'db> {
        Transaction { tx: Tx::new(db, options) }
    }

    /// Commits, all of it or nothing. Fails with [`Conflict`](crate::ErrorKind::Conflict) if what it relies on was changed
    /// meanwhile: nothing was written then, and it may be run again.
    pub fn commit(mut self) -> Result<()> {
        self.tx.commit()
    }

    /// As [`commit`](Transaction::commit), with at least this durability.
    pub fn commit_with(mut self, durability: Durability) -> Result<()> {
        self.tx.options.durability = Some(durability);
        self.tx.commit()
    }

    /// Commits, and begins anew with the same options and memory, whether it could be committed or not.
    pub fn commit_and_reset(&mut self) -> Result<()> {
        self.tx.commit()
    }

    /// Rolls back: nothing was written. The same as dropping it.
    pub fn rollback(self) {}

    pub(super) fn tx(&mut self) -> &mut Tx<'db> {
        &mut self.tx
    }

    /// Rolls back, and begins anew with the same options and memory.
    pub fn reset(&mut self) {
        self.tx.reset();
    }
}

impl<'db> Deref for Transaction<'db> {
    type Target = Tx<'db>;
    fn deref(&self) -> &Tx<'db> {
        &self.tx
    }
}

impl<'db> DerefMut for Transaction<'db> {
    fn deref_mut(&mut self) -> &mut Tx<'db> {
        &mut self.tx
    }
}

impl fmt::Debug for Transaction<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.tx.fmt(f)
    }
}

impl Db {
    /// Begins a transaction that is ended by a call. [`update`](Db::update) is simpler, and runs it again after a conflict.
    pub fn begin(&self, options: TxOptions) -> Transaction<'_> {
        Transaction::new(Of::Borrowed(self), options)
    }

    /// As [`begin`](Db::begin); the transaction keeps the database open like a handle does.
    pub fn begin_owned(&self, options: TxOptions) -> Transaction<'static> {
        Transaction::new(Of::Owned(self.clone()), options)
    }
}
