//! The closure as the transaction.

use super::tx::Of;
use super::{Tx, TxOptions};
use crate::sync::Backoff;
use crate::{Db, Error, ErrorKind, Result, Snapshot};

/// Attempts before a transaction is run alone.
const ATTEMPTS: u32 = 8;

impl Db {
    /// Runs `work` as a serializable transaction, and commits it if it returns `Ok`: all its writes take place at one moment,
    /// and what it read is true then. If it returns an error or panics, nothing was written.
    ///
    /// If another commit was in its way, it is run again, from the beginning: it must be repeatable, so let it have no effects
    /// but through the transaction and its result ([`Tx::on_commit`] is the place for others). After a few attempts it
    /// is run alone, while other commits wait: it always ends, unless it waits itself for another thread's commit. (Alone, what
    /// its own thread writes past it does not count as another's.)
    ///
    /// ```
    /// # fn main() -> halocline::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = halocline::Db::open(dir.path().join("data"))?;
    /// let visits = db.update(|tx| {
    ///     let visits = tx.get(b"visits")?.map_or(0, |v| v.to_vec().try_into().map_or(0, u64::from_le_bytes));
    ///     tx.put(b"visits", (visits + 1).to_le_bytes())?;
    ///     Ok(visits + 1)
    /// })?;
    /// assert_eq!(visits, 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn update<T>(&self, work: impl FnMut(&mut Tx<'_>) -> Result<T>) -> Result<T> {
        self.try_update(&TxOptions::default(), work)
    }

    /// As [`update`](Db::update), with options.
    pub fn update_with<T>(
        &self,
        options: &TxOptions,
        work: impl FnMut(&mut Tx<'_>) -> Result<T>,
    ) -> Result<T> {
        self.try_update(options, work)
    }

    /// As [`update_with`](Db::update_with), for a closure with errors of its own.
    pub fn try_update<T, E: From<Error>>(
        &self,
        options: &TxOptions,
        mut work: impl FnMut(&mut Tx<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        let mut tx = Tx::new(Of::Borrowed(self), options.clone());
        for attempt in 0..ATTEMPTS {
            match work(&mut tx) {
                Ok(value) => match tx.commit() {
                    Ok(()) => return Ok(value),
                    Err(e) if e.kind() == ErrorKind::Conflict => {}
                    Err(e) => return Err(e.into()),
                },
                Err(_) if tx.beaten => tx.reset(),
                Err(e) => return Err(e),
            }
            // Rivals come back at different times.
            let mut backoff = Backoff::default();
            for _ in 0..self.core.vfs.random() % (4 << attempt) {
                backoff.wait();
            }
        }
        let core = &self.core;
        core.halt.check()?;
        let alone = core.gate.alone(core);
        tx.alone = true;
        let value = work(&mut tx)?;
        let hooks = tx.commit_before_hooks()?;
        // They may wait for others.
        drop(alone);
        hooks.into_iter().for_each(|hook| hook());
        Ok(value)
    }

    /// Runs `work` on a snapshot: everything it reads is as of one moment. Costs no more than the reads, and is in nobody's
    /// way.
    ///
    /// ```
    /// # fn main() -> halocline::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = halocline::Db::open(dir.path().join("data"))?;
    /// db.put(b"a", b"1")?;
    /// let total: usize = db.view(|snap| {
    ///     let mut total = 0;
    ///     for item in snap.iter() {
    ///         total += item?.1.len();
    ///     }
    ///     Ok(total)
    /// })?;
    /// assert_eq!(total, 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn view<T>(&self, work: impl FnOnce(&Snapshot) -> Result<T>) -> Result<T> {
        work(&self.snapshot()?)
    }
}
