//! Conversations: kept apart, resumed after a restart, refused to another agent or directory.

use serde_json::{Value, json};

use super::{Bench, end_of, start_with};
use crate::home::kill;
use crate::stdio::Client;

/// The program's arguments about its conversation: `new ID` or `resume ID`.
fn run_and_read(client: &mut Client, more: Value) -> (String, String) {
    let task = start_with(client, "echo \"$@\"", more);
    let end = end_of(client, &task);
    let words: Vec<String> = end["result"].as_str().unwrap().split_whitespace().map(str::to_owned).collect();
    (words[0].clone(), words[1].clone())
}

#[test]
fn two_conversations_stay_apart_and_outlive_a_restart() {
    let bench = Bench::new();
    std::fs::create_dir_all(bench.root.join("docs")).unwrap();
    let mut client = bench.client();
    let (word, first) = run_and_read(&mut client, json!({ "session_id": "talk-a" }));
    assert_eq!(word, "new");
    let (_, second) = run_and_read(&mut client, json!({ "session_id": "talk-b" }));
    assert_ne!(first, second);
    let (pid, _) = bench.home.relayed();
    kill(pid);
    let mut client = bench.client();
    for (name, id) in [("talk-a", &first), ("talk-b", &second)] {
        let resumed = run_and_read(&mut client, json!({ "session_id": name, "resume": true }));
        assert_eq!(resumed, ("resume".to_owned(), id.clone()));
    }
    for (more, words) in
        [(json!({ "cli_name": "other" }), "with script"), (json!({ "working_directory": "docs" }), "another directory")]
    {
        let mut arguments = json!({ "cli_name": "script", "message": "echo", "session_id": "talk-a", "resume": true });
        arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let said = client.call("use_agent", &arguments);
        assert_eq!(said["error_code"], "SESSION_CONFLICT", "{said}");
        assert!(said["error"].as_str().unwrap().contains(words), "{said}");
    }
    let busy = start_with(&mut client, "sleep 600", json!({ "session_id": "talk-a" }));
    let said = client.call("use_agent", &json!({ "cli_name": "script", "message": "echo", "session_id": "talk-a" }));
    assert!(said["error"].as_str().unwrap().contains(&busy), "{said}");
    client.call("cancel_task", &json!({ "task_id": busy, "mode": "immediate" }));
}
