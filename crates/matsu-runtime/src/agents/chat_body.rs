//! The body of a job that starts an agent for a chat.
//!
//! A turn: what a person has said goes in as the program's prompt, its final words come back as the agent's answer,
//! and the next turn resumes the same conversation. The answer and what it acknowledges are one transaction, so a turn
//! that was cut off is simply had again.

use std::sync::Arc;

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;

use matsu_core::chat::split_content;
use matsu_core::clock::Timestamp;
use matsu_core::error_code::ErrorCode;
use matsu_core::job::end::pause_before_retry;
use matsu_core::job::{Job, JobEnd, JobKind};
use matsu_core::limits::{
    CHAT_ANSWER_MESSAGES_MAX, CHAT_RUN_SECONDS_MAX, CHAT_STARTS_MAX, MESSAGE_CHARS_MAX, MESSAGES_PER_ACTION_MAX,
    RUN_SECONDS,
};
use matsu_core::ports::agent::{AgentHost, Delivery, Resume, RunOrder, RunWish, Say};
use matsu_core::ports::store::{
    ChatCall, Conversation, EndTurn, OutputFrom, OutputRange, OutputStream, SessionNote, StoreError, Turn, TurnOutcome,
    WantedFor,
};
use matsu_core::principal::Principal;
use matsu_core::run::{RunCheckpoint, RunInput, RunOutput};
use matsu_core::session::Session;

use crate::body::JobBody;
use crate::context::JobContext;
use crate::sessions::begin::StartedAgent;

use super::chat_lines;
use super::run::Run;
use super::run_body::{self, away};
use super::session_watch::until_over;

/// Starts the agents of chats on a host.
#[derive(Clone)]
pub struct ChatRuns {
    host: Arc<dyn AgentHost>,
}

/// A turn that could not be begun.
struct NotStarted {
    code: ErrorCode,
    why: String,
    /// What was refused would be refused again.
    is_worth_a_retry: bool,
}

/// A run under way, and what it works for.
struct Begun {
    run: Run,
    session: Session,
    call_off: CancellationToken,
}

impl ChatRuns {
    #[must_use]
    pub fn new(host: Arc<dyn AgentHost>) -> Self {
        Self { host }
    }

    fn delivery(&self, definition: &str) -> Delivery {
        let known = self.host.agents().into_iter().find(|agent| agent.name == definition);
        known.map_or(Delivery::Resume, |agent| agent.delivery)
    }

    async fn begin(&self, cx: &JobContext, turn: &Turn) -> Result<Begun, NotStarted> {
        let name = turn.agent.definition.clone().unwrap_or_default();
        let agent = self.host.agents().into_iter().find(|agent| agent.name == name);
        let takes_system_prompt = agent.as_ref().is_some_and(|agent| agent.supports.system_prompt);
        let wish = RunWish {
            agent: name,
            message: prompt(turn, takes_system_prompt),
            system_prompt: turn.agent.system_prompt.clone().filter(|_| takes_system_prompt),
            working_directory: turn.project.working_directory.clone(),
            ..RunWish::default()
        };
        let checked = self.host.check(wish).map_err(|refusal| NotStarted::for_good(refusal.code, refusal.message))?;
        let input = RunInput { session: turn.chat.id.to_string(), ..checked.input };
        let session = self.session(cx, turn, &input).await?;
        let order = RunOrder {
            lease: cx.lease.clone(),
            task_id: None,
            input: input.clone(),
            say: Say::Message,
            resume: turn.conversation.clone().map(resume),
        };
        let live = self.host.start(order).await.map_err(|error| NotStarted::for_now(error.code, error.message))?;
        let call_off = CancellationToken::new();
        let run = Run::new(cx.clone(), agent, input, RunCheckpoint::default(), live).with_call_off(call_off.clone());
        Ok(Begun { run, session, call_off })
    }

    /// The agent is there from now on, for whoever looks.
    async fn session(&self, cx: &JobContext, turn: &Turn, input: &RunInput) -> Result<Session, NotStarted> {
        let owner = turn.messages.last().map(|taken| Principal::from_text(taken.message.sender_id.clone()));
        let started = StartedAgent {
            agent_id: turn.agent.id.clone(),
            project_id: turn.project.id.clone(),
            wanted: WantedFor::Chat(turn.chat.id.clone()),
            job_id: cx.lease.job_id.clone(),
            mode: Some(input.mode.to_string()),
            grants: String::new(),
        };
        let owner = owner.unwrap_or_else(Principal::local_user);
        let begun = cx.runtime().begin_for_run(&owner, started).await;
        begun.map(|begun| begun.session).map_err(|error| NotStarted::for_now(error.code(), error.to_string()))
    }

    /// What is to be written down, or the job's end if the turn is not over.
    async fn have(&self, cx: &JobContext, turn: &Turn) -> Result<(TurnOutcome, JobEnd), JobEnd> {
        let language = cx.runtime().session_options().language;
        let Begun { run, session, call_off } = match self.begin(cx, turn).await {
            Ok(begun) => begun,
            Err(NotStarted { code, why, is_worth_a_retry }) => {
                tracing::warn!(chat = %turn.chat.id, %why, "an agent could not be started for a chat");
                let outcome = failed(cx, turn, &why, is_worth_a_retry, Conversation::GoesOn);
                return Ok((outcome, run_body::failed(code, why)));
            }
        };
        let watch = async {
            until_over(cx.runtime(), &session).await;
            call_off.cancel();
            std::future::pending::<()>().await;
        };
        let end = tokio::select! {
            end = run.until_it_ends() => end,
            () = watch => return Err(JobEnd::Requeue { run_at: None }),
        };
        if call_off.is_cancelled() {
            let (upto_seq, line) = (last_seq(turn), chat_lines::called_off(language));
            return Ok((TurnOutcome::CalledOff { upto_seq, line }, end));
        }
        match &end {
            JobEnd::Completed { output_json } => Ok((answered(cx, turn, output_json).await?, end)),
            JobEnd::Failed { message, output_json, .. } => {
                let conversation = conversation_after(turn, output_json.as_deref());
                Ok((failed(cx, turn, message, true, conversation), end))
            }
            // A quota that returns, a shutdown, a lost lease: the same messages are answered by the next attempt.
            _ => Err(end),
        }
    }
}

impl NotStarted {
    fn for_good(code: ErrorCode, why: String) -> Self {
        Self { code, why, is_worth_a_retry: false }
    }

    fn for_now(code: ErrorCode, why: String) -> Self {
        Self { code, why, is_worth_a_retry: true }
    }
}

fn resume(note: SessionNote) -> Resume {
    Resume { vendor_session: note.vendor_session, place: note.place }
}

fn last_seq(turn: &Turn) -> i64 {
    turn.messages.last().map_or(0, |taken| taken.message.seq)
}

fn done() -> JobEnd {
    JobEnd::Completed { output_json: "{}".to_owned() }
}

/// What persons have said, in order. What the agent is goes before its first words, where its program has no better
/// place for that.
fn prompt(turn: &Turn, takes_system_prompt: bool) -> String {
    let is_new = turn.conversation.is_none();
    let who = turn.agent.system_prompt.as_deref().filter(|_| is_new && !takes_system_prompt);
    let said = turn.messages.iter().map(|taken| taken.message.content.as_str());
    who.into_iter().chain(said).collect::<Vec<_>>().join("\n\n")
}

async fn answered(cx: &JobContext, turn: &Turn, output_json: &str) -> Result<TurnOutcome, JobEnd> {
    let language = cx.runtime().session_options().language;
    let known: RunOutput = serde_json::from_str(output_json).unwrap_or_default();
    let text = if known.empty {
        String::new()
    } else {
        let bytes_max = (CHAT_ANSWER_MESSAGES_MAX + 1) * MESSAGE_CHARS_MAX * 4;
        let wish = OutputRange { stream: OutputStream::Result, from: OutputFrom::Byte(0), bytes_max };
        cx.runtime().store().read_output(&cx.lease.job_id, wish).await.map_err(|error| away(&error))?.text
    };
    let (mut said, is_cut) = split_content(&text, CHAT_ANSWER_MESSAGES_MAX);
    if is_cut {
        said.push(chat_lines::cut(language).to_owned());
    }
    let Some(last) = turn.messages.last() else { return Ok(TurnOutcome::Left) };
    let (to, upto_seq) = (last.message.id.clone(), last.message.seq);
    Ok(TurnOutcome::Answered { said, to, upto_seq, if_silent: chat_lines::silent(language) })
}

/// Tried again a few times, later and later; then a person decides.
fn failed(
    cx: &JobContext,
    turn: &Turn,
    why: &str,
    is_worth_a_retry: bool,
    conversation: Conversation,
) -> TurnOutcome {
    let failures = turn.failures + 1;
    let again_in = (is_worth_a_retry && failures < CHAT_STARTS_MAX).then(|| pause_before_retry(failures));
    let line = chat_lines::failed(cx.runtime().session_options().language, why, again_in);
    let retry_at: Option<Timestamp> = again_in.map(|pause| cx.runtime().clock().now().plus(pause));
    TurnOutcome::Failed { line, retry_at, conversation }
}

/// A conversation that the program does not even take up is gone on its side.
fn conversation_after(turn: &Turn, output_json: Option<&str>) -> Conversation {
    let known: Option<RunOutput> = output_json.and_then(|text| serde_json::from_str(text).ok());
    let was_taken_up = known.is_some_and(|known| known.vendor_session.is_some());
    if turn.conversation.is_some() && !was_taken_up { Conversation::BeginsAnew } else { Conversation::GoesOn }
}

#[async_trait]
impl JobBody for ChatRuns {
    fn kind(&self) -> JobKind {
        JobKind::AgentChat
    }

    fn run_seconds_max(&self, job: &Job) -> Option<u32> {
        let call: ChatCall = serde_json::from_str(&job.input_json).ok()?;
        Some(match self.delivery(&call.definition) {
            Delivery::Resume => RUN_SECONDS,
            Delivery::Wait => CHAT_RUN_SECONDS_MAX,
        })
    }

    async fn run(&self, cx: JobContext) -> JobEnd {
        let store = cx.runtime().store();
        let turn = match store.begin_turn(&cx.lease, MESSAGES_PER_ACTION_MAX, cx.runtime().clock().now()).await {
            Ok(Some(turn)) => turn,
            Ok(None) => return done(),
            Err(error) => return away(&error),
        };
        let (outcome, end) = match self.have(&cx, &turn).await {
            Ok(over) => over,
            Err(end) => return end,
        };
        write_down(&cx, outcome).await.map_or_else(|error| away(&error), |()| end)
    }
}

/// The session of this job ends with the turn, whichever it was.
async fn write_down(cx: &JobContext, outcome: TurnOutcome) -> Result<(), StoreError> {
    let (lease, now) = (cx.lease.clone(), cx.runtime().clock().now());
    cx.runtime().store().end_turn(EndTurn { lease, outcome, now }).await
}
