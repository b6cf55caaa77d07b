//! From a definition and a checked run to what is really started: program, arguments, environment, files.
//!
//! Long text goes into files, never into an argument or a variable: the kernel bounds both, and others can read them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use matsu_core::ports::agent::{Login, Resume};
use matsu_core::run::RunInput;
use matsu_core::secret::Token;
use toml::Value;

use super::definition::{ConnectBackPart, Definition, DefinitionPart, PromptWay, merge};
use super::environment;

/// What a run knows about itself.
pub struct Facts<'a> {
    pub definition: &'a Definition,
    pub input: &'a RunInput,
    pub prompt: &'a str,
    pub resume: Option<&'a Resume>,
    /// The vendor's id for a conversation that begins here, where the caller chooses it.
    pub chosen_session: Option<&'a str>,
    pub directory: &'a Path,
    pub run: &'a Path,
    /// The private configuration of the program.
    pub home: &'a Path,
    pub data_dir: &'a Path,
    pub matsu: &'a Path,
    pub login: Login,
    /// A sandbox of the program's own works inside ours.
    pub can_nest: bool,
    /// Matsu's own environment.
    pub own: &'a BTreeMap<String, String>,
    /// Opens the run's own session, for a program that can find its way back.
    pub token: &'a Token,
    pub marker: &'a str,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub struct CommandLine {
    pub args: Vec<String>,
    pub env: BTreeMap<String, String>,
    pub files: Vec<(PathBuf, String)>,
}

/// The variable that marks every process of a run, so that one whose shim was killed can still be found.
pub const MARKER: &str = "MATSU_RUN";

/// The variable that a run's token is in: the environment of a process is its user's own, its arguments are everybody's.
const TOKEN: &str = "MATSU_SESSION_TOKEN";

pub fn build(facts: &Facts<'_>) -> CommandLine {
    let definition = facts.definition;
    let (parts, session) = (parts(facts), session_part(facts));
    let fill = Fill::new(facts);
    let mut first: Vec<&String> = definition.args.iter().chain(&definition.more_args).collect();
    first.extend(parts.iter().flat_map(|part| &part.args));
    // For some programs the session is a word of its own that ends the flags.
    let last: Vec<&String> = session.iter().flat_map(|part| &part.args).chain(&definition.last_args).collect();
    let takes_prompt = first.iter().chain(&last).any(|arg| arg.contains("{prompt}"));
    let mut args: Vec<String> = first.iter().map(|arg| fill.text(arg)).collect();
    // As they were checked: what a caller gives is no template.
    args.extend(facts.input.args.iter().cloned());
    args.extend(last.iter().map(|arg| fill.text(arg)));
    if definition.prompt == PromptWay::Argument && !takes_prompt {
        if facts.prompt.starts_with('-') && !definition.end_of_flags.is_empty() {
            args.push(definition.end_of_flags.clone());
        }
        args.push(facts.prompt.to_owned());
    }
    let mut env = environment::inherited(definition, facts.own);
    let mut files = definition.files.clone();
    set(&mut env, &definition.env);
    for part in parts.iter().chain(&session) {
        set(&mut env, &part.env);
        for (name, value) in &part.files {
            merge_file(&mut files, name, value);
        }
    }
    let mut env: BTreeMap<String, String> = env.iter().map(|(name, value)| (name.clone(), fill.text(value))).collect();
    env.extend(facts.input.env.clone());
    env.insert("TMPDIR".to_owned(), facts.run.join("tmp").display().to_string());
    env.insert("NO_COLOR".to_owned(), "1".to_owned());
    env.insert(MARKER.to_owned(), facts.marker.to_owned());
    if definition.connect_back.is_some() && facts.input.as_model.is_none() {
        env.insert(TOKEN.to_owned(), facts.token.reveal().to_string());
    }
    let files = files.iter().map(|(name, value)| (facts.run.join(fill.text(name)), fill.file(value)));
    CommandLine { args, env, files: files.chain(texts(facts)).collect() }
}

/// What the choices of this run add, in the order of the arguments.
fn parts(facts: &Facts<'_>) -> Vec<DefinitionPart> {
    let (definition, input) = (facts.definition, facts.input);
    let mut parts: Vec<DefinitionPart> =
        definition.modes.get(&input.mode).map(|part| part.part(facts.can_nest)).into_iter().collect();
    if facts.login == Login::Key {
        parts.extend(definition.login.as_ref().map(|login| login.private.clone()));
    }
    if input.model.is_some() {
        parts.extend(definition.model.clone());
    }
    if input.effort.is_some() {
        let effort = definition.effort.as_ref();
        parts.extend(effort.map(|part| DefinitionPart {
            args: part.args.clone(),
            env: part.env.clone(),
            ..DefinitionPart::default()
        }));
    }
    if input.system_prompt.is_some() {
        parts.extend(definition.system_prompt.clone());
    }
    match &input.as_model {
        Some(model) => {
            parts.push(definition.as_model.part());
            parts.extend(definition.as_model.schema.clone().filter(|_| model.schema.is_some()));
        }
        None => parts.extend(definition.connect_back.as_ref().map(ConnectBackPart::part)),
    }
    parts
}

fn session_part(facts: &Facts<'_>) -> Option<DefinitionPart> {
    let session = facts.definition.session.as_ref()?;
    Some(if facts.resume.is_some() { session.resume.clone() } else { session.start.clone() })
}

fn set(env: &mut BTreeMap<String, String>, more: &BTreeMap<String, String>) {
    env.extend(more.iter().filter(|(name, _)| environment::may_define(name)).map(|(n, v)| (n.clone(), v.clone())));
}

fn merge_file(files: &mut BTreeMap<String, Value>, name: &str, value: &Value) {
    match (files.get_mut(name), value) {
        (Some(Value::Table(table)), Value::Table(more)) => merge(table, more.clone()),
        (_, value) => {
            files.insert(name.to_owned(), value.clone());
        }
    }
}

/// The prompt, the system prompt and the schema of the answer.
fn texts(facts: &Facts<'_>) -> Vec<(PathBuf, String)> {
    let mut texts = vec![(facts.run.join("prompt"), facts.prompt.to_owned())];
    texts.extend(facts.input.system_prompt.clone().map(|system| (facts.run.join("system"), system)));
    texts.extend(schema(facts).map(|schema| (facts.run.join("schema.json"), schema)));
    texts
}

fn schema(facts: &Facts<'_>) -> Option<String> {
    facts.input.as_model.as_ref()?.schema.as_ref().map(ToString::to_string)
}

/// Fills in placeholders. Text from a caller is filled in once and not searched for placeholders.
struct Fill {
    values: Vec<(&'static str, String)>,
}

impl Fill {
    fn new(facts: &Facts<'_>) -> Self {
        let shown = |path: &Path| path.display().to_string();
        let session = facts.resume.map(|resume| resume.vendor_session.as_str()).or(facts.chosen_session);
        let title: String = facts.input.message.split_whitespace().take(8).collect::<Vec<_>>().join(" ");
        let values = vec![
            ("{run}", shown(facts.run)),
            ("{home}", shown(facts.home)),
            ("{directory}", shown(facts.directory)),
            ("{data_dir}", shown(facts.data_dir)),
            ("{matsu}", shown(facts.matsu)),
            ("{prompt_file}", shown(&facts.run.join("prompt"))),
            ("{system_file}", shown(&facts.run.join("system"))),
            ("{schema_file}", shown(&facts.run.join("schema.json"))),
            ("{schema}", schema(facts).unwrap_or_default()),
            ("{session}", session.unwrap_or_default().to_owned()),
            ("{model}", facts.input.model.clone().unwrap_or_default()),
            ("{effort}", facts.input.effort.clone().unwrap_or_default()),
            // A title that begins like a flag would be one.
            ("{title}", matsu_core::job::end::clip(title.trim_start_matches('-'), 60)),
            ("{prompt}", facts.prompt.to_owned()),
        ];
        Self { values }
    }

    fn text(&self, text: &str) -> String {
        let mut filled = String::new();
        let mut rest = text;
        while let Some(open) = rest.find('{') {
            filled.push_str(&rest[..open]);
            rest = &rest[open..];
            match self.values.iter().find(|(name, _)| rest.starts_with(name)) {
                Some((name, value)) => {
                    filled.push_str(value);
                    rest = &rest[name.len()..];
                }
                None => {
                    filled.push('{');
                    rest = &rest[1..];
                }
            }
        }
        filled.push_str(rest);
        filled
    }

    /// A text as it is, a table as JSON; values are filled in before they are written, so quotes stay quotes.
    fn file(&self, value: &Value) -> String {
        match value {
            Value::String(text) => self.text(text),
            other => serde_json::to_string_pretty(&self.json(other)).unwrap_or_default(),
        }
    }

    fn json(&self, value: &Value) -> serde_json::Value {
        match value {
            Value::String(text) => self.text(text).into(),
            Value::Integer(number) => (*number).into(),
            Value::Float(number) => (*number).into(),
            Value::Boolean(yes) => (*yes).into(),
            Value::Datetime(date) => date.to_string().into(),
            Value::Array(items) => items.iter().map(|item| self.json(item)).collect(),
            Value::Table(table) => table.iter().map(|(name, value)| (self.text(name), self.json(value))).collect(),
        }
    }
}

#[cfg(test)]
mod tests;
