use super::*;
use crate::io::sim::{CrashMode, Fault, FaultFilter, FaultKind, Op, SimVfs};
use crate::table::TableMeta;
use crate::tree::edit::SealedSegment;
use std::sync::Mutex;

const MODES: [CrashMode; 3] = [CrashMode::DropUnsynced, CrashMode::RandomPieces, CrashMode::Torn];

fn dir() -> &'static Path {
    Path::new("/db")
}

fn disk(seed: u64) -> (SimVfs, Arc<dyn Vfs>) {
    let disk = SimVfs::new(seed);
    disk.create_dir_all(dir()).unwrap();
    let vfs = Arc::new(disk.clone());
    (disk, vfs)
}

fn table(id: u64, key_len: usize) -> TableMeta {
    let mut smallest = id.to_be_bytes().to_vec();
    smallest.resize(8 + key_len, b's');
    let mut largest = id.to_be_bytes().to_vec();
    largest.resize(8 + key_len, b't');
    TableMeta {
        id,
        file_len: 1000 + id,
        footer_sum: id * 77,
        entries: 10,
        deletes: 1,
        raw_bytes: 2000,
        max_version: id * 5,
        smallest: smallest.into(),
        largest: largest.into(),
    }
}

fn first() -> Vec<Edit> {
    vec![Edit::AddFamily { id: 0, name: "default".into() }]
}

fn flush(id: u64, key_len: usize) -> Vec<Edit> {
    vec![
        Edit::NewRun { family: 0, run: id, tier: 0, after: None },
        Edit::AddTable { family: 0, run: id, meta: table(id + 1, key_len) },
        Edit::LogFloor { lsn: id * 100 },
    ]
}

fn to_last(run: u64, key_len: usize) -> Vec<Edit> {
    vec![
        Edit::RemoveTable { family: 0, run, table: run + 1 },
        Edit::AddTable { family: 0, run: 0, meta: table(run + 1, key_len) },
    ]
}

fn closed() -> Vec<Edit> {
    let segment = |file| SealedSegment { file, base: 4096, end: 8000, sum: 99 };
    vec![Edit::Closed { segments: vec![segment(1), segment(2)] }]
}

/// What there is to tell two states apart.
fn shown(manifest: &Manifest) -> Vec<Edit> {
    manifest.state().edits()
}

fn open(disk: &SimVfs) -> Result<Manifest> {
    let vfs: Arc<dyn Vfs> = Arc::new(disk.clone());
    Manifest::recover(&vfs, dir(), false)
}

fn open_read_only(disk: &SimVfs) -> Result<Manifest> {
    let vfs: Arc<dyn Vfs> = Arc::new(disk.clone());
    Manifest::recover(&vfs, dir(), true)
}

#[test]
fn edits_survive_reopening_and_replacement() {
    let (disk, vfs) = disk(1);
    let mut manifest = Manifest::create(&vfs, dir(), &first()).unwrap();
    let id = manifest.database();
    for i in 0..200 {
        manifest.append(&flush(10 + 2 * i, 500)).unwrap();
        if i > 3 {
            manifest.append(&to_last(10 + 2 * (i - 3), 500)).unwrap();
        }
    }
    assert!(manifest.number > 1, "the log was long enough for a new manifest");
    let expected = shown(&manifest);
    assert_eq!(shown(&open_read_only(&disk).unwrap()), expected);
    let manifests = || disk.files().iter().filter(|(p, _)| p.to_string_lossy().contains("MANIFEST-")).count();
    assert_eq!(manifests(), 1);
    let mut manifest = open(&disk).unwrap();
    assert_eq!((shown(&manifest), manifest.database(), manifests()), (expected, id, 1));
    let state = manifest.state();
    assert_eq!((state.next_id, state.next_family, state.log_floor), (410, 1, 40_800));
    assert_eq!(state.tree.family(0).unwrap().runs.len(), 4);
    let mapped = state.tree.map(|meta| Ok(Arc::new(meta.clone()))).unwrap();
    assert_eq!(mapped.family(0).unwrap().last.find(&table(21, 500).smallest).unwrap().id, 21);

    // After a clean close the same manifest is continued; any edit makes the close void.
    manifest.append(&closed()).unwrap();
    let number = manifest.number;
    let mut manifest = open(&disk).unwrap();
    assert_eq!((manifest.number, manifest.state().closed.as_ref().unwrap().len()), (number, 2));
    manifest.append(&[Edit::Opened]).unwrap();
    assert_eq!(open(&disk).unwrap().state().closed, None);
}

#[test]
fn edits_that_do_not_fit_are_refused_and_change_nothing() {
    let (disk, vfs) = disk(1);
    let mut manifest = Manifest::create(&vfs, dir(), &first()).unwrap();
    manifest.append(&flush(10, 10)).unwrap();
    let (before, end) = (shown(&manifest), manifest.end);
    for edits in [
        flush(10, 10),
        to_last(12, 10),
        vec![Edit::LogFloor { lsn: 1 }],
        vec![Edit::NewRun { family: 0, run: u64::MAX, tier: 0, after: None }],
        vec![Edit::AddFamily { id: u32::MAX, name: "x".into() }],
        vec![Edit::DropFamily { id: 0 }, Edit::LogFloor { lsn: 0 }],
    ] {
        assert_eq!(manifest.append(&edits).unwrap_err().kind(), ErrorKind::InvalidArgument);
    }
    assert_eq!((shown(&manifest), manifest.end), (before.clone(), end));
    let mut read_only = open_read_only(&disk).unwrap();
    assert_eq!(read_only.append(&[Edit::Opened]).unwrap_err().kind(), ErrorKind::ReadOnly);
    manifest.append(&[Edit::DropFamily { id: 0 }]).unwrap();
    assert!(open(&disk).unwrap().state().tree.table_ids().is_empty());
    assert!(Manifest::create(&vfs, dir(), &first()).is_err());
}

/// A crash image, with how many of the steps were acknowledged when it was made.
type Images = Arc<Mutex<Vec<(usize, SimVfs)>>>;

/// Makes images at every boundary from now on.
fn watch(disk: &SimVfs, seed: u64, images: &Images, acknowledged: &Arc<Mutex<usize>>) {
    let (images, acknowledged) = (images.clone(), acknowledged.clone());
    disk.set_observer(Some(Arc::new(move |disk, op| {
        let done = *acknowledged.lock().unwrap();
        let mut images = images.lock().unwrap();
        let seed = seed.wrapping_mul(1_000_003).wrapping_add(op * 8);
        for (i, mode) in MODES.into_iter().enumerate() {
            images.push((done, disk.crash(seed + i as u64, mode)));
        }
        images.push((done, disk.kill()));
        // The kernel writes back when it likes: the next images may have it.
        if seed.is_multiple_of(3) {
            disk.write_back(seed + 4);
        }
    })));
}

#[test]
fn a_crash_at_any_boundary_leaves_the_state_before_or_after() {
    let (mut images_seen, mut nested_seen) = (0, 0);
    for seed in 1..=2 {
        let (disk, vfs) = disk(seed);
        let (images, acknowledged) = (Images::default(), Arc::new(Mutex::new(0)));
        watch(&disk, seed, &images, &acknowledged);
        let mut states: Vec<Vec<Edit>> = Vec::new();
        let mut manifest = Manifest::create(&vfs, dir(), &first()).unwrap();
        let mut done = |manifest: &Manifest| {
            states.push(shown(manifest));
            *acknowledged.lock().unwrap() = states.len();
        };
        done(&manifest);
        for i in 0..8 {
            // Records of one sector, of several, and enough for a new manifest on the way.
            let key_len = [10, 900, 30_000, 200][(i + seed as usize) % 4];
            manifest.append(&flush(10 + 2 * i as u64, key_len)).unwrap();
            done(&manifest);
            manifest.append(&to_last(10 + 2 * i as u64, key_len)).unwrap();
            done(&manifest);
        }
        assert!(manifest.number > 1);
        manifest.append(&closed()).unwrap();
        done(&manifest);
        drop(manifest);
        let mut manifest = Manifest::recover(&vfs, dir(), false).unwrap();
        manifest.append(&[Edit::Opened]).unwrap();
        done(&manifest);
        manifest.append(&flush(500, 10)).unwrap();
        done(&manifest);
        disk.set_observer(None);

        let images = std::mem::take(&mut *images.lock().unwrap());
        for (n, (acknowledged, image)) in images.into_iter().enumerate() {
            images_seen += 1;
            let allowed = &states[acknowledged.saturating_sub(1)..(acknowledged + 1).min(states.len())];
            let image_vfs: Arc<dyn Vfs> = Arc::new(image.clone());
            if acknowledged == 0 && Manifest::presence(&image_vfs, dir()).unwrap() != Presence::Present {
                assert_eq!(open(&image).unwrap_err().kind(), ErrorKind::Missing);
                Manifest::create(&image_vfs, dir(), &first()).unwrap();
                assert_eq!(shown(&open(&image).unwrap()), states[0]);
                continue;
            }
            let fail = |e: Error| -> Manifest { panic!("seed {seed}, image {n} after {acknowledged}: {e}") };
            let read_only = open_read_only(&image).unwrap_or_else(fail);
            assert!(allowed.contains(&shown(&read_only)), "seed {seed}, image {n} after {acknowledged}");
            // Recovery itself may crash anywhere, and must come to the same state; then it is written on.
            let (nested, none) = (Images::default(), Arc::new(Mutex::new(0)));
            if n % 7 == 0 {
                watch(&image, seed + 100, &nested, &none);
            }
            let mut recovered = open(&image).unwrap_or_else(fail);
            image.set_observer(None);
            assert_eq!(shown(&recovered), shown(&read_only));
            let before = shown(&recovered);
            recovered.append(&[Edit::AddFamily { id: 7, name: "seven".into() }]).unwrap();
            let after = image.crash(5, CrashMode::DropUnsynced);
            assert_eq!(shown(&open(&after).unwrap()), shown(&recovered));
            for (_, image) in std::mem::take(&mut *nested.lock().unwrap()) {
                nested_seen += 1;
                let vfs: Arc<dyn Vfs> = Arc::new(image.clone());
                if acknowledged == 0 && Manifest::presence(&vfs, dir()).unwrap() != Presence::Present {
                    continue;
                }
                let shown = shown(&open(&image).unwrap_or_else(fail));
                // Until recovery has ended nothing was promised that only the page cache held.
                assert!(shown == before || allowed.contains(&shown));
            }
        }
    }
    assert!(images_seen > 500 && nested_seen > 500, "{images_seen} images, {nested_seen} of recoveries");
}

#[test]
fn a_failed_write_or_sync_latches_and_never_loses_what_was_acknowledged() {
    for op in [Op::Write, Op::Sync, Op::Create, Op::Rename, Op::SyncDir, Op::Remove] {
        for kind in [FaultKind::Eio, FaultKind::Enospc] {
            for at in 1..12 {
                let (disk, vfs) = disk(at);
                let mut manifest = Manifest::create(&vfs, dir(), &first()).unwrap();
                disk.inject(Fault {
                    kind,
                    at,
                    forever: false,
                    matching: FaultFilter { ops: vec![op], path_suffix: String::new() },
                });
                let (mut acknowledged, mut attempted) = (shown(&manifest), shown(&manifest));
                let mut failed = false;
                for i in 0..12 {
                    let edits = flush(10 + 2 * i, 15_000);
                    let mut next = manifest.state().clone();
                    next.apply(&edits).unwrap();
                    match manifest.append(&edits) {
                        Ok(()) => {
                            assert!(!failed, "an append after a failed one");
                            acknowledged = next.edits();
                        }
                        Err(e) if failed => assert_eq!(e.kind(), ErrorKind::Halted),
                        Err(_) => (failed, attempted) = (true, next.edits()),
                    }
                }
                for image in
                    [disk.kill(), disk.crash(at, CrashMode::DropUnsynced), disk.crash(at, CrashMode::Torn)]
                {
                    image.clear_faults();
                    let shown = shown(&open(&image).unwrap());
                    assert!(shown == acknowledged || failed && shown == attempted, "{op:?} {kind:?} {at}");
                }
            }
        }
    }
}

#[test]
fn every_flipped_byte_and_every_cut_is_found() {
    let (disk, vfs) = disk(9);
    let mut manifest = Manifest::create(&vfs, dir(), &first()).unwrap();
    for i in 0..4 {
        manifest.append(&flush(10 + 2 * i, 30)).unwrap();
    }
    manifest.append(&closed()).unwrap();
    let (path, expected) = (manifest.path.to_owned(), shown(&manifest));
    drop(manifest);
    let sound = disk.read_file(&path).unwrap();
    let mut refused = 0;
    for at in 0..sound.len() {
        let mut bytes = sound.clone();
        bytes[at] ^= 0x41;
        disk.write_file(&path, &bytes).unwrap();
        match open_read_only(&disk) {
            // Padding, unused room, or a mark, which the other one or the records outdo.
            Ok(manifest) => assert_eq!(shown(&manifest), expected, "byte {at}"),
            Err(e) => {
                assert_eq!((e.kind(), e.path()), (ErrorKind::Corruption, Some(&*path)), "byte {at}");
                assert!(e.offset().unwrap() <= at as u64);
                refused += 1;
            }
        }
    }
    assert!(refused as u64 > sound.len() as u64 - RECORDS, "{refused} of {} bytes matter", sound.len());
    for len in 0..sound.len() {
        disk.write_file(&path, &sound[..len]).unwrap();
        assert_eq!(open_read_only(&disk).unwrap_err().kind(), ErrorKind::Corruption, "cut at {len}");
    }
    // Bytes behind the end are an append that never completed, unless they are valid.
    let mut longer = sound.clone();
    longer.extend([7; 100]);
    disk.write_file(&path, &longer).unwrap();
    assert_eq!(shown(&open_read_only(&disk).unwrap()), expected);
    let mut record = Vec::new();
    put_record(&mut record, 1, sound.len() as u64 + 104, &[Edit::Opened]).unwrap();
    longer.truncate(sound.len());
    longer.extend([7; 104]);
    longer.extend(&record);
    disk.write_file(&path, &longer).unwrap();
    let e = open_read_only(&disk).unwrap_err();
    assert_eq!((e.kind(), e.offset()), (ErrorKind::Corruption, Some(sound.len() as u64)));
    // A record that belongs elsewhere is not valid here.
    let mut moved = sound.clone();
    put_record(&mut moved, 2, sound.len() as u64, &[Edit::Opened]).unwrap();
    disk.write_file(&path, &moved).unwrap();
    assert_eq!(shown(&open_read_only(&disk).unwrap()), expected);
}

#[test]
fn a_damaged_last_record_is_found_once_its_mark_is_there() {
    let (disk, vfs) = disk(9);
    let mut manifest = Manifest::create(&vfs, dir(), &first()).unwrap();
    manifest.append(&flush(10, 30)).unwrap();
    let before = shown(&manifest);
    let start = manifest.end as usize;
    manifest.append(&flush(12, 30)).unwrap();
    let path = manifest.path.to_owned();
    let mut bytes = disk.read_file(&path).unwrap();
    bytes[start + 20] ^= 1;
    disk.write_file(&path, &bytes).unwrap();
    assert_eq!(open(&disk).unwrap_err().offset(), Some(start as u64));
    // Without the mark (a power failure took it) it cannot be told from a torn append.
    bytes[MARKS[0] as usize..MARKS[0] as usize + 2 * 512].fill(0);
    disk.write_file(&path, &bytes).unwrap();
    assert_eq!(shown(&open(&disk).unwrap()), before);
}

#[test]
fn unknown_versions_kinds_and_names_are_refused() {
    let (disk, vfs) = disk(2);
    let mut manifest = Manifest::create(&vfs, dir(), &first()).unwrap();
    manifest.append(&closed()).unwrap();
    let (path, end) = (manifest.path.to_owned(), manifest.end);
    let sound = disk.read_file(&path).unwrap();
    let refused = |bytes: &[u8]| {
        disk.write_file(&path, bytes).unwrap();
        open(&disk).unwrap_err().kind()
    };
    let mut newer = sound.clone();
    newer[8] = 2;
    let sum = checksum(&newer[..56], place(1, 0));
    newer[56..64].copy_from_slice(&sum.to_le_bytes());
    assert_eq!(refused(&newer), ErrorKind::Unsupported);
    for (kind, payload, expected) in [
        (1, &[99u8][..], ErrorKind::Unsupported),
        (3, &[][..], ErrorKind::Unsupported),
        (1, &[1, 0, 200][..], ErrorKind::Corruption),
        (1, &[2, 9][..], ErrorKind::Corruption),
    ] {
        let mut record = vec![0; 16];
        record[8..12].copy_from_slice(&(payload.len() as u32).to_le_bytes());
        record[12] = kind;
        record.extend(payload);
        let sum = checksum(&record[8..], place(1, end));
        record[..8].copy_from_slice(&sum.to_le_bytes());
        let mut bytes = sound.clone();
        bytes.extend(record);
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        assert_eq!(refused(&bytes), expected);
    }
    disk.write_file(&path, &sound).unwrap();

    let current = disk.read_file(dir().join(CURRENT)).unwrap();
    for text in [&b""[..], b"MANIFEST-000001", b"MANIFEST-000002 0000000000000000\n", &[0xFF; 300]] {
        disk.write_file(dir().join(CURRENT), text).unwrap();
        assert_eq!(open(&disk).unwrap_err().kind(), ErrorKind::Corruption);
    }
    for at in 0..current.len() {
        let mut bytes = current.clone();
        bytes[at] ^= 1;
        disk.write_file(dir().join(CURRENT), &bytes).unwrap();
        assert_eq!(open(&disk).unwrap_err().kind(), ErrorKind::Corruption);
    }
    disk.write_file(dir().join(CURRENT), &current).unwrap();
    assert!(open(&disk).is_ok());
    // CURRENT is lost, and something of a database is there.
    disk.write_file(dir().join("000000000001.tbl"), b"x").unwrap();
    disk.remove(&dir().join(CURRENT)).unwrap();
    assert_eq!(Manifest::presence(&vfs, dir()).unwrap(), Presence::Present);
    assert_eq!(open(&disk).unwrap_err().kind(), ErrorKind::Corruption);
    assert!(Manifest::create(&vfs, dir(), &first()).is_err());
    // The manifest that CURRENT names is lost.
    disk.write_file(dir().join(CURRENT), &current).unwrap();
    disk.remove(&path).unwrap();
    assert_eq!(open(&disk).unwrap_err().kind(), ErrorKind::Corruption);
}

#[test]
fn arbitrary_bytes_neither_panic_nor_hang() {
    let (disk, vfs) = disk(3);
    let manifest = Manifest::create(&vfs, dir(), &first()).unwrap();
    let path = manifest.path.to_owned();
    let sound = disk.read_file(&path).unwrap();
    // A tail made of headers that each claim all that follows: checking them all would take quadratic time.
    let mut tail = sound.clone();
    let n = 1 << 20;
    for i in 0..n / 16 {
        let left = n - 16 * i - 16;
        tail.extend([1; 8]);
        tail.extend((left as u32).to_le_bytes());
        tail.extend(1u32.to_le_bytes());
    }
    disk.write_file(&path, &tail).unwrap();
    assert_eq!(open_read_only(&disk).unwrap_err().kind(), ErrorKind::Corruption);
    // More than one append can leave.
    let mut long = sound.clone();
    long.resize(sound.len() + MAX_PAYLOAD + 4096, 3);
    disk.write_file(&path, &long).unwrap();
    assert_eq!(open_read_only(&disk).unwrap_err().kind(), ErrorKind::Corruption);
}
