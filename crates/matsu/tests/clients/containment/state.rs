//! The state of a command line: its login is renewed in place, its conversation is kept, and nothing that it plants
//! survives the run.

use serde_json::json;

use super::prepared;
use crate::home::Home;

const AGENT: &str = r#"
name = "stateful"
command = "/bin/sh"
args = ["{prompt_file}"]
prompt = "file"
output = "text"
[session]
choose = true
start = { args = ["new", "{session}"] }
resume = { args = ["resume", "{session}"] }
[login]
state = ["~/.stateful", "~/.stateful.json"]
originals = ["~/.stateful/login.json"]
sessions = ["~/.stateful/sessions/{session}*"]
"#;

fn prepare(home: &mut Home) {
    for (name, text) in [
        (".stateful/login.json", "old login"),
        (".stateful/settings.json", "settings of the user"),
        (".stateful/sessions/other.jsonl", "another conversation"),
        (".stateful.json", "settings and state"),
    ] {
        let path = home.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    std::fs::write(home.path(".config/matsu/agents/stateful.toml"), AGENT).unwrap();
}

#[test]
fn what_a_run_plants_in_the_state_of_its_program_is_gone_with_it() {
    prepared(&prepare, |yard| {
        let printed = yard.attack_in(
            "project",
            "cd ~/.stateful; cat settings.json; echo hook > settings.json; echo hook > hooks.json; \
             echo new login > login.json; echo changed > sessions/other.jsonl; echo mine > sessions/$2.jsonl; \
             echo planted > sessions/memory.md; echo planted > ~/.stateful.json; cat ~/.stateful.json",
            json!({ "cli_name": "stateful" }),
        );
        assert!(printed.contains("settings of the user") && printed.contains("planted"), "{printed}");
        let read = |name: &str| std::fs::read_to_string(yard.home.path(name)).unwrap_or_default();
        assert_eq!(read(".stateful/login.json"), "new login\n", "{}: a renewed login", yard.show());
        let kept: Vec<_> = std::fs::read_dir(yard.home.path(".stateful/sessions")).unwrap().flatten().collect();
        let is_kept = |text: &str| kept.iter().any(|file| std::fs::read_to_string(file.path()).unwrap() == text);
        assert!(is_kept("mine\n"), "{}: the conversation is kept: {kept:?}", yard.show());
        if yard.is_sealed() {
            assert_eq!(read(".stateful/settings.json"), "settings of the user");
            assert_eq!(read(".stateful.json"), "settings and state");
            assert_eq!(read(".stateful/sessions/other.jsonl"), "another conversation");
            assert!(!yard.home.path(".stateful/hooks.json").exists());
            assert!(!yard.home.path(".stateful/sessions/memory.md").exists());
        } else {
            // Not stopped when fenced, as the table says.
            assert_eq!(read(".stateful/settings.json"), "hook\n");
            assert!(yard.home.path(".stateful/hooks.json").exists());
        }
    });
}
