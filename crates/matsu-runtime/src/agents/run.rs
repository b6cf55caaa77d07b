//! One run under way: its events into the store, its questions to people, its end into what the job becomes.
//!
//! However the body is told to stop, it first lets the host end every process and then ends itself. If it is dropped
//! instead, dropping the live run does the same.

use std::collections::VecDeque;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use matsu_core::clock::{Clock, Timestamp};
use matsu_core::error_code::ErrorCode;
use matsu_core::job::end::{clip, pause_before_retry};
use matsu_core::job::{JobEnd, Retry};
use matsu_core::ports::agent::{Agent, LiveRun, RunEnd, RunEvent, Verdict};
use matsu_core::ports::store::{OutputStream, SessionNote, StoreError};
use matsu_core::run::{Answer, Question, RunCheckpoint, RunInput, RunOutput};

use crate::context::JobContext;
use crate::stop_signal::StopWord;

use super::answers::answer_to;
use super::live_runs::Seated;
use super::output::OutputWriter;

/// Characters of the last line that progress shows.
const PROGRESS_CHARS_MAX: usize = 200;

pub struct Run {
    cx: JobContext,
    agent: Option<Agent>,
    input: RunInput,
    checkpoint: RunCheckpoint,
    live: Box<dyn LiveRun>,
    output: OutputWriter,
    known: RunOutput,
    seat: Seated,
    /// Events that came while a question was open.
    backlog: VecDeque<RunEvent>,
    /// The softest word that still means something to this run.
    listens_for: StopWord,
    is_ending: bool,
    /// Cancelled by whoever knows that nobody waits for it any more.
    call_off: CancellationToken,
}

impl Run {
    pub fn new(
        cx: JobContext,
        agent: Option<Agent>,
        input: RunInput,
        checkpoint: RunCheckpoint,
        live: Box<dyn LiveRun>,
    ) -> Self {
        let output = OutputWriter::new(cx.runtime().clone(), cx.lease.clone());
        let known = RunOutput { agent: input.agent.clone(), ..RunOutput::default() };
        let seat = cx.runtime().live_runs().sit_down(&cx, &input);
        let (backlog, listens_for) = (VecDeque::new(), StopWord::Yield);
        let (is_ending, call_off) = (false, CancellationToken::new());
        Self { cx, agent, input, checkpoint, live, output, known, seat, backlog, listens_for, is_ending, call_off }
    }

    /// Ends its processes when this is cancelled.
    pub fn with_call_off(self, call_off: CancellationToken) -> Self {
        Self { call_off, ..self }
    }

    pub async fn until_it_ends(mut self) -> JobEnd {
        let clock = *self.cx.runtime().clock();
        loop {
            let flush_at = self.output.flush_at();
            let event = tokio::select! {
                biased;
                word = self.cx.stop.told_at_least(self.listens_for), if !self.is_ending => {
                    self.told(word);
                    continue;
                }
                () = self.call_off.cancelled(), if !self.is_ending => {
                    self.told(StopWord::Abort);
                    continue;
                }
                event = next(&mut self.backlog, &mut self.live) => event,
                () = until(clock, flush_at) => {
                    self.output.flush().await;
                    continue;
                }
            };
            match event {
                RunEvent::Ended(end) => return self.ended(*end).await,
                event => self.happened(event).await,
            }
        }
    }

    /// A graceful stop leaves it its grace; everything else ends it now.
    fn told(&mut self, word: StopWord) {
        if word == StopWord::EndSoon {
            self.listens_for = StopWord::Shutdown;
            return;
        }
        self.is_ending = true;
        self.live.end();
    }

    async fn happened(&mut self, event: RunEvent) {
        match event {
            RunEvent::Output(text) => {
                show(&self.cx, &text).await;
                self.output.push(OutputStream::Result, &text).await;
            }
            RunEvent::Log(line) => {
                show(&self.cx, &line).await;
                self.output.push(OutputStream::Log, &format!("{line}\n")).await;
            }
            RunEvent::Session(id) => self.named(id).await,
            RunEvent::Usage(usage) => self.known.usage = Some(usage),
            RunEvent::Question(question) => self.asked(question).await,
            RunEvent::Ended(_) => {}
        }
    }

    /// The vendor has named the conversation: from now on it can be resumed, whatever happens to us.
    async fn named(&mut self, vendor_session: String) {
        if self.known.vendor_session.as_ref() == Some(&vendor_session) {
            return;
        }
        self.known.vendor_session = Some(vendor_session.clone());
        self.known.session_id = Some(self.input.session.clone());
        self.checkpoint.vendor_session = Some(vendor_session);
        self.remember().await;
        let known = serde_json::json!(self.known);
        let noted = self.cx.partial_output(&known).await;
        note(&self.cx, noted);
    }

    /// Writes down where the conversation can go on.
    async fn remember(&mut self) {
        self.checkpoint.place = self.live.place();
        let Some(vendor_session) = self.checkpoint.vendor_session.clone() else { return };
        let session = SessionNote { vendor_session, place: self.checkpoint.place.clone() };
        let runtime = self.cx.runtime();
        let noted = runtime.store().note_session(&self.cx.lease, session, runtime.clock().now()).await;
        note(&self.cx, noted);
        let checkpoint = serde_json::json!(self.checkpoint);
        let noted = self.cx.checkpoint(&checkpoint).await;
        note(&self.cx, noted);
    }

    /// Parks until a person has answered, the program has ended by itself, or it is told to stop.
    async fn asked(&mut self, question: Question) {
        self.output.flush().await;
        let Ok(text) = serde_json::to_string(&question) else { return };
        let cx = self.cx.clone();
        let (live, backlog, listens_for) = (&mut self.live, &mut self.backlog, self.listens_for);
        let answered = cx.ask(&text, async {
            loop {
                tokio::select! {
                    biased;
                    answer = answer_to(&cx, &question) => return Some(answer),
                    _ = cx.stop.told_at_least(listens_for) => return None,
                    event = live.next() => {
                        let is_end = matches!(event, RunEvent::Ended(_));
                        backlog.push_back(event);
                        if is_end {
                            return None;
                        }
                    }
                }
            }
        });
        let answered: Result<Option<Answer>, StoreError> = answered.await;
        match answered {
            Ok(Some(answer)) => self.live.answer(&answer).await,
            // It has ended, or the next look at the stop signal ends it.
            Ok(None) => {}
            Err(error) => {
                tracing::debug!(job.id = %self.cx.lease.job_id, %error, "a question could not be asked");
                self.is_ending = true;
                self.live.end();
            }
        }
    }

    async fn ended(mut self, end: RunEnd) -> JobEnd {
        self.output.flush().await;
        self.seat.set_processes_ended(end.processes_ended);
        self.known.exit_code = end.exit_code;
        self.known.processes_ended = end.processes_ended;
        self.known.changes = end.changes;
        self.known.output_truncated = self.output.is_truncated();
        self.known.stdout_tail = end.stdout_tail;
        self.known.stderr_tail = end.stderr_tail;
        self.remember().await;
        let streams = self.agent.as_ref().is_some_and(|agent| agent.supports.stream);
        // A program of plain text that is asked to end may well exit with 0; that is no result.
        if self.is_ending && !(streams && end.verdict == Verdict::Success) {
            return JobEnd::Cancelled { code: None, output_json: Some(self.output_json()) };
        }
        match end.verdict {
            Verdict::Success => {
                self.known.empty = self.output.result_bytes() == 0;
                // Nobody looks for the reason of a success.
                self.known.stdout_tail = String::new();
                self.known.stderr_tail = String::new();
                JobEnd::Completed { output_json: self.output_json() }
            }
            Verdict::Quota { until, message } => self.out_of_quota(until, message).await,
            Verdict::Failure { code, message, retryable } => self.failed(code, message, retryable).await,
        }
    }

    async fn out_of_quota(mut self, until: Timestamp, message: String) -> JobEnd {
        let can_resume = self.agent.as_ref().is_some_and(|agent| agent.supports.resume);
        if !can_resume || self.checkpoint.vendor_session.is_none() {
            return self.failed(ErrorCode::AgentQuota, message, true).await;
        }
        self.checkpoint.quota_until = Some(until.as_millis());
        let checkpoint = serde_json::json!(self.checkpoint);
        if self.cx.checkpoint(&checkpoint).await.is_err() {
            return self.failed(ErrorCode::AgentQuota, message, true).await;
        }
        self.cx.progress(&format!("out of quota until {until}: {message}")).await;
        JobEnd::Requeue { run_at: Some(until) }
    }

    async fn failed(mut self, code: ErrorCode, message: String, retryable: bool) -> JobEnd {
        let retries = self.agent.as_ref().map_or(0, |agent| agent.retries);
        if retryable && self.checkpoint.transient_failures < retries {
            self.checkpoint.transient_failures += 1;
            let pause = pause_before_retry(self.checkpoint.transient_failures);
            let checkpoint = serde_json::json!(self.checkpoint);
            if self.cx.checkpoint(&checkpoint).await.is_ok() {
                return JobEnd::Requeue { run_at: Some(self.cx.runtime().clock().now().plus(pause)) };
            }
        }
        self.known.retryable = retryable;
        let output_json = Some(self.output_json());
        JobEnd::Failed { code: code.to_string(), message, retry: Retry::Never, output_json }
    }

    fn output_json(&self) -> String {
        serde_json::to_string(&self.known).unwrap_or_else(|_| "{}".to_owned())
    }
}

/// The last line that says something, for whoever watches.
async fn show(cx: &JobContext, text: &str) {
    if let Some(line) = text.lines().rev().map(str::trim).find(|line| !line.is_empty()) {
        cx.progress(&clip(line, PROGRESS_CHARS_MAX)).await;
    }
}

/// What could not be written down is not worth the run; a lost lease is noticed by the orders.
fn note(cx: &JobContext, written: Result<(), StoreError>) {
    if let Err(error) = written {
        tracing::debug!(job.id = %cx.lease.job_id, %error, "a note about a run could not be written");
    }
}

async fn next(backlog: &mut VecDeque<RunEvent>, live: &mut Box<dyn LiveRun>) -> RunEvent {
    match backlog.pop_front() {
        Some(event) => event,
        None => live.next().await,
    }
}

async fn until(clock: Clock, at: Option<Instant>) {
    match at {
        Some(at) => clock.sleep_until(at).await,
        None => std::future::pending().await,
    }
}
