//! The simulation's randomness: SplitMix64, small and the same everywhere, since a seed must replay for years.

/// A stream of numbers that its seed determines.
#[derive(Clone, Debug)]
pub(super) struct Rng(u64);

impl Rng {
    pub(super) fn new(seed: u64) -> Rng {
        Rng(seed)
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number in `[0, bound)`, `bound > 0`. The bias of the remainder does not matter here.
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// True `n` times out of `of`.
    pub(super) fn chance(&mut self, n: u64, of: u64) -> bool {
        self.below(of) < n
    }

    /// 16 bytes, for an identifier.
    pub(super) fn id(&mut self) -> [u8; 16] {
        (u128::from(self.next()) << 64 | u128::from(self.next())).to_le_bytes()
    }
}
