//! Research whose claims, judgements and report come from a real command line: `research.model = "agent:NAME"`.

use matsu_testkit::model_server::{Asked, ModelServer, Reply};
use serde_json::{Value, json};

use super::five::{Bed, for_each_of};

const QUESTION: &str = "How long may a pod stay on an unreachable node?";
const STAYS: &str = "A pod may stay on an unreachable node for 300 seconds.";

/// The tool of Claude Code that takes an answer, where it was given a schema.
const STRUCTURED: &str = "StructuredOutput";

/// The data of the question that Matsu asks, whatever the program has put around it.
fn data_in(text: &str) -> Option<Value> {
    let start = ["{\"passages\":[", "{\"claims\":["].iter().filter_map(|start| text.find(start)).min()?;
    serde_json::Deserializer::from_str(&text[start..]).into_iter().next()?.ok()
}

/// Quotes the sentence about pods, judges every pair as support, and writes one sentence too many.
fn reply(asked: &Asked) -> Reply {
    let Some(data) = asked.messages.iter().rev().find_map(|text| data_in(text)) else {
        return Reply::text("There is nothing to do.");
    };
    let list = |name: &str| data[name].as_array().cloned().unwrap_or_default();
    let (claims, passages) = (list("claims"), list("passages"));
    let has_fact = |passage: &&Value| passage["text"].as_str().unwrap_or_default().contains("unreachable");
    let answer = match (claims.is_empty(), passages.is_empty()) {
        (true, _) => {
            let claim = |passage: &Value| {
                let text = passage["text"].as_str().unwrap_or_default();
                let quote = text.split_inclusive('.').find(|part| part.contains("unreachable")).unwrap_or(text).trim();
                json!({ "passage": passage["number"], "text": quote, "quote": quote })
            };
            json!({ "claims": passages.iter().filter(has_fact).map(claim).collect::<Vec<_>>() })
        }
        (false, false) => {
            let pairs = claims.iter().flat_map(|claim| {
                let numbers = claim["passages"].as_array().cloned().unwrap_or_default();
                let stance = |passage| json!({ "claim": claim["number"], "passage": passage, "supports": 0.9, "refutes": 0.05, "neutral": 0.05 });
                numbers.into_iter().map(stance).collect::<Vec<_>>()
            });
            json!({ "stances": pairs.collect::<Vec<_>>() })
        }
        (false, true) => {
            let named = claims.iter().find(|claim| claim["claim"] == STAYS).map_or(json!(1), |c| c["number"].clone());
            json!({
                "answer": [
                    { "text": "On an unreachable node, a pod may stay for 300 seconds.", "claims": [named] },
                    { "text": "After that the cluster buys a second moon for 9 dollars.", "claims": [named] },
                ],
                "sections": [],
            })
        }
    };
    if asked.tools.iter().any(|tool| tool == STRUCTURED) {
        return Reply::tool(STRUCTURED, answer);
    }
    Reply::text(&answer.to_string())
}

/// What was offered to the model, and whether the program itself asked for an answer of a certain shape.
fn offered(model: &ModelServer) -> Vec<(Vec<String>, bool)> {
    let requests = model.asked().into_iter().filter_map(|request| Some((request.asked?.tools, request.body)));
    let offered = requests.map(|(mut tools, body)| {
        let is_shaped = tools.iter().any(|tool| tool == STRUCTURED) || body["text"]["format"]["schema"].is_object();
        tools.retain(|tool| tool != STRUCTURED);
        (tools, is_shaped)
    });
    offered.collect()
}

#[test]
fn a_subscription_reads_judges_and_writes_the_report() {
    for_each_of(
        "research with it as the model (`agent:NAME`)",
        |_| true,
        |case, place| {
            let model = format!("agent:{}", case.name);
            let bed = Bed::new(case, &place.with(vec![("MATSU_RESEARCH_MODEL", model.clone())]), false, reply);
            let folder = bed.home.path("documents");
            std::fs::create_dir(&folder).unwrap();
            for (name, site, text) in [
                ("a.md", "https://a.example.org/a", STAYS),
                (
                    "b.md",
                    "https://b.example.net/b",
                    "For 300 seconds a pod stays on an unreachable node, then it goes.",
                ),
            ] {
                let text = format!("---\nurl: {site}\n---\n# Nodes\n\nThis page is about clusters.\n\n{text}\n");
                std::fs::write(folder.join(name), text).unwrap();
            }
            let found = bed.home.run(&["research", QUESTION, "--dir", folder.to_str().unwrap()]);
            let task = found["task_id"].as_str().unwrap_or_else(|| panic!("{}: {found}", case.name));
            let report = bed.home.run(&["export", task, "--format", "json"])["report"].clone();
            assert_eq!((&report["method"], &report["model"]), (&json!("model"), &json!(model)), "{report:#}");
            assert_eq!(report["sentences_removed"], 1, "what no claim says is removed: {report:#}");
            assert_eq!(report["answer"].as_array().map(Vec::len), Some(1), "{report:#}");
            assert_eq!(report["answer"][0]["verification"], "supported", "the other site says it, too: {report:#}");
            let citation = &report["citations"][0];
            assert_eq!(citation["quote"], STAYS, "{report:#}");
            let offered = offered(&bed.model);
            assert!(offered.len() >= 3, "{}: claims, judgement and report were asked for", case.name);
            let takes_schema = ["claude", "codex"].contains(&case.name);
            let is_bare = |(tools, is_shaped): &(Vec<String>, bool)| tools.is_empty() && *is_shaped == takes_schema;
            assert!(offered.iter().all(is_bare), "{}: it has tools, or no schema: {offered:?}", case.name);
        },
    );
}
