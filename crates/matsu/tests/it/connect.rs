//! `matsu connect` in a home of its own: what is written, that nothing else moves, and that it comes out again.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::api::noop;
use crate::home::{Home, run};

/// Files as their owners left them: odd indentation, comments, no line end.
const FILES: &[(&str, &str)] = &[
    (
        ".claude.json",
        "{\n    \"numStartups\": 7,\n    \"mcpServers\": {\n        \"other\": { \"command\": \"x\" }\n    }\n}",
    ),
    (".claude/CLAUDE.md", "Be brief."),
    (".claude/settings.json", "{ \"hooks\": { \"Stop\": [ { \"hooks\": [] } ] }, \"model\": \"opus\" }\n"),
    (".codex/config.toml", "model = \"gpt\" # mine\n\n[mcp_servers.other]\ncommand = 'x'\n"),
    (".gemini/settings.json", "{}\n"),
    (".cursor/mcp.json", "// mine\n{\"mcpServers\": {},}\n"),
];

fn home() -> Home {
    let home = Home::sqlite();
    for (name, text) in FILES {
        let file = home.path(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }
    home
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn every_client_is_connected_and_disconnected_byte_for_byte() {
    let home = home();
    for client in ["claude", "codex", "gemini", "cursor", "vscode"] {
        let done = home.run_json(&["connect", client, "--yes"]);
        assert_eq!(done["clients"][0]["client"], client, "{done}");
        let (limit, hold) = (&done["clients"][0]["tool_timeout_seconds"], &done["clients"][0]["hold_seconds"]);
        assert_eq!(hold.as_u64().unwrap(), limit.as_u64().unwrap() - 20);
    }
    let claude: Value = serde_json::from_str(&read(&home.path(".claude.json"))).unwrap();
    let (entry, data) = (&claude["mcpServers"]["matsu"], home.data_dir());
    assert_eq!(entry["command"], env!("CARGO_BIN_EXE_matsu"));
    assert_eq!(entry["args"], serde_json::json!(["--data-dir", data, "mcp", "--root", ".", "--hold", "3580"]));
    assert_eq!((&entry["timeout"], &claude["mcpServers"]["other"]["command"]), (&3_600_000.into(), &"x".into()));
    let codex: toml::Table = read(&home.path(".codex/config.toml")).parse().unwrap();
    assert_eq!(codex["mcp_servers"]["matsu"]["tool_timeout_sec"].as_integer(), Some(3_600));
    assert!(read(&home.path(".codex/config.toml")).starts_with(FILES[3].1));
    assert!(read(&home.path(".claude/CLAUDE.md")).starts_with("Be brief.") && home.path(".gemini/GEMINI.md").exists());
    let vscode: Value = serde_json::from_str(&read(&home.path(".config/Code/User/mcp.json"))).unwrap();
    assert_eq!(vscode["servers"]["matsu"]["type"], "stdio");

    home.run(&["connect", "--undo"]).good();
    for (name, text) in FILES {
        assert_eq!(read(&home.path(name)), *text, "{name}");
    }
    for made in [".config/Code", ".gemini/GEMINI.md", ".codex/AGENTS.md"] {
        assert!(!home.path(made).exists(), "{made}");
    }
}

#[test]
fn hooks_come_and_go_and_a_second_time_changes_nothing() {
    let home = home();
    home.run(&["connect", "claude", "--yes", "--hooks"]).good();
    let settings: Value = serde_json::from_str(&read(&home.path(".claude/settings.json"))).unwrap();
    let stop = settings["hooks"]["Stop"][0]["hooks"][0]["command"].as_str().unwrap();
    assert!(stop.ends_with(&format!(" --data-dir {} hook stop", home.data_dir().display())), "{stop}");
    assert!(
        settings["hooks"]["UserPromptSubmit"][0]["hooks"][0]["command"].as_str().unwrap().ends_with(" hook prompt")
    );
    let first = read(&home.path(".claude/settings.json"));
    home.run(&["connect", "claude", "--yes", "--hooks"]).good();
    assert_eq!(read(&home.path(".claude/settings.json")), first);
    home.run(&["connect", "claude", "--undo"]).good();
    for (name, text) in &FILES[..3] {
        assert_eq!(read(&home.path(name)), *text, "{name}");
    }
    let without = home.run(&["connect", "cursor", "--yes", "--hooks"]);
    assert!(without.code == 0 && without.out.contains("no hooks are available for Cursor"), "{without:?}");
}

#[test]
fn what_others_wrote_meanwhile_stays() {
    let home = home();
    home.run(&["connect", "claude", "--yes"]).good();
    let file = home.path(".claude.json");
    fs::write(&file, read(&file).replace("\"numStartups\": 7", "\"numStartups\": 8")).unwrap();
    home.run(&["connect", "--undo"]).good();
    assert_eq!(read(&file), FILES[0].1.replace(": 7", ": 8"));
}

#[test]
fn a_client_that_writes_its_file_anew_does_not_keep_us() {
    let home = home();
    for client in ["claude", "codex", "gemini"] {
        home.run(&["connect", client, "--yes", "--hooks"]).good();
    }
    let gemini: Value = serde_json::from_str(&read(&home.path(".gemini/settings.json"))).unwrap();
    assert!(gemini["hooks"]["AfterAgent"][0]["hooks"][0]["command"].as_str().unwrap().ends_with(" hook stop"));
    assert_eq!(gemini["hooks"]["BeforeAgent"][0]["hooks"][0]["timeout"], 10_000);
    for name in [".claude.json", ".claude/settings.json", ".gemini/settings.json"] {
        let mut anew: Value = serde_json::from_str(&read(&home.path(name))).unwrap();
        anew["theirs"] = 1.into();
        fs::write(home.path(name), serde_json::to_string_pretty(&anew).unwrap()).unwrap();
    }
    let undone = home.run_json(&["connect", "--undo"]);
    for (name, text) in FILES {
        let left = read(&home.path(name));
        if name.ends_with(".toml") || name.ends_with(".md") || name.contains("cursor") {
            assert_eq!(left, *text, "{name}");
            continue;
        }
        let (mut had, left): (Value, Value) =
            (serde_json::from_str(text).unwrap(), serde_json::from_str(&left).unwrap());
        had["theirs"] = 1.into();
        assert_eq!(left, had, "{name}: {undone}");
    }
    assert!(!home.path(".codex/hooks.json").exists());
}

#[test]
fn nothing_is_done_unasked() {
    let home = home();
    let asked = home.run(&["connect", "claude"]);
    assert!(asked.code == 1 && asked.err.contains("--yes"), "{asked:?}");
    assert_eq!(read(&home.path(".claude.json")), FILES[0].1);
    fs::write(home.path(".claude.json"), "{ \"mcpServers\": { \"matsu\": {} } }").unwrap();
    let taken = home.run(&["connect", "claude", "--yes"]);
    assert!(taken.code == 1 && taken.err.contains("that Matsu did not write"), "{taken:?}");
    for broken in ["model = \n", "mcp_servers = 3\n", "mcp_servers = { other = { command = \"x\" } }\n"] {
        fs::write(home.path(".codex/config.toml"), broken).unwrap();
        let refused = home.run(&["connect", "codex", "--yes"]);
        assert!(refused.code == 1 && refused.err.contains(".codex/config.toml was not changed"), "{refused:?}");
        assert_eq!(read(&home.path(".codex/config.toml")), broken);
        assert!(!home.path(".codex/AGENTS.md").exists() && !home.data("connect/codex.json").exists(), "{broken}");
    }
    let unknown = home.run(&["connect", "emacs", "--yes"]);
    assert!(unknown.code == 1 && unknown.err.contains("claude, codex, gemini"), "{unknown:?}");
}

#[test]
fn a_second_time_that_fails_leaves_the_first_as_it_was() {
    let home = home().with_variable("PATH", "/usr/bin:/bin");
    home.run(&["connect", "claude", "--yes", "--hooks"]).good();
    let of_claude = || FILES[..3].iter().map(|(name, _)| read(&home.path(name))).collect::<Vec<_>>();
    let connected = of_claude();
    fs::write(home.path(".cursor/mcp.json"), "{ broken").unwrap();
    let broken = home.run(&["connect", "--yes"]);
    assert!(broken.code == 1 && broken.err.contains(".cursor/mcp.json"), "{broken:?}");
    assert!(broken.err.contains("`matsu connect NAME`"), "what to do next: {broken:?}");
    assert_eq!(of_claude(), connected);
    assert_eq!(read(&home.path(".codex/config.toml")), FILES[3].1, "nothing of the others was written");
    // Also what cannot be written, after others were.
    fs::write(home.path(".cursor/mcp.json"), FILES[5].1).unwrap();
    fs::create_dir_all(home.path(".cursor/mcp.matsu-new/full")).unwrap();
    let full = home.run(&["connect", "--yes"]);
    assert!(full.code == 1 && full.err.contains("nothing was changed"), "{full:?}");
    assert_eq!(of_claude(), connected);
    assert_eq!(read(&home.path(".codex/config.toml")), FILES[3].1);
    assert!(!home.path(".codex/AGENTS.md").exists() && !home.data("connect/codex.json").exists());
    // Who is connected is asked too.
    let asked = home.run(&["connect", "claude"]);
    assert!(asked.code == 1 && asked.err.contains("--yes"), "{asked:?}");
    assert_eq!(of_claude(), connected);

    home.run(&["connect", "claude", "--yes"]).good();
    assert_eq!(read(&home.path(".claude/settings.json")), FILES[2].1, "hooks that are not wished any more go");
    home.run(&["connect", "--undo"]).good();
    for (name, text) in FILES {
        assert_eq!(read(&home.path(name)), *text, "{name}");
    }
}

#[test]
fn an_entry_that_a_person_made_stays_and_the_other_clients_are_connected() {
    let home = home().with_variable("PATH", "/usr/bin:/bin");
    let own = "{ \"mcpServers\": { \"matsu\": { \"command\": \"matsu\", \"args\": [\"mcp\"] } } }\n";
    fs::write(home.path(".gemini/settings.json"), own).unwrap();
    let table = "[mcp_servers.matsu]\ncommand = 'matsu'\nargs = ['mcp']\n";
    fs::write(home.path(".codex/config.toml"), table).unwrap();
    let named = home.run(&["connect", "gemini", "--yes"]);
    assert!(named.code == 1 && named.err.contains("remove that entry first"), "{named:?}");
    let shown = home.run_json(&["setup", "--dry-run"]);
    let names = |list: &Value| -> Vec<String> {
        list.as_array().unwrap().iter().map(|left| left["client"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&shown["left_out"]), ["codex", "gemini"], "{shown}");

    let done = home.run(&["connect", "--yes", "--hooks"]).good();
    assert!(
        done.out.contains("Gemini CLI stays as it is") && done.out.contains("Codex stays as it is"),
        "{}",
        done.out
    );
    assert!(done.out.contains("Claude Code: connected") && done.out.contains("Cursor: connected"), "{}", done.out);
    assert_eq!(read(&home.path(".gemini/settings.json")), own);
    assert_eq!(read(&home.path(".codex/config.toml")), table);
    assert!(!home.path(".codex/AGENTS.md").exists() && !home.path(".codex/hooks.json").exists());
    home.run(&["connect", "--undo"]).good();
    for (name, text) in FILES.iter().filter(|(name, _)| !name.contains("gemini") && !name.contains("codex")) {
        assert_eq!(read(&home.path(name)), *text, "{name}");
    }
}

#[test]
fn the_store_that_was_chosen_here_is_the_one_of_the_client() {
    let home = home();
    let mut command = home.command(&["connect", "claude", "--yes", "--store", "sqlite:other.db"]);
    command.current_dir(home.path(".codex"));
    run(command).good();
    let claude: Value = serde_json::from_str(&read(&home.path(".claude.json"))).unwrap();
    let args = claude["mcpServers"]["matsu"]["args"].as_array().unwrap();
    let store = format!("sqlite:{}", home.path(".codex/other.db").display());
    assert!(args.windows(2).any(|words| words == ["--store", &store]), "a path that means the same anywhere: {args:?}");
    let bare = home.bare(&["connect", "codex", "--yes", "--store", "postgres://me:secret@host/db"]);
    let refused = run(bare);
    assert!(refused.code == 1 && refused.err.contains("store.url") && !refused.err.contains("secret"), "{refused:?}");
}

#[test]
fn data_directory_and_store_of_the_environment_are_those_of_the_client_and_of_the_service() {
    let home = home();
    let (data, store) = (home.path("elsewhere"), format!("sqlite:{}", home.path("other.db").display()));
    let here = |args: &[&str]| {
        let mut command = home.bare(args);
        command.env("MATSU_DATA_DIR", &data).env("MATSU_STORE_URL", &store);
        run(command)
    };
    here(&["connect", "claude", "--yes"]).good();
    let claude: Value = serde_json::from_str(&read(&home.path(".claude.json"))).unwrap();
    let args = serde_json::json!(["--data-dir", data, "--store", store, "mcp", "--root", ".", "--hold", "3580"]);
    assert_eq!(claude["mcpServers"]["matsu"]["args"], args);
    let written = here(&["service", "install", "--no-start", "--json"]).good().json();
    let unit = read(Path::new(written["file"].as_str().unwrap()));
    assert!(unit.contains(data.to_str().unwrap()) && unit.contains(&store), "{unit}");
    // What is usual is not written.
    run(home.bare(&["connect", "gemini", "--yes"])).good();
    let gemini: Value = serde_json::from_str(&read(&home.path(".gemini/settings.json"))).unwrap();
    assert_eq!(gemini["mcpServers"]["matsu"]["args"][0], "mcp", "{gemini}");

    for what in [&["connect", "codex", "--yes"][..], &["service", "install", "--no-start"]] {
        let mut secret = home.bare(what);
        secret.env("MATSU_STORE_URL", "postgres://me:secret@host/db");
        let refused = run(secret);
        assert!(refused.code == 1 && refused.err.contains("MATSU_STORE_URL"), "{refused:?}");
        assert!(refused.err.contains("store.url") && !refused.err.contains("secret"), "{refused:?}");
    }
}

#[test]
fn hooks_for_every_client_that_was_found() {
    let home = home().with_variable("PATH", "/usr/bin:/bin");
    let done = home.run(&["connect", "--yes", "--hooks"]).good();
    assert!(done.out.contains("no hooks are available for Cursor"), "{}", done.out);
    for name in [".claude/settings.json", ".codex/hooks.json", ".gemini/settings.json"] {
        assert!(read(&home.path(name)).contains(" hook prompt"), "{name}");
    }
    assert!(!read(&home.path(".cursor/mcp.json")).contains("hook"));
}

#[test]
fn a_hook_prints_only_when_there_is_news() {
    let home = Home::sqlite();
    let quiet = hook(&home, "stop", "{}");
    assert_eq!((quiet.0, quiet.1.as_str()), (0, ""), "no daemon, no news");
    assert!(!home.data("matsu.db").exists(), "and no store was made");
    let daemon = home.serve();
    let task = daemon.api.submit(vec![noop()]);
    daemon.api.ended(&task, crate::home::START_MAX);
    let (code, said) = hook(&home, "stop", "{\"stop_hook_active\": false}");
    let said: Value = serde_json::from_str(&said).unwrap();
    assert_eq!((code, &said["decision"]), (0, &Value::from("block")));
    assert!(said["reason"].as_str().unwrap().contains(&task), "{said}");
    assert_eq!(hook(&home, "stop", "{\"stop_hook_active\": true}").1, "", "once");
    assert!(hook(&home, "prompt", "{}").1.contains(&task));
    let named: Value =
        serde_json::from_str(&hook(&home, "prompt", "{\"hook_event_name\": \"BeforeAgent\"}").1).unwrap();
    assert_eq!(named["hookSpecificOutput"]["hookEventName"], "BeforeAgent", "{named}");
    assert!(named["hookSpecificOutput"]["additionalContext"].as_str().unwrap().contains(&task), "{named}");
    daemon.api.jobs_of(&task);
    assert_eq!(hook(&home, "stop", "{}").1, "", "it was read");
}

fn hook(home: &Home, event: &str, input: &str) -> (i32, String) {
    let file = home.path("hook-input.json");
    fs::write(&file, input).unwrap();
    let mut command = home.command(&["hook", event]);
    command.stdin(fs::File::open(file).unwrap());
    let ran = run(command);
    (ran.code, ran.out)
}
