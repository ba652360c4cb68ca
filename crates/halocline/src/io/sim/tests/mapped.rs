//! Files with shared mappings in crashes.

use super::*;
use crate::io::{MapMode, Mapping};

const LEN: usize = 40_000;

fn mapped_file(disk: &SimVfs) -> (Arc<dyn File>, Mapping) {
    let file = new_file(disk, "/d/f");
    file.allocate(LEN as u64).unwrap();
    file.sync().unwrap();
    let mapping = file.map(LEN, MapMode::Shared).unwrap();
    (file, mapping)
}

fn store(mapping: &Mapping, offset: usize, bytes: &[u8]) {
    // SAFETY: these tests have one thread and hold no slice of the mapping.
    unsafe { mapping.slice_mut(offset, bytes.len()).copy_from_slice(bytes) };
}

#[test]
fn stores_are_durable_by_a_sync_only() {
    let disk = disk();
    let (file, mapping) = mapped_file(&disk);
    store(&mapping, 10_000, b"synced");
    file.sync().unwrap();
    store(&mapping, 20_000, b"not");
    let killed = disk.kill();
    let after = disk.crash(0, CrashMode::DropUnsynced);
    store(&mapping, 30_000, b"later");
    for image in [&killed, &after] {
        let content = image.read_file("/d/f").unwrap();
        assert_eq!(content.len(), LEN);
        assert_eq!(&content[10_000..10_006], b"synced");
        assert_eq!(content[30_000], 0, "an image shares no memory with the disk it was made of");
    }
    assert_eq!(&killed.read_file("/d/f").unwrap()[20_000..20_003], b"not");
    assert_eq!(after.read_file("/d/f").unwrap()[20_000], 0);
    // The image's own mappings are its own.
    let file = killed.open(Path::new("/d/f"), OpenMode::ReadWrite).unwrap();
    store(&file.map(LEN, MapMode::Shared).unwrap(), 0, b"image");
    assert_eq!(disk.read_file("/d/f").unwrap()[0], 0);
    assert_eq!(&killed.read_file("/d/f").unwrap()[..5], b"image");
}

#[test]
fn pages_reach_the_disk_in_any_order() {
    let disk = disk();
    let (_file, mapping) = mapped_file(&disk);
    for page in 0..3 {
        store(&mapping, page * 4096, &[1; 4096]);
    }
    let seen = outcomes(&disk, CrashMode::RandomPieces, |disk| {
        let content = disk.read_file("/d/f").unwrap();
        [content[0], content[4096], content[8192]]
    });
    assert_eq!(seen.len(), 8, "{seen:?}");
    let torn = outcomes(&disk, CrashMode::Torn, |disk| {
        let content = disk.read_file("/d/f").unwrap();
        let sectors: Vec<u8> = content[..4096].chunks(512).map(|s| s[0]).collect();
        for (sector, first) in content[..4096].chunks(512).zip(&sectors) {
            assert!(sector.iter().all(|b| b == first));
        }
        sectors
    });
    assert!(torn.len() > 50, "{torn:?}");
}

#[test]
fn stores_after_the_file_was_closed_and_unmapped_are_kept() {
    let disk = disk();
    let (file, mapping) = mapped_file(&disk);
    drop(file);
    store(&mapping, LEN - 3, b"end");
    drop(mapping);
    assert!(disk.read_file("/d/f").unwrap().ends_with(b"end"));
    let file = disk.open(Path::new("/d/f"), OpenMode::Read).unwrap();
    assert_eq!(disk.crash(0, CrashMode::DropUnsynced).read_file("/d/f").unwrap(), [0; LEN]);
    file.sync().unwrap();
    assert!(disk.crash(0, CrashMode::DropUnsynced).read_file("/d/f").unwrap().ends_with(b"end"));
}

#[test]
fn stores_past_the_end_of_the_file_go_nowhere() {
    let disk = disk();
    let (file, mapping) = mapped_file(&disk);
    store(&mapping, 0, &[7; LEN]);
    file.set_len(10_000).unwrap();
    store(&mapping, 9_990, &[8; 100]);
    store(&mapping, 20_000, &[8; 100]);
    file.sync().unwrap();
    drop(mapping);
    file.set_len(LEN as u64).unwrap();
    let content = disk.read_file("/d/f").unwrap();
    assert_eq!(content[9_989..10_000], [7, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8]);
    assert!(content[10_000..].iter().all(|b| *b == 0));
}

#[test]
fn unreserved_space_cannot_be_mapped_for_writing() {
    let disk = disk();
    let file = new_file(&disk, "/d/f");
    file.set_len(LEN as u64).unwrap();
    assert_eq!(file.map(LEN, MapMode::Shared).unwrap_err().kind(), io::ErrorKind::InvalidInput);
    file.map(LEN, MapMode::Read).unwrap();
    file.allocate(LEN as u64).unwrap();
    file.map(LEN, MapMode::Shared).unwrap();
}

#[test]
fn a_reservation_survives_with_its_length() {
    let disk = disk();
    disk.set_capacity(LEN as u64 + 8192);
    let (_file, mapping) = mapped_file(&disk);
    let room = |disk: &SimVfs| disk.space(Path::new("/d")).unwrap().available;
    store(&mapping, 0, &[1; LEN]);
    assert_eq!(room(&disk), 4096 + 4096 - 960, "pages were reserved, stores take no more");
    for image in [disk.kill(), disk.crash(1, CrashMode::DropUnsynced), disk.crash(1, CrashMode::Torn)] {
        assert_eq!(room(&image), room(&disk));
        image.open(Path::new("/d/f"), OpenMode::ReadWrite).unwrap().map(LEN, MapMode::Shared).unwrap();
    }
}

/// A file of many pages takes memory, and time in a crash, for those that were touched.
#[test]
fn large_files_cost_what_is_touched() {
    const LARGE: usize = 1 << 30;
    let disk = disk();
    let file = new_file(&disk, "/d/f");
    file.set_len(LARGE as u64).unwrap();
    let read = file.map(LARGE, MapMode::Read).unwrap();
    let part = 1 << 28;
    file.allocate(part as u64).unwrap();
    let mapping = file.map(part, MapMode::Shared).unwrap();
    for i in 0..10 {
        store(&mapping, i * 20_000_000, b"here and there");
        file.sync().unwrap();
    }
    // SAFETY: nothing is written any more.
    assert_eq!(unsafe { read.slice(180_000_000, 4) }, b"here");
    let after = disk.crash(0, CrashMode::DropUnsynced);
    let file = after.open(Path::new("/d/f"), OpenMode::Read).unwrap();
    let mut bytes = [0; 14];
    file.read_exact_at(&mut bytes, 180_000_000).unwrap();
    assert_eq!(&bytes, b"here and there");
}
