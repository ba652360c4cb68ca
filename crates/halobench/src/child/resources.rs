//! What this process used, from `getrusage` and `/proc`, and what its folder holds.

use crate::spec::{Memory, Space, Usage};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How often memory is sampled.
const PERIOD: Duration = Duration::from_millis(50);
/// Seconds between two points of a series, in its first minute and in one that is longer.
const FINE: f64 = 0.1;
const COARSE: f64 = 1.0;
/// Seconds for which a series is fine.
const MINUTE: f64 = 60.0;

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

/// Samples memory and progress until `stop`; the peaks and the series. Sets `over` after `seconds`, unless these are 0.
pub fn sample(
    progress: &[Progress],
    stop: &AtomicBool,
    seconds: f64,
    over: &AtomicBool,
) -> (Memory, Vec<(f64, u64)>) {
    let start = Instant::now();
    let mut peak = memory();
    let mut series = Series::default();
    let done = || progress.iter().map(|p| p.0.load(Ordering::Relaxed)).sum::<u64>();
    while !stop.load(Ordering::Acquire) {
        let elapsed = start.elapsed().as_secs_f64();
        let left = if seconds > 0.0 { seconds - elapsed } else { f64::INFINITY };
        if left <= 0.0 {
            over.store(true, Ordering::Relaxed);
        }
        std::thread::park_timeout(if left > 0.0 && left < PERIOD.as_secs_f64() {
            Duration::from_secs_f64(left)
        } else {
            PERIOD
        });
        let now = memory();
        peak.anon = peak.anon.max(now.anon);
        peak.file = peak.file.max(now.file);
        peak.shmem = peak.shmem.max(now.shmem);
        series.at(start.elapsed().as_secs_f64(), done);
    }
    series.points.push((start.elapsed().as_secs_f64(), done()));
    (peak, series.points)
}

/// Points at even distances: fine ones, until there are too many.
#[derive(Default)]
struct Series {
    points: Vec<(f64, u64)>,
    /// Points taken, of this fineness.
    taken: u64,
    coarse: bool,
}

impl Series {
    /// It is now; takes a point if one is due.
    fn at(&mut self, now: f64, done: impl Fn() -> u64) {
        if !self.coarse && now > MINUTE {
            // The last point of each second stays.
            let mut kept: Vec<(f64, u64)> = Vec::new();
            for point in self.points.drain(..) {
                match kept.last_mut() {
                    Some(last) if last.0.floor() == point.0.floor() && last.0 >= COARSE => {}
                    _ if point.0 < COARSE => {}
                    _ => kept.push(point),
                }
            }
            (self.points, self.coarse) = (kept, true);
            self.taken = (now / COARSE) as u64 - 1;
        }
        let step = if self.coarse { COARSE } else { FINE };
        if now >= (self.taken + 1) as f64 * step {
            self.points.push((now, done()));
            self.taken = (now / step) as u64;
        }
    }
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
    fn a_series_is_fine_for_a_minute_and_coarse_when_it_is_longer() {
        let mut series = Series::default();
        let run = |series: &mut Series, from: u32, to: u32| {
            for i in from..to {
                let now = f64::from(i) * 0.05 + 0.01;
                series.at(now, || u64::from(i));
            }
        };
        run(&mut series, 0, 1198);
        assert!((590..=600).contains(&series.points.len()), "{}", series.points.len());
        assert!(series.points.windows(2).all(|w| w[0].0 < w[1].0 && w[0].1 < w[1].1));
        run(&mut series, 1198, 2400);
        assert!((117..=121).contains(&series.points.len()), "{}", series.points.len());
        assert!(series.points.windows(2).all(|w| (0.8..1.2).contains(&(w[1].0 - w[0].0))));
        assert!(series.points.iter().all(|&(t, done)| (t - f64::from(done as u32) * 0.05).abs() < 0.02));
    }

    #[test]
    fn fields_are_found_by_their_whole_name() {
        let io = "wchar: 5\nwrite_bytes: 7\ncancelled_write_bytes: 9\n";
        assert_eq!(field(io, "write_bytes:"), 7);
        assert_eq!(field(io, "cancelled_write_bytes:"), 9);
        assert_eq!(field(io, "absent:"), 0);
    }
}
