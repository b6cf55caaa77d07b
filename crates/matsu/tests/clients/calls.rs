//! `matsu call` without a daemon.

use std::time::Duration;

use serde_json::json;

use crate::home::{Home, until};

#[test]
fn work_that_is_started_without_a_daemon_gets_one() {
    let home = Home::new();
    matsu_testkit::fake_agents::write(&home.path(".config/matsu/agents")).unwrap();
    let arguments = json!({ "cli_name": "cat", "message": "echoed", "run_async": true }).to_string();
    let started = home.run(&["call", "use_agent", &arguments]);
    let task = started["task_id"].as_str().unwrap_or_else(|| panic!("{started}")).to_owned();
    let read = json!({ "task_id": task }).to_string();
    let ended = until("the run has ended", Duration::from_secs(30), || {
        let said = home.run(&["call", "get_task_status", &read]);
        (said["status"] == "completed").then_some(said)
    });
    assert_eq!(ended["result"], "echoed", "{ended}");
}
