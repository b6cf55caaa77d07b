//! One setting: its name, what its value may be, and when a change of it takes effect.

use matsu_server::auth::origin::PublicUrl;

use crate::paths::Paths;

/// Stands for an empty text.
pub const NONE: &str = "none";

/// What a value may be.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    Text,
    /// As `Text`, but may be empty.
    MaybeText,
    Number {
        min: u64,
        max: u64,
    },
    Word(&'static [&'static str]),
    /// `https://name:port` and nothing behind it, or `none`.
    Origin,
}

pub struct Key {
    pub name: &'static str,
    pub kind: Kind,
    pub default: fn(&Paths) -> String,
    pub meaning: &'static str,
}

/// What a running daemon keeps until it is started again: its store, its listeners, its slots and its log. All
/// others it takes from the file within seconds.
const AT_START: &[&str] = &["store.", "server.", "slots.", "log.", "agents.keep_awake", "mcp.servers_file"];

impl Key {
    /// Whether a running daemon follows a change of it.
    pub fn is_followed(&self) -> bool {
        !AT_START.iter().any(|prefix| self.name.starts_with(prefix))
    }

    /// `MATSU_STORE_URL` for `store.url`.
    pub fn variable(&self) -> String {
        format!("MATSU_{}", self.name.to_uppercase().replace('.', "_"))
    }

    /// Why a value will not do; `None` if it will.
    pub fn complaint(&self, value: &str) -> Option<String> {
        match self.kind {
            Kind::Text if value.is_empty() => Some("must not be empty".to_owned()),
            Kind::Text | Kind::MaybeText => None,
            Kind::Number { min, max } => match value.parse::<u64>() {
                Ok(number) if (min..=max).contains(&number) => None,
                _ => Some(format!("must be a whole number from {min} to {max}, got {value:?}")),
            },
            Kind::Word(words) if words.contains(&value) => None,
            Kind::Word(words) => Some(format!("must be one of {}, got {value:?}", words.join(", "))),
            Kind::Origin if value == NONE || PublicUrl::parse(value).is_some() => None,
            Kind::Origin => Some(format!(
                "must be {NONE}, or a scheme and a host name, optionally with a port, such as https://matsu.example.org; got {value:?}"
            )),
        }
    }
}
