//! Latencies of one thread, and all threads' merged, in nanoseconds.

use super::clock;
use super::pace::Pace;
use crate::spec::Latency;
use base64::Engine as _;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Serializer, V2Serializer};

/// Collects one thread's: in ticks, or in nanoseconds if an open loop is timed.
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

    /// Runs `work`, and times it if it is its turn; in an open loop, always, and from the moment it was due.
    #[inline]
    pub fn time<T>(&mut self, pace: Option<&Pace>, work: impl FnOnce() -> T) -> T {
        if let Some(pace) = pace {
            let value = work();
            self.histogram.saturating_record(pace.since_due());
            return value;
        }
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

/// All threads' latencies, in nanoseconds.
pub struct Merged(Histogram<u64>);

impl Merged {
    /// Of recorders whose unit is so many nanoseconds.
    pub fn new<'a>(recorders: impl Iterator<Item = &'a Recorder>, ns_per_unit: f64) -> Merged {
        let mut all = Histogram::new_with_max(1 << 45, 3).expect("the bounds are constants that fit");
        for recorder in recorders {
            for step in recorder.histogram.iter_recorded() {
                let middle = recorder.histogram.median_equivalent(step.value_iterated_to());
                let ns = (middle as f64 * ns_per_unit).round() as u64;
                all.saturating_record_n(ns, u64::from(step.count_at_value()));
            }
        }
        Merged(all)
    }

    /// Adds another's.
    pub fn add(&mut self, other: &Merged) {
        self.0.add(&other.0).expect("the histograms have the same bounds");
    }

    /// Percentiles and the like.
    pub fn summary(&self, per_batch: bool) -> Latency {
        let at = |q| self.0.value_at_quantile(q);
        Latency {
            per_batch,
            samples: self.0.len(),
            mean_ns: self.0.mean(),
            stddev_ns: self.0.stdev(),
            min_ns: self.0.min(),
            p50_ns: at(0.5),
            p95_ns: at(0.95),
            p99_ns: at(0.99),
            p999_ns: at(0.999),
            p9999_ns: at(0.9999),
            max_ns: self.0.max(),
        }
    }

    /// The histogram in its V2 encoding, in base64, if it has anything.
    pub fn encoded(&self) -> Option<String> {
        let mut bytes = Vec::new();
        if self.0.is_empty() || V2Serializer::new().serialize(&self.0, &mut bytes).is_err() {
            return None;
        }
        Some(base64::engine::general_purpose::STANDARD.encode(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hdrhistogram::serialization::Deserializer;

    #[test]
    fn sleeps_are_seen_and_sampling_samples() {
        let mark = clock::Mark::now();
        let mut r = Recorder::new(2);
        for _ in 0..4 {
            r.time(None, || std::thread::sleep(std::time::Duration::from_millis(2)));
        }
        let l = Merged::new([&r].into_iter(), mark.ns_per_tick()).summary(false);
        assert_eq!(l.samples, 2);
        assert!(l.min_ns >= 1_900_000 && l.p50_ns >= l.min_ns, "{l:?}");
        assert!(l.max_ns >= l.p50_ns && l.mean_ns >= l.min_ns as f64);
    }

    #[test]
    fn the_encoded_histogram_says_the_same() {
        let mut r = Recorder::new(1);
        (1..=1000).for_each(|i| r.histogram.record(i * 1000).unwrap());
        let merged = Merged::new([&r, &r].into_iter(), 0.5);
        let bytes = base64::engine::general_purpose::STANDARD.decode(merged.encoded().unwrap()).unwrap();
        let back: Histogram<u64> = Deserializer::new().deserialize(&mut bytes.as_slice()).unwrap();
        let l = merged.summary(false);
        assert_eq!((back.len(), back.value_at_quantile(0.99), back.max()), (2000, l.p99_ns, l.max_ns));
        assert!((l.p50_ns as f64 / 250_000.0 - 1.0).abs() < 0.002, "{l:?}");
        assert!((l.stddev_ns / 144_337.0 - 1.0).abs() < 0.002, "{l:?}");
        assert!(Merged::new(std::iter::empty(), 1.0).encoded().is_none());
    }
}
