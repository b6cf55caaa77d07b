//! A wish against the definition and the rules of this machine, before anything is stored. Same in every mode.

use matsu_core::error_code::ErrorCode;
use matsu_core::limits::{
    CHECK_COMMAND_BYTES_MAX, CHECK_RETRIES_MAX, PROMPT_ARGUMENT_BYTES_MAX, RUN_SECONDS, RUN_SECONDS_MAX,
    SYSTEM_PROMPT_CHARS_MAX,
};
use matsu_core::ports::agent::{CheckWith, CheckedRun, RefusedParam, RunRefusal, RunWish};
use matsu_core::receipt::{Check, Consent};
use matsu_core::run::{Isolation, Mode, RunInput, TreeBase, TreeSetup};

use std::path::Path;

use super::allowed_args::{self, Bounds};
use super::definition::{Definition, PromptWay};
use super::sandbox::reach::Machine;
use super::{environment, git_paths, places, project_file};

/// Of one variable.
const ENV_BYTES_MAX: usize = 32 * 1024;

/// What the machine allows.
pub struct Rules<'a> {
    pub machine: &'a Machine,
    pub roots: &'a [std::path::PathBuf],
    pub mode_max: Mode,
}

/// The run that may be queued, and the agents that are tried when its own cannot do it.
///
/// # Errors
/// What is refused and why.
pub fn check(
    definition: &Definition,
    rules: &Rules<'_>,
    mut wish: RunWish,
) -> Result<(CheckedRun, Vec<String>), RunRefusal> {
    check_texts(definition, &wish)?;
    check_session(definition, &wish)?;
    if let Some((name, value)) = wish.env.iter().find(|(_, value)| value.contains('\0') || value.len() > ENV_BYTES_MAX)
    {
        let message = format!(
            "env: {name} has {} bytes or contains a zero byte; at most {ENV_BYTES_MAX} bytes without a zero byte are allowed",
            value.len()
        );
        return Err(param("env", "a short text without a zero byte", name, message));
    }
    if let Some((name, why)) = wish.env.keys().find_map(|name| Some((name, environment::refusal(definition, name)?))) {
        return Err(param("env", "names on the agent's allow list", name, why));
    }
    let mode = mode(definition, rules, &wish)?;
    let place = places::resolve(wish.working_directory.as_deref(), &wish.places, rules.roots, rules.machine)?;
    let roots = places::allowed(&wish.places, rules.roots);
    let bounds = Bounds { mode, directory: place.directory.as_deref(), roots: &roots };
    let args = allowed_args(definition, &wish.args, &bounds)?;
    let isolation = isolation(mode, place.directory.as_deref(), &wish)?;
    let (consent, tree) =
        take_project_file(definition, rules, (mode, isolation), place.directory.as_deref(), &mut wish)?;
    let timeout_seconds = check_times(&wish)?;
    if let Some(budget) = wish.budget.filter(|budget| !budget.is_valid()) {
        let expected = "tokens, cost in dollars or both, each more than 0";
        return Err(param(
            "budget",
            expected,
            &serde_json::to_string(&budget).unwrap_or_default(),
            format!("budget must have {expected}"),
        ));
    }
    check_check(definition, mode, isolation, &wish)?;
    let input = RunInput {
        agent: definition.name.clone(),
        message: wish.message,
        system_prompt: wish.system_prompt,
        model: wish.model,
        effort: wish.effort,
        args,
        env: wish.env,
        directory: place.directory.map(|directory| directory.display().to_string()),
        mode,
        isolation,
        timeout_seconds,
        stall_seconds: wish.stall_seconds,
        session: wish.session.unwrap_or_default(),
        resume: wish.resume,
        continues: None,
        presence: wish.presence,
        check: wish.check,
        retries: wish.retries.unwrap_or(0),
        budget: wish.budget,
        resolves: None,
        resolves_on: None,
        tree,
        fallback: Vec::new(),
        consent,
        depends_on: Vec::new(),
        not_before: None,
        verifies: None,
        as_model: wish.as_model,
    };
    let own = (isolation == Isolation::Worktree).then(|| begins_with(&input, rules).to_owned());
    let note = place.note.or(own);
    let fallback = wish.fallback.unwrap_or_default();
    let checked = CheckedRun { input, shown_directory: place.shown, note, confinement: None, not_covered: Vec::new() };
    Ok((checked, fallback))
}

/// What a run in a repository of its own begins with.
fn begins_with(input: &RunInput, rules: &Rules<'_>) -> &'static str {
    let is_runs =
        input.directory.as_deref().is_some_and(|directory| Path::new(directory).starts_with(&rules.machine.data_dir));
    if is_runs {
        "It works on the last commit of this run's tree, in its own repository; uncommitted changes are not included."
    } else if input.tree.base == TreeBase::Head {
        "It starts from your last commit, in its own repository (worktree.base in .matsu.toml); uncommitted changes \
         are not included."
    } else {
        "It starts from your working tree, with uncommitted files, in its own repository; ignored files are not \
         included."
    }
}

fn param(name: &str, expected: &str, received: &str, message: impl Into<String>) -> RunRefusal {
    let received = matsu_core::job::end::clip(received, 80);
    let param = RefusedParam { name: name.to_owned(), expected: expected.to_owned(), received };
    RunRefusal { code: ErrorCode::InvalidParams, message: message.into(), param: Some(param) }
}

/// How long it may take.
fn check_times(wish: &RunWish) -> Result<u32, RunRefusal> {
    let timeout_seconds = wish.timeout_seconds.unwrap_or(RUN_SECONDS);
    if !(1..=RUN_SECONDS_MAX).contains(&timeout_seconds) {
        let expected = format!("integer 1..{RUN_SECONDS_MAX}");
        let message = format!("timeout must be a whole number from 1 to {RUN_SECONDS_MAX}, got {timeout_seconds}");
        return Err(param("timeout", &expected, &timeout_seconds.to_string(), message));
    }
    if let Some(seconds) = wish.stall_seconds.filter(|seconds| !(1..=RUN_SECONDS_MAX).contains(seconds)) {
        let expected = format!("integer 1..{RUN_SECONDS_MAX}");
        let message = format!("stall_timeout must be a whole number from 1 to {RUN_SECONDS_MAX}, got {seconds}");
        return Err(param("stall_timeout", &expected, &seconds.to_string(), message));
    }
    Ok(timeout_seconds)
}

fn check_texts(definition: &Definition, wish: &RunWish) -> Result<(), RunRefusal> {
    let name = &definition.name;
    if wish.message.trim().is_empty() {
        return Err(param("message", "text", "nothing", "message is empty; expected text"));
    }
    let mut bytes_max = definition.prompt_bytes_max.unwrap_or(usize::MAX);
    if definition.prompt == PromptWay::Argument {
        bytes_max = bytes_max.min(PROMPT_ARGUMENT_BYTES_MAX);
    }
    if wish.message.len() > bytes_max {
        let message = format!("message has {} bytes; {name} accepts at most {bytes_max}", wish.message.len());
        return Err(param("message", &format!("at most {bytes_max} bytes"), "a longer text", message));
    }
    if let Some(system) = &wish.system_prompt {
        let chars = system.chars().count();
        if chars > SYSTEM_PROMPT_CHARS_MAX {
            let message =
                format!("system_prompt has {chars} characters; at most {SYSTEM_PROMPT_CHARS_MAX} are allowed");
            return Err(param("system_prompt", "at most 100000 characters", &chars.to_string(), message));
        }
        if definition.system_prompt.is_none() {
            let message = format!("{name} accepts no system prompt; put it into the message");
            return Err(param("system_prompt", "nothing for this agent", "a text", message));
        }
    }
    check_prompt_argument(definition, &wish.message)?;
    // Both end up in an argument.
    let is_word = |text: &str| {
        !text.is_empty() && text.len() <= 200 && !text.starts_with('-') && !text.chars().any(char::is_control)
    };
    if let Some(model) = &wish.model
        && (definition.model.is_none() || !is_word(model))
    {
        return Err(param("model", "the name of a model", model, format!("{name} does not accept this model name")));
    }
    if let Some(effort) = &wish.effort {
        let known = definition.effort.as_ref().map_or(&[][..], |part| part.values.as_slice());
        if !known.contains(effort) {
            let expected = if known.is_empty() { "nothing for this agent".to_owned() } else { known.join(", ") };
            let message = format!("effort for {name} must be {expected}, got {effort}");
            return Err(param("effort", &expected, effort, message));
        }
    }
    Ok(())
}

fn check_session(definition: &Definition, wish: &RunWish) -> Result<(), RunRefusal> {
    let is_name = |name: &str| {
        (1..=128).contains(&name.len())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
    };
    if let Some(session) = &wish.session
        && !is_name(session)
    {
        let expected = "1 to 128 letters, digits, -, _ or .";
        return Err(param("session_id", expected, session, format!("session_id must have {expected}")));
    }
    if wish.resume && definition.session.is_none() {
        let message = format!("{} cannot resume a conversation", definition.name);
        return Err(param("resume", "false for this agent", "true", message));
    }
    if wish.resume && wish.session.is_none() {
        return Err(param(
            "resume",
            "together with session_id",
            "true",
            "resume needs the session_id of a conversation",
        ));
    }
    Ok(())
}

/// What the repository's own file says, as far as the wish does not. It is read from the user's tree and stored with the
/// task, so a run that changes the file changes nothing about its own check.
fn take_project_file(
    definition: &Definition,
    rules: &Rules<'_>,
    (mode, isolation): (Mode, Isolation),
    directory: Option<&std::path::Path>,
    wish: &mut RunWish,
) -> Result<(Option<Consent>, TreeSetup), RunRefusal> {
    let directory = directory.filter(|directory| !directory.starts_with(&rules.machine.data_dir));
    let Some(directory) = directory.filter(|_| mode.writes() && isolation == Isolation::Worktree) else {
        return Ok((None, TreeSetup::default()));
    };
    let found = project_file::read(directory).map_err(|message| RunRefusal {
        code: ErrorCode::InvalidParams,
        message,
        param: None,
    })?;
    let Some(found) = found else { return Ok((None, TreeSetup::default())) };
    let names_check = found.check.is_some() && wish.check.is_none();
    if names_check {
        let CheckWith { timeout_seconds, network } = wish.check_with;
        wish.check = found.check.map(|check| Check {
            timeout_seconds: timeout_seconds.unwrap_or(check.timeout_seconds),
            network: network.unwrap_or(check.network),
            ..check
        });
    }
    let is_used = names_check || !found.tree.is_plain() || found.defaults.is_some();
    if let Some(defaults) = found.defaults {
        wish.timeout_seconds = wish.timeout_seconds.or(defaults.timeout);
        wish.stall_seconds = wish.stall_seconds.or(defaults.stall_timeout);
        wish.budget = wish.budget.or(defaults.budget);
        wish.fallback = wish.fallback.take().or(defaults.fallback);
        // Where they cannot be, the file does not ask for them.
        let retries = defaults.retries.filter(|_| definition.session.is_some() && wish.check.is_some());
        wish.retries = wish.retries.or(retries);
    }
    Ok((is_used.then_some(found.consent), found.tree))
}

/// A check needs a commit of the run's own, and retries need a conversation that goes on.
fn check_check(definition: &Definition, mode: Mode, isolation: Isolation, wish: &RunWish) -> Result<(), RunRefusal> {
    let retries = wish.retries.unwrap_or(0);
    let Some(check) = &wish.check else {
        if retries > 0 {
            let message = "retries needs a check; without a check nothing is tried again";
            return Err(param("retries", "0, or a check together with retries", &retries.to_string(), message));
        }
        if wish.check_with != CheckWith::default() {
            let message = "check has a timeout or network but no command, and this repository has no .matsu.toml with a \
                           check for this run; name the command";
            return Err(param("check", "a command", "none", message));
        }
        return Ok(());
    };
    let shown = check.command.to_string();
    if check.command.is_empty() || shown.contains('\0') || shown.len() > CHECK_COMMAND_BYTES_MAX {
        let expected = format!("a command of 1 to {CHECK_COMMAND_BYTES_MAX} bytes without a zero byte");
        return Err(param("check", &expected, &shown, format!("check must be {expected}")));
    }
    if !(1..=RUN_SECONDS_MAX).contains(&check.timeout_seconds) {
        let expected = format!("integer 1..{RUN_SECONDS_MAX}");
        let (seconds, name) = (check.timeout_seconds.to_string(), "check.timeout");
        let message = format!("{name} must be a whole number from 1 to {RUN_SECONDS_MAX}, got {seconds}");
        return Err(param(name, &expected, &seconds, message));
    }
    if !mode.writes() || isolation != Isolation::Worktree {
        let message = "check needs a run that writes on a separate branch: use mode workspace-write in a git \
                       repository, with isolation worktree";
        return Err(param("check", "mode workspace-write and isolation worktree", &shown, message));
    }
    if retries > CHECK_RETRIES_MAX {
        let message = format!("retries must be a whole number from 0 to {CHECK_RETRIES_MAX}, got {retries}");
        return Err(param("retries", &format!("integer 0..{CHECK_RETRIES_MAX}"), &retries.to_string(), message));
    }
    if retries > 0 && definition.session.is_none() {
        let message =
            format!("{} cannot resume a conversation, so a failed check cannot be sent back to it", definition.name);
        return Err(param("retries", "0 for this agent", &retries.to_string(), message));
    }
    Ok(())
}

/// Flags of the definition and of the mode, with their values.
fn allowed_args(definition: &Definition, args: &[String], bounds: &Bounds<'_>) -> Result<Vec<String>, RunRefusal> {
    let allowed = definition.allowed_args(bounds.mode);
    allowed_args::check(&definition.name, &allowed, args, bounds)
        .map_err(|refused| param("args", &refused.expected, &refused.flag, refused.message))
}

/// A prompt that is an argument must not be read as a flag, and can only be what an argument can.
fn check_prompt_argument(definition: &Definition, message: &str) -> Result<(), RunRefusal> {
    let name = &definition.name;
    if definition.prompt != PromptWay::Argument {
        return Ok(());
    }
    if message.contains('\0') {
        return Err(param(
            "message",
            "text without a zero byte",
            "text with a zero byte",
            "message contains a zero byte",
        ));
    }
    if message.starts_with('-') && !definition.keeps_prompt_apart() {
        let message = format!("message begins with -, which {name} would read as a flag; begin it with a word");
        return Err(param("message", "a text that does not begin with -", "a text that begins with -", message));
    }
    Ok(())
}

fn mode(definition: &Definition, rules: &Rules<'_>, wish: &RunWish) -> Result<Mode, RunRefusal> {
    let ceiling = wish.mode_max.map_or(rules.mode_max, |max| max.min(rules.mode_max));
    let allowed: Vec<Mode> = definition.mode_list().into_iter().filter(|mode| *mode <= ceiling).collect();
    let Some(safest) = allowed.first() else {
        let message = format!("{} has no mode that is allowed here (agents.mode_max)", definition.name);
        return Err(RunRefusal { code: ErrorCode::Forbidden, message, param: None });
    };
    match wish.mode {
        None => Ok(*safest),
        Some(mode) if allowed.contains(&mode) => Ok(mode),
        Some(mode) => {
            let names = allowed.iter().map(|mode| mode.as_str()).collect::<Vec<_>>().join(", ");
            let message =
                format!("mode {mode} is not allowed for {}; allowed are: {names} (agents.mode_max)", definition.name);
            let refusal = param("mode", &names, mode.as_str(), message);
            Err(RunRefusal { code: ErrorCode::Forbidden, ..refusal })
        }
    }
}

/// A run that writes in a git tree gets a tree of its own, unless the caller wants otherwise and no other run uses the tree.
fn isolation(mode: Mode, directory: Option<&std::path::Path>, wish: &RunWish) -> Result<Isolation, RunRefusal> {
    let is_git = directory.is_some_and(git_paths::is_inside_git);
    match wish.isolation {
        Some(Isolation::Worktree) if !is_git => {
            let message = "isolation worktree needs a working_directory inside a git repository";
            Err(param("isolation", "none, or a directory inside a git repository", "worktree", message))
        }
        Some(Isolation::None) if wish.must_isolate && mode.writes() && is_git => {
            let message = "several agents that write need a worktree each; omit isolation";
            Err(param("isolation", "worktree", "none", message))
        }
        None if wish.must_isolate && mode.writes() && directory.is_some() && !is_git => {
            let message = "several agents that write need a worktree each, and this is not a git repository";
            Err(param("mode", "read-only", mode.as_str(), message))
        }
        Some(isolation) => Ok(isolation),
        None if mode.writes() && is_git => Ok(Isolation::Worktree),
        None => Ok(Isolation::None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn definition() -> Definition {
        let text = "name = \"x\"\ncommand = \"x\"\nprompt = \"stdin\"\noutput = \"text\"\n\
                    [modes.read-only]\n[modes.workspace-write]\n";
        Definition::parse(text, |_| None).unwrap()
    }

    #[test]
    fn the_safest_mode_is_the_default_and_the_configuration_the_ceiling() {
        let with = |mode_max, wished: Option<Mode>, callers: Option<Mode>| {
            let wish = RunWish { mode: wished, mode_max: callers, ..RunWish::default() };
            mode(&definition(), &Rules { machine: &Machine::default(), roots: &[], mode_max }, &wish).ok()
        };
        assert_eq!(with(Mode::Full, None, None), Some(Mode::ReadOnly));
        assert_eq!(with(Mode::ReadOnly, Some(Mode::WorkspaceWrite), None), None);
        assert_eq!(with(Mode::WorkspaceWrite, Some(Mode::WorkspaceWrite), None), Some(Mode::WorkspaceWrite));
        assert_eq!(with(Mode::Full, Some(Mode::Full), None), None, "the program has no such mode");
        assert_eq!(with(Mode::Full, Some(Mode::WorkspaceWrite), Some(Mode::ReadOnly)), None, "a caller's own bound");
    }
}
