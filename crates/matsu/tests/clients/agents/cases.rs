//! The five command lines: how each is configured for its model, how its user is logged in, and what its shell is
//! called.

use std::path::Path;

use matsu_testkit::model_server::Recorded;
use serde_json::{Value, json};

/// The content of the planted logins. It occurs in no other place.
pub const SECRET: &str = "planted-login-5c1f0e7a9b3d";
/// The content of the environment's keys.
pub const KEY: &str = "sk-test-0000000000000000000000000000";

/// A tool's name and its arguments.
type ToolCall = (String, Value);

pub struct Case {
    pub name: &'static str,
    /// The variable that a key is read from.
    pub key: &'static str,
    /// The user's own definition: the built-in one, with the scripted model's address.
    pub definition: fn(url: &str) -> String,
    /// The same for a user who is logged in; most need nothing else.
    pub logged_in: Option<fn(url: &str) -> String>,
    /// Files below the user's home that a login leaves.
    pub login: fn(url: &str) -> Vec<(&'static str, Value)>,
    /// A call of its shell, from the tools it offers.
    pub shell: fn(command: &str, tools: &[String]) -> Option<ToolCall>,
    /// What it calls a tool of ours.
    pub ours: fn(tool: &str) -> String,
    /// Lines of a definition that let its shell do anything in the mode `workspace-write`: only our confinement holds it.
    pub unbound: &'static str,
    /// Where it keeps its state: below the user's home with a login, below Matsu's data directory with a key.
    pub state: &'static [&'static str],
}

pub const CASES: &[Case] = &[CLAUDE, CODEX, GEMINI, QWEN, OPENCODE];

const CLAUDE: Case = Case {
    name: "claude",
    key: "ANTHROPIC_API_KEY",
    definition: |url| format!("[env]\nANTHROPIC_BASE_URL = \"{url}\"\n"),
    logged_in: None,
    login: |_| {
        let scopes = ["user:inference", "user:profile"];
        let oauth = json!({ "accessToken": SECRET, "refreshToken": SECRET, "expiresAt": 4_102_444_800_000_i64,
            "scopes": scopes, "subscriptionType": "max" });
        vec![(".claude/.credentials.json", json!({ "claudeAiOauth": oauth }))]
    },
    shell: |command, tools| offered(tools, "Bash", json!({ "command": command, "description": "sleeps" })),
    ours: |tool| format!("mcp__matsu__{tool}"),
    unbound: "[modes.workspace-write]\nargs = [\"--permission-mode\", \"bypassPermissions\", \"--input-format\", \
              \"stream-json\", \"--permission-prompt-tool\", \"stdio\"]\nenv = { IS_SANDBOX = \"1\" }\n",
    state: &[".claude", "data/agents/claude"],
};

const CODEX: Case = Case {
    name: "codex",
    key: "CODEX_API_KEY",
    definition: |url| codex(url, "env_key=\"CODEX_API_KEY\""),
    logged_in: Some(|url| codex(url, "requires_openai_auth=true")),
    login: |_| vec![(".codex/auth.json", json!({ "auth_mode": "apikey", "OPENAI_API_KEY": SECRET }))],
    shell: |command, tools| {
        offered(tools, "exec_command", json!({ "cmd": command, "yield_time_ms": 60_000 }))
            .or_else(|| offered(tools, "shell_command", json!({ "command": command, "timeout_ms": 600_000 })))
            .or_else(|| offered(tools, "shell", json!({ "command": ["bash", "-lc", command], "timeout_ms": 600_000 })))
    },
    ours: |tool| format!("mcp__matsu/{tool}"),
    unbound: "[modes.workspace-write]\nargs = [\"-s\", \"danger-full-access\"]\n",
    state: &[".codex", "data/agents/codex"],
};

fn codex(url: &str, login: &str) -> String {
    let provider = format!(
        "model_providers.p={{name=\"p\",base_url=\"{url}/v1\",{login},wire_api=\"responses\",request_max_retries=1,\
         stream_max_retries=1}}"
    );
    format!("more_args = ['-c', 'model_provider=\"p\"', '-c', '{provider}', '-m', 'gpt-5']\n")
}

const GEMINI: Case = Case {
    name: "gemini",
    key: "GEMINI_API_KEY",
    definition: |url| format!("more_args = [\"-m\", \"gemini-2.5-pro\"]\n[env]\nGOOGLE_GEMINI_BASE_URL = \"{url}\"\n"),
    logged_in: None,
    login: |_| {
        let auth = json!({ "auth": { "selectedType": "gemini-api-key" }, "folderTrust": { "enabled": false } });
        let general = json!({ "enableAutoUpdate": false, "maxAttempts": 2 });
        vec![
            (
                ".gemini/settings.json",
                json!({ "security": auth, "general": general, "privacy": { "usageStatisticsEnabled": false } }),
            ),
            (".gemini/.env", json!(format!("GEMINI_API_KEY={SECRET}\n"))),
        ]
    },
    shell: |command, tools| offered(tools, "run_shell_command", json!({ "command": command })),
    ours: |tool| format!("mcp_matsu_{tool}"),
    unbound: "[modes.workspace-write]\nargs = [\"--approval-mode\", \"yolo\"]\n",
    state: &[".gemini", "data/agents/gemini/.gemini"],
};

const QWEN: Case = Case {
    name: "qwen",
    key: "OPENAI_API_KEY",
    definition: |url| format!("[env]\nOPENAI_BASE_URL = \"{url}/v1\"\nOPENAI_MODEL = \"qwen3\"\n"),
    logged_in: None,
    login: |_| {
        let auth = json!({ "auth": { "selectedType": "openai" } });
        vec![
            (".qwen/settings.json", json!({ "security": auth })),
            (".qwen/.env", json!(format!("OPENAI_API_KEY={SECRET}\n"))),
        ]
    },
    shell: |command, tools| offered(tools, "run_shell_command", json!({ "command": command, "is_background": false })),
    ours: |tool| format!("mcp__matsu__{tool}"),
    unbound: "[modes.workspace-write]\nargs = [\"--approval-mode\", \"yolo\"]\n",
    state: &[".qwen", "data/agents/qwen"],
};

pub const OPENCODE: Case = Case {
    name: "opencode",
    key: "OPENCODE_API_KEY",
    definition: |url| opencode(url, ", apiKey = \"{env:OPENCODE_API_KEY}\""),
    logged_in: Some(|url| opencode(url, "")),
    login: |_| {
        vec![
            (".local/share/opencode/auth.json", json!({ "p": { "type": "api", "key": SECRET } })),
            // The user's own settings are not the run's.
            (".config/opencode/opencode.json", json!({ "model": "no-owner/nothing" })),
        ]
    },
    shell: |command, tools| {
        offered(tools, "bash", json!({ "command": command, "description": "sleeps", "timeout": 600_000 }))
    },
    ours: |tool| format!("matsu_{tool}"),
    unbound: "[modes.workspace-write.files.\"opencode.json\".permission]\nbash = \"allow\"\n\
              external_directory = \"allow\"\n",
    state: &[".local/share/opencode", ".config/opencode", "data/agents/opencode/data/opencode"],
};

fn opencode(url: &str, key: &str) -> String {
    format!(
        "[files.\"opencode.json\"]\nenabled_providers = [\"p\"]\nmodel = \"p/m\"\nsmall_model = \"p/m\"\n\
         [files.\"opencode.json\".provider.p]\nnpm = \"@ai-sdk/openai-compatible\"\nname = \"P\"\n\
         options = {{ baseURL = \"{url}/v1\"{key} }}\nmodels = {{ m = {{ name = \"m\", limit = {{ context = 200000, output = 8192 }} }} }}\n"
    )
}

fn offered(tools: &[String], name: &str, arguments: Value) -> Option<ToolCall> {
    tools.iter().find(|tool| tool.as_str() == name).map(|tool| (tool.clone(), arguments))
}

impl Case {
    /// Writes what a user has who wants this agent to talk to the scripted model.
    pub fn configure(&self, home: &Path, programs: &Path, url: &str, is_logged_in: bool, keys: &str, lines: &str) {
        let more = match (self.logged_in, is_logged_in) {
            (Some(logged_in), true) => logged_in(url),
            _ => (self.definition)(url),
        };
        let (name, command) = (self.name, programs.join(self.name));
        let head = format!("extends = \"{name}\"\nname = \"{name}\"\ncommand = '{}'\n{keys}", command.display());
        let text = format!("{head}{more}{lines}");
        write(&home.join(".config/matsu/agents").join(format!("{name}.toml")), &text);
        if is_logged_in {
            for (path, content) in (self.login)(url) {
                write(&home.join(path), &content.as_str().map_or_else(|| content.to_string(), str::to_owned));
            }
        }
    }
}

fn write(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// Whether a request carries this key, wherever the format puts it.
pub fn carries(request: &Recorded, key: &str) -> bool {
    ["authorization", "x-api-key", "x-goog-api-key"]
        .iter()
        .any(|name| request.headers.get(*name).is_some_and(|value| value.contains(key)))
}
