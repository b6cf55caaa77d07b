//! Telegram against an emulator of its Bot API that others wrote (npm `telegram-test-api`): messages, an outage, and
//! buttons that answer.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};

use serde_json::{Value, json};

use super::receiver::free_address;
use super::{ASKS, SOON, home_with, start};
use crate::home::until;

const TOKEN: &str = "123456:token-of-the-bot";

/// The emulator, and the person whose phone it is.
struct Phone {
    child: Child,
    keys: Option<ChildStdin>,
    messages: Receiver<Value>,
}

impl Phone {
    fn at(port: u16, chat: &str) -> Self {
        let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
        let made = Command::new(root.join("scripts/clients.sh")).arg("telegram").output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let folder = String::from_utf8(made.stdout).unwrap();
        let mut command = Command::new("node");
        command.arg(root.join("tests/clients/telegram.mjs")).args([folder.trim(), &port.to_string(), TOKEN, chat]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (keys, output) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()));
        let (sender, messages) = channel();
        // Ends with the child's output.
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                let _ = sender.send(serde_json::from_str(&line).unwrap());
            }
        });
        let phone = Self { child, keys, messages };
        assert_eq!(phone.next()["ready"], true);
        phone
    }

    #[track_caller]
    fn next(&self) -> Value {
        self.messages.recv_timeout(SOON).expect("a message comes")
    }

    fn say(&mut self, line: &str) {
        writeln!(self.keys.as_mut().unwrap(), "{line}").unwrap();
    }
}

impl Drop for Phone {
    fn drop(&mut self) {
        self.keys = None;
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_phone_on_an_emulator_of_telegram_gets_messages_after_an_outage_and_answers() {
    let address = free_address();
    let mut phone = Phone::at(address.port(), "42");
    let mut home = home_with(&format!(
        "[notify.bot]\nkind = \"telegram\"\nurl = \"http://{address}\"\nchat = \"42\"\nsecret_env = \"BOT\"\n\
         content = \"full\"\n"
    ));
    home.set("BOT", TOKEN);
    let daemon = home.serve();
    phone.say("down");
    let done = start(&daemon, "script", "echo the result");
    until("the outage is noticed", SOON, || daemon.printed().contains("a notice could not be sent").then_some(()));
    phone.say("up");
    let message = phone.next();
    assert_eq!(message["chat_id"], "42", "{message}");
    let text = message["text"].as_str().unwrap();
    assert!(text.contains("the result") && text.contains(&done), "{message}");

    let asks = start(&daemon, "events", ASKS);
    let question = phone.next();
    assert!(question["text"].as_str().unwrap().contains("Go on?"), "{question}");
    let status = || daemon.http().says("get_task_status", &json!({ "task_id": asks }))["status"].clone();
    phone.say("666 0");
    until("a press in another chat is noticed", SOON, || daemon.printed().contains("in another chat").then_some(()));
    assert_eq!(status(), "input_required");
    phone.say("42 0");
    until("the answer arrived", SOON, || (status() == "completed").then_some(()));
}
