//! Which pages are typed, and how. Tidy compares this with the pages that show commands.

use std::path::Path;
use std::process::Command;

use super::{ROOT, Reader};
use crate::home::run;

/// A person with one client and no agent, in the folder of the project.
pub const LINE_BY_LINE: &[&str] = &["README.md", "docs/README.md", "docs/clients.md"];

/// Typed against a PostgreSQL server.
pub const MANY_MACHINES: &[&str] = &["docs/many-machines.md"];

/// A person with agents, in a repository of their own; each block is one script.
const IN_A_REPOSITORY: &[&str] =
    &["docs/agents.md", "docs/rest.md", "docs/schedules.md", "docs/security.md", "docs/webhooks.md"];

/// What a page shows as a block, without the prompt and what follows `#`.
fn scripts(page: &str) -> Vec<String> {
    let path = Path::new(ROOT).join(page);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let (mut found, mut inside) = (Vec::new(), None);
    for line in text.lines() {
        match (line.strip_prefix("```"), &mut inside) {
            (Some("sh" | "console"), None) => inside = Some(Some(String::new())),
            (Some(_), None) => inside = Some(None),
            (Some(_), Some(script)) => {
                found.extend(script.take());
                inside = None;
            }
            (None, Some(Some(script))) => {
                script.push_str(line.strip_prefix("$ ").unwrap_or(line));
                script.push('\n');
            }
            (None, _) => {}
        }
    }
    assert!(!found.is_empty(), "{page} shows no commands");
    found
}

/// A program that takes the message and changes a file.
const AGENT: &str = "#!/bin/sh\ncat >/dev/null\necho hello >>greeting\necho done\n";

fn definition(name: &str, program: &str) -> String {
    format!(
        "name = \"{name}\"\ncommand = \"{program}\"\nprompt = \"stdin\"\noutput = \"text\"\n\
         [session]\nchoose = true\nresume = {{ args = [] }}\n"
    )
}

fn git(folder: &Path, args: &[&str]) {
    let mut command = Command::new("git");
    command.args(["-c", "user.name=t", "-c", "user.email=t@example.org"]).args(args).current_dir(folder);
    let ran = run(command);
    assert_eq!(ran.code, 0, "{args:?}: {ran:?}");
}

#[test]
fn what_the_book_shows_can_be_typed_in_a_repository() {
    let reader = Reader::new();
    let (home, work) = (&reader.home, reader.home.path("work"));
    std::fs::create_dir_all(work.join("docs")).unwrap();
    std::fs::create_dir_all(home.path("work/site")).unwrap();
    std::fs::write(work.join("docs/polling.md"), "# Polling\n\nA long poll is answered when something changes.\n")
        .unwrap();
    std::fs::write(work.join("Makefile"), "test:\n\tgrep -q hello greeting\n").unwrap();
    std::fs::write(work.join("issue.json"), r#"{"issue": {"title": "t", "html_url": "https://example.org/1"}}"#)
        .unwrap();
    git(&work, &["init", "--quiet"]);
    git(&work, &["add", "."]);
    git(&work, &["commit", "--quiet", "-m", "begin"]);
    let program = home.path("bin/agent");
    std::fs::write(&program, AGENT).unwrap();
    std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let settings = home.path(".config/matsu");
    std::fs::create_dir_all(settings.join("agents")).unwrap();
    for name in ["claude", "codex", "gemini"] {
        let text = definition(name, program.to_str().unwrap());
        std::fs::write(settings.join(format!("agents/{name}.toml")), text).unwrap();
    }
    // Confinement has tests of its own, and the program lies where a confined run reads nothing.
    let text =
        format!("[agents]\nmode_max = \"workspace-write\"\nconfine = \"open\"\nroots = \"{}\"\n", work.display());
    std::fs::write(settings.join("config.toml"), text).unwrap();

    let daemon = reader.serve("matsu serve");
    for page in IN_A_REPOSITORY {
        for script in scripts(page) {
            let script = script.replace("127.0.0.1:7878", &daemon.api.address.to_string());
            let mut typed = reader.typed(&format!("set -e\n{script}"));
            typed.current_dir(&work);
            let ran = run(typed);
            assert_eq!(ran.code, 0, "{page}: {script}: {ran:?}\n{}", daemon.process.printed());
        }
    }
}
