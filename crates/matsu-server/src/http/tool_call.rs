//! Routes that are tools under another name: the same checks, the same effect; a refusal is a problem like any other.

use std::sync::Arc;

use matsu_core::error_code::ErrorCode;
use matsu_runtime::dispatch::{self, Reply};
use matsu_runtime::tool::ToolContext;
use matsu_runtime::tools::TOOLS;
use serde_json::{Value, json};

use crate::app::App;
use crate::auth::Caller;
use crate::peer::Peer;
use crate::problem::Problem;

/// A call over HTTP: the connection itself decides which caller it is.
pub fn context(app: &App, caller: Caller, peer: Peer) -> ToolContext {
    ToolContext {
        caller: app.shutdown().clone(),
        workplace: Arc::new(peer.workplace),
        session_token: peer.run.as_ref().map(|run| Arc::clone(run.token.reveal())),
        run: peer.run,
        rights: caller.rights,
        ..ToolContext::new(app.runtime().clone(), caller.principal)
    }
}

/// The tool's own answer, or its refusal as a problem.
pub async fn answer(cx: &ToolContext, name: &str, arguments: Value) -> Result<Value, Problem> {
    let Some(entry) = TOOLS.iter().find(|tool| tool.name == name) else {
        return Err(Problem::new(ErrorCode::InternalError, format!("there is no tool {name}")));
    };
    let Value::Object(arguments) = arguments else { return Err(Problem::invalid("the body must be an object")) };
    match dispatch::call(entry, cx, arguments).await {
        Reply::Done { body, is_error: false } | Reply::Interrupted { body, .. } => Ok(body),
        Reply::Done { body, is_error: true } => {
            let code = body["error_code"].as_str().and_then(ErrorCode::parse).unwrap_or(ErrorCode::InternalError);
            Err(Problem::new(code, body["error"].as_str().unwrap_or_default()))
        }
        Reply::Task(id) => Ok(json!({ "ok": true, "task_id": id })),
    }
}
