//! `use_agents`: the same question to several command lines; one task, one run each.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use futures_util::future::join_all;

use matsu_core::limits::AGENTS_PER_CALL_MAX;
use matsu_core::ports::agent::{ProbeDepth, RunWish};

use super::run_start::{self, BudgetWish, CheckWish, ModeWord, PriorityWord, Started};
use crate::tool::{Annotations, Repeat, Tool, ToolContext, ToolError, ToolReply, Toolset};

pub struct UseAgents;

#[derive(Deserialize, Serialize, JsonSchema)]
pub struct Input {
    /// The task, as a complete prompt: the agents see nothing else of your conversation.
    #[schemars(length(min = 1))]
    message: String,
    /// Names from list_agents (default: all installed).
    #[schemars(length(min = 1, max = 10))]
    cli_names: Option<Vec<String>>,
    /// true: return a task_id at once; false (default): wait for the results.
    run_async: Option<bool>,
    /// Extra system prompt, for agents that support one.
    #[schemars(length(max = 100_000))]
    system_prompt: Option<String>,
    /// Seconds each agent may run (default 1800).
    #[schemars(range(min = 1, max = 86400))]
    timeout: Option<u32>,
    /// End an agent after this many seconds without output (default: no limit).
    #[schemars(range(min = 1, max = 86400))]
    stall_timeout: Option<u32>,
    /// Folder inside your project.
    working_directory: Option<String>,
    /// What they may change (default: each agent's safest mode); those that write get a git branch each.
    mode: Option<ModeWord>,
    /// Command that must exit 0 in a fresh checkout of each agent's commit before its run counts as completed.
    check: Option<CheckWish>,
    /// How often a failed check goes back to its agent (default 0).
    #[schemars(range(max = 5))]
    retries: Option<u32>,
    /// Agents to try in order if one is unavailable, out of quota or fails its check.
    #[schemars(length(max = 9))]
    fallback: Option<Vec<String>>,
    /// Maximum tokens or dollars for all agents and what they start.
    budget: Option<BudgetWish>,
    /// Tasks to complete first; they get their results and changes.
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

impl Tool for UseAgents {
    const NAME: &'static str = "use_agents";
    const TITLE: &'static str = "Give the same work to several agents";
    const DESCRIPTION: &'static str = "Agent: give the same task to several AI command-line programs at once, as one \
        task with one result per agent. A slow or failing agent does not delay the others: get_task_status returns \
        each result when it is ready. For one agent, or to choose model or conversation, use use_agent.";
    const TOOLSET: Toolset = Toolset::Agents;
    const ANNOTATIONS: Annotations =
        Annotations { read_only: false, destructive: true, idempotent: false, open_world: true };
    const REPEAT: Repeat = Repeat::WithKey;
    type Input = Input;
    type Output = Started;

    async fn call(cx: &ToolContext, input: Input) -> Result<ToolReply<Started>, ToolError> {
        let names = names(cx, input.cli_names.as_deref()).await?;
        let queued = (input.priority, input.idempotency_key.clone());
        let begins = (input.depends_on.clone(), input.run_at.as_deref());
        let options = run_start::options_of(cx, Self::NAME, &input, queued, begins)?;
        let wish = run_start::wish_of(cx)?;
        let (check, check_with) = CheckWish::read(input.check.clone())?;
        let wishes = names.into_iter().map(|agent| RunWish {
            agent,
            message: input.message.clone(),
            system_prompt: input.system_prompt.clone(),
            working_directory: input.working_directory.clone(),
            mode: input.mode.map(Into::into),
            timeout_seconds: input.timeout,
            stall_seconds: input.stall_timeout,
            must_isolate: true,
            check: check.clone(),
            check_with,
            retries: input.retries,
            fallback: input.fallback.clone(),
            budget: input.budget.clone().map(Into::into),
            ..wish.clone()
        });
        run_start::start(cx, wishes.collect(), options, input.run_async.unwrap_or(false)).await
    }
}

/// In the order they were named.
async fn names(cx: &ToolContext, wished: Option<&[String]>) -> Result<Vec<String>, ToolError> {
    if let Some(wished) = wished {
        let twice = wished.iter().enumerate().find(|(at, name)| wished[..*at].contains(name));
        if let Some((_, name)) = twice {
            let message = format!("{name} is named twice, but each agent runs once; for a second run call use_agent");
            return Err(ToolError::param("cli_names", "different names", name, message));
        }
        return Ok(wished.to_vec());
    }
    let Some(host) = cx.runtime.agents() else { return Ok(Vec::new()) };
    let agents = host.agents();
    let probes = join_all(agents.iter().map(|agent| host.probe(&agent.name, ProbeDepth::Known))).await;
    let installed = agents.into_iter().zip(probes).filter(|(_, probe)| probe.installed).map(|(agent, _)| agent.name);
    let names: Vec<String> = installed.take(AGENTS_PER_CALL_MAX).collect();
    if names.is_empty() {
        let message = "no agent is installed; see list_agents";
        return Err(ToolError::new(matsu_core::error_code::ErrorCode::AgentNotInstalled, message));
    }
    Ok(names)
}
