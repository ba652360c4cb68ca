//! Which id each operation touches: computed before the clock starts, four bytes an operation, nothing where the
//! order is plain counting.

use super::rng;
use super::zipf::{Permutation, Zipf};
use serde::{Deserialize, Serialize};

/// The skew of the zipfian pattern.
pub(super) const THETA: f64 = 0.99;

/// The order in which operations visit the ids `0..n`; `j` is the number of the operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// `j mod n`
    Up,
    /// `n - 1 - j mod n`
    Down,
    /// `permutation(j mod n)`
    Shuffled,
    /// `reduce(draw j, n)`
    Uniform,
    /// `permutation(zipf rank of draw j)`
    Zipf,
}

impl Order {
    /// Whether the first `n` operations visit every id once.
    pub fn visits_once(self) -> bool {
        matches!(self, Order::Up | Order::Down | Order::Shuffled)
    }
}

/// The ids of a phase's operations.
#[derive(Clone, Debug)]
pub struct Ops {
    order: Order,
    n: u64,
    count: u64,
    list: Vec<u32>,
    draws: u64,
    coin_seed: u64,
}

impl Ops {
    /// `count` operations over the ids `0..n` (at most `u32::MAX` of them). Phases of one run differ by `stream`.
    pub fn new(order: Order, n: u64, count: u64, seed: u64, stream: u64) -> Ops {
        assert!(n >= 1 && n <= u64::from(u32::MAX));
        let draws = rng::stream(seed, 16 + 2 * stream);
        let permutation = Permutation::new(n, rng::stream(seed, 4));
        let list = match order {
            Order::Up | Order::Down => Vec::new(),
            Order::Shuffled => (0..count).map(|j| permutation.apply(j % n) as u32).collect(),
            Order::Uniform => (0..count).map(|j| rng::reduce(rng::at(draws, j), n) as u32).collect(),
            Order::Zipf => {
                let zipf = Zipf::new(n, THETA);
                (0..count).map(|j| permutation.apply(zipf.rank(rng::at(draws, j))) as u32).collect()
            }
        };
        Ops { order, n, count, list, draws, coin_seed: rng::stream(seed, 17 + 2 * stream) }
    }

    /// `count` operations over the ids `0..n`, drawn evenly: the same as the order `Uniform`, but each id is computed when
    /// it is asked for, so that it holds no memory.
    pub fn evenly(n: u64, count: u64, seed: u64, stream: u64) -> Ops {
        Ops { count, order: Order::Uniform, ..Ops::new(Order::Up, n, 0, seed, stream) }
    }

    /// How many ids they visit.
    pub fn ids(&self) -> u64 {
        self.n
    }

    /// Number of operations.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The id of operation `j`.
    #[inline]
    pub fn id(&self, j: u64) -> u64 {
        match self.order {
            Order::Up if j < self.n => j,
            Order::Up => j % self.n,
            Order::Down => self.n - 1 - j % self.n,
            Order::Uniform if self.list.is_empty() => rng::reduce(rng::at(self.draws, j), self.n),
            _ => u64::from(self.list[j as usize]),
        }
    }

    /// Whether operation `j` of a mixed phase is a write: a fair coin.
    #[inline]
    pub fn writes(&self, j: u64) -> bool {
        rng::at(self.coin_seed, j) & 1 == 1
    }

    /// Operations of thread `t` of `threads`: a stretch of the whole.
    pub fn share(&self, t: usize, threads: usize) -> std::ops::Range<u64> {
        let at = |t: usize| (u128::from(self.count) * t as u128 / threads as u128) as u64;
        at(t)..at(t + 1)
    }

    /// Bytes of memory held.
    pub fn memory(&self) -> usize {
        self.list.capacity() * 4
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_cover_everything_once() {
        let ops = Ops::new(Order::Up, 1003, 1003, 1, 0);
        let mut next = 0;
        for t in 0..8 {
            let share = ops.share(t, 8);
            assert_eq!(share.start, next);
            next = share.end;
        }
        assert_eq!(next, 1003);
    }

    #[test]
    fn orders_visit_as_they_say() {
        for order in [Order::Up, Order::Down, Order::Shuffled] {
            let ops = Ops::new(order, 500, 500, 7, 0);
            let mut ids: Vec<u64> = (0..500).map(|j| ops.id(j)).collect();
            ids.sort_unstable();
            assert_eq!(ids, (0..500).collect::<Vec<_>>(), "{order:?}");
        }
        let uniform = Ops::new(Order::Uniform, 500, 5000, 7, 0);
        let mut seen = [0; 500];
        (0..5000).for_each(|j| seen[uniform.id(j) as usize] += 1);
        assert!(seen.iter().filter(|&&c| c > 0).count() > 490);
        let zipf = Ops::new(Order::Zipf, 500, 5000, 7, 0);
        let mut seen = [0; 500];
        (0..5000).for_each(|j| seen[zipf.id(j) as usize] += 1);
        // 1/zeta(500, 0.99) = 0.144: the favourite has about 720 of 5000.
        assert!((600..850).contains(seen.iter().max().unwrap()));
    }

    #[test]
    fn an_even_order_without_memory_is_the_same() {
        let (a, b) = (Ops::new(Order::Uniform, 1000, 100, 7, 3), Ops::evenly(1000, 100, 7, 3));
        assert!((0..100).all(|j| a.id(j) == b.id(j)));
        assert_eq!((b.count(), b.ids(), b.memory()), (100, 1000, 0));
    }

    #[test]
    fn streams_differ() {
        let a = Ops::new(Order::Uniform, 1 << 30, 10, 7, 0);
        let b = Ops::new(Order::Uniform, 1 << 30, 10, 7, 1);
        assert!((0..10).all(|j| a.id(j) != b.id(j)));
    }
}
