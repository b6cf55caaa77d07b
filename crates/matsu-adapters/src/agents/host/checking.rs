//! Starting the check of what a run has left: a fresh checkout in a folder of its own, confined, without logins and
//! without a way to the daemon, under a supervisor of its own.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use matsu_core::confinement::Confinement;
use matsu_core::error_code::ErrorCode;
use matsu_core::id::{RunId, SessionId};
use matsu_core::job::Lease;
use matsu_core::ports::agent::{CheckOrder, StartError, StartedCheck};
use matsu_core::receipt::{CheckFacts, CheckNetwork};
use matsu_core::secret;

use super::super::adoption;
use super::super::command_line;
use super::super::confined::Cell;
use super::super::confinement::Confined;
use super::super::definition::Definition;
use super::super::environment;
use super::super::git::{Git, SCRATCH};
use super::super::place::Place;
use super::super::process;
use super::super::runs_folder::{self, RunFolder, RunRecord};
use super::super::sandbox::reach::Folders;
use super::super::sandbox::view::Network;
use super::super::shim::order::{EndWord, Order, Stdin};
use super::super::supervisor::order as orders;
use super::super::worktree::Fresh;
use super::CliHost;
use super::preparing::Preparing;
use super::starting::Way;
use crate::agents::removal::remove_folder;

/// Both streams of a check are one log, in the order in which they were written.
const ONE_STREAM: &str = "exec 2>&1; exec \"$@\"";

/// Prints what was done to protected files, and their names, and fails.
const PROTECTED: &str = "printf '%s\\n' \"$@\"; exit 1";

fn cannot(why: &str) -> StartError {
    StartError { code: ErrorCode::AgentStartFailed, message: why.to_owned() }
}

fn network_of(wished: bool, level: Confinement) -> CheckNetwork {
    match (wished, level) {
        (true, _) => CheckNetwork::On,
        (false, Confinement::Sealed) => CheckNetwork::Off,
        (false, _) => CheckNetwork::NotCut,
    }
}

/// How a check is read: as a program that prints text.
pub fn check_definition() -> Option<Arc<Definition>> {
    static DEFINITION: OnceLock<Option<Arc<Definition>>> = OnceLock::new();
    let make = || {
        let text = "name = \"check\"\ncommand = \"/bin/sh\"\nprompt = \"argument\"\noutput = \"text\"\n";
        Definition::parse(text, |_| None).ok().map(Arc::new)
    };
    DEFINITION.get_or_init(make).clone()
}

impl CliHost {
    pub(super) async fn start_check_in(
        &self,
        order: &CheckOrder,
        folder: &RunFolder,
    ) -> Result<StartedCheck, StartError> {
        let io_error = |error: std::io::Error| cannot(&error.to_string());
        let definition = check_definition().ok_or_else(|| cannot("the definition of checks cannot be read"))?;
        let fresh = self.fresh(order, folder).await.map_err(|error| cannot(&error))?;
        let network = if order.check.network { Network::Shared } else { Network::None };
        let preparing = Preparing {
            setup: &order.tree,
            from: Path::new(&order.changes.repository),
            tree: &folder.tree(),
            borrowed: &fresh.borrowed,
            marker: order.run_id.as_str(),
            is_users: false,
        };
        self.prepare(&preparing).await.map_err(|error| cannot(&error))?;
        let changed_by_setup = self.changed_by_setup(order, &fresh, folder).await.map_err(|error| cannot(&error))?;
        let folders = Folders { root: folder.root(), tmp: folder.tmp(), home: folder.home() };
        let confined = self.confiner.check(&folders, &folder.tree(), &fresh.borrowed, &[], network);
        let confined = confined.map_err(|error| cannot(&error))?;
        let level = confined.level;
        let facts = CheckFacts {
            changed_tests: fresh.changed_tests(),
            changed_protected: fresh.changed_protected(&order.check.protect),
            changed_by_setup,
            tree: fresh.tree,
            confinement: level,
            network: network_of(order.check.network, level),
            started_at: self.options.clock.now().as_millis(),
        };
        let run_secret = secret::mint();
        let supervision = orders::Supervision {
            version: orders::VERSION,
            order: self.check_order(order, &facts, &fresh.directory, folder, confined),
            first_input: None,
            secret: run_secret.clone(),
            attempt: order.lease.attempt,
            seconds_max: Some(order.check.timeout_seconds),
            stall_seconds: None,
            ends_with_daemon: !order.outlives,
            restart: self.options.restart.clone().filter(|_| order.outlives),
        };
        let text = serde_json::to_string(&supervision).map_err(|error| cannot(&error.to_string()))?;
        runs_folder::write_private(&folder.order(), &text).map_err(io_error)?;
        let record = RunRecord {
            run_id: order.run_id.clone(),
            store: self.options.store.clone(),
            job_id: order.lease.job_id.clone(),
            attempt: order.lease.attempt,
            session_id: SessionId::from_text(""),
            agent: definition.name.clone(),
            level,
            place: Place::plain(fresh.directory),
            usage_before: None,
            chosen_session: None,
            resumed_session: None,
            token: String::new(),
            socket_key: String::new(),
            secret: run_secret,
            boot_id: self.boot_id(),
            check: Some(facts.clone()),
        };
        let lock = folder.lock().map_err(io_error)?;
        folder.write_record(&record).map_err(io_error)?;
        let mark = (command_line::MARKER, record.run_id.as_str());
        let control = process::start_supervisor(mark, folder.path(), lock).map_err(io_error)?;
        let way = Way { control: Some(control), ran_seconds: 0 };
        let live = Box::new(self.follow(&definition, record, folder.clone(), None, way));
        Ok(StartedCheck { live, facts })
    }

    async fn fresh(&self, order: &CheckOrder, folder: &RunFolder) -> Result<Fresh, String> {
        let git = Git::find(&self.options.environment)?;
        let cell = self.check_cell(order)?;
        let fresh = git.fresh(&cell, &order.changes, &folder.tree()).await;
        let _ = remove_folder(&cell.scratch);
        fresh
    }

    /// Setup runs what the run has written, so it can change what the check shall rely on.
    async fn changed_by_setup(
        &self,
        order: &CheckOrder,
        fresh: &Fresh,
        folder: &RunFolder,
    ) -> Result<Vec<String>, String> {
        if order.tree.setup.is_none() || order.check.protect.is_empty() {
            return Ok(Vec::new());
        }
        let git = Git::find(&self.options.environment)?;
        let cell = self.check_cell(order)?;
        let altered = git.altered(&cell, fresh, &folder.tree(), &order.check.protect).await;
        let _ = remove_folder(&cell.scratch);
        altered.map_err(|error| format!("the protected files cannot be compared after setup: {error}"))
    }

    fn check_cell(&self, order: &CheckOrder) -> Result<Cell, String> {
        let scratch = self.options.data_dir.join(SCRATCH).join(order.run_id.as_str());
        runs_folder::make_private(&scratch).map_err(|error| error.to_string())?;
        Ok(Cell { confiner: Arc::clone(&self.confiner), marker: order.run_id.to_string(), scratch })
    }

    /// Where protected files were changed, the command proves nothing: instead of it their names are printed.
    fn check_order(
        &self,
        order: &CheckOrder,
        facts: &CheckFacts,
        directory: &Path,
        folder: &RunFolder,
        confined: Confined,
    ) -> Order {
        let shell = |script: &str| ["-c", script, "sh"].map(str::to_owned).to_vec();
        let refused = |why: &str, names: &[String]| {
            let mut args = shell(PROTECTED);
            args.push(why.to_owned());
            args.extend_from_slice(names);
            args
        };
        let args = match (facts.changed_protected.as_slice(), facts.changed_by_setup.as_slice()) {
            ([], []) => shell(ONE_STREAM).into_iter().chain(order.check.command.words()).collect(),
            ([], names) => refused("Setup changed protected files:", names),
            (names, _) => refused("The run changed protected files:", names),
        };
        let mut env: BTreeMap<String, String> = environment::plain(&self.options.environment);
        env.extend(confined.env);
        Order {
            program: "/bin/sh".into(),
            args,
            env,
            directory: directory.to_owned(),
            stdin: Stdin::Nothing,
            lock: folder.outside().join("unused"),
            sandbox: confined.sandbox,
            keep: confined.keep,
            socket: None,
            stop_signal: EndWord::Term,
        }
    }

    pub(super) async fn follow_check(&self, lease: &Lease, run: &RunId) -> Result<StartedCheck, StartError> {
        let found = self.runs.of_job(&lease.job_id).into_iter().find(|(_, record)| record.run_id == *run);
        let facts = found.and_then(|(_, record)| record.check.clone());
        let facts = facts.ok_or_else(|| cannot(&format!("run {run} is no check")))?;
        let live = Box::new(adoption::adopt(self, lease, run, 0).await?);
        Ok(StartedCheck { live, facts })
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_check_can_be_described() {
        assert!(super::check_definition().is_some_and(|definition| !definition.streams()));
    }
}
