//! In-flight slots: who is still writing below a log address.
//!
//! A committing thread enters with a lower bound of the address it is about to reserve, and leaves when its entries
//! are in the memtable. Whoever needs everything below an address `s` to be complete (a snapshot at `s = tail`, a
//! sync, a flush of a sealed segment) waits until no slot holds an address below `s`.
//!
//! Why that suffices: the bound is stored before the reservation, and the waiter reads the tail before the slots,
//! all sequentially consistent. A reservation below `s` came before the reading of the tail, so its bound was in its
//! slot by then, and stays there until the write is complete. A thread that enters later may show a bound below `s`
//! only if it read the tail before `s` was taken; it finishes like any other, and its next bound lies above.

use crate::sync::atomic::{AtomicU64, Ordering::SeqCst};
use crate::sync::{Backoff, Padded, thread_index};

const IDLE: u64 = u64::MAX;
const SLOTS: usize = if cfg!(shuttle) { 4 } else { 128 };

/// The slots of one log.
pub(crate) struct InFlight {
    slots: Box<[Padded<AtomicU64>]>,
}

/// A thread's presence in a slot; leaving is dropping it.
pub(crate) struct Entered<'a> {
    slot: &'a AtomicU64,
}

impl Entered<'_> {
    /// Tells the address that was reserved, in place of the bound that was entered with. A committer that waits for
    /// everything below its own address must: two that waited for each other's bounds would wait for ever.
    pub(crate) fn raise(&self, address: u64) {
        self.slot.store(address, SeqCst);
    }
}

impl Drop for Entered<'_> {
    #[inline]
    fn drop(&mut self) {
        self.slot.store(IDLE, SeqCst);
    }
}

impl InFlight {
    pub(crate) fn new() -> InFlight {
        InFlight { slots: (0..SLOTS).map(|_| Padded(AtomicU64::new(IDLE))).collect() }
    }

    /// Announces a write at an address of at least `bound`. Waits only if all slots are taken.
    #[inline]
    pub(crate) fn enter(&self, bound: u64) -> Entered<'_> {
        let first = thread_index();
        let mut backoff = Backoff::default();
        loop {
            for index in first..first + SLOTS {
                let slot = &self.slots[index % SLOTS].0;
                if slot.compare_exchange(IDLE, bound, SeqCst, SeqCst).is_ok() {
                    return Entered { slot };
                }
            }
            backoff.wait();
        }
    }

    /// Waits until everyone who is in a slot now has left it, or has told its address with [`Entered::raise`]: that one lies
    /// below the tail from then on, so `wait_below` waits for it.
    pub(crate) fn wait_all_left(&self) {
        for slot in &self.slots {
            let mut backoff = Backoff::default();
            let bound = slot.0.load(SeqCst);
            while bound != IDLE && slot.0.load(SeqCst) == bound {
                backoff.wait();
            }
        }
    }

    /// Waits until everything below `address` is complete. Nanoseconds in the common case; with more threads than
    /// cores it may have to wait for a writer to be scheduled again.
    pub(crate) fn wait_below(&self, address: u64) {
        for slot in &self.slots {
            let mut backoff = Backoff::default();
            while slot.0.load(SeqCst) < address {
                backoff.wait();
            }
        }
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::AtomicU64 as StdU64;

    #[test]
    fn everything_below_an_address_is_complete_after_the_wait() {
        // A tail, and a bitmap of completed addresses: after waiting for `s`, all bits below `s` are set.
        const N: u64 = 20_000;
        let shared = Arc::new((
            InFlight::new(),
            StdU64::new(0),
            (0..N + 64).map(|_| StdU64::new(0)).collect::<Vec<_>>(),
        ));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                let shared = Arc::clone(&shared);
                scope.spawn(move || {
                    let (slots, tail, done) = &*shared;
                    loop {
                        let entered = slots.enter(tail.load(SeqCst));
                        let at = tail.fetch_add(1, SeqCst);
                        if at >= N {
                            break;
                        }
                        done[at as usize].store(1, SeqCst);
                        drop(entered);
                    }
                });
            }
            for _ in 0..2 {
                let shared = Arc::clone(&shared);
                scope.spawn(move || {
                    let (slots, tail, done) = &*shared;
                    loop {
                        let s = tail.load(SeqCst).min(N);
                        slots.wait_below(s);
                        assert!(done[..s as usize].iter().all(|d| d.load(SeqCst) == 1));
                        if s == N {
                            break;
                        }
                    }
                });
            }
        });
    }

    #[test]
    fn more_writers_than_slots_still_get_in() {
        let slots = InFlight::new();
        let held: Vec<_> = (0..SLOTS - 1).map(|i| slots.enter(i as u64)).collect();
        drop(slots.enter(7));
        drop(held);
        slots.wait_below(u64::MAX - 1);
    }
}

#[cfg(all(test, shuttle))]
mod schedules {
    use super::*;
    use crate::sync::{Arc, thread};

    #[test]
    fn no_schedule_shows_an_unfinished_write_below_a_waited_address() {
        shuttle::check_pct(
            || {
                let shared = Arc::new((
                    InFlight::new(),
                    AtomicU64::new(0),
                    [AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0)],
                ));
                let writers: Vec<_> = (0..2)
                    .map(|_| {
                        let shared = Arc::clone(&shared);
                        thread::spawn(move || {
                            let (slots, tail, done) = &*shared;
                            for _ in 0..2 {
                                let entered = slots.enter(tail.load(SeqCst));
                                let at = tail.fetch_add(1, SeqCst);
                                done[at as usize].store(1, SeqCst);
                                drop(entered);
                            }
                        })
                    })
                    .collect();
                let (slots, tail, done) = &*shared;
                let s = tail.load(SeqCst);
                slots.wait_below(s);
                assert!(done[..s as usize].iter().all(|d| d.load(SeqCst) == 1));
                for writer in writers {
                    writer.join().unwrap();
                }
            },
            10_000,
            3,
        );
    }
}
