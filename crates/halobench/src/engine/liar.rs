//! An engine for tests: an ordered map that can be told to lie, each lie a bug that engines have had.

use super::{Config, Cursor, Engine, Result, Session};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What it does wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lie {
    /// Nothing.
    Honest,
    /// Drops one put in ten.
    LosesKeys,
    /// Answers gets of some keys with their first value.
    OldValue,
    /// Keeps the first value of some keys for good.
    IgnoresOverwrite,
    /// Swaps two neighbours in scans.
    ReordersScan,
    /// Leaves out a key in scans.
    SkipsInScan,
    /// Seeks land one too far.
    SeeksTooFar,
    /// Flips a bit of some values.
    CorruptsValue,
    /// Keeps some deleted keys.
    KeepsDeleted,
    /// Comes back without some keys.
    ForgetsOnReopen,
}

type Map = BTreeMap<Vec<u8>, (Vec<u8>, Vec<u8>)>;

/// A store that outlives its engines, as a folder does. Values are the newest and the first.
#[derive(Clone)]
pub struct Store {
    lie: Lie,
    map: Arc<Mutex<Map>>,
}

impl Store {
    /// An empty store.
    pub fn new(lie: Lie) -> Store {
        Store { lie, map: Arc::default() }
    }

    /// An engine on it.
    pub fn open(&self, _name: &str, _dir: &Path, _config: &Config) -> Result<Box<dyn Engine>> {
        Ok(Box::new(self.clone()))
    }
}

/// One key in ten, by its last bytes.
fn chosen(key: &[u8]) -> bool {
    key.iter()
        .rev()
        .take(4)
        .fold(7u32, |h, &b| h.wrapping_mul(31).wrapping_add(u32::from(b)))
        .is_multiple_of(10)
}

impl Engine for Store {
    fn session(&self) -> Result<Box<dyn Session + '_>> {
        Ok(Box::new(LiarSession { store: self.clone(), batch: Vec::new(), got: Vec::new() }))
    }
    fn settle(&self, _limit: Duration) -> Result<bool> {
        Ok(true)
    }
    fn close(self: Box<Self>) -> Result<()> {
        if self.lie == Lie::ForgetsOnReopen {
            self.map.lock().unwrap().retain(|k, _| !chosen(k));
        }
        Ok(())
    }
}

struct LiarSession {
    store: Store,
    batch: Vec<(Vec<u8>, Option<Vec<u8>>)>,
    got: Vec<u8>,
}

impl Session for LiarSession {
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.batch_put(key, value)?;
        self.commit()
    }
    fn delete(&mut self, key: &[u8]) -> Result<()> {
        self.batch_delete(key)?;
        self.commit()
    }
    fn batch_put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.batch.push((key.into(), Some(value.into())));
        Ok(())
    }
    fn batch_delete(&mut self, key: &[u8]) -> Result<()> {
        self.batch.push((key.into(), None));
        Ok(())
    }
    fn commit(&mut self) -> Result<()> {
        let mut map = self.store.map.lock().unwrap();
        for (key, value) in self.batch.drain(..) {
            let lies = chosen(&key);
            match (self.store.lie, value) {
                (Lie::LosesKeys, Some(_)) | (Lie::KeepsDeleted, None) if lies => {}
                (Lie::IgnoresOverwrite, Some(_)) if lies && map.contains_key(&key) => {}
                (Lie::CorruptsValue, Some(mut value)) if lies => {
                    let last = value.len() - 1;
                    value[last] ^= 1;
                    map.insert(key, (value.clone(), value));
                }
                (_, Some(value)) => {
                    let first = map.get(&key).map_or_else(|| value.clone(), |(_, first)| first.clone());
                    map.insert(key, (value, first));
                }
                (_, None) => {
                    map.remove(&key);
                }
            }
        }
        Ok(())
    }
    fn get(&mut self, key: &[u8]) -> Result<Option<&[u8]>> {
        let map = self.store.map.lock().unwrap();
        let Some((newest, first)) = map.get(key) else { return Ok(None) };
        let old = self.store.lie == Lie::OldValue && chosen(key);
        self.got.clone_from(if old { first } else { newest });
        Ok(Some(&self.got))
    }
    fn cursor(&mut self) -> Result<Box<dyn Cursor + '_>> {
        let map = self.store.map.lock().unwrap();
        let mut entries: Vec<_> = map.iter().map(|(k, (v, _))| (k.clone(), v.clone())).collect();
        let middle = entries.len() / 2;
        match self.store.lie {
            Lie::ReordersScan if middle > 0 => entries.swap(middle - 1, middle),
            Lie::SkipsInScan if middle > 0 => drop(entries.remove(middle)),
            _ => {}
        }
        Ok(Box::new(LiarCursor { entries, at: 0, too_far: self.store.lie == Lie::SeeksTooFar }))
    }
}

struct LiarCursor {
    entries: Vec<(Vec<u8>, Vec<u8>)>,
    at: usize,
    too_far: bool,
}

impl Cursor for LiarCursor {
    fn seek_first(&mut self) -> Result<bool> {
        self.at = 0;
        Ok(!self.entries.is_empty())
    }
    fn seek(&mut self, key: &[u8]) -> Result<bool> {
        // A linear search, since the entries may be out of order; the tests are small.
        self.at = self.entries.iter().position(|(k, _)| k.as_slice() >= key).unwrap_or(self.entries.len());
        if self.too_far && chosen(key) {
            self.at += 1;
        }
        Ok(self.at < self.entries.len())
    }
    fn next(&mut self) -> Result<bool> {
        self.at += 1;
        Ok(self.at < self.entries.len())
    }
    fn seek_last(&mut self) -> Result<bool> {
        self.at = self.entries.len().wrapping_sub(1);
        Ok(self.at < self.entries.len())
    }
    fn seek_back(&mut self, key: &[u8]) -> Result<bool> {
        let found = self.entries.iter().rposition(|(k, _)| k.as_slice() <= key);
        self.at = found.unwrap_or(usize::MAX);
        Ok(found.is_some())
    }
    fn prev(&mut self) -> Result<bool> {
        self.at = self.at.wrapping_sub(1);
        Ok(self.at < self.entries.len())
    }
    fn key(&self) -> &[u8] {
        &self.entries[self.at].0
    }
    fn value(&mut self) -> Result<&[u8]> {
        Ok(&self.entries[self.at].1)
    }
}
