//! The command lines of this machine, as the port wants them: definitions, rules, and starting a run.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use matsu_core::clock::Clock;
use matsu_core::error_code::ErrorCode;
use matsu_core::job::Lease;
use matsu_core::ports::agent::{
    Agent, AgentHost, BrokenDefinition, CheckedRun, LiveRun, Login, MachineConfinement, Probe, ProbeDepth,
    RefusedParam, RunEvent, RunOrder, RunRefusal, RunWish, Say, StartError, Supports,
};
use matsu_core::run::{Changes, Confinement, Mode};

use super::check::{self, Rules};
use super::command_line::{self, Facts};
use super::confinement::{ConfineOptions, Confined, Confiner, Run};
use super::definition::{Definition, PromptWay, StopSignal};
use super::git::Git;
use super::ground::Ground;
use super::live::{CliRun, Parts};
use super::probe::Asked;
use super::registry::Registry;
use super::runs_folder::{self, RunFolder, RunsFolder};
use super::shim::order::{EndWord, Order, RunSocket, Stdin, Word};
use super::worktree::Worktree;
use super::{decoders, environment, git, git_paths, orphans, probe, process};

/// What a definition calls Matsu itself, wherever it is installed.
const THIS_PROGRAM: &str = "{matsu}";

/// What a host is told about its machine.
#[derive(Clone, Debug)]
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
    /// The largest bundle that is taken over from a run.
    pub bundle_bytes_max: u64,
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
        let registry = Registry::load(options.definitions.as_deref());
        let runs = RunsFolder::new(&options.data_dir);
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
        let marker = marker(&order.lease);
        let session = order.resume.as_ref().map(|resume| resume.vendor_session.as_str()).or(chosen.as_deref());
        let confined = self.confine(definition, order, ground, folder, (&program, session))?;
        let inside = folder.inside();
        let line = command_line::build(&Facts {
            definition,
            input: &order.input,
            prompt: prompt(definition, order),
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
            lock: self.runs.lock(&order.lease),
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

fn prompt<'a>(definition: &'a Definition, order: &'a RunOrder) -> &'a str {
    match order.say {
        Say::Message => &order.input.message,
        Say::GoOn => &definition.go_on,
    }
}

fn marker(lease: &Lease) -> String {
    format!("{}.{}", lease.job_id, lease.attempt)
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
        let folder = self.runs.make(&order.lease).map_err(|error| cannot(&error.to_string()))?;
        let ground = Ground::find(&self.options, &self.confiner, &order, &marker(&order.lease)).await?;
        let (shim_order, chosen, level) = match self.order(&definition, &order, &ground, &folder) {
            Ok(made) => made,
            Err(error) => {
                ground.leave().await;
                return Err(error);
            }
        };
        let shim = process::start_shim((command_line::MARKER, &marker(&order.lease)))
            .map_err(|error| cannot(&error.to_string()))?;
        let decoder = decoders::of(&definition.output).flatten().map(|make| make());
        let listens = definition.prompt == PromptWay::Stdin && definition.listens(order.input.mode);
        let spoken = decoder.as_ref().filter(|_| listens).map(|decoder| decoder.prompt(prompt(&definition, &order)));
        let mut run = CliRun::new(Parts {
            definition: Arc::clone(&definition),
            clock: self.options.clock,
            place: ground.place,
            level,
            marker: marker(&order.lease),
            worktree: ground.worktree,
            folder,
            shim,
            decoder,
        });
        run.order(&shim_order).await;
        if let Some(prompt) = spoken {
            run.say(&Word::Input { text: format!("{prompt}\n") }).await;
        }
        // A program of plain text never names its conversation.
        if let (Some(session), false) = (chosen, definition.streams()) {
            run.first(RunEvent::Session(session));
        }
        Ok(Box::new(run))
    }

    fn live_runs(&self) -> Vec<Lease> {
        let (mut live, left) = self.runs.held_and_left();
        let ended = orphans::end_unheld(&left.iter().map(marker).collect::<Vec<_>>());
        live.extend(left.into_iter().zip(ended).filter(|(_, had_some)| *had_some).map(|(lease, _)| lease));
        live
    }

    async fn diff(&self, changes: &Changes) -> Result<Vec<u8>, String> {
        Git::find(&self.options.environment)?.diff(&self.scratch(), changes).await
    }

    async fn apply(&self, changes: &Changes) -> Result<(), String> {
        Git::find(&self.options.environment)?.apply(&self.scratch(), changes).await
    }
}
