//! The operations of a mix: which is which, and of which id.

use super::ops::{Ops, THETA};
use super::rng;
use super::zipf::Zipf;
use crate::spec::Mix;
use std::ops::Range;

/// What an operation of a mix is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// A get.
    Read,
    /// A put of a loaded key.
    Update,
    /// A put of a new key.
    Insert,
    /// A seek and entries.
    Scan,
    /// A get and a put of the same key.
    Modify,
}

/// All operations of a mix.
#[derive(Clone, Debug)]
pub struct Mixed {
    ops: Ops,
    coins: u64,
    /// Running sums of the shares but the last.
    sums: [u64; 4],
    size: u64,
    first: u64,
    /// Of gets that prefer new keys, how new: computed beforehand, since a rank costs more than a get may.
    ranks: Vec<u32>,
}

impl Mixed {
    /// The shares `mix` over the operations `ops` of the phase numbered `stream`; scans of up to `size` entries; inserts take
    /// the ids from `first` on.
    pub fn new(ops: Ops, mix: Mix, size: u32, first: u64, seed: u64, stream: u64) -> Mixed {
        let mut sum = 0;
        let sums = [mix.read, mix.update, mix.insert, mix.scan].map(|share| {
            sum += u64::from(share);
            sum
        });
        let coins = rng::stream(seed, 17 + 2 * stream);
        let mut mixed = Mixed { coins, sums, size: u64::from(size), first, ranks: Vec::new(), ops };
        if mix.latest {
            let draws = rng::stream(seed, 16 + 2 * stream);
            let zipf = Zipf::new(mixed.ops.ids(), THETA);
            let rank = |j| match mixed.turn(j) {
                Turn::Read => zipf.rank(rng::at(draws, j)) as u32,
                _ => 0,
            };
            mixed.ranks = (0..mixed.ops.count()).map(rank).collect();
        }
        mixed
    }

    /// The plain order of it.
    pub fn ops(&self) -> &Ops {
        &self.ops
    }

    /// The id of the first insert.
    pub fn first(&self) -> u64 {
        self.first
    }

    /// What operation `j` is.
    #[inline]
    pub fn turn(&self, j: u64) -> Turn {
        let draw = rng::reduce(rng::at(self.coins, j), 100);
        match self.sums.iter().filter(|&&sum| draw >= sum).count() {
            0 => Turn::Read,
            1 => Turn::Update,
            2 => Turn::Insert,
            3 => Turn::Scan,
            _ => Turn::Modify,
        }
    }

    /// How many inserts there are among these operations.
    pub fn inserts(&self, range: Range<u64>) -> u64 {
        if self.sums[2] == self.sums[1] {
            return 0;
        }
        range.filter(|&j| self.turn(j) == Turn::Insert).count() as u64
    }

    /// The loaded id of operation `j`.
    #[inline]
    pub fn id(&self, j: u64) -> u64 {
        self.ops.id(j)
    }

    /// The id of the get that is operation `j`, for a thread that has inserted `own` ids, up to but without `next`.
    #[inline]
    pub fn read_id(&self, j: u64, own: u64, next: u64) -> u64 {
        match self.ranks.get(j as usize) {
            None => self.ops.id(j),
            Some(&rank) => {
                let rank = u64::from(rank);
                if rank < own { next - 1 - rank } else { self.ops.ids() - 1 - (rank - own) }
            }
        }
    }

    /// Entries of the scan that is operation `j`, if so many are there.
    #[inline]
    pub fn scan_len(&self, j: u64) -> u32 {
        1 + rng::reduce(rng::mix(rng::at(self.coins, j)), self.size) as u32
    }

    /// Bytes of memory held.
    pub fn memory(&self) -> usize {
        self.ops.memory() + self.ranks.capacity() * 4
    }
}

#[cfg(test)]
mod tests {
    use super::super::Order;
    use super::*;

    #[test]
    fn shares_are_kept_and_new_keys_are_there() {
        let mix = Mix { read: 50, update: 10, insert: 20, scan: 15, modify: 5, latest: true };
        let ops = Ops::new(Order::Zipf, 1000, 10_000, 1, 2);
        let mixed = Mixed::new(ops, mix, 100, 1000, 1, 2);
        let mut counts = [0; 5];
        let (mut own, mut newest) = (0, 0);
        for j in 0..10_000 {
            let turn = mixed.turn(j);
            counts[turn as usize] += 1;
            match turn {
                Turn::Insert => own += 1,
                Turn::Read => {
                    let id = mixed.read_id(j, own, 1000 + own);
                    assert!(id < 1000 + own);
                    newest += u32::from(id + 10 >= 1000 + own);
                }
                Turn::Scan => assert!((1..=100).contains(&mixed.scan_len(j))),
                _ => assert!(mixed.id(j) < 1000),
            }
        }
        for (count, share) in counts.into_iter().zip([50u32, 10, 20, 15, 5]) {
            assert!((share * 85..share * 115).contains(&count), "{counts:?}");
        }
        // Zipf's ten most popular of a thousand have 40 % of the draws.
        assert!(newest > counts[0] / 3, "{newest} of {}", counts[0]);
        assert_eq!(mixed.inserts(0..10_000), u64::from(counts[Turn::Insert as usize]));
    }
}
