//! Attacks from inside runs, at every level of confinement that this machine offers, as root and as an ordinary user.
//! Each attack is a script that an agent executes. At `sealed` all of them fail; what `fenced` does not stop is named
//! in the table of SECURITY.md and in these tests.

mod allowed;
mod files;
mod gaps;
mod identity;
mod linked;
mod machines;
mod made_repository;
mod other_runs;
mod outage;
mod processes;
mod shared;
mod state;
mod view;

use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use matsu_testkit::skipped::skipped;
use serde_json::{Value, json};

use crate::home::Home;
use crate::stdio::Client;

/// No user of any machine; the tests become it where they run as root.
pub const ORDINARY: u32 = 54_321;

pub const SECRET: &str = "the secret of another user";

/// A home with a daemon at one level, a project, and secrets beside it.
pub struct Yard {
    // Goes first: it would start a daemon again after the home has ended its own.
    client: Client,
    pub home: Home,
    pub project: PathBuf,
    pub level: &'static str,
    pub is_root: bool,
}

impl Yard {
    fn new(level: &'static str, user: Option<u32>, prepare: &dyn Fn(&mut Home)) -> Self {
        let mut home = user.map_or_else(Home::new, Home::of_user);
        let project = home.path("project");
        std::fs::create_dir_all(&project).unwrap();
        let config = home.path(".config/matsu");
        matsu_testkit::fake_agents::write(&config.join("agents")).unwrap();
        let settings = format!("[agents]\nconfine = \"{level}\"\nmode_max = \"workspace-write\"\n");
        std::fs::write(config.join("config.toml"), settings).unwrap();
        for name in [".ssh/id_ed25519", ".aws/credentials", ".netrc", "elsewhere/notes.txt", ".local/share/keyrings/k"]
        {
            let path = home.path(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, SECRET).unwrap();
        }
        prepare(&mut home);
        home.give_away();
        let client = Client::legacy(&home, &["--root", home.folder().to_str().unwrap()]);
        let is_root = user.is_none() && std::fs::metadata("/proc/self").is_ok_and(|meta| meta.uid() == 0);
        Self { home, project, level, is_root, client }
    }

    pub fn is_sealed(&self) -> bool {
        self.level == "sealed"
    }

    pub fn show(&self) -> String {
        format!("{} as {}", self.level, if self.is_root { "root" } else { "an ordinary user" })
    }

    /// Starts a script as an agent in a folder of the home.
    pub fn start(&mut self, folder: &str, script: &str, more: Value) -> Value {
        let directory = self.home.path(folder);
        let mut arguments = json!({ "cli_name": "script", "message": script, "run_async": true,
            "working_directory": directory, "isolation": "none" });
        arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self.client.call("use_agent", &arguments)
    }

    pub fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        self.client.call(tool, arguments)
    }

    /// What `list_agents` says about the agent of the attacks.
    pub fn listed(&mut self) -> Value {
        let listed = self.call("list_agents", &json!({}));
        let agents = listed["agents"].as_array().unwrap();
        agents.iter().find(|agent| agent["name"] == "script").unwrap().clone()
    }

    pub fn end_of(&mut self, task: &Value) -> Value {
        let wait = json!({ "task_id": task, "timeout": 20, "wait_for": "all" });
        for _ in 0..6 {
            let reply = self.client.call("get_task_status", &wait);
            if ["completed", "failed", "cancelled"].contains(&reply["status"].as_str().unwrap_or_default()) {
                return reply;
            }
        }
        panic!("{task} does not end");
    }

    /// What a script in the project prints; it may fail.
    pub fn attack(&mut self, script: &str) -> String {
        self.attack_in("project", script, json!({}))
    }

    pub fn attack_in(&mut self, folder: &str, script: &str, more: Value) -> String {
        // Backwards: secrets that the daemon knows are redacted in what a run prints, and would not be seen here.
        let script = format!("{{\n{script}\n}} 2>&1 | sed '/\\n/!G;s/\\(.\\)\\(.*\\n\\)/&\\2\\1/;//D;s/.//'\ntrue\n");
        let begun = self.start(folder, &script, more);
        let task = &begun["task_id"];
        assert!(task.is_string(), "{}: {begun}", self.show());
        let end = self.end_of(task);
        assert_eq!(end["status"], "completed", "{}: {end}", self.show());
        let lines = end["result"].as_str().unwrap_or_default().lines();
        lines.map(|line| line.chars().rev().chain(['\n']).collect::<String>()).collect()
    }

    pub fn token(&self) -> String {
        std::fs::read_to_string(self.home.data_dir().join("token")).unwrap().trim().to_owned()
    }
}

/// Every level, as root and as an ordinary user. A level that this machine cannot offer is skipped, with a line about
/// it.
pub fn at_every_level(test: impl Fn(&mut Yard)) {
    prepared(&|_| (), test);
}

/// The same, in homes that are prepared before their daemon starts.
pub fn prepared(prepare: &dyn Fn(&mut Home), test: impl Fn(&mut Yard)) {
    at_levels(&["sealed", "fenced"], prepare, test);
}

/// These levels, as root and as an ordinary user.
pub fn at_levels(levels: &[&'static str], prepare: &dyn Fn(&mut Home), test: impl Fn(&mut Yard)) {
    let is_root = std::fs::metadata("/proc/self").is_ok_and(|meta| meta.uid() == 0);
    let users: &[Option<u32>] = if is_root { &[None, Some(ORDINARY)] } else { &[None] };
    for level in levels {
        for user in users {
            let mut yard = Yard::new(level, *user, prepare);
            let script = yard.listed();
            if script["confinement"] != *level {
                skipped(&format!("this machine cannot run agents {}: {script}", yard.show()));
                assert!(std::env::var_os("MATSU_TEST_LEVELS").is_none(), "{} must be tried here", yard.show());
                continue;
            }
            test(&mut yard);
        }
    }
    if !is_root {
        skipped("only root can try the attacks as root too");
    }
}

/// A script that holds Python.
pub fn python(text: &str) -> String {
    format!("python3 - <<'PYTHON'\n{text}\nPYTHON")
}
