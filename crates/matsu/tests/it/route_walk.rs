//! Every route, every tool and the event stream with the token of another member: it gets no byte of another user's.
//! What is not there for it is answered as if it had never existed; what is for admins is refused. A route or a tool that
//! this walk does not know fails it.

mod of_runs;
mod operations;

use std::collections::BTreeMap;

use matsu_core::clock::Clock;
use matsu_core::id::TaskId;
use serde_json::{Value, json};

use crate::api::{Api, Reply, noop};
use crate::events::Events;
use crate::home::{Daemon, Home};
use crate::model_chats;
use operations::{Gets, OPERATIONS};

/// In every text that the owner writes, so that none of it can show up elsewhere unnoticed.
const MARK: &str = "zirbelkiefer";

/// Operations that the owner of the id is refused too, because what they are about is not there: the run has no
/// worktree, no question is open, nothing waits. Where there is something, `of_runs` walks them, `model_chats::approvals`
/// answers calls, and `clients/owners.rs` resolves logins.
const NOTHING_TO_DO: &[&str] = &[
    // The fragment of the walk is no passage of its research.
    "read_passage",
    // Nor the id of a message that has images.
    "list_images",
    "read_task_log",
    "read_task_diff",
    "list_task_files",
    "read_task_merge",
    "apply_task_diff",
    "undo_task_apply",
    "discard_task_diff",
    "send_task_back",
    "read_task_receipt",
    "verify_task_receipt",
    "answer_task",
    "answer_in_chat",
    "answer_call",
    "resolve_auth",
];

struct Stage {
    _home: Home,
    daemon: Daemon,
    member: Api,
    ids: Ids,
    /// Kept open: its id is asked for.
    _events: Events,
}

/// What the owner has.
struct Ids {
    task: String,
    research: String,
    chat: String,
    agent_chat: String,
    session: String,
    token: String,
    schedule: String,
    webhook: String,
    push: String,
    stream: String,
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("no text: {value}")).to_owned()
}

impl Stage {
    fn new() -> Self {
        let home = model_chats::home();
        // A push service that nothing listens for, on this machine.
        let config = home.path("config.toml");
        let mut settings = std::fs::read_to_string(&config).unwrap();
        settings.push_str("[notify.browsers]\nkind = \"push\"\nallow_hosts = \"127.0.0.1:9\"\n");
        std::fs::write(&config, settings).unwrap();
        matsu_testkit::fake_agents::write(&home.path("agents")).unwrap();
        let daemon = model_chats::serve(&home);
        let api = &daemon.api;
        let task = api.submit(vec![noop()]);
        let wish = json!({ "kind": "research", "query": format!("{MARK} trees") });
        let research = text(&api.post("/api/v1/tasks", &wish)["task_id"]);
        let chat = model_chats::open(&daemon, &["echo"]);
        model_chats::say(&daemon, &chat, &format!("@echo {MARK}"));
        model_chats::hears(&daemon, &chat, "completed", MARK);
        let passkey = text(&api.post("/api/v1/agents", &json!({ "id": format!("{MARK}-agent") }))["passkey"]);
        api.post("/api/v1/projects", &json!({ "id": format!("{MARK}-project") }));
        let agent_chat = text(&api.post("/api/v1/chats", &json!({ "agent_id": format!("{MARK}-agent") }))["chat_id"]);
        let who = json!({ "agent_id": format!("{MARK}-agent"), "passkey": passkey, "project_id": "default" });
        let begun = api.post("/api/v1/tools/authenticate", &who);
        assert_eq!(begun["ok"], true, "{begun}");
        let session = text(&api.all("sessions")[0]["session_id"]);
        let notice = json!({ "message": MARK });
        api.post(&format!("/api/v1/sessions/{session}/notifications"), &notice);
        let rule = json!({ "action": "domain_block", "domain_pattern": format!("{MARK}.example.org"), "reason": MARK });
        api.post("/api/v1/feedback", &rule);
        let token = text(&api.post("/api/v1/tokens", &json!({ "name": MARK }))["token"]["id"]);
        let plan = json!({ "name": MARK, "cron": "0 7 1 1 *", "research": { "query": MARK }, "searches": [MARK] });
        let schedule = text(&api.post("/api/v1/schedules", &plan)["schedule_id"]);
        let hook = json!({ "name": MARK, "run": { "cli_name": "cat", "message": MARK } });
        let webhook = text(&api.post("/api/v1/webhooks", &hook)["webhook_id"]);
        let push = text(&api.post("/api/v1/push", &browser())["subscription_id"]);
        home.run_json(&["user", "add", "bob"]);
        let made = home.run_json(&["token", "new", "bob's", "--user", "bob", "--role", "member"]);
        let member = Api { token: text(&made["secret"]), ..api.clone() };
        let mut events = Events::open(api, "/api/v1/events", &[&format!("Authorization: Bearer {}", api.token)]);
        let stream = text(&events.until("hello", |event| event.name == "hello").data["stream_id"]);
        let ids = Ids { task, research, chat, agent_chat, session, token, schedule, webhook, push, stream };
        Self { _home: home, daemon, member, ids, _events: events }
    }

    /// A path with the ids of something that exists, and the same with ids that never did.
    fn paths(&self, operation: &str, path: &str) -> (String, String) {
        let of_research =
            ["queue_searches", "research_status", "read_materials", "read_graph", "read_report", "read_passage"]
                .contains(&operation);
        let (real, nowhere) = match path.split('/').nth(1) {
            Some("tasks") if of_research => (self.ids.research.as_str(), "task_00000000000000000000000000"),
            Some("tasks") => (self.ids.task.as_str(), "task_00000000000000000000000000"),
            Some("chats") if operation == "answer_in_chat" => {
                (self.ids.agent_chat.as_str(), "chat_00000000000000000000000000")
            }
            Some("chats") => (self.ids.chat.as_str(), "chat_00000000000000000000000000"),
            Some("sessions") => (self.ids.session.as_str(), "sess_00000000000000000000000000"),
            Some("tokens") => (self.ids.token.as_str(), "tok_00000000000000000000000000"),
            Some("schedules") => (self.ids.schedule.as_str(), "sched_00000000000000000000000000"),
            Some("webhooks") => (self.ids.webhook.as_str(), "hook_00000000000000000000000000"),
            Some("push") => (self.ids.push.as_str(), "sub_00000000000000000000000000"),
            Some("events") => (self.ids.stream.as_str(), "stream_00000000000000000000000000"),
            Some("users") => ("bob", "unknown"),
            Some("tools") => ("get_task_status", "get_task_status"),
            _ => ("", ""),
        };
        let filled = |id: &str| {
            let path = ["{id}", "{stream_id}", "{name}", "{fragment}", "{of}"]
                .iter()
                .fold(path.to_owned(), |path, name| path.replace(name, id));
            format!("/api/v1{path}")
        };
        (filled(real), filled(nowhere))
    }

    /// Nothing of the owner's shows, whatever the answer is.
    #[track_caller]
    fn assert_clean(&self, what: &str, body: &str) {
        let Ids { task, research, chat, agent_chat, session, token, schedule, webhook, push, stream } = &self.ids;
        let ids = [task, research, chat, agent_chat, session, token, schedule, webhook, push, stream];
        for known in ids.into_iter().map(String::as_str).chain([MARK, "user:local"]) {
            assert!(!body.contains(known), "{what} shows {known}: {body}");
        }
    }
}

/// What a browser says when it subscribes; the keys are those of the example in RFC 8291.
fn browser() -> Value {
    json!({
        "endpoint": "http://127.0.0.1:9/push",
        "keys": {
            "p256dh": "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4",
            "auth": "BTBZMqHH6r4Tts7J_aSIgg",
        },
    })
}

fn body_of(operation: &str) -> Option<Value> {
    Some(match operation {
        "make_task" => json!({ "kind": "research", "query": "pines" }),
        "change_task" => json!({ "status": "cancelled" }),
        "answer_task" | "answer_in_chat" => json!({ "id": "q1", "text": "yes" }),
        "start_merge" => json!({ "tasks": ["task_00000000000000000000000000"] }),
        "send_task_back" => json!({ "comment": "again" }),
        "queue_searches" => json!({ "queries": ["pines"] }),
        "resolve_auth" => json!({ "target": "item", "queue_id": "iq_00000000000000000000000000", "action": "skip" }),
        "keep_cookies" => json!({ "domain": "bob.example.org", "cookies": "a=b" }),
        "give_feedback" => {
            json!({ "action": "domain_block", "domain_pattern": "bob.example.org", "reason": "no use" })
        }
        "roll_back_calibration" => json!({ "source": "lexical", "version": 1, "reason": "x" }),
        "choose_research_model" => json!({ "model": "embedded" }),
        "collect_garbage" => json!({ "dry_run": true }),
        "make_token" => json!({ "name": "mine too" }),
        "add_schedule" => {
            json!({ "name": "daily", "cron": "0 7 * * *", "research": { "query": "pines" }, "searches": ["pines"] })
        }
        "pause_schedule" | "pause_webhook" => json!({ "paused": false }),
        "add_webhook" => json!({ "name": "triage", "run": { "cli_name": "cat", "message": "look" } }),
        "test_webhook" => json!({ "payload": {} }),
        "subscribe_push" => browser(),
        "put_user" => json!({ "name": "eve" }),
        "call_tool" => json!({}),
        "follow_topics" => json!({ "topics": ["queue"] }),
        "log_in" => json!({ "code": "guess" }),
        "make_project" => json!({ "id": "p2" }),
        "make_agent" => json!({ "id": "a2" }),
        "send_notification" | "stop_in_chat" => json!({ "message": "hello" }),
        "open_chat" => json!({ "models": ["echo"] }),
        "write_message" => json!({ "content": "note" }),
        "answer_call" => json!({ "call_id": "c1", "allow": true }),
        "describe_chat" => json!({ "name": "mine" }),
        _ => return None,
    })
}

/// An answer with this id blanked out, and what differs from call to call.
fn blanked(reply: &Reply, path: &str) -> String {
    let id = path.split('/').nth(4).unwrap_or_default();
    let mut body = serde_json::from_str::<Value>(&reply.body).unwrap_or_else(|_| json!(reply.body));
    if body.is_object() {
        body["error_id"] = Value::Null;
    }
    format!("{} {}", reply.status, body.to_string().replace(id, "ID"))
}

/// Method, path and id of every operation that is described.
fn described(api: &Api) -> Vec<(String, String, String)> {
    let document = api.get("/api/v1/openapi.json");
    let mut all = Vec::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            all.push((method.to_uppercase(), path.clone(), text(&operation["operationId"])));
        }
    }
    all
}

#[test]
fn another_member_gets_no_byte_over_any_route() {
    let stage = Stage::new();
    let expected: BTreeMap<&str, Gets> = OPERATIONS.iter().copied().collect();
    let all = described(&stage.daemon.api);
    for (_, path, operation) in &all {
        assert!(expected.contains_key(operation.as_str()), "the walk does not know {operation} ({path})");
    }
    assert_eq!(all.len(), OPERATIONS.len(), "the walk knows operations that are not there");
    // Lists first: later operations make things of the member's own.
    let (lists, rest): (Vec<_>, Vec<_>) =
        all.iter().partition(|(_, _, operation)| expected[operation.as_str()] == Gets::EmptyList);
    for (method, path, operation) in lists.into_iter().chain(rest) {
        let (real, nowhere) = stage.paths(operation, path);
        let body = body_of(operation);
        let what = format!("{method} {path} ({operation})");
        let gets = expected[operation.as_str()];
        // A stream that is opened does not end by itself; the other test reads it.
        if operation == "open_events" {
            continue;
        }
        let reply = stage.member.send(method, &real, body.as_ref()).unwrap();
        stage.assert_clean(&what, &if gets == Gets::Nothing { blanked(&reply, &real) } else { reply.body.clone() });
        match gets {
            Gets::Nothing => {
                let unknown = stage.member.send(method, &nowhere, body.as_ref()).unwrap();
                assert_eq!(reply.status, 404, "{what}: {reply:?}");
                assert_eq!(blanked(&reply, &real), blanked(&unknown, &nowhere), "{what}");
            }
            Gets::EmptyList => assert_eq!((reply.status, &reply.json()["items"]), (200, &json!([])), "{what}"),
            Gets::Refused => assert_eq!(reply.status, 403, "{what}: {reply:?}"),
            Gets::Shared | Gets::OwnList => assert_eq!(reply.status, 200, "{what}: {reply:?}"),
            Gets::Own => assert!(reply.status < 500 && reply.status != 403, "{what}: {reply:?}"),
        }
    }
    each_id_is_there_for_its_owner(&stage, &all, &expected);
}

/// What was not there for the other is there for its owner. What ends something comes last.
fn each_id_is_there_for_its_owner(stage: &Stage, all: &[(String, String, String)], expected: &BTreeMap<&str, Gets>) {
    let ends = |operation: &str| {
        [
            "end_chat",
            "end_session",
            "revoke_token",
            "remove_schedule",
            "remove_webhook",
            "unsubscribe_push",
            "change_task",
        ]
        .contains(&operation)
    };
    let (last, first): (Vec<_>, Vec<_>) = all.iter().partition(|(_, _, operation)| ends(operation));
    for (method, path, operation) in first.into_iter().chain(last) {
        let is_named = expected[operation.as_str()] == Gets::Nothing && operation != "follow_chat";
        if !is_named || NOTHING_TO_DO.contains(&operation.as_str()) {
            continue;
        }
        let (real, _) = stage.paths(operation, path);
        let reply = stage.daemon.api.send(method, &real, body_of(operation).as_ref()).unwrap();
        // A finished task cannot be cancelled, an ended chat not be written to: that is said to its owner alone.
        let is_there = (200..300).contains(&reply.status) || reply.status == 409;
        assert!(is_there, "{method} {path} ({operation}) is not there for its owner: {reply:?}");
    }
}

/// Every tool, with the arguments that name something of the owner's; `ID` stands for the id.
fn tool_arguments(tool: &str) -> Option<Value> {
    Some(match tool {
        "create_task" => json!({ "query": "pines" }),
        "queue_searches" => json!({ "task_id": "RESEARCH", "queries": ["pines"] }),
        "get_status" | "get_materials" => json!({ "task_id": "RESEARCH" }),
        "stop_task" => json!({ "task_id": "RESEARCH" }),
        "get_auth_queue" => json!({ "task_id": "RESEARCH" }),
        "resolve_auth" => json!({ "target": "item", "queue_id": "iq_00000000000000000000000000", "action": "skip" }),
        "feedback" => json!({ "action": "domain_block", "domain_pattern": "bob.example.org", "reason": "no use" }),
        "calibration_metrics" => json!({ "action": "get_stats" }),
        "calibration_rollback" => json!({ "source": "lexical", "version": 1, "reason": "x" }),
        "list_agents" => json!({}),
        "use_agent" => json!({ "cli_name": "claude", "message": "hi", "run_async": true }),
        "use_agents" => json!({ "cli_names": ["claude"], "message": "hi", "run_async": true }),
        "get_task_status" | "cancel_task" => json!({ "task_id": "TASK" }),
        "answer_question" => {
            json!({ "task_id": "TASK", "job_id": "job_00000000000000000000000000", "question_id": "q1", "text": "yes" })
        }
        "authenticate" => json!({ "agent_id": "unknown", "passkey": "guess", "project_id": "default" }),
        "get_next_action" => json!({ "session_id": "SESSION", "timeout_seconds": 0 }),
        "get_notifications" | "logout" => json!({}),
        "send_message" => json!({ "content": "hello" }),
        "report_completed" => json!({ "result": "success" }),
        _ => return None,
    })
}

fn filled(arguments: &Value, ids: [&str; 3]) -> Value {
    let names = ["RESEARCH", "TASK", "SESSION"];
    let text = names.iter().zip(ids).fold(arguments.to_string(), |text, (name, id)| text.replace(name, id));
    serde_json::from_str(&text).unwrap()
}

#[test]
fn another_member_gets_no_byte_over_any_tool() {
    let stage = Stage::new();
    let ids = &stage.ids;
    let real = [ids.research.as_str(), ids.task.as_str(), ids.session.as_str()];
    let never = TaskId::mint(Clock::system().now()).to_string();
    let nowhere = [never.as_str(), never.as_str(), "sess_00000000000000000000000000"];
    let tools = stage.daemon.api.get("/api/v1/tools");
    for tool in tools["items"].as_array().unwrap() {
        let name = text(&tool["name"]);
        let arguments = tool_arguments(&name).unwrap_or_else(|| panic!("the walk does not know the tool {name}"));
        let said = |ids: [&str; 3]| {
            let mut said = stage.member.post(&format!("/api/v1/tools/{name}"), &filled(&arguments, ids));
            said["error_id"] = Value::Null;
            ids.iter().fold(said.to_string(), |text, id| text.replace(id, "ID"))
        };
        let foreign = said(real);
        stage.assert_clean(&name, &foreign);
        let names_something = arguments != filled(&arguments, real);
        if names_something {
            assert_eq!(
                foreign,
                said(nowhere),
                "{name} answers differently for an id that exists and one that does not"
            );
            let own = stage.daemon.api.post(&format!("/api/v1/tools/{name}"), &filled(&arguments, real));
            let is_missing = own["status"] == "not_found" || own.to_string().contains("NOT_FOUND");
            assert!(!is_missing, "{name} is not there for its owner: {own}");
        }
        if ["calibration_metrics", "calibration_rollback", "use_agent", "use_agents"].contains(&name.as_str()) {
            assert!(foreign.contains("FORBIDDEN"), "{name}: {foreign}");
        }
    }
}

#[test]
fn another_member_hears_of_nothing_in_the_event_stream() {
    let stage = Stage::new();
    let bearer = format!("Authorization: Bearer {}", stage.member.token);
    let mut events = Events::open(&stage.member, "/api/v1/events?topics=queue", &[&bearer]);
    events.until("hello", |event| event.name == "hello");
    let foreign = stage.daemon.api.submit(vec![noop()]);
    model_chats::say(&stage.daemon, &stage.ids.chat, &format!("@echo {MARK} again"));
    let notice = json!({ "message": MARK });
    stage.daemon.api.post(&format!("/api/v1/sessions/{}/notifications", stage.ids.session), &notice);
    stage.daemon.api.ended(&foreign, model_chats::MOMENT);
    // Changes come in order: a stream that has the change of its own task has had every earlier one that it may get.
    let own = stage.member.submit(vec![noop()]);
    events.until("its own task", |event| {
        let said = event.data.to_string();
        stage.assert_clean(&event.name, &said);
        assert!(!said.contains(&foreign), "{event:?}");
        assert!(["task", "job", "counts", "ping", "hello"].contains(&event.name.as_str()), "{event:?}");
        event.data["task_id"] == own && event.data["status"] == "completed"
    });
}
