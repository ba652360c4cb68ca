//! Memory from `mmap`: of a file, or of no file.
//!
//! Invariant: `[ptr, ptr + len)` is mapped from construction to drop, and nothing else unmaps it.

use crate::io::mapping::MemoryOwner;
use crate::io::{Advice, MapMode, Mapping};
use rustix::io::Errno;
use rustix::mm::{Advice as Madvise, MapFlags, ProtFlags};
use std::ffi::c_void;
use std::io;
use std::ops::Range;
use std::os::fd::AsFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU8, Ordering};

struct Mapped {
    ptr: NonNull<u8>,
    len: usize,
    writable: bool,
    /// Memory of no file: dropping its pages would lose what is in them.
    anonymous: bool,
}

// SAFETY: the pointer is to memory that this value owns; advice may be given from any thread.
unsafe impl Send for Mapped {}
// SAFETY: as above.
unsafe impl Sync for Mapped {}

/// Maps the first `len` bytes of `file`, which must be there (the caller checks), `len > 0`.
pub(super) fn map_file(file: impl AsFd, len: usize, mode: MapMode) -> io::Result<Mapping> {
    let writable = mode == MapMode::Shared;
    let protection = if writable { ProtFlags::READ | ProtFlags::WRITE } else { ProtFlags::READ };
    // MAP_SHARED for reading too: a private mapping would promise nothing about later writes to the file.
    // SAFETY: a null hint lets the kernel choose a free place, so no memory in use is replaced.
    let ptr = unsafe { rustix::mm::mmap(std::ptr::null_mut(), len, protection, MapFlags::SHARED, file, 0)? };
    let mapping = own(ptr, len, writable, false)?;
    if writable {
        // A forked child must not store into the parent's files.
        // SAFETY: the range is the one just mapped; the advice changes only what fork copies.
        unsafe { rustix::mm::madvise(ptr, len, Madvise::LinuxDontFork)? };
    }
    Ok(mapping)
}

/// Zeroed memory of no file, given by the system page by page when it is first touched.
pub(crate) fn map_anonymous(len: usize) -> io::Result<Mapping> {
    if len == 0 {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "a mapping is never empty"));
    }
    let protection = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: as in `map_file`.
    let ptr =
        unsafe { rustix::mm::mmap_anonymous(std::ptr::null_mut(), len, protection, MapFlags::PRIVATE)? };
    own(ptr, len, true, true)
}

fn own(ptr: *mut c_void, len: usize, writable: bool, anonymous: bool) -> io::Result<Mapping> {
    let ptr = NonNull::new(ptr.cast::<u8>()).ok_or(io::ErrorKind::OutOfMemory)?;
    let owner = Box::new(Mapped { ptr, len, writable, anonymous });
    // SAFETY: the kernel mapped `len` bytes at `ptr` with this protection, and `owner` unmaps them when dropped.
    Ok(unsafe { Mapping::from_owner(ptr, len, writable, owner) })
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: this value owns the range, and the `Mapping` around it, through which all access goes, is gone.
        let result = unsafe { rustix::mm::munmap(self.ptr.as_ptr().cast(), self.len) };
        debug_assert!(result.is_ok(), "unmapping our own range failed: {result:?}");
    }
}

impl MemoryOwner for Mapped {
    /// Hints that the kernel refuses are forgotten. Only a failed populate is an error, as it says that the memory
    /// (or the disk) is not there; a kernel too old for it (before 5.14) has the pages touched instead.
    fn advise(&self, advice: Advice, range: Range<usize>) -> io::Result<()> {
        if range.is_empty() {
            return Ok(());
        }
        let page = rustix::param::page_size();
        let start = range.start / page * page;
        // The kernel rounds the end up itself; the last page is ours to its end.
        let len = range.end - start;
        let kernel_advice = match advice {
            Advice::Random => Madvise::Random,
            Advice::Sequential => Madvise::Sequential,
            Advice::WillNeed => Madvise::WillNeed,
            Advice::DontNeed if self.anonymous => return Ok(()),
            Advice::DontNeed => Madvise::LinuxDontNeed,
            Advice::Huge => Madvise::LinuxHugepage,
            Advice::PopulateWrite if !self.writable => return Err(io::ErrorKind::PermissionDenied.into()),
            Advice::PopulateWrite => Madvise::LinuxPopulateWrite,
            Advice::PopulateRead => Madvise::LinuxPopulateRead,
        };
        let populate = matches!(advice, Advice::PopulateWrite | Advice::PopulateRead);
        loop {
            // SAFETY: the range lies within the mapping. Of the advice above only DontNeed gives pages back, and
            // those of a shared file mapping come back with the same content.
            let result =
                unsafe { rustix::mm::madvise(self.ptr.as_ptr().add(start).cast(), len, kernel_advice) };
            match result {
                Ok(()) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(Errno::INVAL) if populate => {
                    self.touch(start..range.end, page, advice == Advice::PopulateWrite);
                    return Ok(());
                }
                Err(e) if populate => return Err(e.into()),
                Err(_) => return Ok(()),
            }
        }
    }
}

impl Mapped {
    /// Faults every page of `range` in, changing nothing.
    fn touch(&self, range: Range<usize>, page: usize, write: bool) {
        for offset in range.step_by(page) {
            // SAFETY: in bounds of the mapping, which is readable. Others may store to the page meanwhile, so the
            // access is atomic, and the write is one that leaves the byte as it is.
            let byte = unsafe { AtomicU8::from_ptr(self.ptr.as_ptr().add(offset)) };
            if write {
                byte.fetch_or(0, Ordering::Relaxed);
            } else {
                byte.load(Ordering::Relaxed);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn anonymous_memory_is_zero_and_keeps_its_content_through_advice() {
        assert!(map_anonymous(0).is_err());
        let memory = map_anonymous(3 << 20).unwrap();
        memory.advise(Advice::Huge, 0..3 << 20).unwrap();
        memory.advise(Advice::PopulateWrite, 100..2 << 20).unwrap();
        // SAFETY: no one else has this memory.
        let bytes = unsafe { memory.slice_mut(0, 3 << 20) };
        assert!(bytes.iter().all(|b| *b == 0));
        bytes[1 << 20] = 7;
        memory.advise(Advice::DontNeed, 0..3 << 20).unwrap();
        // SAFETY: nothing is written any more.
        assert_eq!(unsafe { memory.slice(1 << 20, 1) }, [7]);
    }

    #[test]
    fn touching_changes_nothing() {
        let page = rustix::param::page_size();
        let ptr = map_anonymous(4 * page).unwrap();
        // SAFETY: no one else has this memory.
        unsafe { ptr.slice_mut(0, 4 * page).fill(0xA5) };
        let owned =
            Mapped { ptr: NonNull::new(ptr.as_ptr()).unwrap(), len: 0, writable: true, anonymous: true };
        owned.touch(0..4 * page, page, true);
        owned.touch(0..4 * page, page, false);
        std::mem::forget(owned);
        // SAFETY: nothing is written any more.
        assert!(unsafe { ptr.slice(0, 4 * page) }.iter().all(|b| *b == 0xA5));
    }
}
