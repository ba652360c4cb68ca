//! An `Arc<T>` that is swapped atomically, and that readers pin without a lock or a shared reference count.
//!
//! Readers announce the pointer they use in a **hazard slot**: a padded word that a thread nearly always finds
//! free at the same index, so that pinning and releasing touch no cache line that another thread writes. A swap
//! puts the old value on a list of retired ones, and a value there is dropped once no slot holds its address.
//!
//! # Why nothing is freed under a reader
//!
//! `current` and `retired` together own one strong count for each value that was ever current and is not dropped
//! yet. A reader claims a slot by writing the pointer `p` that it read from `current` into it (A), then reads
//! `current` again (B), and uses `p` only if that read gave `p`. A swap writes another pointer to `current` (C),
//! puts the old value on the list, and reads the slots (D); it drops the value only if no slot holds its address.
//! A, B, C and D are sequentially consistent, so there is one order of all of them. If B still read `p`, then B is
//! before the C that replaced `p`, so A < B < C < D, and D sees `p` in the slot or what the reader wrote there later,
//! when it no longer used `p`. If B did not read `p`, the reader does not use `p`, and starts over with what it read.
//!
//! That `p` may have been freed and its address given to a newer value between the reader's first look and B does no
//! harm: what B reads is current, whatever it was before, and the slot holds its address.
//!
//! Releasing writes null with release order, and D acquires: what the reader did with the value happens before the
//! drop. If another reader claimed the slot in between, its claim (a compare-and-swap) acquired the null first, so
//! the order is passed on.
//!
//! When all slots are taken, a reader takes the lock under which values are retired and raises the reference count:
//! slower, never wrong.

use crate::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use crate::sync::{Mutex, Padded};
use std::cell::Cell;
use std::ops::Deref;
use std::ptr::{self, NonNull};
use std::sync::Arc;

/// Pins held at one time without falling back to the lock.
const SLOTS: usize = if cfg!(shuttle) { 2 } else { 128 };
/// How far apart threads begin to look for a slot, so that a thread's second pin does not meet another's first.
const STRIDE: usize = 4;

#[cfg(not(shuttle))]
fn preferred_slot() -> usize {
    static NEXT: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
    thread_local! {
        static PREFERRED: Cell<usize> = const { Cell::new(usize::MAX) };
    }
    PREFERRED.with(|preferred| {
        let mut at = preferred.get();
        if at == usize::MAX {
            let n = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            at = (n * STRIDE + n * STRIDE / SLOTS) % SLOTS;
            preferred.set(at);
        }
        at
    })
}

#[cfg(shuttle)]
fn preferred_slot() -> usize {
    0
}

/// An `Arc<T>` to pin, and to swap.
pub(crate) struct Pinned<T> {
    /// Owns a strong count.
    current: AtomicPtr<T>,
    slots: Box<[Padded<AtomicPtr<T>>]>,
    /// Values that were current; each entry owns a strong count.
    retired: Mutex<Vec<Arc<T>>>,
    retired_len: AtomicUsize,
}

/// A pinned value. Holding one keeps the value from being dropped, and takes one of the slots: for longer than an
/// operation, take [`Guard::to_arc`].
pub(crate) struct Guard<'a, T> {
    value: NonNull<T>,
    /// `None`: the guard owns a strong count instead.
    slot: Option<&'a AtomicPtr<T>>,
}

impl<T> Pinned<T> {
    /// Begins with `value` as the current one.
    pub(crate) fn new(value: Arc<T>) -> Pinned<T> {
        Pinned {
            current: AtomicPtr::new(Arc::into_raw(value).cast_mut()),
            slots: (0..SLOTS).map(|_| Padded(AtomicPtr::new(ptr::null_mut()))).collect(),
            retired: Mutex::new(Vec::new()),
            retired_len: AtomicUsize::new(0),
        }
    }

    /// Pins the current value.
    #[inline]
    pub(crate) fn pin(&self) -> Guard<'_, T> {
        let mut value = self.current.load(Ordering::SeqCst);
        let start = preferred_slot();
        for i in 0..SLOTS {
            let slot = &self.slots[(start + i) % SLOTS].0;
            if !slot.load(Ordering::Relaxed).is_null() {
                continue;
            }
            if slot.compare_exchange(ptr::null_mut(), value, Ordering::SeqCst, Ordering::Relaxed).is_err() {
                continue;
            }
            loop {
                let now = self.current.load(Ordering::SeqCst);
                if now == value {
                    break;
                }
                value = now;
                slot.store(value, Ordering::SeqCst);
            }
            // SAFETY: `current` is never null.
            return Guard { value: unsafe { NonNull::new_unchecked(value) }, slot: Some(slot) };
        }
        self.pin_locked()
    }

    #[cold]
    fn pin_locked(&self) -> Guard<'_, T> {
        let value = Arc::into_raw(self.load_locked()).cast_mut();
        // SAFETY: a pointer from an `Arc` is not null.
        Guard { value: unsafe { NonNull::new_unchecked(value) }, slot: None }
    }

    fn load_locked(&self) -> Arc<T> {
        let retired = self.lock();
        let value = self.current.load(Ordering::SeqCst);
        // SAFETY: `value` came from an `Arc`, and its strong count in `current` stays while the lock is held, since
        // a swap takes the lock before it moves that count to the list.
        let value = unsafe {
            Arc::increment_strong_count(value);
            Arc::from_raw(value)
        };
        drop(retired);
        value
    }

    /// The current value with a reference count of its own.
    pub(crate) fn load_arc(&self) -> Arc<T> {
        self.pin().to_arc()
    }

    /// Makes `value` the current one. The old one is dropped once nobody has it pinned: now, at a later swap, or at
    /// a [`sweep`](Self::sweep).
    pub(crate) fn swap(&self, value: Arc<T>) {
        let value = Arc::into_raw(value).cast_mut();
        let unused = {
            let mut retired = self.lock();
            let old = self.current.swap(value, Ordering::SeqCst);
            // SAFETY: `current` owned a strong count of `old`, which now is the list's.
            retired.push(unsafe { Arc::from_raw(old) });
            self.take_unused(&mut retired)
        };
        // Outside the lock: what it takes to drop a value, files and mappings among it, is not for others to wait for.
        drop(unused);
    }

    /// Drops retired values that nobody has pinned any more, and returns how many are left.
    pub(crate) fn sweep(&self) -> usize {
        if self.retired_len.load(Ordering::Relaxed) == 0 {
            return 0;
        }
        let mut retired = self.lock();
        let unused = self.take_unused(&mut retired);
        let left = retired.len();
        drop(retired);
        drop(unused);
        left
    }

    /// How many values wait to be dropped.
    pub(crate) fn retired(&self) -> usize {
        self.retired_len.load(Ordering::Relaxed)
    }

    /// Takes those that no slot holds off the list.
    fn take_unused(&self, retired: &mut Vec<Arc<T>>) -> Vec<Arc<T>> {
        let pinned: Vec<*mut T> =
            self.slots.iter().map(|s| s.0.load(Ordering::SeqCst)).filter(|p| !p.is_null()).collect();
        let unused = retired.extract_if(.., |v| !pinned.contains(&Arc::as_ptr(v).cast_mut())).collect();
        self.retired_len.store(retired.len(), Ordering::Relaxed);
        unused
    }

    fn lock(&self) -> crate::sync::MutexGuard<'_, Vec<Arc<T>>> {
        // Nothing that can panic leaves the list in disorder.
        self.retired.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl<T> Drop for Pinned<T> {
    fn drop(&mut self) {
        // Guards borrow this, so there are none.
        let current = self.current.load(Ordering::SeqCst);
        // SAFETY: `current` owns a strong count, and this is its end.
        drop(unsafe { Arc::from_raw(current) });
    }
}

// SAFETY: as `Arc<T>`, of which it owns some: values are shared by reference and dropped by any thread.
unsafe impl<T: Send + Sync> Send for Pinned<T> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync> Sync for Pinned<T> {}

impl<T> std::fmt::Debug for Pinned<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pinned").field("retired", &self.retired()).finish_non_exhaustive()
    }
}

impl<T> Guard<'_, T> {
    /// The value with a reference count of its own.
    pub(crate) fn to_arc(&self) -> Arc<T> {
        let value = self.value.as_ptr();
        // SAFETY: `value` came from an `Arc`. While it is pinned, `current` or the list keeps a strong count of it, or
        // the guard itself does.
        unsafe {
            Arc::increment_strong_count(value);
            Arc::from_raw(value)
        }
    }
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: pinned: see the head of this file.
        unsafe { self.value.as_ref() }
    }
}

impl<T> Drop for Guard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        match self.slot {
            Some(slot) => slot.store(ptr::null_mut(), Ordering::Release),
            // SAFETY: without a slot the guard owns a strong count.
            None => drop(unsafe { Arc::from_raw(self.value.as_ptr()) }),
        }
    }
}

// SAFETY: a guard is a shared reference to `T`, and possibly the last owner of it; a slot may be released by any thread.
unsafe impl<T: Send + Sync> Send for Guard<'_, T> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync> Sync for Guard<'_, T> {}
