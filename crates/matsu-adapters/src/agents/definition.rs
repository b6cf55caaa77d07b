//! An agent's definition: a TOML file that says how its program is started and read. Data, no code.
//!
//! Unknown keys are errors: a key that is not read is worse than none.

use std::collections::BTreeMap;

use matsu_core::limits::RUN_REQUESTS_MAX;
use matsu_core::ports::agent::{ConnectBack, Delivery, OnRestart, ReportRule};
use matsu_core::run::Mode;
use serde::Deserialize;
use toml::{Table, Value};

use super::allowed_args::Allowed;
use super::decoders::{self, Listens};

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Definition {
    pub name: String,
    /// A name that is looked for on the PATH, or a path.
    pub command: String,
    #[serde(default)]
    pub args: Vec<String>,
    /// Behind `args`; for a file that extends another.
    #[serde(default)]
    pub more_args: Vec<String>,
    /// After everything else.
    #[serde(default)]
    pub last_args: Vec<String>,
    pub prompt: PromptWay,
    /// `text`, or the name of a stream decoder.
    pub output: String,
    /// Longer prompts are refused.
    pub prompt_bytes_max: Option<usize>,
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Names that are passed on from Matsu's own environment.
    #[serde(default)]
    pub inherit: Vec<String>,
    /// Names that a caller may set.
    #[serde(default)]
    pub allow_env: Vec<String>,
    /// Flags that a caller may pass, as `--switch`, `--flag=KIND` or `--flag KIND`; see `allowed_args.rs` for the kinds.
    #[serde(default)]
    pub allow_args: Vec<String>,
    /// What ends the flags before a prompt that is an argument and begins like one. Empty: the program knows no such
    /// thing, and such a prompt is refused.
    #[serde(default = "end_of_flags")]
    pub end_of_flags: String,
    #[serde(default)]
    pub stop_signal: StopSignal,
    #[serde(default = "requests_max")]
    pub requests_max: u32,
    /// How often an error that may pass with time is tried again.
    #[serde(default)]
    pub retries: u32,
    /// Words in an error that say it may pass with time.
    #[serde(default)]
    pub transient: Vec<String>,
    /// Absent: every mode, with nothing but the confinement from outside.
    #[serde(default)]
    pub modes: BTreeMap<Mode, ModePart>,
    pub session: Option<SessionPart>,
    pub system_prompt: Option<DefinitionPart>,
    pub model: Option<DefinitionPart>,
    pub effort: Option<EffortPart>,
    pub connect_back: Option<ConnectBackPart>,
    /// What a run gets instead of `connect_back` that answers as a model.
    #[serde(default)]
    pub as_model: AsModelPart,
    /// How a session's messages reach the program; read by the code that starts sessions.
    #[serde(default = "delivery")]
    pub delivery: Delivery,
    pub login: Option<LoginPart>,
    pub quota: Option<QuotaPart>,
    /// Files of the run's own folder. A table becomes JSON, a text stays as it is.
    #[serde(default)]
    pub files: BTreeMap<String, Value>,
    /// What makes the program say its version. Without it the program is never started to be listed.
    #[serde(default)]
    pub version: Vec<String>,
    /// What is said to a conversation that goes on after an interruption.
    #[serde(default = "go_on")]
    pub go_on: String,
    /// What becomes of a run whose machine was restarted.
    #[serde(default = "on_machine_restart")]
    pub on_machine_restart: OnRestart,
    /// A run whose machine stays away begins again on another one that shares the store.
    #[serde(default)]
    pub relocatable: bool,
}

fn requests_max() -> u32 {
    RUN_REQUESTS_MAX
}

fn delivery() -> Delivery {
    Delivery::Resume
}

fn end_of_flags() -> String {
    "--".to_owned()
}

fn on_machine_restart() -> OnRestart {
    OnRestart::Resume
}

fn go_on() -> String {
    "Go on where you were interrupted.".to_owned()
}

/// How the prompt goes in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PromptWay {
    Stdin,
    /// As `{prompt_file}`; stdin is empty.
    File,
    /// As `{prompt}`, or as the last argument; short ones only.
    Argument,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StopSignal {
    #[default]
    Term,
    Int,
}

/// What a mode adds to a run.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModePart {
    #[serde(default)]
    pub args: Vec<String>,
    /// Instead of `args` where a sandbox of the program's own cannot work inside ours: they switch it off.
    #[serde(default)]
    pub args_without_sandbox: Vec<String>,
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    #[serde(default)]
    pub files: BTreeMap<String, Value>,
    /// Flags that a caller may pass in this mode alone.
    #[serde(default)]
    pub allow_args: Vec<String>,
    /// In this mode it asks before it does what it may not do by itself, and is answered while it runs.
    #[serde(default)]
    pub asks: bool,
}

impl ModePart {
    /// `can_nest`: whether a sandbox of the program's own works inside ours.
    pub fn part(&self, can_nest: bool) -> DefinitionPart {
        let is_off = !can_nest && !self.args_without_sandbox.is_empty();
        let args = if is_off { &self.args_without_sandbox } else { &self.args };
        DefinitionPart { args: args.clone(), env: self.env.clone(), files: self.files.clone() }
    }
}

/// What one choice adds to a run.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DefinitionPart {
    #[serde(default)]
    pub args: Vec<String>,
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    #[serde(default)]
    pub files: BTreeMap<String, Value>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SessionPart {
    /// The caller of the program chooses the id, a UUID.
    #[serde(default)]
    pub choose: bool,
    #[serde(default)]
    pub start: DefinitionPart,
    pub resume: DefinitionPart,
    #[serde(default)]
    pub usage: UsageScope,
}

/// What the program's own account of its cost covers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum UsageScope {
    #[default]
    Run,
    Conversation,
}

/// How the program finds its way back to us. Its token comes in `MATSU_SESSION_TOKEN`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConnectBackPart {
    #[serde(default)]
    pub args: Vec<String>,
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    #[serde(default)]
    pub files: BTreeMap<String, Value>,
    /// Toolsets and tools that its runs may use beyond `sessions`, separated by commas.
    #[serde(default = "grants")]
    pub grants: String,
    /// Whether its runs must say themselves how their task went.
    #[serde(default = "report")]
    pub report: ReportRule,
}

impl ConnectBackPart {
    pub fn part(&self) -> DefinitionPart {
        DefinitionPart { args: self.args.clone(), env: self.env.clone(), files: self.files.clone() }
    }
}

fn grants() -> String {
    "core,agents".to_owned()
}

fn report() -> ReportRule {
    ReportRule::Optional
}

/// How the program is started without tools, and how it learns the shape of its answer.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AsModelPart {
    #[serde(default)]
    pub args: Vec<String>,
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    #[serde(default)]
    pub files: BTreeMap<String, Value>,
    /// What an answer with a JSON Schema adds. Absent: the schema is in the prompt only.
    pub schema: Option<DefinitionPart>,
}

impl AsModelPart {
    pub fn part(&self) -> DefinitionPart {
        DefinitionPart { args: self.args.clone(), env: self.env.clone(), files: self.files.clone() }
    }
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EffortPart {
    pub values: Vec<String>,
    #[serde(default)]
    pub args: Vec<String>,
    #[serde(default)]
    pub env: BTreeMap<String, String>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoginPart {
    /// Variables that carry a key. If one is set, the run has a private configuration and that key.
    #[serde(default)]
    pub keys: Vec<String>,
    /// What such a run gets besides.
    #[serde(default)]
    pub private: DefinitionPart,
    /// Where the program keeps its own state. A sealed run reads it; what it writes there is thrown away.
    #[serde(default)]
    pub state: Vec<String>,
    /// Login files below `state` that a run writes in place, for a login that is renewed. With a `/` at its end: a
    /// folder that cannot be split, such as that of a database.
    #[serde(default)]
    pub originals: Vec<String>,
    /// Files below `state` in which it keeps its conversations; those of the run's own are kept. `*` stands for any part
    /// of a name, `{session}` for the vendor's id of the conversation, `{session_start}` for its first eight characters.
    #[serde(default)]
    pub sessions: Vec<String>,
    /// What makes the program say, by its exit code and without a model call, whether it is logged in.
    #[serde(default)]
    pub check: Vec<String>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QuotaPart {
    /// Words in an error that say so; the time is looked for in the same message.
    pub patterns: Vec<String>,
    /// Words in an error that say that it does not come back by itself, unless the message has a time.
    #[serde(default)]
    pub spent: Vec<String>,
}

impl Definition {
    /// Reads a definition. `base` finds the table of the one it extends.
    ///
    /// # Errors
    /// What is wrong with it, in words.
    pub fn parse(text: &str, base: impl Fn(&str) -> Option<Table>) -> Result<Self, String> {
        let mut table: Table = text.parse().map_err(|error| format!("not valid TOML: {error}"))?;
        if let Some(extended) = table.remove("extends") {
            let name = extended.as_str().ok_or("extends must be the name of a built-in agent")?;
            let mut merged = base(name).ok_or_else(|| format!("extends names {name}, which is not built in"))?;
            merge(&mut merged, table);
            table = merged;
        }
        let definition: Self = Value::Table(table).try_into().map_err(|error| error.to_string())?;
        definition.check()?;
        Ok(definition)
    }

    fn check(&self) -> Result<(), String> {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if self.name.is_empty() || self.name.len() > 64 || !self.name.chars().all(plain) {
            return Err("name must have 1 to 64 letters, digits, - or _".to_owned());
        }
        if self.command.is_empty() {
            return Err("command must not be empty".to_owned());
        }
        let of_modes = self.modes.values().flat_map(|mode| &mode.allow_args);
        for line in self.allow_args.iter().chain(of_modes) {
            Allowed::parse(line)?;
        }
        if decoders::of(&self.output).is_none() {
            return Err(format!("output is {}; expected one of {}", self.output, decoders::names().join(", ")));
        }
        Ok(())
    }

    /// What a caller may pass in this mode.
    #[must_use]
    pub fn allowed_args(&self, mode: Mode) -> Vec<Allowed> {
        let of_mode = self.modes.get(&mode).into_iter().flat_map(|mode| &mode.allow_args);
        self.allow_args.iter().chain(of_mode).filter_map(|line| Allowed::parse(line).ok()).collect()
    }

    /// Whether a prompt that begins like a flag is not read as one: it goes after the end of the flags, or is a part
    /// of a larger argument.
    #[must_use]
    pub fn keeps_prompt_apart(&self) -> bool {
        let all: Vec<&String> = self.args.iter().chain(&self.more_args).chain(&self.last_args).collect();
        let alone = all.iter().position(|arg| arg.starts_with("{prompt}"));
        match alone {
            Some(at) => all[..at].iter().any(|arg| *arg == "--"),
            None => all.iter().any(|arg| arg.contains("{prompt}")) || !self.end_of_flags.is_empty(),
        }
    }

    /// The modes it has, safest first.
    #[must_use]
    pub fn mode_list(&self) -> Vec<Mode> {
        if self.modes.is_empty() { Mode::ALL.to_vec() } else { self.modes.keys().copied().collect() }
    }

    /// Whether a run of this mode is spoken to while it runs.
    #[must_use]
    pub fn listens(&self, mode: Mode) -> bool {
        match decoders::of(&self.output).flatten().map(|make| make().listens()) {
            Some(Listens::Always) => true,
            Some(Listens::WhereItAsks) => self.modes.get(&mode).is_some_and(|part| part.asks),
            Some(Listens::Never) | None => false,
        }
    }

    /// What its runs may do here. One that gets no address may still find it.
    #[must_use]
    pub fn connect_back(&self) -> ConnectBack {
        match &self.connect_back {
            Some(part) => ConnectBack { is_enabled: true, grants: part.grants.clone(), report: part.report },
            None => ConnectBack { is_enabled: false, grants: grants(), report: report() },
        }
    }

    /// Whether it is read event by event.
    #[must_use]
    pub fn streams(&self) -> bool {
        self.output != decoders::TEXT
    }
}

/// Tables are merged, everything else is replaced.
pub fn merge(into: &mut Table, from: Table) {
    for (name, value) in from {
        match (into.get_mut(&name), value) {
            (Some(Value::Table(inner)), Value::Table(more)) => merge(inner, more),
            (_, value) => {
                into.insert(name, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Definition, String> {
        Definition::parse(text, |name| (name == "base").then(|| BASE.parse().unwrap()))
    }

    const BASE: &str = "name = \"base\"\ncommand = \"b\"\nprompt = \"stdin\"\noutput = \"text\"\n[env]\nA = \"1\"\n";

    #[test]
    fn the_smallest_definition_has_every_mode_and_no_surprises() {
        let echo = parse("name = \"echo\"\ncommand = \"/bin/cat\"\nprompt = \"stdin\"\noutput = \"text\"\n").unwrap();
        assert_eq!(echo.mode_list(), [Mode::ReadOnly, Mode::WorkspaceWrite, Mode::Full]);
        assert!(!echo.streams() && echo.allow_args.is_empty() && echo.login.is_none());
    }

    #[test]
    fn a_file_can_extend_another_and_tables_are_merged() {
        let both = parse("extends = \"base\"\nname = \"mine\"\n[env]\nB = \"2\"\n").unwrap();
        assert_eq!(both.env.keys().collect::<Vec<_>>(), ["A", "B"]);
        assert_eq!((both.name.as_str(), both.command.as_str()), ("mine", "b"));
    }

    /// Serde lists all keys when it meets one that it does not know.
    #[test]
    fn every_key_is_on_its_page() {
        let page = include_str!("../../../../docs/reference/agents.md");
        let tables = "modes.full session model effort connect_back as_model login quota".split(' ');
        let tables = tables.map(|name| format!("[{name}]")).chain([String::new()]);
        for table in tables {
            let error =
                parse(&format!("{BASE}{table}\nno_such_key = 1\n").replace("[env]\nA = \"1\"\n", "")).unwrap_err();
            // Behind the list the error names the table.
            let listed = error.split("expected").nth(1).unwrap().split("in `").next().unwrap();
            let keys: Vec<&str> = listed.split('`').skip(1).step_by(2).collect();
            assert!(keys.len() >= 2, "{table}: {error}");
            for key in keys {
                assert!(page.contains(&format!("`{key}`")) || page.contains(&format!("`[{key}")), "{table} {key}");
            }
        }
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (text, words) in [
            ("name = ", "not valid TOML"),
            ("name = \"x\"\ncommand = \"x\"\nprompt = \"stdin\"\noutput = \"smoke\"\n", "output is smoke"),
            ("name = \"x y\"\ncommand = \"x\"\nprompt = \"stdin\"\noutput = \"text\"\n", "name must have"),
            ("name = \"x\"\ncomand = \"x\"\nprompt = \"stdin\"\noutput = \"text\"\n", "comand"),
            ("extends = \"unknown\"\n", "unknown"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(words), "{text}: {error}");
        }
    }
}
