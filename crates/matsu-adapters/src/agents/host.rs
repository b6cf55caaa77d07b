//! The command lines of this machine, as the port wants them: definitions, rules, and starting a run.

mod admitting;
mod applying;
mod checking;
mod preparing;
mod starting;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use matsu_core::clock::Clock;
use matsu_core::error_code::ErrorCode;
use matsu_core::id::{JobId, RunId};
use matsu_core::job::Lease;
use matsu_core::merge::{MergeOrder, MergeStep, MergeTarget};
use matsu_core::ports::agent::{
    Agent, AgentHost, Applied, ApplyError, BrokenDefinition, CheckOrder, CheckedRun, LiveRun, Login,
    MachineConfinement, Probe, ProbeDepth, Program, RunOrder, RunRefusal, RunTrace, RunWish, StartError, StartedCheck,
    Supports, TraceState,
};
use matsu_core::receipt::Consent;
use matsu_core::run::{Changes, KeptWork, Mode, RunInput};
use matsu_core::secret::Token;

use super::confined::Cell;
use super::confinement::{ConfineOptions, Confiner};
use super::definition::Definition;
use super::git::Git;
use super::probe::Asked;
use super::registry::Registry;
use super::removal::{self, remove_folder};
use super::runs_folder::{RunFolder, RunRecord, RunsFolder, make_private};
use super::supervisor::exit_record::ExitRecord;
use super::supervisor::order::Restart;
use super::worktree::kept;
use super::{adoption, environment, git, orphans, probe, process, project_file};

pub use checking::check_definition;
pub use starting::Way;

/// What a definition calls Matsu itself, wherever it is installed.
const THIS_PROGRAM: &str = "{matsu}";

/// Set by a test that plays a restart of the machine.
const BOOT_ID: &str = "MATSU_TEST_BOOT_ID";

/// What a host knows of its machine.
#[derive(Clone)]
pub struct HostOptions {
    pub data_dir: PathBuf,
    /// Where the user's own definitions lie.
    pub definitions: Option<PathBuf>,
    pub roots: Vec<PathBuf>,
    pub mode_max: Mode,
    /// Matsu's own environment.
    pub environment: BTreeMap<String, String>,
    /// This program, for runs that report back.
    pub matsu: PathBuf,
    /// Whether a model is configured that the built-in agent can ask; without one it counts as not installed.
    pub has_model: bool,
    pub confine: ConfineOptions,
    /// The daemon's socket, which runs reach by way of their own.
    pub socket: PathBuf,
    pub clock: Clock,
    /// How a supervisor starts the next daemon. Absent: it does not.
    pub restart: Option<Restart>,
    /// Which store the runs belong to: runs of another one are left alone.
    pub store: String,
    /// The largest bundle that is taken over from a run.
    pub bundle_bytes_max: u64,
    /// How long making it may take.
    pub bundle_within: Duration,
    /// Runs are answers of a model: they get no address of Matsu, and belong to no task.
    pub is_for_models: bool,
}

pub struct CliHost {
    options: HostOptions,
    registry: Registry,
    runs: RunsFolder,
    confiner: Arc<Confiner>,
}

impl CliHost {
    /// Reads all definitions, and takes care that what a killed run leaves behind comes to this process.
    #[must_use]
    pub fn new(options: HostOptions) -> Self {
        if let Err(error) = orphans::adopt() {
            tracing::warn!(%error, "processes of a killed run may be left behind on this system");
        }
        let host = Self::of(options);
        host.runs.sweep();
        git::sweep_scratch(&host.options.data_dir);
        removal::sweep(&host.options.data_dir);
        kept::sweep(&host.options.data_dir);
        applying::sweep(&host.options.data_dir);
        host
    }

    /// Sweeps nothing: runs may use what lies in the folders.
    fn of(mut options: HostOptions) -> Self {
        // Folders of runs are opened without following links.
        if let Ok(real) = options.data_dir.canonicalize() {
            options.data_dir = real;
        }
        let mut registry = Registry::load(options.definitions.as_deref());
        if options.is_for_models {
            registry.drop_ways_back();
        }
        let runs = RunsFolder::new(&options.data_dir, &options.store);
        let confiner = Confiner::new(options.confine.clone(), &options.data_dir, &options.matsu, &options.environment);
        Self { registry, runs, confiner: Arc::new(confiner), options }
    }

    /// The same machine by other rules. Data directory and store stay: runs are found by them.
    pub(super) fn with_options(&self, options: HostOptions) -> Self {
        let (data_dir, store) = (self.options.data_dir.clone(), self.options.store.clone());
        let host = Self::of(HostOptions { data_dir, store, ..options });
        // What the machine offers is tried once: that starts processes.
        host.confiner.take_offer_of(&self.confiner);
        host
    }

    fn find(&self, name: &str) -> Option<&Arc<Definition>> {
        self.registry.definitions.get(name)
    }

    fn program(&self, definition: &Definition) -> Option<PathBuf> {
        if definition.command == THIS_PROGRAM {
            return self.options.has_model.then(|| self.options.matsu.clone());
        }
        let path = self.options.environment.get("PATH").map_or("", String::as_str);
        process::find(&definition.command, path)
    }

    fn login(&self, definition: &Definition) -> Login {
        match &definition.login {
            None => Login::None,
            Some(login) => {
                let set = |name: &String| {
                    definition.env.contains_key(name)
                        || self.options.environment.get(name).is_some_and(|key| !key.is_empty())
                };
                if login.keys.iter().any(set) { Login::Key } else { Login::User }
            }
        }
    }

    fn home(&self, definition: &Definition) -> PathBuf {
        self.options.data_dir.join("agents").join(&definition.name)
    }

    /// Where the program keeps its login.
    fn state(&self, definition: &Definition) -> Vec<PathBuf> {
        let home = self.options.environment.get("HOME").map(PathBuf::from).unwrap_or_default();
        let state = definition.login.iter().flat_map(|login| &login.state);
        let of_home =
            |path: &String| path.strip_prefix("~/").map_or_else(|| PathBuf::from(path), |path| home.join(path));
        state.map(of_home).collect()
    }

    /// A folder and a confinement for git, for one call of ours.
    fn cell(&self, marker: &str) -> Result<Cell, String> {
        let scratch = self.options.data_dir.join(git::SCRATCH).join(uuid());
        make_private(&scratch).map_err(|error| error.to_string())?;
        Ok(Cell { confiner: Arc::clone(&self.confiner), marker: marker.to_owned(), scratch })
    }

    fn describe(&self, definition: &Definition) -> Agent {
        let modes: Vec<Mode> =
            definition.mode_list().into_iter().filter(|mode| *mode <= self.options.mode_max).collect();
        let level = self.confiner.level(modes.first().copied().unwrap_or(Mode::ReadOnly));
        let not_covered = level.as_ref().map(|level| self.confiner.not_covered(*level, Some(definition)));
        let takes_answers = modes.iter().any(|mode| definition.listens(*mode));
        Agent {
            name: definition.name.clone(),
            command: definition.command.replace(THIS_PROGRAM, "matsu"),
            mode: modes.first().copied().unwrap_or(Mode::ReadOnly),
            not_covered: not_covered.unwrap_or_default(),
            confinement: level.as_ref().ok().copied(),
            confinement_error: level.err(),
            modes,
            login: self.login(definition),
            supports: Supports {
                resume: definition.session.is_some(),
                system_prompt: definition.system_prompt.is_some(),
                stream: definition.streams(),
                input: takes_answers,
                model: definition.model.is_some(),
            },
            retries: definition.retries,
            on_machine_restart: definition.on_machine_restart,
            relocatable: definition.relocatable,
            delivery: definition.delivery,
            connect_back: definition.connect_back(),
        }
    }

    pub(super) fn definition(&self, name: &str) -> Option<Arc<Definition>> {
        self.find(name).cloned()
    }

    pub(super) fn options(&self) -> &HostOptions {
        &self.options
    }

    pub(super) fn runs(&self) -> &RunsFolder {
        &self.runs
    }

    pub(super) fn confiner(&self) -> &Arc<Confiner> {
        &self.confiner
    }

    /// Which start of the machine this is. A test may say so itself.
    fn boot_id(&self) -> String {
        if let Some(boot_id) = self.options.environment.get(BOOT_ID) {
            return boot_id.clone();
        }
        std::fs::read_to_string("/proc/sys/kernel/random/boot_id").map_or(String::new(), |id| id.trim().to_owned())
    }

    fn state_of(&self, folder: &RunFolder, record: &RunRecord) -> TraceState {
        // In this order: a supervisor writes its record before it releases the lock. None outlives its machine.
        if folder.is_held() && record.boot_id == self.boot_id() {
            TraceState::Alive
        } else if ExitRecord::read(folder).is_some() {
            TraceState::Ended
        } else if !folder.begun().exists() {
            TraceState::NotBegun
        } else if record.boot_id != self.boot_id() {
            TraceState::MachineRestarted
        } else {
            TraceState::Lost
        }
    }
}

pub fn cannot(why: &str) -> StartError {
    StartError { code: ErrorCode::AgentStartFailed, message: format!("the run could not be started: {why}") }
}

fn not_installed(definition: &Definition) -> StartError {
    let message = if definition.command == THIS_PROGRAM {
        format!("{} has no model to ask; configure one (see providers in the configuration)", definition.name)
    } else {
        format!(
            "{} is not installed: {} was not found on the PATH of the daemon. Install it, or use another agent \
             (list_agents or `matsu agents` names them)",
            definition.name, definition.command
        )
    };
    StartError { code: ErrorCode::AgentNotInstalled, message }
}

/// A random one, as the programs want it.
fn uuid() -> String {
    let mut bytes = [0_u8; 16];
    // It is no secret; but two must not be the same.
    if getrandom::fill(&mut bytes).is_err() {
        bytes = Clock::system().now().as_millis().to_be_bytes().repeat(2).try_into().unwrap_or(bytes);
    }
    bytes[6] = (bytes[6] & 0x0f) | 0x40;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
}

#[async_trait]
impl AgentHost for CliHost {
    fn agents(&self) -> Vec<Agent> {
        self.registry.definitions.values().map(|definition| self.describe(definition)).collect()
    }

    fn confinement(&self) -> MachineConfinement {
        self.confiner.machine()
    }

    fn broken(&self) -> Vec<BrokenDefinition> {
        self.registry.broken.clone()
    }

    fn check(&self, wish: RunWish) -> Result<CheckedRun, RunRefusal> {
        self.check_wish(wish)
    }

    async fn probe(&self, agent: &str, depth: ProbeDepth) -> Probe {
        let Some(definition) = self.find(agent) else { return Probe::default() };
        let Some(program) = self.program(definition) else { return Probe::default() };
        if definition.command == THIS_PROGRAM {
            let version = Some(env!("CARGO_PKG_VERSION").to_owned());
            return Probe { installed: true, version, authenticated: None };
        }
        let asked = Asked {
            definition,
            program: &program,
            env: &environment::inherited(definition, &self.options.environment),
            state: self.state(definition),
            confiner: Arc::clone(&self.confiner),
            data_dir: &self.options.data_dir,
            name: uuid(),
        };
        probe::probe(asked, depth).await
    }

    async fn start(&self, order: RunOrder) -> Result<Box<dyn LiveRun>, StartError> {
        let definition = self.find(&order.input.agent).cloned();
        let definition =
            definition.ok_or_else(|| cannot(&format!("there is no agent {} any more", order.input.agent)))?;
        let folder = self.runs.make(&order.run_id).map_err(|error| cannot(&error.to_string()))?;
        let started = self.start_in(&definition, &order, &folder).await;
        if started.is_err() {
            folder.remove();
        }
        Ok(Box::new(started?))
    }

    async fn start_check(&self, order: CheckOrder) -> Result<StartedCheck, StartError> {
        let folder = self.runs.make(&order.run_id).map_err(|error| cannot(&error.to_string()))?;
        let started = self.start_check_in(&order, &folder).await;
        if started.is_err() {
            folder.remove();
        }
        started
    }

    async fn adopt_check(&self, lease: &Lease, run: &RunId) -> Result<StartedCheck, StartError> {
        self.follow_check(lease, run).await
    }

    fn is_allowed(&self, consent: &Consent) -> bool {
        project_file::is_allowed(&self.options.data_dir, consent)
    }

    fn trace(&self, job: &JobId) -> Option<RunTrace> {
        let (folder, record) = self.runs.of_job(job).into_iter().next()?;
        Some(RunTrace {
            state: self.state_of(&folder, &record),
            run_id: record.run_id.clone(),
            program: if record.check.is_some() { Program::Check } else { Program::Agent },
            attempt: record.attempt,
            session_id: record.session_id.clone(),
            token: Token::new(&record.token),
            socket_key: Token::new(&record.socket_key),
            resumed_session: record.resumed_session.clone(),
        })
    }

    async fn adopt(&self, lease: &Lease, run: &RunId, stored: u64) -> Result<Box<dyn LiveRun>, StartError> {
        adoption::adopt(self, lease, run, stored).await.map(|run| -> Box<dyn LiveRun> { Box::new(run) })
    }

    fn jobs_with_runs(&self) -> Vec<JobId> {
        self.runs.all().into_iter().map(|(_, record)| record.job_id.clone()).collect()
    }

    async fn forget(&self, job: &JobId) {
        for (folder, record) in self.runs.of_job(job) {
            adoption::end(&folder, &record, self.options.clock).await;
            folder.remove();
        }
    }

    async fn end_processes(&self, run: &RunId) {
        drop(orphans::end(run.to_string(), self.options.clock).await);
    }

    async fn give_up(&self, job: &JobId, before: Option<i64>) -> Option<KeptWork> {
        let mut newest = None;
        for (folder, record) in self.runs.of_job(job) {
            if before.is_none_or(|attempt| record.attempt < attempt) {
                let kept = adoption::give_up(self, &folder, &record).await;
                newest = newest.or(kept);
            }
        }
        newest
    }

    fn can_take(&self, input: &RunInput) -> bool {
        let is_there = |directory: &String| Path::new(directory).is_dir();
        self.find(&input.agent).is_some_and(|definition| {
            definition.relocatable
                && self.program(definition).is_some()
                && input.directory.as_ref().is_none_or(is_there)
        })
    }

    async fn recover(&self) {
        self.roll_back_unfinished().await;
    }

    fn unfinished_applies(&self) -> Vec<String> {
        self.unfinished_in_words()
    }

    async fn diff(&self, changes: &Changes) -> Result<Vec<u8>, String> {
        Git::find(&self.options.environment)?.diff(self.cell("diff")?, changes).await
    }

    async fn apply(&self, job: &JobId, changes: &Changes, keep_conflicts: bool) -> Result<Applied, ApplyError> {
        self.apply_changes(job, changes, keep_conflicts).await
    }

    async fn undo_apply(&self, job: &JobId, changes: &Changes) -> Result<(), ApplyError> {
        self.undo_changes(job, changes).await
    }

    async fn merge_target(&self, repository: &str, branch: &str) -> Result<MergeTarget, String> {
        let git = Git::find(&self.options.environment)?;
        git.check_version().await?;
        git.merge_target(std::path::Path::new(repository), branch).await
    }

    async fn merge(&self, order: MergeOrder<'_>) -> Result<MergeStep, String> {
        let cell = self.cell(order.task_id.as_str())?;
        let merged = Git::find(&self.options.environment)?.combine(&cell, &order).await;
        let _ = remove_folder(&cell.scratch);
        merged
    }

    async fn conflicts_left(&self, changes: &Changes) -> Result<Vec<String>, String> {
        let cell = self.cell("conflicts")?;
        let left = Git::find(&self.options.environment)?.conflicts_left(&cell, changes).await;
        let _ = remove_folder(&cell.scratch);
        left
    }

    async fn move_branch(&self, repository: &str, branch: &str, from: Option<&str>, to: &str) -> Result<(), String> {
        Git::find(&self.options.environment)?.move_branch(std::path::Path::new(repository), branch, from, to).await
    }

    async fn discard(&self, changes: &Changes) -> Result<Option<String>, String> {
        let git = Git::find(&self.options.environment)?;
        git.remove_branch(changes).await?;
        git.kept_by(changes).await
    }
}
