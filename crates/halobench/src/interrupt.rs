//! Ctrl-C, and a request to end: the child is stopped and the run ends where it is, with what it has. The second time,
//! or when nothing runs, everything ends at once.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

#[derive(Default)]
struct Current {
    child: Option<u32>,
    dir: Option<PathBuf>,
    running: bool,
    requested: bool,
}

static CURRENT: Mutex<Current> =
    Mutex::new(Current { child: None, dir: None, running: false, requested: false });

fn current() -> MutexGuard<'static, Current> {
    CURRENT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The exit code of an interrupted run.
pub const EXIT_CODE: i32 = 130;

/// Installs the handler, once a process.
pub fn install() -> Result<(), String> {
    ctrlc::set_handler(|| {
        let mut current = current();
        if let Some(pid) = current.child {
            // It has not been waited for while its id stands here, so the id is still its own.
            kill(pid);
        }
        if current.running && !current.requested {
            // The run sees it, keeps what it has and removes its folder.
            current.requested = true;
            return;
        }
        if let Some(dir) = &current.dir {
            // The child may be writing its last; what it made after the first pass goes in the next.
            for _ in 0..20 {
                if std::fs::remove_dir_all(dir).is_ok() || !dir.exists() {
                    break;
                }
                std::thread::sleep(std::time::Duration::from_millis(50));
            }
        }
        eprintln!("\ninterrupted; temporary files are removed");
        std::process::exit(EXIT_CODE);
    })
    .map_err(|e| format!("catching Ctrl-C: {e}"))
}

/// While a run is going on, the first interruption is a request to it.
pub fn set_running(running: bool) {
    current().running = running;
}

/// Whether the run is to end.
pub fn requested() -> bool {
    current().requested
}

/// Kills a child that leads a process group, with its group. It must not have been waited for.
pub(crate) fn kill(pid: u32) {
    let pid = pid as libc::pid_t;
    // SAFETY: sends signals, nothing more. A group that is gone is no concern; the child alone, too, in case it does not
    // lead a group.
    unsafe {
        libc::kill(-pid, libc::SIGKILL);
        libc::kill(pid, libc::SIGKILL);
    }
}

/// The folder to remove.
pub fn set_dir(dir: Option<&Path>) {
    current().dir = dir.map(Into::into);
}

/// The process to stop; it is stopped at once if the run is to end already.
pub fn set_child(child: Option<u32>) {
    let mut current = current();
    current.child = child;
    if let (Some(pid), true) = (child, current.requested) {
        kill(pid);
    }
}
