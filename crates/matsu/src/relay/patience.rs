//! A relay that may not start a daemon waits for one: the relay of a run for as long as the run lasts, any other after a
//! person has ended the daemon. It works in no store itself and does not give up. Calls that come meanwhile are held,
//! and answered as worth trying again when that takes too long.

use std::time::Duration;

use anyhow::{Context, Result};
use matsu_core::clock::Clock;
use matsu_server::mcp::bounded_lines::{BoundedLines, Line};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::Instant;

use super::frames::{self, Frames, Lost};
use super::{Daemon, Relay, Start, send};

/// How long a call is held while no daemon answers.
const CALL_HELD: Duration = Duration::from_secs(30);

/// The same after a person has ended the daemon: long enough for a restart, and no daemon is expected otherwise.
const CALL_HELD_SHUT_DOWN: Duration = Duration::from_secs(3);

impl Relay {
    fn call_held(&self) -> Duration {
        if self.lost() == Lost::ShutDown { CALL_HELD_SHUT_DOWN } else { CALL_HELD }
    }

    /// A daemon, whenever one comes. `None`: the client has left.
    pub(super) async fn await_daemon(
        &self,
        frames: &mut Frames,
        client: &mut BoundedLines<impl AsyncRead + Unpin>,
        client_out: &mut (impl AsyncWrite + Unpin),
    ) -> Result<Option<Daemon>> {
        let clock = Clock::system();
        let (mut held, mut answer_at): (Vec<Vec<u8>>, Option<Instant>) = (Vec::new(), None);
        loop {
            tokio::select! {
                reached = self.reach(matsu_core::limits::DAEMON_START_MAX, Start::UnlessShutDown) => if let Some(mut daemon) = reached? {
                    // One that ends meanwhile is noticed by the next read, and replaced in turn.
                    for line in frames.handshake() {
                        let _ = send(&mut daemon.1, line).await;
                    }
                    for line in held.into_iter().filter(|line| !is_handshake(line)) {
                        let _ = send(&mut daemon.1, line).await;
                    }
                    return Ok(Some(daemon));
                },
                line = client.next() => match line.context("cannot read from the client")? {
                    Line::Whole(line) => {
                        held.push(frames.received_from_client(line));
                        answer_at.get_or_insert(clock.instant() + self.call_held());
                    }
                    Line::TooLong => {
                        send(client_out, frames::too_long()).await.context("cannot write to the client")?;
                    }
                    Line::End => return Ok(None),
                },
                () = clock.sleep_until(answer_at.unwrap_or_else(|| clock.instant() + self.call_held())) => {
                    for answer in frames.give_up(self.lost()) {
                        send(client_out, answer).await.context("cannot write to the client")?;
                    }
                    held.clear();
                    answer_at = None;
                }
            }
        }
    }
}

/// What is repeated with every daemon anyway.
fn is_handshake(line: &[u8]) -> bool {
    let frame: Value = serde_json::from_slice(line).unwrap_or_default();
    matches!(frame["method"].as_str(), Some("initialize" | "notifications/initialized"))
}
