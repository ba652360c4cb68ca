//! The log on the simulated disk: what recovery finds after a kill, after power loss, and after damage.

use super::pool::{Pool, path_of};
use super::record;
use super::recovery::{self, Place, Recovered};
use super::segment::{Backing, FIRST, Segment};
use super::slots::InFlight;
use super::sync::GroupSync;
use crate::entry::{self, Kind};
use crate::io::Vfs;
use crate::io::sim::{CrashMode, SimVfs};
use crate::sync::Arc;
use crate::{ErrorKind, Result};
use std::path::Path;

const DIR: &str = "/db";
const DATABASE: u64 = 42;

/// A log with segments of 64 KiB, written by one thread.
struct Log {
    disk: SimVfs,
    pool: Arc<Pool>,
    active: Arc<Segment>,
    sealed: Vec<Arc<Segment>>,
    group: GroupSync,
    in_flight: InFlight,
    next: u32,
}

impl Log {
    fn new(disk: &SimVfs, backing: Backing, base: u64, next_number: u32) -> Log {
        disk.create_dir_all(Path::new(DIR)).unwrap();
        let vfs: Arc<dyn Vfs> = Arc::new(disk.clone());
        let pool = Arc::new(Pool::new(vfs, Path::new(DIR), backing, 64 << 10, next_number));
        let active = Self::begin(disk, &pool, base);
        let group = GroupSync::default();
        group.add(Arc::clone(&active));
        Log {
            disk: disk.clone(),
            pool,
            active,
            sealed: Vec::new(),
            group,
            in_flight: InFlight::new(),
            next: 0,
        }
    }

    fn begin(disk: &SimVfs, pool: &Pool, base: u64) -> Arc<Segment> {
        let raw = pool.take(0).unwrap();
        Arc::new(Segment::begin(raw, base, disk.boot_id().unwrap(), DATABASE, disk.random()).unwrap())
    }

    fn reserve(&mut self, len: u64) -> u64 {
        loop {
            match self.active.reserve(len) {
                Ok(at) => return at,
                Err(full) => {
                    self.active.seal(full.seal_at.unwrap()).unwrap();
                    let next = Self::begin(&self.disk, &self.pool, self.active.next_base());
                    self.group.add(Arc::clone(&next));
                    self.sealed.push(std::mem::replace(&mut self.active, next));
                }
            }
        }
    }

    /// Appends a record whose one entry has the next number as its key; the address behind it.
    fn append(&mut self, value_len: usize) -> u64 {
        let body = entry::encoded_len(4, value_len);
        let len = record::data_len(body as u64);
        let at = self.reserve(len);
        let key = self.next.to_be_bytes();
        self.next += 1;
        // SAFETY: reserved just above.
        let lsn = unsafe {
            self.active.fill(at, len, body, |room| {
                entry::encode(room, Kind::Put, &[], &key, &vec![7; value_len]);
            })
        };
        lsn.unwrap() + len
    }

    fn sync(&self) {
        self.group.wait(self.active.position(), &self.in_flight, || Ok(())).unwrap();
    }
}

fn recover(disk: &SimVfs, floor: u64) -> Result<Recovered> {
    recovery::recover(&Place {
        vfs: disk,
        dir: Path::new(DIR),
        database: DATABASE,
        floor,
        closed: None,
        boot: disk.boot_id().unwrap(),
        read_only: false,
    })
}

/// The numbers of the recovered records, in order.
fn numbers(recovered: &Recovered) -> Vec<u32> {
    let mut found = Vec::new();
    for replayed in &recovered.segments {
        let memory = replayed.segment.memory();
        for &offset in &replayed.offsets {
            // SAFETY: nobody writes to a recovered segment.
            let bytes = unsafe { memory.slice(offset as usize, memory.len() - offset as usize) };
            let entry = entry::decode(bytes).unwrap();
            found.push(u32::from_be_bytes(entry.key.try_into().unwrap()));
        }
    }
    found
}

fn both(test: impl Fn(Backing)) {
    test(Backing::Mapped);
    test(Backing::Written);
}

/// The log's mode as recovery will choose it.
fn disk_for(backing: Backing, seed: u64) -> SimVfs {
    let disk = SimVfs::new(seed);
    disk.set_mapped_writes(backing == Backing::Mapped);
    disk
}

#[test]
fn after_a_kill_everything_that_was_finished_is_there() {
    both(|backing| {
        let disk = disk_for(backing, 1);
        let mut log = Log::new(&disk, backing, 0, 1);
        for i in 0..2000 {
            log.append(i % 200);
        }
        assert!(log.sealed.len() > 2, "several segments");
        let recovered = recover(&disk.kill(), 0).unwrap();
        assert_eq!(numbers(&recovered), (0..2000).collect::<Vec<_>>());
        assert!(recovered.next_base >= log.active.position());
    });
}

#[test]
fn a_room_that_a_killed_writer_left_empty_is_passed_over_and_stays_so_after_a_power_loss() {
    both(|backing| {
        let disk = disk_for(backing, 2);
        let mut log = Log::new(&disk, backing, 0, 1);
        log.append(10);
        log.reserve(64);
        log.append(10);
        log.reserve(4000);
        log.append(10);
        let killed = disk.kill();
        let recovered = recover(&killed, 0).unwrap();
        assert_eq!(numbers(&recovered), [0, 1, 2]);
        // The gaps were mended durably: now the power fails.
        for seed in 0..8 {
            for mode in [CrashMode::DropUnsynced, CrashMode::RandomPieces, CrashMode::Torn] {
                assert_eq!(numbers(&recover(&killed.crash(seed, mode), 0).unwrap()), [0, 1, 2]);
            }
        }
    });
}

#[test]
fn after_a_power_loss_a_prefix_is_there_and_all_that_was_synced() {
    both(|backing| {
        for seed in 0..200 {
            let disk = disk_for(backing, seed);
            let mut log = Log::new(&disk, backing, 0, 1);
            let synced = 100 + seed as u32 * 7 % 900;
            for i in 0..synced {
                log.append(i as usize % 200);
            }
            log.sync();
            for i in 0..500 {
                log.append(i % 200);
            }
            let mode = [CrashMode::DropUnsynced, CrashMode::RandomPieces, CrashMode::Torn][seed as usize % 3];
            let crashed = disk.crash(seed, mode);
            let recovered = recover(&crashed, 0).unwrap();
            let found = numbers(&recovered);
            assert_eq!(found, (0..found.len() as u32).collect::<Vec<_>>(), "a prefix, seed {seed}");
            assert!(found.len() as u32 >= synced, "seed {seed}: {} of {synced}", found.len());
            // What was cut off never comes back, whatever happens next.
            let mut next = Log::new(&crashed, backing, recovered.next_base, recovered.next_number);
            next.next = 10_000;
            next.append(5);
            next.sync();
            for again in [crashed.kill(), crashed.crash(seed, CrashMode::RandomPieces)] {
                let mut expected = found.clone();
                expected.push(10_000);
                assert_eq!(numbers(&recover(&again, 0).unwrap()), expected, "seed {seed}");
            }
        }
    });
}

#[test]
fn what_an_earlier_lap_left_in_a_recycled_segment_is_never_replayed() {
    both(|backing| {
        let disk = disk_for(backing, 4);
        let mut log = Log::new(&disk, backing, 0, 1);
        while log.sealed.len() < 3 {
            log.append(100);
        }
        let floor = log.active.base();
        log.group.forget_below(floor);
        for segment in log.sealed.drain(..) {
            segment.retire(&log.pool);
        }
        log.pool.tidy().unwrap();
        let kept = log.next;
        // These go into recycled files.
        while log.sealed.len() < 2 {
            log.append(100);
        }
        let found = numbers(&recover(&disk.kill(), floor).unwrap());
        let first = found[0];
        assert!(first <= kept);
        assert_eq!(found, (first..log.next).collect::<Vec<_>>());
    });
}

#[test]
fn damage_below_a_durable_address_is_an_error_and_not_a_shorter_log() {
    both(|backing| {
        let disk = disk_for(backing, 5);
        let mut log = Log::new(&disk, backing, 0, 1);
        for _ in 0..50 {
            log.append(100);
        }
        log.sync();
        for _ in 0..5 {
            log.append(100);
        }
        log.sync();
        let path = path_of(Path::new(DIR), 1);
        for crashed in [disk.kill(), disk.crash(1, CrashMode::DropUnsynced)] {
            let mut bytes = crashed.read_file(&path).unwrap();
            bytes[FIRST as usize + 3000] ^= 1;
            crashed.write_file(&path, &bytes).unwrap();
            let error = recover(&crashed, 0).err().expect("damage is found");
            assert_eq!(error.kind(), ErrorKind::Corruption);
            assert_eq!(error.path(), Some(&*path));
            assert!(
                error.offset().is_some_and(|at| at <= FIRST + 3000 && at + 200 > FIRST + 3000),
                "{error}"
            );
        }
    });
}

#[test]
fn a_damaged_header_or_a_cut_file_is_an_error() {
    let disk = disk_for(Backing::Mapped, 6);
    let mut log = Log::new(&disk, Backing::Mapped, 0, 1);
    log.append(100);
    log.sync();
    let path = path_of(Path::new(DIR), 1);
    let whole = disk.kill().read_file(&path).unwrap();
    for at in 0..128 {
        let disk = disk.kill();
        let mut bytes = whole.clone();
        bytes[at] ^= 0x40;
        disk.write_file(&path, &bytes).unwrap();
        assert_eq!(
            recover(&disk, 0).err().expect("damage is found").kind(),
            ErrorKind::Corruption,
            "byte {at}"
        );
    }
    let cut = disk.kill();
    cut.write_file(&path, &whole[..whole.len() - 4096]).unwrap();
    assert_eq!(recover(&cut, 0).err().expect("the cut is found").kind(), ErrorKind::Corruption);
}

#[test]
fn a_segment_that_was_begun_without_the_seal_before_it_is_damage() {
    let disk = disk_for(Backing::Mapped, 7);
    let mut log = Log::new(&disk, Backing::Mapped, 0, 1);
    while log.sealed.is_empty() {
        log.append(1000);
    }
    let killed = disk.kill();
    let path = path_of(Path::new(DIR), 1);
    let mut bytes = killed.read_file(&path).unwrap();
    let end = log.sealed[0].used() as usize;
    bytes[end..end + record::SMALL].fill(0);
    killed.write_file(&path, &bytes).unwrap();
    assert_eq!(recover(&killed, 0).err().expect("the missing seal is found").kind(), ErrorKind::Corruption);
}

#[test]
fn a_failed_sync_acknowledges_nothing_and_is_not_tried_again() {
    use crate::io::sim::{Fault, FaultFilter, FaultKind, Op};
    let disk = disk_for(Backing::Mapped, 8);
    let mut log = Log::new(&disk, Backing::Mapped, 0, 1);
    let end = log.append(100);
    let matching = FaultFilter { ops: vec![Op::Sync], ..FaultFilter::default() };
    disk.inject(Fault { kind: FaultKind::Eio, at: 1, forever: false, matching });
    assert!(log.group.wait(end, &log.in_flight, || Ok(())).is_err());
    let error = log.group.wait(end, &log.in_flight, || Ok(())).expect_err("the failure stays");
    assert_eq!(error.kind(), ErrorKind::Halted);
}

#[test]
fn committers_from_many_threads_share_syncs() {
    let disk = disk_for(Backing::Mapped, 9);
    let log = Log::new(&disk, Backing::Mapped, 0, 1);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..50 {
                    let entered = log.in_flight.enter(log.active.position());
                    let at = log.active.reserve(64).ok().unwrap();
                    // SAFETY: reserved just above.
                    let lsn = unsafe { log.active.fill(at, 64, 48, |room| room.fill(0)) }.unwrap();
                    drop(entered);
                    log.group.wait(lsn + 64, &log.in_flight, || Ok(())).unwrap();
                    assert!(log.group.durable() >= lsn + 64);
                }
            });
        }
    });
    assert!(log.group.syncs() <= 200);
}

#[test]
fn damage_in_a_sealed_segment_behind_its_last_mark_is_found_by_the_marks_of_the_next() {
    both(|backing| {
        let disk = disk_for(backing, 10);
        let mut log = Log::new(&disk, backing, 0, 1);
        while log.sealed.is_empty() {
            log.append(1000);
        }
        log.append(10);
        log.sync();
        log.append(10);
        log.sync();
        // Everything so far is durable, and a mark in the second segment says so; now the first one decays.
        let path = path_of(Path::new(DIR), 1);
        let crashed = disk.crash(1, CrashMode::DropUnsynced);
        let mut bytes = crashed.read_file(&path).unwrap();
        bytes[FIRST as usize + 30_000] ^= 1;
        crashed.write_file(&path, &bytes).unwrap();
        match recover(&crashed, 0) {
            Err(e) => assert_eq!(e.kind(), ErrorKind::Corruption),
            Ok(found) => panic!("{} of {} durable records, and no error", numbers(&found).len(), log.next),
        }
    });
}

#[test]
fn offsets_in_a_segment_for_a_large_batch_fit_in_32_bits() {
    let disk = SimVfs::new(11);
    for need in [(2u64 << 30) + (1 << 20) - 64, (3 << 30) - 64, record::MAX + 16] {
        let pool = Pool::new(Arc::new(disk.clone()), Path::new(DIR), Backing::Anonymous, 64 << 20, 1);
        let raw = pool.take(need).unwrap();
        assert!(Segment::capacity_of(raw.len()) >= need);
        assert!(raw.len() <= 1 << 32, "{} bytes for a record of {need}", raw.len());
    }
}

#[test]
fn an_entry_of_a_later_version_or_of_no_family_is_an_error_that_says_where() {
    let put = |kind: Kind, key: &[u8]| {
        let disk = disk_for(Backing::Mapped, 10);
        let mut log = Log::new(&disk, Backing::Mapped, 0, 1);
        log.append(10);
        let body = entry::encoded_len(key.len(), 3);
        let len = record::data_len(body as u64);
        let at = log.reserve(len);
        let fill = |room: &mut [u8]| {
            entry::encode(room, kind, &[], key, b"abc");
        };
        // SAFETY: reserved just above.
        unsafe { log.active.fill(at, len, body, fill) }.unwrap();
        let error = recover(&disk.kill(), 0).err().expect("it is refused");
        assert_eq!(error.path(), Some(&*path_of(Path::new(DIR), 1)));
        assert_eq!(error.offset(), Some(at + record::HEADER as u64));
        error.kind()
    };
    for kind in [Kind::Merge, Kind::RangeDelete, Kind::LargeValue] {
        assert_eq!(put(kind, &[0, 1]), ErrorKind::Unsupported);
    }
    assert_eq!(put(Kind::Put, &[]), ErrorKind::Corruption);
    assert_eq!(put(Kind::Delete, &[0xFF, 0, 0, 1]), ErrorKind::Corruption);
}
