//! Two processes on one store: neither takes the other's runs.

use serde_json::json;

use super::{Bench, end_of, processes, reaches, start, unique_sleep};
use crate::stdio::Client;

#[test]
fn a_second_process_on_the_same_store_leaves_live_runs_alone() {
    let bench = Bench::new();
    let mut client = bench.client();
    let nap = unique_sleep();
    let task = start(&mut client, &format!("echo begun; sleep {nap}"));
    reaches(&mut client, &task, "running");
    let mut second = Client::legacy(&bench.home, &["--no-daemon"]);
    for _ in 0..3 {
        let said =
            second.call("get_task_status", &json!({ "task_id": task, "timeout": 1, "wait_for": "all", "since": 9 }));
        assert_eq!((said["status"].as_str(), processes(&nap)), (Some("running"), 1), "{said}");
    }
    drop(second);
    client.call("cancel_task", &json!({ "task_id": task, "mode": "immediate" }));
    assert_eq!(end_of(&mut client, &task)["status"], "cancelled");
}
