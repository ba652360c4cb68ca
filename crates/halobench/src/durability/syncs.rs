//! Counts the system calls by which a child makes data safe from power loss, each at the moment it is made.
//!
//! A kill cannot show what power loss would take. What can be seen is whether a commit that claims to survive it asked
//! the system to write at all before it returned. The kernel stops the child at each such call (a seccomp filter with a
//! listener, Linux 5.5 and later; no privileges, no other program needed), this process reads in the ledger which commit
//! is under way, and lets the call go on. The filter is inherited, so a driver in any language is watched in the same
//! way. Whether the call names the right file, and whether the device tells the truth, is not seen.

use super::ledger::Ledger;
use serde::{Deserialize, Serialize};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;

/// What one thread's commits were seen to do.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Syncs {
    /// Commits that returned.
    pub commits: u64,
    /// Of these, commits during which no file was synced, by any thread.
    pub bare: u64,
    /// Seconds from the open to the kill.
    pub seconds: f64,
    /// Calls of `fsync` and `fdatasync`.
    pub fsync: u64,
    /// Calls of `msync` that wait.
    pub msync: u64,
    /// Writes that sync on their own (`pwritev2` with `RWF_DSYNC` or `RWF_SYNC`), and syncs of everything.
    pub other: u64,
    /// Calls of `sync_file_range`, which does not make a file safe: neither its metadata nor the device's cache are
    /// written.
    pub ranges: u64,
    /// Files opened with `O_DSYNC` or `O_SYNC`: writes to them sync, and are not counted.
    pub synchronous_opens: u64,
    /// Whether an `io_uring` was made, whose operations are not seen.
    pub io_uring: bool,
}

impl Syncs {
    /// Calls that make data safe.
    pub fn safe(&self) -> u64 {
        self.fsync + self.msync + self.other
    }

    /// Whether there may be syncs that were not seen.
    pub fn blind(&self) -> bool {
        self.io_uring || self.synchronous_opens > 0
    }
}

/// What to stop at: the call, and which bits of which argument must be set.
const CALLS: &[(libc::c_long, Option<(u32, u32)>)] = &[
    (libc::SYS_fsync, None),
    (libc::SYS_fdatasync, None),
    (libc::SYS_sync, None),
    (libc::SYS_syncfs, None),
    (libc::SYS_sync_file_range, None),
    (libc::SYS_io_uring_setup, None),
    (libc::SYS_msync, Some((2, libc::MS_SYNC as u32))),
    (libc::SYS_pwritev2, Some((5, (libc::RWF_DSYNC | libc::RWF_SYNC) as u32))),
    (libc::SYS_openat, Some((2, libc::O_DSYNC as u32))),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_open, Some((1, libc::O_DSYNC as u32))),
];

#[cfg(target_arch = "x86_64")]
const ARCH: u32 = 0xC000_003E;
#[cfg(target_arch = "aarch64")]
const ARCH: u32 = 0xC000_00B7;

/// The filter's program, for the kernel's classic BPF machine.
fn program() -> Vec<libc::sock_filter> {
    let step = |code: u32, jt, jf, k| libc::sock_filter { code: code as u16, jt, jf, k };
    let load = |offset| step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, offset);
    let equal = |k, jf| step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, jf, k);
    let any_bit = |k, jf| step(libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K, 0, jf, k);
    let give = |k| step(libc::BPF_RET | libc::BPF_K, 0, 0, k);
    let (allow, tell) = (give(libc::SECCOMP_RET_ALLOW), give(libc::SECCOMP_RET_USER_NOTIF));
    // struct seccomp_data: the call's number, the architecture, the instruction pointer, six arguments of 64 bits.
    // Another architecture's calls have other numbers: let all of them pass.
    let same_arch = step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 1, 0, ARCH);
    let mut out = vec![load(4), same_arch, allow, load(0)];
    for &(number, bits) in CALLS {
        match bits {
            None => out.extend([equal(number as u32, 1), tell]),
            Some((argument, mask)) => {
                out.extend([equal(number as u32, 4), load(16 + 8 * argument), any_bit(mask, 1), tell, allow]);
            }
        }
    }
    out.push(allow);
    out
}

/// The parent's end of a watched command.
pub struct Watch {
    socket: UnixStream,
}

/// Makes `command` start a child that is stopped at each call, until [`Watch::follow`] lets it go on.
pub fn arm(command: &mut Command) -> io::Result<Watch> {
    let (ours, theirs) = UnixStream::pair()?;
    let program = program();
    let hook = move || {
        let program = libc::sock_fprog { len: program.len() as u16, filter: program.as_ptr().cast_mut() };
        // SAFETY: plain system calls on memory that lives through them; nothing is allocated.
        let listener = unsafe {
            if libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 {
                return Err(io::Error::last_os_error());
            }
            libc::syscall(
                libc::SYS_seccomp,
                libc::SECCOMP_SET_MODE_FILTER,
                libc::SECCOMP_FILTER_FLAG_NEW_LISTENER,
                &raw const program,
            )
        };
        if listener < 0 {
            return Err(io::Error::last_os_error());
        }
        send_fd(theirs.as_raw_fd(), listener as RawFd)
    };
    // SAFETY: between fork and exec the hook makes system calls only.
    unsafe { command.pre_exec(hook) };
    Ok(Watch { socket: ours })
}

/// Room for a control message with one descriptor, aligned as its header.
#[repr(C, align(8))]
struct Control([u8; 64]);

/// A message of one byte, with room for a descriptor beside it. `message` borrows from the other two.
fn message(byte: &mut libc::iovec, control: &mut Control) -> libc::msghdr {
    // SAFETY: a struct of integers and pointers, for which zeros are a value.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = byte;
    message.msg_iovlen = 1;
    message.msg_control = control.0.as_mut_ptr().cast();
    // SAFETY: pure arithmetic.
    message.msg_controllen = unsafe { libc::CMSG_SPACE(4) } as _;
    message
}

fn send_fd(socket: RawFd, fd: RawFd) -> io::Result<()> {
    let (mut data, mut control) = ([1u8], Control([0; 64]));
    let mut byte = libc::iovec { iov_base: data.as_mut_ptr().cast(), iov_len: 1 };
    let message = message(&mut byte, &mut control);
    // SAFETY: the control buffer is aligned and has room for one header with one descriptor behind it.
    let sent = unsafe {
        let header = libc::CMSG_FIRSTHDR(&message);
        (*header).cmsg_level = libc::SOL_SOCKET;
        (*header).cmsg_type = libc::SCM_RIGHTS;
        (*header).cmsg_len = libc::CMSG_LEN(4) as _;
        libc::CMSG_DATA(header).cast::<RawFd>().write_unaligned(fd);
        libc::sendmsg(socket, &message, 0)
    };
    if sent == 1 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn receive_fd(socket: RawFd) -> io::Result<OwnedFd> {
    let (mut data, mut control) = ([0u8], Control([0; 64]));
    let mut byte = libc::iovec { iov_base: data.as_mut_ptr().cast(), iov_len: 1 };
    let mut message = message(&mut byte, &mut control);
    // SAFETY: as in `send_fd`; the kernel fills the buffers; a descriptor it hands over is ours.
    unsafe {
        if libc::recvmsg(socket, &mut message, libc::MSG_CMSG_CLOEXEC) != 1 {
            return Err(io::Error::last_os_error());
        }
        let header = libc::CMSG_FIRSTHDR(&message);
        if header.is_null() || (*header).cmsg_type != libc::SCM_RIGHTS {
            return Err(io::Error::other("no descriptor came"));
        }
        Ok(OwnedFd::from_raw_fd(libc::CMSG_DATA(header).cast::<RawFd>().read_unaligned()))
    }
}

/// A count that goes on.
pub struct Follow {
    so_far: Arc<AtomicU64>,
    count: JoinHandle<Syncs>,
}

impl Follow {
    /// Calls that made data safe, so far.
    pub fn so_far(&self) -> u64 {
        self.so_far.load(Ordering::Relaxed)
    }

    /// The whole count, once the child has ended.
    pub fn end(self) -> Result<Syncs, String> {
        self.count.join().map_err(|_| "the count of syncs ended in a panic".into())
    }
}

impl Watch {
    /// Counts the calls of the started child while the ledger says that it is open, until it ends. To be called at once
    /// after the start: the child stands still at its first call until then.
    pub fn follow(self, ledger: Ledger) -> io::Result<Follow> {
        let listener = receive_fd(self.socket.as_raw_fd())?;
        let so_far = Arc::new(AtomicU64::new(0));
        let safe = so_far.clone();
        Ok(Follow { so_far, count: std::thread::spawn(move || count(&listener, &ledger, &safe)) })
    }
}

fn count(listener: &OwnedFd, ledger: &Ledger, so_far: &AtomicU64) -> Syncs {
    let mut syncs = Syncs::default();
    // The commit during which a sync was seen last, and how many such commits there were.
    let (mut last, mut covered) = (0, 0);
    while let Some((id, call)) = next(listener) {
        let progress = ledger.progress(0);
        let open = ledger.state() == super::ledger::state::OPEN;
        let safe = match call {
            libc::SYS_io_uring_setup => {
                syncs.io_uring = true;
                false
            }
            libc::SYS_sync_file_range => {
                syncs.ranges += u64::from(open);
                false
            }
            libc::SYS_fsync | libc::SYS_fdatasync => {
                syncs.fsync += u64::from(open);
                open
            }
            libc::SYS_msync => {
                syncs.msync += u64::from(open);
                open
            }
            libc::SYS_pwritev2 | libc::SYS_sync | libc::SYS_syncfs => {
                syncs.other += u64::from(open);
                open
            }
            _ => {
                syncs.synchronous_opens += 1;
                false
            }
        };
        so_far.store(syncs.safe(), Ordering::Relaxed);
        if safe && progress.started > progress.acked && progress.started != last {
            last = progress.started;
            covered += 1;
        }
        let mut answer = libc::seccomp_notif_resp {
            id,
            val: 0,
            error: 0,
            flags: libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32,
        };
        // SAFETY: the kernel reads the struct. That the child is gone meanwhile is no concern.
        unsafe { libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SEND, &mut answer) };
    }
    syncs.commits = ledger.progress(0).acked;
    if last > syncs.commits {
        covered -= 1; // It never returned.
    }
    syncs.bare = syncs.commits.saturating_sub(covered);
    syncs
}

/// Waits for the next call: its id and number. None once no process is left that could make one.
fn next(listener: &OwnedFd) -> Option<(u64, libc::c_long)> {
    loop {
        let mut poll = libc::pollfd { fd: listener.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one struct, as said.
        let ready = unsafe { libc::poll(&mut poll, 1, -1) };
        if ready < 0 && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted {
            continue;
        }
        if ready < 0 || poll.revents & libc::POLLIN == 0 {
            return None;
        }
        // SAFETY: integers, for which zeros are a value; the kernel wants them zero.
        let mut seen: libc::seccomp_notif = unsafe { std::mem::zeroed() };
        // SAFETY: the kernel fills the struct.
        if unsafe { libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_RECV, &mut seen) } == 0 {
            return Some((seen.id, libc::c_long::from(seen.data.nr)));
        }
        // The caller was killed between the two: the next, then.
        match io::Error::last_os_error().raw_os_error() {
            Some(libc::ENOENT | libc::EINTR) => {}
            _ => return None,
        }
    }
}
