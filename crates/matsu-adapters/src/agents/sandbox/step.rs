//! The steps between a supervisor and the program of a confined run: each is this binary under another name, and gets
//! its order over a socket that is its stdin. With the order comes what the program is to read from.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, IoSlice, IoSliceMut, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
    recvmsg, sendmsg,
};
use serde::{Deserialize, Serialize};

use super::Sandbox;
use super::view::Network;
use crate::agents::shim::order::Order;

/// The first step of a confinement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfinementStep {
    /// `matsu __seal`
    Seal(Network),
    /// `matsu __fence`
    Fence,
}

/// What to start, and how confined.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StepOrder {
    pub sandbox: Sandbox,
    pub program: PathBuf,
    pub args: Vec<String>,
    /// All of it; nothing is inherited.
    pub env: BTreeMap<String, String>,
    pub directory: PathBuf,
}

/// An order with its file descriptors.
#[derive(Debug)]
pub struct Received {
    pub order: StepOrder,
    /// What the program is to read from.
    pub stdin: OwnedFd,
    /// The lock of the run. It is free when every process that holds it has ended.
    pub lock: Option<OwnedFd>,
}

/// What a step reports: one JSON line each.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum StepReport {
    Started,
    /// Nothing runs.
    Failed {
        error: String,
    },
    /// The program has ended. Other processes of the run may still be there.
    Exited {
        code: Option<i32>,
        signal: Option<i32>,
    },
}

impl StepOrder {
    #[must_use]
    pub fn of(order: &Order) -> Self {
        Self {
            sandbox: order.sandbox.clone(),
            program: order.program.clone(),
            args: order.args.clone(),
            env: order.env.clone(),
            directory: order.directory.clone(),
        }
    }

    /// Sends the order to a step, with what the program is to read from, and with the lock of the run, if the step
    /// shall hold it too.
    ///
    /// # Errors
    /// It is gone.
    pub fn send(&self, mut socket: &UnixStream, stdin: &OwnedFd, lock: Option<BorrowedFd<'_>>) -> io::Result<()> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        let fds: Vec<BorrowedFd<'_>> = [stdin.as_fd()].into_iter().chain(lock).collect();
        if !ancillary.push(SendAncillaryMessage::ScmRights(&fds)) {
            return Err(io::Error::other("the message buffer cannot hold a file descriptor"));
        }
        sendmsg(socket, &[IoSlice::new(b"i")], &mut ancillary, SendFlags::empty())?;
        let mut line = serde_json::to_vec(self).map_err(io::Error::other)?;
        line.push(b'\n');
        socket.write_all(&line)
    }

    /// The order of this step, and what came with it.
    ///
    /// # Errors
    /// The supervisor is gone, or is another version.
    pub fn receive(socket: &UnixStream) -> io::Result<Received> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let mut byte = [0_u8; 1];
        recvmsg(socket, &mut [IoSliceMut::new(&mut byte)], &mut ancillary, RecvFlags::CMSG_CLOEXEC)?;
        let mut fds = Vec::new();
        for message in ancillary.drain() {
            if let RecvAncillaryMessage::ScmRights(sent) = message {
                fds.extend(sent);
            }
        }
        let mut fds = fds.into_iter();
        let (stdin, lock) = (fds.next(), fds.next());
        let stdin = stdin.ok_or_else(|| io::Error::other("the supervisor sent no input for the program"))?;
        let mut line = String::new();
        BufReader::new(socket).read_line(&mut line)?;
        let order = serde_json::from_str(&line).map_err(io::Error::other)?;
        Ok(Received { order, stdin, lock })
    }
}

/// The socket to the supervisor. It does not outlive the next program.
///
/// # Errors
/// Stdin is closed.
pub fn socket() -> io::Result<UnixStream> {
    io::stdin().as_fd().try_clone_to_owned().map(UnixStream::from)
}

/// # Errors
/// The supervisor is gone.
pub fn report(mut socket: &UnixStream, report: &StepReport) -> io::Result<()> {
    let mut line = serde_json::to_vec(report).map_err(io::Error::other)?;
    line.push(b'\n');
    socket.write_all(&line)
}

/// Reports that nothing was started.
pub fn report_failure(error: &str) {
    if let Ok(socket) = socket() {
        let _ = report(&socket, &StepReport::Failed { error: error.to_owned() });
    }
}
