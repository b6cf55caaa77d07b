//! The other way round: the real command lines as Matsu's clients, set up by `matsu connect` and by nothing else. How
//! many turns of a model waiting costs, that a result finds its way without being asked for, and that all comes out again.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use matsu_testkit::model_server::{Asked, ModelServer, Reply};
use serde_json::{Value, json};

use super::cable::Cable;
use super::cases::KEY;
use super::programs;
use crate::home::{Home, until};
use crate::http::Http;

/// A start of the program and a few turns of its model, on a busy machine.
const SOON: Duration = Duration::from_secs(120);
/// Longer than a call may take by default.
const WAIT_SECONDS: u64 = 75;

/// One command line as its user starts it.
pub struct User {
    name: &'static str,
    arguments: &'static [&'static str],
    environment: fn(url: &str) -> Vec<(&'static str, String)>,
    /// Its own files, before Matsu comes.
    files: fn(url: &str) -> Vec<(&'static str, String)>,
    /// Its file that lists servers.
    servers: &'static str,
    /// That file, rewritten: every call of Matsu's tools ends after so many seconds.
    limited: fn(text: &str, seconds: u64) -> String,
    /// That file with Matsu at an address instead of a program.
    remote: fn(text: &str, url: &str, token: &str) -> String,
}

impl User {
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Claude Code.
    pub fn claude() -> &'static Self {
        &USERS[0]
    }

    /// Its own files, for a model at this address.
    pub fn settle(&self, home: &Home, url: &str) {
        for (name, text) in (self.files)(url) {
            let file = home.path(name);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, text).unwrap();
        }
        std::fs::create_dir_all(home.path("work")).unwrap();
    }

    /// The program with one prompt, in the folder `work`.
    pub fn start(&self, programs: &Path, home: &Home, url: &str, arguments: &[&str], prompt: &str) -> Child {
        let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
        let mut environment = BTreeMap::from([("HOME", home.folder().display().to_string()), ("PATH", path)]);
        environment.extend((self.environment)(url));
        let file = home.path("prompt.txt");
        std::fs::write(&file, prompt).unwrap();
        let mut command = Command::new(programs.join(self.name));
        command.args(arguments).current_dir(home.path("work")).env_clear().envs(environment);
        let output = std::fs::File::create(home.path("client.log")).unwrap();
        command.stdin(std::fs::File::open(file).unwrap()).stdout(output.try_clone().unwrap()).stderr(output);
        command.spawn().unwrap()
    }
}

/// The entry of Matsu in a file of JSON, changed.
fn entry(text: &str, change: impl FnOnce(&mut Value)) -> String {
    let mut all: Value = serde_json::from_str(text).unwrap();
    change(&mut all["mcpServers"]["matsu"]);
    format!("{all:#}\n")
}

/// The same in Codex's file.
fn table(text: &str, change: impl FnOnce(&mut toml::Table)) -> String {
    let mut all: toml::Table = text.parse().unwrap();
    change(all["mcp_servers"]["matsu"].as_table_mut().unwrap());
    all.to_string()
}

const USERS: &[User] = &[
    User {
        name: "claude",
        arguments: &["-p", "--allowedTools", "mcp__matsu"],
        environment: |url| {
            vec![
                ("ANTHROPIC_BASE_URL", url.to_owned()),
                ("ANTHROPIC_API_KEY", KEY.to_owned()),
                ("DISABLE_AUTOUPDATER", "1".to_owned()),
                ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1".to_owned()),
            ]
        },
        files: |_| {
            vec![
                (".claude.json", "{ \"numStartups\": 1 }\n".to_owned()),
                (".claude/CLAUDE.md", "Be brief.".to_owned()),
                (".claude/settings.json", "{\"model\": \"opus\"}".to_owned()),
            ]
        },
        servers: ".claude.json",
        limited: |text, seconds| entry(text, |entry| entry["timeout"] = json!(seconds * 1_000)),
        remote: |text, url, token| {
            let headers = json!({ "Authorization": format!("Bearer {token}") });
            entry(text, |entry| *entry = json!({ "type": "http", "url": url, "headers": headers }))
        },
    },
    User {
        name: "codex",
        // Hooks are trusted and calls are approved by a person at a terminal; in a test there is none.
        arguments: &[
            "exec",
            "--skip-git-repo-check",
            "--dangerously-bypass-hook-trust",
            "-c",
            "mcp_servers.matsu.default_tools_approval_mode=\"approve\"",
            "-",
        ],
        environment: |_| vec![("P_KEY", KEY.to_owned())],
        files: |url| {
            let config = format!(
                "# mine\nmodel = \"gpt-5\"\nmodel_provider = \"p\"\nweb_search = \"disabled\"\n\
                 check_for_update_on_startup = false\n\n[analytics]\nenabled = false\n\n[features]\nplugins = false\n\
                 apps = false\n\n[model_providers.p]\nname = \"p\"\nbase_url = \"{url}/v1\"\nenv_key = \"P_KEY\"\n\
                 wire_api = \"responses\"\nrequest_max_retries = 1\nstream_max_retries = 1\n"
            );
            vec![(".codex/config.toml", config)]
        },
        servers: ".codex/config.toml",
        limited: |text, seconds| {
            let seconds = i64::try_from(seconds).unwrap();
            table(text, |entry| drop(entry.insert("tool_timeout_sec".to_owned(), seconds.into())))
        },
        remote: |text, url, token| {
            let headers = toml::Table::from_iter([("Authorization".to_owned(), format!("Bearer {token}").into())]);
            let servers = [("url".to_owned(), url.into()), ("http_headers".to_owned(), headers.into())];
            table(text, |entry| *entry = toml::Table::from_iter(servers))
        },
    },
    User {
        name: "gemini",
        arguments: &["-m", "gemini-2.5-pro", "--allowed-mcp-server-names", "matsu", "--yolo"],
        environment: |url| vec![("GOOGLE_GEMINI_BASE_URL", url.to_owned()), ("GEMINI_API_KEY", KEY.to_owned())],
        files: |_| {
            let settings = json!({
                "security": { "auth": { "selectedType": "gemini-api-key" }, "folderTrust": { "enabled": false } },
                "general": { "enableAutoUpdate": false }, "privacy": { "usageStatisticsEnabled": false },
            });
            vec![(".gemini/settings.json", format!("{settings:#}\n")), (".gemini/GEMINI.md", "Be brief.\n".to_owned())]
        },
        servers: ".gemini/settings.json",
        limited: |text, seconds| entry(text, |entry| entry["timeout"] = json!(seconds * 1_000)),
        remote: |text, url, token| {
            let headers = json!({ "Authorization": format!("Bearer {token}") });
            entry(text, |entry| *entry = json!({ "httpUrl": url, "headers": headers, "trust": true }))
        },
    },
];

/// A user at their machine: a daemon, a model, and a client that was connected.
pub struct Workplace {
    user: &'static User,
    programs: PathBuf,
    model: ModelServer,
    serve: Child,
    http: Http,
    home: Home,
}

impl Workplace {
    pub fn new(user: &'static User, programs: &Path, reply: impl FnMut(&Asked) -> Reply + Send + 'static) -> Self {
        let home = Home::new();
        let model = ModelServer::with(Box::new(reply)).unwrap();
        user.settle(&home, &model.url());
        // What connect writes names no data directory, so all of this is in the usual one.
        std::fs::create_dir_all(home.path(".local/share/matsu")).unwrap();
        std::os::unix::fs::symlink(home.path(".local/share/matsu"), home.data_dir()).unwrap();
        let agents = home.path(".config/matsu/agents");
        matsu_testkit::fake_agents::write(&agents).unwrap();
        std::fs::write(agents.join("poor.toml"), POOR).unwrap();
        let serve = serve(&home);
        let (_, http) = home.relayed();
        let said = answer(&home, &["connect", user.name, "--yes", "--hooks"]);
        assert_eq!(said["clients"][0]["hold_seconds"], 3_580, "{said}");
        Self { user, programs: programs.to_owned(), model, serve, http, home }
    }

    /// One prompt; what the client printed.
    fn ask(&self, prompt: &str, within: Duration) -> String {
        let mut child = self.begin(prompt);
        let ended = until_or("the client has ended", within, || child.try_wait().unwrap());
        let said = self.printed();
        if ended.is_none() {
            let _ = child.kill();
            let _ = child.wait();
        }
        assert!(ended.is_some_and(|status| status.success()), "{}: {ended:?}\n{said}", self.user.name);
        said
    }

    /// From now on the client gives up its calls after so many seconds.
    pub fn limit_calls(&self, seconds: u64) {
        self.rewrite(|text| (self.user.limited)(text, seconds));
    }

    /// From now on the client reaches the daemon over HTTP, by a way that can be cut.
    pub fn by_cable(&self) -> Cable {
        let cable = Cable::to(self.http.address);
        let url = format!("http://{}/mcp", cable.address);
        self.rewrite(|text| (self.user.remote)(text, &url, &self.http.token));
        cable
    }

    fn rewrite(&self, change: impl FnOnce(&str) -> String) {
        let file = self.home.path(self.user.servers);
        let text = std::fs::read_to_string(&file).unwrap();
        std::fs::write(&file, change(&text)).unwrap();
    }

    /// The client with one prompt, in its project.
    pub fn begin(&self, prompt: &str) -> Child {
        self.user.start(&self.programs, &self.home, &self.model.url(), self.user.arguments, prompt)
    }

    /// What the client printed.
    pub fn printed(&self) -> String {
        std::fs::read_to_string(self.home.path("client.log")).unwrap_or_default()
    }

    /// As a power cut would, whichever process serves at the moment.
    pub fn kill_daemon(&mut self) {
        if let Some((pid, _)) = self.home.announced() {
            crate::home::kill(pid);
        }
        let _ = self.serve.kill();
        let _ = self.serve.wait();
    }

    /// As its user starts it the next morning.
    pub fn serve_again(&mut self) {
        self.serve = serve(&self.home);
    }

    /// Looks at the list, which reads no result.
    pub fn has_ended(&self, task: &str) -> bool {
        let tasks = answer(&self.home, &["tasks"]);
        let all = tasks["items"].as_array().unwrap_or_else(|| panic!("{tasks}"));
        all.iter().any(|one| one["task_id"] == task && one["status"] == "completed")
    }

    fn turns(&self) -> usize {
        self.model.asked().len()
    }
}

impl Drop for Workplace {
    fn drop(&mut self) {
        let _ = self.serve.kill();
        let _ = self.serve.wait();
    }
}

/// An agent that runs out of quota. The name of its conversation carries what it says when it goes on.
const POOR: &str = r#"
name = "poor"
command = "/bin/sh"
args = ["{prompt_file}"]
prompt = "file"
output = "events"
go_on = '''echo "{\"type\":\"result\",\"text\":\"${2#talk-}\"}"'''

[session]
resume = { args = ["resume", "{session}"] }

[quota]
patterns = ["usage limit"]
"#;

fn serve(home: &Home) -> Child {
    let log = std::fs::File::options().create(true).append(true).open(home.path("daemon.log")).unwrap();
    let mut serve = matsu(home, &["serve", "--test-jobs", "--port", "0"]);
    serve.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log).spawn().unwrap()
}

/// The program as this user types it.
fn matsu(home: &Home, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_matsu"));
    command.env_clear().env("HOME", home.folder()).env("PATH", std::env::var("PATH").unwrap()).args(args);
    command
}

fn answer(home: &Home, args: &[&str]) -> Value {
    let output = matsu(home, &[args, &["--json"]].concat()).output().unwrap();
    assert!(output.status.success(), "{args:?}: {output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

pub fn until_or<T>(what: &str, within: Duration, mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let began = Instant::now();
    while began.elapsed() < within {
        if let Some(found) = look() {
            return Some(found);
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    eprintln!("not within {within:?}: {what}");
    None
}

/// The name under which a client offers one of our tools. Some tell the model only of names until it asks.
pub fn name_of(asked: &Asked, tool: &str) -> String {
    let listed = asked.tools.iter().find(|name| name.ends_with(tool)).cloned();
    listed.unwrap_or_else(|| format!("mcp__matsu__{tool}"))
}

const WAIT: &str = "Wait for it.";

/// Clients ask their models for titles and the like, too.
fn is_about_the_wait(asked: &Asked) -> bool {
    asked.messages.iter().any(|message| message.contains(WAIT))
}

/// For every client, and the first failure is the test's own.
pub fn for_each(what: &str, check: impl Fn(&'static User, &Path) -> String) {
    let Some(programs) = programs(what) else { return };
    let wanted = std::env::var("MATSU_TEST_AGENT").ok();
    let mut failed = Vec::new();
    for user in USERS.iter().filter(|user| wanted.as_ref().is_none_or(|wanted| wanted == user.name)) {
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| check(user, &programs)));
        println!("result: {what} | {} | {}", user.name, outcome.as_deref().unwrap_or("**no**"));
        if outcome.is_err() {
            failed.push(user.name);
        }
    }
    assert!(failed.is_empty(), "{what}: {failed:?}");
}

#[test]
fn connect_waits_in_one_call() {
    let seconds = std::env::var("MATSU_TEST_WAIT").ok().and_then(|text| text.parse().ok()).unwrap_or(WAIT_SECONDS);
    for_each(&format!("turns of the model while it waits {seconds} s, set up by `matsu connect`"), |user, programs| {
        let task = Arc::new(Mutex::new(String::new()));
        let wanted = Arc::clone(&task);
        let workplace = Workplace::new(user, programs, move |asked| {
            let is_over = asked.results.iter().any(|result| result.contains("completed"));
            if is_over || !is_about_the_wait(asked) {
                return Reply::text("It is done.");
            }
            let wait = json!({ "task_id": *wanted.lock().unwrap(), "timeout": 3_580, "wait_for": "all" });
            Reply::tool(&name_of(asked, "get_task_status"), wait)
        });
        let began = Instant::now();
        *task.lock().unwrap() = workplace.http.submit(seconds * 1_000);
        workplace.ask(WAIT, SOON + Duration::from_secs(seconds));
        let all = workplace.model.asked();
        let asked: Vec<&Asked> = all.iter().filter_map(|request| request.asked.as_ref()).collect();
        let last = asked.last().map(|asked| (&asked.tools, &asked.results));
        assert!(began.elapsed() >= Duration::from_secs(seconds), "{}: it did not wait: {last:?}", user.name);
        // The turn that begins the wait is no waiting, and the one that has the answer neither.
        let turns = asked.iter().filter(|asked| is_about_the_wait(asked)).count().saturating_sub(2);
        assert!(turns <= 3, "{}: {turns} turns", user.name);
        turns.to_string()
    });
}

#[test]
fn connect_brings_an_unread_result_without_a_poll() {
    for_each("an unread result reaches the model by a hook, without a poll", |user, programs| {
        let workplace = Workplace::new(user, programs, |_| Reply::text("My turn is over."));
        let task = workplace.http.submit(1);
        until("the task has ended", SOON, || workplace.has_ended(&task).then_some(()));
        workplace.ask("Hello.", SOON);
        let asked = workplace.model.asked();
        let knows = |n: usize| {
            asked[n].asked.as_ref().is_some_and(|asked| asked.messages.iter().any(|text| text.contains(&task)))
        };
        let notified_at = (0..asked.len()).find(|n| knows(*n));
        assert!(notified_at.is_some(), "{}: not notified, in {} turns", user.name, workplace.turns());
        let reason = "the result is unread";
        let kept = asked.iter().any(|request| {
            request.asked.as_ref().is_some_and(|asked| asked.messages.iter().any(|text| text.contains(reason)))
        });
        assert!(kept, "{}: the turn was not kept going", user.name);
        assert!(asked.iter().all(|request| request.asked.as_ref().is_none_or(|asked| asked.results.is_empty())));
        "yes".to_owned()
    });
}

#[test]
fn connect_comes_out_of_files_that_were_used() {
    for_each("`connect --undo` after use removes everything of Matsu and nothing else", |user, programs| {
        let workplace = Workplace::new(user, programs, |_| Reply::text("My turn is over."));
        workplace.ask("Hello.", SOON);
        answer(&workplace.home, &["connect", user.name, "--undo"]);
        for (name, text) in (user.files)(&workplace.model.url()) {
            let left = std::fs::read_to_string(workplace.home.path(name)).unwrap();
            assert!(!left.contains("matsu"), "{name}: {left}");
            // A client may write its own file anew; what its user put there is still there.
            match (serde_json::from_str::<Value>(&text), serde_json::from_str::<Value>(&left)) {
                (Ok(Value::Object(had)), Ok(left)) if left != Value::Object(had.clone()) => {
                    for (key, value) in had.iter().filter(|(key, _)| key.as_str() != "numStartups") {
                        assert_eq!(left[key], *value, "{name}: {key}");
                    }
                }
                _ => assert_eq!(left, text, "{name}"),
            }
        }
        "yes".to_owned()
    });
}
