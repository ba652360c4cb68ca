//! Damage is an error that names the file, or makes no difference: never another answer, a panic or a hang.

use super::*;
use crate::ErrorKind;
use crate::entry::Kind;
use crate::io::checksum::{checksum, place};
use crate::iter::{Source, Visibility};

fn sample(options: &TableOptions) -> (Vec<Item>, Vec<u8>, TableMeta) {
    let items: Vec<Item> = (0..40u64)
        .flat_map(|n| {
            let key = format!("key{n:04}{}", "x".repeat(n as usize % 7)).into_bytes();
            let value = if n % 3 == 0 { noise(n, 40) } else { format!("value {n} ").repeat(6).into_bytes() };
            let old = Item { key, version: 0, kind: Kind::Put, value };
            let new = Item { version: 50 + n, kind: Kind::Delete, value: Vec::new(), ..old.clone() };
            if n % 5 == 0 { vec![new, old] } else { vec![old] }
        })
        .collect();
    let (file, meta) = write(&items, options, 7);
    (items, bytes_of(&*file), meta)
}

fn small(compression: Codec, filter: FilterKind) -> TableOptions {
    TableOptions { page_bytes: 512, group_bytes: 128, compression, filter, dictionary_bytes: 0 }
}

fn shapes() -> [TableOptions; 2] {
    [small(Codec::None, FilterKind::Fuse8), small(Codec::Lz4, FilterKind::Bloom { bits_per_key: 10 })]
}

/// What a table says, all of it, or its first error.
fn answers(bytes: &[u8], meta: &TableMeta, access: Access, items: &[Item]) -> crate::Result<Vec<Item>> {
    let table = Table::open(file_of(bytes), path(), meta.clone(), access, None)?;
    let mut found = Vec::new();
    let mut cursor = table.cursor(Visibility::All);
    cursor.seek_first()?;
    while cursor.valid() {
        let (key, version, kind) = (cursor.key().to_vec(), cursor.version(), cursor.kind());
        found.push(Item { key, version, kind, value: cursor.value()?.to_vec() });
        cursor.next()?;
    }
    for item in items {
        assert!(table.may_contain(crate::io::checksum::key_hash(&item.key)));
        let hit = table.get(&item.key, item.version.saturating_add(1))?.expect("not silently lost");
        assert_eq!((hit.kind, hit.value.as_slice()), (item.kind, &item.value[..]));
    }
    Ok(found)
}

#[test]
fn every_flipped_byte_is_noticed() {
    for options in shapes() {
        let (items, bytes, meta) = sample(&options);
        for access in [Access::Mapped, Access::Pread] {
            assert_eq!(answers(&bytes, &meta, access, &items).unwrap(), items);
        }
        for at in 0..bytes.len() {
            let access = if at % 2 == 0 { Access::Mapped } else { Access::Pread };
            let mut damaged = bytes.clone();
            damaged[at] ^= 1 << (at % 8);
            let error = answers(&damaged, &meta, access, &items).expect_err("every byte is covered");
            assert!(matches!(error.kind(), ErrorKind::Corruption | ErrorKind::Unsupported), "{at}: {error}");
            assert_eq!(error.path(), Some(path()), "{at}");
            let offset = error.offset().expect("an offset") as usize;
            assert!(offset <= at, "{at}: {error}");
        }
    }
}

#[test]
fn every_truncation_is_noticed() {
    let (items, bytes, meta) = sample(&shapes()[1]);
    for len in 0..bytes.len() {
        let error = answers(&bytes[..len], &meta, Access::Mapped, &items).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corruption, "{len}: {error}");
    }
    let longer = [&bytes[..], &[0]].concat();
    assert_eq!(answers(&longer, &meta, Access::Pread, &items).unwrap_err().kind(), ErrorKind::Corruption);
}

/// With its checksum made right again, a changed page may say anything, but must not do harm.
#[test]
fn forged_pages_do_no_harm() {
    for options in shapes() {
        let (items, bytes, meta) = sample(&options);
        let table = Table::open(file_of(&bytes), path(), meta.clone(), Access::Mapped, None).unwrap();
        for page in 0..table.fences.pages() {
            let (offset, len) = table.fences.page(page);
            for at in (offset as usize + 8..offset as usize + len).step_by(1 + page % 2) {
                for value in [0, 1, 0x7F, 0x80, 0xFF, bytes[at].wrapping_add(1)] {
                    let mut forged = bytes.clone();
                    forged[at] = value;
                    let sum = checksum(&forged[offset as usize + 8..offset as usize + len], place(7, offset));
                    forged[offset as usize..offset as usize + 8].copy_from_slice(&sum.to_le_bytes());
                    let table =
                        Table::open(file_of(&forged), path(), meta.clone(), Access::Pread, None).unwrap();
                    let _ = table.verify();
                    for item in &items {
                        let _ = table.get(&item.key, u64::MAX);
                    }
                    let mut cursor = table.cursor(Visibility::Before(60));
                    let mut steps = 0;
                    let mut moved = cursor.seek_last();
                    while moved.is_ok() && cursor.valid() {
                        let _ = cursor.value();
                        moved = cursor.prev();
                        steps += 1;
                        assert!(steps <= 70_000 * table.fences.pages());
                    }
                    if page > 1 && at % 16 != 0 {
                        break;
                    }
                }
            }
        }
    }
}

#[test]
fn pages_and_files_in_each_others_place_are_noticed() {
    let options = small(Codec::None, FilterKind::None);
    let items: Vec<Item> = (0..100u64)
        .map(|n| Item { key: n.to_be_bytes().to_vec(), version: 0, kind: Kind::Put, value: noise(n, 50) })
        .collect();
    let (file, meta) = write(&items, &options, 7);
    let bytes = bytes_of(&*file);
    let table = Table::open(file, path(), meta.clone(), Access::Mapped, None).unwrap();
    let ((a, a_len), (b, b_len)) = (table.fences.page(1), table.fences.page(2));
    assert_eq!(a_len, b_len, "pages of one shape");
    let mut swapped = bytes.clone();
    swapped[a as usize..a as usize + a_len].copy_from_slice(&bytes[b as usize..b as usize + b_len]);
    swapped[b as usize..b as usize + b_len].copy_from_slice(&bytes[a as usize..a as usize + a_len]);
    assert_eq!(answers(&swapped, &meta, Access::Mapped, &items).unwrap_err().offset(), Some(a));

    // The same entries as another table, and another table's file under this name.
    let (other, other_meta) = write(&items, &options, 8);
    let other = bytes_of(&*other);
    assert!(answers(&other, &meta, Access::Mapped, &items).is_err());
    assert!(answers(&bytes, &other_meta, Access::Mapped, &items).is_err());
    // Of the same name, but an older or newer file: only the footer's sum tells.
    let (old, _) = write(&items[..99], &options, 7);
    assert!(answers(&bytes_of(&*old), &meta, Access::Mapped, &items).is_err());
}

#[test]
fn unknown_kinds_and_formats_are_unsupported() {
    let (items, bytes, meta) = sample(&small(Codec::None, FilterKind::None));
    let table = Table::open(file_of(&bytes), path(), meta.clone(), Access::Mapped, None).unwrap();
    let (_, len) = table.fences.page(0);
    for (at, value) in [(20, bytes[20] | 0x10), (21, 1)] {
        let mut forged = bytes.clone();
        forged[at] = value;
        let sum = checksum(&forged[8..len], place(7, 0));
        forged[..8].copy_from_slice(&sum.to_le_bytes());
        let error = answers(&forged, &meta, Access::Mapped, &items).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{at}");
    }
    let mut newer = bytes.clone();
    let footer = bytes.len() - super::super::footer::FOOTER;
    newer[footer + 8] = 2;
    assert_eq!(answers(&newer, &meta, Access::Mapped, &items).unwrap_err().kind(), ErrorKind::Unsupported);
    // A kind of number 9 in place of a delete: the kinds lie in the first page, where key 0 has one.
    let mut tried = 0;
    for at in 8..len {
        if bytes[at] == Kind::Delete as u8
            && bytes[at + 1] == Kind::Put as u8
            && bytes[at + 2] == Kind::Put as u8
        {
            let mut forged = bytes.clone();
            forged[at] = 9;
            let sum = checksum(&forged[8..len], place(7, 0));
            forged[..8].copy_from_slice(&sum.to_le_bytes());
            let error = answers(&forged, &meta, Access::Mapped, &items).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unsupported);
            tried += 1;
        }
    }
    assert!(tried > 0);
}

#[test]
fn the_builder_refuses_what_is_out_of_order_or_empty() {
    let new = || TableBuilder::new(file_of(&[]), path(), 7, TableOptions::default());
    assert_eq!(new().finish().unwrap_err().kind(), ErrorKind::InvalidArgument);
    for (first, second) in
        [(("b", 0), ("a", 0)), (("a", 0), ("a", 0)), (("a", 3), ("a", 3)), (("a", 0), ("a", 9))]
    {
        let mut builder = new();
        builder.add(first.0.as_bytes(), first.1, Kind::Put, b"").unwrap();
        let error = builder.add(second.0.as_bytes(), second.1, Kind::Put, b"").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    }
    assert!(new().add(&vec![0; (64 << 10) + 6], 0, Kind::Put, b"").is_err());
}

#[test]
fn long_keys_and_large_values() {
    for compression in [Codec::None, Codec::Lz4] {
        let items: Vec<Item> = (0..12u8)
            .map(|n| {
                let len = [10, 64 << 10, (64 << 10) + 5, 0][usize::from(n) % 4];
                let key = [&[n][..], &noise(3, len)[..]].concat();
                let key = key[..key.len().min((64 << 10) + 5)].to_vec();
                let value = match n % 3 {
                    0 => noise(n.into(), 3 << 20),
                    1 => vec![n; 5 << 20],
                    _ => noise(n.into(), 60_000 + usize::from(n)),
                };
                Item { key, version: 0, kind: Kind::Put, value }
            })
            .collect();
        let options = TableOptions { compression, ..TableOptions::default() };
        let (file, meta) = write(&items, &options, 7);
        let bytes = bytes_of(&*file);
        assert_eq!(compression == Codec::None, bytes.len() > 30 << 20);
        for access in [Access::Mapped, Access::Pread] {
            assert!(answers(&bytes, &meta, access, &items).unwrap() == items);
        }
    }
}

#[test]
fn the_hook_runs_when_the_last_reader_is_gone() {
    use std::sync::atomic::{AtomicBool, Ordering};
    let (_, bytes, meta) = sample(&shapes()[0]);
    let table = Table::open(file_of(&bytes), path(), meta, Access::Mapped, None).unwrap();
    let gone = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&gone);
    table.mark_obsolete(Box::new(move || flag.store(true, Ordering::Relaxed)));
    let mut cursor = table.cursor(Visibility::All);
    drop(table);
    cursor.seek_first().unwrap();
    assert!(cursor.valid() && !gone.load(Ordering::Relaxed));
    drop(cursor);
    assert!(gone.load(Ordering::Relaxed));
}

/// A cache that takes everything.
#[derive(Default)]
struct Everything(std::sync::Mutex<Groups>);

type Groups = std::collections::HashMap<(u64, u64), Arc<[u8]>>;

impl GroupCache for Everything {
    fn get(&self, table: u64, offset: u64) -> Option<Arc<[u8]>> {
        self.0.lock().unwrap().get(&(table, offset)).cloned()
    }
    fn offer(&self, table: u64, offset: u64, decoded: &[u8]) {
        assert!(self.0.lock().unwrap().insert((table, offset), decoded.into()).is_none(), "decoded twice");
    }
}

#[test]
fn decoded_groups_go_through_the_cache() {
    let items: Vec<Item> = (0..500u32)
        .map(|n| Item {
            key: n.to_be_bytes().to_vec(),
            version: 0,
            kind: Kind::Put,
            value: vec![n as u8; 300],
        })
        .collect();
    let (file, meta) = write(&items, &TableOptions { compression: Codec::Lz4, ..TableOptions::default() }, 7);
    let cache = Arc::new(Everything::default());
    let table = Table::open(file, path(), meta, Access::Pread, Some(cache.clone())).unwrap();
    for _ in 0..2 {
        for item in &items {
            assert_eq!(table.get(&item.key, 1).unwrap().unwrap().value, &item.value[..]);
        }
    }
    assert!(cache.0.lock().unwrap().len() > 50);
}
