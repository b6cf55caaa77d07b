//! Starting: byte for byte, in milliseconds although all places are taken, once for one key.

use std::time::{Duration, Instant};

use serde_json::json;

use super::{Bench, end_of, memory, reaches, start, start_with};
use crate::stdio::Client;

/// A prompt of a megabyte may make the daemon grow by this much for a moment: it is parsed, checked, stored and sent.
const GROWTH_MAX: u64 = 16 * 1024 * 1024;

#[test]
fn a_message_of_a_megabyte_arrives_byte_for_byte_and_comes_back_in_parts() {
    let bench = Bench::new();
    let mut client = bench.client();
    let line = "quotes \" ' ` $(no shell) \\ tab\t 待つ\r\n";
    let message = line.repeat(1_048_576 / line.len() + 1);
    let ask = |client: &mut Client| client.call("use_agent", &json!({ "cli_name": "cat", "message": message }));
    ask(&mut client);
    let (daemon, _) = bench.home.relayed();
    let before = memory::now(daemon);
    let said = ask(&mut client);
    assert_eq!(said["status"], "completed", "{}", &said.to_string()[..500]);
    let growth = memory::peak(daemon).saturating_sub(before);
    println!("a prompt of a megabyte: the daemon grew by {growth} bytes");
    assert!(growth <= GROWTH_MAX, "the daemon grew by {growth} bytes");
    let task = said["task_id"].as_str().unwrap();
    let mut read = String::new();
    let mut offset = Some(0);
    while let Some(from) = offset {
        let said = client.call("get_task_status", &json!({ "task_id": task, "output_offset": from }));
        let part = said["result"].as_str().unwrap();
        offset = said["next_output_offset"].as_u64();
        read.push_str(offset.map_or(part, |_| part.rsplit_once("\n[… ").unwrap().0));
    }
    assert_eq!(read.len(), message.len());
    assert!(read == message, "byte for byte");
}

#[test]
fn a_start_is_quick_although_all_places_are_taken_and_waiting_is_not_running() {
    let bench = Bench::with("[slots]\nagent_cli = 1\n");
    let mut client = bench.client();
    let first = start(&mut client, "sleep 3");
    reaches(&mut client, &first, "running");
    let mut slowest = Duration::ZERO;
    let mut task = String::new();
    for _ in 0..20 {
        let began = Instant::now();
        task = start(&mut client, "sleep 1; echo ran");
        slowest = slowest.max(began.elapsed());
        client.call("cancel_task", &json!({ "task_id": task, "mode": "immediate" }));
    }
    assert!(slowest < Duration::from_millis(200), "{slowest:?}");
    assert_eq!(end_of(&mut client, &task)["status"], "cancelled");
    let task = start(&mut client, "sleep 2; echo ran");
    let said = client.call("get_task_status", &json!({ "task_id": task }));
    assert_eq!((said["status"].as_str(), said["elapsed_time"].as_f64()), (Some("queued"), None), "{said}");
    let running = reaches(&mut client, &task, "running");
    assert!(running["elapsed_time"].as_f64().unwrap() < 1.5, "{running}");
    assert_eq!(end_of(&mut client, &task)["result"], "ran\n");
}

#[test]
fn one_key_makes_one_task_and_another_body_is_refused() {
    let bench = Bench::new();
    let mut client = bench.client();
    let first = start_with(&mut client, "echo 1", json!({ "idempotency_key": "k" }));
    assert_eq!(start_with(&mut client, "echo 1", json!({ "idempotency_key": "k" })), first);
    let arguments =
        |message| json!({ "cli_name": "script", "message": message, "run_async": true, "idempotency_key": "k" });
    let again = client.call("use_agent", &arguments("echo 1"));
    assert_eq!((&again["task_id"], &again["session_id"]), (&json!(first), &json!(first)), "{again}");
    assert!(again["message"].as_str().unwrap().starts_with("This is the task of an earlier call"), "{again}");
    assert_eq!(client.call("use_agent", &arguments("echo 2"))["error_code"], "IDEMPOTENCY_CONFLICT");
    // A client that names its own calls gets the same without saying so.
    let mut ids = Vec::new();
    for _ in 0..2 {
        let arguments = json!({ "cli_name": "script", "message": "echo 3", "run_async": true });
        let meta = json!({ "claudecode/toolUseId": "toolu_1" });
        let id = client.request("tools/call", &json!({ "name": "use_agent", "arguments": arguments, "_meta": meta }));
        ids.push(client.answer(id)["result"]["structuredContent"]["task_id"].clone());
    }
    assert_eq!(ids[0], ids[1]);
    assert_ne!(ids[0], first);
}
