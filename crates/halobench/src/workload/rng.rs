//! SplitMix64, the only source of randomness of the lab (Steele, Lea and Flood, OOPSLA 2014).
//!
//! It is counter-based: draw number `j` of a stream is [`at`]`(seed, j)`, so that an operation's randomness does
//! not depend on how the operations are split among threads, and a driver in another language needs ten lines.

/// The increment of SplitMix64: 2^64 divided by the golden ratio, made odd.
pub const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// SplitMix64's finalizer: a bijection on 64 bits.
#[inline]
pub fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// The inverse of [`mix`].
#[inline]
pub fn unmix(mut z: u64) -> u64 {
    z = (z ^ (z >> 31) ^ (z >> 62)).wrapping_mul(0x3196_42B2_D24D_8EC3);
    z = (z ^ (z >> 27) ^ (z >> 54)).wrapping_mul(0x96DE_1B17_3F11_9089);
    z ^ (z >> 30) ^ (z >> 60)
}

/// Draw number `j` of the stream `seed`: what the `j+1`-th call of a SplitMix64 seeded with `seed` returns.
#[inline]
pub fn at(seed: u64, j: u64) -> u64 {
    mix(seed.wrapping_add(j.wrapping_add(1).wrapping_mul(GOLDEN)))
}

/// The seed of the stream number `stream` below the workload's `seed`.
#[inline]
pub fn stream(seed: u64, stream: u64) -> u64 {
    mix(seed ^ mix(stream.wrapping_mul(GOLDEN)))
}

/// Maps a draw to `0..n`: the high half of the product (Lemire, 2019, without the rejection step).
#[inline]
pub fn reduce(draw: u64, n: u64) -> u64 {
    ((u128::from(draw) * u128::from(n)) >> 64) as u64
}

/// Maps a draw to `[0, 1)` with 53 bits.
#[inline]
pub fn unit(draw: u64) -> f64 {
    (draw >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_the_published_splitmix64() {
        // The first draws of the reference implementation (prng.di.unimi.it/splitmix64.c) for seed 1234567.
        let expected = [
            6457827717110365317,
            3203168211198807973,
            9817491932198370423,
            4593380528125082431,
            16408922859458223821,
        ];
        for (j, e) in expected.into_iter().enumerate() {
            assert_eq!(at(1234567, j as u64), e);
        }
    }

    #[test]
    fn unmix_inverts_mix() {
        for j in 0..10_000 {
            let x = at(7, j);
            assert_eq!(unmix(mix(x)), x);
        }
        assert_eq!(unmix(mix(u64::MAX)), u64::MAX);
    }

    #[test]
    fn reduce_is_even() {
        let mut counts = [0u32; 10];
        for j in 0..100_000 {
            counts[reduce(at(3, j), 10) as usize] += 1;
        }
        assert!(counts.iter().all(|&c| (9_600..10_400).contains(&c)), "{counts:?}");
    }
}
