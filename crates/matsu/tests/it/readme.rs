//! The commands of the README and of the book's first page are run as they stand there: what is documented works.

use std::path::Path;

use crate::home::{Home, run};

/// Commands of fenced `sh` blocks, comments and placeholders aside.
fn commands(file: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(file);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut found = Vec::new();
    let mut inside = false;
    for line in text.lines() {
        if let Some(kind) = line.strip_prefix("```") {
            inside = !inside && kind == "sh";
            continue;
        }
        let command = line.split(" #").next().unwrap_or("").trim();
        if inside && !command.is_empty() && !command.starts_with('#') {
            found.push(command.to_owned());
        }
    }
    assert!(!found.is_empty(), "{file} shows no command");
    found
}

/// What a test cannot do as it stands: build the product, or leave this machine.
fn is_elsewhere(command: &str) -> bool {
    ["make ", "docker ", "systemctl ", "install ", "cargo "].iter().any(|start| command.starts_with(start))
        || command.contains("postgres://")
}

#[test]
fn what_the_readme_shows_can_be_typed() {
    let home = Home::sqlite();
    let daemon = home.serve();
    for file in ["README.md", "docs/README.md", "docs/clients.md"] {
        for command in commands(file).into_iter().filter(|command| !is_elsewhere(command)) {
            let mut words = command.split_whitespace();
            match words.next() {
                Some("matsu") => {}
                Some("curl") => continue,
                other => panic!("{file}: nobody runs {other:?} here: {command}"),
            }
            let arguments: Vec<&str> = words.map(|word| word.trim_matches('\'')).collect();
            let arguments = match arguments.as_slice() {
                ["connect", rest @ ..] if !rest.contains(&"--undo") => {
                    // A fresh home has no client; one is named, and nobody is there to be asked.
                    let named = if rest.is_empty() || rest == ["--hooks"] { vec!["claude"] } else { Vec::new() };
                    [&["connect"][..], rest, &named, &["--yes"]].concat()
                }
                ["open"] => vec!["open", "--print"],
                ["serve", ..] | ["mcp", ..] => continue,
                other => other.to_vec(),
            };
            let ran = run(home.command(&arguments));
            assert_eq!(ran.code, 0, "{file}: {command}: {ran:?}");
        }
    }
    drop(daemon);
}

#[test]
fn makefile_targets_that_are_shown_exist() {
    let makefile = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../Makefile")).unwrap();
    for file in ["README.md", "docs/README.md", "CONTRIBUTING.md"] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(file);
        let text = std::fs::read_to_string(path).unwrap();
        for part in text.split(['`', '\n']).filter_map(|part| part.trim().strip_prefix("make ")) {
            let target = part.split_whitespace().next().unwrap_or("");
            if target.chars().all(|c| c.is_ascii_lowercase()) && !target.is_empty() {
                assert!(makefile.contains(&format!("\n{target}:")), "{file} shows make {target}");
            }
        }
    }
}
