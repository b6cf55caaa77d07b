//! What needs no code: lists, schemas, fixed results, and what is asked. From `fixture.json`.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use rmcp::model::{
    CallToolResult, InputRequests, Prompt, PromptMessage, Resource, ResourceContents, ResourceTemplate, Tool,
};
use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize)]
pub struct Data {
    pub tools: Vec<Tool>,
    pub results: BTreeMap<String, CallToolResult>,
    /// Input that a call is answered with before it is done, in rounds.
    pub asks: BTreeMap<String, Asks>,
    /// Input that a task asks for while it runs.
    pub asked_during: BTreeMap<String, InputRequests>,
    /// Requests to a legacy client.
    pub client_calls: BTreeMap<String, Value>,
    pub prompts: Vec<Prompt>,
    pub messages: BTreeMap<String, Value>,
    pub resources: Vec<Resource>,
    pub contents: BTreeMap<String, ResourceContents>,
    pub templates: Vec<ResourceTemplate>,
}

#[derive(Deserialize)]
pub struct Asks {
    /// Whether a sealed state goes with each round.
    pub stateful: bool,
    pub rounds: Vec<InputRequests>,
}

#[expect(clippy::expect_used, reason = "the file is part of this program")]
pub static DATA: LazyLock<Data> =
    LazyLock::new(|| serde_json::from_str(include_str!("fixture.json")).expect("fixture.json is as the types say"));

/// The messages of a prompt with its arguments put in.
pub fn messages(prompt: &str, arguments: &serde_json::Map<String, Value>) -> Option<Vec<PromptMessage>> {
    let mut text = DATA.messages.get(prompt)?.to_string();
    for (name, value) in arguments {
        text = text.replace(&format!("{{{name}}}"), value.as_str().unwrap_or_default());
    }
    serde_json::from_str(&text).ok()
}

/// A resource by its address, one of the template too.
pub fn contents(uri: &str) -> Option<ResourceContents> {
    if let Some(contents) = DATA.contents.get(uri) {
        return Some(contents.clone());
    }
    let id = uri.strip_prefix("test://template/")?.strip_suffix("/data")?;
    let text = serde_json::json!({ "id": id, "templateTest": true, "data": format!("Data for ID: {id}") }).to_string();
    Some(ResourceContents::text(text, uri).with_mime_type("application/json"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_as_the_types_say() {
        assert!(DATA.tools.iter().any(|tool| tool.name == "slow_compute"));
        assert!(DATA.asks.keys().all(|name| {
            DATA.tools.iter().any(|tool| tool.name == name.as_str())
                || DATA.prompts.iter().any(|prompt| prompt.name == *name)
        }));
        assert!(contents("test://template/123/data").is_some());
    }
}
