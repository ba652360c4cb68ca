//! Statistics of a few rounds: medians, the range from the best to the worst, and what that range is worth.
//!
//! Rounds are few (three, as a rule), so nothing here assumes a distribution. What is shown beside a median is the
//! whole range of the rounds: it holds the true median with a probability that only their number decides, see
//! [`confidence`], and no narrower interval of three values says more.

/// The median; the mean of the middle two for an even number. None of no values.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut v = values.to_vec();
    v.sort_by(f64::total_cmp);
    let mid = v.len() / 2;
    match v.len() {
        0 => None,
        n if n % 2 == 1 => Some(v[mid]),
        _ => Some((v[mid - 1] + v[mid]) / 2.0),
    }
}

/// The least and the largest value. None of no values.
pub fn range(values: &[f64]) -> Option<(f64, f64)> {
    let min = values.iter().copied().reduce(f64::min)?;
    let max = values.iter().copied().reduce(f64::max)?;
    Some((min, max))
}

/// Largest less smallest, over the median: 0.2 says that the rounds differ by 20 % of their median.
pub fn spread(values: &[f64]) -> Option<f64> {
    let (min, max) = range(values)?;
    over(max - min, median(values)?)
}

/// `a / b`, where that means something.
pub fn over(a: f64, b: f64) -> Option<f64> {
    (b > 0.0).then(|| a / b)
}

/// The probability that the range of so many independent rounds holds the true median: all of them lie on one side of
/// it with probability `2 * 0.5^rounds`. Three rounds: 75 %. Six: 97 %.
pub fn confidence(rounds: usize) -> f64 {
    if rounds == 0 { 0.0 } else { 1.0 - 0.5f64.powi(rounds as i32 - 1) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_are_the_middle() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[7.0]), Some(7.0));
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
    }

    #[test]
    fn spreads_are_ranges_over_the_median() {
        assert_eq!(range(&[90.0, 110.0, 100.0]), Some((90.0, 110.0)));
        assert_eq!(spread(&[90.0, 100.0, 110.0]), Some(0.2));
        assert_eq!(spread(&[5.0]), Some(0.0));
        assert_eq!(spread(&[]), None);
        assert_eq!(spread(&[0.0, 0.0]), None, "nothing is a share of nothing");
    }

    #[test]
    fn the_range_of_n_rounds_misses_the_median_only_if_all_lie_on_one_side() {
        assert_eq!(confidence(0), 0.0);
        assert_eq!(confidence(1), 0.0);
        assert_eq!(confidence(3), 0.75);
        // Counted: of the 2^5 ways in which five rounds lie above or below, two have all on one side.
        let all_on_one_side = (0..32u32).filter(|w| *w == 0 || *w == 31).count();
        assert_eq!(confidence(5), 1.0 - all_on_one_side as f64 / 32.0);
    }
}
