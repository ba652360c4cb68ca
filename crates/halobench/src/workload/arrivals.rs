//! When the operations of an open loop are due: a Poisson process for each thread.

use super::{rng, zipf};

/// The gaps between one thread's arrivals.
#[derive(Clone, Copy, Debug)]
pub struct Arrivals {
    seed: u64,
    threads: f64,
    rate: f64,
}

impl Arrivals {
    /// `rate` operations a second, of all `threads`, in the phase numbered `stream` of a run.
    pub fn new(seed: u64, stream: u64, threads: usize, rate: f64) -> Arrivals {
        Arrivals { seed: rng::stream(seed, (1 << 32) + stream), threads: threads as f64, rate }
    }

    /// Seconds between the arrival before and that of the `batch` operations from `j` on.
    pub fn gap(&self, j: u64, batch: u64) -> f64 {
        -zipf::ln(1.0 - rng::unit(rng::at(self.seed, j))) * (self.threads * batch as f64 / self.rate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_add_up_to_the_rate() {
        let arrivals = Arrivals::new(42, 3, 4, 1000.0);
        let sum: f64 = (0..10_000).map(|j| arrivals.gap(j, 1)).sum();
        // 2,500 would be exact; the deviation of the sum is 1 % of that.
        assert!((sum / 40.0 - 1.0).abs() < 0.05, "{sum}");
        assert!((0..10_000).all(|j| arrivals.gap(j, 1) >= 0.0));
        assert_eq!(arrivals.gap(5, 10), arrivals.gap(5, 1) * 10.0);
    }
}
