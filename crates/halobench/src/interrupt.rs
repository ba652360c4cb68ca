//! Ctrl-C, and a request to end: stop the child, remove its folder, leave.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

#[derive(Default)]
struct Current {
    child: Option<u32>,
    dir: Option<PathBuf>,
}

static CURRENT: Mutex<Current> = Mutex::new(Current { child: None, dir: None });

fn current() -> MutexGuard<'static, Current> {
    CURRENT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Installs the handler, once a process.
pub fn install() -> Result<(), String> {
    ctrlc::set_handler(|| {
        let current = current();
        if let Some(pid) = current.child {
            // It has not been waited for while its id stands here, so the id is still its own.
            kill(pid);
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
        std::process::exit(130);
    })
    .map_err(|e| format!("catching Ctrl-C: {e}"))
}

/// Kills a child that leads a process group, with its group.
pub(crate) fn kill(pid: u32) {
    let pid = pid as libc::pid_t;
    // SAFETY: sends signals, nothing more; a group or process that is gone is no concern. The child alone, too: right
    // behind its start it may not lead its group yet.
    unsafe {
        libc::kill(-pid, libc::SIGKILL);
        libc::kill(pid, libc::SIGKILL);
    }
}

/// The folder to remove.
pub fn set_dir(dir: Option<&Path>) {
    current().dir = dir.map(Into::into);
}

/// The process to stop.
pub fn set_child(child: Option<u32>) {
    current().child = child;
}
