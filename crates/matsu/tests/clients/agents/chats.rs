//! The real command lines in chats and on tasks: a person's words reach them by resume and by wait, their answer comes
//! back, and a block lands at their next tool call.

use std::time::Duration;

use matsu_testkit::model_server::{Asked, ModelServer, Reply};
use serde_json::{Value, json};

use super::cases::Case;
use super::five::{Bed, for_each_of};
use super::places::Place;
use crate::home::until;
use crate::sessions::stage::{Stage, text};

/// A start of a program and a few turns of its model, on a busy machine.
const SOON: Duration = Duration::from_secs(120);

/// Which of the five are asked here.
fn is_meant(case: &Case) -> bool {
    ["claude", "codex"].contains(&case.name)
}

/// One agent with its model, and a person who talks with it.
struct Talk {
    case: &'static Case,
    model: ModelServer,
    stage: Stage,
}

impl Talk {
    fn new(
        case: &'static Case,
        place: &Place,
        keys: &str,
        reply: impl FnMut(&Asked) -> Reply + Send + 'static,
    ) -> Self {
        let Bed { case, model, daemon, home, .. } = Bed::with_keys(case, place, false, keys, "", reply);
        Self { case, model, stage: Stage { home, daemon } }
    }
}

fn hears(bed: &Talk, chat: &str, messages: usize) -> Vec<String> {
    until("the agent answers", SOON, || {
        let said = bed.stage.words_of(chat, "agent");
        let lines = bed.stage.words_of(chat, "system");
        assert!(lines.is_empty(), "{}: {lines:?}", bed.case.name);
        (said.len() >= messages).then_some(said)
    })
}

#[test]
fn a_message_starts_it_and_the_next_one_resumes_it() {
    for_each_of(
        "a person's message answered by resume",
        |_| true,
        |case, place| {
            let bed = Talk::new(case, place, "", |asked| {
                match asked.messages.iter().any(|text| text.contains("second-question")) {
                    true => Reply::text("the second answer"),
                    false => Reply::text("the first answer"),
                }
            });
            let chat = bed.stage.started("ada", case.name);
            bed.stage.say(&chat, "the first-question");
            assert_eq!(hears(&bed, &chat, 1), ["the first answer"]);
            bed.stage.say(&chat, "the second-question");
            assert_eq!(hears(&bed, &chat, 2)[1], "the second answer");
            let knows_both = bed.model.asked().iter().any(|request| {
                let knows = |words: &str| {
                    request.asked.as_ref().is_some_and(|asked| asked.messages.iter().any(|text| text.contains(words)))
                };
                knows("first-question") && knows("second-question")
            });
            assert!(knows_both, "{}: the second turn does not know the first", case.name);
        },
    );
}

/// A text field of an answer, however often the client has wrapped it in strings.
fn field(result: &str, name: &str) -> Option<String> {
    let plain = result.replace('\\', "");
    let (_, rest) = plain.split_once(&format!("\"{name}\":\""))?;
    rest.split_once('"').map(|(value, _)| value.to_owned())
}

/// A model that does what `get_next_action` says.
fn obeys(case: &Case, asked: &Asked) -> Reply {
    let ours = |tool: &str, arguments: Value| Reply::tool(&(case.ours)(tool), arguments);
    let Some(result) = asked.results.last() else { return ours("get_next_action", json!({ "timeout_seconds": 20 })) };
    match field(result, "action").as_deref() {
        Some("respond") => {
            let answer = format!("You said: {}", field(result, "content").unwrap_or_default());
            ours("send_message", json!({ "content": answer }))
        }
        Some("end_session") => Reply::text("I leave."),
        _ => ours("get_next_action", json!({ "timeout_seconds": 20 })),
    }
}

#[test]
fn it_waits_for_its_messages_itself() {
    for_each_of("a person's message answered by wait", is_meant, |case, place| {
        let bed = Talk::new(case, place, "delivery = \"wait\"\n", move |asked| obeys(case, asked));
        let chat = bed.stage.started("ada", case.name);
        for (n, words) in ["the word is alpha", "the word is beta"].into_iter().enumerate() {
            bed.stage.say(&chat, words);
            assert_eq!(hears(&bed, &chat, n + 1)[n], format!("You said: {words}"));
        }
        assert_eq!(bed.stage.sessions("active").len(), 1, "{}: it stayed", case.name);
        bed.stage.good("POST", &format!("/chats/{chat}/end"), &json!(null));
        let ended = until("it has left", SOON, || bed.stage.sessions("ended").first().cloned());
        assert_eq!(text(&ended["end_reason"]), "closed_by_person", "{}", case.name);
    });
}

/// A call of a tool of its own that needs no approval.
fn own_tool(case: &Case, tools: &[String]) -> Reply {
    let call = (case.shell)("pwd", tools);
    call.map_or_else(|| Reply::text("no tool"), |(name, arguments)| Reply::tool(&name, arguments))
}

#[test]
fn a_block_lands_at_its_next_tool_call() {
    for_each_of("a block stops the agent at its next built-in tool call", is_meant, |case, place| {
        let bed = Talk::new(case, place, "", move |asked| obeys_a_block(case, asked));
        bed.stage.good("POST", "/agents", &json!({ "id": "ada", "name": "ada", "definition": case.name }));
        let task = bed.stage.task("ada");
        until("it works with its own tools", SOON, || {
            let status = bed.stage.status(&task);
            assert!(["queued", "running"].contains(&status.as_str()), "{}: {status}", case.name);
            (own_calls(&bed.model).len() >= 2).then_some(())
        });
        bed.stage.steer(&task, "blocked");
        let before = own_calls(&bed.model).len();
        until("it has reported", SOON, || {
            bed.stage.sessions("ended").iter().any(|session| session["end_reason"] == "reported").then_some(())
        });
        assert_eq!(bed.stage.status(&task), "blocked", "{}", case.name);
        let notified = own_calls(&bed.model).iter().position(is_notified).unwrap();
        println!(
            "{}: blocked after {before} calls of its own, notified with the result of call {}",
            case.name,
            notified + 1
        );
        // One call had ended when the person wrote and its result was not with the model yet; the next one brings it.
        assert!(notified < before + 2, "{}: {before} calls before, notified with call {}", case.name, notified + 1);
    });
}

/// What the model was asked with the result of a tool call: everything but the first question, and small talk without tools.
fn own_calls(model: &ModelServer) -> Vec<Asked> {
    let asked = model.asked().into_iter().filter_map(|request| request.asked);
    asked.filter(|asked| !asked.tools.is_empty()).skip(1).collect()
}

/// Whether the model knows that a person has stopped the work, and what to do now.
fn is_notified(asked: &Asked) -> bool {
    let notified = |text: &String| text.contains("report_completed with result") && text.contains("by a person");
    asked.messages.iter().chain(&asked.results).any(notified)
}

/// A model that calls nothing but its own tools, until it must stop.
fn obeys_a_block(case: &Case, asked: &Asked) -> Reply {
    if asked.results.iter().any(|result| result.contains("\"status\"")) {
        return Reply::text("I stopped.");
    }
    if is_notified(asked) {
        let report = json!({ "result": "blocked", "summary": "stopped as ordered" });
        return Reply::tool(&(case.ours)("report_completed"), report);
    }
    own_tool(case, &asked.tools)
}
