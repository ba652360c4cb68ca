//! Damaged files: every byte flipped, every length, every sector zeroed, files exchanged and removed.
//!
//! What is promised, and tested here:
//! - of a **cleanly closed** database, whatever is damaged: reading gives an error or exactly what was written, never a
//!   wrong answer, a panic, a hang or a huge allocation. `Options::check` finds every flipped byte, except in bytes that say
//!   nothing (the list is in `is_padding`), and changes no file.
//! - of a database whose process was killed (**same boot**): each commit is there whole, or not at all, or there is an error.
//!   One whose bytes in the log are damaged cannot be told from one that was never finished, unless a later sync spoke for it.
//! - of a machine that lost power (**another boot**): what is there is a prefix of the commits, or there is an error. Up to the
//!   last sync that left a mark behind it (the next one does) damage is an error; past it, damage looks like the end.
//!
//! Environment: `HALOCLINE_DAMAGE_STEP` (every so manieth byte; 1 is all), `HALOCLINE_SEED` (the bits flipped).

#![expect(clippy::disallowed_methods, reason = "a test may use the clock, the environment and sleeps")]

mod common;

use common::Rng;
use halocline::io::sim::{CrashMode, SimVfs};
use halocline::{Compression, Db, Durability, ErrorKind, LogMode, Options, TableAccess, WriteBatch};
use std::alloc::{GlobalAlloc, Layout, System};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// The system's allocator, which remembers the largest request.
struct Watched;

static LARGEST: AtomicUsize = AtomicUsize::new(0);

// SAFETY: everything is passed on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Watched {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LARGEST.fetch_max(layout.size(), Relaxed);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(ptr, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Watched = Watched;

const SEED: u64 = 7;
const DIR: &str = "/db";

type Map = BTreeMap<Vec<u8>, Vec<u8>>;
type Files = Vec<(PathBuf, Vec<u8>)>;

fn options(disk: &SimVfs) -> Options {
    Options::new().vfs(Arc::new(disk.clone())).write_buffer(64 << 10).cache(0).compaction_threads(1)
}

fn files_of(disk: &SimVfs) -> Files {
    disk.files().into_iter().map(|(path, _)| (path.clone(), disk.read_file(&path).unwrap())).collect()
}

/// A disk with these files. Its boot is the one that wrote them if `same_boot`.
fn disk_of(files: &Files, same_boot: bool) -> SimVfs {
    let disk = SimVfs::new(if same_boot { SEED } else { SEED + 1 });
    files.iter().for_each(|(path, bytes)| disk.write_file(path, bytes).unwrap());
    disk
}

/// Everything in a database: by iteration, and by gets of what was found and of what may be missing.
fn read_all(db: &Db, known: &[&Map; 2]) -> halocline::Result<[Map; 2]> {
    let mut found = [Map::new(), Map::new()];
    let second = db.find_column_family("second")?;
    for item in db.iter() {
        let (key, value) = item?;
        found[0].insert(key.to_vec(), value.to_vec());
    }
    if let Some(second) = &second {
        for item in second.iter().rev() {
            let (key, value) = item?;
            found[1].insert(key.to_vec(), value.to_vec());
        }
    }
    for key in known[0].keys() {
        let value = db.get(key)?;
        assert!(
            value.as_deref() == found[0].get(key).map(Vec::as_slice),
            "get and the iterator differ at {}",
            common::show(key)
        );
    }
    if let Some(second) = &second {
        for key in known[1].keys().step_by(3) {
            let value = second.get(key)?;
            assert!(value.as_deref() == found[1].get(key).map(Vec::as_slice), "get and the iterator differ");
        }
    }
    Ok(found)
}

/// A small database of many kinds of tables, closed: its files, and what is in it.
fn clean() -> (Files, [Map; 2]) {
    let disk = SimVfs::new(SEED);
    let mut expected = [Map::new(), Map::new()];
    let mut rng = Rng::new(1);
    for round in 0..4 {
        let compression = if round % 2 == 0 { Compression::Lz4 } else { Compression::None };
        let db = options(&disk).compression(compression).compress_from(0).open(DIR).unwrap();
        let second = db.column_family("second").unwrap();
        for i in 0..70u64 {
            let key = format!("key{:04}", rng.below(200)).into_bytes();
            if rng.once_in(6) {
                db.delete(&key).unwrap();
                expected[0].remove(&key);
            } else {
                // Half compress well, half do not.
                let value = common::bytes(rng.next(), 30 + rng.below(150) as usize);
                db.put(&key, &value).unwrap();
                expected[0].insert(key.clone(), value);
            }
            if i % 3 == 0 {
                second.put(&key, b"short").unwrap();
                expected[1].insert(key, b"short".to_vec());
            }
        }
        if round == 1 {
            // One last run, with its other kind of filter, under upper runs.
            db.compact_range(..).unwrap();
        }
        db.close().unwrap();
    }
    (files_of(&disk), expected)
}

/// Runs `test`, which must neither panic, nor take long, nor allocate much.
fn bounded<T>(what: &str, test: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    LARGEST.store(0, Relaxed);
    let result = catch_unwind(AssertUnwindSafe(test));
    let largest = LARGEST.load(Relaxed);
    let result = result.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        panic!(
            "{what}: {}",
            text.or_else(|| panic.downcast_ref::<&str>().map(|s| s.to_string())).unwrap_or_default()
        )
    });
    assert!(largest < 64 << 20, "{what}: {largest} bytes were allocated at once");
    assert!(start.elapsed() < Duration::from_secs(20), "{what}: took {:?}", start.elapsed());
    result
}

/// An error or the right answer, from whoever opens to read; with `writable`, also from whoever opens to write.
fn read_damaged(disk: &SimVfs, what: &str, expected: &[Map; 2], writable: bool) -> bool {
    let known = [&expected[0], &expected[1]];
    let access = if what.len().is_multiple_of(2) { TableAccess::Mapped } else { TableAccess::Pread };
    let options = options(disk).table_access(access);
    let mut noticed = false;
    let mut judge = |found: halocline::Result<[Map; 2]>| match found {
        Err(e) => {
            noticed = true;
            let kinds = [ErrorKind::Corruption, ErrorKind::Unsupported, ErrorKind::Io, ErrorKind::Missing];
            assert!(kinds.contains(&e.kind()), "{what}: an unexpected error: {e:?}");
        }
        Ok(found) => assert!(found == *expected, "{what}: a wrong answer"),
    };
    bounded(what, || judge(options.clone().open_read_only(DIR).and_then(|db| read_all(&db, &known))));
    if writable {
        bounded(what, || judge(options.create(false).open(DIR).and_then(|db| read_all(&db, &known))));
    }
    noticed
}

fn name(path: &Path) -> &str {
    path.file_name().unwrap().to_str().unwrap()
}

/// Bytes of a sound, closed database that say nothing, so that damage to them does none and is not reported:
/// - of the manifest's first page, all but the header. The marks lie there: the older one is void, and a database whose newer
///   one cannot be read is one that was not closed cleanly, as after a crash just then;
/// - in the manifest, the zeros that pad a record to 8 bytes (found here as zeros at the end of one).
fn is_padding(path: &Path, bytes: &[u8], at: usize) -> bool {
    if !name(path).starts_with("MANIFEST") {
        return false;
    }
    match at {
        0..64 => false,
        64..4096 => true,
        _ => {
            let mut record = 4096;
            while record + 16 <= bytes.len() {
                let len = u32::from_le_bytes(bytes[record + 8..record + 12].try_into().unwrap()) as usize;
                let next = record + (16 + len).next_multiple_of(8);
                if at < next {
                    return at >= record + 16 + len;
                }
                record = next;
            }
            false
        }
    }
}

#[test]
fn each_flipped_byte_of_a_closed_database_is_found_and_none_gives_a_wrong_answer() {
    let (files, expected) = clean();
    let total: usize = files.iter().map(|(_, bytes)| bytes.len()).sum();
    let names: Vec<_> = files.iter().map(|(path, bytes)| (name(path), bytes.len())).collect();
    println!("{total} bytes: {names:?}");
    assert!(!names.iter().any(|(name, _)| name.ends_with(".log")), "a closed database has no log");
    let disk = disk_of(&files, true);
    let report = options(&disk).check(DIR).unwrap();
    assert!(report.is_sound(), "{report:?}");
    let step = common::size("HALOCLINE_DAMAGE_STEP", 19) as usize;
    let mut rng = Rng::new(common::size("HALOCLINE_SEED", 1));
    let mut missed = BTreeMap::<String, Vec<usize>>::new();
    let (mut flips, mut harmless) = (0, 0);
    for (path, bytes) in &files {
        // Small files and the ends of the others are done in full.
        let whole = |at: usize| bytes.len() < 300 || at < 64 || at + 300 > bytes.len();
        for at in (0..bytes.len()).filter(|&at| (at + step / 2).is_multiple_of(step) || whole(at)) {
            let bit = rng.below(8) as u8;
            let what = format!("{} with bit {bit} of byte {at} flipped", name(path));
            let mut damaged = bytes.clone();
            damaged[at] ^= 1 << bit;
            disk.write_file(path, &damaged).unwrap();
            let before = disk.ops();
            let report = bounded(&what, || options(&disk).check(DIR));
            assert!(disk.ops() > before);
            assert!(disk.read_file(path).unwrap() == damaged, "{what}: check changed a file");
            let found = match &report {
                Ok(report) => !report.is_sound(),
                Err(_) => true,
            };
            if !found {
                if is_padding(path, bytes, at) {
                    harmless += 1;
                } else {
                    missed.entry(name(path).into()).or_default().push(at);
                }
            }
            // A flip in a table need not be met by reading all entries (a filter's, say), but then the answer is right.
            if flips % 3 == 0 {
                read_damaged(&disk, &what, &expected, false);
            }
            flips += 1;
            disk.write_file(path, bytes).unwrap();
        }
    }
    let left = files_of(&disk);
    assert!(left == files, "checking or reading left something behind");
    println!("{flips} flips, {harmless} of them in bytes that say nothing");
    assert!(missed.is_empty(), "check missed flips at {missed:?}");
}

#[test]
fn each_cut_zeroed_exchanged_or_missing_file_of_a_closed_database_gives_no_wrong_answer() {
    let (files, expected) = clean();
    let mut noticed = [0, 0];
    let mut test = |what: &str, damaged: &Files| {
        let disk = disk_of(damaged, true);
        let report = bounded(what, || options(&disk).check(DIR));
        let found = report.as_ref().map_or(true, |report| !report.is_sound());
        assert!(files_of(&disk) == *damaged, "{what}: check changed a file");
        let met = read_damaged(&disk, what, &expected, true);
        assert!(found || !met, "{what}: reading meets damage that check does not: {report:?}");
        noticed[usize::from(found)] += 1;
        found
    };
    let step = common::size("HALOCLINE_DAMAGE_STEP", 97) as usize;
    for (i, (path, bytes)) in files.iter().enumerate() {
        let near = |at: usize| at < 20 || at + 20 >= bytes.len();
        for len in (0..bytes.len()).filter(|&len| len.is_multiple_of(step) || near(len)) {
            let mut damaged = files.clone();
            damaged[i].1.truncate(len);
            let what = format!("{} cut to {len} of {} bytes", name(path), bytes.len());
            assert!(test(&what, &damaged), "check does not see {what}");
        }
        for start in (0..bytes.len()).step_by(512) {
            let mut damaged = files.clone();
            let end = (start + 512).min(bytes.len());
            damaged[i].1[start..end].fill(0);
            if damaged[i].1 != *bytes {
                let what = format!("{} with zeros at {start}", name(path));
                let found = test(&what, &damaged);
                let meant = (start..end).any(|at| bytes[at] != 0 && !is_padding(path, bytes, at));
                assert!(found || !meant, "check does not see {what}");
            }
        }
        if !bytes.is_empty() {
            let mut damaged = files.clone();
            damaged.remove(i);
            let what = format!("{} removed", name(path));
            assert!(test(&what, &damaged), "check does not see {what}");
            let mut damaged = files.clone();
            damaged[i].1.extend([0; 4096]);
            test(&format!("{} with zeros behind it", name(path)), &damaged);
        }
        for j in 0..i {
            // The lock file's content says nothing.
            if files[j].1 != *bytes && ![name(path), name(&files[j].0)].contains(&"LOCK") {
                let mut damaged = files.clone();
                damaged[i].1 = files[j].1.clone();
                damaged[j].1 = bytes.clone();
                let what = format!("{} and {} exchanged", name(path), name(&files[j].0));
                assert!(test(&what, &damaged), "check does not see {what}");
                // One in place of the other, as a misdirected copy would leave it.
                damaged[j].1 = files[j].1.clone();
                let what = format!("{} in the place of {}", name(&files[j].0), name(path));
                assert!(test(&what, &damaged), "check does not see {what}");
            }
        }
    }
    println!("{} damages that check found, {} that do no harm", noticed[1], noticed[0]);
}

/// A database with a log: tables, then `COMMITS` commits that only the log has, some of them synced.
const COMMITS: u64 = 60;
const SYNCED: u64 = 30;

fn write_of(n: u64) -> (Vec<u8>, Vec<u8>) {
    (
        format!("log{:03}", n % 40).into_bytes(),
        [n.to_le_bytes().to_vec(), common::bytes(n, 50 + n as usize)].concat(),
    )
}

fn with_log(mode: LogMode) -> (Files, Map) {
    let disk = SimVfs::new(SEED);
    let db = options(&disk).open(DIR).unwrap();
    let mut base = Map::new();
    for i in 0..50u64 {
        let (key, value) = (format!("base{i}").into_bytes(), common::bytes(i, 100));
        db.put(&key, &value).unwrap();
        base.insert(key, value);
    }
    db.close().unwrap();
    let db = options(&disk).log_mode(mode).open(DIR).unwrap();
    for n in 1..=COMMITS {
        let (key, value) = write_of(n);
        let mut batch = WriteBatch::new();
        batch.put(&key, &value);
        batch.put(b"n", n.to_le_bytes());
        // Two syncs: the second one makes the mark of the first durable.
        let durability = if n == SYNCED || n == SYNCED + 1 { Durability::Sync } else { Durability::Process };
        db.write_with(&batch, durability).unwrap();
    }
    let files = files_of(&disk.kill());
    (files, base)
}

/// The state after the commits for which `there` holds.
fn state(base: &Map, there: impl Fn(u64) -> bool) -> Map {
    let mut map = base.clone();
    for n in (1..=COMMITS).filter(|n| there(*n)) {
        let (key, value) = write_of(n);
        map.insert(key, value);
        map.insert(b"n".to_vec(), n.to_le_bytes().to_vec());
    }
    map
}

/// Opens a damaged log; what is there, unless that gives an error.
fn open_log(what: &str, files: &Files, same_boot: bool, base: &Map) -> Option<Map> {
    let disk = disk_of(files, same_boot);
    let all = state(base, |_| true);
    let known = [&all, &Map::new()];
    let read_only = bounded(what, || options(&disk).open_read_only(DIR).and_then(|db| read_all(&db, &known)));
    assert!(files_of(&disk) == *files, "{what}: reading only changed a file");
    let found = bounded(what, || options(&disk).open(DIR).and_then(|db| read_all(&db, &known)));
    match (read_only, found) {
        (Ok([read_only, _]), Ok([found, _])) => {
            assert!(read_only == found, "{what}: opened read-only there is something else");
            // And it stays so.
            let again = options(&disk).open(DIR).and_then(|db| read_all(&db, &known));
            assert!(again.unwrap()[0] == found, "{what}: the second time there is something else");
            Some(found)
        }
        (Err(_), Err(_)) => None,
        (read_only, found) => panic!("{what}: read-only {:?}, else {:?}", read_only.err(), found.err()),
    }
}

/// Damages the log of a database that was not closed, byte by byte.
fn damage_log(mode: LogMode) {
    let (files, base) = with_log(mode);
    let logs: Vec<usize> = (0..files.len()).filter(|&i| name(&files[i].0).ends_with(".log")).collect();
    let used = |bytes: &[u8]| bytes.iter().rposition(|b| *b != 0).map_or(0, |at| at + 1);
    for same_boot in [true, false] {
        let whole = open_log("undamaged", &files, same_boot, &base).unwrap();
        assert!(whole == state(&base, |_| true), "undamaged: something is missing");
    }
    let prefixes: Vec<Map> = (0..=COMMITS).map(|n| state(&base, |i| i <= n)).collect();
    let step = common::size("HALOCLINE_DAMAGE_STEP", 41) as usize;
    let mut rng = Rng::new(common::size("HALOCLINE_SEED", 2));
    let (mut errors, mut shorter, mut without) = (0, 0, 0);
    for &i in &logs {
        let bytes = &files[i].1;
        let used = used(bytes);
        for at in (0..used).filter(|&at| at < 128 || at.is_multiple_of(step) && at >= 4096) {
            let mut damaged = files.clone();
            let kind = rng.below(3);
            let what = match kind {
                0 => {
                    damaged[i].1[at..(at + 512).min(used)].fill(0);
                    format!("{mode:?}: {} with zeros from {at}", name(&files[i].0))
                }
                _ => {
                    damaged[i].1[at] ^= 1 << rng.below(8);
                    format!("{mode:?}: {} with byte {at} flipped", name(&files[i].0))
                }
            };
            match open_log(&what, &damaged, false, &base) {
                None => errors += 1,
                Some(found) => {
                    let n = prefixes.iter().position(|prefix| *prefix == found);
                    let n = n.unwrap_or_else(|| panic!("{what}, another boot: not a prefix")) as u64;
                    // Zeros may have taken the marks with them, or the header, which is zeros after a crash that was early.
                    assert!(
                        n >= SYNCED || kind == 0,
                        "{what}, another boot: synced commits are lost without a word, {n} are left"
                    );
                    shorter += u64::from(n < COMMITS);
                }
            }
            match open_log(&what, &damaged, true, &base) {
                None => {}
                Some(found) => {
                    // Each commit whole or not: those that are missing are told by their values.
                    let there = |n: u64| {
                        let (key, value) = write_of(n);
                        let next = n + 40 <= COMMITS && found.get(&key) == Some(&write_of(n + 40).1);
                        next || found.get(&key) == Some(&value)
                    };
                    let expected = state(&base, there);
                    assert!(found == expected, "{what}, same boot: a commit is not whole");
                    without += u64::from(found != prefixes[COMMITS as usize]);
                }
            }
        }
    }
    println!(
        "{mode:?}: {errors} errors, {shorter} shorter prefixes after a reboot; {without} without a commit on the same boot"
    );
    assert!(errors > 0 && shorter > 0);
}

#[test]
fn a_damaged_mapped_log_gives_an_error_or_a_prefix_after_a_reboot() {
    damage_log(LogMode::Mapped);
}

#[test]
fn a_damaged_written_log_gives_an_error_or_a_prefix_after_a_reboot() {
    damage_log(LogMode::Written);
}

#[test]
fn a_log_cut_short_after_a_crash_is_an_error_or_a_prefix() {
    let (files, base) = with_log(LogMode::Mapped);
    let prefixes: Vec<Map> = (0..=COMMITS).map(|n| state(&base, |i| i <= n)).collect();
    // The segment with records in it: the bytes behind the first address are a checksum.
    let begun =
        |(path, bytes): &(PathBuf, Vec<u8>)| name(path).ends_with(".log") && bytes[4104..4112] != [0; 8];
    let i = files.iter().position(begun).unwrap();
    for len in (0..files[i].1.len()).step_by(common::size("HALOCLINE_DAMAGE_STEP", 1009) as usize) {
        let mut damaged = files.clone();
        damaged[i].1.truncate(len);
        let what = format!("{} cut to {len}", name(&files[i].0));
        for same_boot in [true, false] {
            if let Some(found) = open_log(&what, &damaged, same_boot, &base) {
                assert!(prefixes.contains(&found), "{what}: not a prefix");
                // A segment's length is durable before anything is in it: a shorter file is damage.
                assert!(len < 4096, "{what}: is not noticed");
            }
        }
    }
}

#[test]
fn a_crash_of_a_sound_disk_is_never_taken_for_damage() {
    let disk = SimVfs::new(SEED);
    let db = options(&disk).open(DIR).unwrap();
    for n in 1..=300u64 {
        let durability = if n % 20 == 0 { Durability::Sync } else { Durability::Process };
        let mut batch = WriteBatch::new();
        batch.put(format!("{}", n % 50), common::bytes(n, 500));
        db.write_with(&batch, durability).unwrap();
        if n % 10 == 0 {
            for mode in [CrashMode::DropUnsynced, CrashMode::RandomPieces, CrashMode::Torn] {
                let image = disk.crash(n, mode);
                let report = options(&image).check(DIR).unwrap();
                assert!(report.is_sound(), "crash({n}, {mode:?}): {report:?}");
            }
        }
    }
}
