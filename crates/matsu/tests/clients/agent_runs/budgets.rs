//! Limits of what runs may cost, and the choice of an agent: what is spent counts over retries, other agents and the
//! tasks that a run starts.

use serde_json::{Value, json};

use super::connect_back::way_back;
use super::costs::{usage, write_streaming};
use super::receipts::start_checked;
use super::worktrees::repository;
use super::{Bench, SOON, end_of, processes, start_with, unique_sleep};
use crate::home::until;
use crate::stdio::Client;

const WRITING: &str = "[agents]\nmode_max = \"workspace-write\"\n";

#[track_caller]
fn assert_out_of_budget(end: &Value, words: &str) {
    assert_eq!((&end["status"], &end["error_code"]), (&json!("failed"), &json!("BUDGET_EXHAUSTED")), "{end}");
    assert!(end["error"].as_str().unwrap().contains(words), "{end}");
}

#[test]
fn a_run_ends_when_its_budget_is_used_up_over_rounds_and_other_agents_and_keeps_its_work() {
    let bench = Bench::with(&format!("{WRITING}[prices.\"second\"]\ninput = 10000\noutput = 0\n"));
    repository(&bench.root);
    let sleep = unique_sleep();
    let bad = format!("{}; echo bad > a.txt", usage(60, 5, ""));
    let again = format!("{}; echo worse > a.txt", usage(30, 0, ""));
    write_streaming(&bench, "first", "run", &[&bad, &again]);
    let last = format!("{}; echo third > a.txt; sleep {sleep}", usage(60, 0, ""));
    write_streaming(&bench, "second", "run", &[&last]);
    let mut client = bench.client();
    let more = |budget: Value| json!({ "cli_name": "first", "fallback": ["second"], "retries": 1, "budget": budget });
    let check = json!("grep -q good a.txt");
    let task = start_checked(&mut client, "Make it good", &check, more(json!({ "tokens": 150 })));
    let end = end_of(&mut client, &task);
    assert_out_of_budget(&end, "155 of 150 tokens");
    assert_eq!((processes(&sleep), &end["usage"]["input_tokens"]), (0, &json!(150)), "{end}");
    assert!(end["error"].as_str().unwrap().contains("matsu retry --continue"), "{end}");
    let branch = end["changes"]["branch"].as_str().unwrap_or_else(|| panic!("its work is kept: {end}"));
    assert!(super::worktrees::git(&bench.root, &["show", &format!("{branch}:a.txt")]).contains("third"), "{end}");

    let task = start_checked(&mut client, "Make it good", &check, more(json!({ "cost": 0.5 })));
    let end = end_of(&mut client, &task);
    assert_out_of_budget(&end, "$0.60 of $0.50");

    // The budget is used up when a check has failed: nothing more is started.
    let task = start_checked(&mut client, "Make it good", &check, more(json!({ "tokens": 64 })));
    let end = end_of(&mut client, &task);
    assert_out_of_budget(&end, "65 of 64 tokens");

    let enough = start_with(
        &mut client,
        "echo '{\"type\":\"usage\",\"input_tokens\":9,\"output_tokens\":0}'; echo '{\"type\":\"result\",\"text\":\"x\"}'",
        json!({ "cli_name": "events", "budget": { "tokens": 10, "cost": 1.5 } }),
    );
    assert_eq!(end_of(&mut client, &enough)["status"], "completed");
    for wrong in [json!({}), json!({ "tokens": 0 }), json!({ "cost": -1.0 }), json!({ "pages": 3 })] {
        let said = client.call("use_agent", &json!({ "cli_name": "script", "message": "true", "budget": wrong }));
        assert!(said["error"].as_str().is_some_and(|why| why.contains("budget")), "{wrong}: {said}");
    }
}

#[test]
fn what_a_run_starts_counts_for_its_budget_too() {
    let bench = Bench::new();
    let mut client = bench.client();
    let sleep = unique_sleep();
    let child = format!("echo '{{\"type\":\"usage\",\"input_tokens\":100,\"output_tokens\":0}}'; sleep {sleep}");
    let call = json!({ "cli_name": "events", "message": child }).to_string().replace('\'', "'\\''");
    let task = start_with(
        &mut client,
        &way_back(&format!("use_agent '{call}'")),
        json!({ "cli_name": "back", "budget": { "tokens": 50 } }),
    );
    let end = end_of(&mut client, &task);
    assert_eq!(end["status"], "completed", "the caller itself has cost nothing: {end}");
    let said: Value = serde_json::from_str(end["result"].as_str().unwrap().trim()).unwrap();
    assert_eq!(said["error_code"], "BUDGET_EXHAUSTED", "{said}");
    assert!(said["error"].as_str().unwrap().contains("which started this one"), "{said}");
    assert_eq!(processes(&sleep), 0);
}

#[test]
fn a_day_has_a_limit_that_ends_runs_and_puts_later_ones_off() {
    let bench = Bench::with("[agents]\nday_tokens = 100\n");
    let mut client = bench.client();
    let sleep = unique_sleep();
    let said = |tokens: u32, then: &str| {
        format!("echo '{{\"type\":\"usage\",\"input_tokens\":{tokens},\"output_tokens\":0}}'; {then}")
    };
    let result = "echo '{\"type\":\"result\",\"text\":\"x\"}'";
    let first = start_with(&mut client, &said(60, result), json!({ "cli_name": "events" }));
    assert_eq!(end_of(&mut client, &first)["status"], "completed");
    let second = start_with(&mut client, &said(50, &format!("sleep {sleep}")), json!({ "cli_name": "events" }));
    assert_out_of_budget(&end_of(&mut client, &second), "110 of 100 tokens");
    let third = start_with(&mut client, &said(1, result), json!({ "cli_name": "events" }));
    let waiting = until("the third one waits", SOON, || {
        let said = client.call("get_task_status", &json!({ "task_id": third }));
        let why = said["status_message"].as_str().unwrap_or_default().to_owned();
        (said["status"] == "queued" && why.contains("limit of the day")).then_some(why)
    });
    assert!(waiting.contains("waits until") && waiting.contains("agents.day_tokens"), "{waiting}");
    client.call("cancel_task", &json!({ "task_id": third, "mode": "immediate" }));
}

/// What the reply to a start says about the choice.
#[track_caller]
fn chosen(client: &mut Client, message: &str, more: Value) -> (String, String) {
    let mut wish =
        json!({ "cli_name": "auto", "message": message, "mode": "workspace-write", "run_async": true, "retries": 1 });
    wish.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let said = client.call("use_agent", &wish);
    let task = said["task_id"].as_str().unwrap_or_else(|| panic!("{said}")).to_owned();
    end_of(client, &task);
    (task, said["message"].as_str().unwrap().to_owned())
}

#[test]
fn auto_takes_the_agent_with_quota_that_passed_more_checks_and_says_why() {
    let bench = Bench::with(WRITING);
    repository(&bench.root);
    let quota = "say '{\"type\":\"result\",\"error\":\"usage limit reached, resets in 2 hours\"}'; exit 1";
    let turn = format!("case $prompt in *Once*) {quota};; *) echo good > a.txt;; esac");
    write_streaming(&bench, "proven", "run", &[&turn]);
    let mut client = bench.client();
    let check = json!("grep -q good a.txt");
    let task = start_checked(&mut client, "Make it good", &check, json!({ "cli_name": "proven" }));
    assert_eq!(end_of(&mut client, &task)["status"], "completed");
    let (task, said) = chosen(&mut client, "Make it good", json!({ "check": check }));
    assert!(said.contains("Chosen: proven (proven passed 1 of 1 checks here"), "{said}");
    assert!(!said.contains("absent"), "one that is not installed is no choice: {said}");
    assert_eq!(client.call("get_task_status", &json!({ "task_id": task }))["receipt"]["agent"], "proven");

    let (_, said) = chosen(&mut client, "Once more", json!({ "check": check, "fallback": ["script"] }));
    assert!(said.contains("Chosen: proven"), "{said}");
    let (_, said) = chosen(&mut client, "echo good > a.txt", json!({ "check": check }));
    assert!(!said.contains("Chosen: proven") && said.contains("proven is out of quota until"), "{said}");
    let said = client.call("use_agent", &json!({ "cli_name": "auto", "message": "x", "effort": "no such effort" }));
    assert!(said["error"].as_str().is_some_and(|why| why.contains("no agent can be chosen")), "{said}");
}
