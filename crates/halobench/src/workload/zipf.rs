//! Zipf-distributed ranks in constant time (Gray et al., "Quickly generating billion-record synthetic databases",
//! SIGMOD 1994), and a permutation that scatters the popular ranks over the ids.
//!
//! The powers are computed with `+ - * /` on IEEE doubles in a fixed order, without the platform's `libm` and without
//! fused operations, so that every language draws the same ranks.

use super::rng;

/// Draws ranks in `0..n`, rank `r` with a probability close to proportional to `(r+1)^-theta`.
#[derive(Clone, Debug)]
pub struct Zipf {
    n: u64,
    alpha: f64,
    eta: f64,
    zeta_n: f64,
    half_pow_theta: f64,
}

impl Zipf {
    /// A distribution over `n >= 1` ranks with skew `theta` in (0, 1). Costs one power a rank.
    pub fn new(n: u64, theta: f64) -> Zipf {
        let mut zeta_n = 0.0;
        let mut zeta_2 = 0.0;
        for i in 1..=n {
            zeta_n += exp(-theta * ln(i as f64));
            if i == 2 {
                zeta_2 = zeta_n;
            }
        }
        let two_over_n = 2.0 / n as f64;
        let eta = (1.0 - exp((1.0 - theta) * ln(two_over_n))) / (1.0 - zeta_2 / zeta_n);
        Zipf { n, alpha: 1.0 / (1.0 - theta), eta, zeta_n, half_pow_theta: exp(-theta * ln(2.0)) }
    }

    /// The rank for a draw of 64 random bits.
    pub fn rank(&self, draw: u64) -> u64 {
        let u = rng::unit(draw);
        let uz = u * self.zeta_n;
        if uz < 1.0 || self.n < 2 {
            return 0;
        }
        if uz < 1.0 + self.half_pow_theta || self.n < 3 {
            return 1;
        }
        let base = self.eta * u - self.eta + 1.0;
        let rank = self.n as f64 * exp(self.alpha * ln(base));
        (rank as u64).min(self.n - 1)
    }
}

/// A fixed pseudo-random permutation of `0..n`: a bijection on the next power of two, walked until it lands inside.
#[derive(Clone, Copy, Debug)]
pub struct Permutation {
    n: u64,
    bits: u32,
    seed: u64,
}

impl Permutation {
    /// The permutation of `0..n` (`n >= 1`) that `seed` chooses.
    pub fn new(n: u64, seed: u64) -> Permutation {
        Permutation { n, bits: 64 - (n - 1).leading_zeros(), seed }
    }

    /// Where `i < n` goes.
    pub fn apply(&self, mut i: u64) -> u64 {
        if self.bits == 0 {
            return 0;
        }
        let mask = u64::MAX >> (64 - self.bits);
        let shift = self.bits.div_ceil(2);
        loop {
            // Three rounds of "add, multiply by an odd number, fold the high half into the low": each a bijection
            // modulo 2^bits.
            for round in 0..3 {
                i = i.wrapping_add(rng::at(self.seed, round)) & mask;
                i = i.wrapping_mul(0x9E37_79B9_7F4A_7C15) & mask;
                i ^= i >> shift;
            }
            if i < self.n {
                return i;
            }
        }
    }
}

/// Natural logarithm of a positive normal number: the exponent times ln 2, plus `2 atanh((m-1)/(m+1))` as a series.
pub(super) fn ln(x: f64) -> f64 {
    let bits = x.to_bits();
    let mut e = ((bits >> 52) & 0x7ff) as i64 - 1023;
    let mut m = f64::from_bits((bits & 0x000f_ffff_ffff_ffff) | 0x3ff0_0000_0000_0000);
    if m > std::f64::consts::SQRT_2 {
        m /= 2.0;
        e += 1;
    }
    let s = (m - 1.0) / (m + 1.0);
    let s2 = s * s;
    let mut sum = 0.0;
    let mut k = 21;
    while k >= 1 {
        sum = sum * s2 + 1.0 / k as f64;
        k -= 2;
    }
    e as f64 * std::f64::consts::LN_2 + 2.0 * s * sum
}

/// e to the `y`, for `|y| < 700`: a power of two times a Taylor series on `[-ln 2 / 2, ln 2 / 2]`.
pub(super) fn exp(y: f64) -> f64 {
    let k = (y / std::f64::consts::LN_2 + 0.5).floor();
    let r = y - k * std::f64::consts::LN_2;
    let mut sum = 1.0;
    let mut i = 14;
    while i >= 1 {
        sum = 1.0 + sum * r / i as f64;
        i -= 1;
    }
    if k < -1022.0 {
        return 0.0;
    }
    sum * f64::from_bits(((k as i64 + 1023) as u64) << 52)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logarithm_and_exponential_agree_with_libm() {
        for j in 0..10_000 {
            let x = rng::unit(rng::at(1, j)) * 1e6 + 1e-6;
            assert!((ln(x) - x.ln()).abs() <= 1e-14 * x.ln().abs().max(1.0), "{x}");
            let y = rng::unit(rng::at(2, j)) * 80.0 - 40.0;
            assert!((exp(y) / y.exp() - 1.0).abs() < 1e-13, "{y}");
        }
    }

    #[test]
    fn popular_ranks_have_their_share() {
        let n = 1000;
        let z = Zipf::new(n, 0.99);
        let draws = 200_000;
        let mut counts = vec![0u32; n as usize];
        for j in 0..draws {
            counts[z.rank(rng::at(5, j)) as usize] += 1;
        }
        let zeta: f64 = (1..=n).map(|i| (i as f64).powf(-0.99)).sum();
        // The two most popular are exact in this method; the tail is close.
        for (r, &count) in counts.iter().enumerate().take(2) {
            let share = f64::from(count) / draws as f64;
            let ideal = ((r + 1) as f64).powf(-0.99) / zeta;
            assert!((share / ideal - 1.0).abs() < 0.05, "rank {r}: {share} against {ideal}");
        }
        let top: u32 = counts[..100].iter().sum();
        let ideal: f64 = (1..=100).map(|i| f64::from(i).powf(-0.99)).sum::<f64>() / zeta;
        assert!((f64::from(top) / draws as f64 / ideal - 1.0).abs() < 0.05);
    }

    #[test]
    fn permutation_is_one() {
        for n in [1u64, 2, 3, 10, 1000, 1024, 5003] {
            let p = Permutation::new(n, 9);
            let mut seen = vec![false; n as usize];
            for i in 0..n {
                let j = p.apply(i) as usize;
                assert!(!seen[j], "n {n}: {j} twice");
                seen[j] = true;
            }
        }
    }

    #[test]
    fn tiny_distributions_stay_inside() {
        for n in 1..6 {
            let z = Zipf::new(n, 0.99);
            assert!((0..1000).all(|j| z.rank(rng::at(1, j)) < n));
        }
    }
}
