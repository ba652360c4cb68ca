//! A batch: writes that commit together, encoded as they will lie in the log.

use super::{ColumnFamily, Durability};
use crate::entry::{self, Kind, Prefix};
use crate::{Error, Result};

/// Writes that commit together, across column families: all of them or none. Later writes to a key win.
///
/// Writes are encoded as they are added, so that a commit is one copy. A key beyond 64 KiB, a value beyond 1 GiB or
/// a batch beyond 4 GiB is refused when the batch is committed, before anything is logged.
///
/// ```
/// # fn main() -> halocline::Result<()> {
/// # let dir = tempfile::tempdir().unwrap();
/// # let db = halocline::Db::open(dir.path().join("data"))?;
/// let mut batch = halocline::WriteBatch::new();
/// batch.put(b"a", b"1");
/// batch.delete(b"b");
/// db.write(&batch)?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct WriteBatch {
    /// Entries, back to back.
    pub(crate) bytes: Vec<u8>,
    /// Where each begins.
    pub(crate) starts: Vec<u32>,
    /// The column families other than the default one, each once.
    pub(crate) families: Vec<ColumnFamily>,
    /// Bytes of keys and values.
    pub(crate) payload: u64,
    /// The first write that is out of bounds.
    pub(crate) refused: Option<Error>,
}

/// Refuses a key or value that is too long.
pub(crate) fn check_lengths(key: &[u8], value: &[u8]) -> Result<()> {
    if key.len() > entry::MAX_KEY {
        return Err(Error::invalid(format!(
            "a key of {} bytes is too long: at most {}",
            key.len(),
            entry::MAX_KEY
        )));
    }
    if value.len() > entry::MAX_VALUE {
        let message = format!("a value of {} bytes is too long: at most {}", value.len(), entry::MAX_VALUE);
        return Err(Error::invalid(message));
    }
    Ok(())
}

impl WriteBatch {
    /// An empty batch.
    pub fn new() -> WriteBatch {
        WriteBatch::default()
    }

    /// Sets `key` to `value` in the default column family.
    pub fn put(&mut self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) {
        self.add(Kind::Put, Prefix::of(0), key.as_ref(), value.as_ref());
    }

    /// Sets `key` to `value` in `family`.
    pub fn put_cf(&mut self, family: &ColumnFamily, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) {
        self.touch(family);
        self.add(Kind::Put, Prefix::of(family.id()), key.as_ref(), value.as_ref());
    }

    /// Removes `key` from the default column family.
    pub fn delete(&mut self, key: impl AsRef<[u8]>) {
        self.add(Kind::Delete, Prefix::of(0), key.as_ref(), &[]);
    }

    /// Removes `key` from `family`.
    pub fn delete_cf(&mut self, family: &ColumnFamily, key: impl AsRef<[u8]>) {
        self.touch(family);
        self.add(Kind::Delete, Prefix::of(family.id()), key.as_ref(), &[]);
    }

    /// A batch of entries that were encoded by another one.
    pub(crate) fn of_entries(mut entries: &[u8]) -> Result<WriteBatch> {
        let mut batch = WriteBatch { bytes: entries.to_vec(), ..WriteBatch::default() };
        let mut start = 0;
        while let Some(entry) = entry::decode(entries) {
            batch.starts.push(start);
            let prefix = Prefix::split(entry.key).map_or(0, |(_, key)| entry.key.len() - key.len());
            batch.payload += (entry.key.len() - prefix + entry.value.len()) as u64;
            start += entry.len as u32;
            entries = &entries[entry.len..];
        }
        if entries.is_empty() { Ok(batch) } else { Err(Error::invalid("the entries are not whole")) }
    }

    fn touch(&mut self, family: &ColumnFamily) {
        if family.id() != 0 && !self.families.iter().any(|f| f.same(family)) {
            self.families.push(family.weak());
        }
    }

    fn add(&mut self, kind: Kind, prefix: Prefix, key: &[u8], value: &[u8]) {
        if let Err(e) = check_lengths(key, value) {
            self.refused.get_or_insert(e);
            return;
        }
        let prefix = prefix.as_slice();
        let start = self.bytes.len();
        let len = entry::encoded_len(prefix.len() + key.len(), value.len());
        if start as u64 + len as u64 > crate::log::record::MAX {
            let message = "a batch is too large: at most 4 GiB of keys and values; commit it in parts";
            self.refused.get_or_insert_with(|| Error::invalid(message));
            return;
        }
        self.bytes.reserve(len);
        entry::append(&mut self.bytes, kind, prefix, key, value);
        debug_assert_eq!(self.bytes.len(), start + len);
        self.starts.push(start as u32);
        self.payload += (key.len() + value.len()) as u64;
    }

    /// Number of writes.
    pub fn len(&self) -> usize {
        self.starts.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.starts.is_empty()
    }

    /// Forgets the writes and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.starts.clear();
        self.families.clear();
        self.payload = 0;
        self.refused = None;
    }
}

/// A commit with another durability than the database's default.
impl Durability {
    /// How far a commit must get: 0 none, 1 in the log, 2 synced.
    pub(crate) fn rank(self) -> u8 {
        match self {
            Durability::None => 0,
            Durability::Process | Durability::Interval(_) => 1,
            Durability::Sync => 2,
        }
    }
}
