//! What a crash keeps of contents, lengths and names.

use super::*;

#[test]
fn synced_content_survives_every_crash() {
    let disk = disk();
    let file = new_file(&disk, "/d/f");
    let data: Vec<u8> = (0..20_000).map(|i| (i % 255 + 1) as u8).collect();
    file.write_all_at(&data, 0).unwrap();
    file.sync().unwrap();
    for mode in ALL_MODES {
        for seed in 0..50 {
            assert_eq!(disk.crash(seed, mode).read_file("/d/f").unwrap(), data);
        }
    }
}

#[test]
fn unsynced_content_is_dropped() {
    let disk = disk();
    let file = new_file(&disk, "/d/f");
    file.write_all_at(b"old", 0).unwrap();
    file.sync().unwrap();
    file.write_all_at(b"new and longer", 0).unwrap();
    assert_eq!(disk.crash(0, CrashMode::DropUnsynced).read_file("/d/f").unwrap(), b"old");
    assert_eq!(disk.read_file("/d/f").unwrap(), b"new and longer", "a crash leaves the disk it is made of");
    file.set_len(1).unwrap();
    assert_eq!(disk.crash(0, CrashMode::DropUnsynced).read_file("/d/f").unwrap(), b"old");
}

/// The versions of the pieces of a file of 1s over which 2s were written, as a string of digits.
fn pieces(disk: &SimVfs, unit: usize) -> String {
    let content = disk.read_file("/d/f").unwrap();
    let digit = |piece: &[u8]| {
        assert!(piece.iter().all(|b| *b == piece[0]), "a piece of {unit} bytes is torn");
        char::from(b'0' + piece[0])
    };
    content.chunks(unit).map(digit).collect()
}

#[test]
fn unsynced_pages_survive_one_by_one() {
    let disk = disk();
    let file = new_file(&disk, "/d/f");
    file.write_all_at(&[1; 3 * 4096], 0).unwrap();
    file.sync().unwrap();
    file.write_all_at(&[2; 3 * 4096], 0).unwrap();
    let seen = outcomes(&disk, CrashMode::RandomPieces, |disk| pieces(&disk, 4096));
    assert_eq!(seen.len(), 8, "every mix in whatever order: {seen:?}");
    let torn = outcomes(&disk, CrashMode::Torn, |disk| pieces(&disk, 512));
    assert!(torn.keys().any(|p| p[..8].contains('1') && p[..8].contains('2')), "a page is torn");
    assert!(torn.contains_key(&"1".repeat(24)) || torn.contains_key(&"2".repeat(24)) || torn.len() > 200);
}

#[test]
fn lengths_may_survive_or_not() {
    let disk = disk();
    let file = new_file(&disk, "/d/f");
    file.write_all_at(&[1; 100], 0).unwrap();
    file.sync().unwrap();
    file.write_all_at(&[2; 20_000], 100).unwrap();
    let lens = outcomes(&disk, CrashMode::RandomPieces, |disk| disk.files()[0].1);
    assert!(lens.contains_key(&100) && lens.contains_key(&20_100) && lens.len() > 3, "{lens:?}");
    for seed in 0..100 {
        let content = disk.crash(seed, CrashMode::Torn).read_file("/d/f").unwrap();
        assert!(content[..100].iter().all(|b| *b == 1), "seed {seed}");
        assert!(content[100..].iter().all(|b| *b == 0 || *b == 2), "seed {seed}");
    }
    // Cut, and grown again: the old content past the cut is gone from what is read, and after a sync for good.
    file.sync().unwrap();
    file.set_len(50).unwrap();
    let lens = outcomes(&disk, CrashMode::Torn, |disk| disk.files()[0].1);
    assert_eq!(lens.keys().copied().collect::<Vec<_>>(), [50, 20_100]);
    file.set_len(20_100).unwrap();
    file.sync().unwrap();
    let content = disk.crash(0, CrashMode::Torn).read_file("/d/f").unwrap();
    assert!(content[..50].iter().all(|b| *b == 1) && content[50..].iter().all(|b| *b == 0));
}

#[test]
fn what_was_written_back_early_may_be_found_in_place_of_the_newest() {
    let disk = disk();
    let file = new_file(&disk, "/d/f");
    file.write_all_at(&[1; 4096], 0).unwrap();
    file.sync().unwrap();
    file.write_all_at(&[2; 4096], 0).unwrap();
    file.start_writeback(0, 4096).unwrap();
    file.write_all_at(&[3; 4096], 0).unwrap();
    let seen = outcomes(&disk, CrashMode::RandomPieces, |disk| pieces(&disk, 4096));
    assert_eq!(seen.keys().map(String::as_str).collect::<Vec<_>>(), ["1", "2", "3"]);
    assert_eq!(pieces(&disk.crash(0, CrashMode::DropUnsynced), 4096), "1");
    file.sync().unwrap();
    let seen = outcomes(&disk, CrashMode::Torn, |disk| pieces(&disk, 512));
    assert_eq!(seen.keys().map(String::as_str).collect::<Vec<_>>(), ["33333333"]);
    // By the kernel's own will, half of the dirty pages.
    file.write_all_at(&[4; 64 * 4096], 0).unwrap();
    file.sync().unwrap();
    file.write_all_at(&[5; 64 * 4096], 0).unwrap();
    disk.write_back(1);
    file.write_all_at(&[6; 64 * 4096], 0).unwrap();
    let seen = pieces(&disk.crash(1, CrashMode::RandomPieces), 4096);
    assert!(seen.contains('5') && seen.contains(['4', '6']), "{seen}");
}

#[test]
fn names_are_durable_after_a_sync_of_their_directory() {
    let disk = disk();
    disk.create_dir_all(Path::new("/d/sub")).unwrap();
    let file = disk.open(Path::new("/d/f"), OpenMode::CreateNew).unwrap();
    disk.open(Path::new("/d/sub/g"), OpenMode::CreateNew).unwrap();
    file.write_all_at(b"x", 0).unwrap();
    file.sync().unwrap();
    assert_eq!(disk.crash(0, CrashMode::DropUnsynced).files(), [], "syncing a file does not sync its name");
    let seen = outcomes(&disk, CrashMode::Torn, |disk| disk.files().len());
    assert_eq!(seen.keys().copied().collect::<Vec<_>>(), [0, 1, 2]);
    sync_dir(&disk);
    assert_eq!(disk.crash(0, CrashMode::DropUnsynced).files(), [("/d/f".into(), 1)], "only that directory");

    drop(file);
    disk.remove(Path::new("/d/f")).unwrap();
    assert_eq!(disk.files().len(), 1);
    let kept = disk.crash(0, CrashMode::DropUnsynced);
    assert_eq!(kept.read_file("/d/f").unwrap(), b"x", "a removal that was not synced is undone");
    let seen = outcomes(&disk, CrashMode::RandomPieces, |disk| disk.exists(Path::new("/d/f")).unwrap());
    assert_eq!(seen.len(), 2);
    sync_dir(&disk);
    for mode in ALL_MODES {
        assert!(!disk.crash(3, mode).exists(Path::new("/d/f")).unwrap());
    }
    assert!(disk.crash(0, CrashMode::DropUnsynced).exists(Path::new("/d/sub")).unwrap(), "directories stay");
}

#[test]
fn a_rename_happens_whole_or_not_at_all() {
    let disk = disk();
    for (name, content) in [("/d/CURRENT", b"old"), ("/d/tmp", b"new")] {
        let file = new_file(&disk, name);
        file.write_all_at(content, 0).unwrap();
        file.sync().unwrap();
    }
    rename(&disk, "/d/tmp", "/d/CURRENT");
    let state = |disk: SimVfs| (disk.read_file("/d/CURRENT").unwrap(), disk.read_file("/d/tmp").ok());
    let seen = outcomes(&disk, CrashMode::Torn, state);
    let not_yet = (b"old".to_vec(), Some(b"new".to_vec()));
    let done = (b"new".to_vec(), None);
    assert_eq!(seen.keys().collect::<Vec<_>>(), [&done, &not_yet]);
    assert_eq!(state(disk.crash(0, CrashMode::DropUnsynced)), not_yet);
    sync_dir(&disk);
    assert_eq!(state(disk.crash(0, CrashMode::DropUnsynced)), done);
}

#[test]
fn a_name_may_reach_the_disk_before_the_content() {
    let disk = disk();
    new_file(&disk, "/d/CURRENT").write_all_at(b"old", 0).unwrap();
    disk.open(Path::new("/d/CURRENT"), OpenMode::ReadWrite).unwrap().sync().unwrap();
    let file = disk.open(Path::new("/d/tmp"), OpenMode::CreateNew).unwrap();
    file.write_all_at(b"new", 0).unwrap();
    rename(&disk, "/d/tmp", "/d/CURRENT");
    sync_dir(&disk);
    // The classic mistake, renaming without a sync: an empty file in the place of the old one.
    assert_eq!(disk.crash(0, CrashMode::DropUnsynced).read_file("/d/CURRENT").unwrap(), b"");
}

#[test]
fn crashes_nest() {
    let disk = disk();
    let file = new_file(&disk, "/d/f");
    file.write_all_at(&[1; 8192], 0).unwrap();
    file.sync().unwrap();
    let second = disk.crash(1, CrashMode::Torn);
    let file = second.open(Path::new("/d/f"), OpenMode::ReadWrite).unwrap();
    file.write_all_at(&[2; 4096], 0).unwrap();
    assert_eq!(pieces(&second.crash(2, CrashMode::DropUnsynced), 4096), "11");
    file.sync().unwrap();
    assert_eq!(pieces(&second.crash(2, CrashMode::Torn), 4096), "21");
    assert_eq!(pieces(&disk.crash(2, CrashMode::Torn), 4096), "11", "the first disk is another one");
}
