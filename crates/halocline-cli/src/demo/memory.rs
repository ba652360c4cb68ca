//! Another process's peak memory, sampled from `/proc`: anonymous memory is what it costs the machine; mapped file
//! pages can be dropped at any time.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// The highest values seen, in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Peak {
    pub anonymous: u64,
    pub file: u64,
}

/// Samples a process until told to stop.
pub struct Sampler {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Peak>,
}

impl Sampler {
    /// Begins to sample the process, every 10 ms.
    pub fn start(process: u32) -> Sampler {
        let stop = Arc::new(AtomicBool::new(false));
        let thread = thread::spawn({
            let stop = Arc::clone(&stop);
            move || {
                let path = format!("/proc/{process}/status");
                let mut peak = Peak::default();
                while !stop.load(Ordering::Relaxed) {
                    if let Ok(status) = fs::read_to_string(&path) {
                        let now = parse(&status);
                        peak.anonymous = peak.anonymous.max(now.anonymous);
                        peak.file = peak.file.max(now.file);
                    }
                    thread::sleep(Duration::from_millis(10));
                }
                peak
            }
        });
        Sampler { stop, thread }
    }

    /// Stops, and returns the peak.
    pub fn finish(self) -> Peak {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap_or_default()
    }
}

fn parse(status: &str) -> Peak {
    let field = |name: &str| {
        status
            .lines()
            .find_map(|line| line.strip_prefix(name)?.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok())
            .unwrap_or(0)
            * 1024
    };
    Peak { anonymous: field("RssAnon:"), file: field("RssFile:") + field("RssShmem:") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_s_fields_are_read() {
        let peak = parse("Name:\tx\nRssAnon:\t    1234 kB\nRssFile:\t      10 kB\nRssShmem:\t       2 kB\n");
        assert_eq!((peak.anonymous, peak.file), (1234 * 1024, 12 * 1024));
    }

    #[test]
    fn a_process_is_sampled() {
        let sampler = Sampler::start(std::process::id());
        thread::sleep(Duration::from_millis(50));
        assert!(sampler.finish().anonymous > 0);
    }
}
