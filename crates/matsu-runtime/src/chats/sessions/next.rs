//! What an agent does next, held on the server until there is something: the one wait, asked by one pure rule.
//!
//! Reading is not acknowledging. Messages are handed out in a transaction of their own, after the decision; if an
//! interrupt comes in between, the store refuses and nothing was handed out.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use matsu_core::change::Topic;
use matsu_core::id::TaskId;
use matsu_core::limits::{MESSAGES_PER_ACTION_MAX, TICK};
use matsu_core::ports::store::{
    AcknowledgeMessages, EndSession, ReadSessionView, Store, StoreError, TakeMessages, Taken,
};
use matsu_core::session::next_action::next_turn_at;
use matsu_core::session::{EndReason, NextAction, Session, SessionState, SessionView, next_action};
use matsu_core::task::Task;

use crate::chats::sessions::Waiters;
use crate::runtime::Runtime;
use crate::tasks::status::OpenWaits;
use crate::tasks::wait::{Check, Condition, Waited, after, wait_until};

use super::waiters::Ticket;

use super::Sessions;

#[derive(Clone, Debug)]
pub struct NextRequest {
    pub session: Arc<Session>,
    /// Everything up to here has arrived.
    pub after_seq: Option<i64>,
    /// How long the caller wishes to be held, already cut to what is allowed.
    pub hold: Duration,
    /// The connection that messages would go out on.
    pub connection: String,
}

/// What there is to do.
#[derive(Clone, Debug)]
pub enum Next {
    Interrupted,
    Respond(Taken),
    Work(Box<Task>),
    Wait(Rest),
    End(EndReason),
}

/// Why an agent has nothing to do for now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rest {
    Timeout,
    /// A newer call of the same session got what came.
    Superseded,
    /// Something is to be read with `get_notifications`.
    Notice,
    /// A task waits for the agent; another session would do it.
    TaskWaiting(TaskId),
    /// Its task is held back.
    Held,
}

#[derive(Clone, Debug)]
pub struct NextReply {
    pub next: Next,
    pub waited_ms: u64,
}

impl Sessions<'_> {
    /// Holds the caller until there is something to do.
    ///
    /// # Errors
    /// A session that is gone; an `after_seq` beyond the chat; a store that is away. `None` if the caller is gone.
    pub async fn next_action(
        self,
        request: NextRequest,
        caller: &CancellationToken,
    ) -> Result<Option<NextReply>, StoreError> {
        let _counted = self
            .runtime
            .part::<OpenWaits>()
            .open(&request.session.principal())
            .map_err(|error| StoreError::LimitExceeded(error.to_string()))?;
        let began = self.runtime.clock().instant();
        self.acknowledge(&request).await?;
        let topics = topics(&request.session);
        let deadline = after(self.runtime.clock(), request.hold);
        let mut look = Look {
            runtime: self.runtime,
            ticket: self.runtime.part::<Waiters>().enter(&request.session.id),
            known: None,
            request: &request,
            failure: None,
        };
        let waited =
            wait_until(self.runtime.hub(), self.runtime.clock(), &topics, Some(deadline), caller, &mut look).await;
        let next = match waited {
            Waited::Ready(answer) => answer?,
            Waited::CallerDisconnected => return Ok(None),
            Waited::Timeout => match look.failure.take() {
                Some(failure) => return Err(failure),
                None => Next::Wait(look.at_rest()),
            },
        };
        let waited_ms = u64::try_from((self.runtime.clock().instant() - began).as_millis()).unwrap_or(u64::MAX);
        Ok(Some(NextReply { next, waited_ms }))
    }

    /// What the caller says it has, it has, whatever comes of this call.
    async fn acknowledge(self, request: &NextRequest) -> Result<(), StoreError> {
        match (request.after_seq, &request.session.chat_id) {
            (Some(upto), Some(chat)) => {
                self.runtime.store().run(AcknowledgeMessages { chat_id: chat.clone(), upto_seq: upto }).await
            }
            _ => Ok(()),
        }
    }

    /// Whether a session without an open wait would have something to do.
    pub(crate) async fn has_next_action(
        self,
        session: &matsu_core::id::SessionId,
        after_seq: Option<i64>,
    ) -> Result<bool, StoreError> {
        let now = self.runtime.clock().now();
        match self.runtime.plain_store().run(ReadSessionView { id: session.clone(), after_seq, now }).await {
            Ok(view) => {
                let waits = next_action(&view, now, self.runtime.session_options().idle_end) == NextAction::Wait;
                Ok(!waits || view.unread.total() > 0)
            }
            // That it is gone is news as well.
            Err(StoreError::NotFound { .. }) => Ok(true),
            Err(error) => Err(error),
        }
    }
}

fn topics(session: &Session) -> Vec<Topic> {
    let mut topics = vec![Topic::agent(&session.agent_id, &session.project_id)];
    topics.extend(session.chat_id.as_ref().map(Topic::chat));
    topics.extend(session.task_id.as_ref().map(Topic::task));
    topics
}

/// What one wait knows between two looks.
struct Look<'a> {
    runtime: &'a Runtime,
    ticket: Ticket,
    request: &'a NextRequest,
    /// What was there at the first look: only what comes after it ends the wait.
    known: Option<Known>,
    failure: Option<StoreError>,
}

#[derive(Clone, Debug)]
struct Known {
    notices: i64,
    task_waiting: Option<TaskId>,
    held: bool,
}

impl Condition for Look<'_> {
    type Value = Result<Next, StoreError>;

    async fn look(&mut self) -> Check<Result<Next, StoreError>> {
        if self.ticket.is_superseded() {
            return Check::Ready(Ok(Next::Wait(Rest::Superseded)));
        }
        match self.decide().await {
            Ok(check) => {
                self.failure = None;
                check
            }
            Err(StoreError::Interrupted) => Check::Ready(Ok(Next::Interrupted)),
            // Nothing was changed and it may come back: the caller has asked to be held anyway.
            Err(error @ StoreError::Unavailable(_)) => {
                self.failure = Some(error);
                Check::NotBefore(after(self.runtime.clock(), TICK))
            }
            Err(error) => Check::Ready(Err(error)),
        }
    }
}

impl Look<'_> {
    async fn decide(&mut self) -> Result<Check<Result<Next, StoreError>>, StoreError> {
        let clock = self.runtime.clock();
        let now = clock.now();
        let idle_end = self.runtime.session_options().idle_end;
        let (store, session) = (self.runtime.store(), &self.request.session.id);
        let view = store.run(ReadSessionView { id: session.clone(), after_seq: self.request.after_seq, now }).await?;
        let next = match next_action(&view, now, idle_end) {
            NextAction::Interrupted => Next::Interrupted,
            NextAction::Respond if !self.ticket.take() => Next::Wait(Rest::Superseded),
            NextAction::Respond => match self.take(store, &view).await? {
                Some(taken) => Next::Respond(taken),
                None => return Ok(Check::NotYet),
            },
            NextAction::Work => match view.task {
                Some(task) => Next::Work(Box::new(task)),
                None => return Ok(Check::NotYet),
            },
            NextAction::End(reason) => {
                self.end(reason).await?;
                Next::End(reason)
            }
            NextAction::Wait => match self.news(&view) {
                Some(rest) => Next::Wait(rest),
                None => {
                    let left = next_turn_at(&view, idle_end).since(now);
                    return Ok(Check::NotBefore(after(clock, left)));
                }
            },
        };
        Ok(Check::Ready(Ok(next)))
    }

    /// Another call may have taken the messages; then `None`.
    async fn take(&self, store: &Arc<dyn Store>, view: &SessionView) -> Result<Option<Taken>, StoreError> {
        let Some(chat) = &view.chat else { return Ok(None) };
        let request = TakeMessages {
            session_id: view.session.id.clone(),
            chat_id: chat.id.clone(),
            after_seq: self.request.after_seq,
            rows_max: MESSAGES_PER_ACTION_MAX,
            handed_to: self.request.connection.clone(),
        };
        let taken = store.run(request).await?;
        Ok((!taken.messages.is_empty()).then_some(taken))
    }

    /// The agent gets to know it now; from here on its token is refused.
    async fn end(&self, reason: EndReason) -> Result<(), StoreError> {
        let (id, to) = (self.request.session.id.clone(), SessionState::Ended);
        let now = self.runtime.clock().now();
        self.runtime.plain_store().run(EndSession { id, to, reason, now }).await.map(drop)
    }

    /// What has come since the first look and is worth an answer, though there is nothing to do here.
    fn news(&mut self, view: &SessionView) -> Option<Rest> {
        let now = Known {
            notices: view.unread.others,
            task_waiting: view.task_waiting.clone(),
            held: view.task.as_ref().is_some_and(|task| task.status.is_held()),
        };
        let before = self.known.replace(now.clone())?;
        if now.notices > before.notices {
            return Some(Rest::Notice);
        }
        now.task_waiting.filter(|_| before.task_waiting.is_none()).map(Rest::TaskWaiting)
    }

    fn at_rest(&self) -> Rest {
        if self.known.as_ref().is_some_and(|known| known.held) { Rest::Held } else { Rest::Timeout }
    }
}
