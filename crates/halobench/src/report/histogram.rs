//! Latency histograms, merged over rounds, and the curve that a percentile plot draws.
//!
//! A phase carries its histogram as HDR V2, base64. Percentiles of several rounds are those of the merged histogram,
//! not means of percentiles, which mean nothing. A result without histograms gives the few percentiles it has, as
//! medians of the rounds.

use super::stats::median;
use crate::spec::PhaseResult;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;

/// The shares of operations at which a curve is given: evenly over the number of nines, to the 99.999th percentile;
/// the last one is the maximum.
pub const QUANTILES: [f64; 27] = [
    0.0, 0.1, 0.25, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.925, 0.95, 0.97, 0.98, 0.99, 0.9925, 0.995, 0.997,
    0.998, 0.999, 0.9995, 0.9998, 0.9999, 0.99995, 0.99998, 0.99999, 1.0,
];

/// Reads one histogram of nanoseconds.
pub fn decode(base64: &str) -> Result<Histogram<u64>, String> {
    let bytes = STANDARD.decode(base64).map_err(|e| format!("a histogram is not base64: {e}"))?;
    Deserializer::new()
        .deserialize(&mut bytes.as_slice())
        .map_err(|e| format!("a histogram is not HDR V2: {e}"))
}

/// All of them as one; none if there is none to read.
pub fn merged<'a>(results: impl Iterator<Item = &'a PhaseResult>) -> Option<Histogram<u64>> {
    let mut all: Option<Histogram<u64>> = None;
    for h in results.filter_map(|p| decode(p.histogram.as_deref()?).ok()) {
        match &mut all {
            None => {
                let mut first = h;
                first.auto(true);
                all = Some(first);
            }
            // It grows by itself; counts beyond u64 cannot be.
            Some(sum) => sum.add(&h).ok()?,
        }
    }
    all.filter(|h| !h.is_empty())
}

/// Nanoseconds at each of [`QUANTILES`]: none where so few operations were timed that the percentile would only repeat
/// the maximum.
pub fn curve(histogram: &Histogram<u64>) -> Vec<Option<u64>> {
    let beyond = |q: f64| (1.0 - q) * histogram.len() as f64;
    QUANTILES
        .iter()
        .map(|&q| match q {
            1.0 => Some(histogram.max()),
            _ if q > 0.5 && beyond(q) < 1.0 => None,
            _ => Some(histogram.value_at_quantile(q)),
        })
        .collect()
}

/// The curve of a case's rounds.
pub fn curve_of(results: &[&PhaseResult]) -> Option<Vec<Option<u64>>> {
    if let Some(h) = merged(results.iter().copied()) {
        return Some(curve(&h));
    }
    let timed: Vec<_> = results.iter().map(|p| &p.latency).filter(|l| l.samples > 0).collect();
    if timed.is_empty() {
        return None;
    }
    let at = |q: f64| -> Option<u64> {
        let values: Vec<f64> = timed
            .iter()
            .filter_map(|l| {
                let ns = match q {
                    0.5 => l.p50_ns,
                    0.95 => l.p95_ns,
                    0.99 => l.p99_ns,
                    0.999 => l.p999_ns,
                    0.9999 => l.p9999_ns,
                    1.0 => l.max_ns,
                    _ => return None,
                };
                // As in `curve`.
                (q == 1.0 || (1.0 - q) * l.samples as f64 >= 1.0).then_some(ns as f64)
            })
            .collect();
        median(&values).map(|v| v.round() as u64)
    };
    Some(QUANTILES.iter().map(|&q| at(q)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::Latency;
    use hdrhistogram::serialization::{Serializer, V2Serializer};

    /// A phase whose operations took these nanoseconds.
    fn phase(ns: impl Iterator<Item = u64>) -> PhaseResult {
        let mut h = Histogram::<u64>::new(3).unwrap();
        ns.for_each(|v| h.record(v).unwrap());
        let mut bytes = Vec::new();
        V2Serializer::new().serialize(&h, &mut bytes).unwrap();
        PhaseResult { histogram: Some(STANDARD.encode(bytes)), ..PhaseResult::default() }
    }

    fn at(curve: &[Option<u64>], q: f64) -> Option<u64> {
        curve[QUANTILES.iter().position(|&x| x == q).unwrap()]
    }

    #[test]
    fn percentiles_of_rounds_are_those_of_all_operations() {
        // One round of 1..=1000, one of 1001..=2000: together 1..=2000, of which the median is 1000. The mean of the
        // rounds' 99th percentiles, 1490, would be wrong.
        let rounds = [phase(1..=1000), phase(1001..=2000)];
        let c = curve_of(&rounds.iter().collect::<Vec<_>>()).unwrap();
        let near = |q, want: u64| {
            let got = at(&c, q).unwrap();
            assert!(got.abs_diff(want) * 1000 <= want, "{q}: {got}, not {want}");
        };
        near(0.5, 1000);
        near(0.9, 1800);
        near(0.99, 1980);
        near(0.999, 1998);
        near(1.0, 2000);
        assert_eq!(at(&c, 0.9999), None, "2000 operations have no 99.99th percentile");
        assert_eq!(at(&c, 0.0), Some(1));
    }

    #[test]
    fn histograms_of_different_bounds_merge() {
        let rounds = [phase(1..=10), phase(std::iter::once(3_600_000_000_000))];
        let h = merged(rounds.iter()).unwrap();
        assert_eq!(h.len(), 11);
        assert!(h.max() >= 3_600_000_000_000);
    }

    #[test]
    fn without_histograms_there_are_the_medians_of_the_known_percentiles() {
        let round = |p99_ns| PhaseResult {
            latency: Latency { samples: 5000, p50_ns: 10, p99_ns, max_ns: 900, ..Latency::default() },
            ..PhaseResult::default()
        };
        let rounds = [round(70), round(50), round(60)];
        let c = curve_of(&rounds.iter().collect::<Vec<_>>()).unwrap();
        assert_eq!((at(&c, 0.5), at(&c, 0.99), at(&c, 1.0)), (Some(10), Some(60), Some(900)));
        assert_eq!((at(&c, 0.75), at(&c, 0.9999)), (None, None));
        assert_eq!(curve_of(&[&PhaseResult::default()]), None);
    }

    #[test]
    fn what_is_no_histogram_is_said_and_left_out() {
        assert!(decode("%%%").unwrap_err().contains("base64"));
        assert!(decode("AAAA").unwrap_err().contains("HDR V2"));
        let bad = PhaseResult { histogram: Some("AAAA".into()), ..PhaseResult::default() };
        assert!(merged([bad].iter()).is_none());
    }
}
