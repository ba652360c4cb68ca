//! A value that was read: small ones are copied in place, larger ones are pinned where they lie.

use crate::io::Mapping;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// Values up to this many bytes are copied into the [`Value`] itself: cheaper than pinning their memory,
/// which costs an atomic operation on a counter shared by all threads.
pub(crate) const INLINE: usize = 118;

/// The bytes of a value, as `get` and iterators return them. It derefs to `[u8]`.
///
/// A small value is held in place; a larger one keeps the memory it lies in (a log segment, a mapped table or a
/// decoded group) alive. It may outlive the database handle. Holding many large values for long keeps their files
/// from being removed: copy with `to_vec` what you want to keep.
pub struct Value {
    repr: Repr,
}

enum Repr {
    Inline { len: u8, bytes: [u8; INLINE] },
    Mapped { owner: Arc<Mapping>, offset: usize, len: usize },
    Shared { owner: Arc<[u8]>, offset: usize, len: usize },
    Heap(Box<[u8]>),
}

impl Value {
    /// Copies `bytes`, in place if they are few.
    pub(crate) fn copy(bytes: &[u8]) -> Value {
        if bytes.len() <= INLINE {
            let mut inline = [0; INLINE];
            inline[..bytes.len()].copy_from_slice(bytes);
            Value { repr: Repr::Inline { len: bytes.len() as u8, bytes: inline } }
        } else {
            Value { repr: Repr::Heap(bytes.into()) }
        }
    }

    /// The `len` bytes at `offset` of a mapping whose bytes there do not change any more.
    pub(crate) fn mapped(owner: &Arc<Mapping>, offset: usize, len: usize) -> Value {
        if len <= INLINE {
            // SAFETY: the caller promises that these bytes are written and final.
            return Value::copy(unsafe { owner.slice(offset, len) });
        }
        assert!(offset.checked_add(len).is_some_and(|end| end <= owner.len()));
        Value { repr: Repr::Mapped { owner: Arc::clone(owner), offset, len } }
    }

    /// The `len` bytes at `offset` of a shared buffer.
    pub(crate) fn shared(owner: &Arc<[u8]>, offset: usize, len: usize) -> Value {
        if len <= INLINE {
            return Value::copy(&owner[offset..offset + len]);
        }
        assert!(offset.checked_add(len).is_some_and(|end| end <= owner.len()));
        Value { repr: Repr::Shared { owner: Arc::clone(owner), offset, len } }
    }

    /// Takes a buffer over.
    pub(crate) fn owned(bytes: Vec<u8>) -> Value {
        if bytes.len() <= INLINE { Value::copy(&bytes) } else { Value { repr: Repr::Heap(bytes.into()) } }
    }

    /// The value's bytes.
    pub fn as_slice(&self) -> &[u8] {
        match &self.repr {
            Repr::Inline { len, bytes } => &bytes[..*len as usize],
            // SAFETY: `mapped` checked the bounds, and its caller that the bytes are final.
            Repr::Mapped { owner, offset, len } => unsafe { owner.slice(*offset, *len) },
            Repr::Shared { owner, offset, len } => &owner[*offset..*offset + *len],
            Repr::Heap(bytes) => bytes,
        }
    }
}

impl Deref for Value {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        self.as_slice()
    }
}

impl AsRef<[u8]> for Value {
    fn as_ref(&self) -> &[u8] {
        self.as_slice()
    }
}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Value({} bytes)", self.len())
    }
}

impl<T: AsRef<[u8]> + ?Sized> PartialEq<T> for Value {
    fn eq(&self, other: &T) -> bool {
        self.as_slice() == other.as_ref()
    }
}

impl From<Value> for Vec<u8> {
    fn from(value: Value) -> Vec<u8> {
        match value.repr {
            Repr::Heap(bytes) => bytes.into(),
            _ => value.to_vec(),
        }
    }
}
