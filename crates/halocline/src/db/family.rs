//! Column families: keyspaces of one database that commit together.

use super::core::{Core, Ops, lock};
use super::range::{self, KeyRange};
use super::read::dropped;
use super::{Cursor, Db, Handle, Iter, invalid_name};
use crate::sync::Arc;
use crate::tree::edit::{Edit, MAX_NAME};
use crate::{Error, ErrorKind, Result, Value};
use std::fmt;

/// A column family: a keyspace with its own tables, in one log with the others. The handle is cheap to clone, usable
/// from any thread, and keeps the database open like a [`Db`] does.
///
/// ```
/// # fn main() -> halocline::Result<()> {
/// # let dir = tempfile::tempdir().unwrap();
/// # let db = halocline::Db::open(dir.path().join("data"))?;
/// let users = db.column_family("users")?;
/// users.put(b"1", b"ada")?;
/// assert!(db.get(b"1")?.is_none());
/// let mut batch = halocline::WriteBatch::new();
/// batch.put_cf(&users, b"2", b"grace");
/// batch.put(b"count", b"2");
/// db.write(&batch)?; // both or neither
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct ColumnFamily {
    core: Arc<Core>,
    /// Keeps the database open; batches do without.
    _handle: Option<Arc<Handle>>,
    id: u32,
    name: Arc<str>,
}

impl ColumnFamily {
    pub(super) fn find(db: &Db, name: &str) -> Option<ColumnFamily> {
        let version = db.core.version.load_arc();
        let family = version.tree.family_named(name)?;
        Some(Self::new(db, family.id, name))
    }

    fn new(db: &Db, id: u32, name: &str) -> ColumnFamily {
        ColumnFamily {
            core: Arc::clone(&db.core),
            _handle: Some(Arc::clone(&db.handle)),
            id,
            name: Arc::from(name),
        }
    }

    pub(super) fn create(db: &Db, name: &str) -> Result<ColumnFamily> {
        if name.is_empty() || name.len() > MAX_NAME || is_own(name) {
            return Err(invalid_name(name));
        }
        Self::own(db, name)
    }

    /// As `create`, of any name: those that begin with a zero byte are the engine's own.
    pub(crate) fn own(db: &Db, name: &str) -> Result<ColumnFamily> {
        let core = &db.core;
        if let Some(found) = Self::find(db, name) {
            return Ok(found);
        }
        if core.options.read_only {
            let message =
                format!("no column family {name:?} is there, and the database was opened read-only");
            return Err(Error::new(ErrorKind::ReadOnly, message));
        }
        core.halt.check()?;
        let mut manifest = lock(&core.manifest);
        if let Some(found) = Self::find(db, name) {
            return Ok(found);
        }
        let id = manifest.as_ref().map_or(0, |m| m.state().next_family);
        let next =
            id.checked_add(1).ok_or_else(|| Error::invalid("no more column families can be created"))?;
        let edits = [Edit::AddFamily { id, name: name.into() }, Edit::NextFamily { id: next }];
        core.change_tree(&mut manifest, &edits)?;
        Ok(Self::new(db, id, name))
    }

    pub(crate) fn id(&self) -> u32 {
        self.id
    }

    /// A handle that does not keep the database open.
    pub(crate) fn weak(&self) -> ColumnFamily {
        ColumnFamily { _handle: None, ..self.clone() }
    }

    pub(crate) fn same(&self, other: &ColumnFamily) -> bool {
        self.id == other.id && Arc::ptr_eq(&self.core, &other.core)
    }

    /// Fails if the family is of another database, or was dropped.
    pub(crate) fn check_owner(&self, core: &Arc<Core>) -> Result<()> {
        if !Arc::ptr_eq(&self.core, core) {
            return Err(Error::invalid(format!(
                "the column family {:?} belongs to another database",
                self.name
            )));
        }
        self.check()
    }

    fn check(&self) -> Result<()> {
        match self.core.version.pin().tree.family(self.id) {
            Some(_) => Ok(()),
            None => Err(dropped(self.id)),
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// As [`Db::put`](crate::Db::put).
    pub fn put(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        self.check()?;
        self.core.put(self.id, key.as_ref(), value.as_ref())
    }

    /// As [`Db::get`](crate::Db::get).
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Value>> {
        self.core.get(self.id, key.as_ref(), u64::MAX)
    }

    /// As [`Db::contains`](crate::Db::contains).
    pub fn contains(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        self.core.contains(self.id, key.as_ref(), u64::MAX)
    }

    /// As [`Db::delete`](crate::Db::delete).
    pub fn delete(&self, key: impl AsRef<[u8]>) -> Result<()> {
        self.check()?;
        let op =
            Ops::One { kind: crate::entry::Kind::Delete, family: self.id, key: key.as_ref(), value: &[] };
        self.core.commit(&op, self.core.options.durability)
    }

    /// As [`Db::multi_get`](crate::Db::multi_get).
    pub fn multi_get<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<Value>>> {
        self.core.multi_get(self.id, keys)
    }

    /// As [`Db::range`](crate::Db::range).
    pub fn range(&self, range: impl KeyRange) -> Iter {
        self.core.iter(self.id, range::owned(&range))
    }

    /// As [`Db::prefix`](crate::Db::prefix).
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> Iter {
        self.core.iter(self.id, range::of_prefix(prefix.as_ref()))
    }

    /// As [`Db::iter`](crate::Db::iter).
    pub fn iter(&self) -> Iter {
        self.range(..)
    }

    /// As [`Db::cursor`](crate::Db::cursor).
    pub fn cursor(&self) -> Result<Cursor> {
        self.core.cursor(self.id)
    }
}

impl fmt::Debug for ColumnFamily {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ColumnFamily").field("name", &self.name).field("id", &self.id).finish()
    }
}

/// Whether a column family of that name is the engine's own, and not shown to users.
pub(super) fn is_own(name: &str) -> bool {
    name.starts_with('\0')
}

/// Drops the family of that name; false if there is none.
pub(super) fn drop_family(core: &Arc<Core>, name: &str) -> Result<bool> {
    if core.options.read_only {
        return Err(Error::new(ErrorKind::ReadOnly, "could not drop a column family: opened read-only"));
    }
    core.halt.check()?;
    let mut manifest = lock(&core.manifest);
    let version = core.version.load_arc();
    let Some(family) = version.tree.family_named(name).filter(|_| !is_own(name)) else { return Ok(false) };
    if family.id == 0 {
        return Err(Error::invalid("the default column family cannot be dropped"));
    }
    core.change_tree(&mut manifest, &[Edit::DropFamily { id: family.id }])?;
    drop(manifest);
    for table in family.all_runs().flat_map(|run| run.tables()) {
        core.discard(table);
    }
    Ok(true)
}
