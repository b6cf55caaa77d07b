//! The stdin and stdout that a client gave us, as streams.
//!
//! Clients give pipes or sockets, which the event loop can watch itself. Whatever else it is, a terminal or a file, is
//! read and written by a thread that may block: two more changes of thread for every frame.
#![cfg_attr(target_os = "linux", expect(unsafe_code, reason = "how much of a socket is unread has no safe form"))]

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileTypeExt;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;

pub type Input = Box<dyn AsyncRead + Send + Unpin>;
pub type Output = Box<dyn AsyncWrite + Send + Unpin>;

/// Must be called inside a runtime.
pub fn stdin() -> Input {
    let watched = kind(io::stdin()).and_then(|kind| match kind {
        Kind::Pipe => Some(Box::new(pipe::OpenOptions::new().open_receiver("/dev/stdin").ok()?) as Input),
        Kind::Socket(fd) => Some(Box::new(socket(fd)?)),
    });
    watched.unwrap_or_else(|| Box::new(tokio::io::stdin()))
}

/// Must be called inside a runtime.
pub fn stdout() -> Output {
    let watched = kind(io::stdout()).and_then(|kind| match kind {
        Kind::Pipe => Some(Box::new(pipe::OpenOptions::new().open_sender("/dev/stdout").ok()?) as Output),
        Kind::Socket(fd) => Some(Box::new(socket(fd)?)),
    });
    watched.unwrap_or_else(|| Box::new(tokio::io::stdout()))
}

enum Kind {
    /// To be opened anew by its name: the non-blocking mode then affects this process alone, while the description that
    /// we were given may be shared with the process that started us.
    Pipe,
    /// Cannot be opened by name.
    Socket(OwnedFd),
}

/// `None`: not to be watched.
fn kind(given: impl AsFd) -> Option<Kind> {
    let file = File::from(given.as_fd().try_clone_to_owned().ok()?);
    let kind = file.metadata().ok()?.file_type();
    if kind.is_socket() {
        Some(Kind::Socket(file.into()))
    } else {
        // Elsewhere a second opening shares the description of the first, and its settings.
        (kind.is_fifo() && cfg!(target_os = "linux")).then_some(Kind::Pipe)
    }
}

fn socket(fd: OwnedFd) -> Option<UnixStream> {
    let stream = std::os::unix::net::UnixStream::from(fd);
    stream.set_nonblocking(true).ok()?;
    UnixStream::from_std(stream).ok()
}

/// Bytes that were written to stdout and not taken by the client yet; of a socket the kernel counts more than the bytes.
/// Where that cannot be found out, what was written counts as taken.
#[cfg(target_os = "linux")]
pub fn unread() -> u64 {
    let stdout = io::stdout();
    match kind(&stdout) {
        Some(Kind::Pipe) => rustix::io::ioctl_fionread(stdout).unwrap_or(0),
        Some(Kind::Socket(fd)) => {
            // SAFETY: SIOCOUTQ writes one int, and changes nothing.
            let waiting = unsafe { rustix::ioctl::ioctl(fd, rustix::ioctl::Getter::<SIOCOUTQ, i32>::new()) };
            waiting.ok().and_then(|bytes| u64::try_from(bytes).ok()).unwrap_or(0)
        }
        None => 0,
    }
}

#[cfg(not(target_os = "linux"))]
pub fn unread() -> u64 {
    0
}

/// Of a socket: how much the other side has not read.
#[cfg(target_os = "linux")]
const SIOCOUTQ: rustix::ioctl::Opcode = 0x5411;
