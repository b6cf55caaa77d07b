//! The command lines of this machine, as definitions and settings say at the moment. Runs that go on keep what they
//! were started with.

use std::sync::{Arc, PoisonError, RwLock};

use async_trait::async_trait;
use matsu_core::id::{JobId, RunId};
use matsu_core::job::Lease;
use matsu_core::merge::{MergeOrder, MergeStep, MergeTarget};
use matsu_core::ports::agent::{
    Agent, AgentHost, Applied, ApplyError, BrokenDefinition, CheckOrder, CheckedRun, LiveRun, MachineConfinement,
    Probe, ProbeDepth, RunOrder, RunRefusal, RunTrace, RunWish, StartError, StartedCheck,
};
use matsu_core::receipt::Consent;
use matsu_core::run::{Changes, KeptWork, RunInput};

use super::host::{CliHost, HostOptions};

/// A host that can be given other options while it is used.
pub struct ReloadingHost {
    current: RwLock<Arc<CliHost>>,
}

impl ReloadingHost {
    /// As [`CliHost::new`].
    #[must_use]
    pub fn new(options: HostOptions) -> Self {
        Self { current: RwLock::new(Arc::new(CliHost::new(options))) }
    }

    /// Reads all definitions again and goes by the new options from here on.
    pub fn reload(&self, options: HostOptions) {
        let anew = Arc::new(self.current().with_options(options));
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = anew;
    }

    fn current(&self) -> Arc<CliHost> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }
}

#[async_trait]
impl AgentHost for ReloadingHost {
    fn agents(&self) -> Vec<Agent> {
        self.current().agents()
    }

    fn confinement(&self) -> MachineConfinement {
        self.current().confinement()
    }

    fn broken(&self) -> Vec<BrokenDefinition> {
        self.current().broken()
    }

    fn check(&self, wish: RunWish) -> Result<CheckedRun, RunRefusal> {
        self.current().check(wish)
    }

    async fn probe(&self, agent: &str, depth: ProbeDepth) -> Probe {
        self.current().probe(agent, depth).await
    }

    async fn start(&self, order: RunOrder) -> Result<Box<dyn LiveRun>, StartError> {
        self.current().start(order).await
    }

    async fn start_check(&self, order: CheckOrder) -> Result<StartedCheck, StartError> {
        self.current().start_check(order).await
    }

    async fn adopt_check(&self, lease: &Lease, run: &RunId) -> Result<StartedCheck, StartError> {
        self.current().adopt_check(lease, run).await
    }

    fn is_allowed(&self, consent: &Consent) -> bool {
        self.current().is_allowed(consent)
    }

    fn trace(&self, job: &JobId) -> Option<RunTrace> {
        self.current().trace(job)
    }

    async fn adopt(&self, lease: &Lease, run: &RunId, stored: u64) -> Result<Box<dyn LiveRun>, StartError> {
        self.current().adopt(lease, run, stored).await
    }

    fn jobs_with_runs(&self) -> Vec<JobId> {
        self.current().jobs_with_runs()
    }

    async fn forget(&self, job: &JobId) {
        self.current().forget(job).await;
    }

    async fn give_up(&self, job: &JobId, before: Option<i64>) -> Option<KeptWork> {
        self.current().give_up(job, before).await
    }

    async fn end_processes(&self, run: &RunId) {
        self.current().end_processes(run).await;
    }

    fn can_take(&self, input: &RunInput) -> bool {
        self.current().can_take(input)
    }

    async fn recover(&self) {
        self.current().recover().await;
    }

    async fn diff(&self, changes: &Changes) -> Result<Vec<u8>, String> {
        self.current().diff(changes).await
    }

    async fn apply(&self, job: &JobId, changes: &Changes, keep_conflicts: bool) -> Result<Applied, ApplyError> {
        self.current().apply(job, changes, keep_conflicts).await
    }

    fn unfinished_applies(&self) -> Vec<String> {
        self.current().unfinished_applies()
    }

    async fn undo_apply(&self, job: &JobId, changes: &Changes) -> Result<(), ApplyError> {
        self.current().undo_apply(job, changes).await
    }

    async fn merge_target(&self, repository: &str, branch: &str) -> Result<MergeTarget, String> {
        self.current().merge_target(repository, branch).await
    }

    async fn conflicts_left(&self, changes: &Changes) -> Result<Vec<String>, String> {
        self.current().conflicts_left(changes).await
    }

    async fn merge(&self, order: MergeOrder<'_>) -> Result<MergeStep, String> {
        self.current().merge(order).await
    }

    async fn move_branch(&self, repository: &str, branch: &str, from: Option<&str>, to: &str) -> Result<(), String> {
        self.current().move_branch(repository, branch, from, to).await
    }

    async fn discard(&self, changes: &Changes) -> Result<Option<String>, String> {
        self.current().discard(changes).await
    }
}
