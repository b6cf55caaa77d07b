//! One run of a program, as the runtime sees it: what its supervisor has spooled becomes events, in order. Everything
//! known lies in the value itself, never in a future, so a reader that stops waiting loses nothing; and nothing is known
//! that cannot be found again in the run's folder, so another daemon goes on where this one stopped.

mod conversation;
mod ending;
mod lost;
mod snapshot;

use std::collections::{HashMap, VecDeque};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use futures_util::future::BoxFuture;
use matsu_core::clock::Clock;
use matsu_core::confinement::Confinement;
use matsu_core::limits::TICK;
use matsu_core::ports::agent::{LiveRun, RunEvent};
use matsu_core::run::Answer;
use matsu_core::usage::Usage;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};

use super::decoders::{Decoded, Decoder};
use super::definition::Definition;
use super::orphans;
use super::place::Place;
use super::runs_folder::RunFolder;
use super::spool::{SEGMENT_BYTES, SpoolReader, Stream, forget_before};
use super::supervisor::exit_record::ExitRecord;
use super::supervisor::order::{Notice, Word};
use super::text::{LineCutter, Tail, Utf8};
use super::worktree::{Closed, Worktree};
pub use conversation::is_session_id;
use conversation::own_usage;
use lost::end_lost;
use snapshot::Snapshots;

/// What is kept of the output of a program that prints plain text, for the tail that an error shows.
const TEXT_KEPT: u64 = 64 * 1024;

/// So much of a stream may say nothing before that is an event.
const PASSED_EVERY: u64 = 1024 * 1024;

/// Everything that is there is read.
const UNKNOWN_ENDS: (u64, u64) = (u64::MAX, u64::MAX);

pub struct CliRun {
    definition: Arc<Definition>,
    clock: Clock,
    place: Place,
    usage_before: Option<Usage>,
    level: Confinement,
    marker: String,
    worktree: Option<Worktree>,
    folder: RunFolder,
    control: Option<OwnedWriteHalf>,
    notices: Option<Lines<BufReader<OwnedReadHalf>>>,
    out: SpoolReader,
    err: SpoolReader,
    /// Output may be there up to these positions of both streams. Nothing is looked for beyond them.
    ends: (u64, u64),
    reading: Reading,
    stdout_tail: Tail,
    stderr_tail: Tail,
    /// Each with the position in the output that is reached with it.
    events: VecDeque<(RunEvent, u64)>,
    /// What was returned reaches up to here.
    position: u64,
    /// Segments of plain text before this position are removed.
    forgotten: u64,
    /// Where the questions were asked that are not answered yet.
    asked_at: HashMap<String, u64>,
    requests: u32,
    hopeless: Option<String>,
    /// What a program that streams has last said of its conversation and its cost.
    named: Option<String>,
    used: Option<Usage>,
    snapshots: Snapshots,
    /// How long the program had run when this daemon came.
    ran_seconds: u32,
    /// The machine was started again since the run began.
    is_old_boot: bool,
    end: Option<End>,
    last_step: Option<BoxFuture<'static, Closed>>,
}

/// How the supervisor ended.
enum End {
    Recorded(ExitRecord),
    /// It was killed. What it had spooled is there.
    Lost,
    /// What it had spooled cannot be read.
    Damaged(String),
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
    pub usage_before: Option<Usage>,
    pub level: Confinement,
    pub marker: String,
    pub worktree: Option<Worktree>,
    pub folder: RunFolder,
    /// Absent: the supervisor is gone.
    pub control: Option<UnixStream>,
    pub ran_seconds: u32,
    pub is_old_boot: bool,
    pub decoder: Option<Box<dyn Decoder>>,
}

impl CliRun {
    pub fn new(parts: Parts) -> Self {
        let (notices, control) = match parts.control.map(UnixStream::into_split) {
            Some((reader, writer)) => (Some(BufReader::new(reader).lines()), Some(writer)),
            None => (None, None),
        };
        let reading = match parts.decoder {
            Some(decoder) => Reading::Stream { cutter: LineCutter::default(), decoder },
            None => Reading::Text(Utf8::default()),
        };
        let spool = parts.folder.spool();
        let err_at = SpoolReader::first(&spool, Stream::Err).unwrap_or(0);
        Self {
            definition: parts.definition,
            clock: parts.clock,
            usage_before: parts.usage_before,
            place: parts.place,
            level: parts.level,
            marker: parts.marker,
            worktree: parts.worktree,
            folder: parts.folder,
            control,
            notices,
            out: SpoolReader::new(&spool, Stream::Out, 0),
            err: SpoolReader::new(&spool, Stream::Err, err_at),
            ends: UNKNOWN_ENDS,
            reading,
            stdout_tail: Tail::default(),
            stderr_tail: Tail::default(),
            events: VecDeque::new(),
            position: 0,
            forgotten: 0,
            asked_at: HashMap::new(),
            requests: 0,
            hopeless: None,
            named: None,
            used: None,
            snapshots: Snapshots::default(),
            ran_seconds: parts.ran_seconds,
            is_old_boot: parts.is_old_boot,
            end: None,
            last_step: None,
        }
    }

    /// Sends a word to the supervisor, at once. One that cannot be reached has ended or hangs; its lock shows which.
    fn send(&mut self, word: &Word) {
        let Ok(mut line) = serde_json::to_vec(word) else { return };
        line.push(b'\n');
        // Past the runtime, which learns only in its next turn that a new connection can be written to: a word that it
        // takes for refused would end the connection, and the answer to a question would never arrive.
        let sent = self.control.as_ref().map(|control| {
            let stream: &UnixStream = control.as_ref();
            rustix::io::write(stream, &line)
        });
        if !matches!(sent, Some(Ok(bytes)) if bytes == line.len()) {
            self.control = None;
        }
    }

    /// Puts an event before all others.
    pub fn first(&mut self, event: RunEvent) {
        self.events.push_front((event, self.position));
    }

    /// Takes what there is to read. `false`: nothing at the moment.
    fn read_more(&mut self) -> bool {
        if self.err.position() < self.ends.1 {
            while let Ok(Some(bytes)) = self.err.next() {
                self.stderr_tail.push(&bytes);
            }
            self.ends.1 = self.err.position();
        }
        if self.out.position() >= self.ends.0 {
            return false;
        }
        match self.out.next() {
            Ok(Some(bytes)) => {
                self.read(&bytes, self.out.position());
                true
            }
            Ok(None) => {
                self.ends.0 = self.out.position();
                false
            }
            // What the system refuses, as for too many open files, it may allow a moment later.
            Err(error) if error.raw_os_error().is_some() && error.kind() != io::ErrorKind::NotFound => {
                tracing::warn!(run = self.marker, %error, "the output of a run cannot be read at the moment");
                false
            }
            Err(error) => {
                tracing::error!(run = self.marker, %error, "the output of a run cannot be read");
                self.end = Some(End::Damaged(error.to_string()));
                false
            }
        }
    }

    /// `after`: the position after these bytes.
    fn read(&mut self, bytes: &[u8], after: u64) {
        self.stdout_tail.push(bytes);
        let before = after - bytes.len() as u64;
        match &mut self.reading {
            Reading::Text(utf8) => {
                let text = utf8.push(bytes);
                let position = after - utf8.held() as u64;
                if !text.is_empty() {
                    self.events.push_back((RunEvent::Output(text), position));
                }
            }
            Reading::Stream { cutter, .. } => {
                for (end, line) in cutter.push(bytes) {
                    self.line(&line, before + end as u64);
                }
            }
        }
    }

    fn stdout_ended(&mut self) {
        let position = self.out.position();
        match &mut self.reading {
            Reading::Text(utf8) => {
                let text = utf8.finish();
                if !text.is_empty() {
                    self.events.push_back((RunEvent::Output(text), position));
                }
            }
            Reading::Stream { cutter, .. } => {
                if let Some(line) = cutter.take() {
                    self.line(&line, position);
                }
            }
        }
    }

    /// One line of a stream, which ends at this position. What it makes is stored together or not at all, so its text
    /// is one event.
    fn line(&mut self, line: &str, position: u64) {
        let Reading::Stream { decoder, .. } = &mut self.reading else { return };
        let before = self.events.back().map_or(self.position, |(_, position)| *position);
        let Ok(event) = serde_json::from_str(line) else {
            self.events.push_back((RunEvent::Log(line.to_owned()), position));
            return;
        };
        let mut is_finished = false;
        let (mut text, mut questions): (Vec<String>, Vec<_>) = (Vec::new(), Vec::new());
        for decoded in decoder.event(&event) {
            match decoded {
                Decoded::Line(line) => text.push(line),
                Decoded::Session(id) if is_session_id(&id) => {
                    self.named = Some(id.clone());
                    self.send(&Word::Session { id: id.clone() });
                    self.events.push_back((RunEvent::Session(id), before));
                }
                // It becomes an argument of the next run; a stream can say anything.
                Decoded::Session(_) => tracing::warn!(run = self.marker, "invalid conversation id from the program"),
                Decoded::Usage(usage) => {
                    let usage = own_usage(&self.definition, self.usage_before, usage, &mut self.place);
                    self.used = Some(usage);
                    self.events.push_back((RunEvent::Usage(usage), before));
                }
                Decoded::Question(question) => questions.push(question),
                Decoded::Finished => is_finished = true,
                Decoded::Request => self.requests += 1,
                Decoded::Hopeless(why) => self.hopeless = Some(format!("{}: {why}", self.definition.name)),
            }
        }
        if !text.is_empty() {
            let reached = if questions.is_empty() { position } else { before };
            self.events.push_back((RunEvent::Log(text.join("\n")), reached));
        }
        for question in questions {
            self.asked_at.insert(question.id.clone(), position);
            self.events.push_back((RunEvent::Question(question), position));
        }
        if is_finished {
            self.send(&Word::CloseInput);
        }
        if self.requests > self.definition.requests_max && self.hopeless.is_none() {
            let max = self.definition.requests_max;
            self.hopeless = Some(format!("{} asked its model more than {max} times", self.definition.name));
        }
        if self.hopeless.is_some() {
            self.send(&Word::End);
        }
        // What says nothing is not stored, and the supervisor must hear all the same that it was read.
        if self.events.back().map_or(self.position, |(_, position)| *position) + PASSED_EVERY <= position {
            self.events.push_back((RunEvent::Passed, position));
        }
        self.take_snapshot(position);
    }

    /// Until there may be more to read.
    async fn wait(&mut self) {
        if self.notices.is_none() && !self.folder.is_held() {
            return self.supervisor_gone();
        }
        let clock = self.clock;
        tokio::select! {
            line = next_notice(&mut self.notices) => match line.as_deref().map(serde_json::from_str::<Notice>) {
                Some(Ok(Notice::Ended)) | None => self.supervisor_gone(),
                Some(Ok(Notice::Grew { out, err })) => self.ends = (out, err),
                Some(_) => {}
            },
            // Without a connection the lock of the supervisor shows whether it is there.
            () = clock.sleep(TICK) => self.ends = UNKNOWN_ENDS,
        }
    }

    /// It has ended, or was killed: then its processes are ended here, if it was not able to.
    fn supervisor_gone(&mut self) {
        self.notices = None;
        if self.end.is_some() {
            return;
        }
        let record = ExitRecord::read(&self.folder);
        if record.is_none() && self.folder.is_held() {
            // Only the connection is gone.
            self.control = None;
            return;
        }
        self.end = Some(match record {
            Some(record) => End::Recorded(record),
            None => {
                tracing::warn!(run = self.marker, "a supervisor is gone without a record; its processes are ended");
                self.last_step = Some(Box::pin(end_lost(self.folder.order(), self.marker.clone(), self.clock)));
                End::Lost
            }
        });
        self.ends = UNKNOWN_ENDS;
        while self.read_more() {}
        self.stdout_ended();
        if let Some(End::Recorded(ExitRecord { out_bytes: Some(printed), .. })) = &self.end
            && self.out.position() < *printed
        {
            let read = self.out.position();
            self.end = Some(End::Damaged(format!("its stored output ends after {read} of {printed} bytes")));
        }
    }
}

#[async_trait]
impl LiveRun for CliRun {
    async fn next(&mut self) -> RunEvent {
        loop {
            if let Some((event, position)) = self.events.pop_front() {
                self.position = self.position.max(position);
                return event;
            }
            if self.end.is_some() {
                return self.finish().await;
            }
            if !self.read_more() && self.end.is_none() {
                self.wait().await;
            }
        }
    }

    fn end(&mut self) {
        self.send(&Word::End);
        let marker = self.marker.clone();
        drop(tokio::task::spawn_blocking(move || orphans::wake(&marker)));
    }

    async fn answer(&mut self, answer: &Answer) {
        let Reading::Stream { decoder, .. } = &mut self.reading else { return };
        let asked_at = self.asked_at.remove(&answer.id);
        if let (Some(line), Some(asked_at)) = (decoder.answer(answer), asked_at) {
            let mut word =
                serde_json::to_vec(&Word::Input { id: asked_at, text: format!("{line}\n") }).unwrap_or_default();
            word.push(b'\n');
            if let Some(control) = &mut self.control
                && control.write_all(&word).await.is_err()
            {
                self.control = None;
            }
        }
    }

    fn directory(&self) -> Option<PathBuf> {
        Some(self.place.directory.clone())
    }

    fn place(&self) -> Option<String> {
        serde_json::to_string(&self.place).ok()
    }

    fn position(&self) -> u64 {
        self.position
    }

    fn stored(&mut self, position: u64) {
        self.send(&Word::Read { position });
        if matches!(self.reading, Reading::Text(_)) {
            let unneeded = position.saturating_sub(TEXT_KEPT);
            if unneeded >= self.forgotten + SEGMENT_BYTES {
                self.forgotten = unneeded;
                let _ = forget_before(&self.folder.spool(), Stream::Out, unneeded);
            }
        } else {
            self.keep_snapshot(position);
        }
    }

    fn set_parked(&mut self, is_parked: bool) {
        self.send(&Word::Park { is_parked });
    }

    fn ran_seconds(&self) -> u32 {
        self.ran_seconds
    }
}

async fn next_notice(notices: &mut Option<Lines<BufReader<OwnedReadHalf>>>) -> Option<String> {
    match notices {
        Some(notices) => notices.next_line().await.ok().flatten(),
        None => std::future::pending().await,
    }
}
