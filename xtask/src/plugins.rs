//! The plugins of AI clients, generated from `plugins/source` and `release.json`: `cargo run -p xtask -- plugins`.
//!
//! Every client has another layout for the same things. They are written here once; a test compares what is in the
//! repository with what would be generated.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde_json::{Value, json};

/// How long a client lets one call take, in seconds, where the plugin may set it. `matsu connect` uses the same.
const CALL_SECONDS: u64 = 3_600;
/// Answered before the client gives up.
const MARGIN_SECONDS: u64 = 20;
/// For clients whose limit a plugin cannot set: most give up after a minute.
const SHORT_HOLD_SECONDS: u64 = 40;

const VERSION: &str = env!("CARGO_PKG_VERSION");
const COMMANDS: &[(&str, &str)] =
    &[("handover", "Give work to another agent"), ("results", "What Matsu is doing, and unread results")];

/// Paths relative to the root of the repository, and the text of each file.
type Files = BTreeMap<String, String>;

struct Source {
    root: PathBuf,
    release: Value,
}

/// Writes all files, and removes what an earlier version of this generator left.
pub fn write() -> ExitCode {
    match Source::load().and_then(|source| source.write()) {
        Ok(count) => {
            println!("plugins: {count} files written");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("plugins: {error}");
            ExitCode::FAILURE
        }
    }
}

impl Source {
    fn load() -> io::Result<Self> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let release = serde_json::from_str(&std::fs::read_to_string(root.join("release.json"))?)?;
        Ok(Self { root, release })
    }

    fn write(&self) -> io::Result<usize> {
        for folder in ["claude", "codex", "gemini", "agent-plugins"] {
            let folder = self.root.join("plugins").join(folder);
            if folder.exists() {
                std::fs::remove_dir_all(folder)?;
            }
        }
        let files = self.files()?;
        for (path, text) in &files {
            let path = self.root.join(path);
            if let Some(parent) = path.parent() {
                std::fs::create_dir_all(parent)?;
            }
            std::fs::write(path, text)?;
        }
        Ok(files.len())
    }

    fn files(&self) -> io::Result<Files> {
        let mut files = Files::new();
        self.claude(&mut files)?;
        self.codex(&mut files)?;
        self.gemini(&mut files)?;
        self.agent_plugins(&mut files)?;
        Ok(files)
    }

    fn text(&self, name: &str) -> io::Result<String> {
        std::fs::read_to_string(self.root.join("plugins/source").join(name))
    }

    fn readme(&self, client: &str) -> io::Result<String> {
        let text = self.text("README.md")?;
        let repository = self.release["repository"].as_str().unwrap_or_default();
        Ok(format!(
            "# Matsu for {client}\n\n{}",
            text.replace("{{client}}", client).replace("{{repository}}", repository)
        ))
    }

    /// What every manifest says.
    fn identity(&self) -> Value {
        let release = &self.release;
        json!({
            "name": release["plugin"],
            "version": VERSION,
            "description": release["summary"],
            "author": { "name": release["title"], "url": release["repository"] },
            "homepage": release["repository"],
            "repository": release["repository"],
            "license": "MIT OR Apache-2.0",
            "keywords": release["keywords"],
        })
    }

    fn claude(&self, files: &mut Files) -> io::Result<()> {
        let base = "plugins/claude";
        put(files, &format!("{base}/.claude-plugin/plugin.json"), &self.identity());
        let mut server = server(CALL_SECONDS - MARGIN_SECONDS, true);
        server["type"] = json!("stdio");
        server["timeout"] = json!(CALL_SECONDS * 1_000);
        put(files, &format!("{base}/.mcp.json"), &json!({ "mcpServers": { "matsu": server } }));
        put(files, &format!("{base}/hooks/hooks.json"), &hooks("Stop", "UserPromptSubmit", 10));
        let monitors = json!([{
            "name": "news",
            "description": "Work given to Matsu that has ended",
            "command": "sh \"${CLAUDE_PLUGIN_ROOT}/monitors/news.sh\"",
        }]);
        put(files, &format!("{base}/monitors/monitors.json"), &monitors);
        files.insert(format!("{base}/monitors/news.sh"), self.text("news.sh")?);
        files.insert(format!("{base}/skills/matsu/SKILL.md"), self.text("skill.md")?);
        for (name, description) in COMMANDS {
            let body = self.text(&format!("{name}.md"))?.replace("{{arguments}}", "$ARGUMENTS");
            files.insert(
                format!("{base}/commands/{name}.md"),
                format!("---\ndescription: {description}\n---\n\n{body}"),
            );
        }
        files.insert(format!("{base}/README.md"), self.readme("Claude Code")?);
        let marketplace = json!({
            "name": "matsu",
            "description": self.release["summary"],
            "owner": { "name": self.release["title"] },
            "plugins": [{
                "name": self.release["plugin"],
                "source": "./plugins/claude",
                "description": self.release["summary"],
                "category": "productivity",
            }],
        });
        put(files, ".claude-plugin/marketplace.json", &marketplace);
        Ok(())
    }

    fn codex(&self, files: &mut Files) -> io::Result<()> {
        let base = "plugins/codex";
        let mut manifest = self.identity();
        manifest["skills"] = json!("./skills/");
        manifest["mcpServers"] = json!("./.mcp.json");
        manifest["hooks"] = json!("./hooks/hooks.json");
        manifest["interface"] = json!({
            "displayName": self.release["title"],
            "shortDescription": "Start slow work and wait without polling",
            "longDescription": self.release["summary"],
            "developerName": self.release["title"],
            "category": "Productivity",
            "capabilities": ["Interactive", "Write"],
            "defaultPrompt": ["What is Matsu still working on?"],
        });
        put(files, &format!("{base}/.codex-plugin/plugin.json"), &manifest);
        let mut server = server(CALL_SECONDS - MARGIN_SECONDS, true);
        server["tool_timeout_sec"] = json!(CALL_SECONDS);
        server["startup_timeout_sec"] = json!(30);
        put(files, &format!("{base}/.mcp.json"), &json!({ "mcpServers": { "matsu": server } }));
        put(files, &format!("{base}/hooks/hooks.json"), &hooks("Stop", "UserPromptSubmit", 10));
        files.insert(format!("{base}/skills/matsu/SKILL.md"), self.text("skill.md")?);
        files.insert(format!("{base}/README.md"), self.readme("Codex")?);
        let marketplace = json!({
            "name": "matsu",
            "interface": { "displayName": self.release["title"] },
            "plugins": [{
                "name": self.release["plugin"],
                "source": { "source": "local", "path": "./plugins/codex" },
                "policy": { "installation": "AVAILABLE", "authentication": "ON_INSTALL" },
                "category": "Productivity",
            }],
        });
        put(files, ".agents/plugins/marketplace.json", &marketplace);
        Ok(())
    }

    fn gemini(&self, files: &mut Files) -> io::Result<()> {
        let base = "plugins/gemini";
        let mut server = server(CALL_SECONDS - MARGIN_SECONDS, true);
        server["timeout"] = json!(CALL_SECONDS * 1_000);
        let manifest = json!({
            "name": self.release["plugin"],
            "version": VERSION,
            "description": self.release["summary"],
            "contextFileName": "GEMINI.md",
            "mcpServers": { "matsu": server },
        });
        put(files, &format!("{base}/gemini-extension.json"), &manifest);
        put(files, &format!("{base}/hooks/hooks.json"), &hooks("AfterAgent", "BeforeAgent", 10_000));
        let skill = self.text("skill.md")?;
        let rules = skill.splitn(3, "---\n").nth(2).unwrap_or_default().trim_start();
        files.insert(format!("{base}/GEMINI.md"), rules.to_owned());
        for (name, description) in COMMANDS {
            let body = self.text(&format!("{name}.md"))?.replace("{{arguments}}", "{{args}}");
            let text = format!("description = {}\nprompt = '''\n{body}'''\n", Value::from(*description));
            files.insert(format!("{base}/commands/matsu/{name}.toml"), text);
        }
        files.insert(format!("{base}/README.md"), self.readme("Gemini CLI")?);
        Ok(())
    }

    fn agent_plugins(&self, files: &mut Files) -> io::Result<()> {
        let base = "plugins/agent-plugins";
        let mut manifest = self.identity();
        manifest["$schema"] = json!("https://agent-plugins.org/schemas/1.0.0/plugin.schema.json");
        put(files, &format!("{base}/plugin.json"), &manifest);
        // The format has no key for a limit, and its servers start in the folder of the plugin.
        let mut server = server(SHORT_HOLD_SECONDS, false);
        server["type"] = json!("stdio");
        let servers = json!({
            "$schema": "https://agent-plugins.org/schemas/1.0.0/mcp.schema.json",
            "mcpServers": { "matsu": server },
        });
        put(files, &format!("{base}/mcp.json"), &servers);
        files.insert(format!("{base}/skills/matsu/SKILL.md"), self.text("skill.md")?);
        files.insert(format!("{base}/README.md"), self.readme("clients of Agent Plugins 1.0")?);
        Ok(())
    }
}

/// `in_project`: the client starts the server in the project it works on.
fn server(hold: u64, in_project: bool) -> Value {
    let hold = hold.to_string();
    let mut args = vec!["mcp"];
    if in_project {
        args.extend(["--root", "."]);
    }
    args.extend(["--hold", hold.as_str()]);
    json!({ "command": "matsu", "args": args })
}

fn hooks(at_end: &str, at_prompt: &str, timeout: u32) -> Value {
    let hook = |verb: &str| json!([{ "hooks": [{ "type": "command", "command": format!("matsu hook {verb}"), "timeout": timeout }] }]);
    json!({ "hooks": { at_end: hook("stop"), at_prompt: hook("prompt") } })
}

fn put(files: &mut Files, path: &str, value: &Value) {
    files.insert(path.to_owned(), format!("{value:#}\n"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_repository_holds_what_would_be_generated() {
        let source = Source::load().unwrap();
        for (path, text) in source.files().unwrap() {
            let present = std::fs::read_to_string(source.root.join(&path)).unwrap_or_default();
            assert!(present == text, "{path} is out of date; run `cargo run -p xtask -- plugins`");
        }
    }

    #[test]
    fn every_manifest_carries_the_version_of_the_workspace() {
        let files = Source::load().unwrap().files().unwrap();
        let manifests = ["plugins/claude/.claude-plugin", "plugins/codex/.codex-plugin", "plugins/agent-plugins"]
            .map(|folder| format!("{folder}/plugin.json"));
        for path in manifests.iter().map(String::as_str).chain(["plugins/gemini/gemini-extension.json"]) {
            let manifest: Value = serde_json::from_str(&files[path]).unwrap();
            assert_eq!(manifest["version"], VERSION, "{path}");
        }
    }
}
