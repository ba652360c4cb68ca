//! What this process used, from `getrusage` and `/proc`, and what its folder holds.

use crate::spec::{Memory, Space, Usage};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How often memory is sampled.
const PERIOD: Duration = Duration::from_millis(50);

/// The counters now.
pub fn usage() -> Usage {
    // SAFETY: the struct is plain numbers, filled by the call.
    let r = unsafe {
        let mut r: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &mut r);
        r
    };
    let seconds = |t: libc::timeval| t.tv_sec as f64 + t.tv_usec as f64 * 1e-6;
    let io = fs::read_to_string("/proc/self/io").unwrap_or_default();
    Usage {
        cpu_user_s: seconds(r.ru_utime),
        cpu_system_s: seconds(r.ru_stime),
        switches_voluntary: r.ru_nvcsw as u64,
        switches_involuntary: r.ru_nivcsw as u64,
        read_bytes: field(&io, "read_bytes:"),
        write_bytes: field(&io, "write_bytes:"),
        cancelled_write_bytes: field(&io, "cancelled_write_bytes:"),
    }
}

/// What was used since `start`.
pub fn usage_since(start: &Usage) -> Usage {
    let now = usage();
    Usage {
        cpu_user_s: now.cpu_user_s - start.cpu_user_s,
        cpu_system_s: now.cpu_system_s - start.cpu_system_s,
        switches_voluntary: now.switches_voluntary - start.switches_voluntary,
        switches_involuntary: now.switches_involuntary - start.switches_involuntary,
        read_bytes: now.read_bytes - start.read_bytes,
        write_bytes: now.write_bytes - start.write_bytes,
        cancelled_write_bytes: now.cancelled_write_bytes - start.cancelled_write_bytes,
    }
}

/// The number behind `name` at the start of a line.
fn field(text: &str, name: &str) -> u64 {
    text.lines()
        .find_map(|line| line.strip_prefix(name)?.split_whitespace().next()?.parse().ok())
        .unwrap_or(0)
}

/// Resident memory now.
fn memory() -> Memory {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let kib = |name| field(&status, name) * 1024;
    Memory { anon: kib("RssAnon:"), file: kib("RssFile:"), shmem: kib("RssShmem:"), harness: 0 }
}

/// What a folder and those below it hold.
pub fn space(dir: &Path) -> Space {
    let mut sum = Space::default();
    let mut todo = vec![dir.to_path_buf()];
    while let Some(dir) = todo.pop() {
        // A file that a merge removes meanwhile is no error.
        for entry in fs::read_dir(&dir).into_iter().flatten().flatten() {
            match entry.metadata() {
                Ok(m) if m.is_dir() => todo.push(entry.path()),
                Ok(m) => {
                    sum.allocated += m.blocks() * 512;
                    sum.apparent += m.len();
                    sum.files += 1;
                }
                Err(_) => {}
            }
        }
    }
    sum
}

/// One thread's count of operations done, on a cache line of its own.
#[repr(align(128))]
#[derive(Default)]
pub struct Progress(AtomicU64);

impl Progress {
    /// So many are done.
    #[inline]
    pub fn set(&self, done: u64) {
        self.0.store(done, Ordering::Relaxed);
    }
}

/// Samples memory and progress until `stop`; the peaks and the series, a point a second and one at the end.
pub fn sample(progress: &[Progress], stop: &AtomicBool) -> (Memory, Vec<(f64, u64)>) {
    let start = Instant::now();
    let mut peak = memory();
    let mut series = Vec::new();
    let mut next = 1.0;
    let done = || progress.iter().map(|p| p.0.load(Ordering::Relaxed)).sum::<u64>();
    while !stop.load(Ordering::Acquire) {
        std::thread::park_timeout(PERIOD);
        let now = memory();
        peak.anon = peak.anon.max(now.anon);
        peak.file = peak.file.max(now.file);
        peak.shmem = peak.shmem.max(now.shmem);
        let elapsed = start.elapsed().as_secs_f64();
        if elapsed >= next {
            series.push((elapsed, done()));
            next += 1.0;
        }
    }
    series.push((start.elapsed().as_secs_f64(), done()));
    (peak, series)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_read() {
        let before = usage();
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("a"), vec![1; 100_000]).unwrap();
        fs::create_dir(dir.path().join("b")).unwrap();
        fs::write(dir.path().join("b/c"), b"xyz").unwrap();
        let s = space(dir.path());
        assert_eq!((s.apparent, s.files), (100_003, 2));
        assert!(s.allocated > 0);
        let used = usage_since(&before);
        assert!(used.cpu_user_s >= 0.0);
        assert!(memory().anon > 0);
    }

    #[test]
    fn fields_are_found_by_their_whole_name() {
        let io = "wchar: 5\nwrite_bytes: 7\ncancelled_write_bytes: 9\n";
        assert_eq!(field(io, "write_bytes:"), 7);
        assert_eq!(field(io, "cancelled_write_bytes:"), 9);
        assert_eq!(field(io, "absent:"), 0);
    }
}
