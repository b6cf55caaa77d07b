//! Both streams of a program into its spool. If the disk is full, or too much is waiting to be stored by a daemon, the
//! program's own pipe fills up and it waits.

use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use matsu_core::clock::Clock;
use matsu_core::limits::{RUN_TAIL_BYTES_MAX, TICK};
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe::Receiver;

use crate::agents::runs_folder::RunFolder;
use crate::agents::spool::{SpoolWriter, Stream, forget_before};

const READ_BYTES: usize = 64 * 1024;

/// Output that no daemon has stored yet. More waits in the program's own pipe.
pub const UNREAD_BYTES_MAX: u64 = 64 * 1024 * 1024;

pub struct Output {
    folder: PathBuf,
    out: Pipe,
    err: Pipe,
    /// Everything before this position of stdout is stored.
    read: u64,
}

struct Pipe {
    receiver: Option<Receiver>,
    writer: SpoolWriter,
    buffer: Vec<u8>,
    /// The first bytes of the buffer that could not be written yet.
    unwritten: usize,
}

impl Pipe {
    fn new(folder: &std::path::Path, stream: Stream, pipe: OwnedFd) -> io::Result<Self> {
        let receiver = Some(Receiver::from_owned_fd(pipe)?);
        let writer = SpoolWriter::new(folder, stream);
        Ok(Self { receiver, writer, buffer: vec![0; READ_BYTES], unwritten: 0 })
    }

    /// Reads once and writes that. May be dropped while it waits: nothing is read then.
    async fn step(&mut self) {
        if self.unwritten == 0 {
            let Some(receiver) = &mut self.receiver else { return std::future::pending().await };
            match receiver.read(&mut self.buffer).await {
                Ok(0) | Err(_) => self.receiver = None,
                Ok(bytes) => self.unwritten = bytes,
            }
        } else {
            // The disk was full a moment ago.
            Clock::system().sleep(TICK).await;
        }
        if self.unwritten > 0 && self.writer.append(&self.buffer[..self.unwritten]).is_ok() {
            self.unwritten = 0;
        }
    }
}

impl Output {
    pub fn new(folder: &RunFolder, out: OwnedFd, err: OwnedFd) -> io::Result<Self> {
        let folder = folder.spool();
        let (out, err) = (Pipe::new(&folder, Stream::Out, out)?, Pipe::new(&folder, Stream::Err, err)?);
        Ok(Self { folder, out, err, read: 0 })
    }

    /// One thing is read. Waits for ever when both streams are over.
    pub async fn step(&mut self) {
        let is_full = self.out.writer.end().saturating_sub(self.read) >= UNREAD_BYTES_MAX;
        tokio::select! {
            () = self.out.step(), if !is_full => {}
            () = self.err.step() => self.keep_tail(),
        }
    }

    /// Only the end of what a program writes to stderr is ever looked at.
    fn keep_tail(&self) {
        let tail = 16 * RUN_TAIL_BYTES_MAX as u64;
        let _ = forget_before(&self.folder, Stream::Err, self.err.writer.end().saturating_sub(tail));
    }

    /// A daemon has stored everything before this position.
    pub fn was_read(&mut self, position: u64) {
        self.read = self.read.max(position);
    }

    pub fn ends(&self) -> (u64, u64) {
        (self.out.writer.end(), self.err.writer.end())
    }

    pub fn is_over(&self) -> bool {
        let is_over = |pipe: &Pipe| pipe.receiver.is_none() && pipe.unwritten == 0;
        is_over(&self.out) && is_over(&self.err)
    }

    /// Something was read and waits for the disk or for a daemon.
    pub fn is_blocked(&self) -> bool {
        let is_full = self.out.writer.end().saturating_sub(self.read) >= UNREAD_BYTES_MAX;
        self.out.unwritten > 0 || self.err.unwritten > 0 || (is_full && self.out.receiver.is_some())
    }
}
