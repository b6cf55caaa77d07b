//! The control socket: one daemon at a time, the one with the highest attempt.

use std::collections::HashSet;
use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use matsu_core::clock::Clock;
use matsu_core::secret::Token;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};

use super::order::{Hello, Notice, Supervision, VERSION, Word};
use crate::agents::runs_folder::{RunFolder, bind_in};

/// A connection that does not say hello within this time is closed.
const HELLO_TICKS_MAX: u32 = 5;

/// A daemon that does not take a notice within this time is stuck.
const SEND_WITHIN: Duration = Duration::from_secs(2);

/// What happened at the control socket.
pub enum ControlEvent {
    Word(Word),
    Connected,
    Disconnected,
}

struct Connection {
    words: Lines<BufReader<OwnedReadHalf>>,
    writer: OwnedWriteHalf,
}

impl Connection {
    fn new(stream: UnixStream) -> Self {
        let (reader, writer) = stream.into_split();
        Self { words: BufReader::new(reader).lines(), writer }
    }
}

pub struct Control {
    listener: UnixListener,
    secret: String,
    attempt: i64,
    daemon: Option<Connection>,
    /// Has connected and not said hello yet, for this many ticks.
    newcomer: Option<(Connection, u32)>,
    /// Inputs that were taken.
    inputs: HashSet<u64>,
    /// The last position of the output that was sent to the daemon.
    reported: (u64, u64),
    /// A later position could not be sent.
    owes: Option<(u64, u64)>,
    /// How long the program has run, without the time in which a person was asked.
    ran_seconds: u32,
}

impl Control {
    /// Stdin is the connection to the daemon that starts the run; later ones come to the socket in the run's folder.
    pub fn open(folder: &RunFolder, order: &Supervision) -> io::Result<Self> {
        let socket = std::os::unix::net::UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
        socket.set_nonblocking(true)?;
        let daemon = Some(Connection::new(UnixStream::from_std(socket)?));
        let listener = bind_in(&folder.outside(), "control.sock")?;
        let (secret, attempt) = (order.secret.clone(), order.attempt);
        let (inputs, reported) = (HashSet::new(), (0, 0));
        Ok(Self { listener, secret, attempt, daemon, newcomer: None, inputs, reported, owes: None, ran_seconds: 0 })
    }

    pub fn ran_seconds(&self) -> u32 {
        self.ran_seconds
    }

    pub fn is_connected(&self) -> bool {
        self.daemon.is_some()
    }

    /// Whether this input did not come before.
    pub fn is_new(&mut self, input: u64) -> bool {
        self.inputs.insert(input)
    }

    /// What happens next. May be dropped: nothing is lost.
    pub async fn next(&mut self) -> ControlEvent {
        loop {
            tokio::select! {
                line = next_line(self.daemon.as_mut()) => match line.as_deref().map(serde_json::from_str) {
                    Some(Ok(word)) => return ControlEvent::Word(word),
                    // A word of a later version; the daemon knows which version this is.
                    Some(Err(_)) => {}
                    None => {
                        self.daemon = None;
                        return ControlEvent::Disconnected;
                    }
                },
                line = next_line(self.newcomer.as_mut().map(|(newcomer, _)| newcomer)) => {
                    if self.introduced(line.as_deref()) {
                        return ControlEvent::Connected;
                    }
                }
                accepted = self.listener.accept(), if self.newcomer.is_none() => {
                    if let Ok((stream, _)) = accepted {
                        self.newcomer = Some((Connection::new(stream), 0));
                    }
                }
            }
        }
    }

    /// Whether the new connection is the daemon's from now on.
    fn introduced(&mut self, line: Option<&str>) -> bool {
        let Some((newcomer, _)) = self.newcomer.take() else { return false };
        let Some(Ok(hello)) = line.map(serde_json::from_str::<Hello>) else { return false };
        let is_known = Token::new(&self.secret).matches(&hello.secret);
        let refusal = match hello.attempt {
            _ if !is_known => Some("the secret does not belong to this run".to_owned()),
            attempt if attempt < self.attempt => Some(format!("attempt {} controls this run", self.attempt)),
            _ => None,
        };
        if let Some(why) = refusal {
            send_notice(&newcomer, &Notice::Refused { why });
            return false;
        }
        send_notice(&newcomer, &Notice::Welcome { version: VERSION, ran_seconds: self.ran_seconds });
        self.attempt = hello.attempt;
        self.daemon = Some(newcomer);
        self.reported = (0, 0);
        true
    }

    pub fn tick(&mut self, counts: bool) {
        self.ran_seconds = self.ran_seconds.saturating_add(u32::from(counts));
        if let Some((_, ticks)) = &mut self.newcomer {
            *ticks += 1;
            if *ticks > HELLO_TICKS_MAX {
                self.newcomer = None;
            }
        }
        if let Some(ends) = self.owes.take() {
            self.grew(ends);
        }
    }

    /// There is output up to these positions. A daemon that is busy gets them later.
    pub fn grew(&mut self, (out, err): (u64, u64)) {
        if let Some(daemon) = &self.daemon
            && self.reported != (out, err)
        {
            if send_notice(daemon, &Notice::Grew { out, err }) {
                self.reported = (out, err);
            } else {
                self.owes = Some((out, err));
            }
        }
    }

    /// Sends a notice that the daemon must get.
    pub async fn send(&mut self, notice: &Notice) {
        let (Some(daemon), Ok(mut line)) = (&mut self.daemon, serde_json::to_vec(notice)) else { return };
        line.push(b'\n');
        let _ = Clock::system().within(SEND_WITHIN, daemon.writer.write_all(&line)).await;
    }
}

/// Sends a short line at once, or not at all.
fn send_notice(connection: &Connection, notice: &Notice) -> bool {
    let Ok(mut line) = serde_json::to_vec(notice) else { return false };
    line.push(b'\n');
    matches!(connection.writer.try_write(&line), Ok(bytes) if bytes == line.len())
}

async fn next_line(connection: Option<&mut Connection>) -> Option<String> {
    match connection {
        Some(connection) => connection.words.next_line().await.ok().flatten(),
        None => std::future::pending().await,
    }
}
