//! An open file of the operating system.

use super::memory::map_file;
use crate::io::{File, MapMode, Mapping};
use rustix::fs::FallocateFlags;
use rustix::io::Errno;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;

/// A descriptor. It has no position that is used, so all methods may run at the same time.
#[derive(Debug)]
pub(super) struct RealFile {
    file: std::fs::File,
}

impl RealFile {
    pub(super) fn new(file: std::fs::File) -> RealFile {
        RealFile { file }
    }

    /// What `allocate` does where the file system has no `fallocate`: every block that is absent or all zeros is
    /// written with zeros. Not safe beside another writer of the same bytes, as no one has yet when a file is made.
    fn allocate_by_writing(&self, len: u64) -> io::Result<()> {
        const BLOCK: usize = 4096;
        let zeros = [0; BLOCK];
        let mut block = [0; BLOCK];
        let old_len = self.len()?;
        let mut offset = 0;
        while offset < len {
            let want = usize::try_from(len - offset).unwrap_or(BLOCK).min(BLOCK);
            let have = usize::try_from(old_len.saturating_sub(offset)).unwrap_or(BLOCK).min(want);
            self.read_exact_at(&mut block[..have], offset)?;
            if block[..have].iter().all(|b| *b == 0) {
                self.write_all_at(&zeros[..want], offset)?;
            } else {
                // Data is there, so the block is; only the rest of it may lie past the end.
                self.write_all_at(&zeros[have..want], offset + have as u64)?;
            }
            offset += want as u64;
        }
        Ok(())
    }
}

impl File for RealFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        self.file.read_at(buf, offset)
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<usize> {
        self.file.write_at(buf, offset)
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }

    fn allocate(&self, len: u64) -> io::Result<()> {
        if len == 0 {
            return Ok(());
        }
        loop {
            match rustix::fs::fallocate(&self.file, FallocateFlags::empty(), 0, len) {
                Ok(()) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(Errno::OPNOTSUPP | Errno::NOSYS) => return self.allocate_by_writing(len),
                Err(e) => return Err(e.into()),
            }
        }
    }

    /// `fdatasync`: it leaves out the times, but not the length, nor pages that were dirtied through a mapping.
    /// Never repeated here: after a failure the kernel marks the pages clean, and a second call would succeed.
    fn sync(&self) -> io::Result<()> {
        Ok(rustix::fs::fdatasync(&self.file)?)
    }

    fn map(&self, len: usize, mode: MapMode) -> io::Result<Mapping> {
        if len == 0 || len as u64 > self.len()? {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "a mapping must lie within its file"));
        }
        map_file(&self.file, len, mode)
    }

    /// `sync_file_range(SYNC_FILE_RANGE_WRITE)`: begins, waits for nothing, promises nothing. It may block while
    /// the device's queue is full.
    fn start_writeback(&self, offset: u64, len: u64) -> io::Result<()> {
        use std::ffi::{c_int, c_uint};
        const SYNC_FILE_RANGE_WRITE: c_uint = 2;
        unsafe extern "C" {
            // rustix does not have it; the C library that std links on Linux does, with 64-bit offsets.
            fn sync_file_range(fd: c_int, offset: i64, bytes: i64, flags: c_uint) -> c_int;
        }
        let (Ok(offset), Ok(len)) = (i64::try_from(offset), i64::try_from(len)) else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        if len == 0 {
            // To the kernel 0 means "to the end".
            return Ok(());
        }
        // SAFETY: the descriptor is open for as long as `self`; the call touches no memory of ours.
        let rc = unsafe { sync_file_range(self.file.as_raw_fd(), offset, len, SYNC_FILE_RANGE_WRITE) };
        if rc == 0 {
            return Ok(());
        }
        let error = io::Error::last_os_error();
        match Errno::from_io_error(&error) {
            Some(Errno::NOSYS | Errno::OPNOTSUPP | Errno::INVAL | Errno::SPIPE | Errno::INTR) => Ok(()),
            _ => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The slow way of allocating keeps what is there and makes the length right.
    #[test]
    fn allocating_by_writing_keeps_content() {
        let file = RealFile::new(tempfile::tempfile().unwrap());
        file.write_all_at(b"head", 0).unwrap();
        file.write_all_at(b"tail", 9000).unwrap();
        file.allocate_by_writing(20_000).unwrap();
        assert_eq!(file.len().unwrap(), 20_000);
        let mut all = vec![1; 20_000];
        file.read_exact_at(&mut all, 0).unwrap();
        assert_eq!(&all[..4], b"head");
        assert_eq!(&all[9000..9004], b"tail");
        assert_eq!(all.iter().filter(|b| **b != 0).count(), 8);
        let blocks = std::os::unix::fs::MetadataExt::blocks(&file.file.metadata().unwrap());
        assert!(blocks * 512 >= 20_000, "{blocks} blocks");
        file.allocate_by_writing(10).unwrap();
        assert_eq!(file.len().unwrap(), 20_000);
    }
}
