//! Memory that only grows: items are put in, found by a 32-bit number, and dropped all together.
//!
//! ```text
//! chunk 0: FIRST items | chunk 1: 2 * FIRST | chunk 2: 4 * FIRST | ...
//! ```
//!
//! Chunks double, so the table of chunks is small and never moves, an empty arena costs nothing and a large one
//! lies in few, large pieces that ask for huge pages. Items never move either: a reference lives as long as the arena.
//!
//! Thread-safety: `push` from any number of threads; the number it returns must reach another thread by a release
//! store and an acquire load before that thread calls `get` with it.

use crate::io::{Advice, Mapping};
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};

const CHUNKS: usize = 32;
/// Chunks from this size on are mappings of their own (so that they go back to the system at once), aligned to huge
/// pages, and ask for them.
const HUGE: usize = 2 << 20;

pub(super) struct Arena<T, const FIRST: usize> {
    next: AtomicU32,
    chunks: [AtomicPtr<T>; CHUNKS],
    /// Taken to add a chunk; holds the memory of the large ones.
    grow: Mutex<Vec<Mapping>>,
}

// SAFETY: the arena owns its items and hands out only shared references, so it may move between threads with them.
unsafe impl<T: Send + Sync, const FIRST: usize> Send for Arena<T, FIRST> {}
// SAFETY: as above; `push` writes only to the slot whose number no one else was given.
unsafe impl<T: Send + Sync, const FIRST: usize> Sync for Arena<T, FIRST> {}

/// The chunk of item `index` and its place there.
#[inline(always)]
fn locate<const FIRST: usize>(index: u32) -> (usize, usize) {
    const { assert!(FIRST.is_power_of_two()) }
    let shifted = index as usize + FIRST;
    let top = shifted.ilog2();
    ((top - FIRST.ilog2()) as usize, shifted ^ (1 << top))
}

impl<T, const FIRST: usize> Arena<T, FIRST> {
    pub(super) fn new() -> Self {
        Arena {
            next: AtomicU32::new(0),
            chunks: std::array::from_fn(|_| AtomicPtr::new(std::ptr::null_mut())),
            grow: Mutex::new(Vec::new()),
        }
    }

    /// Items so far.
    pub(super) fn len(&self) -> usize {
        self.next.load(Ordering::Relaxed) as usize
    }

    /// Puts `item` in and returns its number; the numbers count from 0.
    pub(super) fn push(&self, item: T) -> u32 {
        let index = self.next.fetch_add(1, Ordering::Relaxed);
        assert!(index < u32::MAX - 1, "an arena is full");
        let (chunk, place) = locate::<FIRST>(index);
        let mut base = self.chunks[chunk].load(Ordering::Acquire);
        if base.is_null() {
            base = self.add_chunk(chunk);
        }
        // SAFETY: `place` is within the chunk, and the number was given to this call alone.
        unsafe { base.add(place).write(item) };
        index
    }

    /// The item of that number.
    ///
    /// # Safety
    /// `index` was returned by `push`, and that call happened before this one.
    #[inline(always)]
    pub(super) unsafe fn get(&self, index: u32) -> &T {
        let (chunk, place) = locate::<FIRST>(index);
        // SAFETY: `chunk` is below `CHUNKS` for every 32-bit index; the chunk exists and the item is written, by the
        // caller's promise; neither changes before the arena is dropped.
        unsafe {
            let base = self.chunks.get_unchecked(chunk).load(Ordering::Relaxed);
            &*base.add(place)
        }
    }

    fn layout(chunk: usize) -> Layout {
        Layout::array::<T>(FIRST << chunk).expect("a chunk fits the address space")
    }

    #[cold]
    fn add_chunk(&self, chunk: usize) -> *mut T {
        let mut mappings = self.grow.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let base = self.chunks[chunk].load(Ordering::Acquire);
        if !base.is_null() {
            return base;
        }
        let layout = Self::layout(chunk);
        let base = if layout.size() < HUGE {
            // SAFETY: the layout is not empty: `FIRST` is not 0 and items have a size.
            let base = unsafe { alloc(layout) };
            if base.is_null() {
                handle_alloc_error(layout);
            }
            base
        } else {
            let Ok(mapping) = Mapping::anonymous(layout.size() + HUGE) else { handle_alloc_error(layout) };
            let skip = mapping.as_ptr().align_offset(HUGE);
            // Refused advice leaves small pages, which serve as well, slower.
            let _ = mapping.advise(Advice::Huge, skip..skip + layout.size());
            // SAFETY: `skip` is below `HUGE`, which was added to the length.
            let base = unsafe { mapping.as_ptr().add(skip) };
            mappings.push(mapping);
            base
        };
        self.chunks[chunk].store(base.cast(), Ordering::Release);
        base.cast()
    }
}

impl<T, const FIRST: usize> Drop for Arena<T, FIRST> {
    fn drop(&mut self) {
        let len = self.len();
        for chunk in 0..CHUNKS {
            let base = self.chunks[chunk].load(Ordering::Relaxed);
            if base.is_null() {
                continue;
            }
            if std::mem::needs_drop::<T>() {
                let before = (FIRST << chunk) - FIRST;
                for place in 0..(len - before.min(len)).min(FIRST << chunk) {
                    // SAFETY: every number below `len` was given to a `push`, which wrote its item.
                    unsafe { base.add(place).drop_in_place() };
                }
            }
            if Self::layout(chunk).size() < HUGE {
                // SAFETY: allocated by `add_chunk` with this layout; no reference outlives the arena.
                unsafe { dealloc(base.cast(), Self::layout(chunk)) };
            }
        }
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;

    #[test]
    fn numbers_find_their_items_across_chunks() {
        let arena = Arena::<u64, 4>::new();
        for n in 0..1_000_000u64 {
            assert_eq!(u64::from(arena.push(n * 3)), n);
        }
        for n in 0..1_000_000u32 {
            // SAFETY: pushed above.
            assert_eq!(unsafe { *arena.get(n) }, u64::from(n) * 3);
        }
        assert_eq!(locate::<4>(0), (0, 0));
        assert_eq!(locate::<4>(4), (1, 0));
        assert_eq!(locate::<4>(11), (1, 7));
        assert!(locate::<4>(u32::MAX).0 < CHUNKS);
    }

    #[test]
    fn items_are_dropped_once() {
        let item = std::sync::Arc::new(());
        let arena = Arena::<std::sync::Arc<()>, 4>::new();
        for _ in 0..100 {
            arena.push(item.clone());
        }
        drop(arena);
        assert_eq!(std::sync::Arc::strong_count(&item), 1);
    }
}
