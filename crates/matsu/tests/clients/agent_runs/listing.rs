//! `list_agents`, and what the definitions of a user's own do to it.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{Bench, end_of, start_with};

fn named<'a>(said: &'a Value, name: &str) -> &'a Value {
    let agents = said["agents"].as_array().unwrap();
    agents.iter().find(|agent| agent["name"] == name).unwrap_or_else(|| panic!("{name}: {said}"))
}

#[test]
fn every_agent_is_listed_and_a_program_that_hangs_delays_it_only_by_its_limit() {
    let bench = Bench::new();
    // Not among the agents of all tests: each listing and each doctor would wait for it.
    let hanging = "name = \"hanging\"\ncommand = \"/bin/sh\"\nprompt = \"stdin\"\noutput = \"text\"\n\
                   version = [\"-c\", \"sleep 600\"]\n";
    std::fs::write(bench.home.path(".config/matsu/agents/hanging.toml"), hanging).unwrap();
    let mut client = bench.client();
    let began = Instant::now();
    let said = client.call("list_agents", &json!({}));
    assert!(began.elapsed() < Duration::from_secs(9), "the probes run side by side: {:?}", began.elapsed());
    for name in ["claude", "codex", "gemini", "matsu", "opencode", "qwen", "script", "hanging"] {
        assert_eq!(named(&said, name)["limit"], 5, "{said}");
    }
    assert_eq!(
        (&named(&said, "absent")["installed"], &named(&said, "hanging")["installed"]),
        (&json!(false), &json!(true))
    );
    assert_eq!(named(&said, "hanging")["version"], Value::Null);
    assert!(named(&said, "cat")["version"].as_str().is_some_and(|version| version.contains('.')), "{said}");
    let supports = json!({ "resume": true, "system_prompt": true, "stream": false, "input": false, "model": true });
    assert_eq!(named(&said, "script")["supports"], supports);
}

#[test]
fn the_safest_mode_is_the_default_and_more_needs_the_configuration() {
    let bench = Bench::new();
    let mut client = bench.client();
    let said = client.call("list_agents", &json!({}));
    for agent in said["agents"].as_array().unwrap() {
        assert_eq!((&agent["mode"], &agent["modes"]), (&json!("read-only"), &json!(["read-only"])), "{agent}");
    }
    let task = start_with(&mut client, "echo x > made; cat made", json!({}));
    let end = end_of(&mut client, &task);
    if named(&said, "script")["confined"] == true {
        assert_eq!(end["status"], "failed", "nothing can be written: {end}");
        assert!(!bench.root.join("made").exists());
    }
    let writing = Bench::with("[agents]\nmode_max = \"workspace-write\"\n");
    let mut client = writing.client();
    let said = client.call("list_agents", &json!({}));
    assert_eq!(named(&said, "codex")["modes"], json!(["read-only", "workspace-write"]));
    let outside = writing.home.path("outside");
    let script = format!("echo x > made && cat made; echo y > {} || echo confined", outside.display());
    let task = start_with(&mut client, &script, json!({ "mode": "workspace-write" }));
    let end = end_of(&mut client, &task);
    assert!(writing.root.join("made").exists(), "{end}");
    if named(&said, "script")["confined"] == true {
        // A sealed run has a home folder of its own, in which it may write.
        assert!(end["result"].as_str().is_some_and(|result| result.starts_with("x\n")), "{end}");
        assert!(!outside.exists(), "{end}");
    }
}

#[test]
fn a_confined_run_cannot_read_the_data_directory() {
    let bench = Bench::new();
    let mut client = bench.client();
    let token = bench.home.data_dir().join("token");
    let task = start_with(&mut client, &format!("cat {} || echo hidden", token.display()), json!({}));
    let end = end_of(&mut client, &task);
    let said = client.call("list_agents", &json!({}));
    if named(&said, "script")["confined"] == true {
        assert_eq!(end["result"], "hidden\n", "{end}");
    }
}
