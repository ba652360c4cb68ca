//! The engine that does nothing: what remains is the harness's own cost.

use super::{Cursor, Durability, Engine, Result, Session};
use std::time::Duration;

/// It has no class, and is run in any.
pub const CLASSES: [(Durability, &str); 4] = [
    (Durability::None, "-"),
    (Durability::Process, "-"),
    (Durability::Interval, "-"),
    (Durability::Sync, "-"),
];

pub struct Null;

impl Engine for Null {
    fn session(&self) -> Result<Box<dyn Session + '_>> {
        Ok(Box::new(NullSession { sum: 0 }))
    }
    fn settle(&self, _limit: Duration) -> Result<bool> {
        Ok(true)
    }
    fn stores(&self) -> bool {
        false
    }
    fn close(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}

struct NullSession {
    sum: u64,
}

impl NullSession {
    /// Touches the ends, so that the compiler cannot drop the work that made the bytes.
    #[inline]
    fn touch(&mut self, bytes: &[u8]) {
        let ends =
            u64::from(bytes.first().copied().unwrap_or(0)) + u64::from(bytes.last().copied().unwrap_or(0));
        self.sum = std::hint::black_box(self.sum.wrapping_add(ends));
    }
}

impl Session for NullSession {
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.touch(key);
        self.touch(value);
        Ok(())
    }
    fn delete(&mut self, key: &[u8]) -> Result<()> {
        self.touch(key);
        Ok(())
    }
    fn batch_put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.put(key, value)
    }
    fn batch_delete(&mut self, key: &[u8]) -> Result<()> {
        self.delete(key)
    }
    fn commit(&mut self) -> Result<()> {
        Ok(())
    }
    fn get(&mut self, key: &[u8]) -> Result<Option<&[u8]>> {
        self.touch(key);
        Ok(Some(&[]))
    }
    fn cursor(&mut self) -> Result<Box<dyn Cursor + '_>> {
        Ok(Box::new(NullCursor { key: vec![0; 16] }))
    }
}

/// Stays wherever it was sent, for ever: it has no end.
struct NullCursor {
    key: Vec<u8>,
}

impl Cursor for NullCursor {
    fn seek_first(&mut self) -> Result<bool> {
        Ok(true)
    }
    fn seek(&mut self, key: &[u8]) -> Result<bool> {
        self.key.clear();
        self.key.extend_from_slice(key);
        Ok(true)
    }
    fn next(&mut self) -> Result<bool> {
        Ok(true)
    }
    fn seek_last(&mut self) -> Result<bool> {
        self.seek_first()
    }
    fn seek_back(&mut self, key: &[u8]) -> Result<bool> {
        self.seek(key)
    }
    fn prev(&mut self) -> Result<bool> {
        self.next()
    }
    fn key(&self) -> &[u8] {
        &self.key
    }
    fn value(&mut self) -> Result<&[u8]> {
        Ok(&self.key)
    }
}
