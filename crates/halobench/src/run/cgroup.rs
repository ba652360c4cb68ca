//! A memory limit for a child and all that it starts: a control group of its own, where this process may make one.
//!
//! The limit counts page cache, so that an engine that maps its files cannot borrow the rest of the machine. Nothing of
//! the system's own settings is changed; the group goes when its [`Group`] is dropped, and those that a killed run left
//! behind go with the next one made.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

const PREFIX: &str = "halobench-";

/// The two interfaces of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

impl Version {
    fn limit_file(self) -> &'static str {
        match self {
            Version::One => "memory.limit_in_bytes",
            Version::Two => "memory.max",
        }
    }

    fn peak_file(self) -> &'static str {
        match self {
            Version::One => "memory.max_usage_in_bytes",
            Version::Two => "memory.peak",
        }
    }
}

/// A control group with a memory limit.
#[derive(Debug)]
pub struct Group {
    dir: PathBuf,
    version: Version,
}

impl Group {
    /// A group of at most `limit` bytes. Fails, in words, where none may be made.
    pub fn new(limit: u64) -> Result<Group, String> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("{PREFIX}{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let mut why = "no memory controller is mounted".to_string();
        for (parent, version) in parents() {
            remove_stale(&parent);
            match make(&parent.join(&name), version, limit) {
                Ok(group) => return Ok(group),
                Err(e) => why = e,
            }
        }
        Err(format!("memory limits are not permitted here ({why})"))
    }

    /// A command that joins the group, then becomes `program`.
    pub fn command(&self, program: &Path, args: &[impl AsRef<OsStr>]) -> Command {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "echo $$ > \"$0\" && exec \"$@\""]).arg(self.dir.join("cgroup.procs"));
        command.arg(program).args(args);
        command
    }

    /// The most bytes it held at once.
    pub fn peak(&self) -> Option<u64> {
        fs::read_to_string(self.dir.join(self.version.peak_file())).ok()?.trim().parse().ok()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // The kernel takes a moment to see that the last process is gone.
        for _ in 0..50 {
            if fs::remove_dir(&self.dir).is_ok() || !self.dir.exists() {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

fn make(dir: &Path, version: Version, limit: u64) -> Result<Group, String> {
    fs::create_dir(dir).map_err(|e| format!("creating {}: {e}", dir.display()))?;
    let group = Group { dir: dir.into(), version };
    let write = |file: &str, text: &str| {
        let path = dir.join(file);
        fs::write(&path, text).map_err(|e| format!("writing {}: {e}", path.display()))
    };
    write(version.limit_file(), &limit.to_string())?;
    // No swap, where there is any: these files are missing where there is none.
    let _ = match version {
        Version::One => write("memory.memsw.limit_in_bytes", &limit.to_string()),
        Version::Two => write("memory.swap.max", "0"),
    };
    let joined = group.command(Path::new("/bin/true"), &[] as &[&str]).stderr(Stdio::null()).status();
    match joined {
        Ok(status) if status.success() => Ok(group),
        _ => Err(format!("a process cannot join {}", dir.display())),
    }
}

/// Where a group could be made, the likeliest first: this process's own group and those above it.
fn parents() -> Vec<(PathBuf, Version)> {
    let read = |path| fs::read_to_string(path).unwrap_or_default();
    parents_in(&read("/proc/mounts"), &read("/proc/self/cgroup"))
}

fn parents_in(mounts: &str, groups: &str) -> Vec<(PathBuf, Version)> {
    let mut found = Vec::new();
    for line in mounts.lines() {
        let fields: Vec<&str> = line.split(' ').collect();
        let [_, point, kind, options, ..] = fields[..] else { continue };
        let version = match kind {
            "cgroup" if options.split(',').any(|o| o == "memory") => Version::One,
            "cgroup2" => Version::Two,
            _ => continue,
        };
        let own = groups.lines().find_map(|line| {
            let mut parts = line.splitn(3, ':');
            let (id, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
            let fits = match version {
                Version::One => controllers.split(',').any(|c| c == "memory"),
                Version::Two => id == "0" && controllers.is_empty(),
            };
            fits.then_some(path)
        });
        let own = Path::new(own.unwrap_or("/"));
        for above in own.ancestors() {
            let dir = Path::new(point).join(above.strip_prefix("/").unwrap_or(above));
            found.push((dir, version));
        }
    }
    found
}

/// Groups of runs that are gone.
fn remove_stale(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let pid = name.to_str().and_then(|n| n.strip_prefix(PREFIX)).and_then(|n| n.split('-').next());
        let Some(pid) = pid.and_then(|p| p.parse::<u32>().ok()) else { continue };
        if !Path::new(&format!("/proc/{pid}")).exists() {
            // Fails while a process is in it, and then it is not stale.
            let _ = fs::remove_dir(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_group_comes_before_those_above_it() {
        let mounts = "tmpfs /sys/fs/cgroup tmpfs rw 0 0\n\
                      cgroup /sys/fs/cgroup/memory cgroup rw,relatime,memory 0 0\n\
                      cgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0\n\
                      cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n";
        let groups = "4:memory:/a/b\n1:cpu:/c\n0::/d\n";
        let found = parents_in(mounts, groups);
        let paths: Vec<&str> = found.iter().map(|(p, _)| p.to_str().unwrap()).collect();
        assert_eq!(
            paths,
            [
                "/sys/fs/cgroup/memory/a/b",
                "/sys/fs/cgroup/memory/a",
                "/sys/fs/cgroup/memory/",
                "/sys/fs/cgroup/unified/d",
                "/sys/fs/cgroup/unified/"
            ]
        );
        assert_eq!((found[0].1, found[3].1), (Version::One, Version::Two));
        assert!(parents_in("", "").is_empty());
    }

    #[test]
    fn a_group_limits_and_leaves_nothing_behind() {
        let group = match Group::new(64 << 20) {
            Ok(group) => group,
            Err(why) => return println!("skipped: {why}"),
        };
        let dir = group.dir.clone();
        // Two hundred megabytes do not fit into sixty-four.
        let hungry = "x=$(head -c 200000000 /dev/zero | tr '\\0' x); echo ${#x}";
        let status = group.command(Path::new("/bin/sh"), &["-c", hungry]).stdout(Stdio::null()).status();
        assert!(!status.unwrap().success());
        assert!(group.peak().is_none_or(|p| p > 1 << 20 && p <= 64 << 20), "{:?}", group.peak());
        drop(group);
        assert!(!dir.exists());
    }
}
