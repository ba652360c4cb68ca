//! Event counters that do not make threads share a cache line.

use crate::sync::Padded;
use crate::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Copies of the counters. More threads than this share some. The checker's atomics are large, and its stacks small.
const STRIPES: usize = if cfg!(shuttle) { 1 } else { 16 };

/// `N` counters, each thread counting in its own copy of them.
pub(super) struct Counters<const N: usize> {
    stripes: [Padded<[AtomicU64; N]>; STRIPES],
}

impl<const N: usize> Counters<N> {
    pub(super) fn new() -> Self {
        let stripe = |_| Padded(std::array::from_fn(|_| AtomicU64::new(0)));
        Counters { stripes: std::array::from_fn(stripe) }
    }

    /// Counts one event at counter `i`.
    #[inline]
    pub(super) fn bump(&self, i: usize) {
        self.stripes[stripe()].0[i].fetch_add(1, Relaxed);
    }

    /// The counters' sums. Events that happen meanwhile may be in them or not.
    pub(super) fn sums(&self) -> [u64; N] {
        std::array::from_fn(|i| self.stripes.iter().map(|stripe| stripe.0[i].load(Relaxed)).sum())
    }
}

/// The copy of this thread.
#[cfg(not(shuttle))]
#[inline]
fn stripe() -> usize {
    use std::sync::atomic::AtomicUsize;
    static THREADS: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static STRIPE: usize = THREADS.fetch_add(1, std::sync::atomic::Ordering::Relaxed) % STRIPES;
    }
    // A thread that is ending has no locals any more.
    STRIPE.try_with(|stripe| *stripe).unwrap_or(0)
}

/// One for all: the checker's threads are not the system's.
#[cfg(shuttle)]
fn stripe() -> usize {
    0
}
