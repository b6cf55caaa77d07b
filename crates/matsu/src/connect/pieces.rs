//! What is put into a client's files: the server entry, a short rule for the model, and, if wished, hooks.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::clients::{Client, Hooks, Servers, Timeout};
use super::json_text::{ByHand, Inserted, JsonSpan, insert_element, insert_member, take_out};
use crate::homes::Homes;

/// What a person asked for.
pub struct Wish {
    /// The program that the client starts.
    pub program: PathBuf,
    /// Options before the subcommand, so that the client uses the store that was set up here.
    pub options: Vec<String>,
    pub hooks: bool,
}

/// Files whose text counts as another than the one on disk: without our own pieces, which go before new ones come.
/// `None`: without them there is no such file.
pub type Texts = BTreeMap<PathBuf, Option<String>>;

/// One file and what happens to it.
#[derive(Debug)]
pub struct Edit {
    pub file: PathBuf,
    /// `None`: there is no such file yet.
    pub before: Option<String>,
    pub after: String,
    /// What was put in, in the order it must come out.
    pub pieces: Vec<Piece>,
    pub what: &'static str,
}

impl Edit {
    /// What is put in, in the order in which it is put in.
    pub fn text(&self) -> String {
        self.pieces.iter().rev().map(|piece| piece.text.trim_matches('\n')).collect::<Vec<_>>().join("\n")
    }

    /// For a person who is asked: what it is, where it goes, and every line of it.
    pub fn lines(&self) -> Vec<String> {
        let what = format!("  {} in {}", self.what, self.file.display());
        std::iter::once(what).chain(indented(&self.text())).collect()
    }
}

/// The lines of a text that will be written, set apart from what is said about it.
pub fn indented(text: &str) -> Vec<String> {
    text.lines().map(|line| if line.is_empty() { String::new() } else { format!("      {line}") }).collect()
}

/// What was put into a text: letter for letter, and in JSON also where.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Piece {
    pub text: String,
    pub place: Option<JsonSpan>,
}

impl Piece {
    /// The text without this piece, `None` if it is not there any more. Letter for letter if it still stands where it
    /// was put; else by its name, for clients write their files anew.
    pub fn taken_out_of(&self, text: &str) -> Option<String> {
        let at = match &self.place {
            // The same letters may stand elsewhere too, and are another's there.
            Some(place) => place.start_of(text, &self.text),
            None => text.rfind(&self.text),
        };
        match at {
            Some(at) => Some(format!("{}{}", &text[..at], &text[at + self.text.len()..])),
            None => take_out(text, self.place.as_ref()?).ok().flatten(),
        }
    }
}

const BEGIN: &str = "<!-- matsu: begin -->";
const END: &str = "<!-- matsu: end -->";

/// What a model needs to know, in as few words as it takes.
const RULE: &str = "Use Matsu for slow work: start it with `use_agent` (with `run_async: true`) or `create_task`, then continue with other work. \
When you need the result, wait with one call of `get_task_status` or `get_status` and a long `timeout` or `wait`; it returns as soon as \
something changes. Do not poll at short intervals. `get_task_status` without arguments lists what is open or unread.";

/// Everything that would be changed, without changing it.
pub fn edits(client: &Client, homes: &Homes, wish: &Wish, texts: &Texts) -> Result<Vec<Edit>> {
    let mut edits = vec![server(client, homes, wish, texts)?];
    if let Some(rule) = client.rule {
        edits.push(rule_block(rule(homes), texts)?);
    }
    if let Some(hooks) = client.hooks.filter(|_| wish.hooks) {
        add_hooks(&mut edits, &hooks(homes), wish, texts)?;
    }
    Ok(edits)
}

fn arguments(wish: &Wish, timeout: Timeout) -> Vec<String> {
    // The client starts the server in the project it works on.
    let own = ["mcp", "--root", ".", "--hold", &timeout.hold().to_string()].map(str::to_owned);
    [wish.options.clone(), own.to_vec()].concat()
}

fn server(client: &Client, homes: &Homes, wish: &Wish, texts: &Texts) -> Result<Edit> {
    let servers = (client.servers)(homes);
    let before = text_of(servers.file(), texts)?;
    let text = before.clone().unwrap_or_default();
    let program = wish.program.to_string_lossy();
    let args = arguments(wish, client.timeout);
    let inserted = match &servers {
        Servers::Json { key, kind, timeout, .. } => {
            let mut entry = json!({ "command": program, "args": args });
            if let Some(kind) = kind {
                entry["type"] = json!(kind);
            }
            if let (Some(name), Timeout::Ours(seconds)) = (timeout, client.timeout) {
                entry[*name] = json!(seconds * 1_000);
            }
            insert_member(&text, &[key], "matsu", &entry)
        }
        Servers::Toml { .. } => insert_table(&text, &program, &args, client.timeout),
    };
    let inserted = inserted.with_context(|| format!("{} was not changed", servers.file().display()))?;
    let file = servers.file().to_owned();
    let piece = Piece { text: inserted.piece, place: inserted.place };
    Ok(Edit { file, before, after: inserted.text, pieces: vec![piece], what: "the MCP server" })
}

/// A table at the end belongs to nothing before it, so it can always be added.
pub fn insert_table(text: &str, program: &str, args: &[String], timeout: Timeout) -> Result<Inserted> {
    let parsed: toml::Table = text.parse().context("this is not TOML")?;
    match parsed.get("mcp_servers") {
        Some(toml::Value::Table(servers)) if servers.contains_key("matsu") => {
            return Err(ByHand("matsu".to_owned()).into());
        }
        Some(toml::Value::Table(_)) | None => {}
        Some(_) => bail!("mcp_servers is not a table"),
    }
    // JSON's strings and arrays of strings are TOML's too.
    let piece = format!(
        "{}[mcp_servers.matsu]\ncommand = {}\nargs = {}\ntool_timeout_sec = {}\nstartup_timeout_sec = 30\n",
        if text.is_empty() {
            ""
        } else if text.ends_with('\n') {
            "\n"
        } else {
            "\n\n"
        },
        Value::from(program),
        Value::from(args),
        timeout.seconds(),
    );
    let text = format!("{text}{piece}");
    // `mcp_servers = { … }` is a table that cannot be added to.
    if text.parse::<toml::Table>().is_err() {
        bail!(
            "mcp_servers is written in one line; write each server as a table [mcp_servers.NAME], then connect again"
        );
    }
    Ok(Inserted { text, piece, place: None })
}

fn rule_block(file: PathBuf, texts: &Texts) -> Result<Edit> {
    let before = text_of(&file, texts)?;
    let text = before.clone().unwrap_or_default();
    if text.contains(BEGIN) {
        bail!("{} already contains a rule of Matsu; remove it with matsu connect --undo first", file.display());
    }
    let gap = if text.is_empty() {
        ""
    } else if text.ends_with('\n') {
        "\n"
    } else {
        "\n\n"
    };
    let piece = format!("{gap}{BEGIN}\n{RULE}\n{END}\n");
    let after = format!("{text}{piece}");
    let pieces = vec![Piece { text: piece, place: None }];
    Ok(Edit { file, before, after, pieces, what: "a short rule for the model" })
}

/// Some clients keep hooks in the file that lists their servers: then both are one edit.
fn add_hooks(edits: &mut Vec<Edit>, hooks: &Hooks, wish: &Wish, texts: &Texts) -> Result<()> {
    let mut edit = match edits.iter().position(|edit| edit.file == hooks.file) {
        Some(at) => Edit { what: "the MCP server and hooks", ..edits.remove(at) },
        None => {
            let before = text_of(&hooks.file, texts)?;
            let after = before.clone().unwrap_or_default();
            Edit { file: hooks.file.clone(), before, after, pieces: Vec::new(), what: "hooks" }
        }
    };
    for (event, verb) in [(hooks.at_end, "stop"), (hooks.at_prompt, "prompt")] {
        let program = wish.program.to_string_lossy();
        let words = std::iter::once(&*program).chain(wish.options.iter().map(String::as_str));
        let command = format!("{} hook {verb}", words.map(shell_word).collect::<Vec<_>>().join(" "));
        let group = json!({ "hooks": [{ "type": "command", "command": command, "timeout": hooks.timeout }] });
        let inserted = insert_element(&edit.after, &["hooks", event], &group);
        let inserted = inserted.with_context(|| format!("{} was not changed", hooks.file.display()))?;
        edit.after = inserted.text;
        // The last one put in may stand inside what came before it, and must come out first.
        edit.pieces.insert(0, Piece { text: inserted.piece, place: inserted.place });
    }
    edits.push(edit);
    Ok(())
}

pub fn shell_word(text: &str) -> String {
    let plain = text.chars().all(|c| c.is_ascii_alphanumeric() || "/._-+".contains(c));
    if plain { text.to_owned() } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

fn text_of(file: &Path, texts: &Texts) -> Result<Option<String>> {
    texts.get(file).map_or_else(|| read(file), |text| Ok(text.clone()))
}

pub fn read(file: &Path) -> Result<Option<String>> {
    match std::fs::read_to_string(file) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("cannot read {}", file.display())),
    }
}
