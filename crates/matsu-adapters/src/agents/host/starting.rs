//! Starting a run: its files, its order, its record, its supervisor.

use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;

use matsu_core::confinement::Confinement;
use matsu_core::error_code::ErrorCode;
use matsu_core::ports::agent::{Login, PromptKind, RunEvent, RunOrder, StartError};
use matsu_core::secret;
use tokio::net::UnixStream;

use super::super::command_line::{self, Facts};
use super::super::confinement::{Confined, Run};
use super::super::definition::{Definition, PromptWay, StopSignal};
use super::super::ground::Ground;
use super::super::live::{CliRun, Parts};
use super::super::runs_folder::{self, RunFolder, RunRecord};
use super::super::shim::order::{EndWord, Order, RunSocket, Stdin};
use super::super::supervisor::order as orders;
use super::super::worktree::Worktree;
use super::super::{decoders, git_paths, process};
use super::preparing::Preparing;
use super::{CliHost, cannot, not_installed, uuid};

/// The way to a supervisor.
#[derive(Default)]
pub struct Way {
    /// Absent: it is gone.
    pub control: Option<UnixStream>,
    /// How long its program has run by now.
    pub ran_seconds: u32,
}

impl CliHost {
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
            git_paths::protected_git_paths(&ground.directory, self.confiner.layout()).map_err(|why| cannot(&why))?
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

    async fn prepare_worktree(&self, order: &RunOrder, worktree: &mut Worktree) -> Result<(), String> {
        let preparing = Preparing {
            setup: &order.input.tree,
            from: worktree.repository(),
            tree: &worktree.path,
            borrowed: &worktree.borrowed(),
            marker: order.run_id.as_str(),
            is_users: worktree.is_users(),
        };
        self.prepare(&preparing).await?;
        worktree.set_prepared().await
    }

    /// Prepares everything, then starts the supervisor. From then on the run is found by its record.
    pub(super) async fn start_in(
        &self,
        definition: &Arc<Definition>,
        order: &RunOrder,
        folder: &RunFolder,
    ) -> Result<CliRun, StartError> {
        let error = |error: std::io::Error| cannot(&error.to_string());
        let mut ground = Ground::find(&self.options, &self.confiner, order, order.run_id.as_str()).await?;
        if let Some(worktree) = ground.worktree.as_mut().filter(|worktree| !worktree.is_prepared())
            && let Err(error) = self.prepare_worktree(order, worktree).await
        {
            ground.leave().await;
            return Err(cannot(&error));
        }
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
        let supervision = orders::Supervision {
            version: orders::VERSION,
            order: shim_order,
            first_input: spoken.map(|prompt| format!("{prompt}\n")),
            secret: run_secret.clone(),
            attempt: order.lease.attempt,
            seconds_max: Some(order.input.timeout_seconds),
            stall_seconds: order.input.stall_seconds,
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
            check: None,
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
    pub(in crate::agents) fn follow(
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

/// What a program reads first that begins again on another machine, before its message.
const ELSEWHERE: &str = "This work was started on another machine, which has not come back. You start it again here, in \
                         a new conversation. Changes that had not reached the branch of the run are missing.";

fn prompt<'a>(definition: &'a Definition, order: &'a RunOrder) -> Cow<'a, str> {
    match order.say {
        PromptKind::Message => Cow::Borrowed(&order.input.message),
        PromptKind::GoOn => Cow::Borrowed(&definition.go_on),
        PromptKind::BeginElsewhere => Cow::Owned(format!("{ELSEWHERE}\n\n{}", order.input.message)),
        PromptKind::Feedback => Cow::Borrowed(order.feedback.as_deref().unwrap_or(&definition.go_on)),
        PromptKind::GoOnAfterRestart => Cow::Owned(format!("{RESTARTED} {}", definition.go_on)),
    }
}
