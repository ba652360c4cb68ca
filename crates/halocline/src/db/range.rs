//! Ranges of keys, as users write them.

use super::Bounds;
use std::ops::{Bound, Range, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive};

/// A range of keys: Rust's range expressions over anything that is bytes, as `b"a"..b"m"`, `key..`, `..=end` or
/// `..`, and pairs of [`Bound`]s.
pub trait KeyRange {
    /// Its lower and its upper bound.
    fn key_bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>);
}

use Bound::{Excluded, Included, Unbounded};

macro_rules! key_range {
    ($range:ty, $self:ident => $bounds:expr) => {
        impl<A: AsRef<[u8]>> KeyRange for $range {
            fn key_bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
                let $self = self;
                $bounds
            }
        }
    };
}

key_range!(Range<A>, r => (Included(r.start.as_ref()), Excluded(r.end.as_ref())));
key_range!(RangeFrom<A>, r => (Included(r.start.as_ref()), Unbounded));
key_range!(RangeTo<A>, r => (Unbounded, Excluded(r.end.as_ref())));
key_range!(RangeInclusive<A>, r => (Included(r.start().as_ref()), Included(r.end().as_ref())));
key_range!(RangeToInclusive<A>, r => (Unbounded, Included(r.end.as_ref())));

impl KeyRange for RangeFull {
    fn key_bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        (Unbounded, Unbounded)
    }
}

impl<A: AsRef<[u8]>, B: AsRef<[u8]>> KeyRange for (Bound<A>, Bound<B>) {
    fn key_bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        (self.0.as_ref().map(AsRef::as_ref), self.1.as_ref().map(AsRef::as_ref))
    }
}

/// Owned bounds of a range.
pub(crate) fn owned(range: &impl KeyRange) -> Bounds {
    let (lower, upper) = range.key_bounds();
    (lower.map(<[u8]>::to_vec), upper.map(<[u8]>::to_vec))
}

/// Whether a key lies within bounds.
pub(crate) fn contains((lower, upper): &Bounds, key: &[u8]) -> bool {
    (match lower {
        Included(b) => key >= b.as_slice(),
        Excluded(b) => key > b.as_slice(),
        Unbounded => true,
    }) && (match upper {
        Included(b) => key <= b.as_slice(),
        Excluded(b) => key < b.as_slice(),
        Unbounded => true,
    })
}

/// The bounds of all keys that begin with `prefix`.
pub(crate) fn of_prefix(prefix: &[u8]) -> Bounds {
    let mut end = prefix.to_vec();
    while end.last() == Some(&0xFF) {
        end.pop();
    }
    let upper = match end.last_mut() {
        Some(last) => {
            *last += 1;
            Excluded(end)
        }
        None => Unbounded,
    };
    (Included(prefix.to_vec()), upper)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_prefix_is_the_next_key_that_does_not_begin_with_it() {
        assert_eq!(of_prefix(b"ab"), (Included(b"ab".to_vec()), Excluded(b"ac".to_vec())));
        assert_eq!(of_prefix(b"a\xFF\xFF"), (Included(b"a\xFF\xFF".to_vec()), Excluded(b"b".to_vec())));
        assert_eq!(of_prefix(b"\xFF"), (Included(b"\xFF".to_vec()), Unbounded));
        assert_eq!(of_prefix(b""), (Included(Vec::new()), Unbounded));
    }
}
