//! Arguments that a caller passes, held against mode and roots by value, for every built-in agent. The programs are
//! stand-ins that print what they were started with.

use serde_json::{Value, json};

use super::{Bench, end_of, program, start_with};
use crate::stdio::Client;

/// A home whose claude, codex, gemini, qwen and opencode print their arguments, one on each line.
fn bench(settings: &str) -> Bench {
    let mut bench = Bench::with(settings);
    let bin = bench.home.path("bin");
    std::fs::create_dir_all(&bin).unwrap();
    for name in ["claude", "codex", "gemini", "qwen", "opencode"] {
        program(&bin.join(name), "for arg in \"$@\"; do printf '<%s>\\n' \"$arg\" >&2; done; exit 3");
    }
    std::fs::create_dir_all(bench.root.join("docs")).unwrap();
    std::fs::write(bench.root.join("image.png"), "x").unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    bench.home.set("PATH", &path);
    bench
}

fn given(client: &mut Client, agent: &str, args: &Value) -> String {
    let task = start_with(client, "hello", json!({ "cli_name": agent, "args": args }));
    let end = end_of(client, &task);
    end["stderr_tail"].as_str().unwrap_or_else(|| panic!("{end}")).to_owned()
}

#[test]
fn what_a_mode_and_the_roots_allow_is_passed_as_one_argument() {
    let bench = bench("");
    let docs = bench.root.canonicalize().unwrap().join("docs");
    let mut client = bench.client();
    for (agent, args, expected) in [
        ("claude", json!(["--add-dir", "docs"]), format!("<--add-dir={}>", docs.display())),
        ("claude", json!(["--allowedTools", "Read Grep"]), "<--allowedTools=Read,Grep>".to_owned()),
        (
            "claude",
            json!(["--max-turns=3", "--fallback-model", "m-1"]),
            "<--max-turns=3>\n<--fallback-model=m-1>".to_owned(),
        ),
        // What a caller gives is not looked at for placeholders.
        (
            "claude",
            json!(["--disallowedTools", "{prompt}{data_dir}"]),
            "<--disallowedTools={prompt}{data_dir}>".to_owned(),
        ),
        ("codex", json!(["--add-dir", "docs"]), format!("<--add-dir={}>", docs.display())),
        ("gemini", json!(["--include-directories", "docs"]), format!("<--include-directories={}>", docs.display())),
        ("gemini", json!(["--extensions=none"]), "<--extensions=none>".to_owned()),
        ("qwen", json!(["--include-directories=docs"]), format!("<--include-directories={}>", docs.display())),
    ] {
        let said = given(&mut client, agent, &args);
        assert!(said.contains(&expected), "{agent} {args}: {said}");
    }
}

/// Arguments that reach further than a caller may, by agent.
fn too_far() -> Vec<(&'static str, Vec<Value>)> {
    vec![
        (
            "claude",
            vec![
                json!(["--add-dir", "/"]),
                json!(["--add-dir=/etc"]),
                json!(["--add-dir", "everything"]),
                json!(["--add-dir", "docs", "--allowedTools", "Bash"]),
                json!(["--allowedTools", "Bash(rm *)"]),
                json!(["--allowedTools", "Read", "Bash"]),
                json!(["--allowedTools=Edit"]),
                json!(["--permission-mode", "bypassPermissions"]),
                json!(["--dangerously-skip-permissions"]),
                json!(["--settings", "{}"]),
                json!(["--mcp-config", "x"]),
                json!(["--max-turns", "--settings=x"]),
                json!(["--fallback-model", "--dangerously-skip-permissions"]),
                json!(["--disallowedTools", "-x"]),
            ],
        ),
        (
            "codex",
            vec![
                json!(["--add-dir=/"]),
                json!(["-c", "sandbox_mode=\"danger-full-access\""]),
                json!(["--profile", "loose"]),
                json!(["--sandbox", "danger-full-access"]),
                json!(["-s", "danger-full-access"]),
                json!(["--image", "/etc/passwd"]),
                json!(["--dangerously-bypass-approvals-and-sandbox"]),
                json!(["resume"]),
                json!(["--", "x"]),
                json!(["--add-dir", "-c"]),
            ],
        ),
        (
            "gemini",
            vec![
                json!(["--include-directories", "/"]),
                json!(["--include-directories", "docs,/etc"]),
                json!(["-y"]),
                json!(["--approval-mode", "yolo"]),
                json!(["--extensions", "evil"]),
                json!(["--include-directories", "--yolo"]),
            ],
        ),
        (
            "qwen",
            vec![
                json!(["--include-directories", "/"]),
                json!(["--yolo"]),
                json!(["--openai-base-url", "http://x"]),
                json!(["--include-directories", "--yolo"]),
            ],
        ),
        ("opencode", vec![json!(["--agent", "x"]), json!(["--dir", "/"]), json!(["x"]), json!(["--auto"])]),
    ]
}

#[test]
fn what_reaches_further_is_refused_for_every_agent() {
    let bench = bench("[agents]\nmode_max = \"workspace-write\"\n");
    std::os::unix::fs::symlink("/", bench.root.join("everything")).unwrap();
    let mut client = bench.client();
    let long = "x".repeat(200_000);
    for (agent, wishes) in too_far() {
        let everywhere = [json!([long.clone()]), json!(["--add-dir", "a\nb"]), json!(["--add-dir", "a\0b"])];
        for args in wishes.into_iter().chain(everywhere) {
            let said = client.call("use_agent", &json!({ "cli_name": agent, "message": "hello", "args": args }));
            assert_eq!(
                said["error_code"],
                "INVALID_PARAMS",
                "{agent} {}",
                args.to_string().get(..80).unwrap_or_default()
            );
            assert!(said["error"].as_str().unwrap().len() < 1_000, "a refusal is short");
        }
    }
    // A tree of its own is not widened to the user's repository.
    super::worktrees::repository(&bench.root);
    let wish = json!({ "cli_name": "codex", "message": "x", "mode": "workspace-write", "args": ["--add-dir", "docs"] });
    let said = client.call("use_agent", &wish);
    assert!(said["error"].as_str().unwrap().contains("git repository"), "{said}");
}

#[test]
fn a_prompt_that_is_an_argument_does_not_become_a_flag() {
    let bench = Bench::new();
    let folder = bench.home.path(".config/matsu/agents");
    let of = |name: &str, more: &str| {
        let text =
            format!("name = \"{name}\"\ncommand = \"/bin/ls\"\nprompt = \"argument\"\noutput = \"text\"\n{more}");
        std::fs::write(folder.join(format!("{name}.toml")), text).unwrap();
    };
    of("apart", "");
    of("never", "end_of_flags = \"\"\n");
    of("bare", "args = [\"-d\", \"{prompt}\"]\n");
    let mut client = bench.client();
    let task = start_with(&mut client, "--version", json!({ "cli_name": "apart" }));
    let end = end_of(&mut client, &task);
    assert_eq!(end["status"], "failed", "there is no file of that name: {end}");
    assert!(end["stderr_tail"].as_str().unwrap().contains("--version"), "{end}");
    for agent in ["never", "bare"] {
        let said = client.call("use_agent", &json!({ "cli_name": agent, "message": "--version" }));
        assert!(said["error"].as_str().unwrap().contains("begins with -"), "{agent}: {said}");
    }
    let said = client.call("use_agent", &json!({ "cli_name": "apart", "message": "a\0b" }));
    assert!(said["error"].as_str().unwrap().contains("zero byte"), "{said}");
}

#[test]
fn a_stream_cannot_name_its_conversation_like_a_flag() {
    let bench = Bench::new();
    let mut client = bench.client();
    let script = "echo '{\"type\":\"session\",\"id\":\"--dangerously-skip-permissions\"}'
                  echo '{\"type\":\"result\",\"text\":\"x\"}'";
    let task = start_with(&mut client, script, json!({ "cli_name": "events", "session_id": "talk" }));
    let end = end_of(&mut client, &task);
    assert_eq!((&end["status"], &end["session_id"]), (&json!("completed"), &Value::Null), "{end}");
}

#[test]
fn a_program_is_asked_for_its_version_once_and_one_without_a_way_to_ask_never() {
    let bench = Bench::new();
    let folder = bench.home.path(".config/matsu/agents");
    let of = |name: &str, script: &str, more: &str| {
        let file = bench.home.path(&format!("{name}.sh"));
        program(&file, script);
        let command = file.display();
        let text = format!("name = \"{name}\"\ncommand = \"{command}\"\nprompt = \"stdin\"\noutput = \"text\"\n{more}");
        std::fs::write(folder.join(format!("{name}.toml")), text).unwrap();
        file
    };
    // Says who it was, what lies around it, and which variables it has.
    let probed =
        "echo 1.$$.$(ls -A . | wc -l).$(env | cut -d= -f1 | grep -v -e ^_ -e PWD -e SHLVL | sort | tr '\\n' '-')";
    let probed = of("probed", probed, "version = [\"--version\"]\n");
    let escaped = bench.home.path("ESCAPED");
    of("writer", &format!("touch {} && echo 6.6", escaped.display()), "version = [\"-v\"]\n");
    let naps = super::unique_sleep();
    of("silent", &format!("sleep {naps}; echo 6.6"), "");
    let mut client = bench.client();
    let version = |client: &mut Client, name: &str, probe: bool| {
        let said = client.call("list_agents", &json!({ "probe": probe }));
        let agents = said["agents"].as_array().unwrap().clone();
        let found = agents.into_iter().find(|agent| agent["name"] == name).unwrap();
        assert_eq!(found["installed"], true, "{found}");
        found["version"].clone()
    };
    assert_eq!(version(&mut client, "probed", false), Value::Null, "the page starts nothing");
    let first = version(&mut client, "probed", true);
    let text = first.as_str().unwrap();
    assert!(text.ends_with(".0.HOME-MATSU_RUN-PATH-TMPDIR-") || text.ends_with(".0.HOME-PATH-TMPDIR-"), "{text}");
    assert_eq!(version(&mut client, "probed", true), first);
    assert_eq!(version(&mut client, "probed", false), first, "what is known is shown");
    // Where it may write at all, that is a home folder of its own.
    version(&mut client, "writer", true);
    assert!(!escaped.exists());
    assert_eq!(version(&mut client, "silent", true), Value::Null);
    let seen = super::processes(&naps);
    assert_eq!(seen, 0, "a program without a version command was started");
    program(&probed, "echo 2.0 # another file");
    assert_eq!(version(&mut client, "probed", true), "2.0");
}
