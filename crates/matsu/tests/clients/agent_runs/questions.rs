//! Runs that ask: parked with their permit free and their clock stopped, answered through the same tool.

use serde_json::{Value, json};

use super::{Bench, SOON, end_of, reaches, start, start_with};
use crate::home::until;
use crate::http::{Http, modern};

const ASKS: &str = r#"echo '{"type":"question","id":"q1","text":"Go on?","options":["yes","no"]}'
read answer
case "$answer" in *'"option":"yes"'*) echo '{"type":"result","text":"went on"}';; *) echo "{\"type\":\"result\",\"error\":\"stopped\"}";; esac
"#;

/// The arguments of an answer to one job.
fn answer(task: &str, job: &Value, more: Value) -> Value {
    let mut arguments = json!({ "task_id": task, "job_id": job });
    arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    arguments
}

#[test]
fn a_question_parks_the_run_frees_its_place_and_its_answer_goes_on() {
    let bench = Bench::with("[slots]\nagent_cli = 1\n");
    let mut client = bench.client();
    let task = start_with(&mut client, ASKS, json!({ "cli_name": "events", "timeout": 2 }));
    let asking = reaches(&mut client, &task, "input_required");
    let question = &asking["question"];
    assert_eq!((&question["id"], &question["text"]), (&json!("q1"), &json!("Go on?")), "{asking}");
    assert_eq!((&question["options"], &question["cli_name"]), (&json!(["yes", "no"]), &json!("events")), "{asking}");
    // With a limit of one: its place is free while it waits, and its two seconds stand still.
    let other = start(&mut client, "sleep 3; echo other");
    assert_eq!(end_of(&mut client, &other)["result"], "other\n");
    let job = question["job_id"].clone();
    for (more, why) in [
        (json!({ "question_id": "q2", "option": "yes" }), "not open"),
        (json!({ "question_id": "q1", "option": "perhaps" }), "one of yes, no"),
        (json!({ "question_id": "q1" }), "exactly one of option and text"),
        (json!({ "option": "yes" }), "question_id is required"),
    ] {
        let said = client.call("answer_question", &answer(&task, &job, more));
        assert!(said["error"].as_str().is_some_and(|error| error.contains(why)), "{said}");
    }
    let old = client.call("get_task_status", &json!({ "task_id": task, "answer": { "id": "q1", "option": "yes" } }));
    assert_eq!(old["error_code"], "INVALID_PARAMS", "{old}");
    assert!(old["error"].as_str().is_some_and(|error| error.contains("call answer_question")), "{old}");
    let said = client.call("answer_question", &answer(&task, &job, json!({ "question_id": "q1", "option": "yes" })));
    assert_eq!(said["ok"], true, "{said}");
    let end = end_of(&mut client, &task);
    assert_eq!((end["status"].as_str(), end["result"].as_str()), (Some("completed"), Some("went on")), "{end}");
}

#[test]
fn a_list_without_ids_shows_the_question_that_it_counts_as_read() {
    let bench = Bench::new();
    let mut client = bench.client();
    let task = start_with(&mut client, ASKS, json!({ "cli_name": "events" }));
    let asking = || bench.run(&["tasks", "--json"]).out.contains("\"input_required\"").then_some(());
    until("it asks", SOON, asking);
    let listed = client.call("get_task_status", &json!({}));
    let line = &listed["tasks"][0];
    assert_eq!((&line["task_id"], &line["question"]["text"]), (&json!(task), &json!("Go on?")), "{listed}");
    assert_eq!(line["title"].as_str().is_some(), line["kind"] == "agent", "{listed}");
}

#[test]
fn a_run_that_asks_can_be_cancelled() {
    let bench = Bench::new();
    let mut client = bench.client();
    let task = start_with(&mut client, ASKS, json!({ "cli_name": "events" }));
    reaches(&mut client, &task, "input_required");
    let said = client.call("cancel_task", &json!({ "task_id": task }));
    assert_eq!(said["status"], "cancelled", "{said}");
}

/// A request of a client that follows native tasks and, perhaps, can ask its user.
fn native(http: &Http, method: &str, params: Value, can_ask: bool) -> Value {
    let mut client = json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } });
    if can_ask {
        client["elicitation"] = json!({ "form": {} });
    }
    let mut body = modern(method, params);
    body["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] = client;
    http.mcp(&body, &[]).json()
}

#[test]
fn a_question_reaches_the_clients_own_user_as_a_native_task() {
    let bench = Bench::new();
    let mut client = bench.client();
    let task = start_with(&mut client, ASKS, json!({ "cli_name": "events" }));
    reaches(&mut client, &task, "input_required");
    let (_, http) = bench.home.relayed();
    let get = |can_ask| native(&http, "tasks/get", json!({ "taskId": task }), can_ask)["result"].clone();
    let asked = get(true);
    assert_eq!(asked["status"], "input_required", "{asked}");
    let key = asked["inputRequests"].as_object().unwrap().keys().next().unwrap().clone();
    assert!(key.starts_with("j_") && key.ends_with(":q1"), "{key}");
    let form = &asked["inputRequests"][&key];
    assert_eq!(
        (&form["method"], &form["params"]["message"]),
        (&json!("elicitation/create"), &json!("Go on?")),
        "{asked}"
    );
    assert_eq!(form["params"]["requestedSchema"]["properties"]["answer"]["enum"], json!(["yes", "no"]), "{asked}");

    let update =
        |responses: Value| native(&http, "tasks/update", json!({ "taskId": task, "inputResponses": responses }), true);
    let said = |answer: &str| json!({ &key: { "action": "accept", "content": { "answer": answer } } });
    assert!(update(json!({ "q9": { "action": "accept", "content": {} } }))["result"].is_object());
    assert!(update(json!({ &key: { "action": "decline" } }))["result"].is_object());
    assert_eq!(get(true)["status"], "input_required", "declined here, it is open for others");
    let refused = update(said("perhaps"));
    assert!(refused["error"]["message"].as_str().is_some_and(|why| why.contains("one of yes, no")), "{refused}");
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    let taken = update(said("yes"));
    assert!(taken["result"].is_object(), "{taken}");
    let ended = until("the run goes on", SOON, || Some(get(true)).filter(|now| now["status"] == "completed"));
    assert!(ended["result"]["content"][0]["text"].as_str().is_some_and(|text| text.contains("went on")), "{ended}");
}

/// A client that follows tasks and cannot ask its user would wait for ever otherwise.
#[test]
fn a_native_task_of_a_client_without_forms_completes_with_the_question() {
    let bench = Bench::new();
    let mut client = bench.client();
    let task = start_with(&mut client, ASKS, json!({ "cli_name": "events" }));
    reaches(&mut client, &task, "input_required");
    let (_, http) = bench.home.relayed();
    let ended = native(&http, "tasks/get", json!({ "taskId": task }), false)["result"].clone();
    assert_eq!(ended["status"], "completed", "{ended}");
    let said = &ended["result"]["structuredContent"];
    assert_eq!((&said["status"], &said["question"]["text"]), (&json!("input_required"), &json!("Go on?")), "{said}");
    assert!(
        said["message"]
            .as_str()
            .is_some_and(|text| text.contains("answer_question") && text.contains("\"question_id\":\"q1\"")),
        "{said}"
    );
}

#[test]
fn an_answered_question_is_gone_from_the_next_read() {
    let bench = Bench::with("[slots]\nagent_cli = 1\n");
    let mut client = bench.client();
    let task = start_with(&mut client, ASKS, json!({ "cli_name": "events" }));
    let asking = reaches(&mut client, &task, "input_required");
    // It has the only slot, so the answered run cannot continue yet.
    let (began, may_end) = (bench.home.signal("began"), bench.home.signal("may_end"));
    let waits = format!("echo > {}; until [ -e {} ]; do sleep 0.05; done", began.display(), may_end.display());
    let other = start(&mut client, &waits);
    reaches(&mut client, &other, "running");
    let yes = json!({ "question_id": "q1", "option": "yes" });
    let said = client.call("answer_question", &answer(&task, &asking["question"]["job_id"], yes));
    assert_eq!(said["ok"], true, "{said}");
    let said = client.call("get_task_status", &json!({ "task_id": task }));
    assert_eq!((&said["status"], said.get("question")), (&json!("running"), None), "{said}");
    let (_, http) = bench.home.relayed();
    let get = native(&http, "tasks/get", json!({ "taskId": task }), true)["result"].clone();
    assert_eq!((&get["status"], get.get("inputRequests")), (&json!("working"), None), "{get}");
    std::fs::write(may_end, "").unwrap();
    assert_eq!(end_of(&mut client, &task)["result"], "went on");
}

#[test]
fn two_agents_that_ask_under_the_same_id_get_their_own_answers() {
    let bench = Bench::new();
    let agents = bench.home.path(".config/matsu/agents");
    let definition = std::fs::read_to_string(agents.join("events.toml")).unwrap();
    std::fs::write(agents.join("second.toml"), definition.replace("\"events\"\ncommand", "\"second\"\ncommand"))
        .unwrap();
    let mut client = bench.client();
    for answers in ["plain", "native"] {
        let names = json!({ "cli_names": ["events", "second"], "message": ASKS, "run_async": true });
        let task = client.call("use_agents", &names)["task_id"].as_str().unwrap().to_owned();
        let asking = until("both ask", SOON, || {
            let said = client.call("get_task_status", &json!({ "task_id": task }));
            let both = said["results"].as_array()?.iter().filter(|job| job["question"]["id"] == "q1").count() == 2;
            both.then_some(said)
        });
        let job_of = |name: &str| {
            let job = asking["results"].as_array().unwrap().iter().find(|job| job["cli_name"] == name).unwrap();
            assert_eq!(job["question"]["job_id"], job["job_id"], "{job}");
            job["job_id"].as_str().unwrap().to_owned()
        };
        let (first, second) = (job_of("events"), job_of("second"));
        if answers == "plain" {
            let mut give = |job: &str, option: &str| {
                let more = json!({ "question_id": "q1", "option": option });
                client.call("answer_question", &answer(&task, &json!(job), more))
            };
            let wrong = give("j_nothing", "yes");
            assert_eq!(wrong["ok"], false, "{wrong}");
            assert_eq!((&give(&second, "yes")["ok"], &give(&first, "no")["ok"]), (&json!(true), &json!(true)));
        } else {
            let (_, http) = bench.home.relayed();
            let asked = native(&http, "tasks/get", json!({ "taskId": task }), true)["result"].clone();
            assert_eq!(asked["inputRequests"].as_object().unwrap().len(), 2, "{asked}");
            let said = |answer: &str| json!({ "action": "accept", "content": { "answer": answer } });
            let responses = json!({ format!("{second}:q1"): said("yes"), format!("{first}:q1"): said("no") });
            native(&http, "tasks/update", json!({ "taskId": task, "inputResponses": responses }), true);
        }
        let end = end_of(&mut client, &task);
        let of = |name: &str| {
            let results = end["results"].as_array().unwrap();
            results.iter().find(|job| job["cli_name"] == name).unwrap().clone()
        };
        assert_eq!(of("second")["result"], "went on", "{end}");
        assert_eq!(of("events")["status"], "failed", "{end}");
    }
}

/// Asks twice under one id, and says what it was answered.
const ASKS_TWICE: &str = r#"ask() { echo "{\"type\":\"question\",\"id\":\"q1\",\"text\":\"$1\",\"options\":[\"yes\",\"no\"]}"; read answer; }
word() { case "$answer" in *'"id":"q1"'*'"option":"yes"'*) echo yes;; *'"id":"q1"'*'"option":"no"'*) echo no;; *) echo strange;; esac; }
ask 'Read the file?'; first=$(word)
ask 'Delete the file?'; second=$(word)
echo "{\"type\":\"result\",\"text\":\"$first then $second\"}"
"#;

#[test]
fn a_second_question_under_the_same_id_is_not_answered_by_the_first_answer() {
    let bench = Bench::new();
    let mut client = bench.client();
    let task = start_with(&mut client, ASKS_TWICE, json!({ "cli_name": "events" }));
    let first = reaches(&mut client, &task, "input_required")["question"].clone();
    assert_eq!(first["text"], "Read the file?", "{first}");
    let said = |question: &Value, option: &str| {
        answer(&task, &question["job_id"], json!({ "question_id": question["id"], "option": option }))
    };
    assert_eq!(client.call("answer_question", &said(&first, "yes"))["ok"], true);
    let asks_again = |client: &mut crate::stdio::Client| {
        until("it asks again", SOON, || {
            let said = client.call("get_task_status", &json!({ "task_id": task }));
            let question = said["question"].clone();
            assert!(said["status"] != "completed", "the first answer was used twice: {said}");
            (question["text"] == "Delete the file?").then_some(question)
        })
    };
    let second = asks_again(&mut client);
    assert_ne!(first["id"], second["id"], "{second}");
    // The old answer, given again, is not one to the new question; and a daemon that reads the question a second time
    // asks it under the same id.
    assert_eq!(client.call("answer_question", &said(&first, "yes"))["ok"], true, "a repetition is harmless");
    crate::home::kill(bench.home.relayed().0);
    let third = asks_again(&mut client);
    assert_eq!(third, second);
    assert_eq!(client.call("answer_question", &said(&second, "no"))["ok"], true);
    assert_eq!(end_of(&mut client, &task)["result"], "yes then no");
}
