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

/// How many 8-byte words a page has.
const WORDS: usize = PAGE / 8;

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
    if std::ptr::eq(a, b) {
        return Vec::new();
    }
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

    /// The words of page `number`.
    fn words(&self, number: u64) -> &[AtomicU64; WORDS] {
        assert!(self.covers(number));
        // SAFETY: the page is in bounds, aligned (pages are), writable, alive as long as `self`. That others store
        // here without atomics is the point of a mapping; see the type's comment.
        unsafe { &*self.memory.as_ptr().add(number as usize * PAGE).cast() }
    }

    /// The bytes of page `number`.
    fn bytes(&self, number: u64) -> &[AtomicU8; PAGE] {
        assert!(self.covers(number));
        // SAFETY: as in `words`.
        unsafe { &*self.memory.as_ptr().add(number as usize * PAGE).cast() }
    }

    /// Whether page `number` holds `bytes` now. Every sync and every image asks this of every page, and tests are
    /// often built without optimisation, so it is a plain loop: iterators would take five times as long there.
    pub(super) fn holds(&self, number: u64, bytes: &Page) -> bool {
        let (now, (expected, _)) = (self.words(number), bytes.as_chunks::<8>());
        let mut i = 0;
        while i < WORDS {
            if now[i].load(Ordering::Relaxed) != u64::from_ne_bytes(expected[i]) {
                return false;
            }
            i += 1;
        }
        true
    }

    /// The bytes of page `number` now.
    pub(super) fn load_page(&self, number: u64) -> Page {
        let mut bytes = ZEROS;
        let (words, _) = bytes.as_chunks_mut::<8>();
        for (now, w) in self.words(number).iter().zip(words) {
            *w = now.load(Ordering::Relaxed).to_ne_bytes();
        }
        bytes
    }

    /// Copies `range` of page `number` out.
    pub(super) fn load(&self, number: u64, range: Range<usize>, to: &mut [u8]) {
        if range.len() == PAGE {
            to.copy_from_slice(&self.load_page(number));
        } else {
            for (now, to) in self.bytes(number)[range].iter().zip(to) {
                *to = now.load(Ordering::Relaxed);
            }
        }
    }

    /// Copies `from` to page `number`, from byte `start` of it.
    pub(super) fn store(&self, number: u64, start: usize, from: &[u8]) {
        if from.len() == PAGE {
            let (words, _) = from.as_chunks::<8>();
            for (now, w) in self.words(number).iter().zip(words) {
                now.store(u64::from_ne_bytes(*w), Ordering::Relaxed);
            }
        } else {
            for (now, from) in self.bytes(number)[start..][..from.len()].iter().zip(from) {
                now.store(*from, Ordering::Relaxed);
            }
        }
    }

    /// The numbers of its first `count` pages, less (if the system tells) those that have never been touched, which
    /// are zeros: looking at them would cost more than all the rest of a large file.
    pub(super) fn touched(&self, count: u64) -> Vec<u64> {
        let all = 0..count;
        let Some(entries) = self.page_table(count).filter(|e| e.len() as u64 == count) else {
            return all.collect();
        };
        // A page is in memory (bit 63), or was swapped out (bit 62).
        all.zip(entries).filter(|(_, entry)| entry >> 62 != 0).map(|(number, _)| number).collect()
    }

    /// What `/proc/self/pagemap` says of the first `count` pages; not asked for small files.
    fn page_table(&self, count: u64) -> Option<Vec<u64>> {
        use std::os::unix::fs::FileExt;
        if count < 64 || rustix::param::page_size() != PAGE || cfg!(miri) {
            return None;
        }
        let mut bytes = vec![0; usize::try_from(count).ok()? * 8];
        let start = self.memory.as_ptr() as u64 / PAGE as u64 * 8;
        std::fs::File::open("/proc/self/pagemap").ok()?.read_exact_at(&mut bytes, start).ok()?;
        let (entries, _) = bytes.as_chunks::<8>();
        Some(entries.iter().map(|e| u64::from_ne_bytes(*e)).collect())
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
