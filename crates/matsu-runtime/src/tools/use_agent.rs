//! `use_agent`: hands work to another AI command line, now or in the background.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use matsu_core::error_code::ErrorCode;
use matsu_core::ports::agent::RunWish;

use super::run_start::{self, BudgetWish, CheckWish, IsolationWord, ModeWord, PriorityWord, Started};
use crate::agents::RunOptions;
use crate::tool::{Annotations, Repeat, Tool, ToolContext, ToolError, ToolReply, Toolset};

pub struct UseAgent;

#[derive(Deserialize, Serialize, JsonSchema)]
pub struct Input {
    /// Name of the agent, from list_agents, or auto.
    #[schemars(length(min = 1, max = 64))]
    cli_name: String,
    /// The complete prompt; the agent sees nothing else.
    #[schemars(length(min = 1))]
    message: String,
    /// true: return a task_id at once; false (default): wait.
    run_async: Option<bool>,
    /// Your name for this conversation, to resume it later.
    #[schemars(length(min = 1, max = 128))]
    session_id: Option<String>,
    /// true: continue conversation session_id.
    resume: Option<bool>,
    /// Extra system prompt, if supported.
    #[schemars(length(max = 100_000))]
    system_prompt: Option<String>,
    /// The agent's name for the model.
    model: Option<String>,
    /// Reasoning effort, in the agent's terms, such as high.
    effort: Option<String>,
    /// Extra flags, if its definition allows them.
    #[schemars(length(max = 100))]
    args: Option<Vec<String>>,
    /// Seconds it may run (default 1800).
    #[schemars(range(min = 1, max = 86400))]
    timeout: Option<u32>,
    /// End it after this many seconds without output (default: no limit).
    #[schemars(range(min = 1, max = 86400))]
    stall_timeout: Option<u32>,
    /// Folder inside your project.
    working_directory: Option<String>,
    /// What it may change (default: the safest).
    mode: Option<ModeWord>,
    /// worktree: on a separate git branch (default if it may write); none: in the folder.
    isolation: Option<IsolationWord>,
    /// Command that must exit 0 in a fresh checkout of its commit before the task counts as completed, such as "make
    /// test" (needs a mode that writes).
    check: Option<CheckWish>,
    /// How often a failed check goes back to the agent (default 0).
    #[schemars(range(max = 5))]
    retries: Option<u32>,
    /// Agents to try in order if this one is unavailable, out of quota or fails its check.
    #[schemars(length(max = 9))]
    fallback: Option<Vec<String>>,
    /// Maximum tokens or dollars, including what it starts.
    budget: Option<BudgetWish>,
    /// Environment variables.
    env: Option<BTreeMap<String, String>>,
    /// Tasks to complete first; it gets their results and changes.
    #[schemars(length(max = 20))]
    depends_on: Option<Vec<String>>,
    /// Start later: RFC 3339 time or span such as 2h.
    run_at: Option<String>,
    /// Order in the queue (default medium).
    priority: Option<PriorityWord>,
    /// A repeated key returns the first task.
    #[schemars(length(min = 1, max = 200))]
    idempotency_key: Option<String>,
}

impl Tool for UseAgent {
    const NAME: &'static str = "use_agent";
    const TITLE: &'static str = "Give work to an agent";
    const DESCRIPTION: &'static str = "Agent: give work to another AI command-line program on this machine (see \
        list_agents). With run_async=true (recommended) it returns a task_id at once: do other work, then get the \
        result with one get_task_status(task_id, timeout=600). Without it the call waits, and returns the task_id if \
        the work takes longer. The work continues if you disconnect. Read-only unless mode allows more. For several \
        agents use use_agents.";
    const TOOLSET: Toolset = Toolset::Agents;
    const CORE: bool = true;
    const ANNOTATIONS: Annotations =
        Annotations { read_only: false, destructive: true, idempotent: false, open_world: true };
    const REPEAT: Repeat = Repeat::WithKey;
    type Input = Input;
    type Output = Started;

    async fn call(cx: &ToolContext, input: Input) -> Result<ToolReply<Started>, ToolError> {
        let run_async = input.run_async.unwrap_or(false);
        let (wish, options) = read(cx, input).await?;
        run_start::start(cx, vec![wish], options, run_async).await
    }
}

/// Whether a call with these arguments would be taken at this moment. Nothing is stored.
///
/// # Errors
/// As those of the call.
pub async fn check(cx: &ToolContext, arguments: Value) -> Result<(), ToolError> {
    let input = serde_json::from_value(arguments)
        .map_err(|error| ToolError::new(ErrorCode::InvalidParams, format!("the arguments cannot be read: {error}")))?;
    let (wish, _) = read(cx, input).await?;
    run_start::check(cx, vec![wish]).map(drop)
}

/// The run that is wished for, and what concerns its task.
async fn read(cx: &ToolContext, input: Input) -> Result<(RunWish, RunOptions), ToolError> {
    let queued = (input.priority, input.idempotency_key.clone());
    let begins = (input.depends_on.clone(), input.run_at.as_deref());
    let options = run_start::options_of(cx, UseAgent::NAME, &input, queued, begins)?;
    let (check, check_with) = CheckWish::read(input.check)?;
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
        stall_seconds: input.stall_timeout,
        session: input.session_id,
        resume: input.resume.unwrap_or(false),
        must_isolate: false,
        check,
        check_with,
        retries: input.retries,
        fallback: input.fallback,
        budget: input.budget.map(Into::into),
        ..run_start::wish_of(cx)?
    };
    let (wish, chosen) = run_start::with_agent(cx, wish).await?;
    Ok((wish, RunOptions { chosen, ..options }))
}
