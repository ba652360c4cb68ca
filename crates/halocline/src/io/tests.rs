//! What the traits promise, asked of both implementations by the same code.

use super::sim::SimVfs;
use super::*;
use std::io::ErrorKind;

/// Runs `body` on a simulated disk and on the real one, each with an empty directory.
fn on_both(body: impl Fn(&dyn Vfs, &Path)) {
    let sim = SimVfs::new(1);
    sim.create_dir_all(Path::new("/disk")).unwrap();
    body(&sim, Path::new("/disk"));
    let dir = tempfile::tempdir().unwrap();
    body(&RealVfs, dir.path());
}

fn kind<T: Debug>(result: io::Result<T>) -> ErrorKind {
    result.unwrap_err().kind()
}

fn read_all(file: &dyn File) -> Vec<u8> {
    let mut all = vec![0; file.len().unwrap() as usize];
    file.read_exact_at(&mut all, 0).unwrap();
    all
}

/// The bytes of a mapping, copied.
fn mapped(mapping: &Mapping, offset: usize, len: usize) -> Vec<u8> {
    // SAFETY: these tests have one thread and hold no slice across a write.
    unsafe { mapping.slice(offset, len).to_vec() }
}

fn store(mapping: &Mapping, offset: usize, bytes: &[u8]) {
    // SAFETY: as above.
    unsafe { mapping.slice_mut(offset, bytes.len()).copy_from_slice(bytes) };
}

#[test]
fn opening() {
    on_both(|vfs, dir| {
        let path = dir.join("f");
        assert_eq!(kind(vfs.open(&path, OpenMode::Read)), ErrorKind::NotFound);
        assert_eq!(kind(vfs.open(&path, OpenMode::ReadWrite)), ErrorKind::NotFound);
        assert_eq!(kind(vfs.open(&dir.join("no/f"), OpenMode::CreateNew)), ErrorKind::NotFound);
        assert!(!vfs.exists(&path).unwrap());
        let file = vfs.open(&path, OpenMode::CreateNew).unwrap();
        assert!(vfs.exists(&path).unwrap());
        assert_eq!(kind(vfs.open(&path, OpenMode::CreateNew)), ErrorKind::AlreadyExists);
        assert_eq!(kind(vfs.open(dir, OpenMode::ReadWrite)), ErrorKind::IsADirectory);
        file.write_all_at(b"abc", 0).unwrap();
        let reader = vfs.open(&path, OpenMode::Read).unwrap();
        assert_eq!(read_all(&*reader), b"abc");
        assert!(reader.write_at(b"x", 0).is_err());
        assert!(reader.set_len(0).is_err());
        assert!(reader.allocate(10).is_err());
        assert_eq!(kind(reader.map(3, MapMode::Shared)), ErrorKind::PermissionDenied);
        reader.sync().unwrap();
        assert_eq!(read_all(&*vfs.open(&path, OpenMode::ReadWrite).unwrap()), b"abc");
    });
}

#[test]
fn reading_and_writing() {
    on_both(|vfs, dir| {
        let file = vfs.open(&dir.join("f"), OpenMode::CreateNew).unwrap();
        assert_eq!(file.len().unwrap(), 0);
        assert_eq!(file.read_at(&mut [0; 4], 0).unwrap(), 0);
        // Over page borders, with a hole before it.
        let data: Vec<u8> = (0..10_000).map(|i| (i % 251) as u8).collect();
        file.write_all_at(&data, 5_000).unwrap();
        assert_eq!(file.len().unwrap(), 15_000);
        let all = read_all(&*file);
        assert!(all[..5_000].iter().all(|b| *b == 0));
        assert_eq!(all[5_000..], data);
        let mut tail = [0; 100];
        assert_eq!(file.read_at(&mut tail, 14_990).unwrap(), 10);
        assert_eq!(tail[..10], data[9_990..]);
        assert_eq!(file.read_at(&mut tail, 20_000).unwrap(), 0);
        assert_eq!(kind(file.read_exact_at(&mut tail, 14_990)), ErrorKind::UnexpectedEof);
        file.write_all_at(b"", 99_999).unwrap();
        assert_eq!(file.len().unwrap(), 15_000);
        file.sync().unwrap();
    });
}

#[test]
fn lengths() {
    on_both(|vfs, dir| {
        let file = vfs.open(&dir.join("f"), OpenMode::CreateNew).unwrap();
        file.write_all_at(&[7; 9_000], 0).unwrap();
        file.set_len(4_100).unwrap();
        file.set_len(9_000).unwrap();
        let all = read_all(&*file);
        assert!(all[..4_100].iter().all(|b| *b == 7) && all[4_100..].iter().all(|b| *b == 0));
        file.allocate(0).unwrap();
        file.allocate(100).unwrap();
        assert_eq!(file.len().unwrap(), 9_000);
        file.allocate(70_000).unwrap();
        assert_eq!(file.len().unwrap(), 70_000);
        assert_eq!(read_all(&*file)[..9_000], all);
        assert!(read_all(&*file)[9_000..].iter().all(|b| *b == 0));
        file.start_writeback(0, 70_000).unwrap();
        file.start_writeback(4_096, 0).unwrap();
        file.sync().unwrap();
    });
}

#[test]
fn names() {
    on_both(|vfs, dir| {
        let deep = dir.join("a/b/c");
        vfs.create_dir_all(&deep).unwrap();
        vfs.create_dir_all(&deep).unwrap();
        assert!(vfs.exists(&deep).unwrap());
        assert_eq!(vfs.list(&deep).unwrap(), []);
        assert_eq!(kind(vfs.list(&dir.join("x"))), ErrorKind::NotFound);
        assert_eq!(kind(vfs.sync_dir(&dir.join("x"))), ErrorKind::NotFound);
        vfs.create_dir_all(&deep.join("folder")).unwrap();
        for (name, len) in [("one", 1), ("two", 2)] {
            vfs.open(&deep.join(name), OpenMode::CreateNew).unwrap().write_all_at(&[9; 2][..len], 0).unwrap();
        }
        assert_eq!(kind(vfs.create_dir_all(&deep.join("one"))), ErrorKind::NotADirectory);
        assert_eq!(kind(vfs.create_dir_all(&deep.join("one/more"))), ErrorKind::NotADirectory);
        let mut list = vfs.list(&deep).unwrap();
        list.sort_by(|a, b| a.name.cmp(&b.name));
        let entry = |name: &str, len| DirEntry { name: name.into(), len };
        assert_eq!(list, [entry("one", 1), entry("two", 2)]);

        let old_two = vfs.open(&deep.join("two"), OpenMode::Read).unwrap();
        vfs.rename(&deep.join("one"), &deep.join("two")).unwrap();
        assert_eq!(vfs.list(&deep).unwrap(), [entry("two", 1)]);
        assert_eq!(read_all(&*old_two), [9, 9], "an open file outlives its name");
        assert_eq!(kind(vfs.rename(&deep.join("one"), &deep.join("x"))), ErrorKind::NotFound);
        vfs.rename(&deep.join("two"), &deep.join("two")).unwrap();

        let two = vfs.open(&deep.join("two"), OpenMode::ReadWrite).unwrap();
        vfs.remove(&deep.join("two")).unwrap();
        assert_eq!(kind(vfs.remove(&deep.join("two"))), ErrorKind::NotFound);
        assert!(!vfs.exists(&deep.join("two")).unwrap());
        vfs.sync_dir(&deep).unwrap();
        two.write_all_at(b"still", 0).unwrap();
        two.sync().unwrap();
        assert_eq!(read_all(&*two), b"still");
        vfs.open(&deep.join("two"), OpenMode::CreateNew).unwrap();
    });
}

#[test]
fn mappings_are_the_file() {
    on_both(|vfs, dir| {
        let path = dir.join("f");
        let file = vfs.open(&path, OpenMode::CreateNew).unwrap();
        assert_eq!(kind(file.map(1, MapMode::Read)), ErrorKind::InvalidInput);
        file.allocate(20_000).unwrap();
        file.write_all_at(b"before", 4_094).unwrap();
        assert_eq!(kind(file.map(0, MapMode::Shared)), ErrorKind::InvalidInput);
        assert_eq!(kind(file.map(20_001, MapMode::Shared)), ErrorKind::InvalidInput);
        let read_only = vfs.open(&path, OpenMode::Read).unwrap().map(20_000, MapMode::Read).unwrap();
        let shared = file.map(20_000, MapMode::Shared).unwrap();
        assert_eq!((read_only.len(), read_only.is_writable()), (20_000, false));
        assert_eq!((shared.len(), shared.is_writable()), (20_000, true));
        assert_eq!(mapped(&read_only, 4_094, 6), b"before");
        assert_eq!(mapped(&shared, 4_094, 6), b"before");

        store(&shared, 8_190, b"store");
        assert_eq!(mapped(&read_only, 8_190, 5), b"store");
        let mut bytes = [0; 5];
        file.read_exact_at(&mut bytes, 8_190).unwrap();
        assert_eq!(&bytes, b"store");
        file.write_all_at(b"W", 8_192).unwrap();
        assert_eq!(mapped(&shared, 8_190, 5), b"stWre");
        assert_eq!(mapped(&read_only, 8_190, 5), b"stWre");
        file.sync().unwrap();
        let part = file.map(8_193, MapMode::Shared).unwrap();
        assert_eq!(mapped(&part, 8_190, 3), b"stW");

        for advice in [
            Advice::Random,
            Advice::Sequential,
            Advice::WillNeed,
            Advice::DontNeed,
            Advice::Huge,
            Advice::PopulateRead,
            Advice::PopulateWrite,
        ] {
            shared.advise(advice, 5_000..20_000).unwrap();
            shared.advise(advice, 7..7).unwrap();
        }
        assert_eq!(mapped(&shared, 8_190, 5), b"stWre");

        drop(file);
        vfs.remove(&path).unwrap();
        store(&shared, 0, b"alive");
        assert_eq!(mapped(&read_only, 0, 5), b"alive", "mappings outlive the file's handle and name");
    });
}

#[test]
fn a_file_grown_after_its_mapping_was_dropped_is_mapped_again() {
    on_both(|vfs, dir| {
        let file = vfs.open(&dir.join("f"), OpenMode::CreateNew).unwrap();
        file.allocate(5_000).unwrap();
        store(&file.map(5_000, MapMode::Shared).unwrap(), 4_990, b"kept");
        file.allocate(50_000).unwrap();
        let again = file.map(50_000, MapMode::Shared).unwrap();
        assert_eq!(mapped(&again, 4_990, 4), b"kept");
        store(&again, 49_999, b"!");
        drop(again);
        let all = read_all(&*file);
        assert_eq!((&all[4_990..4_994], all[49_999]), (b"kept".as_slice(), b'!'));
    });
}

#[test]
fn locking() {
    on_both(|vfs, dir| {
        vfs.create_dir_all(&dir.join("a/sub")).unwrap();
        vfs.create_dir_all(&dir.join("b")).unwrap();
        let held = vfs.lock(&dir.join("a/LOCK")).unwrap();
        assert_eq!(kind(vfs.lock(&dir.join("a/LOCK"))), ErrorKind::WouldBlock);
        assert_eq!(kind(vfs.lock(&dir.join("a/sub/.././LOCK"))), ErrorKind::WouldBlock);
        let other = vfs.lock(&dir.join("b/LOCK")).unwrap();
        drop(held);
        let again = vfs.lock(&dir.join("a/LOCK")).unwrap();
        assert_eq!(kind(vfs.lock(&dir.join("b/LOCK"))), ErrorKind::WouldBlock);
        drop((again, other));
        assert_eq!(kind(vfs.lock(&dir.join("none/LOCK"))), ErrorKind::NotFound);
        assert!(vfs.exists(&dir.join("a/LOCK")).unwrap(), "the lock file stays");
    });
}

#[test]
fn surroundings() {
    on_both(|vfs, dir| {
        let space = vfs.space(dir).unwrap();
        assert!(space.total > 0 && space.available <= space.total, "{space:?}");
        assert_eq!(kind(vfs.space(&dir.join("none"))), ErrorKind::NotFound);
        vfs.supports_mapped_writes(dir).unwrap();
        assert_eq!(vfs.boot_id().unwrap(), vfs.boot_id().unwrap());
        assert!(vfs.boot_id().unwrap() != [0; 16]);
        assert!(vfs.now_ms() > 1_500_000_000_000);
        let times: Vec<u64> = (0..100).map(|_| vfs.monotonic_ns()).collect();
        assert!(times.is_sorted());
        assert_ne!(vfs.random(), vfs.random());
    });
}
