//! What surrounds every tool call, the same for every transport: the caller and its rights, the gate that an interrupt
//! closes, limits, the check of the arguments, the tool, and what every reply carries beside its own.

pub mod check;
pub mod presets;
pub mod rights;
pub mod signal;
mod who;

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Map, Value};

use matsu_core::change::Topic;
use matsu_core::error_code::ErrorCode;
use matsu_core::id::TaskId;
use matsu_core::limits::{ARGUMENT_BYTES_MAX, TICK};
use matsu_core::ports::store::{ReadStanding, SessionKey, StoreError};
use matsu_core::session::Session;

use crate::tasks::News;
use crate::tasks::wait::{Check, after, wait_until};
use crate::tool::envelope::{checked, refuse};
use crate::tool::{ToolContext, ToolEntry, ToolError, ToolReply};

use who::Who;

/// What goes back to the caller.
#[derive(Debug)]
pub enum Reply {
    /// The same in both halves of an MCP result.
    Done { body: Value, is_error: bool },
    /// Nothing was done: the caller's session must receive something first.
    Interrupted { text: String, body: Value },
    /// Follow this task instead.
    Task(TaskId),
}

/// How long a call of a session runs before it is watched for interrupts: most calls are over by then.
const UNWATCHED: Duration = Duration::from_millis(20);

/// Runs one call from arguments to envelope. Never fails: an error is an answer too.
pub async fn call(entry: &ToolEntry, cx: &ToolContext, mut arguments: Map<String, Value>) -> Reply {
    let began = cx.runtime.clock().instant();
    // What this instance was sent in earlier replies has arrived: it has come back with another call.
    if let Some(instance) = &cx.instance {
        cx.runtime.cursors().settle(instance);
        cx.runtime.part::<News>().settle(instance);
    }
    let who = match who::identify(entry, cx, &mut arguments).await {
        Ok(who) => who,
        Err(error) => return Reply::Done { body: refuse(entry, cx, &error), is_error: true },
    };
    let arguments = Value::Object(arguments);
    let bytes = arguments.to_string().len();
    let outcome = admitted(entry, &who, arguments, bytes).await;
    let cx = &who.cx;
    let took_ms = (cx.runtime.clock().instant() - began).as_millis();
    let (mut body, is_error) = match outcome {
        Ok(ToolReply::Done(mut fields)) => {
            tracing::debug!(tool = entry.name, principal = %cx.principal, bytes, took_ms, "tool call");
            fields.insert("ok".to_owned(), Value::Bool(true));
            (Value::Object(fields), false)
        }
        Ok(ToolReply::Deferred(id)) => return Reply::Task(id),
        Err(error) if error.code == ErrorCode::Interrupted => {
            tracing::info!(tool = entry.name, principal = %cx.principal, "tool call refused: an interrupt is unacknowledged");
            return signal::notice(&cx.runtime);
        }
        Err(error) => (refuse(entry, cx, &error), true),
    };
    signal::add(cx, &mut body).await;
    let (body, is_error) = checked(entry, cx, body, is_error);
    Reply::Done { body, is_error }
}

/// Permission, gate, limits, the check of the arguments, the tool: in this order.
async fn admitted(
    entry: &ToolEntry,
    who: &Who,
    mut arguments: Value,
    bytes: usize,
) -> Result<ToolReply<Map<String, Value>>, ToolError> {
    let cx = &who.cx;
    rights::check_role(entry, &cx.rights)?;
    if let Some(session) = &cx.session {
        rights::check(entry, session)?;
        if who.unread.interrupts > 0 && !entry.rules.exempt {
            return Err(StoreError::Interrupted.into());
        }
    }
    if bytes > ARGUMENT_BYTES_MAX {
        let message = format!("the arguments have {bytes} bytes; at most {ARGUMENT_BYTES_MAX} are allowed");
        return Err(ToolError::new(ErrorCode::LimitExceeded, message));
    }
    if let Some((argument, tool)) = entry.rules.moved
        && arguments.get(argument).is_some()
    {
        let message = format!("{} takes no {argument}; call {tool} instead", entry.name);
        return Err(ToolError::param(argument, "nothing", "a value", message));
    }
    check::whole_numbers(entry.input_schema(), &mut arguments);
    check::arguments(entry.input_schema(), &arguments)?;
    // Its waits end with the session, whatever else it has begun.
    let waits = cx.caller.child_token();
    let cx = &ToolContext { caller: waits.clone(), ..cx.clone() };
    let call = entry.call(cx, arguments);
    tokio::pin!(call);
    let ended = tokio::select! {
        biased;
        answer = &mut call => return answer,
        ended = interrupted(cx, entry) => ended,
    };
    // Its waits have ended; whatever it still has to do is quick.
    match ended {
        None => call.await,
        Some(session) => {
            waits.cancel();
            // It may have answered in the same moment, with the end of the session itself: then its answer counts.
            call.await.map_err(|_| who::ended(&session))
        }
    }
}

/// Ends the waits of a session that must receive something, or returns the session if it is over. Never returns for
/// callers without one.
async fn interrupted(cx: &ToolContext, entry: &ToolEntry) -> Option<Session> {
    let (Some(session), Some(interrupt)) = (&cx.session, cx.runtime.interrupt()) else {
        return std::future::pending().await;
    };
    let (runtime, clock) = (&cx.runtime, *cx.runtime.clock());
    clock.sleep(UNWATCHED).await;
    let key = SessionKey::Id(session.id.clone());
    let topics = [Topic::agent(&session.agent_id, &session.project_id)];
    let over = Mutex::new(None);
    let mut look = async || match runtime.plain_store().run(ReadStanding { key: key.clone(), now: clock.now() }).await {
        Ok(Some(standing)) if !entry.rules.answers_the_end() && !standing.session.is_live(clock.now()) => {
            *over.lock().unwrap_or_else(PoisonError::into_inner) = Some(standing.session);
            Check::Ready(())
        }
        Ok(Some(standing)) if standing.unread.interrupts > 0 => Check::Ready(()),
        Ok(_) => Check::NotYet,
        Err(_) => Check::NotBefore(after(&clock, TICK)),
    };
    wait_until(runtime.hub(), &clock, &topics, None, &cx.caller, &mut look).await;
    let over = over.into_inner().unwrap_or_else(PoisonError::into_inner);
    if over.is_none() {
        interrupt.cancel();
    }
    over
}
