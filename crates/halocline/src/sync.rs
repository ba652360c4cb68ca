//! The synchronisation primitives of this crate, in one place, so that a model checker can stand in for them:
//! built with `--cfg shuttle` they are shuttle's, which explores thread schedules.

#[cfg(not(shuttle))]
pub(crate) use std::{
    hint::spin_loop,
    sync::{Arc, Condvar, Mutex, MutexGuard, RwLock, atomic},
    thread,
};

#[cfg(shuttle)]
pub(crate) use shuttle::{
    hint::spin_loop,
    sync::{Arc, Condvar, Mutex, MutexGuard, RwLock, atomic},
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
