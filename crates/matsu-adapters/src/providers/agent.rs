//! A command line of an AI agent as a model: one start of the program for each turn, read-only, in an empty folder, with
//! no tools, neither its own nor Matsu's. What it is asked goes in as one text; what it prints comes out as the answer.
//! So a subscription that the user has serves chats and research without a key.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::stream::unfold;
use matsu_core::clock::Clock;
use matsu_core::error_code::ErrorCode;
use matsu_core::history::{Entry, Item, Maker, Role};
use matsu_core::id::{JobId, RunId, SessionId};
use matsu_core::job::Lease;
use matsu_core::ports::agent::{AgentHost, LiveRun, PromptKind, RunEnd, RunEvent, RunOrder, RunWish, Verdict};
use matsu_core::ports::provider::{
    ModelEvent, ModelLimits, ModelRequest, ModelStream, ModelTurn, OutputShape, Price, Provider, ProviderError,
    ProviderFault, TurnEnd, Usage,
};
use matsu_core::run::{AsModel, Isolation, Mode};
use matsu_core::secret::{self, Token};

/// What such a model is named by in settings: `agent:claude`.
pub const PREFIX: &str = "agent:";

/// The wire of such a model in lists of models.
pub const WIRE: &str = "agent";

/// Seconds that one turn may take: a program has to start, and may think for long.
const SECONDS_MAX: u32 = 600;

/// Every vendor's present models hold more; a text that does not fit is refused by the program itself.
const LIMITS: ModelLimits = ModelLimits { context_tokens: 150_000, output_tokens: 16_000 };

/// One agent of a host.
pub struct AgentModel {
    host: Arc<dyn AgentHost>,
    agent: String,
    name: String,
    clock: Clock,
}

impl AgentModel {
    /// # Errors
    /// In words: the host has no such agent.
    pub fn new(host: Arc<dyn AgentHost>, agent: &str, clock: Clock) -> Result<Self, String> {
        let agents = host.agents();
        if !agents.iter().any(|known| known.name == agent) {
            let names: Vec<&str> = agents.iter().map(|known| known.name.as_str()).collect();
            return Err(format!("there is no agent {agent}; expected one of {}", names.join(", ")));
        }
        Ok(Self { host, agent: agent.to_owned(), name: agent.to_owned(), clock })
    }

    fn error(&self, fault: ProviderFault, message: impl Into<String>) -> ProviderError {
        ProviderError { provider: self.name.clone(), fault, message: message.into() }
    }

    async fn start(&self, request: &ModelRequest) -> Result<(JobId, Box<dyn LiveRun>), ProviderError> {
        let (system, message) = prompt(&request.history, request.output.as_ref());
        let takes_system = self.host.agents().iter().any(|a| a.name == self.agent && a.supports.system_prompt);
        let (system_prompt, message) = match system {
            Some(system) if takes_system => (Some(system), message),
            Some(system) => (None, format!("{system}\n\n{message}")),
            None => (None, message),
        };
        let wish = RunWish {
            agent: self.agent.clone(),
            message,
            system_prompt,
            mode: Some(Mode::ReadOnly),
            isolation: Some(Isolation::None),
            timeout_seconds: Some(SECONDS_MAX),
            mode_max: Some(Mode::ReadOnly),
            as_model: Some(AsModel { schema: request.output.as_ref().map(|shape| shape.schema.clone()) }),
            ..RunWish::default()
        };
        let checked = self.host.check(wish).map_err(|refusal| self.error(fault(refusal.code), refusal.message))?;
        let now = self.clock.now();
        let job = JobId::mint(now);
        let order = RunOrder {
            lease: Lease { job_id: job.clone(), attempt: 1 },
            run_id: RunId::mint(now),
            session_id: SessionId::mint(now),
            outlives: false,
            socket_key: Token::new(&secret::mint()),
            task_id: None,
            input: checked.input,
            say: PromptKind::Message,
            feedback: None,
            resume: None,
            onto: Vec::new(),
            token: Token::new(&secret::mint()),
        };
        let started = self.host.start(order).await;
        let live = started.map_err(|error| self.error(fault(error.code), error.message))?;
        Ok((job, live))
    }
}

#[async_trait]
impl Provider for AgentModel {
    fn name(&self) -> &str {
        &self.name
    }

    fn maker(&self) -> Maker {
        Maker { wire: WIRE.to_owned(), model: self.agent.clone() }
    }

    fn limits(&self) -> ModelLimits {
        LIMITS
    }

    /// The subscription pays; what a program says it cost is not what is paid.
    fn price(&self) -> Option<Price> {
        None
    }

    fn agent(&self) -> Option<&str> {
        Some(&self.agent)
    }

    async fn begin(&self, request: ModelRequest) -> Result<ModelStream, ProviderError> {
        let (job, live) = self.start(&request).await?;
        let answering = Answering {
            host: Arc::clone(&self.host),
            provider: self.name.clone(),
            clock: self.clock,
            job,
            live,
            text: String::new(),
            usage: Usage::default(),
        };
        Ok(Box::pin(unfold(Some(answering), |state| async move { state?.next().await })))
    }
}

/// A program that answers.
struct Answering {
    host: Arc<dyn AgentHost>,
    provider: String,
    clock: Clock,
    job: JobId,
    live: Box<dyn LiveRun>,
    text: String,
    usage: Usage,
}

type Piece = Result<ModelEvent, ProviderError>;

impl Answering {
    async fn next(mut self) -> Option<(Piece, Option<Self>)> {
        loop {
            match self.live.next().await {
                RunEvent::Output(text) if text.is_empty() => {}
                RunEvent::Output(text) => {
                    self.text.push_str(&text);
                    return Some((Ok(ModelEvent::Text(text)), Some(self)));
                }
                RunEvent::Usage(usage) => {
                    let (input_tokens, output_tokens) = (usage.input_tokens, usage.output_tokens);
                    self.usage = Usage { input_tokens, output_tokens, cached_tokens: 0 };
                    if let Some(cost) = usage.cost_usd {
                        return Some((Ok(ModelEvent::Cost(micros(cost))), Some(self)));
                    }
                }
                // A model is asked, and asks nothing back.
                RunEvent::Question(_) => self.live.end(),
                RunEvent::Log(_) | RunEvent::Session(_) | RunEvent::Passed => {}
                RunEvent::Ended(end) => {
                    self.host.forget(&self.job).await;
                    return Some((self.ended(&end), None));
                }
            }
        }
    }

    fn ended(&self, end: &RunEnd) -> Piece {
        let error = |fault, message: String| ProviderError { provider: self.provider.clone(), fault, message };
        match &end.verdict {
            Verdict::Success if self.text.trim().is_empty() => {
                Err(error(ProviderFault::Protocol, "the program ended without an answer".to_owned()))
            }
            Verdict::Success => Ok(ModelEvent::End(ModelTurn {
                items: vec![Item::text(self.text.clone())],
                usage: self.usage,
                end: TurnEnd::Finished,
            })),
            Verdict::Quota { until, message } => {
                let after = until.map(|until| until.since(self.clock.now()));
                let when = until.map(|until| format!("; not before {until}")).unwrap_or_default();
                Err(error(ProviderFault::RateLimited { after }, format!("{message}{when}")))
            }
            Verdict::Failure { code, message, .. } => {
                // The last line that the program printed about it says more than its exit code.
                let line = end.stderr_tail.lines().rev().find(|line| !line.trim().is_empty());
                let more = line.filter(|line| !message.contains(line.trim())).map(|line| format!(": {}", line.trim()));
                Err(error(fault(*code), format!("{message}{}", more.unwrap_or_default())))
            }
        }
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a cost is small, and not negative")]
fn micros(dollars: f64) -> u64 {
    (dollars.max(0.0) * 1e6).round() as u64
}

/// Asking again starts the program again; only what the vendor's servers did wrong may pass.
fn fault(code: ErrorCode) -> ProviderFault {
    match code {
        ErrorCode::AgentApiError => ProviderFault::Server { after: Some(Duration::from_secs(5)) },
        // One that comes back by itself is a verdict of its own; this one is paid for first.
        ErrorCode::AgentQuota => ProviderFault::Refused,
        ErrorCode::AgentNotInstalled | ErrorCode::AgentNotFound => ProviderFault::Auth,
        _ => ProviderFault::BadRequest,
    }
}

/// The system prompt, and everything else as one text. A chat of several lines is written with the names of who spoke.
fn prompt(history: &[Entry], output: Option<&OutputShape>) -> (Option<String>, String) {
    let (system, said): (Vec<&Entry>, Vec<&Entry>) = history.iter().partition(|entry| entry.role == Role::System);
    let system: Vec<String> = system.iter().map(|entry| entry.spoken()).collect();
    let said: Vec<&Entry> = said.into_iter().filter(|entry| !entry.spoken().trim().is_empty()).collect();
    let mut message = match said.as_slice() {
        [only] => only.spoken(),
        lines => {
            let line = |entry: &&Entry| {
                let who = entry.model.as_deref().unwrap_or("person");
                format!("[{who}]: {}", entry.spoken())
            };
            let lines: Vec<String> = lines.iter().map(line).collect();
            format!("This is a chat. Answer its last line; write the answer only.\n\n{}", lines.join("\n\n"))
        }
    };
    if let Some(shape) = output {
        message = format!("{message}\n\nAnswer with JSON of this schema and nothing else: {}", shape.schema);
    }
    ((!system.is_empty()).then(|| system.join("\n\n")), message)
}

#[cfg(test)]
mod tests {
    use matsu_core::clock::Timestamp;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_question_goes_in_as_it_is_and_a_chat_with_its_names() {
        let now = Timestamp::from_millis(1);
        let (system, message) = prompt(&[Entry::system("Be brief.", now), Entry::user("Hello?", now)], None);
        assert_eq!((system.as_deref(), message.as_str()), (Some("Be brief."), "Hello?"));
        let answer = Entry::assistant("codex", vec![Item::text("Hi.")], now);
        let shape = OutputShape { name: "x".into(), schema: json!({ "type": "object" }) };
        let (system, message) = prompt(&[Entry::user("Hello?", now), answer, Entry::user("And?", now)], Some(&shape));
        assert_eq!(system, None);
        assert!(message.contains("[person]: Hello?\n\n[codex]: Hi.\n\n[person]: And?"), "{message}");
        assert!(message.ends_with(r#"and nothing else: {"type":"object"}"#), "{message}");
    }
}
