//! `get_next_action`: what the agent does next, held until there is something.

use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use matsu_core::limits::{INLINE_WAIT, NEXT_ACTION_HOLD};
use matsu_core::ports::store::{StoreError, TakenMessage};
use matsu_core::session::Session;
use matsu_core::task::Task;

use crate::agents::HandedTask;
use crate::chats::sessions::next::Rest;
use crate::chats::sessions::{Next, NextReply, NextRequest, Sessions};
use crate::tool::native_task::DeferredWaits;
use crate::tool::{Annotations, NativeTasks, Rules, Tool, ToolContext, ToolError, ToolReply, Toolset};

pub struct GetNextAction;

#[derive(Deserialize, JsonSchema)]
pub struct Input {
    /// Instead of session_token: the id of a session that you began.
    #[schemars(length(min = 1, max = 100))]
    #[expect(dead_code, reason = "read by the dispatch, which identifies the caller")]
    session_id: Option<String>,
    /// Seconds to wait if there is nothing to do (default 30).
    #[schemars(range(min = 0))]
    timeout_seconds: Option<u64>,
    /// seq of the last message you received; acknowledges it and all before.
    #[schemars(range(min = 0))]
    after_seq: Option<i64>,
}

#[derive(Default, Serialize, JsonSchema)]
pub struct Output {
    /// respond, work, wait or end_session.
    action: &'static str,
    /// respond: the messages, in order.
    #[serde(skip_serializing_if = "Option::is_none")]
    messages: Option<Vec<MessageBody>>,
    /// respond: there are more messages than these.
    #[serde(skip_serializing_if = "Option::is_none")]
    more: Option<bool>,
    /// work: the task.
    #[serde(skip_serializing_if = "Option::is_none")]
    task: Option<TaskBody>,
    /// end_session: why.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'static str>,
    /// wait: a newer call of this session received the messages.
    #[serde(skip_serializing_if = "Option::is_none")]
    superseded: Option<bool>,
    /// A wait that went on as a task is over.
    #[serde(skip_serializing_if = "Option::is_none")]
    arrived: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    waited_ms: Option<u64>,
    /// The longest wait of this call, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    timeout_seconds: Option<u64>,
    /// Seconds: the wait was cut to this.
    #[serde(skip_serializing_if = "Option::is_none")]
    hold_max: Option<u64>,
    instruction: String,
}

#[derive(Serialize, JsonSchema)]
struct MessageBody {
    id: String,
    seq: i64,
    sender: &'static str,
    content: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    reply_to: Option<String>,
    created_at: String,
    /// It was returned before and not acknowledged.
    redelivered: bool,
}

#[derive(Serialize, JsonSchema)]
struct TaskBody {
    task_id: String,
    title: String,
    status: &'static str,
    /// What a person asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    revision: i64,
}

/// How a wait that went on as a task of its own ends: it consumes nothing, the next call does.
pub fn arrived() -> Output {
    let instruction = "Something arrived. Call get_next_action to get it.".to_owned();
    Output { action: "wait", arrived: Some(true), instruction, ..Output::default() }
}

impl Tool for GetNextAction {
    const NAME: &'static str = "get_next_action";
    const TITLE: &'static str = "Wait for the next action";
    const DESCRIPTION: &'static str = "Session: what to do next; the server waits until there is something, so do not \
        poll: do what action and instruction say, then call again. respond: answer with send_message, then pass the \
        last seq as after_seq. work: do the task, then call report_completed. wait: call again. end_session: end. \
        Messages that you do not acknowledge are returned again, marked redelivered.";
    const TOOLSET: Toolset = Toolset::Sessions;
    const ANNOTATIONS: Annotations = Annotations { read_only: false, ..Annotations::READS };
    const RULES: Rules = Rules::NAMED_SESSION;
    type Input = Input;
    type Output = Output;

    async fn call(cx: &ToolContext, input: Input) -> Result<ToolReply<Output>, ToolError> {
        let session = cx.session()?;
        let wished = input.timeout_seconds.map_or(NEXT_ACTION_HOLD, Duration::from_secs);
        let granted = wished.min(cx.hold_max());
        let follows = cx.tasks == NativeTasks::Understood && wished > INLINE_WAIT;
        let request = NextRequest {
            session: Arc::clone(session),
            after_seq: input.after_seq,
            hold: if follows { INLINE_WAIT } else { granted },
            connection: cx.connection.to_string(),
        };
        let reply = Sessions::of(&cx.runtime)
            .next_action(request, &cx.caller)
            .await
            .map_err(|error| refused(error, input.after_seq))?;
        let Some(reply) = reply else { return Err(ToolError::caller_disconnected()) };
        if follows && matches!(reply.next, Next::Wait(Rest::Timeout | Rest::Held)) {
            let task =
                DeferredWaits::of(&cx.runtime).defer_next_action(&cx.transport, &session.id, input.after_seq).await?;
            return Ok(ToolReply::Deferred(task));
        }
        if matches!(reply.next, Next::Respond(_)) {
            cx.delivery.messages(&session.id, &cx.connection);
        }
        let mut output = output_of(session, reply)?;
        output.timeout_seconds = Some(granted.as_secs());
        output.hold_max = (wished > granted).then_some(granted.as_secs());
        Ok(ToolReply::Done(output))
    }
}

/// A number that the chat has not reached is the caller's mistake, and named as such.
fn refused(error: StoreError, after_seq: Option<i64>) -> ToolError {
    match (&error, after_seq) {
        (StoreError::Refused { message, .. }, Some(seq)) if message.starts_with("after_seq") => {
            ToolError::param("after_seq", "at most the chat's last seq", &seq.to_string(), message.clone())
        }
        _ => error.into(),
    }
}

fn output_of(session: &Session, reply: NextReply) -> Result<Output, ToolError> {
    let output = match reply.next {
        Next::Interrupted => return Err(StoreError::Interrupted.into()),
        Next::Respond(taken) => {
            let last = taken.messages.last().map_or(0, |taken| taken.message.seq);
            Output {
                action: "respond",
                more: Some(taken.more),
                messages: Some(taken.messages.iter().map(MessageBody::from).collect()),
                instruction: format!("Answer with send_message, then call get_next_action with after_seq {last}."),
                ..Output::default()
            }
        }
        Next::Work(task) => Output {
            action: "work",
            task: Some(TaskBody::from(&*task)),
            instruction: "Do the task, then call report_completed with its result.".to_owned(),
            ..Output::default()
        },
        Next::Wait(rest) => Output {
            action: "wait",
            superseded: (rest == Rest::Superseded).then_some(true),
            instruction: at_rest(session, &rest),
            ..Output::default()
        },
        Next::End(reason) => Output {
            action: "end_session",
            reason: Some(reason.as_str()),
            instruction: "The session is over. Make no further calls and end.".to_owned(),
            ..Output::default()
        },
    };
    Ok(Output { waited_ms: Some(reply.waited_ms), ..output })
}

fn at_rest(session: &Session, rest: &Rest) -> String {
    match rest {
        Rest::Timeout => "Nothing new. Call get_next_action again.".to_owned(),
        Rest::Superseded => {
            "A newer get_next_action call of this session took the messages. Ignore this reply.".to_owned()
        }
        Rest::Notice => "Call get_notifications, then call get_next_action again.".to_owned(),
        Rest::TaskWaiting(task) => format!(
            "{task} waits for you: authenticate again as {} to begin a session for it, and continue here meanwhile.",
            session.agent_id
        ),
        Rest::Held => {
            "A person has paused or blocked the task. Call report_completed with result \"blocked\", or call \
             get_next_action again to wait until it continues."
                .to_owned()
        }
    }
}

impl From<&TakenMessage> for MessageBody {
    fn from(taken: &TakenMessage) -> Self {
        let message = &taken.message;
        Self {
            id: message.id.to_string(),
            seq: message.seq,
            sender: message.sender.as_str(),
            content: message.content.clone(),
            reply_to: message.reply_to.as_ref().map(ToString::to_string),
            created_at: message.created_at.to_string(),
            redelivered: taken.redelivered,
        }
    }
}

impl From<&Task> for TaskBody {
    fn from(task: &Task) -> Self {
        let handed = serde_json::from_str::<HandedTask>(&task.config_json);
        Self {
            task_id: task.id.to_string(),
            title: task.title.clone(),
            status: task.status.as_str(),
            message: handed.ok().map(|handed| handed.message),
            revision: task.revision,
        }
    }
}
