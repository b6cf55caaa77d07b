//! The built-in agent `matsu`: the loop of the daemon as a run, with a scripted model behind it.

use matsu_testkit::model_server::{Asked, Fate, ModelServer, Reply, Script};
use serde_json::{Value, json};

use super::{Bench, SOON, end_of, processes, reaches, start_with};
use crate::home::{kill, until};
use crate::stdio::Client;

fn bench(server: &ModelServer) -> Bench {
    Bench::with(&format!(
        "[providers.big]\nwire = \"anthropic\"\nmodel = \"claude-x\"\nbase_url = \"{0}\"\n\
         [providers.small]\nwire = \"openai_chat\"\nmodel = \"qwen3-max\"\nbase_url = \"{0}/v1\"\n\
         [chat]\ndefault_model = \"small\"\n",
        server.url()
    ))
}

fn asked(server: &ModelServer, nth: usize) -> Asked {
    server.asked()[nth].asked.clone().unwrap()
}

fn start(client: &mut Client, message: &str, more: Value) -> String {
    let mut all = json!({ "cli_name": "matsu" });
    all.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    start_with(client, message, all)
}

#[test]
fn it_is_listed_and_needs_a_model() {
    let listed = |bench: &Bench| {
        let said = bench.client().call("list_agents", &json!({}));
        let agents = said["agents"].as_array().unwrap();
        agents.iter().find(|agent| agent["name"] == "matsu").unwrap_or_else(|| panic!("{said}")).clone()
    };
    let without = Bench::new();
    assert_eq!(listed(&without)["installed"], false);
    let refused = without.client().call("use_agent", &json!({ "cli_name": "matsu", "message": "hi" }));
    assert_eq!(refused["error_code"], "AGENT_NOT_INSTALLED", "{refused}");
    assert!(refused["error"].as_str().unwrap().contains("configure one"), "{refused}");
    let server = ModelServer::strict(Script::new()).unwrap();
    let agent = listed(&bench(&server));
    assert_eq!((&agent["installed"], &agent["command"]), (&json!(true), &json!("matsu")), "{agent}");
    let all = json!({ "resume": true, "system_prompt": true, "stream": true, "input": true, "model": true });
    assert_eq!(agent["supports"], all);
}

#[test]
fn it_answers_and_goes_on_with_its_conversation() {
    let script = Script::new().on("again", Reply::text("Still 7.")).always(Reply::text("It is 7."));
    let server = ModelServer::strict(script).unwrap();
    let bench = bench(&server);
    let mut client = bench.client();
    let first = json!({ "session_id": "sum", "system_prompt": "Be exact." });
    let task = start(&mut client, "@no-such what is 3 + 4?", first);
    let end = end_of(&mut client, &task);
    assert_eq!((end["status"].as_str(), end["result"].as_str()), (Some("completed"), Some("It is 7.")), "{end}");
    assert_eq!((asked(&server, 0).model.as_str(), asked(&server, 0).system.as_str()), ("qwen3-max", "Be exact."));
    assert!(!asked(&server, 0).tools.contains(&"use_agent".to_owned()), "an agent that could start agents has no end");
    assert!(asked(&server, 0).tools.contains(&"get_materials".to_owned()));
    let more = json!({ "session_id": "sum", "resume": true, "model": "big" });
    let task = start(&mut client, "and again?", more);
    assert_eq!(end_of(&mut client, &task)["result"], "Still 7.");
    let second = asked(&server, 1);
    assert_eq!(second.model, "claude-x");
    assert!(second.messages.iter().any(|message| message.contains("3 + 4")), "{second:?}");
    let unknown = start(&mut client, "hello", json!({ "model": "no-such" }));
    let end = end_of(&mut client, &unknown);
    assert!(end["status"] == "failed" && end["error"].as_str().unwrap().contains("no-such"), "{end}");
}

#[test]
fn what_does_more_than_read_is_asked_for() {
    for (word, expected) in [("allow", "\"ok\":true"), ("deny", "a person refused it")] {
        let script = Script::new()
            .then(Reply::tool("create_task", json!({ "query": "pine trees" })))
            .always(Reply::text("Thank you."));
        let server = ModelServer::strict(script).unwrap();
        let bench = bench(&server);
        let mut client = bench.client();
        let task = start(&mut client, "research pine trees", json!({}));
        let asking = reaches(&mut client, &task, "input_required");
        assert_eq!(asking["question"]["options"], json!(["allow", "deny"]), "{asking}");
        assert!(asking["question"]["text"].as_str().unwrap().contains("create_task"), "{asking}");
        let (job, question) = (&asking["question"]["job_id"], &asking["question"]["id"]);
        let answer = json!({ "task_id": task, "job_id": job, "question_id": question, "option": word });
        client.call("answer_question", &answer);
        assert_eq!(end_of(&mut client, &task)["result"], "Thank you.");
        assert!(asked(&server, 1).results[0].contains(expected), "{word}: {:?}", asked(&server, 1));
    }
}

#[test]
fn a_cancelled_run_stops_the_model_and_leaves_nothing() {
    let server = ModelServer::strict(Script::new().always(Reply::Hang("I think".to_owned()))).unwrap();
    let bench = bench(&server);
    let mut client = bench.client();
    let task = start(&mut client, "think", json!({}));
    until("the model speaks", SOON, || {
        let said = client.call("get_task_status", &json!({ "task_id": task, "tail": 5 }));
        said.to_string().contains("I think").then_some(())
    });
    let said = client.call("cancel_task", &json!({ "task_id": task, "mode": "immediate" }));
    assert_eq!(said["status"], "cancelled", "{said}");
    until("the model is left alone", SOON, || (server.asked()[0].fate == Fate::ClientLeft).then_some(()));
    let data = bench.home.data_dir().display().to_string();
    until("no program of the run is left", SOON, || (processes("__loop") == 0 || processes(&data) == 0).then_some(()));
}

#[test]
fn the_model_goes_on_when_the_daemon_was_killed_in_mid_answer() {
    let script = Script::new()
        .on("The server was restarted", Reply::text("Done after all."))
        .always(Reply::Hang("I think".to_owned()));
    let server = ModelServer::strict(script).unwrap();
    let bench = bench(&server);
    let mut client = bench.client();
    let task = start(&mut client, "think about 3 + 4", json!({}));
    until("the model speaks", SOON, || {
        let said = client.call("get_task_status", &json!({ "task_id": task, "tail": 5 }));
        said.to_string().contains("I think").then_some(())
    });
    kill(bench.home.relayed().0);
    let mut client = bench.client();
    let end = end_of(&mut client, &task);
    assert_eq!((end["status"].as_str(), end["result"].as_str()), (Some("completed"), Some("Done after all.")), "{end}");
    let last = server.asked().last().unwrap().asked.clone().unwrap();
    assert!(last.messages.iter().any(|message| message.contains("3 + 4")), "the same conversation: {last:?}");
}

#[test]
fn an_error_of_the_vendor_is_the_error_of_the_run() {
    let server = ModelServer::strict(Script::new().always(Reply::error(401, "no such key"))).unwrap();
    let bench = bench(&server);
    let mut client = bench.client();
    let task = start(&mut client, "hello", json!({}));
    let end = end_of(&mut client, &task);
    assert!(end["status"] == "failed" && end["error"].as_str().unwrap().contains("no such key"), "{end}");
}
