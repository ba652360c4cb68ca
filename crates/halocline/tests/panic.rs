//! A panic in a background thread: writes fail with its message, reads go on, and reopening loses nothing.

use halocline::io::sim::SimVfs;
use halocline::{Db, Durability, ErrorKind, LogMode, Options};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

fn open(disk: &SimVfs) -> Db {
    let options = Options::new().vfs(Arc::new(disk.clone())).write_buffer(64 << 10).log_mode(LogMode::Mapped);
    options.durability(Durability::Process).open("/db").unwrap()
}

/// Lets the next disk operation of a thread whose name begins with `thread` panic, and writes until that is told.
fn a_panic_in(thread: &'static str) {
    let disk = SimVfs::new(1);
    let db = open(&disk);
    let panics = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&panics);
    disk.set_observer(Some(Arc::new(move |_: &SimVfs, _| {
        if std::thread::current().name().is_some_and(|name| name.starts_with(thread)) {
            counted.fetch_add(1, Ordering::SeqCst);
            panic!("planted in {thread}");
        }
    })));
    let mut acknowledged = 0u32;
    let error = loop {
        match db.put(acknowledged.wrapping_mul(2_654_435_761).to_be_bytes(), [7; 1000]) {
            Ok(()) => acknowledged += 1,
            Err(e) => break e,
        }
        assert!(acknowledged < 200_000, "{thread}: the panic was never told");
    };
    assert_eq!(error.kind(), ErrorKind::Halted);
    assert!(error.to_string().contains(&format!("planted in {thread}")), "{error}");
    assert!(panics.load(Ordering::SeqCst) > 0);
    let all_there = |db: &Db| {
        for i in 0..acknowledged {
            let value = db.get(i.wrapping_mul(2_654_435_761).to_be_bytes()).unwrap();
            assert!(value.is_some_and(|v| v == [7; 1000]), "{thread}: commit {i} of {acknowledged}");
        }
    };
    all_there(&db);
    disk.set_observer(None);
    assert!(db.close().is_err(), "a close that could not flush says so");
    drop(db);
    all_there(&open(&disk));
}

#[test]
fn a_panic_in_a_flush_thread_stops_writes_and_loses_nothing() {
    a_panic_in("halocline-flush");
}

#[test]
fn a_panic_in_a_merge_thread_stops_writes_and_loses_nothing() {
    a_panic_in("halocline-merge");
}

#[test]
fn a_panic_in_the_helper_stops_writes_and_loses_nothing() {
    a_panic_in("halocline-help");
}
