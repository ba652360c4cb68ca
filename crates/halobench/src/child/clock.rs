//! A clock that costs a few nanoseconds: the processor's cycle counter where there is one. Its unit is found out
//! afterwards, by comparing both clocks over the whole phase.

use std::time::Instant;

/// Ticks since some moment.
#[inline]
pub fn ticks() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 processor has the instruction.
    unsafe {
        core::arch::x86_64::_rdtsc()
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        use std::sync::OnceLock;
        static START: OnceLock<Instant> = OnceLock::new();
        START.get_or_init(Instant::now).elapsed().as_nanos() as u64
    }
}

/// Both clocks at one moment.
#[derive(Clone, Copy, Debug)]
pub struct Mark {
    ticks: u64,
    instant: Instant,
}

impl Mark {
    /// This moment.
    pub fn now() -> Mark {
        Mark { ticks: ticks(), instant: Instant::now() }
    }

    /// Nanoseconds of a tick, by the stretch from this mark to now.
    pub fn ns_per_tick(&self) -> f64 {
        let ns = self.instant.elapsed().as_nanos() as f64;
        let ticks = ticks().saturating_sub(self.ticks);
        if ticks == 0 { 1.0 } else { ns / ticks as f64 }
    }
}
