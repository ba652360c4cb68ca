//! The synchronisation primitives of this crate, in one place, so that a model checker can stand in for them:
//! built with `--cfg shuttle` they are shuttle's, which explores thread schedules.

#[cfg(not(shuttle))]
pub(crate) use std::{
    hint::spin_loop,
    sync::{Arc, Condvar, Mutex, MutexGuard, atomic},
    thread,
};

#[cfg(shuttle)]
pub(crate) use shuttle::{
    hint::spin_loop,
    sync::{Arc, Condvar, Mutex, MutexGuard, atomic},
    thread,
};

/// Keeps what is in it on cache lines of its own (two: the processor prefetches lines in pairs).
#[repr(align(128))]
#[derive(Debug, Default)]
pub(crate) struct Padded<T>(pub(crate) T);

/// Waits a little, then more: a few spins, then giving the processor away. With more threads than cores the one
/// waited for may not be running at all, so spinning on would only keep it from it.
#[derive(Default)]
pub(crate) struct Backoff(u32);

impl Backoff {
    /// Waits once.
    pub(crate) fn wait(&mut self) {
        if self.0 < 6 && !cfg!(shuttle) {
            for _ in 0..1 << self.0 {
                spin_loop();
            }
        } else {
            thread::yield_now();
        }
        self.0 += 1;
    }
}

/// A counter that many threads add to: spread over cache lines, summed when read.
#[derive(Debug, Default)]
pub(crate) struct Counter([Padded<std::sync::atomic::AtomicU64>; 16]);

impl Counter {
    /// Adds `n`.
    #[inline]
    pub(crate) fn add(&self, n: u64) {
        self.0[thread_index() % 16].0.fetch_add(n, std::sync::atomic::Ordering::Relaxed);
    }

    /// The sum.
    pub(crate) fn get(&self) -> u64 {
        self.0.iter().map(|c| c.0.load(std::sync::atomic::Ordering::Relaxed)).sum()
    }
}

/// A small number of its own for each thread.
#[inline]
pub(crate) fn thread_index() -> usize {
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local!(static INDEX: usize = NEXT.fetch_add(1, Relaxed));
    INDEX.with(|i| *i)
}
