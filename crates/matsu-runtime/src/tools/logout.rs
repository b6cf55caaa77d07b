//! `logout`: an agent ends its session.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use matsu_core::ports::store::EndSession;
use matsu_core::session::{EndReason, SessionState};

use crate::tool::{Annotations, Rules, Tool, ToolContext, ToolError, ToolReply, Toolset};

pub struct Logout;

#[derive(Deserialize, JsonSchema)]
pub struct Input {}

#[derive(Serialize, JsonSchema)]
pub struct Output {
    session_id: String,
    /// Why the session is over: logged_out, or what ended it before.
    reason: String,
}

impl Tool for Logout {
    const NAME: &'static str = "logout";
    const TITLE: &'static str = "End the session";
    const DESCRIPTION: &'static str = "Session: end your session. A task that you did not report stays open for the \
        next agent; a chat stays open. To finish a task use report_completed instead. A repeated call changes nothing; \
        returns why the session ended.";
    const TOOLSET: Toolset = Toolset::Sessions;
    const ANNOTATIONS: Annotations = Annotations { read_only: false, ..Annotations::READS };
    const RULES: Rules = Rules::ENDS_SESSION;
    type Input = Input;
    type Output = Output;

    async fn call(cx: &ToolContext, _input: Input) -> Result<ToolReply<Output>, ToolError> {
        let (to, reason, now) = (SessionState::Ended, EndReason::LoggedOut, cx.runtime.clock().now());
        let request = EndSession { id: cx.session()?.id.clone(), to, reason, now };
        let session = cx.runtime.store().run(request).await?;
        Ok(ToolReply::Done(Output {
            session_id: session.id.to_string(),
            reason: session.end_reason.unwrap_or(reason).to_string(),
        }))
    }
}
