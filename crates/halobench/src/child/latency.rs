//! Latencies of one thread, in ticks, and all threads' merged, in nanoseconds.

use super::clock;
use crate::spec::Latency;
use hdrhistogram::Histogram;

/// Collects one thread's.
pub struct Recorder {
    histogram: Histogram<u32>,
    every: u64,
    until: u64,
}

fn empty() -> Histogram<u32> {
    // Three digits up to 2^45 ticks, which are hours.
    Histogram::new_with_max(1 << 45, 3).expect("the bounds are constants that fit")
}

impl Recorder {
    /// Times one call in `every`.
    pub fn new(every: u64) -> Recorder {
        Recorder { histogram: empty(), every: every.max(1), until: 1 }
    }

    /// Runs `work`, and times it if it is its turn.
    #[inline]
    pub fn time<T>(&mut self, work: impl FnOnce() -> T) -> T {
        self.until -= 1;
        if self.until > 0 {
            return work();
        }
        self.until = self.every;
        let start = clock::ticks();
        let value = work();
        self.histogram.saturating_record(clock::ticks().saturating_sub(start));
        value
    }
}

/// All threads' latencies.
pub fn merge(recorders: &[Recorder], ns_per_tick: f64, per_batch: bool) -> Latency {
    let mut all = empty();
    for r in recorders {
        all.add(&r.histogram).expect("the histograms have the same bounds");
    }
    let ns = |ticks: u64| (ticks as f64 * ns_per_tick).round() as u64;
    let at = |q| ns(all.value_at_quantile(q));
    Latency {
        per_batch,
        samples: all.len(),
        mean_ns: all.mean() * ns_per_tick,
        p50_ns: at(0.5),
        p95_ns: at(0.95),
        p99_ns: at(0.99),
        p999_ns: at(0.999),
        p9999_ns: at(0.9999),
        max_ns: ns(all.max()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleeps_are_seen_and_sampling_samples() {
        let mark = clock::Mark::now();
        let mut r = Recorder::new(2);
        for _ in 0..4 {
            r.time(|| std::thread::sleep(std::time::Duration::from_millis(2)));
        }
        let l = merge(&[r], mark.ns_per_tick(), false);
        assert_eq!(l.samples, 2);
        assert!(l.p50_ns >= 1_900_000, "{l:?}");
        assert!(l.max_ns >= l.p50_ns);
    }
}
