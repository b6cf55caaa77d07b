//! `use_agent`: hands work to another AI command line, now or in the background.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use matsu_core::ports::agent::RunWish;

use super::run_start::{self, IsolationWord, ModeWord, PriorityWord, Shared, Started};
use crate::tool::{Annotations, Answer, Tool, ToolContext, ToolError, Toolset};

pub struct UseAgent;

#[derive(Deserialize, Serialize, JsonSchema)]
pub struct Input {
    /// Which agent; see list_agents.
    #[schemars(length(min = 1, max = 64))]
    cli_name: String,
    /// What it shall do.
    #[schemars(length(min = 1))]
    message: String,
    /// true: a task_id at once. false (default): waits as long as a call can be held.
    run_async: Option<bool>,
    /// Your name for a conversation, to resume it later.
    #[schemars(length(min = 1, max = 128))]
    session_id: Option<String>,
    /// Go on with the conversation session_id.
    resume: Option<bool>,
    #[schemars(length(max = 100_000))]
    system_prompt: Option<String>,
    model: Option<String>,
    effort: Option<String>,
    /// More flags, if its definition allows.
    #[schemars(length(max = 100))]
    args: Option<Vec<String>>,
    /// Seconds it may run (1800).
    #[schemars(range(min = 1, max = 3600))]
    timeout: Option<u32>,
    /// A directory inside your project.
    working_directory: Option<String>,
    /// The safest by default.
    mode: Option<ModeWord>,
    /// worktree: on a git branch of its own; the default where it writes.
    isolation: Option<IsolationWord>,
    env: Option<BTreeMap<String, String>>,
    priority: Option<PriorityWord>,
    /// The same key returns the same task.
    #[schemars(length(min = 1, max = 200))]
    idempotency_key: Option<String>,
}

impl Tool for UseAgent {
    const NAME: &'static str = "use_agent";
    const DESCRIPTION: &'static str = "Agent: hand work to another AI command line on this machine (see list_agents). \
        With run_async you get a task_id at once: go on with other work, and collect the answer with one long \
        get_task_status(timeout=600). Without it the call waits, and returns the handle if it takes longer. \
        The work outlives your connection. Read-only unless mode allows more.";
    const TOOLSET: Toolset = Toolset::Agents;
    const ANNOTATIONS: Annotations = Annotations { read_only: false, destructive: false, idempotent: false };
    type Input = Input;
    type Output = Started;

    async fn call(cx: &ToolContext, input: Input) -> Result<Answer<Started>, ToolError> {
        let shared = Shared {
            tool: Self::NAME,
            run_async: input.run_async.unwrap_or(false),
            priority: input.priority,
            idempotency_key: input.idempotency_key.clone(),
            body: serde_json::to_string(&input).unwrap_or_default(),
        };
        let wish = RunWish {
            agent: input.cli_name,
            message: input.message,
            system_prompt: input.system_prompt,
            model: input.model,
            effort: input.effort,
            args: input.args.unwrap_or_default(),
            env: input.env.unwrap_or_default(),
            working_directory: input.working_directory,
            mode: input.mode.map(Into::into),
            isolation: input.isolation.map(Into::into),
            timeout_seconds: input.timeout,
            session: input.session_id,
            resume: input.resume.unwrap_or(false),
            must_isolate: false,
            ..run_start::wish_of(cx)?
        };
        run_start::start(cx, vec![wish], shared).await
    }
}
