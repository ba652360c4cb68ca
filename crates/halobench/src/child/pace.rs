//! Keeps a thread of an open loop to its schedule. Moments are absolute: one late operation does not move the next, so that
//! the wait of those behind a stall is measured.

use crate::workload::Arrivals;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// A thread that is early by less than this spins; before, it sleeps.
const SPIN: Duration = Duration::from_micros(50);
/// Longest sleep between two looks at whether all is over.
const NAP: Duration = Duration::from_millis(20);

/// One thread's schedule.
pub struct Pace {
    arrivals: Arrivals,
    start: Instant,
    due_s: f64,
    due: Instant,
    lag: Duration,
}

impl Pace {
    /// A schedule that begins now.
    pub fn new(arrivals: Arrivals) -> Pace {
        // The kernel may be late by 50 us otherwise.
        // SAFETY: sets a number of the calling thread.
        #[cfg(target_os = "linux")]
        unsafe {
            libc::prctl(libc::PR_SET_TIMERSLACK, 1_000 as libc::c_ulong)
        };
        let now = Instant::now();
        Pace { arrivals, start: now, due_s: 0.0, due: now, lag: Duration::ZERO }
    }

    /// Waits until the `batch` operations from `j` on are due; false if `over` came true meanwhile.
    pub fn wait(&mut self, j: u64, batch: u64, over: &AtomicBool) -> bool {
        self.due_s += self.arrivals.gap(j, batch);
        self.due = self.start + Duration::from_secs_f64(self.due_s.min(1e9));
        loop {
            if over.load(Ordering::Relaxed) {
                return false;
            }
            let now = Instant::now();
            if now >= self.due {
                self.lag = self.lag.max(now - self.due);
                return true;
            }
            match (self.due - now).checked_sub(SPIN) {
                Some(early) if !early.is_zero() => std::thread::sleep(early.min(NAP)),
                _ => std::hint::spin_loop(),
            }
        }
    }

    /// Nanoseconds since the moment that was last waited for.
    pub fn since_due(&self) -> u64 {
        self.due.elapsed().as_nanos() as u64
    }

    /// The most that an operation began behind its moment.
    pub fn lag(&self) -> Duration {
        self.lag
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_operation_does_not_move_the_next() {
        let over = AtomicBool::new(false);
        let mut pace = Pace::new(Arrivals::new(1, 1, 1, 2000.0));
        let start = Instant::now();
        let mut due = 0.0;
        for j in 0..40 {
            due += Arrivals::new(1, 1, 1, 2000.0).gap(j, 1);
            assert!(pace.wait(j, 1, &over));
            assert!(start.elapsed().as_secs_f64() >= due - 0.001);
            if j == 3 {
                std::thread::sleep(Duration::from_millis(30));
                assert!(pace.since_due() >= 30_000_000);
            }
        }
        // Those that were due during the stall came at once behind it.
        assert!(pace.lag() >= Duration::from_millis(10), "{:?}", pace.lag());
        over.store(true, Ordering::Relaxed);
        assert!(!pace.wait(40, 1, &over));
    }

    #[test]
    fn the_end_is_seen_while_waiting() {
        let over = AtomicBool::new(false);
        let mut pace = Pace::new(Arrivals::new(1, 1, 1, 1e-6));
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| pace.wait(0, 1, &over));
            over.store(true, Ordering::Relaxed);
            assert!(!waiting.join().unwrap());
        });
    }
}
