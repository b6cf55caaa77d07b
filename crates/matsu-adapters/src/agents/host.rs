//! The command lines of this machine, as the port wants them: definitions, rules, and starting a run.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use matsu_core::clock::Clock;
use matsu_core::error_code::ErrorCode;
use matsu_core::job::Lease;
use matsu_core::ports::agent::{
    Agent, AgentHost, BrokenDefinition, CheckedRun, LiveRun, Login, LoginCheck, Probe, RefusedParam, RunEvent,
    RunOrder, RunRefusal, RunWish, Say, StartError, Supports,
};
use matsu_core::run::{Changes, Confinement, Isolation, Mode};

use super::check::{self, Rules};
use super::command_line::{self, Facts};
use super::confinement::{ConfineOptions, Confined, Confiner, Run};
use super::definition::{Definition, PromptWay, StopSignal};
use super::live::{CliRun, Parts};
use super::place::Place;
use super::registry::Registry;
use super::runs_folder::{self, RunFolder, RunsFolder};
use super::shim::order::{EndWord, Order, RunSocket, Stdin, Word};
use super::worktree::{Git, Worktree};
use super::{decoders, environment, git_paths, orphans, probe, process};

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
}

pub struct CliHost {
    options: HostOptions,
    registry: Registry,
    runs: RunsFolder,
    confiner: Confiner,
}

/// Where a run really is.
struct Ground {
    directory: PathBuf,
    worktree: Option<Worktree>,
    place: Place,
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
        let confiner = Confiner::new(options.confine.clone(), &options.data_dir, &options.matsu, &options.environment);
        Self { registry, runs, confiner, options }
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

    fn describe(&self, definition: &Definition) -> Agent {
        let modes: Vec<Mode> =
            definition.mode_list().into_iter().filter(|mode| *mode <= self.options.mode_max).collect();
        let confinement = self.confiner.level(modes.first().copied().unwrap_or(Mode::ReadOnly)).ok();
        let takes_answers = modes.iter().any(|mode| definition.listens(*mode));
        Agent {
            name: definition.name.clone(),
            command: definition.command.replace(THIS_PROGRAM, "matsu"),
            mode: modes.first().copied().unwrap_or(Mode::ReadOnly),
            confinement,
            not_covered: confinement.map(|level| self.confiner.not_covered(level, definition)).unwrap_or_default(),
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

    /// Where it runs: where the conversation was, in a fresh worktree, in its directory, or nowhere in particular.
    async fn ground(&self, order: &RunOrder) -> Result<Ground, StartError> {
        let earlier: Option<Place> =
            order.resume.as_ref().and_then(|resume| serde_json::from_str(resume.place.as_deref()?).ok());
        let usage = earlier.as_ref().and_then(|place| place.usage);
        let wished = order.input.directory.as_ref().map(PathBuf::from);
        let job = order.lease.job_id.as_str();
        match (order.input.isolation, wished) {
            (Isolation::Worktree, Some(wished)) => {
                let path = earlier.as_ref().and_then(|place| place.worktree.clone());
                let path = path.unwrap_or_else(|| self.options.data_dir.join("worktrees").join(job));
                let branch = earlier.and_then(|place| place.branch).unwrap_or_else(|| format!("matsu/{job}"));
                let worktree = self.open_worktree(&wished, &path, &branch).await?;
                let place = Place {
                    directory: worktree.directory.clone(),
                    worktree: Some(path),
                    branch: Some(worktree.branch.clone()),
                    usage,
                };
                Ok(Ground { directory: worktree.directory.clone(), place, worktree: Some(worktree) })
            }
            (_, wished) => {
                let scratch = || self.options.data_dir.join("scratch").join(job);
                let is_scratch = wished.is_none();
                let directory = wished.or(earlier.map(|place| place.directory)).unwrap_or_else(scratch);
                if is_scratch {
                    runs_folder::make_private(&directory).map_err(|error| cannot(&error.to_string()))?;
                }
                let place = Place { directory: directory.clone(), worktree: None, branch: None, usage };
                Ok(Ground { directory, worktree: None, place })
            }
        }
    }

    async fn open_worktree(&self, directory: &Path, path: &Path, branch: &str) -> Result<Worktree, StartError> {
        let git = Git::find(&self.options.environment).ok_or_else(|| cannot("git is not installed"))?;
        if let Some(folder) = path.parent() {
            runs_folder::make_private(folder).map_err(|error| cannot(&error.to_string()))?;
        }
        git.open(directory, path, branch).await.map_err(|error| cannot(&error))
    }

    fn confine(
        &self,
        definition: &Definition,
        order: &RunOrder,
        ground: &Ground,
        folder: &RunFolder,
        (program, session): (&Path, Option<&str>),
    ) -> Result<Confined, StartError> {
        let own = ground.worktree.iter().flat_map(|worktree| [worktree.path.clone(), worktree.common.clone()]);
        let run = Run {
            definition,
            login: self.login(definition),
            home: &self.home(definition),
            program,
            mode: order.input.mode,
            directory: &ground.directory,
            own: if order.input.mode.writes() { own.collect() } else { Vec::new() },
            protected: if order.input.mode.writes() && ground.worktree.is_none() {
                git_paths::protected_git_paths(&ground.directory)
            } else {
                Vec::new()
            },
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
            level: confined.level,
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
            socket: Some(RunSocket { folder: inside, daemon: self.options.socket.clone() }),
            stop_signal: match definition.stop_signal {
                StopSignal::Term => EndWord::Term,
                StopSignal::Int => EndWord::Int,
            },
        };
        Ok((shim, chosen, confined.level))
    }
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

fn cannot(why: &str) -> StartError {
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
        let not_covered = self.confiner.not_covered(level, definition);
        Ok(CheckedRun { confinement: Some(level), not_covered, ..checked })
    }

    async fn probe(&self, agent: &str, login: LoginCheck) -> Probe {
        let Some(definition) = self.find(agent) else { return Probe::default() };
        let Some(program) = self.program(definition) else { return Probe::default() };
        let env = environment::inherited(definition, &self.options.environment);
        probe::probe(definition, &program, &env, login).await
    }

    async fn start(&self, order: RunOrder) -> Result<Box<dyn LiveRun>, StartError> {
        let definition = self.find(&order.input.agent).cloned();
        let definition =
            definition.ok_or_else(|| cannot(&format!("there is no agent {} any more", order.input.agent)))?;
        let folder = self.runs.make(&order.lease).map_err(|error| cannot(&error.to_string()))?;
        let ground = self.ground(&order).await?;
        let (shim_order, chosen, level) = self.order(&definition, &order, &ground, &folder)?;
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

    async fn diff(&self, changes: &Changes) -> Result<String, String> {
        let git = Git::find(&self.options.environment).ok_or("git is not installed")?;
        git.diff(changes).await
    }

    async fn apply(&self, changes: &Changes) -> Result<(), String> {
        let git = Git::find(&self.options.environment).ok_or("git is not installed")?;
        git.apply(changes).await
    }
}
