//! What the benchmarks may touch of tables. Not part of the public interface.

use super::filter::Filter;
use super::*;
use crate::entry::Kind;
use crate::io::checksum::key_hash;
use crate::io::{OpenMode, RealVfs, Vfs};
use crate::iter::{Source, Visibility};
use std::hint::black_box;

/// How a table is written and read.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// LZ4 or nothing.
    pub lz4: bool,
    /// Bytes of dictionary, 0 for none.
    pub dictionary_bytes: usize,
    /// A binary fuse filter instead of a Bloom one.
    pub fuse: bool,
    /// `pread` instead of a mapping.
    pub pread: bool,
}

/// An open table.
#[derive(Debug)]
pub struct BenchTable(Arc<Table>);

/// Where a cursor stands.
pub struct BenchCursor(TableCursor);

impl BenchTable {
    /// Writes the entries, keys ascending, to a new file and opens it.
    pub fn build<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        path: &Path,
        shape: Shape,
        entries: impl Iterator<Item = (K, V)>,
    ) -> BenchTable {
        let _ = std::fs::remove_file(path);
        let file = RealVfs.open(path, OpenMode::CreateNew).expect("open");
        let options = TableOptions {
            compression: if shape.lz4 { Codec::Lz4 } else { Codec::None },
            filter: if shape.fuse { FilterKind::Fuse8 } else { FilterKind::Bloom { bits_per_key: 12 } },
            dictionary_bytes: shape.dictionary_bytes,
            ..TableOptions::default()
        };
        let mut builder = TableBuilder::new(file.clone(), path, 1, options);
        for (key, value) in entries {
            builder.add(key.as_ref(), 0, Kind::Put, value.as_ref()).expect("add");
        }
        let meta = builder.finish().expect("finish");
        let access = if shape.pread { Access::Pread } else { Access::Mapped };
        BenchTable(Table::open(file, path, meta, access, None).expect("open"))
    }

    /// Bytes of the file.
    pub fn file_len(&self) -> u64 {
        self.0.meta().file_len
    }

    /// Bytes in memory.
    pub fn memory_bytes(&self) -> usize {
        self.0.memory_bytes()
    }

    /// Asks the filter, then the table; the length of the value.
    #[inline]
    pub fn get(&self, key: &[u8]) -> Option<usize> {
        if !self.0.may_contain(key_hash(key)) {
            return None;
        }
        self.0.get(key, u64::MAX).expect("get").map(|hit| black_box(&hit.value).len())
    }

    /// Asks the filter alone.
    #[inline]
    pub fn may_contain(&self, key: &[u8]) -> bool {
        self.0.may_contain(key_hash(key))
    }

    /// Finds the page of a key.
    #[inline]
    pub fn fence(&self, key: &[u8]) -> usize {
        self.0.fences.first_page_for(key)
    }

    /// A cursor.
    pub fn cursor(&self) -> BenchCursor {
        BenchCursor(self.0.cursor(Visibility::Before(u64::MAX)))
    }
}

impl BenchCursor {
    /// Seeks, and says whether there is an entry.
    #[inline]
    pub fn seek(&mut self, key: &[u8]) -> bool {
        self.0.seek(key).expect("seek");
        self.0.valid()
    }

    /// Walks `n` entries on from the start; the sum of what it read.
    pub fn scan(&mut self, values: bool, reverse: bool) -> usize {
        let mut sum = 0;
        if reverse { self.0.seek_last() } else { self.0.seek_first() }.expect("seek");
        while self.0.valid() {
            sum += self.0.key()[0] as usize;
            if values {
                sum += self.0.value().expect("value")[0] as usize;
            }
            if reverse { self.0.prev() } else { self.0.next() }.expect("next");
        }
        sum
    }
}

/// Builds a filter over those hashes; its bytes.
pub fn build_filter(hashes: &[u64], fuse: bool) -> usize {
    let kind = if fuse { FilterKind::Fuse8 } else { FilterKind::Bloom { bits_per_key: 12 } };
    Filter::build(kind, &mut hashes.to_vec()).memory_bytes()
}
