//! A run under way: reads both streams and the shim's reports, and says what happened.
//!
//! Everything known lies in the value itself, never in a future, so that a reader who stops listening loses nothing.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::BoxFuture;
use matsu_core::clock::Clock;
use matsu_core::ports::agent::{LiveRun, RunEnd, RunEvent, Verdict};
use matsu_core::run::{Answer, Confinement, Usage};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::process::{Child, ChildStderr, ChildStdout};
use tokio::time::Instant;

use super::decoders::{Decoder, Outcome, Said};
use super::definition::{Definition, UsageScope};
use super::orphans;
use super::place::{self, Place};
use super::process::Shim;
use super::runs_folder::RunFolder;
use super::shim::order::{Order, Report, Word};
use super::text::{LineCutter, Tail, Utf8};
use super::verdict::{self, Exit};
use super::worktree::{Closed, Worktree};

const READ_BYTES: usize = 16 * 1024;

/// After the last process is gone its streams end by themselves, unless it gave them to somebody outside.
const STREAMS_END_WITHIN: Duration = Duration::from_secs(2);

pub struct CliRun {
    definition: Arc<Definition>,
    clock: Clock,
    place: Place,
    usage_before: Option<Usage>,
    level: Confinement,
    marker: String,
    worktree: Option<Worktree>,
    /// Removed when the run is dropped, which is after its last process if it was awaited.
    _folder: RunFolder,
    child: Child,
    control: Option<OwnedWriteHalf>,
    reports: Option<Lines<BufReader<OwnedReadHalf>>>,
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
    buffer: Box<[u8; READ_BYTES]>,
    error_buffer: Box<[u8; READ_BYTES]>,
    reading: Reading,
    stdout_tail: Tail,
    stderr_tail: Tail,
    events: VecDeque<RunEvent>,
    requests: u32,
    hopeless: Option<String>,
    report: Option<Report>,
    streams_end_at: Option<Instant>,
    last_step: Option<BoxFuture<'static, Closed>>,
}

/// How stdout is read.
enum Reading {
    Text(Utf8),
    Stream { cutter: LineCutter, decoder: Box<dyn Decoder> },
}

/// What a run is made of.
pub struct Parts {
    pub definition: Arc<Definition>,
    pub clock: Clock,
    pub place: Place,
    pub level: Confinement,
    pub marker: String,
    pub worktree: Option<Worktree>,
    pub folder: RunFolder,
    pub shim: Shim,
    pub decoder: Option<Box<dyn Decoder>>,
}

impl CliRun {
    pub fn new(parts: Parts) -> Self {
        let Shim { child, control, stdout, stderr } = parts.shim;
        let (reader, writer) = control.into_split();
        let reading = match parts.decoder {
            Some(decoder) => Reading::Stream { cutter: LineCutter::default(), decoder },
            None => Reading::Text(Utf8::default()),
        };
        Self {
            definition: parts.definition,
            clock: parts.clock,
            usage_before: parts.place.usage,
            place: parts.place,
            level: parts.level,
            marker: parts.marker,
            worktree: parts.worktree,
            _folder: parts.folder,
            child,
            control: Some(writer),
            reports: Some(BufReader::new(reader).lines()),
            stdout: Some(stdout),
            stderr: Some(stderr),
            buffer: Box::new([0; READ_BYTES]),
            error_buffer: Box::new([0; READ_BYTES]),
            reading,
            stdout_tail: Tail::default(),
            stderr_tail: Tail::default(),
            events: VecDeque::new(),
            requests: 0,
            hopeless: None,
            report: None,
            streams_end_at: None,
            last_step: None,
        }
    }

    /// The first thing a shim is told.
    pub async fn order(&mut self, order: &Order) {
        self.send(serde_json::to_vec(order)).await;
    }

    /// Says something to the shim.
    pub async fn say(&mut self, word: &Word) {
        self.send(serde_json::to_vec(word)).await;
    }

    async fn send(&mut self, line: serde_json::Result<Vec<u8>>) {
        let Ok(mut line) = line else { return };
        line.push(b'\n');
        if let Some(control) = &mut self.control
            && control.write_all(&line).await.is_err()
        {
            self.control = None;
        }
    }

    /// Says something short, at once. If it cannot be said, hanging up ends the run, whose last word this is anyway.
    fn tell(&mut self, word: &Word) {
        let Ok(mut line) = serde_json::to_vec(word) else { return };
        line.push(b'\n');
        let sent = self.control.as_ref().map(|control| control.try_write(&line));
        if !matches!(sent, Some(Ok(bytes)) if bytes == line.len()) {
            self.control = None;
        }
    }

    /// Puts an event before all others.
    pub fn first(&mut self, event: RunEvent) {
        self.events.push_front(event);
    }

    /// One thing happens.
    async fn step(&mut self) {
        let streams_end_at = self.streams_end_at;
        let clock = self.clock;
        tokio::select! {
            read = read(&mut self.stdout, &mut *self.buffer) => match read {
                0 => self.stdout_ended(),
                bytes => self.hear(bytes),
            },
            read = read(&mut self.stderr, &mut *self.error_buffer) => match read {
                0 => self.stderr = None,
                bytes => self.stderr_tail.push(&self.error_buffer[..bytes]),
            },
            line = next_report(&mut self.reports) => self.reported(line),
            () = until(clock, streams_end_at) => {
                self.stdout_ended();
                self.stderr = None;
            }
        }
    }

    fn hear(&mut self, bytes: usize) {
        let bytes = &self.buffer[..bytes];
        self.stdout_tail.push(bytes);
        match &mut self.reading {
            Reading::Text(utf8) => self.events.push_back(RunEvent::Output(utf8.push(bytes))),
            Reading::Stream { cutter, .. } => {
                for line in cutter.push(bytes) {
                    self.line(&line);
                }
            }
        }
    }

    fn stdout_ended(&mut self) {
        if self.stdout.take().is_none() {
            return;
        }
        match &mut self.reading {
            Reading::Text(utf8) => self.events.push_back(RunEvent::Output(utf8.finish())),
            Reading::Stream { cutter, .. } => {
                if let Some(line) = cutter.take() {
                    self.line(&line);
                }
            }
        }
    }

    fn line(&mut self, line: &str) {
        let Reading::Stream { decoder, .. } = &mut self.reading else { return };
        let Ok(event) = serde_json::from_str(line) else {
            self.events.push_back(RunEvent::Log(line.to_owned()));
            return;
        };
        let mut is_finished = false;
        for said in decoder.event(&event) {
            match said {
                Said::Line(line) => self.events.push_back(RunEvent::Log(line)),
                Said::Session(id) if is_session_id(&id) => self.events.push_back(RunEvent::Session(id)),
                // It becomes an argument of the next run; a stream can say anything.
                Said::Session(_) => tracing::warn!(run = self.marker, "a program named its conversation oddly"),
                Said::Usage(usage) => {
                    let usage = own_usage(&self.definition, self.usage_before, usage, &mut self.place);
                    self.events.push_back(RunEvent::Usage(usage));
                }
                Said::Question(question) => self.events.push_back(RunEvent::Question(question)),
                Said::Finished => is_finished = true,
                Said::Request => self.requests += 1,
                Said::Hopeless(why) => self.hopeless = Some(format!("{}: {why}", self.definition.name)),
            }
        }
        if is_finished {
            self.tell(&Word::CloseInput);
        }
        if self.requests > self.definition.requests_max && self.hopeless.is_none() {
            let max = self.definition.requests_max;
            self.hopeless = Some(format!("{} asked its model more than {max} times", self.definition.name));
        }
        if self.hopeless.is_some() {
            self.end();
        }
    }

    fn reported(&mut self, line: Option<String>) {
        match line.as_deref().map(serde_json::from_str::<Report>) {
            Some(Ok(Report::Started { .. })) => {}
            Some(Ok(report)) => {
                self.report = Some(report);
                self.streams_end_at = Some(self.clock.instant() + STREAMS_END_WITHIN);
            }
            Some(Err(error)) => tracing::warn!(%error, "a shim said something that cannot be read"),
            // It is gone. If it did not say how its run ended, it was killed, and its processes are ours now.
            None => {
                self.reports = None;
                self.control = None;
                if self.report.is_none() {
                    tracing::warn!(run = self.marker, "a run's shim is gone; its processes are ended");
                    self.last_step = Some(Box::pin(orphans::end(self.marker.clone(), self.clock)));
                    self.report = Some(Report::Ended { code: None, signal: None, processes: 0 });
                    self.streams_end_at = Some(self.clock.instant() + STREAMS_END_WITHIN);
                }
            }
        }
    }

    fn is_over(&self) -> bool {
        self.report.is_some() && self.stdout.is_none() && self.stderr.is_none() && self.events.is_empty()
    }

    /// The result of a stream, and then the end itself.
    async fn finish(&mut self) -> RunEvent {
        loop {
            if let Some(step) = &mut self.last_step {
                let closed = step.await;
                self.last_step = None;
                if self.worktree.is_none() {
                    return self.ended(closed);
                }
            }
            let Some(worktree) = self.worktree.take() else { return self.ended(Closed::default()) };
            let message = format!("{} ({})", self.definition.name, self.marker);
            self.last_step = Some(Box::pin(async move { worktree.close(&message).await }));
        }
    }

    fn ended(&mut self, Closed { changes, left }: Closed) -> RunEvent {
        if let Some(changes) = &changes {
            self.place.head = Some(changes.head.clone());
            if !changes.branch.is_empty() {
                self.place.branch = Some(changes.branch.clone());
            }
        }
        let (exit, processes) = match &self.report {
            Some(Report::Ended { code, signal, processes }) => (Exit { code: *code, signal: *signal }, *processes),
            _ => (Exit::default(), 0),
        };
        let outcome = match &mut self.reading {
            Reading::Text(_) => None,
            Reading::Stream { decoder, .. } => Some(decoder.outcome()),
        };
        let stderr_tail = self.stderr_tail.text();
        let verdict = match &self.report {
            Some(Report::Failed { error }) => Verdict::Failure {
                code: matsu_core::error_code::ErrorCode::AgentStartFailed,
                message: format!("{} could not be started: {error}", self.definition.name),
                retryable: false,
            },
            _ => {
                let (hopeless, now) = (self.hopeless.as_deref(), self.clock.now());
                verdict::of(&self.definition, outcome.as_ref(), hopeless, exit, &stderr_tail, now)
            }
        };
        let end = RunEnd {
            exit_code: exit.code,
            verdict,
            stdout_tail: self.stdout_tail.text(),
            stderr_tail,
            processes_ended: processes,
            changes,
            confinement: Some(self.level),
            left_work: left,
        };
        let end = RunEvent::Ended(Box::new(end));
        // Collects the shim itself, which has nothing left to do.
        let _ = self.child.try_wait();
        match outcome {
            Some(Outcome::Success(text)) if !text.is_empty() => {
                self.events.push_back(end);
                RunEvent::Output(text)
            }
            _ => end,
        }
    }
}

#[async_trait]
impl LiveRun for CliRun {
    async fn next(&mut self) -> RunEvent {
        loop {
            if let Some(event) = self.events.pop_front() {
                return event;
            }
            if self.is_over() {
                return self.finish().await;
            }
            self.step().await;
        }
    }

    fn end(&mut self) {
        self.tell(&Word::End);
    }

    async fn answer(&mut self, answer: &Answer) {
        let Reading::Stream { decoder, .. } = &mut self.reading else { return };
        if let Some(line) = decoder.answer(answer) {
            self.say(&Word::Input { text: format!("{line}\n") }).await;
        }
    }

    fn directory(&self) -> Option<PathBuf> {
        Some(self.place.directory.clone())
    }

    fn place(&self) -> Option<String> {
        serde_json::to_string(&self.place).ok()
    }
}

/// Letters, digits and a few signs, and not the beginning of a flag.
#[must_use]
pub fn is_session_id(id: &str) -> bool {
    let is_good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':');
    (1..=200).contains(&id.len()) && !id.starts_with('-') && id.chars().all(is_good)
}

/// Some programs count a conversation from its beginning; its total is remembered for the next run.
fn own_usage(definition: &Definition, before: Option<Usage>, now: Usage, place: &mut Place) -> Usage {
    match definition.session.as_ref().map(|session| session.usage) {
        Some(UsageScope::Conversation) => {
            place.usage = Some(now);
            place::since(before, now)
        }
        Some(UsageScope::Run) | None => now,
    }
}

/// Bytes that were read; 0 at the end, or if the stream broke.
async fn read(stream: &mut Option<impl AsyncReadExt + Unpin>, buffer: &mut [u8]) -> usize {
    match stream {
        Some(stream) => stream.read(buffer).await.unwrap_or(0),
        None => std::future::pending().await,
    }
}

async fn next_report(reports: &mut Option<Lines<BufReader<OwnedReadHalf>>>) -> Option<String> {
    match reports {
        Some(reports) => reports.next_line().await.ok().flatten(),
        None => std::future::pending().await,
    }
}

async fn until(clock: Clock, at: Option<Instant>) {
    match at {
        Some(at) => clock.sleep_until(at).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::is_session_id;

    #[test]
    fn a_conversation_is_not_named_like_a_flag() {
        assert!(is_session_id("ses_3f.2:a") && is_session_id("0f8fad5b-d9cb-469f-a165-70867728950e"));
        for bad in ["", "--dangerously-skip-permissions", "-", "a b", "a\nb", "../x", &"x".repeat(201)] {
            assert!(!is_session_id(bad), "{bad}");
        }
    }
}
