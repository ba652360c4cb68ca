//! A started child: the line it is told, the lines it says, and its end, whatever that is.
//!
//! A child leads a process group of its own, so that it is stopped with all that it started, and so that a terminal's
//! Ctrl-C goes to this program alone. Nothing a child does keeps this program waiting for longer than it wants to wait:
//! neither a pipe that is not read, nor one that something else holds open, nor a flood.

use crate::interrupt;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

/// Lines kept of what a child wrote to its standard error, and bytes of each.
const LAST_LINES: usize = 6;
const LAST_LINE_BYTES: usize = 500;

/// Longest line that is taken from a child's standard output.
const LINE_BYTES: usize = 64 << 20;

/// Lines that wait to be handled; a child that says more waits, too.
const LINES: usize = 64;

/// How often a silent child is looked at; what an ended one has said arrives in that time.
const SLICE: Duration = Duration::from_millis(250);

/// How long to wait for what is left in a pipe once its writer is gone.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// A child that says lines of `T`.
pub struct Guest<T> {
    child: Child,
    /// Until this is dropped, the child's standard input is open: its end tells the child that nobody is here.
    hold: Option<Sender<()>>,
    said: Receiver<T>,
    errors: Receiver<VecDeque<String>>,
    ended: bool,
}

/// How a child ended.
#[derive(Debug)]
pub struct End {
    /// Its status.
    pub status: ExitStatus,
    /// The end of its standard error, to stand behind other words.
    pub last_words: String,
    /// Whether it had to be stopped.
    pub stopped: bool,
}

impl<T: DeserializeOwned + Send + 'static> Guest<T> {
    /// Starts `command` and tells it `first`.
    pub fn start(command: &mut Command, first: &impl Serialize) -> Result<Guest<T>, String> {
        let first = serde_json::to_string(first).map_err(|e| e.to_string())?;
        let mut child = command
            .env("RUST_BACKTRACE", "0")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .map_err(|e| format!("starting {}: {e}", command.get_program().display()))?;
        interrupt::set_child(Some(child.id()));
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (hold, held) = mpsc::channel::<()>();
        let (send, said) = mpsc::sync_channel(LINES);
        let (send_errors, errors) = mpsc::channel();
        let guest = Guest { child, hold: Some(hold), said, errors, ended: false };
        let (Some(mut stdin), Some(stdout), Some(stderr)) = (stdin, stdout, stderr) else {
            return Err("the process has no pipes".into());
        };
        thread::spawn(move || {
            // A child that died already says so at its end.
            let _ = writeln!(stdin, "{first}").and_then(|()| stdin.flush());
            let _ = held.recv();
        });
        thread::spawn(move || {
            each_line(stdout, LINE_BYTES, |line| {
                // An engine that prints to standard output is no concern of ours.
                !serde_json::from_slice(line).is_ok_and(|said| send.send(said).is_err())
            });
        });
        thread::spawn(move || {
            let mut last = VecDeque::new();
            each_line(stderr, LAST_LINE_BYTES, |line| {
                if last.len() == LAST_LINES {
                    last.pop_front();
                }
                last.push_back(String::from_utf8_lossy(line).trim().to_string());
                true
            });
            let _ = send_errors.send(last);
        });
        Ok(guest)
    }

    /// What it says next, within `limit`. It is `Disconnected` once it has closed its output, as it does at its end; or
    /// once it has ended and said nothing more, though something that it started holds its output open.
    pub fn next(&self, limit: Duration) -> Result<T, RecvTimeoutError> {
        let deadline = Instant::now() + limit;
        loop {
            let ended = !matches!(ended(&self.child), Ok(None));
            let left = deadline.saturating_duration_since(Instant::now());
            match self.said.recv_timeout(left.min(SLICE)) {
                Err(RecvTimeoutError::Timeout) if left > SLICE && !ended => {}
                Err(RecvTimeoutError::Timeout) if left > SLICE => return Err(RecvTimeoutError::Disconnected),
                other => return other,
            }
        }
    }

    /// Closes its standard input.
    pub fn hang_up(&mut self) {
        self.hold = None;
    }

    /// Waits for its end, for at most `limit`, and stops it then, with all that it started and left behind.
    pub fn end(mut self, limit: Duration) -> Result<End, String> {
        let deadline = Instant::now() + limit;
        let mut pause = Duration::from_micros(100);
        let mut stopped = false;
        // How it ended on its own is read before its group is killed: no signal can change it then.
        let own = loop {
            match ended(&self.child) {
                Ok(None) if Instant::now() >= deadline => {
                    stopped = true;
                    break None;
                }
                Ok(None) => thread::sleep(pause),
                Ok(status) => break status,
                // Reaping will say what is wrong.
                Err(_) => break None,
            }
            pause = (pause * 2).min(Duration::from_millis(10));
        };
        let reaped = self.reap().map_err(|e| format!("waiting for the process: {e}"))?;
        let status = own.unwrap_or(reaped);
        let last = self.errors.recv_timeout(LAST_WORDS).unwrap_or_default();
        Ok(End { status, last_words: words(&last), stopped })
    }

    /// Stops it at once.
    pub fn kill(self) -> Result<End, String> {
        self.end(Duration::ZERO)
    }
}

impl<T> Guest<T> {
    fn reap(&mut self) -> io::Result<ExitStatus> {
        // Not waited for yet, so its id, and its group's, is still its own.
        interrupt::kill(self.child.id());
        interrupt::set_child(None);
        self.ended = true;
        let status = self.child.wait();
        self.hold = None;
        status
    }
}

impl<T> Drop for Guest<T> {
    fn drop(&mut self) {
        if !self.ended {
            let _ = self.reap();
        }
    }
}

/// How a child ended, if it has; it stays a zombie, which keeps its id.
fn ended(child: &Child) -> io::Result<Option<ExitStatus>> {
    // SAFETY: integers, for which zeros are a value.
    let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
    let how = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
    // SAFETY: the kernel fills the struct.
    if unsafe { libc::waitid(libc::P_PID, child.id(), &mut info, how) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: `waitid` fills these fields; the first with 0 if nothing has ended.
    let (pid, status) = unsafe { (info.si_pid(), info.si_status()) };
    // As `wait` encodes it: an exit code in the second byte, a signal in the first with a bit for a core dump.
    Ok((pid != 0).then(|| match info.si_code {
        libc::CLD_EXITED => ExitStatus::from_raw((status & 0xff) << 8),
        libc::CLD_DUMPED => ExitStatus::from_raw(status | 0x80),
        _ => ExitStatus::from_raw(status),
    }))
}

/// Calls `each` with every line, without its end, until it says no. Of a longer line than `most` bytes, only the first
/// `most` are taken.
fn each_line(stream: impl Read, most: usize, mut each: impl FnMut(&[u8]) -> bool) {
    let mut reader = BufReader::new(stream);
    let mut line = Vec::new();
    loop {
        line.clear();
        let mut full = false;
        loop {
            let (used, ends) = match reader.fill_buf() {
                Ok([]) => break,
                Ok(bytes) => {
                    let end = bytes.iter().position(|&b| b == b'\n');
                    let part = &bytes[..end.unwrap_or(bytes.len())];
                    line.extend_from_slice(&part[..part.len().min(most - line.len())]);
                    (end.map_or(bytes.len(), |i| i + 1), end.is_some())
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => break,
            };
            reader.consume(used);
            if ends {
                full = true;
                break;
            }
        }
        if !full {
            // The rest behind the last end of a line is a line, if there is any.
            if !line.is_empty() {
                each(&line);
            }
            return;
        }
        if !each(&line) {
            return;
        }
    }
}

/// The last lines of a child, fit to stand behind what it died of.
fn words(lines: &VecDeque<String>) -> String {
    let words: Vec<&str> = lines
        .iter()
        .map(String::as_str)
        .filter(|l| !l.is_empty() && !l.starts_with("note: run with"))
        .collect();
    if words.is_empty() { String::new() } else { format!(": {}", words.join(" / ")) }
}

/// How a process ended, in words.
pub fn death(status: ExitStatus) -> String {
    let signal = match (status.code(), status.signal()) {
        (Some(code), _) => return format!("exit code {code}"),
        (None, None) => return "no status".into(),
        (None, Some(signal)) => signal,
    };
    let why = match signal {
        libc::SIGKILL => ": killed, perhaps for want of memory",
        libc::SIGSEGV => ": segmentation fault",
        libc::SIGABRT => ": it ended itself",
        libc::SIGBUS => ": bus error, perhaps a full disk under a mapped file",
        libc::SIGILL => ": illegal instruction",
        libc::SIGFPE => ": arithmetic error",
        libc::SIGXFSZ => ": a file became larger than allowed",
        _ => "",
    };
    format!("signal {signal}{why}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, limit: Duration) -> End {
        let mut command = Command::new("/bin/sh");
        let guest: Guest<u64> = Guest::start(command.args(["-c", script]), &0).unwrap();
        guest.end(limit).unwrap()
    }

    #[test]
    fn the_status_is_the_child_s_own() {
        let long = Duration::from_secs(60);
        let code = shell("sleep 100 & exit 3", long);
        assert_eq!((code.status.code(), code.stopped), (Some(3), false));
        let signal = shell("kill -TERM $$", long);
        assert_eq!((signal.status.signal(), signal.status.code()), (Some(libc::SIGTERM), None));
        let stopped = shell("sleep 100", Duration::from_millis(10));
        assert_eq!((stopped.status.signal(), stopped.stopped), (Some(libc::SIGKILL), true));
    }

    #[test]
    fn lines_are_cut_and_the_last_needs_no_end() {
        let mut lines = Vec::new();
        each_line(&b"one\n\nthree is long\nfour"[..], 5, |line| {
            lines.push(String::from_utf8_lossy(line).into_owned());
            true
        });
        assert_eq!(lines, ["one", "", "three", "four"]);
        let mut count = 0;
        each_line(&b"a\nb\nc\n"[..], 5, |_| {
            count += 1;
            count < 2
        });
        assert_eq!(count, 2);
        each_line(&b""[..], 5, |_| panic!("there is no line"));
    }
}
