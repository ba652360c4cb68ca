//! A piece of memory: a mapped file, or anonymous memory behind the same interface.
//!
//! Invariant: `ptr` is valid for reads of `len` bytes (and writes, if writable) for as long as the `Mapping` lives.
//! Who writes what when is not decided here: `slice` is unsafe, and the log's and the table's modules say why the
//! bytes that they read no longer change.

use std::fmt;
use std::ops::Range;
use std::ptr::NonNull;

/// Read-only or writable and shared with the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapMode {
    /// Only read.
    Read,
    /// Stores reach the file. Not inherited by a forked child.
    Shared,
}

/// What the memory will be used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advice {
    /// Single pages here and there.
    Random,
    /// Front to back.
    Sequential,
    /// Soon.
    WillNeed,
    /// Not soon: drop it from this process. The content stays; memory of no file is left alone.
    DontNeed,
    /// Use huge pages.
    Huge,
    /// Fault all pages in for writing, now.
    PopulateWrite,
    /// Fault all pages in for reading, now.
    PopulateRead,
}

/// What keeps the memory and gives it back when dropped.
pub(crate) trait MemoryOwner: Send + Sync {
    /// Passes advice on; unsupported advice is not an error.
    fn advise(&self, advice: Advice, range: Range<usize>) -> std::io::Result<()>;
}

/// Mapped or anonymous memory, unmapped on drop.
pub struct Mapping {
    ptr: NonNull<u8>,
    len: usize,
    writable: bool,
    owner: Box<dyn MemoryOwner>,
}

// SAFETY: the memory is owned by `owner`, which is Send + Sync; access goes through unsafe methods whose callers
// order their reads after the writes they read.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Wraps memory that `owner` keeps alive.
    ///
    /// # Safety
    /// `ptr` must stay valid for reads of `len` bytes, and for writes if `writable`, until `owner` is dropped.
    pub(crate) unsafe fn from_owner(
        ptr: NonNull<u8>,
        len: usize,
        writable: bool,
        owner: Box<dyn MemoryOwner>,
    ) -> Mapping {
        Mapping { ptr, len, writable, owner }
    }

    /// Zeroed, writable memory of `len` bytes that belongs to no file.
    pub fn anonymous(len: usize) -> std::io::Result<Mapping> {
        super::real::map_anonymous(len)
    }

    /// Length in bytes.
    #[inline]
    #[expect(clippy::len_without_is_empty, reason = "a mapping is never empty")]
    pub fn len(&self) -> usize {
        self.len
    }

    /// The first byte.
    #[inline]
    pub(crate) fn as_ptr(&self) -> *mut u8 {
        self.ptr.as_ptr()
    }

    /// Whether stores are allowed.
    #[cfg(all(test, not(shuttle)))]
    pub(crate) fn is_writable(&self) -> bool {
        self.writable
    }

    /// The bytes at `[offset, offset + len)`.
    ///
    /// # Safety
    /// No one may write these bytes while the slice lives. Bounds are checked.
    #[inline]
    pub(crate) unsafe fn slice(&self, offset: usize, len: usize) -> &[u8] {
        assert!(offset <= self.len && len <= self.len - offset);
        // SAFETY: in bounds by the assertion, valid by the type's invariant, unwritten by the caller's promise.
        unsafe { std::slice::from_raw_parts(self.ptr.as_ptr().add(offset), len) }
    }

    /// The bytes at `[offset, offset + len)`, to be written.
    ///
    /// # Safety
    /// The mapping must be writable, and no one else may read or write these bytes while the slice lives.
    #[inline]
    #[expect(clippy::mut_from_ref, reason = "disjoint parts of one mapping are written by many threads")]
    pub(crate) unsafe fn slice_mut(&self, offset: usize, len: usize) -> &mut [u8] {
        assert!(self.writable && offset <= self.len && len <= self.len - offset);
        // SAFETY: in bounds by the assertion, valid by the type's invariant, unshared by the caller's promise.
        unsafe { std::slice::from_raw_parts_mut(self.ptr.as_ptr().add(offset), len) }
    }

    /// Tells the kernel how `range` will be used.
    pub fn advise(&self, advice: Advice, range: Range<usize>) -> std::io::Result<()> {
        assert!(range.start <= range.end && range.end <= self.len);
        self.owner.advise(advice, range)
    }
}

impl fmt::Debug for Mapping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mapping").field("len", &self.len).field("writable", &self.writable).finish()
    }
}
