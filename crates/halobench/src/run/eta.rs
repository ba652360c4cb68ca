//! How long a run will go on, from what its children took so far.

use std::collections::BTreeMap;

/// Seconds that children took, by engine and case.
#[derive(Clone, Debug, Default)]
pub struct Durations {
    /// Of each engine and case: the sum, and how many.
    seen: BTreeMap<(String, String), (f64, u32)>,
}

impl Durations {
    /// Notes one.
    pub fn add(&mut self, engine: &str, case: &str, seconds: f64) {
        let (sum, count) = self.seen.entry((engine.into(), case.into())).or_default();
        *sum += seconds;
        *count += 1;
    }

    /// What a child is expected to take: what this engine and case took before; else what the case took of the other
    /// engines, in the proportion in which this engine differed from them so far; else the mean of all. None before the
    /// first.
    pub fn expect(&self, engine: &str, case: &str) -> Option<f64> {
        if let Some((sum, count)) = self.seen.get(&(engine.to_string(), case.to_string())) {
            return Some(sum / f64::from(*count));
        }
        let mean = |fits: &dyn Fn(&str, &str) -> bool| {
            let (sum, count) = self
                .seen
                .iter()
                .filter(|((e, c), _)| fits(e, c))
                .fold((0.0, 0), |(s, n), (_, (sum, count))| (s + sum, n + count));
            (count > 0).then(|| sum / f64::from(count))
        };
        let all = mean(&|_, _| true)?;
        let of_engine = mean(&|e, _| e == engine).unwrap_or(all);
        let of_case = mean(&|_, c| c == case).unwrap_or(all);
        Some(if all > 0.0 { of_engine * of_case / all } else { 0.0 })
    }

    /// Seconds for all of these together.
    pub fn sum<'a>(&self, rest: impl Iterator<Item = (&'a str, &'a str)>) -> Option<f64> {
        rest.map(|(engine, case)| self.expect(engine, case)).sum()
    }
}

/// `h:mm:ss` or `m:ss`, as people read it.
pub fn clock(seconds: f64) -> String {
    let s = seconds.max(0.0).round() as u64;
    match s / 3600 {
        0 => format!("{}:{:02}", s / 60, s % 60),
        h => format!("{h}:{:02}:{:02}", s / 60 % 60, s % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_is_repeated_and_the_rest_follows_engine_and_case() {
        let mut d = Durations::default();
        assert_eq!(d.expect("a", "x"), None);
        assert_eq!(d.sum([("a", "x")].into_iter()), None);
        d.add("a", "x", 2.0);
        assert_eq!(d.expect("b", "y"), Some(2.0), "the mean of all");
        d.add("a", "x", 4.0);
        d.add("b", "x", 9.0);
        assert_eq!(d.expect("a", "x"), Some(3.0));
        // All: 15 s of 3. Engine b: 9. Case y is new, so it counts as the mean: 9 * 5 / 5.
        assert_eq!(d.expect("b", "y"), Some(9.0));
        d.add("a", "y", 30.0);
        // All: 45 of 4 = 11.25; b: 9; y: 30.
        assert_eq!(d.expect("b", "y"), Some(24.0));
        assert_eq!(d.sum([("a", "x"), ("b", "y")].into_iter()), Some(27.0));
        assert_eq!(d.sum(std::iter::empty()), Some(0.0));
    }

    #[test]
    fn clocks_are_read() {
        assert_eq!([clock(0.4), clock(61.0), clock(3600.0 + 62.0)], ["0:00", "1:01", "1:01:02"]);
    }
}
