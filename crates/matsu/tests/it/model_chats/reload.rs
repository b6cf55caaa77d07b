//! Readers that go away in mid-answer and come back, on the same stream or another, before and after a crash.

use matsu_testkit::model_server::{ModelServer, Reply, Script};
use rustix::process::Signal;
use serde_json::{Value, json};

use super::{MOMENT, hears, home, messages, open, say, serve};
use crate::api::until;
use crate::events::Events;
use crate::home::{Daemon, Home};

/// A reader as the page is one: it keeps what is settled and replaces the rest.
struct Reader {
    events: Events,
    kept: Vec<Value>,
    answering: bool,
}

impl Reader {
    fn open(daemon: &Daemon, chat: &str, before: Option<Reader>) -> Self {
        let bearer = format!("Authorization: Bearer {}", daemon.api.token);
        let path = format!("/api/v1/chats/{chat}/stream");
        let last = before.as_ref().and_then(|before| before.events.last_id.clone());
        let last = last.map(|id| format!("Last-Event-ID: {id}"));
        let headers: Vec<&str> = [Some(bearer.as_str()), last.as_deref()].into_iter().flatten().collect();
        let kept = before.map(|before| before.kept).unwrap_or_default();
        Self { events: Events::open(&daemon.api, &path, &headers), kept, answering: false }
    }

    /// Reads on until the chat looks like this.
    #[track_caller]
    fn until(&mut self, what: &str, is_it: impl Fn(&Self) -> bool) {
        while !is_it(self) {
            let event = self.events.until(what, |event| event.name == "chat");
            let kept_to = event.data["kept_to"].as_i64().unwrap();
            self.kept.retain(|message| message["seq"].as_i64().unwrap() <= kept_to);
            self.kept.extend(event.data["messages"].as_array().unwrap().iter().cloned());
            self.answering = event.data["answering"].as_bool().unwrap();
        }
    }

    fn last(&self) -> &str {
        self.kept.last().and_then(|message| message["content"].as_str()).unwrap_or_default()
    }
}

#[test]
fn a_reload_in_mid_answer_loses_nothing() {
    let home = home();
    let daemon = serve(&home);
    let chat = open(&daemon, &["echo"]);
    say(&daemon, &chat, "@echo hello");
    hears(&daemon, &chat, "completed", "You said: @echo hello");
    let mut first = Reader::open(&daemon, &chat, None);
    first.until("what was said before", |reader| reader.kept.len() == 2);
    say(&daemon, &chat, "@echo count");
    first.until("the first words", |reader| reader.last().contains("3. "));
    // One that reconnects with what it has, and one that knows nothing.
    let mut again = Reader::open(&daemon, &chat, Some(first));
    let mut fresh = Reader::open(&daemon, &chat, None);
    again.until("the words go on", |reader| reader.last().contains("12. "));
    fresh.until("everything", |reader| reader.last().contains("12. "));
    assert!(again.answering && fresh.answering);
    daemon.api.post(&format!("/api/v1/chats/{chat}/stop"), &json!({}));
    again.until("the end", |reader| !reader.answering);
    fresh.until("the end", |reader| !reader.answering);
    let stored = messages(&daemon, &chat);
    assert_eq!((&again.kept, &fresh.kept), (&stored, &stored));
    assert!(again.last().starts_with("0. 1. 2. 3. 4. 5. 6. 7. 8. 9. 10. 11. 12. "), "{}", again.last());
}

#[test]
fn a_daemon_that_gets_sigterm_stores_what_had_arrived() {
    let home = home();
    let mut daemon = serve(&home);
    let chat = open(&daemon, &["echo"]);
    say(&daemon, &chat, "@echo count");
    let mut reader = Reader::open(&daemon, &chat, None);
    reader.until("some words", |reader| reader.last().contains("7. "));
    let seen = reader.last().to_owned();
    daemon.process.signal(Signal::TERM);
    daemon.process.ends_within(MOMENT);
    let daemon = serve(&home);
    let kept = hears(&daemon, &chat, "stopped", &seen);
    assert!(!kept["content"].as_str().unwrap().contains("199."), "{kept}");
}

/// A vendor that falls silent in the middle of an answer.
#[test]
fn half_an_answer_over_the_wire_is_shown_and_kept() {
    let server = ModelServer::strict(Script::new().always(Reply::Hang("half an answer".to_owned()))).unwrap();
    let home = Home::sqlite();
    let config =
        format!("[providers.claude]\nwire = \"anthropic\"\nmodel = \"claude-x\"\nbase_url = \"{}\"\n", server.url());
    std::fs::write(home.path("config.toml"), config).unwrap();
    let daemon = serve(&home);
    let chat = open(&daemon, &["claude"]);
    say(&daemon, &chat, "@claude hello");
    for _ in 0..3 {
        let mut reader = Reader::open(&daemon, &chat, None);
        reader.until("half of it", |reader| reader.last() == "half an answer" && reader.answering);
    }
    daemon.api.post(&format!("/api/v1/chats/{chat}/stop"), &json!({}));
    hears(&daemon, &chat, "stopped", "half an answer");
    let left = until("the vendor sees that the client disconnected", MOMENT, || {
        let asked = server.asked();
        asked.first().filter(|request| request.fate == matsu_testkit::model_server::Fate::ClientLeft).cloned()
    });
    assert_eq!(left.path, "/v1/messages");
}
