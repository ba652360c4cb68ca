//! The simulated disk under a model checker: its lock is a place where threads change.

use super::*;
use crate::io::{MapMode, OpenMode, Vfs};
use crate::sync::thread;

#[test]
fn what_a_thread_has_synced_is_in_every_later_crash() {
    shuttle::check_random(
        || {
            let disk = SimVfs::new(1);
            let writers = [1u8, 2].map(|value| {
                let disk = disk.clone();
                thread::spawn(move || {
                    let path = format!("/{value}");
                    let file = disk.open(Path::new(&path), OpenMode::CreateNew).unwrap();
                    file.allocate(8192).unwrap();
                    let mapping = file.map(8192, MapMode::Shared).unwrap();
                    // SAFETY: each thread has a file of its own.
                    unsafe { mapping.slice_mut(4000, 200).fill(value) };
                    file.sync().unwrap();
                    disk.sync_dir(Path::new("/")).unwrap();
                    let after = disk.crash(0, CrashMode::DropUnsynced).read_file(&path).unwrap();
                    assert_eq!(after[4000..4200], [value; 200]);
                })
            });
            for writer in writers {
                writer.join().unwrap();
            }
            assert_eq!(disk.crash(0, CrashMode::DropUnsynced).files().len(), 2);
        },
        200,
    );
}
