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
    /// The same when it ended; the run's own threads are in it.
    #[serde(default)]
    pub load_end: f64,
    /// Physical cores; 0 where the system does not say.
    #[serde(default)]
    pub cores: usize,
    /// Bytes of memory that this process may use, if a control group bounds it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_limit_bytes: Option<u64>,
    /// The device under the databases: its model or name, and whether it is a disk that turns.
    #[serde(default)]
    pub device: String,
    /// Share of the processors' time that went to others' processes during the run, from 0 to 1.
    #[serde(default)]
    pub others_share: f64,
    /// Share that the hypervisor gave to other machines.
    #[serde(default)]
    pub steal_share: f64,
}

/// The processors' time at a moment.
#[derive(Clone, Copy, Debug, Default)]
pub struct Snapshot {
    /// In ticks, of all processors: at work, stolen, in all.
    busy: f64,
    stolen: f64,
    all: f64,
    /// Of them this process's and its ended children's.
    own: f64,
}

impl Snapshot {
    /// Now.
    pub fn now() -> Snapshot {
        let (busy, stolen, all) = processor_ticks(&read("/proc/stat"));
        Snapshot { busy, stolen, all, own: own_ticks(&read("/proc/self/stat")) }
    }

    /// Shares since `before`: others' and stolen.
    fn shares_since(&self, before: &Snapshot) -> (f64, f64) {
        let all = self.all - before.all;
        if all <= 0.0 {
            return (0.0, 0.0);
        }
        let others = (self.busy - before.busy) - (self.own - before.own);
        ((others / all).clamp(0.0, 1.0), ((self.stolen - before.stolen) / all).clamp(0.0, 1.0))
    }
}

impl Machine {
    /// Fills in what is known only behind the run, or behind a part of it.
    pub fn end(&mut self, before: &Snapshot) {
        self.load_end = load();
        (self.others_share, self.steal_share) = Snapshot::now().shares_since(before);
    }
}

/// Busy, stolen and all ticks in the first line of `/proc/stat`: user, nice, system, idle, iowait, irq, softirq, steal.
/// Guests' time is within user's.
fn processor_ticks(stat: &str) -> (f64, f64, f64) {
    let line = stat.lines().find_map(|l| l.strip_prefix("cpu ")).unwrap_or("");
    let ticks: Vec<f64> = line.split_whitespace().take(8).filter_map(|t| t.parse().ok()).collect();
    let at = |i: usize| ticks.get(i).copied().unwrap_or(0.0);
    let all: f64 = ticks.iter().sum();
    (all - at(3) - at(4) - at(7), at(7), all)
}

/// Fields 14 to 17 of `/proc/self/stat`: user and system time, of this process and of children that were waited for.
fn own_ticks(stat: &str) -> f64 {
    let behind_name = stat.rsplit(')').next().unwrap_or("");
    behind_name.split_whitespace().skip(11).take(4).filter_map(|t| t.parse::<f64>().ok()).sum()
}

fn load() -> f64 {
    read("/proc/loadavg").split(' ').next().and_then(|l| l.parse().ok()).unwrap_or(0.0)
}

/// Bytes that this process may still write to the file system of `dir`.
pub fn free_bytes(dir: &Path) -> Option<u64> {
    let path = std::ffi::CString::new(dir.as_os_str().as_encoded_bytes()).ok()?;
    // SAFETY: all fields of the structure are numbers, for which zero is a value.
    let mut stat: libc::statvfs = unsafe { std::mem::zeroed() };
    // SAFETY: the path ends with a zero byte, and the structure is this function's own.
    let done = unsafe { libc::statvfs(path.as_ptr(), &raw mut stat) };
    (done == 0).then(|| stat.f_bavail as u64 * stat.f_frsize as u64)
}

/// Pairs of package and core in `/proc/cpuinfo`.
fn cores(cpuinfo: &str) -> usize {
    let mut seen = std::collections::BTreeSet::new();
    let mut package = "";
    for line in cpuinfo.lines() {
        match line.split_once(':').map(|(k, v)| (k.trim(), v.trim())) {
            Some(("physical id", v)) => package = v,
            Some(("core id", v)) => {
                seen.insert((package, v));
            }
            _ => {}
        }
    }
    seen.len()
}

/// The limit of the control group that this process is in, if it has one.
fn memory_limit(memory_bytes: u64) -> Option<u64> {
    let own = read("/proc/self/cgroup");
    let path = |prefix: &str| {
        own.lines().find_map(|l| l.split_once(prefix)).map(|(_, p)| p.trim_start_matches('/').to_string())
    };
    let (one, two) = (path(":memory:").unwrap_or_default(), path("0::").unwrap_or_default());
    [
        format!("/sys/fs/cgroup/{two}/memory.max"),
        "/sys/fs/cgroup/memory.max".into(),
        format!("/sys/fs/cgroup/memory/{one}/memory.limit_in_bytes"),
        "/sys/fs/cgroup/memory/memory.limit_in_bytes".into(),
    ]
    .iter()
    .filter_map(|file| read(file).trim().parse::<u64>().ok())
    .find(|&limit| limit < memory_bytes)
}

/// What `/sys` knows of the block device that holds `dir`.
fn device(dir: &Path) -> String {
    use std::os::unix::fs::MetadataExt;
    let Ok(id) = std::fs::metadata(dir).map(|m| m.dev()) else { return "unknown".into() };
    let (major, minor) = (libc::major(id), libc::minor(id));
    let Ok(block) = fs::canonicalize(format!("/sys/dev/block/{major}:{minor}")) else {
        return "no block device".into();
    };
    // A partition's folder lies in its disk's.
    let disk = if block.join("queue").exists() { block.clone() } else { block.join("..") };
    let file = |name: &str| read(&disk.join(name).to_string_lossy()).trim().to_string();
    let name = disk.canonicalize().ok().and_then(|d| Some(d.file_name()?.to_string_lossy().into_owned()));
    let kind = match file("queue/rotational").as_str() {
        "0" => "solid state, as the system says",
        "1" => "turning, as the system says",
        _ => "kind unknown",
    };
    format!("{} {} ({kind})", name.unwrap_or_default(), file("device/model")).replace("  ", " ")
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
    let memory_bytes = memory.split(' ').next().and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0) * 1024;
    let cpuinfo = read("/proc/cpuinfo");
    Machine {
        cpu: field(&cpuinfo, "model name"),
        cores: cores(&cpuinfo),
        memory_limit_bytes: memory_limit(memory_bytes),
        device: device(dir),
        threads: std::thread::available_parallelism().map_or(0, usize::from),
        memory_bytes,
        kernel: read("/proc/version").split_whitespace().take(3).collect::<Vec<_>>().join(" "),
        file_system: file_system(dir),
        governor: match read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor").trim() {
            "" => "not shown".into(),
            g => g.into(),
        },
        load: load(),
        ..Machine::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_of_the_processors_leave_the_run_itself_out() {
        let stat = |user: u32, idle: u32, steal: u32| {
            format!("cpu  {user} 0 100 {idle} 50 0 0 {steal} 7 0\ncpu0 1 2\n")
        };
        let at = |user, idle, steal, own| {
            let (busy, stolen, all) = processor_ticks(&stat(user, idle, steal));
            Snapshot { busy, stolen, all, own }
        };
        let (before, after) = (at(1000, 1000, 0, 500.0), at(1600, 1300, 100, 1000.0));
        // 1000 ticks went by: 600 busy, 500 of them the run's own, 100 stolen.
        assert_eq!(after.shares_since(&before), (0.1, 0.1));
        assert_eq!(after.shares_since(&after), (0.0, 0.0));
        let own = "12 (a (b) c) S 1 2 3 4 5 6 7 8 9 10 40 2 300 4000 20 0";
        assert_eq!(own_ticks(own), 4342.0);
    }

    #[test]
    fn cores_are_counted_once() {
        let two = "processor : 0\nphysical id : 0\ncore id : 0\n\nprocessor : 1\nphysical id : 0\ncore id : 0\n\n\
                   processor : 2\nphysical id : 1\ncore id : 0\n";
        assert_eq!((cores(two), cores("")), (2, 0));
    }

    #[test]
    fn this_machine_is_described() {
        let here = here(Path::new("/"));
        assert!(here.threads > 0 && here.memory_bytes > 1 << 20);
        assert!(free_bytes(Path::new("/")).is_some());
        assert!(free_bytes(Path::new("/nonexistent/folder")).is_none());
    }
}
