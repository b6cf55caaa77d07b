//! What runs cost, runs that stall, and quotas: nothing is counted twice, and what is waited for is said.

use serde_json::{Value, json};

use super::receipts::start_checked;
use super::worktrees::repository;
use super::{Bench, SOON, end_of, processes, program, reaches, start_with, unique_sleep};
use crate::home::{kill, until};

const PRICED: &str = "[agents]\nmode_max = \"workspace-write\"\n[prices.\"m1\"]\ninput = 1000\noutput = 0\n";

/// An agent that streams, counts its conversation from the beginning if asked to, and does something else each turn.
pub fn write_streaming(bench: &Bench, name: &str, scope: &str, turns: &[&str]) {
    let path = bench.home.path(name);
    let cases: String = turns.iter().enumerate().map(|(turn, script)| format!("{}) {script};;\n", turn + 1)).collect();
    let script = format!(
        "turn=1; [ -f turn-{name} ] && turn=$(($(cat turn-{name}) + 1)); echo $turn > turn-{name}\nread -r prompt\n\
         say() {{ printf '%s\\n' \"$1\"; }}\nsay \"{{\\\"type\\\":\\\"session\\\",\\\"id\\\":\\\"talk-{name}\\\"}}\"\n\
         case $turn in\n{cases}esac\nsay '{{\"type\":\"result\",\"text\":\"done\"}}'\n"
    );
    program(&path, &script);
    let definition = format!(
        "name = \"{name}\"\ncommand = \"{}\"\nprompt = \"stdin\"\noutput = \"events\"\n\
         [session]\nusage = \"{scope}\"\nresume = {{ args = [\"resume\", \"{{session}}\"] }}\n[quota]\npatterns = [\"usage limit\"]\n",
        path.display()
    );
    std::fs::write(bench.home.path(".config/matsu/agents").join(format!("{name}.toml")), definition).unwrap();
}

pub fn usage(input: u32, output: u32, more: &str) -> String {
    format!("say '{{\"type\":\"usage\",\"input_tokens\":{input},\"output_tokens\":{output}{more}}}'")
}

fn sum<'a>(said: &'a Value, agent: &str) -> &'a Value {
    let items = said["items"].as_array().unwrap();
    items.iter().find(|item| item["agent"] == agent).unwrap_or_else(|| panic!("{agent}: {said}"))
}

#[test]
fn each_run_is_counted_once_over_rounds_other_agents_killed_runs_and_killed_daemons() {
    let bench = Bench::with(PRICED);
    repository(&bench.root);
    let model = "say '{\"type\":\"model\",\"name\":\"m1\"}'";
    let first = format!("{model}; {}; {}; echo bad > a.txt", usage(60, 5, ""), usage(100, 10, ""));
    let again = format!("{model}; {}; echo worse > a.txt", usage(150, 30, ""));
    write_streaming(&bench, "first", "conversation", &[&first, &again]);
    let second = format!("{}; echo good > a.txt", usage(7, 3, ",\"cost_usd\":0.25"));
    write_streaming(&bench, "second", "run", &[&second]);
    let mut client = bench.client();
    let more = json!({ "cli_name": "first", "fallback": ["second"], "retries": 1 });
    let task = start_checked(&mut client, "Make a.txt good", &json!("grep -q good a.txt"), more);
    let end = end_of(&mut client, &task);
    assert_eq!((&end["status"], &end["receipt"]["agent"]), (&json!("completed"), &json!("second")), "{end}");
    assert_eq!(end["usage"]["input_tokens"], 157, "the job has the sum of all: {end}");

    let (sleep, go_on) = (unique_sleep(), bench.home.signal("go_on"));
    let said = r#"echo '{"type":"usage","input_tokens":1000,"output_tokens":1}'; echo '{"type":"text","text":"x"}'"#;
    let killed = start_with(&mut client, &format!("{said}; sleep {sleep}"), json!({ "cli_name": "events" }));
    until("it has said its usage", SOON, || (processes(&sleep) > 0).then_some(()));
    client.call("cancel_task", &json!({ "task_id": killed, "mode": "immediate" }));
    let wait = format!("while [ ! -e {} ]; do sleep 0.05; done; echo '{{\"type\":\"result\"}}'", go_on.display());
    let followed = start_with(&mut client, &format!("{said}; {wait}"), json!({ "cli_name": "events" }));
    reaches(&mut client, &followed, "running");
    let (daemon, _) = bench.home.relayed();
    kill(daemon);
    client = bench.client();
    until("another daemon serves", SOON, || (bench.home.relayed().0 != daemon).then_some(()));
    std::fs::write(&go_on, "").unwrap();
    assert_eq!(end_of(&mut client, &followed)["status"], "completed");
    let plain = start_with(&mut client, "echo hello", json!({}));
    end_of(&mut client, &plain);

    let said = until("every run is counted", SOON, || {
        let said = bench.home.run(&["usage", "--by", "agent,model"]);
        (said["total"]["runs"] == 6).then_some(said)
    });
    let figures = |agent: &str| {
        let sum = sum(&said, agent);
        ["model", "runs", "input_tokens", "output_tokens", "cost_usd", "unknown_runs"].map(|name| sum[name].clone())
    };
    assert_eq!(json!(figures("first")), json!(["m1", 2, 150, 30, 0.15, 0]), "by the prices: {said}");
    assert_eq!(json!(figures("second")), json!([null, 1, 7, 3, 0.25, 0]), "{said}");
    assert_eq!(json!(figures("events")), json!([null, 2, 2000, 2, null, 0]), "{said}");
    assert_eq!(json!(figures("script")), json!([null, 1, 0, 0, null, 1]), "{said}");
    assert_eq!(said["total"]["input_tokens"], 2157, "{said}");
    let people = bench.home.command(&["usage"]).output().unwrap();
    let people = String::from_utf8(people.stdout).unwrap();
    assert!(people.contains("total") && people.contains("~$0.15") && people.contains("1 of the runs"), "{people}");
}

#[test]
fn a_run_that_prints_nothing_is_ended_and_says_so_and_one_that_prints_is_not() {
    let bench = Bench::new();
    let mut client = bench.client();
    let sleep = unique_sleep();
    let silent = start_with(&mut client, &format!("echo begun; sleep {sleep}"), json!({ "stall_timeout": 1 }));
    let busy = "for n in 1 2 3 4 5 6; do sleep 0.5; echo $n >&2; done; echo done";
    let busy = start_with(&mut client, busy, json!({ "stall_timeout": 2 }));
    let end = end_of(&mut client, &silent);
    assert_eq!((&end["status"], &end["error_code"]), (&json!("failed"), &json!("AGENT_STALLED")), "{end}");
    assert_eq!((&end["result"], processes(&sleep)), (&json!("begun\n"), 0), "{end}");
    assert!(end["error"].as_str().unwrap().contains("printed nothing for 1 s"), "{end}");
    let end = end_of(&mut client, &busy);
    assert_eq!((&end["status"], &end["result"]), (&json!("completed"), &json!("done\n")), "{end}");
    let refused = client.call("use_agent", &json!({ "cli_name": "script", "message": "true", "stall_timeout": 0 }));
    assert!(refused["error"].as_str().is_some_and(|why| why.contains("stall_timeout")), "{refused}");
    let fallback = json!({ "stall_timeout": 1, "fallback": ["cat"] });
    let task = start_with(&mut client, &format!("sleep {sleep}"), fallback);
    let end = end_of(&mut client, &task);
    assert_eq!((&end["status"], &end["tried"][0]["agent"]), (&json!("completed"), &json!("script")), "{end}");
}

#[test]
fn a_run_that_waits_for_a_quota_says_until_when_and_why() {
    let bench = Bench::new();
    let mut client = bench.client();
    let at = jiff::Timestamp::now() + jiff::SignedDuration::from_hours(2);
    let shown = at.strftime("%-I:%M %p").to_string();
    let messages = [
        (
            format!("usage limit reached, try again at {shown} (UTC)"),
            at.strftime("until %Y-%m-%dT%H:%M:00").to_string(),
        ),
        ("usage limit reached".to_owned(), "out of quota until".to_owned()),
    ];
    for (message, expected) in messages {
        let script = format!(
            "echo '{{\"type\":\"session\",\"id\":\"talk-1\"}}'; echo '{{\"type\":\"result\",\"error\":\"{message}\"}}'"
        );
        let task = start_with(&mut client, &script, json!({ "cli_name": "events" }));
        let waiting = until("it waits", SOON, || {
            let said = client.call("get_task_status", &json!({ "task_id": task }));
            let progress = said["status_message"].as_str().unwrap_or_default();
            (said["status"] == "queued" && progress.contains(&expected)).then_some(said.clone())
        });
        assert!(waiting["status_message"].as_str().unwrap().contains("usage limit reached"), "{waiting}");
        let people = bench.home.command(&["status", &task]).output().unwrap();
        let people = String::from_utf8(people.stdout).unwrap();
        assert!(people.contains("out of quota until"), "{people}");
        client.call("cancel_task", &json!({ "task_id": task, "mode": "immediate" }));
    }
}
