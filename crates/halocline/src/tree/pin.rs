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
#[cfg(not(shuttle))]
use std::cell::Cell;
use std::ops::Deref;
use std::ptr::{self, NonNull};
use std::sync::Arc;

/// Pins held at one time without falling back to the lock.
const SLOTS: usize = if cfg!(shuttle) { 2 } else { 128 };
/// How far apart threads begin to look for a slot, so that a thread's second pin does not meet another's first.
#[cfg(not(shuttle))]
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sync::thread;
    use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

    /// Whether each value is alive, kept apart from the values themselves.
    type Alive = Arc<Vec<AtomicBool>>;

    struct Tracked {
        id: usize,
        /// Must read as `!id` as long as the memory is this value's.
        check: usize,
        alive: Alive,
    }

    impl Drop for Tracked {
        fn drop(&mut self) {
            assert!(self.alive[self.id].swap(false, SeqCst), "dropped twice");
            self.check = 0;
        }
    }

    fn alive(n: usize) -> Alive {
        Arc::new((0..n).map(|_| AtomicBool::new(false)).collect())
    }

    fn tracked(id: usize, alive: &Alive) -> Arc<Tracked> {
        alive[id].store(true, SeqCst);
        Arc::new(Tracked { id, check: !id, alive: alive.clone() })
    }

    fn verify(value: &Tracked) {
        assert_eq!(value.check, !value.id, "used after it was freed");
        assert!(value.alive[value.id].load(SeqCst), "used after it was dropped");
    }

    fn none_left(alive: &Alive) -> bool {
        alive.iter().all(|a| !a.load(SeqCst))
    }

    /// Readers pin, nest and keep while values are swapped; nothing is used after its end, all is dropped at last.
    fn readers_and_swaps(readers: usize, reads: usize, swaps: usize) {
        let alive = alive(1 + swaps);
        let pinned = Arc::new(Pinned::new(tracked(0, &alive)));
        let threads: Vec<_> = (0..readers)
            .map(|_| {
                let pinned = pinned.clone();
                thread::spawn(move || {
                    let mut newest = 0;
                    for i in 0..reads {
                        let outer = pinned.pin();
                        verify(&outer);
                        assert!(outer.id >= newest, "an older value came back");
                        newest = outer.id;
                        if i % 2 == 0 {
                            let inner = pinned.pin();
                            assert!(inner.id >= newest);
                            verify(&inner);
                            let kept = outer.to_arc();
                            drop(outer);
                            verify(&inner);
                            verify(&kept);
                        } else {
                            thread::yield_now();
                            verify(&outer);
                        }
                    }
                })
            })
            .collect();
        for id in 1..=swaps {
            pinned.swap(tracked(id, &alive));
            verify(&pinned.pin());
        }
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(pinned.sweep(), 0);
        assert_eq!(alive.iter().filter(|a| a.load(SeqCst)).count(), 1);
        drop(pinned);
        assert!(none_left(&alive));
    }

    #[cfg(not(shuttle))]
    #[test]
    fn a_pinned_value_outlives_swaps_and_goes_with_a_sweep() {
        let alive = alive(4);
        let pinned = Pinned::new(tracked(0, &alive));
        let first = pinned.pin();
        let again = pinned.pin();
        pinned.swap(tracked(1, &alive));
        pinned.swap(tracked(2, &alive));
        // Nobody had the second one.
        assert_eq!((pinned.retired(), alive[1].load(SeqCst)), (1, false));
        verify(&first);
        drop(first);
        assert_eq!(pinned.sweep(), 1);
        verify(&again);
        let kept = again.to_arc();
        drop(again);
        assert_eq!(pinned.sweep(), 0);
        verify(&kept);
        drop(kept);
        assert!(!alive[0].load(SeqCst));
        let newest = pinned.load_arc();
        pinned.swap(tracked(3, &alive));
        assert_eq!((newest.id, pinned.pin().id, pinned.retired()), (2, 3, 0));
        drop(newest);
        drop(pinned);
        assert!(none_left(&alive));
    }

    #[cfg(not(shuttle))]
    #[test]
    fn more_pins_than_slots_fall_back_to_counting() {
        let alive = alive(2);
        let pinned = Pinned::new(tracked(0, &alive));
        let guards: Vec<_> = (0..SLOTS + 10).map(|_| pinned.pin()).collect();
        assert_eq!(guards.iter().filter(|g| g.slot.is_none()).count(), 10);
        pinned.swap(tracked(1, &alive));
        for guard in guards {
            verify(&guard);
        }
        assert_eq!(pinned.sweep(), 0);
        assert!(!alive[0].load(SeqCst));
    }

    #[cfg(not(shuttle))]
    #[test]
    fn eight_threads_read_while_values_are_swapped() {
        readers_and_swaps(8, 20_000, 5_000);
    }

    #[cfg(not(shuttle))]
    #[test]
    fn guards_may_end_on_another_thread() {
        let alive = alive(2);
        let pinned = Pinned::new(tracked(0, &alive));
        let ended = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                let guard = pinned.pin();
                let ended = &ended;
                scope.spawn(move || {
                    verify(&guard);
                    drop(guard);
                    ended.fetch_add(1, SeqCst);
                });
            }
            pinned.swap(tracked(1, &alive));
        });
        assert_eq!((ended.load(SeqCst), pinned.sweep()), (4, 0));
    }

    /// `cargo test --release -p halocline --lib pin -- --ignored --nocapture`
    #[cfg(not(shuttle))]
    #[test]
    #[ignore = "measures"]
    fn cost_of_a_pin() {
        let pinned = Pinned::new(Arc::new(7u64));
        let counted = std::sync::Mutex::new(Arc::new(7u64));
        let shared = Arc::new(7u64);
        let n = 5_000_000;
        let time = |what: &str, op: &(dyn Fn() -> u64 + Sync)| {
            for threads in [1, 2] {
                let start = std::time::Instant::now();
                std::thread::scope(|scope| {
                    for _ in 0..threads {
                        scope.spawn(|| (0..n).fold(0, |sum, _| std::hint::black_box(sum + op())));
                    }
                });
                println!("{what}, {threads} threads: {:.1} ns", start.elapsed().as_nanos() as f64 / n as f64);
            }
        };
        time("pin", &|| *pinned.pin());
        time("clone of a shared Arc", &|| *Arc::clone(&shared));
        time("clone under a mutex", &|| *Arc::clone(&counted.lock().unwrap()));
    }

    #[cfg(shuttle)]
    #[test]
    fn no_schedule_uses_a_value_after_its_end() {
        shuttle::check_random(|| readers_and_swaps(2, 2, 3), 20_000);
        // Three pins at a time and two slots: the fallback too.
        shuttle::check_random(|| readers_and_swaps(3, 2, 2), 20_000);
        shuttle::check_pct(|| readers_and_swaps(2, 2, 3), 20_000, 3);
    }
}
