//! Each format over a real socket, read back the way its clients read it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::{Value, json};

use super::{Fate, Format, ModelServer, Part, Reply, Rule, Script, When};

const SOON: Duration = Duration::from_secs(10);
const LONG: &str = "A sentence that is longer than one slice of forty characters, with äöü in it.";

/// How each format is asked, and how the pieces of its answer are put together again.
struct Case {
    format: Format,
    path: &'static str,
    body: Value,
    /// The text of one event, and a tool call's arguments in it.
    text: fn(&Value) -> Option<&str>,
    arguments: fn(&Value) -> Option<String>,
}

fn cases() -> [Case; 4] {
    [
        Case {
            format: Format::AnthropicMessages,
            path: "/v1/messages?beta=true",
            body: json!({ "model": "m", "stream": true, "system": [{ "type": "text", "text": "be brief" }],
                "tools": [{ "name": "look" }], "messages": [{ "role": "user", "content": "hello" }, { "role": "user",
                "content": [{ "type": "tool_result", "tool_use_id": "t", "content": [{ "type": "text", "text": "seen" }] }] }] }),
            text: |event| event["delta"]["text"].as_str(),
            arguments: |event| event["delta"]["partial_json"].as_str().map(str::to_owned),
        },
        Case {
            format: Format::OpenaiResponses,
            path: "/v1/responses",
            body: json!({ "model": "m", "stream": true, "instructions": "be brief", "tools": [{ "type": "function", "name": "look" }],
                "input": [{ "role": "user", "content": [{ "type": "input_text", "text": "hello" }] },
                { "type": "function_call_output", "call_id": "c", "output": "seen" }] }),
            text: |event| event["delta"].as_str().filter(|_| event["type"] == "response.output_text.delta"),
            arguments: |event| {
                let is_delta = event["type"] == "response.function_call_arguments.delta";
                event["delta"].as_str().filter(|_| is_delta).map(str::to_owned)
            },
        },
        Case {
            format: Format::OpenaiChat,
            path: "/v1/chat/completions",
            body: json!({ "model": "m", "stream": true, "tools": [{ "type": "function", "function": { "name": "look" } }],
                "messages": [{ "role": "system", "content": "be brief" }, { "role": "user", "content": "hello" },
                { "role": "tool", "tool_call_id": "c", "content": "seen" }] }),
            text: |event| event["choices"][0]["delta"]["content"].as_str(),
            arguments: |event| {
                let call = &event["choices"][0]["delta"]["tool_calls"][0];
                call["function"]["arguments"].as_str().map(str::to_owned)
            },
        },
        Case {
            format: Format::Gemini,
            path: "/v1beta/models/m:streamGenerateContent?alt=sse",
            body: json!({ "systemInstruction": { "parts": [{ "text": "be brief" }] },
                "tools": [{ "functionDeclarations": [{ "name": "look" }] }],
                "contents": [{ "role": "user", "parts": [{ "text": "hello" }] },
                { "role": "user", "parts": [{ "functionResponse": { "name": "look", "response": { "output": "seen" } } }] }] }),
            text: |event| event["candidates"][0]["content"]["parts"][0]["text"].as_str(),
            arguments: |event| {
                let call = &event["candidates"][0]["content"]["parts"][0]["functionCall"];
                call.is_object().then(|| call["args"].to_string())
            },
        },
    ]
}

fn send(server: &ModelServer, path: &str, body: &Value) -> BufReader<TcpStream> {
    let mut stream = TcpStream::connect(server.url().trim_start_matches("http://")).unwrap();
    stream.set_read_timeout(Some(SOON)).unwrap();
    let body = body.to_string();
    let length = body.len();
    write!(
        stream,
        "POST {path} HTTP/1.1\r\nHost: x\r\nX-Key: k\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}"
    )
    .unwrap();
    BufReader::new(stream)
}

/// The status, and all events or the one body.
fn read(mut reply: BufReader<TcpStream>) -> (u16, Vec<Value>) {
    let mut all = String::new();
    let _ = reply.read_to_string(&mut all);
    let status = all.split(' ').nth(1).unwrap().parse().unwrap();
    let events: Vec<Value> =
        all.lines().filter_map(|line| serde_json::from_str(line.strip_prefix("data: ")?).ok()).collect();
    let body = all.split("\r\n\r\n").nth(1).unwrap_or_default();
    (status, if events.is_empty() { serde_json::from_str(body).into_iter().collect() } else { events })
}

#[test]
fn text_and_tool_calls_arrive_whole_in_every_format() {
    for case in cases() {
        let arguments = json!({ "path": "README.md", "note": LONG });
        let tool = Part::Tool { name: "look".to_owned(), arguments: arguments.clone() };
        let server =
            ModelServer::start(Script::new().then(Reply::Say(vec![Part::Text(LONG.to_owned()), tool]))).unwrap();
        let (status, events) = read(send(&server, case.path, &case.body));
        assert_eq!(status, 200, "{:?}", case.format);
        assert_eq!(events.iter().filter_map(case.text).collect::<String>(), LONG, "{:?}: {events:?}", case.format);
        let called: String = events.iter().filter_map(case.arguments).collect();
        assert_eq!(serde_json::from_str::<Value>(&called).unwrap(), arguments, "{:?}", case.format);

        let recorded = server.asked().remove(0);
        assert_eq!((recorded.fate, recorded.headers["x-key"].as_str()), (Fate::Answered, "k"));
        let asked = recorded.asked.unwrap();
        assert_eq!((asked.format, asked.stream, asked.model.as_str()), (case.format, true, "m"));
        assert_eq!((asked.system.as_str(), asked.last()), ("be brief", "seen"), "{asked:?}");
        assert_eq!((asked.messages[0].as_str(), asked.tools), ("hello", vec!["look".to_owned()]));
        assert_eq!(asked.results, ["seen"]);
    }
}

#[test]
fn a_client_that_does_not_stream_gets_the_same_in_one_answer() {
    for mut case in cases() {
        let server = ModelServer::start(Script::new().then(Reply::text(LONG))).unwrap();
        case.body["stream"] = json!(false);
        let path = case.path.replace("streamGenerateContent?alt=sse", "generateContent");
        let (status, bodies) = read(send(&server, &path, &case.body));
        assert_eq!((status, bodies.len()), (200, 1), "{:?}", case.format);
        assert!(bodies[0].to_string().contains(LONG), "{:?}: {bodies:?}", case.format);
    }
}

#[test]
fn errors_have_the_shape_of_the_format() {
    for case in cases() {
        let refusal = Reply::Refuse { status: 429, message: "slow down".to_owned(), retry_after: Some(7) };
        let server = ModelServer::start(Script::new().then(refusal)).unwrap();
        let (status, bodies) = read(send(&server, case.path, &case.body));
        assert_eq!((status, &bodies[0]["error"]["message"]), (429, &json!("slow down")), "{:?}", case.format);
    }
}

#[test]
fn a_client_that_leaves_a_hanging_answer_is_noticed() {
    for case in cases() {
        let server = ModelServer::start(Script::new().then(Reply::Hang("so far".to_owned()))).unwrap();
        let mut reply = send(&server, case.path, &case.body);
        let mut line = String::new();
        while !line.contains("so far") {
            line.clear();
            assert_ne!(reply.read_line(&mut line).unwrap(), 0, "{:?} ended", case.format);
        }
        assert_eq!(server.requests()[0].fate, Fate::Open);
        drop(reply);
        let left = server.wait_for(SOON, |request| request.fate == Fate::ClientLeft);
        assert!(left.is_some(), "{:?}", case.format);
    }
}

#[test]
fn a_cut_answer_has_no_end() {
    for case in cases() {
        let server = ModelServer::start(Script::new().then(Reply::Cut("so far".to_owned()))).unwrap();
        let (_, events) = read(send(&server, case.path, &case.body));
        assert_eq!(events.iter().filter_map(case.text).collect::<String>(), "so far", "{:?}", case.format);
        assert!(!format!("{events:?}").contains("STOP"), "{events:?}");
    }
}

#[test]
fn the_first_rule_that_fits_and_is_left_answers() {
    let written = json!([
        { "when": { "last": "weather" }, "reply": { "say": [{ "text": "rain" }] } },
        { "when": { "tool": "look" }, "reply": { "say": [{ "tool": { "name": "look", "arguments": {} } }] }, "times": 1 },
        { "reply": { "refuse": { "status": 500, "message": "no" } } }
    ]);
    let script: Script = serde_json::from_value(written).unwrap();
    let twice = Script::new()
        .on("weather", Reply::text("rain"))
        .rule(Rule {
            when: When { tool: Some("look".to_owned()), ..When::default() },
            reply: Reply::tool("look", json!({})),
            times: Some(1),
        })
        .always(Reply::error(500, "no"));
    assert_eq!(script, twice);
    let mut script = script;
    let [mut asked, ..] = cases().map(|case| super::formats::FORMATS[0].asked("", &case.body));
    assert_eq!(script.reply(&asked), Reply::tool("look", json!({})));
    assert_eq!(script.reply(&asked), Reply::error(500, "no"));
    asked.messages.push("how is the weather?".to_owned());
    assert_eq!(script.reply(&asked), Reply::text("rain"));
}

#[test]
fn small_talk_is_answered_and_kept_apart() {
    let server = ModelServer::start(Script::new()).unwrap();
    let (status, _) = read(send(&server, "/v1/messages/count_tokens", &json!({})));
    let (unknown, _) = read(send(&server, "/telemetry", &json!({})));
    assert_eq!((status, unknown), (200, 404));
    assert_eq!((server.requests().len(), server.asked().len()), (2, 0));
}
