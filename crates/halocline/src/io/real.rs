//! The operating system's file system, clock and randomness (Linux).
//!
//! `file` is an open file, `memory` is what `mmap` gives, `lock` holds directories. [`RealVfs`] has no state of its
//! own: copies of it are the same file system, and all of it may be used by many threads.
//!
//! Every descriptor is `O_CLOEXEC`, every file is opened `O_NOFOLLOW` and made with mode 0600, every directory 0700.

mod file;
mod lock;
mod memory;

pub(crate) use memory::map_anonymous;

use self::file::RealFile;
use super::{DirEntry, File, Lock, OpenMode, Space, Vfs};
use rustix::fs::{Mode, OFlags};
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::{Instant, SystemTime};

/// The operating system's file system.
#[derive(Debug, Default, Clone)]
pub struct RealVfs;

#[expect(clippy::disallowed_methods, clippy::disallowed_types, reason = "where the clock and chance come in")]
impl Vfs for RealVfs {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        let flags = match mode {
            OpenMode::Read => OFlags::RDONLY,
            OpenMode::ReadWrite => OFlags::RDWR,
            OpenMode::CreateNew => OFlags::RDWR | OFlags::CREATE | OFlags::EXCL,
        };
        let fd = rustix::fs::open(path, flags | OFlags::CLOEXEC | OFlags::NOFOLLOW, Mode::RUSR | Mode::WUSR)?;
        Ok(Arc::new(RealFile::new(fd.into())))
    }

    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        let mut missing = Vec::new();
        let mut at = path;
        // `stat`, not `lstat`: a database may well live behind a link to another disk.
        while !at.as_os_str().is_empty() {
            match std::fs::metadata(at) {
                Ok(meta) if meta.is_dir() => break,
                Ok(_) => return Err(io::ErrorKind::NotADirectory.into()),
                Err(e) if e.kind() == io::ErrorKind::NotFound => missing.push(at),
                Err(e) => return Err(e),
            }
            at = at.parent().unwrap_or(Path::new(""));
        }
        for dir in missing.into_iter().rev() {
            match rustix::fs::mkdir(dir, Mode::RWXU) {
                // Someone else was faster; whether it is a directory shows when it is used.
                Ok(()) | Err(rustix::io::Errno::EXIST) => {}
                Err(e) => return Err(e.into()),
            }
            self.sync_dir(&parent_of(dir))?;
        }
        Ok(())
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<DirEntry>> {
        let mut entries = Vec::new();
        for entry in std::fs::read_dir(dir)? {
            let entry = entry?;
            // A name that is not UTF-8 is none of ours.
            let Ok(name) = entry.file_name().into_string() else { continue };
            // `metadata` here does not follow links, so a link is not a file.
            match entry.metadata() {
                Ok(meta) if meta.is_file() => entries.push(DirEntry { name, len: meta.len() }),
                Ok(_) => {}
                // Removed since it was listed.
                Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                Err(e) => return Err(e),
            }
        }
        Ok(entries)
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        path.try_exists()
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        std::fs::remove_file(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        std::fs::rename(from, to)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = rustix::fs::open(dir, flags, Mode::empty())?;
        // Not repeated after an error, not even EINTR: a second sync that succeeds proves nothing about the first.
        Ok(rustix::fs::fsync(fd)?)
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn Lock>> {
        Ok(Box::new(lock::DirLock::take(path)?))
    }

    fn space(&self, dir: &Path) -> io::Result<Space> {
        let stat = rustix::fs::statvfs(dir)?;
        Ok(Space {
            available: stat.f_bavail.saturating_mul(stat.f_frsize),
            total: stat.f_blocks.saturating_mul(stat.f_frsize),
        })
    }

    /// True for the file systems known to give a preallocated block its place for good, and to keep mappings and
    /// reads coherent; an unknown one is answered `false`, which costs speed and nothing else.
    ///
    /// overlayfs, which containers have, counts as true although it does not say what lies below it: a file that is
    /// created there is in the upper layer from the start, `mmap`, `fallocate` and `fdatasync` are passed on to the
    /// upper file system's own inode, so there is one page cache; and an upper layer is ext4 or xfs nearly always.
    /// Should it be a copy-on-write one after all, mappings are still coherent and synced, only a full disk would
    /// end the process (SIGBUS) instead of failing a write.
    fn supports_mapped_writes(&self, dir: &Path) -> io::Result<bool> {
        const EXT2_3_4: u32 = 0xEF53;
        const XFS: u32 = 0x5846_5342;
        const F2FS: u32 = 0xF2F5_2010;
        const TMPFS: u32 = 0x0102_1994;
        const OVERLAYFS: u32 = 0x794C_7630;
        // The magic numbers are 32 bits wide, the field is as wide as the platform likes, and signed on some.
        let magic = rustix::fs::statfs(dir)?.f_type as u32;
        Ok(matches!(magic, EXT2_3_4 | XFS | F2FS | TMPFS | OVERLAYFS))
    }

    /// The kernel's boot id. Where it cannot be read, a random number each time: then no page cache is trusted.
    fn boot_id(&self) -> io::Result<[u8; 16]> {
        let known = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok();
        if let Some(id) = known.as_deref().and_then(parse_uuid) {
            return Ok(id);
        }
        let mut id = [0; 16];
        fill_random(&mut id)?;
        Ok(id)
    }

    fn now_ms(&self) -> u64 {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        since.map_or(0, |d| d.as_millis() as u64)
    }

    fn monotonic_ns(&self) -> u64 {
        static START: OnceLock<Instant> = OnceLock::new();
        START.get_or_init(Instant::now).elapsed().as_nanos() as u64
    }

    fn random(&self) -> u64 {
        let mut bytes = [0; 8];
        if fill_random(&mut bytes).is_err() {
            // No getrandom(2) (a seccomp filter, say): the seed of std's hash maps, which has its own ways.
            use std::hash::{BuildHasher, RandomState};
            return RandomState::new().hash_one(self.monotonic_ns());
        }
        u64::from_ne_bytes(bytes)
    }
}

/// The directory that holds `path`'s name.
fn parent_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(p) if p.as_os_str() != OsStr::new("") => p.to_path_buf(),
        _ => PathBuf::from("."),
    }
}

fn fill_random(buf: &mut [u8]) -> io::Result<()> {
    let mut filled = 0;
    while filled < buf.len() {
        match rustix::rand::getrandom(&mut buf[filled..], rustix::rand::GetRandomFlags::empty()) {
            Ok(n) => filled += n,
            Err(rustix::io::Errno::INTR) => {}
            Err(e) => return Err(e.into()),
        }
    }
    Ok(())
}

/// The 16 bytes of `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx`.
fn parse_uuid(text: &str) -> Option<[u8; 16]> {
    let mut digits = text.trim_end().bytes().filter(|b| *b != b'-').map(|b| char::from(b).to_digit(16));
    let mut id = [0; 16];
    for byte in &mut id {
        let (high, low) = (digits.next()??, digits.next()??);
        *byte = (high << 4 | low) as u8;
    }
    digits.next().is_none().then_some(id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn mode_of(path: &Path) -> u32 {
        std::fs::metadata(path).unwrap().permissions().mode() & 0o7777
    }

    #[test]
    fn files_and_directories_are_the_owners_alone() {
        let dir = tempfile::tempdir().unwrap();
        RealVfs.create_dir_all(&dir.path().join("a/b")).unwrap();
        RealVfs.open(&dir.path().join("a/f"), OpenMode::CreateNew).unwrap();
        let _held = RealVfs.lock(&dir.path().join("a/LOCK")).unwrap();
        assert_eq!(mode_of(&dir.path().join("a")), 0o700);
        assert_eq!(mode_of(&dir.path().join("a/b")), 0o700);
        assert_eq!(mode_of(&dir.path().join("a/f")), 0o600);
        assert_eq!(mode_of(&dir.path().join("a/LOCK")), 0o600);
    }

    #[test]
    fn links_are_not_followed_to_files_and_not_listed() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name| dir.path().join(name);
        std::fs::write(path("file"), "x").unwrap();
        symlink("file", path("link")).unwrap();
        symlink("nowhere", path("dangling")).unwrap();
        std::fs::create_dir(path("folder")).unwrap();
        assert!(RealVfs.open(&path("link"), OpenMode::Read).is_err());
        assert!(RealVfs.open(&path("link"), OpenMode::ReadWrite).is_err());
        assert!(RealVfs.open(&path("dangling"), OpenMode::CreateNew).is_err());
        assert!(RealVfs.lock(&path("dangling")).is_err());
        assert!(!path("nowhere").exists());
        assert_eq!(RealVfs.list(dir.path()).unwrap(), [DirEntry { name: "file".into(), len: 1 }]);
        // A directory may well be a link.
        symlink("folder", path("other")).unwrap();
        RealVfs.create_dir_all(&path("other/deeper")).unwrap();
        assert!(path("folder/deeper").is_dir());
    }

    #[test]
    fn the_boot_id_is_the_kernels() {
        let id = RealVfs.boot_id().unwrap();
        let hex: String = id.iter().map(|b| format!("{b:02x}")).collect();
        if let Ok(text) = std::fs::read_to_string("/proc/sys/kernel/random/boot_id") {
            assert_eq!(text.trim().replace('-', ""), hex);
        }
        assert_eq!(parse_uuid("00000000-0000-0000-0000-00000000000"), None);
        assert_eq!(parse_uuid("00000000-0000-0000-0000-0000000000zz"), None);
        assert_eq!(parse_uuid("00000000-0000-0000-0000-000000000a0b00"), None);
        assert_eq!(parse_uuid("01000000-0000-0000-0000-0000000000fE\n").unwrap()[15], 0xFE);
    }

    #[test]
    fn file_systems_are_told_apart() {
        // The kernel's own file systems overwrite nothing in place.
        assert!(!RealVfs.supports_mapped_writes(Path::new("/proc")).unwrap());
        if rustix::fs::statfs("/dev/shm").is_ok_and(|stat| stat.f_type as u32 == 0x0102_1994) {
            assert!(RealVfs.supports_mapped_writes(Path::new("/dev/shm")).unwrap());
        }
        assert!(RealVfs.supports_mapped_writes(Path::new("/nonexistent")).is_err());
    }
}
