//! Each vendor over a real socket, against a server that uses its wire format and refuses what the vendor refuses.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use matsu_core::clock::{Clock, Timestamp};
use matsu_core::history::{Entry, Image, Item, Role};
use matsu_core::ports::provider::{
    Danger, ModelEvent, ModelRequest, ModelTurn, Provider, ProviderError, ProviderFault, ToolSpec, WaitedFor,
};
use matsu_testkit::model_server::{Fate, ModelServer, Part, Reply, Script};
use serde_json::{Value, json};

use super::config::{KeySource, ProviderConfig};
use super::formats::tests::transcript;
use super::secret::Secret;
use super::wire::WIRES;

const KEY: &str = "sk-canary-0123456789";
const MINUTE: Duration = Duration::from_secs(60);

fn config(wire: &str, server: &ModelServer) -> ProviderConfig {
    let base = if wire.starts_with("openai") { format!("{}/v1", server.url()) } else { server.url() };
    ProviderConfig {
        base_url: Some(base),
        key: Some(Secret::new(&format!("{KEY}\n"))),
        key_source: KeySource::Variable("A_KEY".into()),
        ..ProviderConfig::new("m", wire, "gemini-3-x")
    }
}

fn open(config: ProviderConfig) -> Arc<dyn Provider> {
    super::open(config, Clock::system()).unwrap()
}

fn request(history: Vec<Entry>) -> ModelRequest {
    let input = json!({ "$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object",
        "properties": { "n": { "$ref": "#/$defs/n" } }, "additionalProperties": false,
        "$defs": { "n": { "type": "array", "items": { "type": "string", "pattern": "^a" } } } });
    let tool = ToolSpec::new("look", "Looks.", input, Danger::ReadOnly);
    let choice = json!({ "anyOf": [{ "properties": { "a": { "type": "string" } } }, { "type": "object" }] });
    let other = ToolSpec::new("other-1", "", choice, Danger::ReadOnly);
    ModelRequest { history: history.into(), tools: vec![tool, other].into(), output: None }
}

fn hello() -> Vec<Entry> {
    vec![Entry::user("hello", Timestamp::from_millis(1))]
}

/// The text as it was shown, and the whole turn.
async fn turn(provider: &dyn Provider, history: Vec<Entry>) -> Result<(String, ModelTurn), ProviderError> {
    let (mut stream, mut text) = (provider.begin(request(history)).await?, String::new());
    while let Some(event) = stream.next().await {
        match event? {
            ModelEvent::Text(piece) => text.push_str(&piece),
            ModelEvent::Thinking(_) | ModelEvent::Cost(_) => {}
            ModelEvent::End(turn) => return Ok((text, turn)),
        }
    }
    panic!("a stream ended without an end");
}

#[tokio::test]
async fn every_vendor_streams_text_calls_and_counts() {
    let long = "天気は晴れ。".repeat(30);
    for wire in WIRES {
        let call = |n: u8| Part::Tool { name: "look".into(), arguments: json!({ "n": n }) };
        let script = Script::new().then(Reply::Say(vec![Part::Text(long.clone()), call(1), call(2)]));
        let server = ModelServer::strict(script).unwrap();
        let (text, turn) = turn(&*open(config(wire.name(), &server)), hello()).await.unwrap();
        assert_eq!(text, long, "{}", wire.name());
        let arguments: Vec<_> = turn
            .items
            .iter()
            .filter_map(|item| match item {
                Item::ToolCall { arguments, .. } => Some(arguments.clone()),
                _ => None,
            })
            .collect();
        assert_eq!(arguments, [json!({ "n": 1 }), json!({ "n": 2 })], "{}", wire.name());
        assert_eq!((turn.usage.input_tokens, turn.usage.output_tokens), (120, 15), "{}", wire.name());
    }
}

#[tokio::test]
async fn what_three_models_made_is_accepted_by_each_strict_vendor() {
    for wire in WIRES {
        let server = ModelServer::strict(Script::new().always(Reply::text("fine"))).unwrap();
        let (text, _) = turn(&*open(config(wire.name(), &server)), transcript()).await.unwrap();
        assert_eq!(text, "fine", "{}", wire.name());
    }
}

/// A stream as a vendor sends it, one document to an event.
fn recorded(events: &[Value]) -> Reply {
    Reply::Raw(events.iter().map(|event| format!("data: {event}\n\n")).collect())
}

/// What the vendor sealed in the first round, and where it must stand in the second.
fn sealed() -> [(&'static str, Vec<Value>, &'static str, Value); 3] {
    let reasoning = json!({ "type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA+/==" });
    let call = json!({ "type": "function_call", "call_id": "call_9", "name": "look", "arguments": "{}" });
    let done =
        |index: u8, item: &Value| json!({ "type": "response.output_item.done", "output_index": index, "item": item });
    let thinking = json!({ "type": "thinking", "thinking": "hm", "signature": "c2ln/+==" });
    let redacted = json!({ "type": "redacted_thinking", "data": "xx+/==" });
    let start =
        |index: u8, block: &Value| json!({ "type": "content_block_start", "index": index, "content_block": block });
    let tool_use = json!({ "type": "tool_use", "id": "toolu_1", "name": "look", "input": {} });
    let signed = json!({ "functionCall": { "name": "look", "args": {} }, "thoughtSignature": "s1+/==" });
    [
        (
            "openai",
            vec![done(0, &reasoning), done(1, &call), json!({ "type": "response.completed", "response": {} })],
            "/input/1",
            reasoning,
        ),
        (
            "anthropic",
            vec![
                json!({ "type": "message_start", "message": {} }),
                start(0, &thinking),
                start(1, &redacted),
                start(2, &tool_use),
                json!({ "type": "message_delta", "delta": { "stop_reason": "tool_use" } }),
                json!({ "type": "message_stop" }),
            ],
            "/messages/1/content",
            json!([thinking, redacted, tool_use]),
        ),
        (
            "gemini",
            vec![json!({ "candidates": [{ "content": { "parts": [signed] }, "finishReason": "STOP" }] })],
            "/contents/1/parts/0/thoughtSignature",
            json!("s1+/=="),
        ),
    ]
}

#[tokio::test]
async fn what_a_vendor_sealed_goes_back_byte_for_byte() {
    for (wire, events, place, sealed) in sealed() {
        let server = ModelServer::strict(Script::new().then(recorded(&events)).always(Reply::text("fine"))).unwrap();
        let provider = open(config(wire, &server));
        let (_, mut first) = turn(&*provider, hello()).await.unwrap();
        let mut id = String::new();
        for item in &mut first.items {
            if let Item::ToolCall { id: given, .. } = item {
                // The loop mints one where the vendor gives none.
                if given.is_empty() {
                    "call_1".clone_into(given);
                }
                id.clone_from(given);
            }
        }
        let now = Timestamp::from_millis(1);
        let answered = Item::result(id, "look", "seen", false);
        let said = Entry::assistant("m", first.items, now).made_by(provider.maker());
        let history = [hello(), vec![said, Entry::tool(vec![answered], now)]].concat();
        assert_eq!(turn(&*provider, history).await.unwrap().0, "fine", "{wire}");
        assert_eq!(server.requests()[1].body.pointer(place), Some(&sealed), "{wire}: {}", server.requests()[1].body);
    }
}

/// Where each vendor wants an image of a person, and one of a tool.
const IMAGE_PLACES: [(&str, &str, &str); 5] = [
    ("openai", "/input/0/content/1/image_url", "/input/2/output/1/image_url"),
    ("openai_chat", "/messages/0/content/1/image_url/url", "/messages/3/content/1/image_url/url"),
    ("anthropic", "/messages/0/content/1/source/data", "/messages/2/content/0/content/1/source/data"),
    ("gemini", "/contents/0/parts/1/inlineData/data", "/contents/2/parts/2/inlineData/data"),
    ("ollama", "/messages/0/images/0", "/messages/3/images/0"),
];

#[tokio::test]
async fn images_of_people_and_tools_reach_each_vendor_in_its_own_place() {
    const PNG: &str = "iVBORw0KGgoAAAANSUhEUg==";
    let now = Timestamp::from_millis(1);
    let image = Image::read(PNG).unwrap();
    for (wire, said, shown) in IMAGE_PLACES {
        for is_error in [false, true] {
            let server = ModelServer::strict(Script::new().always(Reply::text("fine"))).unwrap();
            let provider = open(ProviderConfig { images: Some(true), ..config(wire, &server) });
            assert!(provider.image_types().contains(&"image/png"));
            let call =
                Item::ToolCall { id: "call_1".into(), name: "look".into(), arguments: json!({}), signature: None };
            let result = Item::ToolResult {
                id: "call_1".into(),
                name: "look".into(),
                content: "seen".into(),
                is_error,
                images: vec![image.clone()],
            };
            let history = vec![
                Entry::new(Role::User, vec![Item::text("what is this?"), Item::Image(image.clone())], now),
                Entry::assistant("m", vec![call], now).made_by(provider.maker()),
                Entry::tool(vec![result], now),
            ];
            assert_eq!(turn(&*provider, history).await.unwrap().0, "fine", "{wire}");
            let body = &server.requests()[0].body;
            let at = |place: &str| body.pointer(place).and_then(Value::as_str).unwrap_or_default().to_owned();
            assert!(at(said).ends_with(PNG), "{wire}: {body}");
            // An error of a tool holds text only there; the image comes after it.
            let shown = if wire == "anthropic" && is_error { "/messages/2/content/2/source/data" } else { shown };
            assert!(at(shown).ends_with(PNG), "{wire}: {body}");
        }
    }
}

#[tokio::test]
async fn a_key_is_in_its_header_and_nowhere_else() {
    for wire in WIRES {
        let refusal = Reply::error(401, &format!("the key {KEY} is not known"));
        let server = ModelServer::start(Script::new().always(refusal)).unwrap();
        let config = config(wire.name(), &server);
        assert!(!format!("{config:?}").contains("canary"));
        let error = turn(&*open(config), hello()).await.unwrap_err();
        assert_eq!(error.fault, ProviderFault::Auth, "{}", wire.name());
        assert!(!error.to_string().contains("canary"), "{error}");
        let asked = &server.requests()[0];
        assert!(!asked.path.contains("canary") && !asked.body.to_string().contains("canary"));
        let with_key: Vec<_> = asked.headers.iter().filter(|(_, value)| value.contains(KEY)).collect();
        assert_eq!(with_key.len(), 1, "{}", wire.name());
    }
}

#[tokio::test]
async fn without_a_key_nothing_is_sent_and_the_variable_is_named() {
    let server = ModelServer::start(Script::new()).unwrap();
    let config = ProviderConfig { key: None, ..config("openai", &server) };
    let error = turn(&*open(config), hello()).await.unwrap_err();
    assert!(error.message.contains("A_KEY") && server.requests().is_empty(), "{error}");
}

#[tokio::test]
async fn refusals_are_typed() {
    let limited = Reply::Refuse { status: 429, message: "slow down".into(), retry_after: Some(7) };
    let overflow = Reply::error(400, "This model's maximum context length is 10 tokens");
    let cases = [
        (limited, ProviderFault::RateLimited { after: Some(Duration::from_secs(7)) }),
        (Reply::error(503, "busy"), ProviderFault::Server { after: None }),
        (overflow, ProviderFault::ContextOverflow),
        (Reply::error(400, "no"), ProviderFault::BadRequest),
    ];
    for (reply, fault) in cases {
        for wire in WIRES {
            let server = ModelServer::start(Script::new().always(reply.clone())).unwrap();
            let error = turn(&*open(config(wire.name(), &server)), hello()).await.unwrap_err();
            assert_eq!(error.fault, fault, "{}: {error}", wire.name());
        }
    }
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_no_answer() {
    for wire in WIRES {
        let server = ModelServer::start(Script::new().always(Reply::Cut("half an".into()))).unwrap();
        let error = turn(&*open(config(wire.name(), &server)), hello()).await.unwrap_err();
        let broken = [ProviderFault::Truncated, ProviderFault::Transport];
        assert!(broken.contains(&error.fault), "{}: {error}", wire.name());
    }
}

#[tokio::test]
async fn silence_before_and_within_an_answer_is_bounded() {
    for wire in WIRES {
        let server =
            ModelServer::start(Script::new().then(Reply::Hang("well".into())).then(Reply::after(MINUTE, vec![])))
                .unwrap();
        let short = Duration::from_millis(300);
        let config = ProviderConfig { idle_max: short, headers_max: short, ..config(wire.name(), &server) };
        let provider = open(config);
        let stalled = turn(&*provider, hello()).await.unwrap_err();
        assert_eq!(stalled.fault, ProviderFault::Timeout(WaitedFor::Stream), "{}", wire.name());
        let headers = turn(&*provider, hello()).await.unwrap_err();
        assert_eq!(headers.fault, ProviderFault::Timeout(WaitedFor::Headers), "{}", wire.name());
    }
}

#[tokio::test]
async fn dropping_a_stream_closes_the_connection() {
    for wire in WIRES {
        let server = ModelServer::start(Script::new().always(Reply::Hang("well".into()))).unwrap();
        let mut stream = open(config(wire.name(), &server)).begin(request(hello())).await.unwrap();
        assert!(matches!(stream.next().await, Some(Ok(ModelEvent::Text(_)))), "{}", wire.name());
        drop(stream);
        let left = tokio::task::spawn_blocking(move || server.wait_for(MINUTE, |asked| asked.fate == Fate::ClientLeft));
        assert!(left.await.unwrap().is_some(), "{}", wire.name());
    }
}

#[tokio::test]
async fn model_names_arrive_as_they_were_configured() {
    for model in ["qwen3-max", "a/b:c", "x::y"] {
        for wire in WIRES {
            let server = ModelServer::start(Script::new()).unwrap();
            let config = ProviderConfig { model: model.into(), ..config(wire.name(), &server) };
            turn(&*open(config), hello()).await.unwrap();
            let asked = &server.requests()[0];
            let sent = asked.body["model"].as_str().map_or_else(|| asked.path.clone(), str::to_owned);
            assert!(sent.contains(model), "{}: {sent}", wire.name());
        }
    }
}

#[tokio::test]
async fn a_redirect_is_not_followed_and_a_wrong_address_is_refused() {
    let unreachable =
        ProviderConfig { base_url: Some("http://127.0.0.1:9".into()), ..ProviderConfig::new("m", "ollama", "m") };
    let error = turn(&*open(unreachable), hello()).await.unwrap_err();
    assert_eq!(error.fault, ProviderFault::Transport);
    for base in ["not an address", "http://user:secret@127.0.0.1/"] {
        let config = ProviderConfig { base_url: Some(base.into()), ..ProviderConfig::new("m", "ollama", "m") };
        let refused = super::open(config, Clock::system()).err().unwrap();
        assert!(refused.contains("base_url") && !refused.contains("secret"), "{refused}");
    }
}

#[test]
fn wires_have_names_of_their_own() {
    let names: HashSet<&str> = WIRES.iter().map(|wire| wire.name()).collect();
    assert_eq!(names.len(), WIRES.len());
}
