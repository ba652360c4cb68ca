//! On what machine a run was made.

use serde::{Deserialize, Serialize};
use std::fs;
use std::path::Path;

/// A machine's fingerprint.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Machine {
    /// The processor's name.
    pub cpu: String,
    /// Threads it offers to this process.
    pub threads: usize,
    /// Bytes of memory.
    pub memory_bytes: u64,
    /// Kernel and version.
    pub kernel: String,
    /// The file system under the databases, and its device.
    pub file_system: String,
    /// How the processor's frequency is governed, where it says.
    pub governor: String,
    /// Load average of the last minute when the run began: above 1 a thread, figures are noise.
    pub load: f64,
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// The line's rest behind the first `name:`.
fn field(text: &str, name: &str) -> String {
    text.lines()
        .find_map(|l| l.strip_prefix(name)?.trim_start().strip_prefix(':'))
        .map_or_else(|| "unknown".into(), |v| v.trim().to_string())
}

/// The mount that holds `dir`: the longest mount point above it.
fn file_system(dir: &Path) -> String {
    let dir = dir.canonicalize().unwrap_or_else(|_| dir.to_path_buf());
    let mounts = read("/proc/self/mounts");
    mounts
        .lines()
        .filter_map(|line| {
            let mut f = line.split(' ');
            let (device, point, kind) = (f.next()?, f.next()?, f.next()?);
            dir.starts_with(point).then(|| (point.len(), format!("{kind} on {device}")))
        })
        .max_by_key(|(len, _)| *len)
        .map_or_else(|| "unknown".into(), |(_, words)| words)
}

/// This machine, for databases in `dir`.
pub fn here(dir: &Path) -> Machine {
    let memory = field(&read("/proc/meminfo"), "MemTotal");
    Machine {
        cpu: field(&read("/proc/cpuinfo"), "model name"),
        threads: std::thread::available_parallelism().map_or(0, usize::from),
        memory_bytes: memory.split(' ').next().and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0) * 1024,
        kernel: read("/proc/version").split_whitespace().take(3).collect::<Vec<_>>().join(" "),
        file_system: file_system(dir),
        governor: match read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor").trim() {
            "" => "not shown".into(),
            g => g.into(),
        },
        load: read("/proc/loadavg").split(' ').next().and_then(|l| l.parse().ok()).unwrap_or(0.0),
    }
}
