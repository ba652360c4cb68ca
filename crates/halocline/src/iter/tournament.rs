//! A tournament of sources: which of them stands at the foremost key.
//!
//! A tree of losers (Knuth, volume 3, 5.4.1): every inner node keeps who lost the match there, the overall winner is
//! kept apart. When the winner has moved it replays only the matches on the path from its leaf to the root:
//! `log2(k)` comparisons, each of two cached **heads** (the first 16 bytes of a key as a big-endian integer; its
//! complement when running backward, so that the smaller head is always the foremost). Only equal heads look at the
//! keys themselves.
//!
//! ```text
//!         winner          node n keeps who lost between the winners of 2n and 2n+1;
//!            1            the leaf of source i is node 4+i, and no leaf has another depth,
//!        2       3        or the length of the path would be one more thing not to be predicted
//!      4   5   6   7
//!     s0  s1  s2  nobody
//! ```
//!
//! Two shortcuts:
//!
//! - A source that has beaten everybody on its path several times in a row keeps the smallest head there, its
//!   *ceiling*. While its next heads stay below, it is the winner without a match. In a tree with one large last run
//!   that is most of the time; where the sources take turns it must not be tried, since it would be mispredicted.
//! - At equal keys the source with the lower index (the newer one) wins, and the loser is marked *shadowed*. Whoever
//!   surfaces with the mark is an older entry of the key that has just been there. The mark is never missed: two
//!   neighbours in the order can only be told apart by a match between them. So nobody has to remember the last key.

use super::Source;
use std::cmp::Ordering;
use std::hint::select_unpredictable;

/// Bytes of a key in a head.
const HEAD: usize = 16;

/// The first 16 bytes of `key`, padded with zeros, as a big-endian integer. If two heads differ, they order as their
/// keys do.
#[inline]
pub(super) fn head(key: &[u8]) -> u128 {
    if let Some(bytes) = key.first_chunk::<HEAD>() {
        return u128::from_be_bytes(*bytes);
    }
    // Two loads that overlap: what the second repeats of the first is shifted out on the left.
    let missing = 8 * (HEAD - key.len()) as u32;
    if let (Some(first), Some(last)) = (key.first_chunk::<8>(), key.last_chunk::<8>()) {
        let low = u64::from_be_bytes(*last).checked_shl(missing).unwrap_or(0);
        return u128::from(u64::from_be_bytes(*first)) << 64 | u128::from(low);
    }
    let mut head = 0;
    for &byte in key {
        head = head << 8 | u128::from(byte);
    }
    head.checked_shl(missing).unwrap_or(0)
}

/// Compares two keys whose heads are equal.
#[inline]
pub(super) fn compare_tails(a: &[u8], b: &[u8]) -> Ordering {
    match (a.get(HEAD..), b.get(HEAD..)) {
        (Some(a), Some(b)) => a.cmp(b),
        // One ends within the head: so far they differ at most in zeros at its end.
        _ => a.len().cmp(&b.len()),
    }
}

/// A source in the tournament, with what is needed to compare it.
#[derive(Clone, Copy)]
struct Player {
    /// The head of its key, complemented when running backward; all ones if it is not live.
    head: u128,
    /// The index of the source, and the flags below.
    tag: u32,
}

/// A source without an entry. Those come last.
const EXHAUSTED: u32 = 1 << 31;
/// A newer source has the same key.
const SHADOWED: u32 = 1 << 30;
/// Whom everybody beats: stands in for the sources that are missing to a power of two.
const NOBODY: Player = Player { head: u128::MAX, tag: EXHAUSTED };
/// Wins in a row after which a source is expected to go on winning.
const STREAK: u32 = 4;

impl Player {
    #[inline]
    fn of<S: Source>(source: &S, index: usize, backward: bool) -> Player {
        let index = index as u32;
        if !source.valid() {
            return Player { head: u128::MAX, tag: index | EXHAUSTED };
        }
        let head = head(source.key());
        Player { head: if backward { !head } else { head }, tag: index }
    }

    #[inline]
    fn source(self) -> usize {
        (self.tag & !(EXHAUSTED | SHADOWED)) as usize
    }

    #[inline]
    fn live(self) -> bool {
        self.tag & EXHAUSTED == 0
    }

    /// Whether `self` comes before `other`, which has the same head. Marks the loser if the keys are equal.
    #[inline(never)]
    fn wins_tie<S: Source>(&mut self, other: &mut Player, sources: &[S], backward: bool) -> bool {
        if !self.live() || !other.live() {
            return self.live();
        }
        let (mine, theirs) = (sources[self.source()].key(), sources[other.source()].key());
        match compare_tails(mine, theirs) {
            Ordering::Equal => {
                let newer = self.source() < other.source();
                let older = if newer { other } else { self };
                older.tag |= SHADOWED;
                newer
            }
            Ordering::Less => !backward,
            Ordering::Greater => backward,
        }
    }
}

/// The order among some sources, which the caller keeps and passes in: always the same ones, and only the winner may
/// have moved since the last call.
pub(super) struct Tournament {
    /// Who lost at each inner node; the first is not used.
    losers: Box<[Player]>,
    winner: Player,
    /// Below this head the winner's source needs no match.
    ceiling: u128,
    /// How often in a row the winner has won, up to when the ceiling was set.
    streak: u32,
    backward: bool,
}

impl Tournament {
    /// A tournament of `sources` sources, not yet played.
    pub(super) fn new(sources: usize) -> Tournament {
        let losers = vec![NOBODY; sources.next_power_of_two()].into();
        Tournament { losers, winner: NOBODY, ceiling: 0, streak: 0, backward: false }
    }

    /// Plays all matches anew, for the first (`backward`: last) key in front.
    pub(super) fn build<S: Source>(&mut self, sources: &[S], backward: bool) {
        self.backward = backward;
        self.ceiling = 0;
        self.streak = 0;
        if !sources.is_empty() {
            self.winner = self.play(1, sources);
        }
    }

    /// Plays the matches at and below `node`, and returns who won there.
    fn play<S: Source>(&mut self, node: usize, sources: &[S]) -> Player {
        let inner = self.losers.len();
        if node >= inner {
            let index = node - inner;
            return sources.get(index).map_or(NOBODY, |source| Player::of(source, index, self.backward));
        }
        let mut a = self.play(2 * node, sources);
        let mut b = self.play(2 * node + 1, sources);
        if b.head < a.head || b.head == a.head && b.wins_tie(&mut a, sources, self.backward) {
            std::mem::swap(&mut a, &mut b);
        }
        self.losers[node] = b;
        a
    }

    /// The winner's source has moved: finds the new winner.
    #[inline]
    pub(super) fn replay<S: Source>(&mut self, sources: &[S]) {
        let index = self.winner.source();
        let mut player = Player::of(&sources[index], index, self.backward);
        if player.head >= self.ceiling {
            let mut ceiling = u128::MAX;
            let mut node = (self.losers.len() + index) / 2;
            while node > 0 {
                let rival = &mut self.losers[node];
                let wins = if rival.head == player.head {
                    rival.wins_tie(&mut player, sources, self.backward)
                } else {
                    rival.head < player.head
                };
                // Who wins is anybody's guess, the processor's too.
                let (a, b) = (*rival, player);
                player = Player {
                    head: select_unpredictable(wins, a.head, b.head),
                    tag: select_unpredictable(wins, a.tag, b.tag),
                };
                *rival = Player {
                    head: select_unpredictable(wins, b.head, a.head),
                    tag: select_unpredictable(wins, b.tag, a.tag),
                };
                ceiling = ceiling.min(rival.head);
                node /= 2;
            }
            // Whoever came from elsewhere has other rivals on its path.
            self.streak = if player.source() == index { STREAK.min(self.streak + 1) } else { 0 };
            self.ceiling = if self.streak >= STREAK { ceiling } else { 0 };
        }
        self.winner = player;
    }

    /// The source that is foremost; `None` if all are exhausted.
    #[inline]
    pub(super) fn winner(&self) -> Option<usize> {
        self.winner.live().then_some(self.winner.source())
    }

    /// The index of the winner, which the caller knows to be live.
    #[inline]
    pub(super) fn index(&self) -> usize {
        self.winner.source()
    }

    /// Whether the winner stands at the key that won last, or at one behind it that a newer source has too.
    #[inline]
    pub(super) fn shadowed(&self) -> bool {
        self.winner.tag & SHADOWED != 0
    }

    /// The head of the winner's key, which must be live.
    #[inline]
    pub(super) fn head(&self) -> u128 {
        if self.backward { !self.winner.head } else { self.winner.head }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn heads_order_as_keys_do(a in proptest::collection::vec(0u8..4, 0..20), b in proptest::collection::vec(0u8..4, 0..20)) {
            let order = head(&a).cmp(&head(&b)).then_with(|| compare_tails(&a, &b));
            prop_assert_eq!(order, a.cmp(&b));
            let mut padded = [0; HEAD];
            let n = a.len().min(HEAD);
            padded[..n].copy_from_slice(&a[..n]);
            prop_assert_eq!(head(&a), u128::from_be_bytes(padded));
        }
    }
}
