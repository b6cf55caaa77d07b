//! The commands of the README and of the book's first pages are typed as they stand there: what is documented works.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::api::until;
use crate::home::{Backend, Daemon, Home, run};

mod pages;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
const SOON: Duration = Duration::from_secs(30);

/// The lines of fenced blocks of one kind.
fn lines(file: &str, wanted: &str) -> Vec<String> {
    let path = Path::new(ROOT).join(file);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut found = Vec::new();
    let mut inside = None;
    for line in text.lines() {
        if let Some(kind) = line.strip_prefix("```") {
            inside = if inside.is_none() { Some(kind) } else { None };
        } else if inside == Some(wanted) {
            found.push(line.to_owned());
        }
    }
    assert!(!found.is_empty(), "{file} shows no {wanted}");
    found
}

/// Commands of fenced `sh` blocks, without the comments.
fn commands(file: &str) -> Vec<String> {
    let lines = lines(file, "sh");
    let commands = lines.iter().map(|line| line.split(" #").next().unwrap_or("").trim());
    commands.filter(|command| !command.is_empty() && !command.starts_with('#')).map(str::to_owned).collect()
}

/// A user with `matsu` in their path, one client installed, and no setting for where data lies.
struct Reader {
    home: Home,
}

impl Reader {
    fn new() -> Self {
        let home = Home::sqlite();
        std::fs::create_dir_all(home.path("bin")).unwrap();
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_matsu"), home.path("bin/matsu")).unwrap();
        std::fs::write(home.path(".claude.json"), "{}\n").unwrap();
        Self { home }
    }

    fn data_dir(&self) -> PathBuf {
        self.home.path(".local/share/matsu")
    }

    /// A line, as a shell takes it.
    fn typed(&self, line: &str) -> Command {
        let mut command = Command::new("sh");
        let path = format!("{}:{}", self.home.path("bin").display(), std::env::var("PATH").unwrap());
        command.args(["-c", line]).current_dir(ROOT).env_clear().env("HOME", self.home.path("")).env("PATH", path);
        command
    }

    fn serve(&self, line: &str) -> Daemon {
        // The shell makes way for the program, so that the process is the one that announces itself.
        let process = self.home.start_command(self.typed(&format!("exec {line} --port 0")));
        Daemon::announced(process, &self.data_dir())
    }
}

/// A command that would ask a person at a terminal gets a flag instead. What cannot be done within a test is marked
/// `no-run` on its page.
fn typable(command: &str) -> String {
    let words: Vec<&str> = command.split_whitespace().collect();
    match words.as_slice() {
        // Without a session bus in the environment, setup finds no service manager and installs no service.
        ["matsu", "setup"] => "matsu setup --yes".to_owned(),
        ["matsu", "open"] => "matsu open --print".to_owned(),
        ["matsu", "connect", rest @ ..] if !rest.contains(&"--undo") => format!("{command} --yes"),
        _ => command.to_owned(),
    }
}

#[test]
fn what_the_readme_shows_can_be_typed() {
    let reader = Reader::new();
    let daemon = reader.serve("matsu serve");
    let mut typed = 0;
    for file in pages::LINE_BY_LINE {
        for command in commands(file).iter().filter(|command| !command.contains("postgres://")) {
            let line = typable(command).replace("127.0.0.1:7878", &daemon.api.address.to_string());
            let ran = run(reader.typed(&line));
            assert_eq!(ran.code, 0, "{file}: {command}: {ran:?}");
            if command.starts_with("matsu research") {
                let answer = ran.out.split("## Answer").nth(1).unwrap_or_default();
                assert!(answer.trim_start().starts_with("- "), "{file}: {command}: the report answers: {ran:?}");
            }
            typed += 1;
        }
    }
    assert!(typed > 15, "{typed} commands");
}

/// Only the figures differ from machine to machine.
#[test]
fn the_demonstration_prints_what_the_readme_shows() {
    let without_figures = |line: &str| {
        let line = line.trim().replace(|c: char| c.is_ascii_digit(), "0");
        let mut plain = String::new();
        line.chars().for_each(|c| {
            if c != '0' || !plain.ends_with('0') {
                plain.push(c)
            }
        });
        plain
    };
    let ran = run(Reader::new().typed("matsu demo"));
    assert_eq!(ran.code, 0, "{ran:?}");
    let printed: Vec<String> = ran.out.lines().map(without_figures).collect();
    let shown = lines("README.md", "text");
    assert!(shown.len() > 8, "{shown:?}");
    for line in shown.iter().filter(|line| !line.is_empty() && line.as_str() != "…") {
        assert!(printed.contains(&without_figures(line)), "{line:?} is not in {printed:#?}");
    }
}

/// The tasks and command lines of the recipes are not here; everything else about the calls must be right.
#[test]
fn what_the_recipes_call_is_understood() {
    let home = Home::sqlite();
    let daemon = home.serve();
    let calls = lines("docs/recipes.md", "json");
    assert!(calls.len() >= 8, "{calls:?}");
    for call in calls {
        let (tool, arguments) = call.split_once(' ').unwrap();
        let arguments: Value = serde_json::from_str(arguments.trim()).unwrap_or_else(|error| panic!("{call}: {error}"));
        let answer = daemon.api.post(&format!("/api/v1/tools/{tool}"), &arguments);
        let code = answer["error_code"].as_str();
        let is_absent = matches!(code, Some("TASK_NOT_FOUND" | "AGENT_NOT_INSTALLED" | "AGENT_NOT_FOUND"));
        assert!(answer["ok"] == true || is_absent, "{call}: {answer}");
    }
}

#[test]
fn what_the_readme_says_about_more_machines_can_be_typed() {
    let reader = Reader::new();
    let store = Home::new(Backend::Postgres).store.clone();
    let of = |page: &str| -> Vec<String> {
        commands(page).into_iter().filter(|line| line.contains("postgres://")).collect()
    };
    let lines = of("README.md");
    for page in pages::MANY_MACHINES {
        assert_eq!(of(page), lines, "{page} shows the same commands");
    }
    let [serve, worker] = lines.as_slice() else { panic!("{lines:?}") };
    let daemon = reader.serve(&serve.replace("postgres://user@host/db", &store));
    let line = format!("exec {}", worker.replace("postgres://user@host/db", &store));
    let _worker = reader.home.start_command(reader.typed(&line));
    until("both nodes are known", SOON, || {
        (daemon.api.get("/api/v1/nodes")["items"].as_array().unwrap().len() == 2).then_some(())
    });
}

#[test]
fn makefile_targets_that_are_shown_exist() {
    let makefile = std::fs::read_to_string(Path::new(ROOT).join("Makefile")).unwrap();
    for file in ["README.md", "docs/README.md", "CONTRIBUTING.md"] {
        let text = std::fs::read_to_string(Path::new(ROOT).join(file)).unwrap();
        for part in text.split(['`', '\n']).filter_map(|part| part.trim().strip_prefix("make ")) {
            let target = part.split_whitespace().next().unwrap_or("");
            if target.chars().all(|c| c.is_ascii_lowercase()) && !target.is_empty() {
                assert!(makefile.contains(&format!("\n{target}:")), "{file} shows make {target}");
            }
        }
    }
}
