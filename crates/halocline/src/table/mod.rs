//! Sorted tables: immutable files of entries in key order, as `docs/design/040-table-format.md` draws them.
//!
//! - [`builder`] writes one, through [`page_builder`] and [`group`]'s encoder;
//! - [`reader`] opens one and answers point reads; [`cursor`] walks it;
//! - [`page`] interprets a page's bytes, [`fence`] finds the page, [`filter`] says that a key is absent,
//!   [`lz4`] and [`group`] encode and decode value groups, [`dictionary`] chooses what they refer to,
//!   [`footer`] is the end of the file.
//!
//! Invariants: a table's bytes never change once [`TableBuilder::finish`] has returned; what is read from disk is
//! checked before it is believed, so that no file content leads to a panic, a wild read or an unbounded allocation.
//!
//! Threads: a [`Table`] is shared freely; a builder or a cursor belongs to one thread at a time.

#[doc(hidden)]
pub mod bench;
mod builder;
mod cursor;
mod dictionary;
mod fence;
mod filter;
mod footer;
mod group;
mod lz4;
mod meta;
mod page;
mod page_builder;
mod reader;
#[cfg(test)]
mod tests;

pub(crate) use builder::TableBuilder;
pub(crate) use cursor::TableCursor;
pub(crate) use meta::TableMeta;
pub(crate) use reader::Table;

use crate::{Error, Result};
use std::path::Path;
use std::sync::Arc;

/// How value groups are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Codec {
    /// Not at all: reads copy nothing.
    None,
    /// LZ4 blocks, where they save at least 12 %.
    Lz4,
    /// Zstandard frames at this level, where they save at least 12 % (feature `zstd`).
    Zstd(i32),
}

/// Which filter a table carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FilterKind {
    /// None: every key may be there.
    None,
    /// Blocked Bloom: quick to build, one cache line per question. 12 bits give about 0.5 % false positives.
    Bloom {
        /// Bits for each key, 4 to 32.
        bits_per_key: u32,
    },
    /// Binary fuse with 8-bit fingerprints: 9 bits per key, 0.4 %; slower to build.
    Fuse8,
}

/// The shape of a table to be written.
#[derive(Clone, Debug)]
pub(crate) struct TableOptions {
    /// Raw bytes of keys and values a page is filled to, 256 to 32 KiB.
    pub(crate) page_bytes: usize,
    /// Raw bytes of a value group, 64 to 32 KiB.
    pub(crate) group_bytes: usize,
    pub(crate) compression: Codec,
    pub(crate) filter: FilterKind,
    /// Size of the dictionary for LZ4 groups, at most 16 KiB; 0 for none. It is only kept where it pays.
    pub(crate) dictionary_bytes: usize,
}

impl Default for TableOptions {
    fn default() -> Self {
        TableOptions {
            page_bytes: 4096,
            group_bytes: 1024,
            compression: if cfg!(feature = "lz4") { Codec::Lz4 } else { Codec::None },
            filter: FilterKind::Bloom { bits_per_key: 12 },
            dictionary_bytes: 0,
        }
    }
}

/// How a table's pages are reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// Through a mapping of the whole file: no system call per read; damage to the medium is a SIGBUS.
    Mapped,
    /// One `pread` of exactly one page per read.
    Pread,
}

/// Where hot decoded value groups are kept: a cache shared by all tables.
pub(crate) trait GroupCache: Send + Sync {
    /// The decoded group at that offset of that table's file.
    fn get(&self, table: u64, offset: u64) -> Option<Arc<[u8]>>;
    /// Whether an offer of that group would be taken: if not, a read decodes only as far as its value.
    fn wants(&self, table: u64, offset: u64) -> bool {
        let _ = (table, offset);
        true
    }
    /// A group that was decoded just now, whole.
    fn offer(&self, table: u64, offset: u64, decoded: &[u8]);
}

/// What is wrong with some bytes; where they lie is added by [`Damage::at`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Damage {
    Corrupt(&'static str),
    Unsupported(&'static str),
}

impl Damage {
    #[cold]
    fn at(self, path: &Path, offset: u64) -> Error {
        match self {
            Damage::Corrupt(what) => Error::corruption(path, offset, format!("a table is damaged ({what})")),
            Damage::Unsupported(what) => Error::new(
                crate::ErrorKind::Unsupported,
                format!(
                    "a table uses something this version does not know ({what}); open it with a newer one"
                ),
            )
            .at(path, offset),
        }
    }
}

type Checked<T> = Result<T, Damage>;

/// How many bytes `a` and `b` begin with in common.
#[inline]
fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    let n = a.len().min(b.len());
    let mut at = 0;
    for (x, y) in a[..n].chunks_exact(8).zip(b[..n].chunks_exact(8)) {
        let x = u64::from_le_bytes(x.try_into().expect("8 bytes"));
        let y = u64::from_le_bytes(y.try_into().expect("8 bytes"));
        if x != y {
            return at + ((x ^ y).trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    at + a[at..n].iter().zip(&b[at..n]).take_while(|(x, y)| x == y).count()
}

/// The first 4 bytes of `bytes` as a big-endian number, padded with zeros: it sorts as they do.
#[inline]
fn head4(bytes: &[u8]) -> u32 {
    match bytes.first_chunk::<4>() {
        Some(head) => u32::from_be_bytes(*head),
        None => {
            let mut head = [0; 4];
            head[..bytes.len()].copy_from_slice(bytes);
            u32::from_be_bytes(head)
        }
    }
}

/// As [`head4`], of 8 bytes.
#[inline]
fn head8(bytes: &[u8]) -> u64 {
    match bytes.first_chunk::<8>() {
        Some(head) => u64::from_be_bytes(*head),
        None => {
            let mut head = [0; 8];
            head[..bytes.len()].copy_from_slice(bytes);
            u64::from_be_bytes(head)
        }
    }
}

#[inline]
fn get_u16(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[inline]
fn get_u32(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[inline]
fn get_u64(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// Asks the processor to bring the cache line of `p` near.
#[inline(always)]
fn prefetch<T>(p: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: prefetching has no effect on memory, whatever the address.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(p.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = p;
}
