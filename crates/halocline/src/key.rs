//! A key that was read: most fit in place.

use std::fmt;
use std::ops::Deref;

const INLINE: usize = 46;

/// The bytes of a key, as iterators return them. It derefs to `[u8]`.
#[derive(Clone)]
pub struct Key(Repr);

#[derive(Clone)]
enum Repr {
    Inline { len: u8, bytes: [u8; INLINE] },
    Heap(Box<[u8]>),
}

impl Key {
    /// Copies `bytes`.
    #[inline]
    pub(crate) fn copy(bytes: &[u8]) -> Key {
        if bytes.len() <= INLINE {
            let mut inline = [0; INLINE];
            inline[..bytes.len()].copy_from_slice(bytes);
            Key(Repr::Inline { len: bytes.len() as u8, bytes: inline })
        } else {
            Key(Repr::Heap(bytes.into()))
        }
    }

    /// The key's bytes.
    pub fn as_slice(&self) -> &[u8] {
        match &self.0 {
            Repr::Inline { len, bytes } => &bytes[..*len as usize],
            Repr::Heap(bytes) => bytes,
        }
    }
}

impl Deref for Key {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        self.as_slice()
    }
}

impl AsRef<[u8]> for Key {
    fn as_ref(&self) -> &[u8] {
        self.as_slice()
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.escape_ascii())
    }
}

impl<T: AsRef<[u8]> + ?Sized> PartialEq<T> for Key {
    fn eq(&self, other: &T) -> bool {
        self.as_slice() == other.as_ref()
    }
}
