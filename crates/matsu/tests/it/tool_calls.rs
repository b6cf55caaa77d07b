//! `matsu call`: tools from a shell, with and without a daemon.

use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::home::Home;

#[test]
fn the_page_about_tools_is_what_the_tools_say() {
    let home = Home::sqlite();
    let printed = home.run(&["call", "--reference"]).good();
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/tools.md");
    let written = std::fs::read_to_string(page).unwrap();
    assert_eq!(written.trim_end(), printed.out.trim_end(), "run: matsu call --reference > docs/tools.md");
}

#[test]
fn the_page_of_the_routes_is_what_the_program_prints() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/rest.md");
    let printed = Home::sqlite().run(&["call", "--rest-reference"]).good();
    let written = std::fs::read_to_string(page).unwrap_or_default();
    assert_eq!(written.trim_end(), printed.out.trim_end(), "run: matsu call --rest-reference > docs/reference/rest.md");
}

#[test]
fn arguments_come_from_the_line_a_file_or_stdin_and_tools_are_listed() {
    let home = Home::sqlite();
    let listed = home.run_json(&["call"]);
    assert_eq!(listed["items"].as_array().unwrap().len(), 22, "{listed}");
    let schema = home.run_json(&["call", "cancel_task", "--schema"]);
    assert_eq!(schema["input_schema"]["required"], json!(["task_id"]), "{schema}");
    let file = home.path("arguments.json");
    std::fs::write(&file, r#"{"query":"Is it so?"}"#).unwrap();
    let made = home.run_json(&["call", "create_task", &format!("@{}", file.display())]);
    assert_eq!(made["query"], "Is it so?", "{made}");
    let mut child = home.command(&["call", "create_task", "-", "--json"]);
    let mut child = child.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), br#"{"query":"And this?"}"#).unwrap();
    let said: Value = serde_json::from_slice(&child.wait_with_output().unwrap().stdout).unwrap();
    assert_eq!(said["query"], "And this?", "{said}");
    let unknown = home.run(&["call", "use_agnt"]);
    assert!(unknown.code != 0 && unknown.err.contains("there is no tool use_agnt"), "{unknown:?}");
}
