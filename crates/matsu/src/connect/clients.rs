//! The clients we know: where their files are in user scope, how long they let a call take, and what they understand.

use std::path::{Path, PathBuf};

use crate::homes::Homes;

/// One client.
pub struct Client {
    pub name: &'static str,
    pub title: &'static str,
    command: &'static str,
    /// How long its tool calls may take, in seconds, and whether that is ours to set.
    pub timeout: Timeout,
    pub servers: fn(&Homes) -> Servers,
    /// Where a rule for the model goes.
    pub rule: Option<fn(&Homes) -> PathBuf>,
    pub hooks: Option<fn(&Homes) -> Hooks>,
    /// What a person still has to do.
    pub after: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timeout {
    /// Set by the entry we write.
    Ours(u64),
    /// Its own, which cannot be set.
    Fixed(u64),
}

impl Timeout {
    pub fn seconds(self) -> u64 {
        match self {
            Self::Ours(seconds) | Self::Fixed(seconds) => seconds,
        }
    }

    /// Answered in time, also on a slow machine.
    pub fn hold(self) -> u64 {
        self.seconds().saturating_sub(20).max(1)
    }
}

/// Where hooks go, and what the client calls its events.
pub struct Hooks {
    pub file: PathBuf,
    pub at_end: &'static str,
    pub at_prompt: &'static str,
    /// Ten seconds, in the client's own unit.
    pub timeout: u32,
}

/// The file that lists MCP servers, and its shape.
pub enum Servers {
    /// JSON: an object under this key; the timeout under that one, in milliseconds.
    Json { file: PathBuf, key: &'static str, kind: Option<&'static str>, timeout: Option<&'static str> },
    /// TOML: `[mcp_servers.matsu]`.
    Toml { file: PathBuf },
}

/// An hour, so that a model waits half an hour in one call.
const LONG: Timeout = Timeout::Ours(3_600);

pub const CLIENTS: &[Client] = &[
    Client {
        name: "claude",
        title: "Claude Code",
        command: "claude",
        timeout: LONG,
        servers: |homes| Servers::Json {
            file: homes.claude.as_ref().unwrap_or(&homes.home).join(".claude.json"),
            key: "mcpServers",
            kind: Some("stdio"),
            timeout: Some("timeout"),
        },
        rule: Some(|homes| homes.claude_folder().join("CLAUDE.md")),
        hooks: Some(|homes| Hooks::usual(homes.claude_folder().join("settings.json"))),
        after: "start a new session",
    },
    Client {
        name: "codex",
        title: "Codex",
        command: "codex",
        timeout: LONG,
        servers: |homes| Servers::Toml { file: homes.codex_folder().join("config.toml") },
        rule: Some(|homes| homes.codex_folder().join("AGENTS.md")),
        hooks: Some(|homes| Hooks::usual(homes.codex_folder().join("hooks.json"))),
        after: "start a new session; Codex asks once whether it may trust new hooks, and `codex exec` refuses tools that \
                change something until you allow them (see docs/clients.md)",
    },
    Client {
        name: "gemini",
        title: "Gemini CLI",
        command: "gemini",
        timeout: LONG,
        servers: |homes| Servers::Json {
            file: homes.home.join(".gemini/settings.json"),
            key: "mcpServers",
            kind: None,
            timeout: Some("timeout"),
        },
        rule: Some(|homes| homes.home.join(".gemini/GEMINI.md")),
        hooks: Some(|homes| Hooks {
            file: homes.home.join(".gemini/settings.json"),
            at_end: "AfterAgent",
            at_prompt: "BeforeAgent",
            timeout: 10_000,
        }),
        after: "start a new session",
    },
    Client {
        name: "cursor",
        title: "Cursor",
        command: "cursor",
        timeout: Timeout::Fixed(60),
        servers: |homes| Servers::Json {
            file: homes.home.join(".cursor/mcp.json"),
            key: "mcpServers",
            kind: None,
            timeout: None,
        },
        rule: None,
        hooks: None,
        after: "switch matsu on in Cursor's MCP settings",
    },
    Client {
        name: "vscode",
        title: "VS Code",
        command: "code",
        timeout: Timeout::Fixed(300),
        servers: |homes| Servers::Json {
            file: homes.config.join("Code/User/mcp.json"),
            key: "servers",
            kind: Some("stdio"),
            timeout: None,
        },
        rule: None,
        hooks: None,
        after: "start matsu in VS Code's list of MCP servers",
    },
];

impl Hooks {
    /// As Claude Code has them, and the clients that followed it.
    fn usual(file: PathBuf) -> Self {
        Self { file, at_end: "Stop", at_prompt: "UserPromptSubmit", timeout: 10 }
    }
}

impl Client {
    pub fn named(name: &str) -> Option<&'static Self> {
        CLIENTS.iter().find(|client| client.name == name)
    }

    /// Whether it seems to be there: its program, or files it has left.
    pub fn is_installed(&self, homes: &Homes) -> bool {
        homes.has_command(self.command) || (self.servers)(homes).file().is_file()
    }
}

impl Servers {
    pub fn file(&self) -> &Path {
        match self {
            Self::Json { file, .. } | Self::Toml { file } => file,
        }
    }
}
