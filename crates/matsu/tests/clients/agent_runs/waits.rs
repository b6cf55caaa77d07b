//! Waiting for runs: bounded, for many, by many, and found again by who lost the id.

use std::time::{Duration, Instant};

use serde_json::json;

use super::{Bench, end_of, reaches, start};
use crate::home::until;

#[test]
fn a_wait_ends_with_the_run_or_with_its_time() {
    let bench = Bench::new();
    let mut client = bench.client();
    let task = start(&mut client, "sleep 3; echo done");
    reaches(&mut client, &task, "running");
    let began = Instant::now();
    let said = client.call("get_task_status", &json!({ "task_id": task, "timeout": 1 }));
    let took = began.elapsed();
    assert!(took >= Duration::from_secs(1) && took < Duration::from_millis(1_500), "{took:?}");
    assert_eq!(
        (said["status"].as_str(), said["returned_because"].as_str()),
        (Some("running"), Some("timeout")),
        "{said}"
    );
    assert!(said.to_string().len() <= 400, "{said}");
    let began = Instant::now();
    let said = client.call("get_task_status", &json!({ "task_id": task, "timeout": 3600 }));
    assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
    assert_eq!((said["status"].as_str(), said["hold_max"].as_u64()), (Some("completed"), Some(50)), "{said}");
}

#[test]
fn an_abandoned_wait_disturbs_no_other() {
    let bench = Bench::new();
    let mut first = bench.client();
    let task = start(&mut first, "sleep 2; echo done");
    let mut second = bench.client();
    let waiting =
        json!({ "name": "get_task_status", "arguments": { "task_id": task, "timeout": 30, "wait_for": "all" } });
    let mut third = bench.client();
    third.request("tools/call", &waiting);
    third.kill();
    let (one, two) = (first.request("tools/call", &waiting), second.request("tools/call", &waiting));
    for (client, id) in [(&mut first, one), (&mut second, two)] {
        let said = client.answer(id)["result"]["structuredContent"].clone();
        let said = if said["status"] == "completed" { said } else { end_of(client, &task) };
        assert_eq!(said["result"], "done\n", "{said}");
    }
}

#[test]
fn an_end_reads_the_same_as_often_as_it_is_read() {
    let bench = Bench::new();
    let mut client = bench.client();
    let task = start(&mut client, "echo done");
    let first = end_of(&mut client, &task);
    for _ in 0..3 {
        let again = client.call("get_task_status", &json!({ "task_id": task }));
        for field in ["status", "result", "revision", "session_id"] {
            assert_eq!(again[field], first[field], "{field}");
        }
    }
    let gone = client.call("get_task_status", &json!({ "task_id": "task_never" }));
    assert_eq!(
        (gone["status"].as_str(), gone["error"].as_str()),
        (Some("not_found"), Some("Task ID not found or expired."))
    );
}

/// Everything in the store happened this many days earlier.
fn let_days_pass(bench: &Bench, days: i64) {
    let store = rusqlite::Connection::open(bench.home.data_dir().join("matsu.db")).unwrap();
    store.busy_timeout(super::SOON).unwrap();
    let columns = ["created_at", "updated_at", "finished_at", "first_read_at"];
    let ms = days * 86_400_000;
    let earlier = columns.map(|column| format!("{column} = {column} - {ms}")).join(", ");
    store.execute_batch(&format!("UPDATE tasks SET {earlier}")).unwrap();
}

/// One task ended this many days ago.
fn set_age(bench: &Bench, task: &str, days: i64) {
    let store = rusqlite::Connection::open(bench.home.data_dir().join("matsu.db")).unwrap();
    store.busy_timeout(super::SOON).unwrap();
    let ms = days * 86_400_000;
    store
        .execute("UPDATE tasks SET finished_at = finished_at - ?1 WHERE id = ?2", rusqlite::params![ms, task])
        .unwrap();
}

#[test]
fn a_result_is_kept_as_long_as_is_set_although_it_was_read_and_a_run_that_lasts_never_expires() {
    let bench = Bench::with("[keep]\nresults = 2\n");
    let mut client = bench.client();
    let (read, unread) = (start(&mut client, "echo read"), start(&mut client, "echo unread"));
    let lasting = start(&mut client, "sleep 600");
    assert_eq!(end_of(&mut client, &read)["result"], "read\n");
    until("the other has ended and is unread", super::SOON, || {
        let all = client.call("get_task_status", &json!({}));
        let of = |id: &str| all["tasks"].as_array().unwrap().iter().find(|task| task["task_id"] == id).cloned();
        let (unread, lasting) = (of(&unread)?, of(&lasting)?);
        (unread["unread"] == true && lasting["status"] == "running").then_some(())
    });
    // The first one is older than is kept, the others are not.
    let_days_pass(&bench, 1);
    let old = start(&mut client, "echo old");
    assert_eq!(end_of(&mut client, &old)["result"], "old\n");
    set_age(&bench, &old, 3);
    // The sweep comes once a minute.
    until("the one that is too old is gone", Duration::from_secs(90), || {
        let said = client.call("get_task_status", &json!({ "task_id": old }));
        (said["status"] == "not_found").then_some(said)
    });
    assert_eq!(end_of(&mut client, &read)["result"], "read\n", "it was read a day ago");
    assert_eq!(end_of(&mut client, &unread)["result"], "unread\n");
    assert_eq!(client.call("get_task_status", &json!({ "task_id": lasting }))["status"], "running");
    client.call("cancel_task", &json!({ "task_id": lasting, "mode": "immediate" }));
}

#[test]
fn the_client_dies_in_mid_run_and_a_new_one_finds_the_work_without_its_id() {
    let bench = Bench::new();
    let mut client = bench.client();
    let task = start(&mut client, "sleep 2; echo survived");
    reaches(&mut client, &task, "running");
    client.kill();
    let mut client = bench.client();
    let open = client.call("get_task_status", &json!({}));
    assert_eq!(open["tasks"][0]["task_id"].as_str(), Some(task.as_str()), "{open}");
    assert_eq!(open["tasks"][0]["title"], "script: sleep 2; echo survived", "{open}");
    assert_eq!(end_of(&mut client, &task)["result"], "survived\n");
}

#[test]
fn fifty_wait_on_one_run_and_all_hear_of_its_end() {
    let bench = Bench::new();
    let mut client = bench.client();
    let task = start(&mut client, "sleep 2; echo done");
    let waiting = json!({ "name": "get_task_status", "arguments": { "task_id": task, "timeout": 40, "wait_for": "all", "since": 1 } });
    let ids: Vec<u64> = (0..50).map(|_| client.request("tools/call", &waiting)).collect();
    let mut left: std::collections::HashSet<u64> = ids.into_iter().collect();
    while !left.is_empty() {
        let frame = client.next();
        if frame["id"].as_u64().is_some_and(|id| left.remove(&id)) {
            assert_eq!(frame["result"]["structuredContent"]["result"], "done\n", "{frame}");
        }
    }
}
