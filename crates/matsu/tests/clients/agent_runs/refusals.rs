//! What is refused: at once, the same in both modes, and without a task.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{Bench, end_of, start_with};
use crate::stdio::Client;

fn refused(client: &mut Client, arguments: &Value) -> Value {
    let began = Instant::now();
    let said = client.call("use_agent", arguments);
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    assert_eq!(said["ok"], false, "{said}");
    said
}

#[test]
fn bad_input_is_refused_alike_in_both_modes_and_makes_no_task() {
    let bench = Bench::new();
    let mut client = bench.client();
    for (wish, code, words) in [
        (json!({ "cli_name": "no-such" }), "AGENT_NOT_FOUND", "no-such"),
        (json!({ "cli_name": "absent" }), "AGENT_NOT_INSTALLED", "absent"),
        (json!({ "timeout": 0 }), "INVALID_PARAMS", "timeout"),
        (json!({ "timeout": 86401 }), "INVALID_PARAMS", "timeout"),
        (json!({ "session_id": "bad name" }), "INVALID_PARAMS", "session_id"),
        (json!({ "session_id": "never-seen", "resume": true }), "SESSION_CONFLICT", "never-seen"),
        (json!({ "resume": true }), "INVALID_PARAMS", "session_id"),
        (json!({ "working_directory": "/" }), "FORBIDDEN", "working_directory"),
        (json!({ "working_directory": ".." }), "FORBIDDEN", "working_directory"),
        (json!({ "mode": "full" }), "FORBIDDEN", "mode"),
        (json!({ "mode": "loud" }), "INVALID_PARAMS", "mode"),
        (json!({ "effort": "high" }), "INVALID_PARAMS", "effort"),
        (json!({ "isolation": "worktree" }), "INVALID_PARAMS", "isolation"),
        (json!({ "env": { "OTHER": "1" } }), "INVALID_PARAMS", "OTHER"),
        (json!({ "system_prompt": "x".repeat(100_001) }), "INVALID_PARAMS", "system_prompt"),
        (json!({ "message": "  " }), "INVALID_PARAMS", "message"),
        (json!({ "mesage": "x" }), "INVALID_PARAMS", "did you mean message"),
    ] {
        let mut answers = Vec::new();
        for run_async in [false, true] {
            let mut arguments = json!({ "cli_name": "script", "message": "echo x", "run_async": run_async });
            arguments.as_object_mut().unwrap().extend(wish.as_object().unwrap().clone());
            let said = refused(&mut client, &arguments);
            assert_eq!(said["error_code"], code, "{wish}: {said}");
            assert!(said["error"].as_str().unwrap().contains(words), "{wish}: {said}");
            answers.push((said["error_code"].clone(), said["error"].clone(), said["details"].clone()));
        }
        assert_eq!(answers[0], answers[1], "{wish}");
    }
    let open = client.call("get_task_status", &json!({}));
    assert_eq!(open["total"], 0, "{open}");
}

#[test]
fn both_spellings_of_an_allowed_flag_pass_and_a_refused_one_is_named_with_its_value() {
    let bench = Bench::new();
    let mut client = bench.client();
    let args = json!({ "args": ["--fast", "--level", "a b; $(c)", "--level=2"], "model": "m" });
    let task = start_with(&mut client, "printf '%s|' \"$@\"", args);
    let end = end_of(&mut client, &task);
    assert!(end["result"].as_str().unwrap().starts_with("--model|m|--fast|--level=a b; $(c)|--level=2|new|"), "{end}");
    for (args, words) in [
        (json!(["--evil", "value"]), "--evil with its value value"),
        (json!(["--evil=value"]), "--evil with its value value"),
        (json!(["lone"]), "lone"),
    ] {
        let said = refused(&mut client, &json!({ "cli_name": "script", "message": "echo x", "args": args }));
        assert!(said["error"].as_str().unwrap().contains(words), "{said}");
    }
}
