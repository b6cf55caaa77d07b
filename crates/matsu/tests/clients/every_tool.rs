//! Strict clients: the official Python and TypeScript SDKs call every tool, and refuse a reply that does not fit the
//! output schema. The calls are in `tests/clients/every_tool.json`.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::home::Home;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// What `scripts/clients.sh` has installed.
fn installed(what: &str) -> PathBuf {
    let made = Command::new(Path::new(ROOT).join("scripts/clients.sh")).arg(what).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    PathBuf::from(String::from_utf8(made.stdout).unwrap().trim())
}

/// A home with scripted agents and a document to find.
fn home() -> Home {
    let mut home = Home::new();
    let (documents, project) = (home.path("documents"), home.path("project"));
    std::fs::create_dir(&documents).unwrap();
    std::fs::create_dir(&project).unwrap();
    let text = "# Waiting\n\nWaiting in documents is cheap, as measured in 37 cases.\n";
    std::fs::write(documents.join("waiting.md"), text).unwrap();
    matsu_testkit::fake_agents::write(&home.path(".config/matsu/agents")).unwrap();
    home.set("MATSU_RESEARCH_FOLDERS", documents.to_str().unwrap());
    home.set("MATSU_RESEARCH_BROWSER", "off");
    home.set("MATSU_RESEARCH_STEP_MS", "0");
    home
}

#[track_caller]
fn drive(program: &Path, script: &Path) {
    let home = home();
    let _daemon = home.serve();
    let output = Command::new(program)
        .arg(script)
        .arg(home.data_dir())
        .arg(env!("CARGO_BIN_EXE_matsu"))
        .current_dir(home.path("project"))
        .envs(home.settings())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(said.matches(": 22 tools, ").count(), 4, "{said}");
}

#[test]
fn the_python_sdk_accepts_every_reply_of_every_tool() {
    drive(&installed("python"), &Path::new(ROOT).join("tests/clients/every_tool.py"));
}

#[test]
fn the_typescript_sdk_accepts_every_reply_of_every_tool() {
    let sdk = installed("typescript");
    // Modules are looked for beside the file that asks for them.
    for file in ["daemon.mjs", "every_tool.mjs", "every_tool.json"] {
        std::fs::copy(Path::new(ROOT).join("tests/clients").join(file), sdk.join(file)).unwrap();
    }
    drive(Path::new("node"), &sdk.join("every_tool.mjs"));
}
