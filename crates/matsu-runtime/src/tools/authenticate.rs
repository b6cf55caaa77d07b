//! `authenticate`: an agent shows its passkey and gets a session.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use matsu_core::error_code::ErrorCode;
use matsu_core::id::{AgentId, ProjectId};
use matsu_core::ports::store::{ReadAgent, ReadProject};

use crate::chats::sessions::Sessions;
use crate::tool::{Annotations, Rules, Tool, ToolContext, ToolError, ToolReply, Toolset};

pub struct Authenticate;

#[derive(Deserialize, JsonSchema)]
pub struct Input {
    /// Your agent id.
    #[schemars(length(min = 1, max = 64))]
    agent_id: String,
    /// Your key; it was shown once, when the agent was created.
    #[schemars(length(min = 1, max = 200), extend("writeOnly" = true))]
    passkey: String,
    /// The project you work in.
    #[schemars(length(min = 1, max = 64))]
    project_id: String,
}

#[derive(Serialize, JsonSchema)]
pub struct Output {
    /// Pass it with every call.
    session_token: String,
    session_id: String,
    /// chat or task.
    purpose: String,
    /// Seconds without a call after which the session ends.
    expires_in: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    task_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    chat_id: Option<String>,
    agent_name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    system_prompt: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    working_directory: Option<String>,
    instruction: String,
}

impl Tool for Authenticate {
    const NAME: &'static str = "authenticate";
    const TITLE: &'static str = "Begin a session";
    const DESCRIPTION: &'static str = "Session: begin your session as an agent; returns the session_token to pass with \
        every later call. The server chooses a task that waits for you, else an open chat. Then call get_next_action. \
        If this fails with details.action=exit, end: a retry cannot succeed. An agent that Matsu started has its \
        session already.";
    const TOOLSET: Toolset = Toolset::Sessions;
    const ANNOTATIONS: Annotations = Annotations::ADDS;
    const RULES: Rules = Rules::WITHOUT_SESSION;
    type Input = Input;
    type Output = Output;

    async fn call(cx: &ToolContext, input: Input) -> Result<ToolReply<Output>, ToolError> {
        begin(cx, input).await.map(ToolReply::Done).map_err(|mut error| {
            // Whatever it was, an agent that calls again at once only burns its quota.
            if error.code != ErrorCode::StoreUnavailable {
                error.details = json!({ "action": "exit" });
            }
            error
        })
    }
}

async fn begin(cx: &ToolContext, input: Input) -> Result<Output, ToolError> {
    let (agent, project) = (AgentId::from_text(input.agent_id), ProjectId::from_text(input.project_id));
    let begun = Sessions::of(&cx.runtime).authenticate(&cx.transport, &agent, &input.passkey, &project).await?;
    let agent = cx.runtime.store().run(ReadAgent(agent.clone())).await?;
    let project = cx.runtime.store().run(ReadProject(project.clone())).await?;
    let session = begun.session;
    Ok(Output {
        session_token: begun.token,
        session_id: session.id.to_string(),
        purpose: session.purpose.to_string(),
        expires_in: begun.expires_in.as_secs(),
        task_id: session.task_id.map(|id| id.to_string()),
        chat_id: session.chat_id.map(|id| id.to_string()),
        agent_name: agent.name,
        system_prompt: agent.system_prompt,
        working_directory: project.working_directory,
        instruction: "Call get_next_action and do what it says.".to_owned(),
    })
}
