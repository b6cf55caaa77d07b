//! `auto`: the choice of an agent is left to Matsu. Of those that are installed and accept the work, one that has quota
//! left comes first, then the one whose work passed its checks more often; it must be logged in.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use matsu_core::clock::Timestamp;
use matsu_core::error_code::ErrorCode;
use matsu_core::job::{Job, JobState};
use matsu_core::page::PageRequest;
use matsu_core::ports::agent::{ProbeDepth, RunRefusal, RunWish};
use matsu_core::ports::store::{JobFilter, JobOrder, ListJobs, StoreError};
use matsu_core::principal::Principal;
use matsu_core::run::{RunCheckpoint, RunInput, RunOutput};
use matsu_core::slot::Slot;

use crate::tasks::TaskError;

use super::submit::RunError;

use super::Agents;

/// What stands for the choice.
pub const AUTO: &str = "auto";

/// The last runs that are looked at.
const RUNS_MAX: u32 = 200;

/// What is known of an agent from its runs here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Record {
    checked: u32,
    passed: u32,
    /// A run of it has completed; what older ones say about its quota does not count any more.
    has_worked: bool,
    quota_until: Option<Timestamp>,
}

impl Record {
    /// Per mille, so that one run alone decides little.
    fn rate(&self) -> u32 {
        (self.passed + 1) * 1000 / (self.checked + 2)
    }

    fn words(&self, agent: &str) -> String {
        match (self.quota_until, self.checked) {
            (Some(until), _) => format!("{agent} is out of quota until {until}"),
            (None, 0) => format!("{agent} has not been checked here yet"),
            (None, checked) => format!("{agent} passed {} of {checked} checks here", self.passed),
        }
    }
}

impl Agents<'_> {
    /// The agent for a wish that leaves the choice to Matsu, and why it is this one.
    ///
    /// # Errors
    /// None can do it; the message says why each cannot.
    pub async fn choose_agent(self, owner: &Principal, wish: &RunWish) -> Result<(String, String), RunError> {
        let host = self.host()?;
        let records = self.records(owner).await.map_err(TaskError::from)?;
        let (mut able, mut unable) = (Vec::new(), Vec::new());
        for agent in host.agents() {
            match host.check(RunWish { agent: agent.name.clone(), ..wish.clone() }) {
                Ok(_) => able.push((records.get(&agent.name).cloned().unwrap_or_default(), agent.name)),
                Err(refused) => unable.push(format!("{}: {}", agent.name, refused.message)),
            }
        }
        able.sort_by_key(|(record, name)| (record.quota_until.is_some(), Reverse(record.rate()), name.clone()));
        let mut passed_over = Vec::new();
        for (place, (record, name)) in able.iter().enumerate() {
            // Asked in this order, so that few programs have to be started for it.
            if host.probe(name, ProbeDepth::Login).await.authenticated == Some(false) {
                passed_over.push(format!("{name} is not logged in"));
                continue;
            }
            passed_over.extend(able.iter().skip(place + 1).map(|(record, other)| record.words(other)));
            let others = if passed_over.is_empty() { String::new() } else { format!("; {}", passed_over.join("; ")) };
            return Ok((name.clone(), format!("Chosen: {name} ({}{others}).", record.words(name))));
        }
        unable.extend(passed_over);
        let message = format!("no agent can be chosen: {}. See list_agents", unable.join("; "));
        Err(RunError::Refused(RunRefusal { code: ErrorCode::AgentNotInstalled, message, param: None }))
    }

    /// What the last runs of a person say about their agents.
    async fn records(self, owner: &Principal) -> Result<BTreeMap<String, Record>, StoreError> {
        let (owner, slot) = (Some(owner.clone()), Some(Slot::AgentCli));
        let filter = JobFilter { owner, slot, order: JobOrder::NewestFirst, ..JobFilter::default() };
        let jobs = self
            .runtime
            .store()
            .run(ListJobs { filter: filter.clone(), page: PageRequest::new(None, Some(RUNS_MAX)) })
            .await?;
        let mut records = BTreeMap::new();
        for job in &jobs.items {
            note(&mut records, job, self.runtime.clock().now());
        }
        Ok(records)
    }
}

fn note(records: &mut BTreeMap<String, Record>, job: &Job, now: Timestamp) {
    let Ok(input) = serde_json::from_str::<RunInput>(&job.input_json) else { return };
    if input.verifies.is_some() {
        return;
    }
    let output: RunOutput =
        job.output_json.as_deref().and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    let checkpoint: RunCheckpoint =
        job.checkpoint_json.as_deref().and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    let mut of = |agent: &str, until: Option<i64>, passed: Option<bool>, worked: bool| {
        let record: &mut Record = records.entry(agent.to_owned()).or_default();
        let until = until.map(Timestamp::from_millis).filter(|until| *until > now && !record.has_worked);
        record.quota_until = record.quota_until.max(until);
        record.has_worked |= worked;
        record.checked += u32::from(passed.is_some());
        record.passed += u32::from(passed == Some(true));
    };
    for tried in &checkpoint.tried {
        // One without quota has not shown what it can do.
        let passed = tried.quota_until.is_none().then_some(false);
        of(&tried.agent, tried.quota_until, passed, false);
    }
    let agent = input.after(checkpoint.tried.len()).agent;
    let until = if job.state.is_finished() { output.quota_until } else { checkpoint.quota_until };
    let passed = output.receipt.as_ref().map(|receipt| receipt.passed);
    of(&agent, until, passed, job.state == JobState::Completed);
}
