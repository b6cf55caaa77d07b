//! One reader process as the pool sees it. It is killed when this is dropped.
#![expect(clippy::disallowed_methods, reason = "the one file that starts reader processes")]

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{ExitStatus, Stdio};

use matsu_core::ports::extractor::ExtractError;
use matsu_reader::wire::{ANSWER_BYTES_MAX, ReaderReply, Request, parse_answer};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};

use super::lockdown::MEMORY_MAX;

/// How much of what a reader writes to stderr before its end is kept.
const LAST_WORDS_BYTES: usize = 4096;

/// A document takes and frees some megabytes: memory that is given back to the kernel after each is soon asked for again.
/// What may be taken in all stays limited by `MEMORY_MAX`. Other C libraries do not look at this.
const KEEP_MEMORY: &str =
    "glibc.malloc.trim_threshold=268435456:glibc.malloc.top_pad=16777216:glibc.malloc.mmap_threshold=33554432";

pub struct ReaderProcess {
    child: Child,
    stdin: ChildStdin,
    stdout: ChildStdout,
    stderr: LastWords,
    /// Given to it so far.
    pub documents: u32,
}

impl ReaderProcess {
    pub fn start(program: &Path, args: &[String]) -> io::Result<Self> {
        let mut child = Command::new(program)
            .args(args)
            .env_clear()
            .env("GLIBC_TUNABLES", KEEP_MEMORY)
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        match (child.stdin.take(), child.stdout.take(), child.stderr.take()) {
            (Some(stdin), Some(stdout), Some(stderr)) => {
                let stderr = LastWords { stream: Some(stderr), bytes: Vec::new() };
                Ok(Self { child, stdin, stdout, stderr, documents: 0 })
            }
            _ => Err(io::Error::other("a started program has no streams")),
        }
    }

    /// Sends a request and reads the answer. After an error no further request is possible.
    pub async fn exchange(&mut self, request: &Request) -> io::Result<Result<ReaderReply, ExtractError>> {
        self.documents += 1;
        let Self { stdin, stdout, stderr, .. } = self;
        let head = request.head()?;
        let ask = async {
            stdin.write_all(&head).await?;
            stdin.write_all(&request.body).await?;
            stdin.flush().await
        };
        let hear = async {
            let length = stdout.read_u32_le().await? as usize;
            if length > ANSWER_BYTES_MAX {
                return Err(io::Error::other("its answer is larger than allowed"));
            }
            let mut bytes = Vec::new();
            stdout.take(length as u64).read_to_end(&mut bytes).await?;
            if bytes.len() < length { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(bytes) }
        };
        let both = async { tokio::try_join!(ask, hear) };
        tokio::select! {
            biased;
            done = both => parse_answer(&done?.1),
            // Whatever is written there must be read, or the process would wait for that.
            never = stderr.gather() => match never {},
        }
    }

    /// What became of a process that no longer answers. It is killed if it still runs.
    pub async fn end(mut self) -> End {
        // One that is dying of itself may have closed its streams a moment before it is gone.
        let (stdout, stdin) = (self.stdout, self.stdin);
        drop((stdin, stdout));
        self.stderr.rest().await;
        let words = String::from_utf8_lossy(&self.stderr.bytes).into_owned();
        End { status: self.child.wait().await.ok(), words }
    }

    pub fn kill(mut self) {
        // The drop that follows reaps it.
        let _ = self.child.start_kill();
    }
}

/// The end of what a process writes to standard error.
struct LastWords {
    stream: Option<ChildStderr>,
    bytes: Vec<u8>,
}

impl LastWords {
    async fn gather(&mut self) -> std::convert::Infallible {
        self.rest().await;
        std::future::pending().await
    }

    /// Until the stream ends.
    async fn rest(&mut self) {
        while let Some(stream) = &mut self.stream {
            match stream.read_buf(&mut self.bytes).await {
                Ok(1..) => {
                    let excess = self.bytes.len().saturating_sub(LAST_WORDS_BYTES);
                    self.bytes.drain(..excess);
                }
                Ok(0) | Err(_) => self.stream = None,
            }
        }
    }
}

/// How a reader process ended.
#[derive(Default)]
pub struct End {
    status: Option<ExitStatus>,
    words: String,
}

impl End {
    /// In words for people. `error` is what was noticed first.
    pub fn why(&self, error: &io::Error) -> String {
        let signal = self.status.and_then(|status| status.signal());
        if self.words.contains("overflowed its stack") {
            "reading it recurses without an end".to_owned()
        } else if self.words.contains("memory allocation of") {
            format!("reading it takes more than {} MiB of memory", MEMORY_MAX / 1024 / 1024)
        } else if signal == Some(rustix::process::Signal::XCPU.as_raw()) {
            "reading it takes too much CPU time".to_owned()
        } else if let Some(signal) = signal {
            format!("the reader process ended on it (signal {signal})")
        } else {
            let last_line = self.words.lines().last().unwrap_or_default();
            format!("the process that read it stopped: {error} {last_line}").trim_end().to_owned()
        }
    }
}
