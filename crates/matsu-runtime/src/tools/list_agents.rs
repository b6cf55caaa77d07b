//! `list_agents`: which command lines there are, what they can do, and how busy they are.

use futures_util::future::join_all;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use matsu_core::confinement::Confinement;
use matsu_core::job::JobState;
use matsu_core::page::PageRequest;
use matsu_core::ports::agent::{Agent, Probe, ProbeDepth};
use matsu_core::ports::store::{JobFilter, ListJobs};
use matsu_core::slot::Slot;

use crate::tool::{Annotations, Repeat, Tool, ToolContext, ToolError, ToolReply, Toolset};

pub struct ListAgents;

#[derive(Deserialize, JsonSchema)]
pub struct Input {
    /// true: also check logins, without a model call.
    check_auth: Option<bool>,
    /// false: start no program; versions are missing then.
    probe: Option<bool>,
}

#[derive(Serialize, JsonSchema)]
pub struct Output {
    agents: Vec<AgentReport>,
    /// Definitions that could not be read, by file.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    broken: Vec<Broken>,
}

#[derive(Serialize, JsonSchema)]
struct AgentReport {
    name: String,
    command: String,
    version: Option<String>,
    installed: bool,
    /// null: not asked, or the program cannot tell.
    authenticated: Option<bool>,
    /// Which login a run uses: user, key or none.
    login: String,
    /// The mode of a run that names none.
    mode: String,
    modes: Vec<String>,
    /// Whether a sandbox holds it to its mode.
    confined: bool,
    /// How its runs are confined: sealed, fenced or open. null: this machine cannot confine them, and none is started.
    confinement: Option<String>,
    /// Why they cannot be confined, and the setting that allows them without.
    #[serde(skip_serializing_if = "Option::is_none")]
    confinement_error: Option<String>,
    /// What that confinement does not cover.
    not_covered: Vec<String>,
    running: usize,
    limit: u32,
    supports: Supports,
}

#[derive(Serialize, JsonSchema)]
struct Supports {
    resume: bool,
    system_prompt: bool,
    stream: bool,
    input: bool,
    model: bool,
}

#[derive(Serialize, JsonSchema)]
struct Broken {
    file: String,
    error: String,
}

impl Tool for ListAgents {
    const NAME: &'static str = "list_agents";
    const TITLE: &'static str = "List agents";
    const DESCRIPTION: &'static str = "Agent: lists the AI command-line programs that use_agent can start: installed \
        or not, version, modes (the first is the default and the safest), features, how many run now.";
    const TOOLSET: Toolset = Toolset::Agents;
    const CORE: bool = true;
    const ANNOTATIONS: Annotations = Annotations::READS;
    const REPEAT: Repeat = Repeat::Harmless;
    type Input = Input;
    type Output = Output;

    async fn call(cx: &ToolContext, input: Input) -> Result<ToolReply<Output>, ToolError> {
        let Some(host) = cx.runtime.agents() else {
            return Ok(ToolReply::Done(Output { agents: Vec::new(), broken: Vec::new() }));
        };
        let depth = match (input.check_auth, input.probe) {
            (Some(true), _) => ProbeDepth::Login,
            (_, Some(false)) => ProbeDepth::Known,
            _ => ProbeDepth::Version,
        };
        let agents = host.agents();
        let probes = join_all(agents.iter().map(|agent| host.probe(&agent.name, depth))).await;
        let running = running(cx).await?;
        let limit = cx.runtime.limits().of(Slot::AgentCli);
        let agents = agents.into_iter().zip(probes);
        let agents = agents.map(|(agent, probe)| {
            let running = running.iter().filter(|name| **name == agent.name).count();
            report(agent, probe, running, limit)
        });
        let broken = host.broken().into_iter().map(|broken| Broken { file: broken.file, error: broken.error });
        Ok(ToolReply::Done(Output { agents: agents.collect(), broken: broken.collect() }))
    }
}

/// The agent of every run under way, on any node; for others than admins, of their own.
async fn running(cx: &ToolContext) -> Result<Vec<String>, ToolError> {
    let filter = JobFilter {
        owner: (!cx.rights.is_admin()).then(|| cx.principal.clone()),
        state: Some(JobState::Running),
        slot: Some(Slot::AgentCli),
        ..JobFilter::default()
    };
    let jobs = cx
        .runtime
        .store()
        .run(ListJobs { filter: filter.clone(), page: PageRequest::new(None, Some(u32::MAX)) })
        .await?
        .items;
    let names = jobs.iter().filter_map(|job| {
        let input: serde_json::Value = serde_json::from_str(&job.input_json).ok()?;
        input["agent"].as_str().map(str::to_owned)
    });
    Ok(names.collect())
}

fn report(agent: Agent, probe: Probe, running: usize, limit: u32) -> AgentReport {
    let word = |login| serde_json::to_value(login).ok().and_then(|word| word.as_str().map(str::to_owned));
    AgentReport {
        name: agent.name,
        command: agent.command,
        version: probe.version,
        installed: probe.installed,
        authenticated: probe.authenticated,
        login: word(agent.login).unwrap_or_default(),
        mode: agent.mode.to_string(),
        modes: agent.modes.iter().map(ToString::to_string).collect(),
        confined: agent.confinement.is_some_and(|level| level != Confinement::Open),
        confinement: agent.confinement.map(|level| level.to_string()),
        confinement_error: agent.confinement_error,
        not_covered: agent.not_covered,
        running,
        limit,
        supports: Supports {
            resume: agent.supports.resume,
            system_prompt: agent.supports.system_prompt,
            stream: agent.supports.stream,
            input: agent.supports.input,
            model: agent.supports.model,
        },
    }
}
