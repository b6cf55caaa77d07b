//! One run under way: its events into the store, its questions to people, its end into what the job becomes.
//!
//! A body that must stop first lets the host end every process and then ends itself. If this process ends, or is
//! no longer the owner, the body leaves a run that outlives it as it is: the next owner takes it over, from the last
//! position of the program's output that is stored.

mod ending;
mod questions;

pub use ending::go_on_command;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use matsu_core::clock::Clock;
use matsu_core::job::JobEnd;
use matsu_core::job::end::clip;
use matsu_core::limits::TICK;
use matsu_core::ports::agent::{Agent, AgentHost, LiveRun, Resume, RunEvent};
use matsu_core::ports::store::{NoteSession, OutputPosition, OutputStream, SessionNote, StoreError};
use matsu_core::run::{RunCheckpoint, RunInput, RunOutput};
use matsu_core::usage::Usage;

use crate::runtime::context::JobContext;
use crate::stop_signal::StopLevel;

use super::budget::{Limits, UsedUp, with_estimate};
use super::live_runs::RunGuard;
use super::output::OutputWriter;
use super::own_session::OwnSession;
use super::redacted::Redacted;
use super::usage::price;

/// Characters of the last line that progress shows.
const PROGRESS_CHARS_MAX: usize = 200;

/// A run that has reached a limit of what it may cost and does not end by itself within this time is ended. Programs
/// report what they cost with their last words too, and a run that is over must not count as ended by Matsu.
const BUDGET_GRACE: Duration = Duration::from_secs(3);

/// So much of a stream may say nothing before it is reported to the supervisor as read.
const STORED_AT_LEAST_EVERY: u64 = 4 * 1024 * 1024;

pub struct Run {
    cx: JobContext,
    agent: Agent,
    input: RunInput,
    checkpoint: RunCheckpoint,
    live: Box<dyn LiveRun>,
    output: OutputWriter,
    known: RunOutput,
    /// What this run alone has cost by its own account.
    used: Option<Usage>,
    handle: RunGuard,
    /// What it may cost.
    limits: Limits,
    /// When they are looked at next.
    limits_at: Option<Instant>,
    limits_seen: Option<Instant>,
    /// Which of them is used up; it is ended for that, if it does not end by itself.
    used_up: Option<UsedUp>,
    own: OwnSession,
    /// The session is over; what that means has been seen to.
    is_session_over: bool,
    /// When it is ended, whatever it still does.
    end_at: Option<Instant>,
    /// Events that came while a question was open, each with the position that is reached with it.
    backlog: VecDeque<(RunEvent, u64)>,
    /// The position in the program's output up to which everything has been seen to.
    reached: u64,
    /// The position up to which everything is stored, as far as the supervisor knows.
    stored_to: u64,
    outlives: bool,
    host: Arc<dyn AgentHost>,
    /// The softest word that still means something to this run.
    listens_for: StopLevel,
    is_ending: bool,
    /// This process leaves the run to the next owner.
    is_left: bool,
    /// Where it can go on is written down.
    is_remembered: bool,
    /// What it had printed before this process came is stored.
    is_caught_up: bool,
    /// A question with its answer, until the program has shown by its next words that it got it.
    answered: Option<String>,
}

/// What a run begins with.
pub struct Beginning {
    pub cx: JobContext,
    pub agent: Agent,
    pub input: RunInput,
    pub checkpoint: RunCheckpoint,
    pub resume: Option<Resume>,
    pub own: OwnSession,
    pub handle: RunGuard,
    pub live: Box<dyn LiveRun>,
    pub limits: Limits,
    /// Whether the run goes on without this process.
    pub outlives: bool,
    /// What is stored of its output already.
    pub stored: OutputPosition,
    pub host: Arc<dyn AgentHost>,
}

impl Run {
    pub fn new(begin: Beginning) -> Self {
        let Beginning { cx, agent, input, checkpoint, resume, own, handle, live, limits, outlives, stored, host } =
            begin;
        // The result of a stream comes whole at the end; another process may have begun to write it.
        let result = if agent.supports.stream { 0 } else { stored.result };
        let output = OutputWriter::new(cx.runtime().clone(), cx.lease.clone(), [result, stored.log]);
        cx.runtime().running().set_ran(&cx.lease, live.ran_seconds());
        let live: Box<dyn LiveRun> = Box::new(Redacted::new(live, own.token(), &input));
        // A conversation that goes on has its name from the beginning, whether or not the program says it again.
        let vendor_session = checkpoint.vendor_session.clone().or(resume.map(|resume| resume.vendor_session));
        let session_id = vendor_session.is_some().then(|| input.session.clone());
        let (agent_name, usage) = (input.agent.clone(), checkpoint.spent);
        let tried = checkpoint.tried.clone();
        let estimated_usd = checkpoint.estimated_usd;
        let known = RunOutput {
            agent: agent_name,
            session_id,
            vendor_session,
            usage,
            estimated_usd,
            tried,
            ..RunOutput::default()
        };
        Self {
            cx,
            agent,
            input,
            checkpoint,
            live,
            output,
            known,
            used: None,
            handle,
            limits,
            limits_at: None,
            limits_seen: None,
            used_up: None,
            own,
            is_session_over: false,
            end_at: None,
            backlog: VecDeque::new(),
            reached: stored.read_to,
            stored_to: stored.read_to,
            outlives,
            host,
            listens_for: StopLevel::Yield,
            is_ending: false,
            is_left: false,
            is_remembered: false,
            is_caught_up: false,
            answered: None,
        }
    }

    pub async fn until_it_ends(mut self) -> JobEnd {
        let clock = *self.cx.runtime().clock();
        if self.outlives && self.checkpoint.begun.is_none() {
            // The next owner must know that it began and where, whatever becomes of its folder and of this machine.
            self.checkpoint.begun = Some(self.own.run_id().clone());
            self.remember().await;
        }
        loop {
            let (flush_at, end_at, limits_at) = (self.output.flush_at(), self.end_at, self.limits_at);
            let (event, position) = tokio::select! {
                biased;
                word = self.cx.stop.at_least(self.listens_for), if !self.is_ending => {
                    if word == StopLevel::Shutdown && self.outlives {
                        return self.leave().await;
                    }
                    self.on_stop_word(word);
                    continue;
                }
                patience = self.own.over(), if !self.is_session_over => {
                    self.session_over(patience);
                    continue;
                }
                () = until(clock, end_at) => {
                    self.end();
                    continue;
                }
                () = until(clock, limits_at) => {
                    self.look_at_limits().await;
                    continue;
                }
                event = next(&mut self.backlog, &mut self.live) => event,
                // Only while there is nothing to read.
                () = std::future::ready(()), if !self.is_caught_up => {
                    self.caught_up().await;
                    continue;
                }
                () = until(clock, flush_at) => {
                    self.flush().await;
                    continue;
                }
            };
            match event {
                RunEvent::Ended(end) => return self.ended(*end).await,
                RunEvent::Question(question) => {
                    self.asked(question, position).await;
                    if self.is_left {
                        return self.leave().await;
                    }
                }
                event => self.happened(event, position).await,
            }
        }
    }

    /// A graceful stop leaves it its grace; so does a pause, if the agent hears of it and has to report. Everything
    /// else ends it now.
    fn on_stop_word(&mut self, word: StopLevel) {
        match word {
            StopLevel::EndSoon => self.listens_for = StopLevel::Shutdown,
            StopLevel::Yield if self.own.must_report() => {
                self.listens_for = StopLevel::EndSoon;
                self.end_within(self.cx.runtime().session_options().hold_grace);
            }
            _ => self.end(),
        }
    }

    /// Stops following. The session stays, the program works on.
    async fn leave(mut self) -> JobEnd {
        self.flush().await;
        JobEnd::StillRuns
    }

    /// Stores what the run said up to the last event that was seen to.
    async fn flush(&mut self) {
        if self.output.flush(self.reached).await {
            self.stored_to = self.reached;
            self.live.stored(self.reached);
        }
    }

    async fn caught_up(&mut self) {
        self.flush().await;
        self.is_caught_up = true;
        self.cx.caught_up();
    }

    fn end(&mut self) {
        self.is_ending = true;
        self.end_at = None;
        self.live.end();
    }

    fn end_within(&mut self, time: Duration) {
        let at = self.cx.runtime().clock().instant() + time;
        self.end_at = Some(self.end_at.map_or(at, |before| before.min(at)));
    }

    fn session_over(&mut self, patience: Duration) {
        self.is_session_over = true;
        match patience {
            Duration::ZERO => self.end(),
            patience => self.end_within(patience),
        }
    }

    async fn happened(&mut self, event: RunEvent, position: u64) {
        match event {
            RunEvent::Output(text) => {
                self.answered = None;
                show(&self.cx, &text).await;
                self.output.push(OutputStream::Result, &text);
            }
            RunEvent::Log(line) => {
                self.answered = None;
                show(&self.cx, &line).await;
                self.output.push(OutputStream::Log, &format!("{line}\n"));
            }
            RunEvent::Session(id) => self.named(id).await,
            RunEvent::Usage(usage) => {
                let spent = self.checkpoint.spent.unwrap_or_default();
                self.known.usage = Some(spent.plus(usage));
                self.used = Some(usage);
                self.spent_more();
            }
            RunEvent::Passed | RunEvent::Question(_) | RunEvent::Ended(_) => {}
        }
        self.reached = self.reached.max(position);
        // The supervisor lets the program wait when too much of its output is not known to be stored.
        if self.output.is_full() || self.reached - self.stored_to >= STORED_AT_LEAST_EVERY {
            self.flush().await;
        }
    }

    /// Its program has said what it has cost so far.
    fn spent_more(&mut self) {
        let used = self.used.unwrap_or_default();
        let estimated = self.estimate(self.input.model.as_deref());
        let of_job = with_estimate(self.known.usage.unwrap_or_default(), self.checkpoint.estimated_usd + estimated);
        self.handle.set_used(of_job, with_estimate(used, estimated));
        if !self.limits.is_empty() && self.limits_at.is_none() && !self.is_ending {
            let now = self.cx.runtime().clock().instant();
            self.limits_at = Some(self.limits_seen.map_or(now, |seen| now.max(seen + TICK)));
        }
    }

    /// What this run has cost by the user's prices, if its program does not say.
    fn estimate(&self, model: Option<&str>) -> f64 {
        let used = self.used.filter(|used| used.cost_usd.is_none());
        let prices = self.cx.runtime().prices();
        let price = price(&prices, &self.input.agent, model);
        used.zip(price).map_or(0.0, |(used, price)| price.of(used))
    }

    async fn look_at_limits(&mut self) {
        (self.limits_at, self.limits_seen) = (None, Some(self.cx.runtime().clock().instant()));
        match self.limits.used_up(self.cx.runtime()).await {
            Ok(Some(used_up)) if !self.is_ending => {
                if self.used_up.is_none() {
                    self.end_within(BUDGET_GRACE);
                }
                self.used_up = Some(used_up);
            }
            Ok(_) => {}
            Err(error) => tracing::debug!(job.id = %self.cx.lease.job_id, %error, "budgets could not be read"),
        }
    }

    /// The vendor has named the conversation: from now on it can be resumed, whatever happens to us.
    async fn named(&mut self, vendor_session: String) {
        if self.checkpoint.vendor_session.as_ref() == Some(&vendor_session) {
            return;
        }
        self.known.vendor_session = Some(vendor_session.clone());
        // The conversation of the task is the first agent's; another one's cannot be resumed under its name.
        self.known.session_id = self.checkpoint.tried.is_empty().then(|| self.input.session.clone());
        self.checkpoint.vendor_session = Some(vendor_session);
        self.is_remembered = false;
        self.remember().await;
        let known = serde_json::json!(self.known);
        let noted = self.cx.partial_output(&known).await;
        note(&self.cx, noted);
    }

    /// Writes down where the conversation can go on.
    async fn remember(&mut self) {
        let place = self.live.place();
        if self.is_remembered && self.checkpoint.place == place {
            return;
        }
        self.checkpoint.place = place;
        let runtime = self.cx.runtime();
        let noted = match self.checkpoint.vendor_session.clone() {
            Some(vendor_session) if self.checkpoint.tried.is_empty() => {
                let session = SessionNote { vendor_session, place: self.checkpoint.place.clone() };
                runtime
                    .store()
                    .run(NoteSession { lease: self.cx.lease.clone(), note: session, now: runtime.clock().now() })
                    .await
            }
            // There is no conversation of this name to go on with; its files are found by the checkpoint.
            _ => Ok(()),
        };
        let checkpoint = serde_json::json!(self.checkpoint);
        let kept = self.cx.checkpoint(&checkpoint).await;
        // What could not be written now is written at the end.
        self.is_remembered = noted.is_ok() && kept.is_ok();
        note(&self.cx, noted);
        note(&self.cx, kept);
    }
}

/// The last line that says something, as progress.
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

async fn next(backlog: &mut VecDeque<(RunEvent, u64)>, live: &mut Box<dyn LiveRun>) -> (RunEvent, u64) {
    match backlog.pop_front() {
        Some(event) => event,
        None => {
            let event = live.next().await;
            (event, live.position())
        }
    }
}

async fn until(clock: Clock, at: Option<Instant>) {
    match at {
        Some(at) => clock.sleep_until(at).await,
        None => std::future::pending().await,
    }
}
