//! What the benchmark in `benches/log.rs` calls: appends to a log, with nothing behind it.

use super::pool::Pool;
use super::record;
use super::segment::{Backing, Full, Segment};
use crate::io::{RealVfs, Vfs};
use crate::sync::{Arc, Mutex};
use std::path::Path;

/// A log that recycles its segments as soon as they are full. Hidden; for benchmarks alone.
pub struct LogBench {
    pool: Arc<Pool>,
    active: Mutex<Arc<Segment>>,
}

impl LogBench {
    /// A log in `dir` with segments of 64 MiB: `mapped`, or written with `pwrite`.
    pub fn new(dir: &Path, mapped: bool) -> LogBench {
        let vfs: Arc<dyn Vfs> = Arc::new(RealVfs);
        let backing = if mapped { Backing::Mapped } else { Backing::Written };
        let pool = Arc::new(Pool::new(vfs, dir, backing, 64 << 20, 1));
        let active = Mutex::new(begin(&pool, 0));
        LogBench { pool, active }
    }

    /// Appends `n` records with a body of `body` bytes each.
    pub fn append(&self, n: usize, body: &[u8]) {
        let len = record::data_len(body.len() as u64);
        let mut segment = self.current();
        for _ in 0..n {
            let at = loop {
                match segment.reserve(len) {
                    Ok(at) => break at,
                    Err(full) => segment = self.rotate(&segment, &full),
                }
            };
            // SAFETY: the room was reserved just now, by this thread.
            unsafe { segment.fill(at, len, body.len(), |room| room.copy_from_slice(body)) }
                .expect("append to the log");
        }
    }

    /// Makes everything durable.
    pub fn sync(&self) {
        self.current().sync().expect("sync the log");
    }

    fn current(&self) -> Arc<Segment> {
        Arc::clone(&self.active.lock().expect("no thread panicked"))
    }

    fn rotate(&self, full_one: &Arc<Segment>, full: &Full) -> Arc<Segment> {
        if let Some(at) = full.seal_at {
            full_one.seal(at).expect("seal a segment");
        }
        let mut active = self.active.lock().expect("no thread panicked");
        if Arc::ptr_eq(&active, full_one) {
            full_one.retire(&self.pool);
            *active = begin(&self.pool, full_one.next_base());
        }
        Arc::clone(&active)
    }
}

fn begin(pool: &Pool, base: u64) -> Arc<Segment> {
    pool.tidy().expect("recycle segments");
    let raw = pool.take(0).expect("make a segment");
    raw.populate();
    Arc::new(Segment::begin(raw, base, [0; 16], 1, 7).expect("begin a segment"))
}
