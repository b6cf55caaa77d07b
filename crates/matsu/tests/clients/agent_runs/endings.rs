//! How runs end: exit codes, tails, empty output, and streams whose last event decides.

use serde_json::json;

use super::{Bench, end_of, start, start_with};

#[test]
fn an_exit_code_comes_with_both_tails_and_nothing_said_is_marked() {
    let bench = Bench::new();
    let mut client = bench.client();
    let bad = start(&mut client, "echo out; echo err >&2; exit 3");
    let end = end_of(&mut client, &bad);
    assert_eq!((end["status"].as_str(), end["error_code"].as_str()), (Some("failed"), Some("AGENT_EXIT")), "{end}");
    assert_eq!(
        (end["error"].as_str(), end["exit_code"].as_i64()),
        (Some("script exited with code 3"), Some(3)),
        "{end}"
    );
    assert_eq!((end["stdout_tail"].as_str(), end["stderr_tail"].as_str()), (Some("out\n"), Some("err\n")), "{end}");
    let silent = start(&mut client, "exit 0");
    let end = end_of(&mut client, &silent);
    assert_eq!((end["status"].as_str(), end["empty"].as_bool()), (Some("completed"), Some(true)), "{end}");
    assert_eq!(end["result"], "", "{end}");
}

#[test]
fn a_failed_call_has_the_protocols_flag_a_class_and_says_whether_to_retry() {
    let bench = Bench::new();
    let mut client = bench.client();
    let arguments = json!({ "cli_name": "script", "message": "echo why >&2; exit 4" });
    let id = client.request("tools/call", &json!({ "name": "use_agent", "arguments": arguments }));
    let answer = client.answer(id)["result"].clone();
    assert_eq!(answer["isError"], true, "{answer}");
    let said = &answer["structuredContent"];
    assert_eq!((said["ok"].as_bool(), said["error_code"].as_str()), (Some(false), Some("AGENT_EXIT")), "{said}");
    let details = &said["details"];
    assert_eq!((details["exit_code"].as_i64(), details["retryable"].as_bool()), (Some(4), Some(false)), "{said}");
    assert_eq!(details["stderr_tail"], "why\n", "{said}");
    // Read later, the same failure is a good answer about a bad end.
    let task = details["task_id"].as_str().unwrap();
    let id = client.request("tools/call", &json!({ "name": "get_task_status", "arguments": { "task_id": task } }));
    let answer = client.answer(id)["result"].clone();
    assert_eq!(answer["isError"], false, "{answer}");
    let said = &answer["structuredContent"];
    assert_eq!((said["status"].as_str(), said["retryable"].as_bool()), (Some("failed"), Some(false)), "{said}");
    let id =
        client.request("tools/call", &json!({ "name": "use_agent", "arguments": { "cli_name": "x", "message": "y" } }));
    let answer = client.answer(id)["result"].clone();
    assert_eq!(
        (&answer["isError"], &answer["structuredContent"]["details"]["retryable"]),
        (&json!(true), &json!(false))
    );
}

#[test]
fn with_a_stream_the_final_event_and_the_exit_code_must_agree() {
    let bench = Bench::new();
    let mut client = bench.client();
    let good = r#"{"type":"result","subtype":"success","is_error":false,"result":"fine","usage":{"input_tokens":7,"output_tokens":2}}"#;
    let lying = r#"{"type":"result","subtype":"success","is_error":true,"result":"Invalid API key"}"#;
    let run = |client: &mut crate::stdio::Client, script: String| {
        let task = start_with(client, &script, json!({ "cli_name": "claudish" }));
        end_of(client, &task)
    };
    let end = run(&mut client, format!("echo '{good}'"));
    assert_eq!((end["status"].as_str(), end["result"].as_str()), (Some("completed"), Some("fine")), "{end}");
    assert_eq!(end["usage"]["input_tokens"], 7, "{end}");
    let end = run(&mut client, format!("echo '{lying}'"));
    assert_eq!(
        (end["error_code"].as_str(), end["retryable"].as_bool()),
        (Some("AGENT_API_ERROR"), Some(true)),
        "{end}"
    );
    assert!(end["error"].as_str().unwrap().contains("Invalid API key"), "{end}");
    let end = run(&mut client, format!("echo '{good}'; exit 1"));
    assert_eq!(end["error_code"], "AGENT_EXIT", "{end}");
    let end = run(&mut client, "echo 'no event at all'".to_owned());
    assert_eq!(end["error_code"], "AGENT_NO_RESULT", "{end}");
}

#[test]
fn a_quota_that_returns_is_waited_for_and_the_conversation_resumed() {
    let bench = Bench::new();
    let mut client = bench.client();
    // The second message asks it to go on, in the conversation of the first time; the prompt file says so.
    let script = r#"if [ -e again ]; then exit 9; fi
echo '{"type":"session","id":"talk-1"}'
echo '{"type":"result","error":"usage limit reached, try again in 2 seconds"}'
"#;
    let task = start_with(&mut client, script, json!({ "cli_name": "events" }));
    let waiting = super::reaches(&mut client, &task, "queued");
    assert!(waiting["result"].is_null(), "{waiting}");
    // "Go on where you were interrupted." is no script: what runs now proves that it was resumed.
    let end = end_of(&mut client, &task);
    assert!(end["stderr_tail"].as_str().unwrap().contains("Go"), "{end}");
    // It has a name although this time it did not say its vendor's.
    assert_eq!((end["status"].as_str(), &end["session_id"]), (Some("failed"), &json!(task)), "{end}");
}
