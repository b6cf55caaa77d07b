//! Answers from a phone: a button sends a code that is used once, and the run goes on. The servers are fakes after the
//! documented protocols of ntfy and Telegram.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use super::receiver::{Receiver, free_address};
use super::{ASKS, SOON, home_with, start};
use crate::home::{Daemon, until};

/// What a reader of answers gets, in order; it is read from a position.
type Posted = Arc<Mutex<Vec<Value>>>;

fn status_of(daemon: &Daemon, task: &str) -> String {
    daemon.http().says("get_task_status", &json!({ "task_id": task }))["status"].as_str().unwrap().to_owned()
}

fn log_has(daemon: &Daemon, text: &str) {
    until(&format!("the log has: {text}"), SOON, || daemon.printed().contains(text).then_some(()));
}

#[test]
fn a_button_of_ntfy_answers_once_and_other_codes_do_nothing() {
    let posted: Posted = Arc::default();
    let topic = Arc::clone(&posted);
    let receiver = Receiver::answering(
        free_address(),
        |_| 200,
        move |got| {
            if got.method == "POST" {
                return Some(String::new());
            }
            let since = got.path.rsplit_once("since=").map_or("all", |(_, since)| since);
            let all = topic.lock().unwrap();
            let after = all.iter().position(|event| event["id"] == since).map_or(0, |at| at + 1);
            let new: String = all[after..].iter().map(|event| format!("{event}\n")).collect();
            Some(new).filter(|new| !new.is_empty())
        },
    );
    let press = |id: &str, code: &str| {
        posted.lock().unwrap().push(json!({ "event": "message", "id": id, "message": code }));
    };
    let home = home_with(&format!(
        "[notify.phone]\nkind = \"ntfy\"\nurl = \"http://{}\"\ntopic = \"mine\"\ncontent = \"full\"\n",
        receiver.address
    ));
    let daemon = home.serve();
    let task = start(&daemon, "events", ASKS);
    let message = receiver.next_post(SOON).json();
    let actions = message["actions"].as_array().unwrap_or_else(|| panic!("{message}"));
    assert_eq!((&actions[0]["label"], &actions[1]["label"]), (&json!("yes"), &json!("no")), "{message}");
    let url = actions[0]["url"].as_str().unwrap();
    assert!(url.contains("/matsu-") && url != format!("http://{}/mine", receiver.address), "{url}");
    let code = |at: usize| actions[at]["body"].as_str().unwrap().to_owned();
    press("m1", "0123456789abcdef0123456789abcdef");
    log_has(&daemon, "unknown or old code");
    assert_eq!(status_of(&daemon, &task), "input_required");
    // The daemon is gone while the person answers.
    drop(daemon);
    press("m2", &code(0));
    let daemon = home.serve();
    until("the run went on and ended", SOON, || (status_of(&daemon, &task) == "completed").then_some(()));
    press("m3", &code(0));
    log_has(&daemon, "used before");
    press("m4", &code(1));
    log_has(&daemon, "came too late");
}

#[test]
fn a_button_of_telegram_answers_and_a_press_in_another_chat_does_not() {
    let updates: Posted = Arc::default();
    let pending = Arc::clone(&updates);
    let receiver = Receiver::answering(
        free_address(),
        |_| 200,
        move |got| {
            if !got.path.ends_with("/getUpdates") {
                return Some(json!({ "ok": true, "result": true }).to_string());
            }
            let offset = got.json()["offset"].as_i64().unwrap_or(0);
            let all = pending.lock().unwrap();
            let new: Vec<&Value> = all.iter().filter(|update| update["update_id"].as_i64() >= Some(offset)).collect();
            (!new.is_empty()).then(|| json!({ "ok": true, "result": new }).to_string())
        },
    );
    let press = |id: i64, chat: i64, code: &str| {
        let query = json!({ "id": format!("press {id}"), "data": code, "message": { "chat": { "id": chat } } });
        updates.lock().unwrap().push(json!({ "update_id": id, "callback_query": query }));
    };
    let mut home = home_with(&format!(
        "[notify.bot]\nkind = \"telegram\"\nurl = \"http://{}\"\nchat = \"-42\"\nsecret_env = \"BOT\"\ncontent = \"full\"\n",
        receiver.address
    ));
    home.set("BOT", "123456:token-of-the-bot");
    let daemon = home.serve();
    let task = start(&daemon, "events", ASKS);
    let sent = receiver.next_post(SOON);
    assert_eq!(sent.path, "/bot123456:token-of-the-bot/sendMessage");
    let message = sent.json();
    assert_eq!(message["chat_id"], "-42", "{message}");
    assert!(message["text"].as_str().unwrap().contains("Go on?"), "{message}");
    let buttons = &message["reply_markup"]["inline_keyboard"][0];
    assert_eq!((&buttons[0]["text"], &buttons[1]["text"]), (&json!("yes"), &json!("no")), "{message}");
    let code = buttons[0]["callback_data"].as_str().unwrap();
    press(7, 666, code);
    log_has(&daemon, "in another chat");
    assert_eq!(status_of(&daemon, &task), "input_required");
    press(8, -42, code);
    until("the run went on and ended", SOON, || (status_of(&daemon, &task) == "completed").then_some(()));
    let shown = receiver.next_post(SOON);
    assert!(shown.path.ends_with("/answerCallbackQuery"), "{shown:?}");
    assert_eq!(
        (&shown.json()["callback_query_id"], &shown.json()["text"]),
        (&json!("press 8"), &json!("Answered: yes"))
    );
    assert!(!daemon.printed().contains("token-of-the-bot"), "the log does not show the token");
}
