//! The table of all settings: name, kind, default, meaning. The reference is made from it.

use matsu_core::limits::HOLD_MAX;

use crate::paths::Paths;

/// What a value may be.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    Text,
    Number { min: u64, max: u64 },
    Word(&'static [&'static str]),
}

pub struct Key {
    pub name: &'static str,
    pub kind: Kind,
    pub default: fn(&Paths) -> String,
    pub meaning: &'static str,
}

/// Who is on this machine needs no other name for it.
pub const LOOPBACK_NAMES: &str = "localhost,127.0.0.1,::1";

const SLOT: Kind = Kind::Number { min: 1, max: 1_000 };

/// One line for each setting; a test checks that the code reads every one of them.
pub const KEYS: &[Key] = &[
    Key {
        name: "store.url",
        kind: Kind::Text,
        default: Paths::default_store,
        meaning: "the store: memory:, sqlite:PATH or postgres://… (without TLS: a local server, or a tunnel)",
    },
    Key {
        name: "store.synchronous",
        kind: Kind::Word(&["full", "normal"]),
        default: |_| "full".to_owned(),
        meaning: "SQLite only: full survives a power cut; normal is faster, and a power cut may lose the last commits",
    },
    Key {
        name: "server.http",
        kind: Kind::Word(&["on", "off"]),
        default: |_| "on".to_owned(),
        meaning: "off: only the Unix socket is served",
    },
    Key {
        name: "server.listen",
        kind: Kind::Text,
        default: |_| "127.0.0.1".to_owned(),
        meaning: "the address to listen on; beyond loopback only together with server.names",
    },
    Key {
        name: "server.names",
        kind: Kind::Text,
        default: |_| LOOPBACK_NAMES.to_owned(),
        meaning: "host names and addresses under which requests may come, separated by commas",
    },
    Key {
        name: "server.port",
        kind: Kind::Number { min: 0, max: 65_535 },
        default: |_| "7878".to_owned(),
        meaning: "the port, or the next free one; 0 picks any free one; server.json says which",
    },
    Key {
        name: "wait.hold_max",
        kind: Kind::Number { min: 1, max: 3_600 },
        default: |_| HOLD_MAX.as_secs().to_string(),
        meaning: "a waiting call is held at most this many seconds",
    },
    Key {
        name: "wait.hold_max_progress",
        kind: Kind::Number { min: 1, max: 3_600 },
        default: |_| HOLD_MAX.as_secs().to_string(),
        meaning: "the same for a call whose client asked for progress; raise it for clients that progress keeps alive",
    },
    Key {
        name: "slots.network_client",
        kind: SLOT,
        default: |_| "2".to_owned(),
        meaning: "searches that run at once, over all nodes of the store",
    },
    Key {
        name: "slots.agent_cli",
        kind: SLOT,
        default: |_| "5".to_owned(),
        meaning: "runs of AI command lines at once",
    },
    Key { name: "slots.agent_chat", kind: SLOT, default: |_| "20".to_owned(), meaning: "chat agents at once" },
    Key {
        name: "slots.cpu",
        kind: SLOT,
        default: |_| std::thread::available_parallelism().map_or(1, usize::from).to_string(),
        meaning: "jobs at once that only compute; by default the number of cores",
    },
    Key {
        name: "chat.default_model",
        kind: Kind::Text,
        default: |_| "none".to_owned(),
        meaning: "which provider answers when nobody is named; none: such a line is a note",
    },
    Key {
        name: "mcp.servers_file",
        kind: Kind::Text,
        default: |paths| paths.data_dir.join("mcp.json").display().to_string(),
        meaning: "a JSON file with mcpServers, whose tools models may use in chats",
    },
    Key {
        name: "log.level",
        kind: Kind::Word(&["error", "warn", "info", "debug", "trace"]),
        default: |_| "info".to_owned(),
        meaning: "how much the log says; -v says more",
    },
    Key {
        name: "log.format",
        kind: Kind::Word(&["text", "json"]),
        default: |_| "text".to_owned(),
        meaning: "how the log on stderr is written",
    },
];

impl Key {
    /// `MATSU_STORE_URL` for `store.url`.
    pub fn variable(&self) -> String {
        format!("MATSU_{}", self.name.to_uppercase().replace('.', "_"))
    }

    /// Why a value will not do; `None` if it will.
    pub fn complaint(&self, value: &str) -> Option<String> {
        match self.kind {
            Kind::Text if value.is_empty() => Some("must not be empty".to_owned()),
            Kind::Text => None,
            Kind::Number { min, max } => match value.parse::<u64>() {
                Ok(number) if (min..=max).contains(&number) => None,
                _ => Some(format!("must be a whole number from {min} to {max}, got {value:?}")),
            },
            Kind::Word(words) if words.contains(&value) => None,
            Kind::Word(words) => Some(format!("must be one of {}, got {value:?}", words.join(", "))),
        }
    }
}
