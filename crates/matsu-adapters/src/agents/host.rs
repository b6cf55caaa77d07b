//! The command lines of this machine, as the port wants them: definitions, rules, and starting a run.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use matsu_core::clock::Clock;
use matsu_core::error_code::ErrorCode;
use matsu_core::id::{JobId, RunId};
use matsu_core::job::Lease;
use matsu_core::ports::agent::{
    Agent, AgentHost, BrokenDefinition, CheckedRun, LiveRun, Login, MachineConfinement, Probe, ProbeDepth,
    RefusedParam, RunEvent, RunOrder, RunRefusal, RunTrace, RunWish, Say, StartError, Supports, TraceState,
};
use matsu_core::run::{Changes, Confinement, Mode};
use matsu_core::secret::{self, Token};

use super::check::{self, Rules};
use super::command_line::{self, Facts};
use super::confinement::{ConfineOptions, Confined, Confiner, Run};
use super::definition::{Definition, PromptWay, StopSignal};
use super::git::Git;
use super::ground::Ground;
use super::live::{CliRun, Parts};
use super::probe::Asked;
use super::registry::Registry;
use super::runs_folder::{self, RunFolder, RunRecord, RunsFolder};
use super::shim::order::{EndWord, Order, RunSocket, Stdin};
use super::supervisor::exit_record::ExitRecord;
use super::supervisor::order::{self as orders, Restart};
use super::worktree::Worktree;
use super::{adoption, decoders, environment, git, git_paths, orphans, probe, process};
use tokio::net::UnixStream;

/// What a definition calls Matsu itself, wherever it is installed.
const THIS_PROGRAM: &str = "{matsu}";

/// Set by a test that plays a restart of the machine.
const BOOT_ID: &str = "MATSU_TEST_BOOT_ID";

/// What a host is told about its machine.
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
    /// Runs are answers of a model: they are not told the way back to Matsu, and belong to no task.
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
        let mut registry = Registry::load(options.definitions.as_deref());
        if options.is_for_models {
            registry.drop_ways_back();
        }
        let runs = RunsFolder::new(&options.data_dir, &options.store);
        runs.sweep();
        git::sweep_scratch(&options.data_dir);
        let confiner = Confiner::new(options.confine.clone(), &options.data_dir, &options.matsu, &options.environment);
        Self { registry, runs, confiner: Arc::new(confiner), options }
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

    /// A folder for one call of git.
    fn scratch(&self) -> PathBuf {
        self.options.data_dir.join(git::SCRATCH).join(uuid())
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
            delivery: definition.delivery,
            connect_back: definition.connect_back(),
        }
    }

    fn confine(
        &self,
        definition: &Definition,
        order: &RunOrder,
        ground: &Ground,
        folder: &RunFolder,
        (program, session): (&Path, Option<&str>),
    ) -> Result<Confined, StartError> {
        let writes = order.input.mode.writes();
        let borrowed = ground.worktree.iter().flat_map(Worktree::borrowed);
        let protected = if writes && ground.worktree.is_none() {
            git_paths::protected_git_paths(&ground.directory)
        } else {
            Vec::new()
        };
        let run = Run {
            definition,
            login: self.login(definition),
            home: &self.home(definition),
            program,
            mode: order.input.mode,
            directory: &ground.directory,
            own: ground.worktree.iter().filter(|_| writes).map(|worktree| worktree.path.clone()).collect(),
            protected: protected.into_iter().chain(borrowed).collect(),
            folder,
            session,
        };
        self.confiner.confine(&run).map_err(|message| StartError {
            code: ErrorCode::ConfinementUnavailable,
            message: format!("the run was not started: {message}"),
        })
    }

    /// Writes the run's files and makes the order for its shim.
    fn order(
        &self,
        definition: &Definition,
        order: &RunOrder,
        ground: &Ground,
        folder: &RunFolder,
    ) -> Result<(Order, Option<String>, Confinement), StartError> {
        let program = self.program(definition).ok_or_else(|| not_installed(definition))?;
        let login = self.login(definition);
        let home = self.home(definition);
        if login == Login::Key {
            runs_folder::make_private(&home).map_err(|error| cannot(&error.to_string()))?;
        }
        let chosen =
            definition.session.as_ref().filter(|session| session.choose && order.resume.is_none()).map(|_| uuid());
        let marker = order.run_id.to_string();
        let session = order.resume.as_ref().map(|resume| resume.vendor_session.as_str()).or(chosen.as_deref());
        let confined = self.confine(definition, order, ground, folder, (&program, session))?;
        let inside = folder.inside();
        let line = command_line::build(&Facts {
            definition,
            input: &order.input,
            prompt: &prompt(definition, order),
            resume: order.resume.as_ref(),
            chosen_session: chosen.as_deref(),
            directory: &ground.directory,
            run: &inside,
            home: &home,
            data_dir: &confined.data_dir,
            matsu: &self.options.matsu,
            login,
            can_nest: self.confiner.can_nest(confined.level),
            own: &self.options.environment,
            token: &order.token,
            marker: &marker,
        });
        for (path, text) in &line.files {
            runs_folder::write_private(path, text).map_err(|error| cannot(&error.to_string()))?;
        }
        let mut env = line.env;
        env.extend(confined.env);
        let shim = Order {
            program,
            args: line.args,
            env,
            directory: ground.directory.clone(),
            stdin: stdin(definition, order, &inside),
            lock: folder.outside().join("unused"),
            sandbox: confined.sandbox,
            keep: confined.keep,
            socket: Some(RunSocket {
                folder: inside,
                daemon: self.options.socket.clone(),
                introduction: introduction(order),
            }),
            stop_signal: match definition.stop_signal {
                StopSignal::Term => EndWord::Term,
                StopSignal::Int => EndWord::Int,
            },
        };
        Ok((shim, chosen, confined.level))
    }
}

/// The way to a supervisor.
#[derive(Default)]
pub struct Way {
    /// Absent: it is gone.
    pub control: Option<UnixStream>,
    /// How long its program has run by now.
    pub ran_seconds: u32,
}

impl CliHost {
    /// Prepares everything, then starts the supervisor. From then on the run is found by its record.
    async fn start_in(
        &self,
        definition: &Arc<Definition>,
        order: &RunOrder,
        folder: &RunFolder,
    ) -> Result<CliRun, StartError> {
        let error = |error: std::io::Error| cannot(&error.to_string());
        let ground = Ground::find(&self.options, &self.confiner, order, order.run_id.as_str()).await?;
        let (shim_order, chosen, level) = match self.order(definition, order, &ground, folder) {
            Ok(made) => made,
            Err(error) => {
                ground.leave().await;
                return Err(error);
            }
        };
        let decoder = decoders::of(&definition.output).flatten().map(|make| make());
        let listens = definition.prompt == PromptWay::Stdin && definition.listens(order.input.mode);
        let spoken = decoder.as_ref().filter(|_| listens).map(|decoder| decoder.prompt(&prompt(definition, order)));
        let run_secret = secret::mint();
        let supervision = orders::RunOrder {
            version: orders::VERSION,
            order: shim_order,
            first_input: spoken.map(|prompt| format!("{prompt}\n")),
            secret: run_secret.clone(),
            attempt: order.lease.attempt,
            seconds_max: Some(order.input.timeout_seconds),
            ends_with_daemon: !order.outlives,
            restart: self.options.restart.clone().filter(|_| order.outlives),
        };
        let text = serde_json::to_string(&supervision).map_err(|error| cannot(&error.to_string()))?;
        runs_folder::write_private(&folder.order(), &text).map_err(error)?;
        let record = RunRecord {
            run_id: order.run_id.clone(),
            store: self.options.store.clone(),
            job_id: order.lease.job_id.clone(),
            attempt: order.lease.attempt,
            session_id: order.session_id.clone(),
            agent: definition.name.clone(),
            level,
            place: ground.place.clone(),
            usage_before: ground.place.usage,
            chosen_session: chosen,
            resumed_session: order.resume.as_ref().map(|resume| resume.vendor_session.clone()),
            token: order.token.reveal().to_string(),
            socket_key: order.socket_key.reveal().to_string(),
            secret: run_secret,
            boot_id: self.boot_id(),
        };
        // Locked before it can be found, so that it is never taken for one whose supervisor is gone.
        let lock = folder.lock().map_err(error)?;
        folder.write_record(&record).map_err(error)?;
        let mark = (command_line::MARKER, record.run_id.as_str());
        let control = process::start_supervisor(mark, folder.path(), lock).map_err(error)?;
        let way = Way { control: Some(control), ran_seconds: 0 };
        Ok(self.follow(definition, record, folder.clone(), ground.worktree, way))
    }

    /// A run as its record has it, from the beginning of its output.
    pub(super) fn follow(
        &self,
        definition: &Arc<Definition>,
        record: RunRecord,
        folder: RunFolder,
        worktree: Option<Worktree>,
        way: Way,
    ) -> CliRun {
        let is_old_boot = record.boot_id != self.boot_id();
        let mut run = CliRun::new(Parts {
            definition: Arc::clone(definition),
            clock: self.options.clock,
            place: record.place,
            usage_before: record.usage_before,
            level: record.level,
            marker: record.run_id.to_string(),
            worktree,
            folder,
            control: way.control,
            ran_seconds: way.ran_seconds,
            is_old_boot,
            decoder: decoders::of(&definition.output).flatten().map(|make| make()),
        });
        // A program of plain text never names its conversation.
        if let (Some(session), false) = (record.chosen_session, definition.streams()) {
            run.first(RunEvent::Session(session));
        }
        run
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
        if let Some(said) = self.options.environment.get(BOOT_ID) {
            return said.clone();
        }
        std::fs::read_to_string("/proc/sys/kernel/random/boot_id").map_or(String::new(), |id| id.trim().to_owned())
    }

    fn state_of(&self, folder: &RunFolder, record: &RunRecord) -> TraceState {
        // In this order: a supervisor writes its record before it lets go of the lock.
        if folder.is_held() {
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

/// What the supervisor sends to the daemon before anything else on a connection from inside the run.
fn introduction(order: &RunOrder) -> String {
    let (run, key) = (order.run_id.as_str(), order.socket_key.reveal().to_string());
    format!("{}\n", serde_json::json!({ "matsu_run": run, "key": key }))
}

fn stdin(definition: &Definition, order: &RunOrder, inside: &Path) -> Stdin {
    match definition.prompt {
        // A program that can be answered reads for as long as it runs.
        _ if definition.listens(order.input.mode) => Stdin::Pipe,
        PromptWay::Stdin => Stdin::File(inside.join("prompt")),
        PromptWay::File | PromptWay::Argument => Stdin::Nothing,
    }
}

/// What a resumed program reads after a restart of the machine, before the definition's own words.
const RESTARTED: &str =
    "The machine was restarted while you worked, and you were interrupted. Check what is done already.";

fn prompt<'a>(definition: &'a Definition, order: &'a RunOrder) -> Cow<'a, str> {
    match order.say {
        Say::Message => Cow::Borrowed(&order.input.message),
        Say::GoOn => Cow::Borrowed(&definition.go_on),
        Say::GoOnAfterRestart => Cow::Owned(format!("{RESTARTED} {}", definition.go_on)),
    }
}

pub fn cannot(why: &str) -> StartError {
    StartError { code: ErrorCode::AgentStartFailed, message: format!("the run could not be started: {why}") }
}

fn not_installed(definition: &Definition) -> StartError {
    let message = if definition.command == THIS_PROGRAM {
        format!("{} has no model to ask; configure one (see providers in the configuration)", definition.name)
    } else {
        format!("{} is not installed: {} was not found", definition.name, definition.command)
    };
    StartError { code: ErrorCode::AgentNotInstalled, message }
}

/// A random one, as the programs want it.
fn uuid() -> String {
    let mut bytes = [0_u8; 16];
    // Guessed by nobody who could not read it anyway; but two must not be the same.
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
        let Some(definition) = self.find(&wish.agent) else {
            let names = self.registry.definitions.keys().cloned().collect::<Vec<_>>().join(", ");
            let message = format!("there is no agent {}; there are {names}", wish.agent);
            let received = matsu_core::job::end::clip(&wish.agent, 80);
            let param = RefusedParam { name: "cli_name".to_owned(), expected: names, received };
            return Err(RunRefusal { code: ErrorCode::AgentNotFound, message, param: Some(param) });
        };
        if self.program(definition).is_none() {
            let StartError { code, message } = not_installed(definition);
            return Err(RunRefusal { code, message, param: None });
        }
        let checked =
            check::check(definition, &Rules { roots: &self.options.roots, mode_max: self.options.mode_max }, wish)?;
        let directory = checked.input.directory.as_deref().map(Path::new);
        let level = self.confiner.admit(checked.input.mode, directory).map_err(|message| RunRefusal {
            code: ErrorCode::ConfinementUnavailable,
            message,
            param: None,
        })?;
        let not_covered = self.confiner.not_covered(level, Some(definition));
        Ok(CheckedRun { confinement: Some(level), not_covered, ..checked })
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

    fn trace(&self, job: &JobId) -> Option<RunTrace> {
        let (folder, record) = self.runs.of_job(job).into_iter().next()?;
        Some(RunTrace {
            state: self.state_of(&folder, &record),
            run_id: record.run_id,
            attempt: record.attempt,
            session_id: record.session_id,
            token: Token::new(&record.token),
            socket_key: Token::new(&record.socket_key),
            resumed_session: record.resumed_session,
        })
    }

    async fn adopt(&self, lease: &Lease, run: &RunId, stored: u64) -> Result<Box<dyn LiveRun>, StartError> {
        adoption::adopt(self, lease, run, stored).await.map(|run| -> Box<dyn LiveRun> { Box::new(run) })
    }

    fn jobs_with_runs(&self) -> Vec<JobId> {
        self.runs.all().into_iter().map(|(_, record)| record.job_id).collect()
    }

    async fn forget(&self, job: &JobId) {
        for (folder, record) in self.runs.of_job(job) {
            adoption::end(&folder, &record, self.options.clock).await;
            folder.remove();
        }
    }

    async fn give_up(&self, job: &JobId) {
        for (folder, record) in self.runs.of_job(job) {
            adoption::give_up(self, &folder, &record).await;
        }
    }

    async fn diff(&self, changes: &Changes) -> Result<Vec<u8>, String> {
        Git::find(&self.options.environment)?.diff(&self.scratch(), changes).await
    }

    async fn apply(&self, changes: &Changes) -> Result<(), String> {
        Git::find(&self.options.environment)?.apply(&self.scratch(), changes).await
    }
}
