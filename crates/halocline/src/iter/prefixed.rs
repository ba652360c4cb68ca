//! The part of a source that belongs to one column family, with the family's prefix stripped from the keys.

use super::Source;
use crate::entry::{Kind, MAX_PREFIX, Prefix};
use crate::{Result, Value};

/// Shows the entries of a source whose internal keys begin with a prefix, by the keys that follow it.
///
/// Invariant: `inside` says that the source is valid and its key begins with the prefix.
pub(crate) struct Prefixed<S> {
    source: S,
    prefix: Prefix,
    inside: bool,
    /// The internal key of a seek; kept for its memory.
    internal: Vec<u8>,
}

impl<S: Source> Prefixed<S> {
    /// The entries of `source` with `prefix`; not positioned.
    pub(crate) fn new(source: S, prefix: Prefix) -> Self {
        Prefixed { source, prefix, inside: false, internal: Vec::new() }
    }

    #[inline]
    fn check(&mut self, moved: Result<()>) -> Result<()> {
        self.inside = moved.is_ok() && self.source.valid() && {
            let key = self.source.key();
            match self.prefix.as_slice() {
                // The usual case, without a call to compare memory.
                [id] => key.first() == Some(id),
                prefix => key.starts_with(prefix),
            }
        };
        moved
    }

    fn with_internal(&mut self, key: &[u8], seek: impl FnOnce(&mut S, &[u8]) -> Result<()>) -> Result<()> {
        self.internal.clear();
        self.internal.extend_from_slice(self.prefix.as_slice());
        self.internal.extend_from_slice(key);
        let moved = seek(&mut self.source, &self.internal);
        self.check(moved)
    }

    fn seek_to_end(&mut self) -> Result<()> {
        let (successor, len) = successor(self.prefix);
        if len == 0 {
            return self.source.seek_last();
        }
        let end = &successor[..len];
        self.source.seek_for_prev(end)?;
        // The key that is the successor itself belongs to the next family.
        if self.source.valid() && self.source.key() == end {
            self.source.prev()?;
        }
        Ok(())
    }
}

/// The smallest byte string behind all that begin with `prefix`, and its length: 0 if there is none.
fn successor(prefix: Prefix) -> ([u8; MAX_PREFIX], usize) {
    let mut bytes = [0; MAX_PREFIX];
    let mut len = prefix.as_slice().len();
    bytes[..len].copy_from_slice(prefix.as_slice());
    while len > 0 {
        // A trailing 0xFF cannot be counted up: what follows differs in an earlier byte.
        if bytes[len - 1] < 0xFF {
            bytes[len - 1] += 1;
            break;
        }
        len -= 1;
    }
    (bytes, len)
}

impl<S: Source> Source for Prefixed<S> {
    fn seek_first(&mut self) -> Result<()> {
        let moved = self.source.seek(self.prefix.as_slice());
        self.check(moved)
    }

    fn seek_last(&mut self) -> Result<()> {
        let moved = self.seek_to_end();
        self.check(moved)
    }

    fn seek(&mut self, key: &[u8]) -> Result<()> {
        self.with_internal(key, |source, internal| source.seek(internal))
    }

    fn seek_for_prev(&mut self, key: &[u8]) -> Result<()> {
        self.with_internal(key, |source, internal| source.seek_for_prev(internal))
    }

    #[inline]
    fn next(&mut self) -> Result<()> {
        let moved = self.source.next();
        self.check(moved)
    }

    #[inline]
    fn prev(&mut self) -> Result<()> {
        let moved = self.source.prev();
        self.check(moved)
    }

    #[inline]
    fn valid(&self) -> bool {
        self.inside
    }

    #[inline]
    fn key(&self) -> &[u8] {
        &self.source.key()[self.prefix.as_slice().len()..]
    }

    #[inline]
    fn kind(&self) -> Kind {
        self.source.kind()
    }

    #[inline]
    fn version(&self) -> u64 {
        self.source.version()
    }

    fn value(&mut self) -> Result<&[u8]> {
        self.source.value()
    }

    fn pinned_value(&mut self) -> Result<Value> {
        self.source.pinned_value()
    }

    fn value_len(&mut self) -> Result<usize> {
        self.source.value_len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::iter::testing::{Item, VecSource};
    use proptest::prelude::*;

    #[test]
    fn each_family_sees_its_own_keys_only() {
        let ids = [0, 1, 2, 253, 254, 255, 256, 0xFFFF, 0xFFFF_FFFE, u32::MAX];
        let user: [&[u8]; 4] = [b"", b"\0", b"k", b"\xFF\xFF"];
        // Every subset of families beside the one looked at: its neighbours are there or not.
        for skip in 0..4usize {
            let mut items = Vec::new();
            for (i, id) in ids.iter().enumerate() {
                if skip == 0 || i % 4 != skip {
                    for key in user {
                        items.push(Item::put(&[Prefix::of(*id).as_slice(), key].concat(), 1, key));
                    }
                }
            }
            for (i, id) in ids.iter().enumerate() {
                let here = skip == 0 || i % 4 != skip;
                let mut source = Prefixed::new(VecSource::new(items.clone()), Prefix::of(*id));
                source.seek_first().unwrap();
                let mut keys = Vec::new();
                while source.valid() {
                    keys.push(source.key().to_vec());
                    source.next().unwrap();
                }
                assert_eq!(keys, if here { user.to_vec() } else { vec![] }, "family {id}");
                source.seek_last().unwrap();
                let mut keys = Vec::new();
                while source.valid() {
                    keys.push(source.key().to_vec());
                    source.prev().unwrap();
                }
                keys.reverse();
                assert_eq!(keys, if here { user.to_vec() } else { vec![] }, "family {id}, backward");
                source.seek(b"a").unwrap();
                assert_eq!(source.valid(), here);
                source.seek_for_prev(b"a").unwrap();
                assert_eq!(source.valid().then(|| source.key().to_vec()), here.then(|| b"\0".to_vec()));
                source.seek(b"\xFF\xFF\0").unwrap();
                assert!(!source.valid());
            }
        }
    }

    proptest! {
        #[test]
        fn successors_are_behind_the_prefix_and_before_the_next(id in any::<u32>(), tail in any::<Vec<u8>>()) {
            let (bytes, len) = successor(Prefix::of(id));
            if id == u32::MAX {
                prop_assert_eq!(len, 0);
            } else {
                let key = [Prefix::of(id).as_slice(), &tail].concat();
                prop_assert!(key.as_slice() < &bytes[..len]);
                prop_assert!(&bytes[..len] <= Prefix::of(id + 1).as_slice());
            }
        }
    }
}
