//! Notices to people through the real binary: every channel against a counterpart on this machine, with outages and
//! restarts of the daemon in between.

mod answers;
mod desktop;
mod push;
mod receiver;
mod telegram;

use std::path::Path;
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use serde_json::{Value, json};
use sha2::Sha256;

use crate::agent_runs::program;
use crate::home::{Daemon, Home, postgres_store, until};
use receiver::{Receiver, free_address};

const SOON: Duration = Duration::from_secs(40);

const ASKS: &str = r#"echo '{"type":"question","id":"q1","text":"Go on?","options":["yes","no"]}'
read answer
case "$answer" in *'"option":"yes"'*) echo '{"type":"result","text":"went on"}';; *) echo '{"type":"result","error":"no"}';; esac
"#;

/// A home with these settings.
fn home_with(settings: &str) -> Home {
    let home = Home::new();
    let config = home.path(".config/matsu");
    matsu_testkit::fake_agents::write(&config.join("agents")).unwrap();
    std::fs::write(config.join("config.toml"), settings).unwrap();
    home
}

fn start(daemon: &Daemon, agent: &str, script: &str) -> String {
    let arguments = json!({ "cli_name": agent, "message": script, "run_async": true });
    let reply = daemon.http().says("use_agent", &arguments);
    reply["task_id"].as_str().unwrap_or_else(|| panic!("{reply}")).to_owned()
}

/// The messages that a command has written to a file, one a line.
fn lines(file: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

fn of<'a>(notices: &'a [Value], task: &str) -> &'a Value {
    notices.iter().find(|notice| notice["task_id"] == task).unwrap_or_else(|| panic!("{task}: {notices:?}"))
}

#[test]
fn a_command_gets_ends_and_questions_that_are_unread_and_each_once() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("notices");
    let home = home_with(&format!(
        "[notify.mine]\nkind = \"command\"\ncommand = \"cat >> {0}; echo >> {0}\"\n\
         [notify.other]\nkind = \"command\"\nuser = \"ada\"\ncommand = \"cat >> {0}; echo >> {0}\"\n",
        file.display()
    ));
    let daemon = home.serve();
    let read = start(&daemon, "script", "echo read at once");
    until("its result is read", SOON, || {
        let arguments = json!({ "task_id": read, "timeout": 20 });
        (daemon.http().says("get_task_status", &arguments)["status"] == "completed").then_some(())
    });
    let done = start(&daemon, "script", "echo the result");
    let failed = start(&daemon, "script", "exit 5");
    let asks = start(&daemon, "events", ASKS);
    let notices = until("three notices have come", SOON, || Some(lines(&file)).filter(|lines| lines.len() >= 3));
    assert_eq!((&of(&notices, &done)["event"], &of(&notices, &failed)["event"]), (&json!("done"), &json!("failed")));
    let text = |task: &str| of(&notices, task)["text"].as_str().unwrap().to_owned();
    assert!(text(&done).starts_with("the result\nRead it: matsu result"), "{notices:?}");
    assert!(text(&failed).contains("See why: matsu status"), "{notices:?}");
    assert!(text(&asks).contains("Go on? [yes, no]"), "{notices:?}");
    assert!(of(&notices, &done)["link"].as_str().unwrap().ends_with(&format!("/tasks/{done}")), "{notices:?}");
    // A daemon that starts again sends nothing a second time.
    drop(daemon);
    let daemon = home.serve();
    let last = start(&daemon, "script", "echo last");
    let notices = until("the last notice has come", SOON, || {
        Some(lines(&file)).filter(|lines| lines.iter().any(|notice| notice["task_id"] == last.as_str()))
    });
    assert_eq!(notices.len(), 4, "{notices:?}");
    let tried = home.run(&["notify", "test", "mine"]);
    assert_eq!(tried["items"], json!([{ "channel": "mine", "ok": true, "error": null }]), "{tried}");
}

#[test]
fn an_end_while_no_channel_can_be_reached_arrives_signed_although_the_daemon_was_killed() {
    let address = free_address();
    let secret = BASE64_STANDARD.encode(b"twenty four bytes of key");
    let mut home = home_with(&format!(
        "[notify.hook]\nkind = \"webhook\"\nurl = \"http://{address}/in\"\nsecret_env = \"HOOK\"\nevents = \"done\"\n"
    ));
    home.set("HOOK", &format!("whsec_{secret}"));
    let daemon = home.serve();
    let task = start(&daemon, "script", "echo the result");
    let broken = until("the doctor names the channel", SOON, || {
        let output = home.command(&["doctor", "--json"]).output().unwrap();
        let report: Value = serde_json::from_slice(&output.stdout).ok()?;
        let findings = report["findings"].as_array()?.clone();
        findings.into_iter().find(|finding| finding["what"] == "notify" && finding["state"] == "problem")
    });
    assert!(broken["detail"].as_str().unwrap().starts_with("hook: 1 waiting, "), "{broken}");
    // As a power cut would.
    drop(daemon);
    let receiver = Receiver::at(address, vec![503, 200]);
    let _daemon = home.serve();
    let (first, second) = (receiver.next(SOON), receiver.next(SOON));
    assert_eq!(first.header("webhook-id"), second.header("webhook-id"), "the same notice has the same id");
    let body = second.json();
    assert_eq!((&body["type"], &body["data"]["task_id"]), (&json!("task.done"), &json!(task)), "{body}");
    assert_eq!(body["data"]["text"], format!("Read it: matsu result {task}"), "third parties get the title only");
    let (id, at) = (second.header("webhook-id"), second.header("webhook-timestamp"));
    let mut mac = Hmac::<Sha256>::new_from_slice(b"twenty four bytes of key").unwrap();
    mac.update(format!("{id}.{at}.{}", second.body).as_bytes());
    let signature = format!("v1,{}", BASE64_STANDARD.encode(mac.finalize().into_bytes()));
    assert_eq!(second.header("webhook-signature"), signature);
}

/// What the doctor says about channels.
fn doctored(home: &Home) -> Value {
    let output = home.command(&["doctor", "--json"]).output().unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let found = report["findings"].as_array().unwrap().iter().find(|finding| finding["what"] == "notify");
    found.unwrap_or_else(|| panic!("{report}")).clone()
}

#[test]
fn the_doctor_names_a_channel_whose_last_message_did_not_arrive_although_nothing_waits() {
    let address = free_address();
    let settings = format!("[notify.hook]\nkind = \"webhook\"\nurl = \"http://{address}/in\"\n");
    let home = home_with(&settings);
    let daemon = home.serve();
    let task = start(&daemon, "script", "echo the result");
    until("a try has failed", SOON, || (doctored(&home)["state"] == "problem").then_some(()));
    // The result is read, so the notice is not needed any more.
    until("its result is read", SOON, || {
        let said = daemon.http().says("get_task_status", &json!({ "task_id": task, "timeout": 20 }));
        (said["status"] == "completed").then_some(())
    });
    let found = until("nothing waits", SOON, || {
        Some(doctored(&home)).filter(|found| !found["detail"].as_str().unwrap().contains("waiting"))
    });
    assert_eq!(found["state"], "problem", "{found}");
    assert!(found["detail"].as_str().unwrap().starts_with("hook: the last message did not arrive, "), "{found}");
    let _receiver = Receiver::at(address, vec![200]);
    home.run(&["notify", "test"]);
    assert_eq!(doctored(&home)["state"], "ok");
}

#[test]
fn many_ends_at_once_are_few_messages_that_name_each_once() {
    let receiver = Receiver::at(free_address(), vec![200]);
    let mut home = home_with(&format!(
        "[slots]\nagent_cli = 8\n[notify.phone]\nkind = \"ntfy\"\nurl = \"http://{}\"\ntopic = \"secret-topic\"\nsecret_env = \"TOKEN\"\n",
        receiver.address
    ));
    home.set("TOKEN", "tk_1234567");
    let daemon = home.serve();
    let task = start(&daemon, "script", "exit 4");
    let one = receiver.next_post(SOON);
    let body = one.json();
    assert_eq!((&body["topic"], &body["priority"]), (&json!("secret-topic"), &json!(4)), "{body}");
    assert_eq!(one.header("authorization"), "Bearer tk_1234567");
    assert!(body["title"].as_str().unwrap().starts_with("failed: "), "{body}");
    assert!(body["click"].as_str().unwrap().ends_with(&format!("/tasks/{task}")), "{body}");
    let may_end = home.signal("may_end");
    let script = format!("until [ -e {} ]; do sleep 0.05; done", may_end.display());
    for _ in 0..6 {
        start(&daemon, "script", &script);
    }
    std::fs::write(may_end, "").unwrap();
    let (mut named, mut messages) = (0, 0);
    while named < 6 {
        let title = receiver.next_post(SOON).json()["title"].as_str().unwrap().to_owned();
        let count = title.strip_prefix("Matsu: ").and_then(|rest| rest.split(' ').next()?.parse().ok());
        named += count.unwrap_or(1);
        messages += 1;
    }
    assert!(named == 6 && messages <= 3, "{named} in {messages} messages");
}

#[test]
fn the_desktop_gets_a_title_and_a_text_as_arguments() {
    let mut home = home_with("[notify.screen]\nkind = \"desktop\"\nevents = \"failed\"\n");
    let folder = home.path("programs");
    std::fs::create_dir_all(&folder).unwrap();
    let file = home.path("shown");
    program(&folder.join("notify-send"), &format!("#!/bin/sh\nprintf '%s|' \"$@\" >> {}\n", file.display()));
    home.set("PATH", &format!("{}:{}", folder.display(), std::env::var("PATH").unwrap()));
    let daemon = home.serve();
    start(&daemon, "script", "echo \"$(rm -rf /nowhere)\"; exit 3");
    let shown = until("it is shown", SOON, || std::fs::read_to_string(&file).ok().filter(|text| !text.is_empty()));
    assert!(shown.starts_with("--app-name|Matsu|--urgency|critical|--|failed: "), "{shown}");
    assert!(shown.contains("See why: matsu status task_"), "{shown}");
}

#[test]
fn two_daemons_on_one_store_send_each_notice_once() {
    let receiver = Receiver::at(free_address(), vec![200]);
    let settings = format!("[notify.hook]\nkind = \"webhook\"\nurl = \"http://{}\"\n", receiver.address);
    let (one, two) = (home_with(&settings), home_with(&settings));
    let url = postgres_store(&one);
    let both = [one.serve_with(&[("MATSU_STORE_URL", &url)]), two.serve_with(&[("MATSU_STORE_URL", &url)])];
    let tasks: Vec<String> = (0..3).map(|n| start(&both[n % 2], "script", "echo x")).collect();
    let mut named = Vec::new();
    while named.len() < tasks.len() {
        named.push(receiver.next(SOON).json()["data"]["task_id"].as_str().unwrap().to_owned());
    }
    named.sort();
    let mut expected = tasks.clone();
    expected.sort();
    assert_eq!(named, expected);
    let last = start(&both[0], "script", "echo last");
    assert_eq!(receiver.next(SOON).json()["data"]["task_id"], last.as_str(), "nothing came twice before it");
}

#[test]
fn a_message_about_many_ends_keeps_its_id_when_it_is_sent_again() {
    let mut is_first = true;
    let refuse_first_bundle = move |got: &receiver::Got| {
        let is_refused = is_first && got.body.contains("Matsu: ");
        is_first &= !is_refused;
        if is_refused { 503 } else { 200 }
    };
    let receiver = Receiver::answering(free_address(), refuse_first_bundle, |_| Some(String::new()));
    let home = home_with(&format!(
        "[slots]\nagent_cli = 12\n[notify.hook]\nkind = \"webhook\"\nurl = \"http://{}\"\n",
        receiver.address
    ));
    let daemon = home.serve();
    let may_end = home.signal("may_end");
    let script = format!("until [ -e {} ]; do sleep 0.05; done", may_end.display());
    for _ in 0..12 {
        start(&daemon, "script", &script);
    }
    std::fs::write(may_end, "").unwrap();
    let title = |got: &receiver::Got| got.json()["data"]["title"].as_str().unwrap().to_owned();
    let is_bundle = |got: &receiver::Got| title(got).starts_with("Matsu: ");
    let refused = std::iter::repeat_with(|| receiver.next(SOON)).find(is_bundle).unwrap();
    // More ends while it waits are a message of their own, so they change nothing about it.
    let later = start(&daemon, "script", "echo later");
    let mut others = Vec::new();
    let again = loop {
        let got = receiver.next(SOON);
        if got.header("webhook-id") == refused.header("webhook-id") {
            break got;
        }
        others.push(got);
    };
    assert_eq!(title(&again), title(&refused), "the same tasks");
    while !others.iter().any(|got| got.json()["data"]["task_id"] == later.as_str() || is_bundle(got)) {
        others.push(receiver.next(SOON));
    }
    let ids: std::collections::HashSet<&str> = others.iter().map(|got| got.header("webhook-id")).collect();
    assert!(ids.len() == others.len() && !ids.contains(again.header("webhook-id")), "{others:?}");
}

#[test]
fn a_section_that_is_wrong_is_named_with_what_is_expected() {
    for (section, why) in [
        ("kind = \"pigeon\"", "command, desktop, webhook, ntfy, telegram or push"),
        ("kind = \"webhook\"", "notify.x.url is missing"),
        ("kind = \"desktop\"\nevents = \"done,born\"", "must be of done, failed, asks, budget and quota"),
        ("kind = \"desktop\"\ntopic = \"t\"", "notify.x.topic has no effect"),
        ("kind = \"desktop\"\ncontent = \"all\"", "none, title or full"),
        ("kind = \"telegram\"\nchat = \"1\"", "no token"),
        ("kind = \"push\"\ncontact = \"me\"", "must begin with mailto: or https:"),
        ("kind = \"push\"\nallow_hosts = \"a/b\"", "not a host or host:port"),
        ("kind = \"webhook\"\nurl = \"http://127.0.0.1:1\"\nsecret_env = \"NOT_THERE\"", "NOT_THERE is not set"),
    ] {
        let home = home_with(&format!("[notify.x]\n{section}\n"));
        let output = home.command(&["notify", "test"]).output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && error.contains(why), "{section}: {error}");
    }
    // An address that cannot be one is refused by every command that reads the file, without what may be a secret.
    for (url, shown) in [("notaurl", "\"notaurl\""), ("ftp://x/secret", "\"ftp:/…\""), ("https://", "\"https:/…\"")]
    {
        let home = home_with(&format!("[notify.x]\nkind = \"webhook\"\nurl = \"{url}\"\n"));
        for command in [&["tasks"][..], &["notify", "test"], &["serve"]] {
            let output = home.command(command).output().unwrap();
            let error = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(!output.status.success() && error.contains("notify.x.url must be an address"), "{url}: {error}");
            assert!(error.contains(&format!("got {shown}")) && !error.contains("secret"), "{url}: {error}");
        }
    }
    let home = home_with("[notify.x]\nknid = \"desktop\"\n");
    let output = home.command(&["tasks"]).output().unwrap();
    assert!(String::from_utf8_lossy(&output.stderr).contains("notify.x has no knid"), "{output:?}");
}

#[test]
fn quota_and_budget_are_events_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let (poor, failures) = (folder.path().join("poor"), folder.path().join("failures"));
    let home = home_with(&format!(
        "[notify.poor]\nkind = \"command\"\nevents = \"quota,budget\"\nread = \"on\"\ncommand = \"cat >> {0}; echo >> {0}\"\n\
         [notify.failures]\nkind = \"command\"\nevents = \"failed\"\ncommand = \"cat >> {1}; echo >> {1}\"\n",
        poor.display(),
        failures.display()
    ));
    let daemon = home.serve();
    let limit = r#"echo '{"type":"result","error":"usage limit reached, try again in 500 seconds"}'"#;
    let failed = start(&daemon, "script", "exit 5");
    let quota = start(&daemon, "events", limit);
    let waits = start(&daemon, "events", &format!("echo '{{\"type\":\"session\",\"id\":\"talk-1\"}}'\n{limit}\n"));
    let made = daemon.http().says("create_task", &json!({ "query": "Is it cheap?" }));
    let budget = made["task_id"].as_str().unwrap_or_else(|| panic!("{made}")).to_owned();
    let stopped = daemon.http().says("stop_task", &json!({ "task_id": budget, "reason": "budget_exhausted" }));
    assert_eq!(stopped["ok"], true, "{stopped}");
    let notices = until("three notices have come", SOON, || Some(lines(&poor)).filter(|lines| lines.len() >= 3));
    for (task, event, text) in [
        (&quota, "quota", "matsu retry"),
        (&waits, "quota", "The task continues at "),
        (&budget, "budget", "matsu status"),
    ] {
        let notice = of(&notices, task);
        assert_eq!(notice["event"], event, "{notice}");
        assert!(notice["text"].as_str().unwrap().contains(text), "{notice}");
    }
    assert!(!notices.iter().any(|notice| notice["task_id"] == failed.as_str()), "{notices:?}");
    let ends = until("both failures have come", SOON, || Some(lines(&failures)).filter(|lines| lines.len() >= 2));
    assert_eq!((&of(&ends, &failed)["event"], &of(&ends, &quota)["event"]), (&json!("failed"), &json!("quota")));
}
