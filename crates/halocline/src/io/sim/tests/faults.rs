//! Faults by order and by lack of room.

use super::*;
use crate::io::MapMode;
use rustix::io::Errno;

fn fault(kind: FaultKind, at: u64, forever: bool, ops: &[Op]) -> Fault {
    Fault { kind, at, forever, matching: FaultFilter { ops: ops.to_vec(), path_suffix: String::new() } }
}

fn errno<T: fmt::Debug>(result: io::Result<T>) -> Errno {
    Errno::from_io_error(&result.unwrap_err()).unwrap()
}

#[test]
fn the_nth_matching_operation_fails_once_or_from_then_on() {
    let disk = disk();
    let file = new_file(&disk, "/d/f");
    disk.inject(fault(FaultKind::Eio, 2, false, &[Op::Write]));
    let results: Vec<bool> = (0..4).map(|i| file.write_at(b"x", i).is_ok()).collect();
    assert_eq!(results, [true, false, true, true]);
    assert_eq!(disk.read_file("/d/f").unwrap(), b"x\0xx", "a failed write does nothing");

    disk.inject(fault(FaultKind::Enospc, 3, true, &[Op::Write, Op::SetLen]));
    let results: Vec<bool> = (0..5).map(|i| file.set_len(10 + i).is_ok()).collect();
    assert_eq!(results, [true, true, false, false, false]);
    assert_eq!(errno(file.write_at(b"x", 0)), Errno::NOSPC);
    file.sync().unwrap();
    assert_eq!(disk.faults_fired(), 5);
    disk.clear_faults();
    file.set_len(0).unwrap();
    assert_eq!(disk.faults_fired(), 5);
}

#[test]
fn every_kind_of_operation_can_fail() {
    let disk = disk();
    let file = new_file(&disk, "/d/f");
    file.allocate(100).unwrap();
    disk.inject(fault(FaultKind::Eio, 1, true, &[]));
    let path = Path::new("/d/f");
    let results = [
        disk.open(path, OpenMode::Read).map(drop),
        disk.open(Path::new("/d/g"), OpenMode::CreateNew).map(drop),
        disk.create_dir_all(Path::new("/e")),
        disk.list(Path::new("/d")).map(drop),
        disk.remove(path),
        disk.rename(path, Path::new("/d/g")),
        disk.sync_dir(Path::new("/d")),
        disk.lock(Path::new("/d/LOCK")).map(drop),
        file.read_at(&mut [0], 0).map(drop),
        file.write_at(&[0], 0).map(drop),
        file.set_len(5),
        file.allocate(5),
        file.sync(),
        file.map(100, MapMode::Read).map(drop),
        file.start_writeback(0, 100),
    ];
    let failed = results.len();
    for result in results {
        assert_eq!(errno(result), Errno::IO);
    }
    assert_eq!(disk.faults_fired(), failed as u64);
    assert_eq!(disk.files(), [("/d/f".into(), 100)], "nothing was done");
    assert!(!disk.exists(Path::new("/e")).unwrap());
}

#[test]
fn filters_look_at_paths() {
    let disk = disk();
    let (log, table) = (new_file(&disk, "/d/1.log"), new_file(&disk, "/d/2.table"));
    let matching = FaultFilter { ops: vec![], path_suffix: ".log".into() };
    disk.inject(Fault { kind: FaultKind::Eio, at: 1, forever: true, matching });
    table.write_all_at(b"x", 0).unwrap();
    table.sync().unwrap();
    assert_eq!(errno(log.sync()), Errno::IO);
    assert_eq!(errno(disk.rename(Path::new("/d/2.table"), Path::new("/d/3.log"))), Errno::IO);
    sync_dir(&disk);
}

#[test]
fn short_transfers_make_progress() {
    let disk = disk();
    let file = new_file(&disk, "/d/f");
    disk.inject(fault(FaultKind::Short, 1, true, &[]));
    let data: Vec<u8> = (0..10_000).map(|i| (i % 251) as u8).collect();
    let before = disk.ops();
    file.write_all_at(&data, 0).unwrap();
    assert!(disk.ops() > before + 1, "it took more than one write");
    let mut back = vec![0; 10_000];
    assert!((1..10_000).contains(&file.read_at(&mut back, 0).unwrap()));
    file.read_exact_at(&mut back, 0).unwrap();
    assert_eq!(back, data);
    file.sync().unwrap();
}

#[test]
fn after_a_failed_sync_the_pages_are_clean_but_lost() {
    let disk = disk();
    let file = new_file(&disk, "/d/f");
    file.allocate(4 * 4096).unwrap();
    file.write_all_at(&[1; 4 * 4096], 0).unwrap();
    file.sync().unwrap();
    file.write_all_at(&[2; 3 * 4096], 0).unwrap();
    disk.inject(fault(FaultKind::Eio, 1, false, &[Op::Sync]));
    assert_eq!(errno(file.sync()), Errno::IO);
    assert_eq!(disk.read_file("/d/f").unwrap()[0], 2, "reads still see what was written");

    // The second sync succeeds, and has written only what was written since: page 1 by a write of the same bytes,
    // page 2 by a store of others, page 3 for the first time.
    file.write_all_at(&[2; 4096], 4096).unwrap();
    let mapping = file.map(4 * 4096, MapMode::Shared).unwrap();
    // SAFETY: one thread, no other slice.
    unsafe { mapping.slice_mut(2 * 4096, 1).fill(3) };
    file.write_all_at(&[3], 3 * 4096).unwrap();
    file.sync().unwrap();
    for mode in ALL_MODES {
        let content = disk.crash(1, mode).read_file("/d/f").unwrap();
        let starts: Vec<[u8; 2]> = content.chunks(4096).map(|p| [p[0], p[1]]).collect();
        assert_eq!(starts, [[1, 1], [2, 2], [3, 2], [3, 1]], "{mode:?}");
    }
    // A kill does not bring it back either: it is not the process that forgot.
    let killed = disk.kill();
    assert_eq!(killed.read_file("/d/f").unwrap()[0], 2);
    killed.open(Path::new("/d/f"), OpenMode::Read).unwrap().sync().unwrap();
    assert_eq!(killed.crash(1, CrashMode::DropUnsynced).read_file("/d/f").unwrap()[0], 1);
}

#[test]
fn a_full_disk_refuses() {
    let disk = disk();
    let room = || disk.space(Path::new("/d")).unwrap();
    disk.set_capacity(10 * 4096);
    let reserved = new_file(&disk, "/d/reserved");
    assert_eq!(errno(reserved.allocate(11 * 4096)), Errno::NOSPC);
    assert_eq!(reserved.len().unwrap(), 0);
    reserved.allocate(6 * 4096).unwrap();
    assert_eq!((room().available, room().total), (4 * 4096, 10 * 4096));

    let file = new_file(&disk, "/d/f");
    assert_eq!(file.write_at(&[1; 6 * 4096], 100).unwrap(), 4 * 4096 - 100, "a short write first");
    assert_eq!(errno(file.write_at(&[1; 200], 4 * 4096)), Errno::NOSPC);
    assert_eq!(room().available, 0);
    file.write_all_at(&[2; 4 * 4096], 0).unwrap();
    reserved.write_all_at(&[3; 6 * 4096], 0).unwrap();
    let mapping = reserved.map(6 * 4096, MapMode::Shared).unwrap();
    // SAFETY: one thread, no other slice.
    unsafe { mapping.slice_mut(0, 6 * 4096).fill(4) };
    reserved.sync().unwrap();

    // A hole takes nothing until it is filled.
    file.set_len(1 << 20).unwrap();
    assert_eq!(errno(file.write_at(b"x", 1 << 19)), Errno::NOSPC);
    file.set_len(4096).unwrap();
    assert_eq!(room().available, 3 * 4096);
    // A removed file's room is free when it is closed.
    disk.remove(Path::new("/d/f")).unwrap();
    assert_eq!(room().available, 3 * 4096);
    drop(file);
    assert_eq!(room().available, 4 * 4096);
    // A capacity set lower leaves what there is.
    disk.set_capacity(4096);
    assert_eq!(room().available, 0);
    reserved.write_all_at(&[5; 6 * 4096], 0).unwrap();
}
