//! Limits: never more at once, and never stuck, not even with one place for a run that waits for its own.

use serde_json::{Value, json};

use super::{Bench, end_of, memory, start, start_with, unique_sleep};

#[test]
fn with_one_place_several_agents_still_finish_one_after_the_other() {
    let bench = Bench::with("[slots]\nagent_cli = 1\n");
    let mut client = bench.client();
    let nap = unique_sleep();
    let count = r#"awk '$0 == ENVIRON["NAP"] { n++ } END { print n }'"#;
    let all = r"cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\0' '\n'";
    // Other runs of the same time sleep then too.
    let message = format!("sleep {nap} & sleep 0.5; {all} | NAP={nap} {count}; kill $!");
    let arguments = json!({ "message": message, "cli_names": ["script", "other"] });
    let said = client.call("use_agents", &arguments);
    assert_eq!((said["status"].as_str(), said["failed_count"].as_i64()), (Some("completed"), Some(0)), "{said}");
    let results = said["results"].as_array().unwrap();
    let names: Vec<&Value> = results.iter().map(|result| &result["cli_name"]).collect();
    assert_eq!(names, ["script", "other"]);
    for result in results {
        assert_eq!(result["result"], "1\n", "one at a time: {said}");
    }
}

#[test]
fn each_agent_has_its_own_outcome_and_partial_ones_are_visible() {
    let bench = Bench::new();
    let mut client = bench.client();
    // The same words mean three things to three programs: text, a failing script, and one that takes longer.
    let message = "[ -n \"$SYSTEM_FILE\" ] || sleep 4; exit 0";
    let said = client.call(
        "use_agents",
        &json!({ "message": message, "cli_names": ["cat", "other", "claudish"], "run_async": true }),
    );
    let task = said["task_id"].as_str().unwrap_or_else(|| panic!("{said}")).to_owned();
    let partial = crate::home::until("one answer is there", super::SOON, || {
        let said = client.call("get_task_status", &json!({ "task_id": task }));
        let done = said["results"].as_array()?.iter().any(|result| result["status"] == "completed");
        (done && said["status"] == "running").then_some(said)
    });
    assert_eq!(partial["results"][0]["result"], message, "{partial}");
    let end = end_of(&mut client, &task);
    assert_eq!((end["status"].as_str(), end["failed_count"].as_i64()), (Some("completed"), Some(1)), "{end}");
    assert_eq!(end["results"][2]["error_code"], "AGENT_NO_RESULT", "{end}");
}

/// 200 queued runs may make the daemon grow by this much at most.
const GROWTH_MAX: u64 = 32 * 1024 * 1024;

#[test]
fn two_hundred_queued_runs_finish_five_at_a_time() {
    let bench = Bench::with("[agents]\nmode_max = \"workspace-write\"\n");
    let mut client = bench.client();
    let warm_up = start(&mut client, "true");
    end_of(&mut client, &warm_up);
    let (daemon, _) = bench.home.relayed();
    let before = memory::now(daemon);
    let script = "own=$(mktemp -d r.XXXXXX); ls -d r.* | wc -l; rmdir $own";
    let tasks: Vec<String> =
        (0..200).map(|_| start_with(&mut client, script, json!({ "mode": "workspace-write" }))).collect();
    for task in &tasks {
        let end = end_of(&mut client, task);
        let at_once: u32 = end["result"].as_str().unwrap_or_else(|| panic!("{end}")).trim().parse().unwrap();
        assert!((1..=5).contains(&at_once), "{end}");
    }
    let growth = memory::peak(daemon).saturating_sub(before);
    println!("200 runs: the daemon grew by {growth} bytes");
    assert!(growth <= GROWTH_MAX, "the daemon grew by {growth} bytes");
}

/// A script that calls a tool, for an agent that was given the way back.
fn call(tool: &str, arguments: &Value) -> String {
    let arguments = arguments.to_string().replace('\'', "'\\''");
    format!("$MATSU --data-dir $DATA call {tool} '{arguments}'")
}

#[test]
fn several_agents_inside_a_run_finish_with_one_place_two_deep() {
    let bench = Bench::with("[slots]\nagent_cli = 1\n");
    let mut client = bench.client();
    let deepest = call("use_agent", &json!({ "cli_name": "script", "message": "echo deepest" }));
    let both = json!({ "cli_names": ["back", "other"], "message": deepest });
    let task = start_with(&mut client, &call("use_agents", &both), json!({ "cli_name": "back" }));
    let end = end_of(&mut client, &task);
    assert_eq!(end["status"], "completed", "{end}");
    assert_eq!(end["result"].as_str().unwrap().matches("deepest\\\\n").count(), 2, "{end}");
}

#[test]
fn a_run_that_waits_for_its_own_run_finishes_with_one_place_two_deep() {
    let bench = Bench::with("[slots]\nagent_cli = 1\n");
    let mut client = bench.client();
    let inner = |message: &str| call("use_agent", &json!({ "cli_name": "back", "message": message }));
    let task = start_with(&mut client, &inner(&inner("echo deepest")), json!({ "cli_name": "back" }));
    let end = end_of(&mut client, &task);
    assert_eq!(end["status"], "completed", "{end}");
    assert!(end["result"].as_str().unwrap().contains("deepest"), "{end}");
}
