//! Tests of the whole format: against a model, and against damage.

mod damage;
mod model;

use super::*;
use crate::io::{Advice, File, MapMode, Mapping};
use std::io;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::Mutex;

/// A file in memory. A mapping of it is a copy of what it was.
#[derive(Debug, Default)]
pub(super) struct MemoryFile(pub(super) Mutex<Vec<u8>>);

impl MemoryFile {
    pub(super) fn new(bytes: Vec<u8>) -> Arc<MemoryFile> {
        Arc::new(MemoryFile(Mutex::new(bytes)))
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        self.0.lock().unwrap().clone()
    }
}

struct Words(#[expect(dead_code, reason = "kept for its memory")] Box<[u64]>);

impl crate::io::MemoryOwner for Words {
    fn advise(&self, _: Advice, _: Range<usize>) -> io::Result<()> {
        Ok(())
    }
}

impl File for MemoryFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let bytes = self.0.lock().unwrap();
        let from = &bytes[(offset as usize).min(bytes.len())..];
        let n = from.len().min(buf.len());
        buf[..n].copy_from_slice(&from[..n]);
        Ok(n)
    }
    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<usize> {
        let mut bytes = self.0.lock().unwrap();
        let end = offset as usize + buf.len();
        if bytes.len() < end {
            bytes.resize(end, 0);
        }
        bytes[offset as usize..end].copy_from_slice(buf);
        Ok(buf.len())
    }
    fn len(&self) -> io::Result<u64> {
        Ok(self.0.lock().unwrap().len() as u64)
    }
    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.lock().unwrap().resize(len as usize, 0);
        Ok(())
    }
    fn allocate(&self, len: u64) -> io::Result<()> {
        self.set_len(len)
    }
    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
    fn map(&self, len: usize, _: MapMode) -> io::Result<Mapping> {
        let bytes = self.0.lock().unwrap();
        if len > bytes.len() || len == 0 {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let mut words = vec![0u64; len.div_ceil(8)].into_boxed_slice();
        for (word, chunk) in words.iter_mut().zip(bytes[..len].chunks(8)) {
            let mut padded = [0; 8];
            padded[..chunk.len()].copy_from_slice(chunk);
            *word = u64::from_ne_bytes(padded);
        }
        let ptr = NonNull::new(words.as_mut_ptr().cast()).expect("not null");
        // SAFETY: the box lives as long as the mapping and is not touched otherwise.
        Ok(unsafe { Mapping::from_owner(ptr, len, false, Box::new(Words(words))) })
    }
}

pub(super) fn path() -> &'static Path {
    Path::new("000000000007.tbl")
}

/// One entry to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Item {
    pub(super) key: Vec<u8>,
    pub(super) version: u64,
    pub(super) kind: crate::entry::Kind,
    pub(super) value: Vec<u8>,
}

pub(super) fn write(items: &[Item], options: &TableOptions, id: u64) -> (Arc<MemoryFile>, TableMeta) {
    let file = MemoryFile::new(Vec::new());
    let mut builder = TableBuilder::new(file.clone(), path(), id, options.clone());
    for item in items {
        builder.add(&item.key, item.version, item.kind, &item.value).unwrap();
    }
    assert_eq!(builder.entries(), items.len() as u64);
    let meta = builder.finish().unwrap();
    (file, meta)
}
