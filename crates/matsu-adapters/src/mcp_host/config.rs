//! The common `mcpServers` JSON, so that a file which another client uses works here too. Fields that Matsu does not
//! know are left alone for the same reason.

use std::collections::BTreeMap;
use std::time::Duration;

use matsu_core::limits::TOOL_TIME_MAX;
use matsu_core::redaction;
use serde::Deserialize;

/// Servers by name, in the order of their names.
#[derive(Clone, Debug, Default)]
pub struct McpConfig {
    pub servers: Vec<ServerConfig>,
    /// The few variables that every child is given.
    pub environment: Vec<(String, String)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerConfig {
    pub name: String,
    pub transport: Transport,
    /// How long a call may go without a sign of life.
    pub timeout: Duration,
    /// Only these tools; none: all of them.
    pub only: Option<Vec<String>>,
    /// One process for all chats.
    pub shared: bool,
}

#[derive(Clone, PartialEq, Eq)]
pub enum Transport {
    Stdio { command: String, args: Vec<String>, env: BTreeMap<String, String>, cwd: Option<String> },
    Http { url: String, headers: BTreeMap<String, String> },
}

/// Environment and headers hold secrets: their names may be seen, their values not.
impl std::fmt::Debug for Transport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Stdio { command, args, env, cwd } => {
                let names: Vec<&String> = env.keys().collect();
                write!(f, "Stdio {{ {command:?} {args:?}, env: {names:?}, cwd: {cwd:?} }}")
            }
            Self::Http { url, headers } => {
                write!(f, "Http {{ {url:?}, headers: {:?} }}", headers.keys().collect::<Vec<_>>())
            }
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct File {
    #[serde(default)]
    mcp_servers: BTreeMap<String, Entry>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    command: Option<String>,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    cwd: Option<String>,
    #[serde(alias = "httpUrl", alias = "serverUrl")]
    url: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    /// Milliseconds, as other clients have it.
    timeout: Option<u64>,
    #[serde(alias = "allowedTools")]
    include_tools: Option<Vec<String>>,
    #[serde(default)]
    disabled: bool,
    #[serde(default)]
    shared: bool,
}

impl McpConfig {
    /// Reads the JSON. `${NAME}` and `${NAME:-otherwise}` stand for variables.
    ///
    /// # Errors
    /// What is wrong with which server.
    pub fn parse(text: &str, variable: &dyn Fn(&str) -> Option<String>) -> Result<Vec<ServerConfig>, String> {
        let file: File = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let servers = file.mcp_servers.into_iter().filter(|(_, entry)| !entry.disabled);
        servers.map(|(name, entry)| server(name, entry, variable)).collect()
    }
}

fn server(name: String, entry: Entry, variable: &dyn Fn(&str) -> Option<String>) -> Result<ServerConfig, String> {
    let fill = |text: &str| expand(text, variable).map_err(|words| format!("server {name}: {words}"));
    let fill_all = |fields: &BTreeMap<String, String>| -> Result<BTreeMap<String, String>, String> {
        fields.iter().map(|(name, value)| Ok((name.clone(), fill(value)?))).collect()
    };
    let transport = match (&entry.command, &entry.url) {
        (Some(command), None) => Transport::Stdio {
            command: fill(command)?,
            args: entry.args.iter().map(|arg| fill(arg)).collect::<Result<_, _>>()?,
            env: fill_all(&entry.env)?,
            cwd: entry.cwd.as_deref().map(fill).transpose()?,
        },
        (None, Some(url)) => Transport::Http { url: fill(url)?, headers: fill_all(&entry.headers)? },
        _ => return Err(format!("server {name}: give either a command or a url")),
    };
    match &transport {
        Transport::Stdio { env: given, .. } | Transport::Http { headers: given, .. } => {
            redaction::remember_variables(given);
        }
    }
    Ok(ServerConfig {
        transport,
        timeout: entry.timeout.map_or(TOOL_TIME_MAX, Duration::from_millis),
        only: entry.include_tools,
        shared: entry.shared,
        name,
    })
}

fn expand(text: &str, variable: &dyn Fn(&str) -> Option<String>) -> Result<String, String> {
    let (mut filled, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once("${") {
        let (inside, tail) = after.split_once('}').ok_or_else(|| format!("{text:?} has ${{ without }}"))?;
        let (name, otherwise) = inside.split_once(":-").map_or((inside, None), |(name, value)| (name, Some(value)));
        let value = variable(name).or_else(|| otherwise.map(str::to_owned));
        filled.push_str(before);
        filled.push_str(&value.ok_or_else(|| format!("the environment variable {name} is not set"))?);
        rest = tail;
    }
    filled.push_str(rest);
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Vec<ServerConfig>, String> {
        McpConfig::parse(text, &|name| (name == "TOKEN").then(|| "secret".to_owned()))
    }

    #[test]
    fn files_of_other_clients_work() {
        let servers = parse(
            r#"{"mcpServers": {
                "time": {"command": "uvx", "args": ["mcp-server-time"], "type": "stdio", "icon": 7},
                "web": {"type": "http", "url": "https://x/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"},
                        "timeout": 5000, "includeTools": ["a"], "shared": true},
                "old": {"command": "x", "disabled": true}
            }, "other": 1}"#,
        )
        .unwrap();
        assert_eq!(servers.len(), 2);
        assert_eq!((servers[0].name.as_str(), servers[0].timeout), ("time", TOOL_TIME_MAX));
        assert_eq!((servers[1].timeout, servers[1].shared), (Duration::from_secs(5), true));
        let Transport::Http { headers, .. } = &servers[1].transport else { panic!("{servers:?}") };
        assert_eq!(headers["Authorization"], "Bearer secret");
        assert!(!format!("{servers:?}").contains("secret"));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, said) in [
            (r#"{"mcpServers": {"a": {}}}"#, "server a: give either"),
            (r#"{"mcpServers": {"a": {"command": "x", "env": {"K": "${NOPE}"}}}}"#, "NOPE is not set"),
            (r#"{"mcpServers": {"a": {"command": "${x"}}}"#, "without }"),
            ("7", "invalid type"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(said), "{error}");
        }
        assert_eq!(expand("a${N:-b}c", &|_| None).unwrap(), "abc");
    }
}
