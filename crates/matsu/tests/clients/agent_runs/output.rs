//! Long output: kept whole, read in parts.

use serde_json::json;

use super::{Bench, end_of, memory, start};

/// A run of ten megabytes may make the daemon grow by this much. A copy of them in memory would be five times that.
const GROWTH_MAX: u64 = 2 * 1024 * 1024;

#[test]
fn ten_megabytes_are_kept_whole_and_not_in_memory() {
    let bench = Bench::new();
    let mut client = bench.client();
    // Whatever the first run brings into memory besides its output is there afterwards.
    let warm_up = start(&mut client, "seq 1 100000");
    end_of(&mut client, &warm_up);
    let (pid, _) = bench.home.relayed();
    let before = memory::now(pid);
    let task = start(&mut client, "seq 1 1500000 | head -c 10485760");
    let end = end_of(&mut client, &task);
    let growth = memory::peak(pid).saturating_sub(before);
    assert!(growth <= GROWTH_MAX, "the daemon grew by {growth} bytes");
    assert_eq!((end["status"].as_str(), end["output_bytes"].as_u64()), (Some("completed"), Some(10_485_760)), "{end}");
    let head = end["result"].as_str().unwrap();
    assert!(head.len() < 9_000 && head.contains("more bytes: call again with output_offset"), "{}", head.len());
    let said = client.call("get_task_status", &json!({ "task_id": task, "output_offset": 10_485_700, "tail": 3 }));
    assert_eq!(said["next_output_offset"], json!(null), "{said}");
    assert!(said["result"].as_str().unwrap().len() == 60, "{said}");
    assert_eq!(said["tail"].as_str().unwrap().lines().count(), 3, "{said}");
}

#[test]
fn what_a_run_says_can_be_followed_while_it_runs() {
    let bench = Bench::new();
    let mut client = bench.client();
    let task = start(&mut client, "echo first; sleep 3; echo second");
    let said = crate::home::until("the first line is there", super::SOON, || {
        let said = client.call("get_task_status", &json!({ "task_id": task, "tail": 10 }));
        (said["tail"] == "first").then_some(said)
    });
    assert_eq!((said["status"].as_str(), said["progress"].as_str()), (Some("running"), Some("first")), "{said}");
    assert_eq!(end_of(&mut client, &task)["result"], "first\nsecond\n");
}
