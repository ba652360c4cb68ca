//! Where drivers are built: a folder of the cache for each state of a driver's sources.
//!
//! ```text
//! <cache>/driver-<name>-<digest>/src/   the sources, as they travel inside this program
//! <cache>/driver-<name>-<digest>/...    what the language's tools make of them
//! <cache>/driver-<name>-<digest>.lock   held while one process builds
//! ```
//!
//! The cache folder is that of [`crate::engine::rocksdb::fetch::cache_dir`]. Only what stands in the folder under its
//! final name counts: sources are written to a temporary folder and renamed to `src`, and a builder does the same with
//! its product, so that a build that was cut off leaves nothing that looks done.

use crate::engine::Result;
use crate::engine::rocksdb::fetch::cache_dir;
use include_dir::{Dir, File};
use sha2::{Digest, Sha256};
use std::fs;
use std::path::{Path, PathBuf};

/// The folder of a driver's sources and what is built of them. It need not exist.
pub fn folder(name: &str, sources: &Dir<'_>) -> PathBuf {
    folder_in(&cache_dir(), name, sources)
}

fn folder_in(cache: &Path, name: &str, sources: &Dir<'_>) -> PathBuf {
    cache.join(format!("driver-{name}-{}", digest(sources)))
}

/// The right to build in a folder: the only one of all processes, until it is dropped.
pub struct Workshop {
    /// The folder, where the product goes.
    pub folder: PathBuf,
    /// The sources in it, written out whole.
    pub sources: PathBuf,
    // Locked as long as it is open.
    _lock: fs::File,
}

/// Waits until no other process builds in the driver's folder, and writes the sources there. The caller then looks
/// whether the product is there already: another process may have built it meanwhile.
pub fn workshop(name: &str, sources: &Dir<'_>) -> Result<Workshop> {
    workshop_in(&cache_dir(), name, sources)
}

fn workshop_in(cache: &Path, name: &str, sources: &Dir<'_>) -> Result<Workshop> {
    let folder = folder_in(cache, name, sources);
    let failed = |e: &dyn std::fmt::Display| format!("preparing {} to build in: {e}", folder.display());
    fs::create_dir_all(&folder).map_err(|e| failed(&e))?;
    let lock = fs::File::create(folder.with_extension("lock")).map_err(|e| failed(&e))?;
    lock.lock().map_err(|e| failed(&e))?;
    let src = folder.join("src");
    if !src.is_dir() {
        let temp = tempfile::tempdir_in(&folder).map_err(|e| failed(&e))?;
        let fresh = temp.path().join("src");
        fs::create_dir(&fresh).map_err(|e| failed(&e))?;
        sources.extract(&fresh).map_err(|e| failed(&e))?;
        fs::rename(&fresh, &src).map_err(|e| failed(&e))?;
    }
    Ok(Workshop { folder, sources: src, _lock: lock })
}

/// Names a state of the sources: 16 hexadecimal digits of a SHA-256 over the files' paths, lengths and bytes.
fn digest(sources: &Dir<'_>) -> String {
    fn collect<'a>(dir: &'a Dir<'a>, files: &mut Vec<&'a File<'a>>) {
        files.extend(dir.files());
        dir.dirs().for_each(|d| collect(d, files));
    }
    let mut files = Vec::new();
    collect(sources, &mut files);
    files.sort_by_key(|f| f.path());
    let mut digest = Sha256::new();
    for file in files {
        let path = file.path().to_string_lossy();
        for part in [path.as_bytes(), file.contents()] {
            digest.update((part.len() as u64).to_le_bytes());
            digest.update(part);
        }
    }
    digest.finalize().iter().take(8).map(|b| format!("{b:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use include_dir::DirEntry;
    use std::sync::atomic::{AtomicU32, Ordering};

    static SUB: [DirEntry<'_>; 1] = [DirEntry::File(File::new("sub/b.txt", b"two"))];
    static ONE: [DirEntry<'_>; 2] =
        [DirEntry::File(File::new("a.txt", b"one")), DirEntry::Dir(Dir::new("sub", &SUB))];
    static OTHER: [DirEntry<'_>; 2] =
        [DirEntry::File(File::new("a.txt", b"One")), DirEntry::Dir(Dir::new("sub", &SUB))];

    #[test]
    fn sources_are_written_whole_and_each_state_has_its_folder() {
        let cache = tempfile::tempdir().unwrap();
        let one = workshop_in(cache.path(), "x", &Dir::new("", &ONE)).unwrap();
        assert_eq!(fs::read(one.sources.join("a.txt")).unwrap(), b"one");
        assert_eq!(fs::read(one.sources.join("sub/b.txt")).unwrap(), b"two");
        assert_eq!(one.folder, folder_in(cache.path(), "x", &Dir::new("", &ONE)));
        let other = workshop_in(cache.path(), "x", &Dir::new("", &OTHER)).unwrap();
        assert_ne!(one.folder, other.folder);
        assert_eq!(fs::read(other.sources.join("a.txt")).unwrap(), b"One");
        let left: Vec<_> = fs::read_dir(&one.folder).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!(left, ["src"]);
    }

    #[test]
    fn only_one_builds_at_a_time() {
        let cache = tempfile::tempdir().unwrap();
        let inside = AtomicU32::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..20 {
                        let _alone = workshop_in(cache.path(), "x", &Dir::new("", &ONE)).unwrap();
                        assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
                        std::thread::yield_now();
                        inside.fetch_sub(1, Ordering::SeqCst);
                    }
                });
            }
        });
    }
}
