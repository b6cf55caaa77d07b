//! Agents that are started for a chat: a person's message is the scripted program's script, what it prints is the
//! answer, and the next message resumes the same conversation.

use std::time::Duration;

use serde_json::json;

use crate::home::{kill, until};

use super::stage::{Stage, text};

const SOON: Duration = Duration::from_secs(20);

/// A script that goes on when this file is there.
fn waits_for(stage: &Stage, file: &str) -> (std::path::PathBuf, String) {
    let path = stage.home.signal(file);
    let script = format!("while [ ! -e {} ]; do sleep 0.05; done", path.display());
    (path, script)
}

#[test]
fn a_message_starts_the_agent_and_the_next_one_resumes_it() {
    starts_and_resumes(&Stage::new());
}

pub fn starts_and_resumes(stage: &Stage) {
    let chat = stage.started("worker", "script");
    assert_eq!(stage.chat_state(&chat), "idle", "there is no message yet");
    let (go, wait) = waits_for(stage, "go");
    stage.say(&chat, &format!("{wait}\necho hello; echo \"$@\""));
    stage.reaches_state(&chat, "connected");
    assert_eq!(stage.sessions("active").len(), 1);
    assert!(stage.chat(&chat)["awaiting_reply"].as_bool().unwrap());
    std::fs::write(go, "").unwrap();
    let first = stage.hears(&chat, "agent", 1)[0].clone();
    let conversation = first.strip_prefix("hello\nnew ").unwrap_or_else(|| panic!("{first}")).to_owned();
    stage.reaches_state(&chat, "idle");
    assert!(!stage.chat(&chat)["awaiting_reply"].as_bool().unwrap());
    assert!(stage.sessions("active").is_empty());
    assert_eq!(text(&stage.sessions("ended")[0]["end_reason"]), "process_ended");
    stage.say(&chat, "echo \"$@\"");
    assert_eq!(stage.hears(&chat, "agent", 2)[1], format!("resume {conversation}"));
    let answer = stage.get(&format!("/chats/{chat}/messages?after=3"))["items"][0].clone();
    let asked = stage.get(&format!("/chats/{chat}/messages?after=2"))["items"][0].clone();
    assert_eq!((&answer["sender_id"], &answer["reply_to"]), (&json!("worker"), &asked["id"]));
}

/// Asks, and prints the answer.
const ASKS: &str = r#"echo '{"type":"question","id":"q1","text":"Go on?","options":["yes","no"]}'
read answer || exit 3
case "$answer" in *'"option":"yes"'*) echo '{"type":"result","text":"went on"}';; *) echo '{"type":"result","text":"stayed"}';; esac
"#;

#[test]
fn a_question_parks_and_its_answer_goes_on() {
    answers_what_is_asked(&Stage::with(&[("MATSU_SLOTS_AGENT_CHAT", "1")]));
}

pub fn answers_what_is_asked(stage: &Stage) {
    let chat = stage.started("worker", "events");
    stage.say(&chat, ASKS);
    let asked = until("it asks", SOON, || Some(stage.chat(&chat)["question"].clone()).filter(|asked| !asked.is_null()));
    assert_eq!(asked, json!({ "id": "q1", "text": "Go on?", "options": ["yes", "no"] }));
    assert_eq!(stage.chat_state(&chat), "connected");
    // There is one permit, and an agent that waits for an answer has freed it for others.
    let other = stage.started("other", "script");
    stage.say(&other, "echo here");
    assert_eq!(stage.hears(&other, "agent", 1), ["here"]);
    let answer = |wish: serde_json::Value| stage.rest("POST", &format!("/chats/{chat}/answer"), &wish);
    for (wish, why) in [
        (json!({ "id": "q2", "option": "yes" }), "not open"),
        (json!({ "id": "q1", "option": "perhaps" }), "one of yes, no"),
        (json!({ "id": "q1" }), "exactly one of option and text"),
    ] {
        let (status, problem) = answer(wish);
        assert!(status == 400 && text(&problem["detail"]).contains(why), "{status} {problem}");
    }
    assert!(stage.words_of(&chat, "agent").is_empty());
    assert_eq!(answer(json!({ "id": "q1", "option": "yes" })).0, 200);
    assert_eq!(stage.hears(&chat, "agent", 1), ["went on"]);
    stage.reaches_state(&chat, "idle");
    assert!(stage.chat(&chat)["question"].is_null());
    // Both stay in the chat, once.
    assert_eq!(stage.words_of(&chat, "system"), ["The agent asked: Go on?\nThe answer was: yes"]);
    let (status, problem) = answer(json!({ "id": "q1", "option": "yes" }));
    assert_eq!((status, problem["error_code"].as_str()), (400, Some("INVALID_PARAMS")), "{problem}");
}

#[test]
fn one_that_asks_can_be_stopped() {
    let stage = Stage::new();
    let chat = stage.started("worker", "events");
    stage.say(&chat, ASKS);
    until("it asks", SOON, || (!stage.chat(&chat)["question"].is_null()).then_some(()));
    stage.good("POST", &format!("/chats/{chat}/stop"), &json!({}));
    assert!(stage.hears(&chat, "system", 1)[0].contains("stopped"));
    stage.reaches_state(&chat, "idle");
    assert!(stage.sessions("active").is_empty() && stage.words_of(&chat, "agent").is_empty());
}

#[test]
fn what_is_said_meanwhile_is_answered_next_and_in_order() {
    let stage = Stage::new();
    let chat = stage.started("worker", "script");
    let (go, wait) = waits_for(&stage, "go");
    stage.say(&chat, &format!("{wait}\necho first"));
    stage.reaches_state(&chat, "connected");
    for n in 1..=12 {
        stage.say(&chat, &format!("echo {n}"));
    }
    std::fs::write(go, "").unwrap();
    let said = stage.hears(&chat, "agent", 3);
    let ten = (1..=10).map(|n| n.to_string()).collect::<Vec<_>>().join("\n");
    assert_eq!(said, ["first", &ten, "11\n12"]);
}

#[test]
fn a_long_answer_is_several_messages() {
    let stage = Stage::new();
    let chat = stage.started("worker", "script");
    stage.say(&chat, "head -c 9000 /dev/zero | tr '\\0' x");
    let said = stage.hears(&chat, "agent", 3);
    assert_eq!(said.iter().map(String::len).collect::<Vec<_>>(), [4_000, 4_000, 1_000]);
    stage.say(&chat, "true");
    assert!(stage.hears(&chat, "system", 1)[0].contains("without an answer"));
    assert!(!stage.chat(&chat)["awaiting_reply"].as_bool().unwrap());
}

#[test]
fn a_failed_start_is_shown_and_tried_again_and_then_left_to_the_person() {
    let stage = Stage::new();
    let chat = stage.started("worker", "script");
    let repaired = stage.home.signal("repaired");
    stage.say(&chat, &format!("[ -e {} ] || exit 3", repaired.display()));
    let lines = stage.hears(&chat, "system", 3);
    assert!(lines[0].contains("code 3") && lines[0].contains("again in 1 s"), "{lines:?}");
    assert!(lines[2].contains("Write again"), "{lines:?}");
    stage.reaches_state(&chat, "idle");
    assert!(stage.words_of(&chat, "agent").is_empty());
    std::fs::write(repaired, "").unwrap();
    stage.say(&chat, "echo back");
    assert_eq!(stage.hears(&chat, "agent", 1), ["back"], "what was not answered came again, and failed no more");
    assert_eq!(stage.words_of(&chat, "system").len(), 3);
}

#[test]
fn what_cannot_be_started_is_said_at_once() {
    let stage = Stage::new();
    let chat = stage.started("worker", "absent");
    stage.say(&chat, "hello");
    let lines = stage.hears(&chat, "system", 1);
    assert!(lines[0].contains("not installed") && lines[0].contains("Write again"), "{lines:?}");
    stage.reaches_state(&chat, "idle");
    let wish = json!({ "id": "other", "name": "other", "definition": "unknown" });
    let (status, problem) = stage.rest("POST", "/agents", &wish);
    assert_eq!((status, problem["error_code"].as_str()), (404, Some("AGENT_NOT_FOUND")), "{problem}");
}

#[test]
fn an_answer_goes_on_when_its_daemon_is_killed() {
    let stage = Stage::new();
    let chat = stage.started("worker", "script");
    stage.say(&chat, "echo \"$@\"");
    let conversation = stage.hears(&chat, "agent", 1)[0].strip_prefix("new ").unwrap().to_owned();
    let (go, wait) = waits_for(&stage, "go");
    // No other program sleeps for exactly this long.
    let nap = format!("0.05{}", chat.bytes().map(|byte| (byte % 10).to_string()).collect::<String>());
    stage.say(&chat, &format!("at=$(date +%s%3N)\n{}\necho \"$at $@\"", wait.replace("0.05", &nap)));
    stage.reaches_state(&chat, "connected");
    until("its program waits", SOON, || (processes(&nap) > 0).then_some(()));
    let killed_at = std::time::SystemTime::now();
    // Sent while it works: for the next turn, whatever happens to the daemon.
    stage.say(&chat, "echo second");
    let (pid, _) = stage.home.announced().unwrap();
    kill(pid);
    let killed_at = killed_at.duration_since(std::time::UNIX_EPOCH).unwrap().as_millis();
    let stage = stage.restarted();
    std::fs::write(go, "").unwrap();
    let said = stage.hears(&chat, "agent", 2)[1].clone();
    let (began_at, resumed) = said.split_once(' ').unwrap();
    assert_eq!(resumed, format!("resume {conversation}"));
    assert!(began_at.parse::<u128>().unwrap() < killed_at, "the program was started again");
    assert_eq!(stage.hears(&chat, "agent", 3)[2..], ["second"]);
    assert_eq!(stage.words_of(&chat, "agent").len(), 3, "each was answered once");
}

/// How many processes have this among their arguments.
pub fn processes(argument: &str) -> usize {
    let entries = std::fs::read_dir("/proc").unwrap().filter_map(|entry| Some(entry.ok()?.path()));
    let lines = entries.filter_map(|path| std::fs::read(path.join("cmdline")).ok());
    lines.filter(|line| line.split(|byte| *byte == 0).any(|part| part == argument.as_bytes())).count()
}

#[test]
fn stopping_or_ending_the_chat_ends_every_process() {
    let stage = Stage::new();
    let chat = stage.started("worker", "script");
    for (n, (path, body)) in [("stop", json!({})), ("end", json!(null))].into_iter().enumerate() {
        let nap = format!("8{}.{n}", std::process::id());
        stage.say(&chat, &format!("setsid sleep {nap} & sleep {nap}"));
        until("both sleep", Duration::from_secs(20), || (processes(&nap) == 2).then_some(()));
        stage.good("POST", &format!("/chats/{chat}/{path}"), &body);
        until("no agent sleeps", Duration::from_secs(10), || (processes(&nap) == 0).then_some(()));
        until("its session is over", Duration::from_secs(10), || stage.sessions("active").is_empty().then_some(()));
    }
    assert!(stage.words_of(&chat, "agent").is_empty());
    assert_eq!(stage.words_of(&chat, "system").len(), 1, "{:?}", stage.said(&chat));
}
