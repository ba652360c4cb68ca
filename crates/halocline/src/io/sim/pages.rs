//! What a simulated file's bytes are kept in: pages that versions of the file share, and, for a mapped file, one
//! stretch of real memory.

use crate::io::mapping::MemoryOwner;
use crate::io::{Advice, MapMode, Mapping};
use std::collections::BTreeMap;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

/// What the system writes back as one.
pub(super) const PAGE: usize = 4096;
/// What a disk writes whole or not at all.
pub(super) const SECTOR: usize = 512;

/// The bytes of one page.
pub(super) type Page = [u8; PAGE];

/// A file's content by page number; a page that is not there is all zeros, and none that is there is. Versions of
/// a file share their pages, so copying a version costs a tree of pointers.
pub(super) type PageMap = BTreeMap<u64, Arc<Page>>;

pub(super) static ZEROS: Page = [0; PAGE];

/// The bytes of page `number` of `pages`.
pub(super) fn page(pages: &PageMap, number: u64) -> &Page {
    pages.get(&number).map_or(&ZEROS, |p| p)
}

/// Puts `bytes` as page `number`.
pub(super) fn put_page(pages: &mut PageMap, number: u64, bytes: Option<Arc<Page>>) {
    match bytes {
        Some(bytes) => pages.insert(number, bytes),
        None => pages.remove(&number),
    };
}

/// `bytes` as a page to put; `None` if it is all zeros.
pub(super) fn as_page(bytes: &Page) -> Option<Arc<Page>> {
    (bytes != &ZEROS).then(|| Arc::new(*bytes))
}

/// The numbers of the pages in which two versions differ, in order.
pub(super) fn differing(a: &PageMap, b: &PageMap) -> Vec<u64> {
    let only_in_b = b.keys().filter(|n| !a.contains_key(n)).copied();
    let changed = a.iter().filter(|(n, p)| b.get(n).is_none_or(|q| !Arc::ptr_eq(p, q) && p != &q));
    let mut all: Vec<u64> = changed.map(|(n, _)| *n).chain(only_in_b).collect();
    all.sort_unstable();
    all
}

/// How many pages `len` bytes take.
pub(super) fn pages_for(len: u64) -> u64 {
    len.div_ceil(PAGE as u64)
}

/// The parts of `[offset, offset + len)` page by page: (page number, range in the page, range in the buffer).
pub(super) fn split(offset: u64, len: usize) -> impl Iterator<Item = (u64, Range<usize>, Range<usize>)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        if done == len {
            return None;
        }
        let at = offset + done as u64;
        let start = (at % PAGE as u64) as usize;
        let n = (PAGE - start).min(len - done);
        let part = (at / PAGE as u64, start..start + n, done..done + n);
        done += n;
        Some(part)
    })
}

/// The memory of a mapped file: whole pages from the file's start.
///
/// The program under test stores here from any thread at any time, with no lock, as into a real mapping, while
/// images are taken. All access from this side is therefore by relaxed atomic words (bytes at the edges): what is
/// seen of a store that is under way is any mix of old and new words, which is what a disk would see of it too.
#[derive(Debug)]
pub(super) struct Region {
    memory: Mapping,
}

impl Region {
    /// Zeroed memory for at least `len` bytes; untouched pages cost no memory.
    pub(super) fn new(len: u64) -> std::io::Result<Region> {
        let len =
            usize::try_from(pages_for(len) * PAGE as u64).map_err(|_| std::io::ErrorKind::OutOfMemory)?;
        Ok(Region { memory: Mapping::anonymous(len)? })
    }

    pub(super) fn len(&self) -> u64 {
        self.memory.len() as u64
    }

    /// Whether page `number` lies in it.
    pub(super) fn covers(&self, number: u64) -> bool {
        number < pages_for(self.len())
    }

    fn word(&self, number: u64, index: usize) -> &AtomicU64 {
        let offset = number as usize * PAGE + index * 8;
        assert!(offset + 8 <= self.memory.len());
        // SAFETY: in bounds, aligned (pages are), writable, alive as long as `self`. That others store here without
        // atomics is the point of a mapping; see the type's comment.
        unsafe { AtomicU64::from_ptr(self.memory.as_ptr().add(offset).cast()) }
    }

    fn byte(&self, offset: usize) -> &AtomicU8 {
        assert!(offset < self.memory.len());
        // SAFETY: as in `word`.
        unsafe { AtomicU8::from_ptr(self.memory.as_ptr().add(offset)) }
    }

    /// Whether page `number` holds `bytes` now.
    pub(super) fn holds(&self, number: u64, bytes: &Page) -> bool {
        let (words, _) = bytes.as_chunks::<8>();
        words
            .iter()
            .enumerate()
            .all(|(i, w)| self.word(number, i).load(Ordering::Relaxed).to_ne_bytes() == *w)
    }

    /// The bytes of page `number` now.
    pub(super) fn load_page(&self, number: u64) -> Page {
        let mut bytes = ZEROS;
        let (words, _) = bytes.as_chunks_mut::<8>();
        for (i, w) in words.iter_mut().enumerate() {
            *w = self.word(number, i).load(Ordering::Relaxed).to_ne_bytes();
        }
        bytes
    }

    /// Copies `range` of page `number` out.
    pub(super) fn load(&self, number: u64, range: Range<usize>, to: &mut [u8]) {
        if range.len() == PAGE {
            to.copy_from_slice(&self.load_page(number));
        } else {
            for (at, to) in range.zip(to) {
                *to = self.byte(number as usize * PAGE + at).load(Ordering::Relaxed);
            }
        }
    }

    /// Copies `from` to page `number`, from byte `start` of it.
    pub(super) fn store(&self, number: u64, start: usize, from: &[u8]) {
        match from.as_chunks::<8>() {
            (words, []) if start == 0 => {
                for (i, w) in words.iter().enumerate() {
                    self.word(number, i).store(u64::from_ne_bytes(*w), Ordering::Relaxed);
                }
            }
            _ => {
                for (at, from) in (start..).zip(from) {
                    self.byte(number as usize * PAGE + at).store(*from, Ordering::Relaxed);
                }
            }
        }
    }

    /// A mapping of its first `len` bytes, which keeps it alive.
    pub(super) fn map(self: &Arc<Region>, len: usize, mode: MapMode) -> Mapping {
        assert!(len <= self.memory.len());
        let ptr = NonNull::new(self.memory.as_ptr()).expect("mapped memory is not at null");
        let owner = Box::new(RegionRef { _region: Arc::clone(self) });
        // SAFETY: the region owns `len` bytes there, all writable, and `owner` keeps it.
        unsafe { Mapping::from_owner(ptr, len, mode == MapMode::Shared, owner) }
    }
}

/// A mapping's hold on the region.
struct RegionRef {
    _region: Arc<Region>,
}

impl MemoryOwner for RegionRef {
    /// All advice is taken note of and nothing done: populating would only cost memory.
    fn advise(&self, _: Advice, _: Range<usize>) -> std::io::Result<()> {
        Ok(())
    }
}
