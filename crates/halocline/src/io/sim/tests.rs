//! What only the simulation has: crashes, kills, faults, and the knobs. What every file system does is tested with
//! the traits.

mod crash;
mod faults;
mod mapped;
mod model;

use super::*;
use crate::io::{File, OpenMode, Vfs};

const ALL_MODES: [CrashMode; 3] = [CrashMode::DropUnsynced, CrashMode::RandomPieces, CrashMode::Torn];

/// A disk with the directory `/d`.
fn disk() -> SimVfs {
    let disk = SimVfs::new(42);
    disk.create_dir_all(Path::new("/d")).unwrap();
    disk
}

/// A new file whose name is durable.
fn new_file(disk: &SimVfs, path: &str) -> Arc<dyn File> {
    let file = disk.open(Path::new(path), OpenMode::CreateNew).unwrap();
    disk.sync_dir(Path::new("/d")).unwrap();
    file
}

fn sync_dir(disk: &SimVfs) {
    disk.sync_dir(Path::new("/d")).unwrap();
}

fn rename(disk: &SimVfs, from: &str, to: &str) {
    disk.rename(Path::new(from), Path::new(to)).unwrap();
}

/// How often each result of `of` comes up among crashes with many seeds.
fn outcomes<T: Ord>(
    disk: &SimVfs,
    mode: CrashMode,
    of: impl Fn(SimVfs) -> T,
) -> std::collections::BTreeMap<T, u32> {
    let mut count = std::collections::BTreeMap::new();
    for seed in 0..300 {
        *count.entry(of(disk.crash(seed, mode))).or_default() += 1;
    }
    count
}

#[test]
fn the_same_seed_gives_the_same_disk() {
    let run = || {
        let disk = disk();
        let file = new_file(&disk, "/d/a");
        for i in 0..50u64 {
            file.write_all_at(&disk.random().to_le_bytes(), i * 700).unwrap();
            if i == 20 {
                file.sync().unwrap();
            }
        }
        disk.write_back(3);
        new_file(&disk, "/d/b");
        rename(&disk, "/d/b", "/d/c");
        let crashed = disk.crash(5, CrashMode::Torn);
        (crashed.files(), crashed.read_file("/d/a").unwrap(), crashed.boot_id().unwrap(), crashed.random())
    };
    assert_eq!(run(), run());
    assert_ne!(SimVfs::new(1).random(), SimVfs::new(2).random());
}

#[test]
fn clocks_and_knobs() {
    let disk = disk();
    disk.set_time_ms(5_000);
    let before = disk.monotonic_ns();
    disk.advance_ms(7);
    assert_eq!(disk.now_ms(), 5_007);
    assert!(disk.monotonic_ns() >= before + 7_000_000);
    disk.set_time_ms(1);
    assert_eq!(disk.now_ms(), 1);
    assert!(disk.monotonic_ns() >= before + 7_000_000, "the monotonic clock does not go back");
    assert!(disk.supports_mapped_writes(Path::new("/d")).unwrap());
    disk.set_mapped_writes(false);
    assert!(!disk.kill().supports_mapped_writes(Path::new("/d")).unwrap());
}

#[test]
fn raw_files_are_durable() {
    let disk = disk();
    disk.write_file("/e/new", b"raw").unwrap();
    disk.open(Path::new("/d/f"), OpenMode::CreateNew).unwrap().write_all_at(b"one longer", 0).unwrap();
    disk.write_file("/d/f", b"other").unwrap();
    assert_eq!(disk.files(), [("/d/f".into(), 5), ("/e/new".into(), 3)]);
    let after = disk.crash(1, CrashMode::DropUnsynced);
    assert_eq!(after.files(), disk.files());
    assert_eq!(after.read_file("/d/f").unwrap(), b"other");
    assert_eq!(after.read_file("/e/new").unwrap(), b"raw");
    assert_eq!(disk.read_file("/d/none").unwrap_err().kind(), io::ErrorKind::NotFound);
}

#[test]
fn observers_see_every_change_before_it_happens() {
    let disk = disk();
    let seen = Arc::new(std::sync::Mutex::new(Vec::new()));
    let log = Arc::clone(&seen);
    disk.set_observer(Some(Arc::new(move |disk: &SimVfs, op| {
        // No lock is held: an image can be made, and it is of the moment before the operation.
        log.lock().unwrap().push((op, disk.kill().files().len(), disk.crash(op, CrashMode::Torn).ops()));
    })));
    let first = disk.ops();
    let file = disk.open(Path::new("/d/f"), OpenMode::CreateNew).unwrap();
    file.write_all_at(b"abc", 0).unwrap();
    file.read_exact_at(&mut [0; 3], 0).unwrap();
    file.sync().unwrap();
    disk.remove(Path::new("/d/f")).unwrap();
    sync_dir(&disk);
    assert_eq!(disk.ops(), first + 6);
    let ops: Vec<_> =
        seen.lock().unwrap().iter().map(|(op, files, ops)| (op - first, *files, *ops)).collect();
    assert_eq!(ops, [(0, 0, 0), (1, 1, 0), (3, 1, 0), (4, 1, 0), (5, 0, 0)], "all but the read");
    disk.set_observer(None);
    sync_dir(&disk);
    assert_eq!(seen.lock().unwrap().len(), 5);
}

#[test]
fn a_kill_keeps_everything_and_releases_the_lock() {
    let disk = disk();
    let _lock = disk.lock(Path::new("/d/LOCK")).unwrap();
    let file = disk.open(Path::new("/d/f"), OpenMode::CreateNew).unwrap();
    file.write_all_at(b"unsynced", 0).unwrap();
    let killed = disk.kill();
    file.write_all_at(b"LATER ON", 0).unwrap();
    disk.open(Path::new("/d/g"), OpenMode::CreateNew).unwrap();
    assert_eq!(killed.read_file("/d/f").unwrap(), b"unsynced");
    assert!(!killed.exists(Path::new("/d/g")).unwrap());
    assert_eq!(killed.boot_id().unwrap(), disk.boot_id().unwrap());
    killed.lock(Path::new("/d/LOCK")).unwrap();
    assert_eq!(disk.lock(Path::new("/d/LOCK")).unwrap_err().kind(), io::ErrorKind::WouldBlock);
    // What was not synced is as unsafe as it was.
    assert_eq!(killed.crash(0, CrashMode::DropUnsynced).files(), []);
    killed.open(Path::new("/d/f"), OpenMode::ReadWrite).unwrap().sync().unwrap();
    sync_dir(&killed);
    let after = killed.crash(0, CrashMode::DropUnsynced);
    assert_eq!(after.read_file("/d/f").unwrap(), b"unsynced");
    assert_ne!(after.boot_id().unwrap(), disk.boot_id().unwrap());
    assert_ne!(after.boot_id().unwrap(), disk.crash(1, CrashMode::DropUnsynced).boot_id().unwrap());
}

#[test]
fn many_threads_may_use_a_disk() {
    let disk = disk();
    disk.set_observer(Some(Arc::new(|disk: &SimVfs, op| drop(disk.crash(op, CrashMode::Torn)))));
    std::thread::scope(|scope| {
        for thread in 0..4u8 {
            let disk = &disk;
            scope.spawn(move || {
                let file = new_file(disk, &format!("/d/{thread}"));
                file.allocate(1 << 20).unwrap();
                let mapping = file.map(1 << 20, crate::io::MapMode::Shared).unwrap();
                for i in 0..20 {
                    // SAFETY: each thread has a file of its own.
                    unsafe { mapping.slice_mut(i * 5_000, 100).fill(thread + 1) };
                    file.sync().unwrap();
                }
            });
        }
    });
    disk.set_observer(None);
    let after = disk.crash(9, CrashMode::DropUnsynced);
    for thread in 0..4u8 {
        let content = after.read_file(format!("/d/{thread}")).unwrap();
        assert_eq!(content.iter().filter(|b| **b == thread + 1).count(), 2_000);
    }
}
