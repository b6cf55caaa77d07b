//! The relay: pipes MCP frames between a client and the daemon, and outlives the daemon.
//!
//! A frame is a line. Requests that are open when the daemon dies are answered with an error that may be retried;
//! a legacy client's handshake is repeated with the next daemon, so the client notices nothing else.

mod frames;
mod patience;
mod preamble;
mod receipts;

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result};
use clap::Args;
use hyper::Method;
use matsu_core::clock::Clock;
use matsu_core::limits::{DAEMON_START_MAX, FRAME_BYTES_MAX};
use matsu_server::mcp::acknowledgement;
use matsu_server::mcp::bounded_lines::{BoundedLines, Line};
use matsu_server::mcp::socket::{Greeting, Preamble};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::signal::unix::{SignalKind, signal};

use crate::cli::Global;
use crate::client;
use crate::compose::VERSION;
use crate::config::Config;
use crate::daemon::lock::ServeLock;
use crate::versions::is_newer;
use crate::{process, stdio};

use frames::{Afterwards, Frames, Lost};
pub use preamble::preamble;
use receipts::Receipts;

const RETRY_EVERY: Duration = Duration::from_millis(30);

#[derive(Args)]
pub struct Options {
    /// Run everything in this process, without a daemon
    #[arg(long)]
    pub no_daemon: bool,
    /// Which tools to offer: core, all, or toolsets separated by commas
    #[arg(long, default_value = "core", value_name = "SETS")]
    pub tools: String,
    /// How many seconds one call of this client may wait at most
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub hold: Option<u64>,
    /// A folder of the client's project, in which its agents may work; may be repeated. By default they work in
    /// the first
    #[arg(long, value_name = "DIR")]
    pub root: Vec<PathBuf>,
    /// Take test jobs too
    #[arg(long, hide = true)]
    pub test_jobs: bool,
}

pub struct Relay {
    config: Config,
    preamble: Preamble,
    /// How to start a daemon for the same store.
    daemon_arguments: Vec<String>,
    started: SystemTime,
}

/// Why a relay stopped.
#[derive(Debug, PartialEq, Eq)]
pub enum Ended {
    ClientLeft,
    /// None lives and none could be started; nothing has been read from the client yet.
    NoDaemon,
}

/// Why a daemon did not greet us.
enum Unmet {
    /// With its reason.
    Refused(String),
    /// It is ending, or no daemon of ours.
    Gone(anyhow::Error),
}

/// How long a relay whose client has closed its output waits for open answers.
const LAST_ANSWERS_MAX: Duration = Duration::from_millis(500);

/// And how long it waits until the client has taken the results in them.
const LAST_TAKEN_MAX: Duration = Duration::from_secs(2);

/// A daemon that was started answers within this time, or another one is started.
const START_AGAIN: Duration = Duration::from_secs(1);

/// A client that has calls open waits longer for the next daemon than for the first.
const RECONNECT_MAX: Duration = Duration::from_secs(30);

/// How long after a refusal the token is read once more.
const AFTER_REFUSAL: Duration = Duration::from_millis(300);

/// Whether a relay starts a daemon where none answers.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Start {
    Always,
    /// Not after a person has ended the last one.
    UnlessShutDown,
}

type Daemon = (BoundedLines<OwnedReadHalf>, OwnedWriteHalf);

impl Relay {
    pub fn new(config: &Config, global: &Global, args: &Options) -> Self {
        let since_epoch = u64::try_from(Clock::system().now().as_millis()).unwrap_or_default();
        Self {
            config: config.clone(),
            preamble: preamble(args),
            daemon_arguments: process::daemon_arguments(config, global, args.test_jobs),
            started: SystemTime::UNIX_EPOCH + Duration::from_millis(since_epoch),
        }
    }

    pub async fn run(&self) -> Result<Ended> {
        // Bytes, not text: what is no text is the daemon's to refuse.
        let mut client = BoundedLines::new(stdio::stdin());
        let mut client_out = stdio::stdout();
        let mut frames = Frames::named(&self.preamble.instance);
        let mut receipts = Receipts::new();
        let mut daemon = if self.is_of_session() {
            match self.await_daemon(&mut frames, &mut client, &mut client_out).await? {
                Some(daemon) => daemon,
                None => return Ok(Ended::ClientLeft),
            }
        } else {
            match self.reach(DAEMON_START_MAX, Start::Always).await? {
                Some(daemon) => daemon,
                None => return Ok(Ended::NoDaemon),
            }
        };
        // Once, before the first frame: a signal between two frames must not be lost.
        let termination = termination();
        tokio::pin!(termination);
        loop {
            tokio::select! {
                line = client.next() => match line.context("cannot read from the client")? {
                    Line::Whole(line) => {
                        let line = frames.received_from_client(line);
                        if send(&mut daemon.1, line).await.is_err() {
                            match self.replace(&mut frames, &mut client, &mut client_out).await? {
                                Some(next) => daemon = next,
                                None => return Ok(Ended::ClientLeft),
                            }
                        }
                    }
                    Line::TooLong => {
                        tracing::warn!(bytes_max = FRAME_BYTES_MAX, "a message of the client is too long");
                        send(&mut client_out, frames::too_long()).await.context("cannot write to the client")?;
                    }
                    Line::End => {
                        last_answers(&mut frames, &mut receipts, &mut daemon, &mut client_out).await;
                        return Ok(Ended::ClientLeft);
                    }
                },
                // One that ends meanwhile is noticed by the next read; the results then count as unread.
                () = receipts.look_again(), if !receipts.is_empty() => acknowledge(&mut receipts, &mut daemon).await,
                line = daemon.0.next() => match line {
                    Ok(Line::Whole(line)) => {
                        if frames.received_from_daemon(&line) {
                            pass_on(&mut client_out, &mut receipts, line).await.context("cannot write to the client")?;
                        }
                    }
                    ended => {
                        if let Ok(Line::TooLong) = ended {
                            // Which request it answers is not known, so all that are open are answered.
                            self.answer(frames.give_up(Lost::DuringCall), &mut client_out).await?;
                        }
                        match self.replace(&mut frames, &mut client, &mut client_out).await? {
                            Some(next) => daemon = next,
                            None => return Ok(Ended::ClientLeft),
                        }
                    }
                },
                () = &mut termination => {
                    acknowledge(&mut receipts, &mut daemon).await;
                    return Ok(Ended::ClientLeft);
                }
            }
        }
    }

    /// The daemon ended: open requests are sent again to the next one, or answered where that could do harm.
    /// `None`: the client has left meanwhile.
    async fn replace(
        &self,
        frames: &mut Frames,
        client: &mut BoundedLines<impl AsyncRead + Unpin>,
        client_out: &mut (impl AsyncWrite + Unpin),
    ) -> Result<Option<Daemon>> {
        tracing::info!("the daemon ended; connecting to another");
        let Afterwards { again, answers } = frames.daemon_ended();
        self.answer(answers, client_out).await?;
        let mut daemon = if self.is_of_session() || self.is_shut_down() {
            let Some(daemon) = self.await_daemon(frames, client, client_out).await? else { return Ok(None) };
            daemon
        } else {
            let Some(mut daemon) = self.reach(RECONNECT_MAX, Start::UnlessShutDown).await? else {
                self.answer(frames.give_up(self.lost()), client_out).await?;
                anyhow::bail!("the daemon ended and another could not be started");
            };
            // One that ends meanwhile is noticed by the next read, and replaced in turn.
            for line in frames.handshake() {
                let _ = send(&mut daemon.1, line).await;
            }
            daemon
        };
        // One that ends meanwhile is noticed by the next read; the requests are still open.
        for line in again.iter().filter_map(|id| frames.line_again(id)) {
            let _ = send(&mut daemon.1, line).await;
        }
        Ok(Some(daemon))
    }

    async fn answer(&self, answers: Vec<String>, client_out: &mut (impl AsyncWrite + Unpin)) -> Result<()> {
        for answer in answers {
            send(client_out, answer).await.context("cannot write to the client")?;
        }
        Ok(())
    }

    /// An agent's way back to the daemon that its session is from: no other daemon would know it, and settings and
    /// stores in its environment are not used.
    fn is_of_session(&self) -> bool {
        self.preamble.session_token.is_some()
    }

    /// Whether a person has ended the daemon since this client started. A client that starts afterwards starts another
    /// one, also if it found the old one still ending.
    fn is_shut_down(&self) -> bool {
        let mark = std::fs::metadata(self.config.paths.stopped()).and_then(|mark| mark.modified());
        mark.is_ok_and(|made| made >= self.started)
    }

    fn lost(&self) -> Lost {
        if !self.is_of_session() && self.is_shut_down() { Lost::ShutDown } else { Lost::NoDaemon }
    }

    fn may_start(&self, start: Start) -> bool {
        !self.is_of_session() && (start == Start::Always || !self.is_shut_down())
    }

    /// A daemon that has greeted us; started if none lives. `None`: not within the time a client waits.
    async fn reach(&self, within: Duration, start: Start) -> Result<Option<Daemon>> {
        let clock = Clock::system();
        let deadline = clock.instant() + within;
        let socket = self.config.paths.socket();
        let (mut start_at, mut refused) = (clock.instant(), None);
        // Of many relays that have lost their daemon one starts the next. Its lock ends with it, whatever happens.
        let mut starting = None;
        loop {
            if let Ok(stream) = UnixStream::connect(&socket).await {
                if !self.is_of_session() {
                    self.check_store().await?;
                }
                match self.greet(stream).await {
                    Ok(daemon) => return Ok(Some(daemon)),
                    // A daemon that has just started may have written another token meanwhile.
                    Err(Unmet::Refused(why)) if refused.replace(why.clone()) == Some(why.clone()) => {
                        anyhow::bail!("the daemon refuses this client: {why}");
                    }
                    Err(Unmet::Refused(_)) => clock.sleep(AFTER_REFUSAL).await,
                    Err(Unmet::Gone(error)) => tracing::debug!(%error, "the daemon did not accept the connection"),
                }
            }
            if starting.is_none() && clock.instant() >= start_at && self.may_start(start) {
                starting = starter(&self.config);
            }
            if clock.instant() >= start_at && starting.is_some() && self.may_start(start) {
                if let Err(error) = process::start_daemon(&self.config.paths, &self.daemon_arguments) {
                    tracing::warn!(error = format!("{error:#}"), "the daemon could not be started");
                    return Ok(None);
                }
                // One that was started may have been killed meanwhile. A second one beside it ends by itself.
                start_at = clock.instant() + START_AGAIN;
            }
            if clock.instant() >= deadline {
                return Ok(None);
            }
            clock.sleep(RETRY_EVERY).await;
        }
    }

    async fn greet(&self, stream: UnixStream) -> Result<Daemon, Unmet> {
        let (reader, mut writer) = stream.into_split();
        // Read each time: the next daemon may have made another one.
        let token = client::owners_token(&self.config).filter(|_| !self.is_of_session());
        let preamble = Preamble { token, ..self.preamble.clone() };
        let preamble = serde_json::to_vec(&preamble).map_err(|error| Unmet::Gone(error.into()))?;
        send(&mut writer, preamble).await.map_err(|error| Unmet::Gone(error.into()))?;
        let mut lines = BoundedLines::new(reader);
        let Line::Whole(line) = lines.next().await.map_err(|error| Unmet::Gone(error.into()))? else {
            return Err(Unmet::Gone(anyhow::anyhow!("the daemon closed the connection")));
        };
        let greeting: Greeting = serde_json::from_slice(&line).map_err(|error| Unmet::Gone(error.into()))?;
        match greeting.error {
            Some(error) if greeting.retryable => return Err(Unmet::Gone(anyhow::anyhow!(error))),
            Some(error) => return Err(Unmet::Refused(error)),
            None => {}
        }
        if is_newer(VERSION, &greeting.version) && !self.is_of_session() {
            self.ask_to_end().await;
        }
        Ok((lines, writer))
    }

    /// The daemon of this data directory may serve another store; its tasks are not what was asked for.
    async fn check_store(&self) -> Result<()> {
        let info = crate::client::control(&self.config, Method::GET, "/control/info", None).await;
        // One that does not answer is just ending; the next try finds out.
        let Ok(info) = info else { return Ok(()) };
        if info["store"] != self.config.store_name() {
            anyhow::bail!(
                "the daemon in {} serves {}, not {}; pass another --data-dir for another store",
                self.config.paths.data_dir.display(),
                info["store"].as_str().unwrap_or("another store"),
                self.config.store_name()
            );
        }
        Ok(())
    }

    /// An older daemon goes on serving us, and ends when it has nothing to run. We then start ours.
    async fn ask_to_end(&self) {
        let body = serde_json::json!({ "version": VERSION });
        if let Err(error) = crate::client::control(&self.config, Method::POST, "/control/hand-over", Some(body)).await {
            tracing::warn!(error = format!("{error:#}"), "could not ask the older daemon to shut down");
        }
    }
}

/// A client may close its output and still read: `echo … | matsu mcp`. Answers that come at once reach it; a wait does
/// not keep the relay alive.
async fn last_answers(
    frames: &mut Frames,
    receipts: &mut Receipts,
    daemon: &mut Daemon,
    client_out: &mut (impl AsyncWrite + Unpin),
) {
    let answers = async {
        while frames.has_open() {
            let Ok(Line::Whole(line)) = daemon.0.next().await else { return };
            if frames.received_from_daemon(&line) && pass_on(client_out, receipts, line).await.is_err() {
                return;
            }
        }
    };
    let _ = Clock::system().within(LAST_ANSWERS_MAX, answers).await;
    let taken = async {
        acknowledge(receipts, daemon).await;
        while !receipts.is_empty() {
            receipts.look_again().await;
            acknowledge(receipts, daemon).await;
        }
    };
    let _ = Clock::system().within(LAST_TAKEN_MAX, taken).await;
}

/// Sends a line of the daemon to the client, and remembers which results it shows.
async fn pass_on(
    client_out: &mut (impl AsyncWrite + Unpin),
    receipts: &mut Receipts,
    line: Vec<u8>,
) -> std::io::Result<()> {
    let (bytes, task_ids) = (line.len() + 1, acknowledgement::carried_by(&line));
    send(client_out, line).await?;
    receipts.wrote(bytes, task_ids);
    Ok(())
}

/// Tells the daemon which results the client has taken.
async fn acknowledge(receipts: &mut Receipts, daemon: &mut Daemon) {
    for frame in receipts.taken() {
        let _ = send(&mut daemon.1, frame).await;
    }
}

/// In one piece: the reader is woken once.
async fn send(to: &mut (impl AsyncWrite + Unpin), line: impl Into<Vec<u8>>) -> std::io::Result<()> {
    let mut line = line.into();
    line.push(b'\n');
    to.write_all(&line).await?;
    to.flush().await
}

/// The right to start a daemon; `None`: another client starts one at the moment. Where no lock can be made, the start
/// itself says why.
fn starter(config: &Config) -> Option<Option<ServeLock>> {
    match ServeLock::try_take(&config.paths.starting()) {
        Ok(None) => None,
        taken => Some(taken.ok().flatten()),
    }
}

/// A client that ends us by signal instead of closing our input.
pub async fn termination() {
    match (signal(SignalKind::terminate()), signal(SignalKind::interrupt())) {
        (Ok(mut terminate), Ok(mut interrupt)) => {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
        }
        _ => std::future::pending().await,
    }
}
