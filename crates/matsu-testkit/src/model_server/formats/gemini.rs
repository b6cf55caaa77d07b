//! Gemini: `POST …/models/MODEL:streamGenerateContent?alt=sse`, each piece a whole response with a part of the content.

use serde_json::{Value, json};

use super::{Answer, INPUT_TOKENS, OUTPUT_TOKENS, WireFormat, array, data, slices, string};
use crate::model_server::request::{Asked, Format};
use crate::model_server::script::Part;

pub struct Gemini;

impl WireFormat for Gemini {
    fn format(&self) -> Format {
        Format::Gemini
    }

    fn claims(&self, path: &str) -> bool {
        path.ends_with(":streamGenerateContent") || path.ends_with(":generateContent")
    }

    fn asked(&self, path: &str, body: &Value) -> Asked {
        let contents = array(body, "contents");
        let last = contents.last().map(|content| array(content, "parts")).unwrap_or_default();
        let tools = array(body, "tools").iter().flat_map(|tool| array(tool, "functionDeclarations"));
        let (model, method) = path.rsplit('/').next().and_then(|name| name.rsplit_once(':')).unwrap_or_default();
        Asked {
            format: self.format(),
            model: model.to_owned(),
            stream: method == "streamGenerateContent",
            system: text_of_parts(array(&body["systemInstruction"], "parts")),
            messages: contents.iter().map(|content| text_of_parts(array(content, "parts"))).collect(),
            tools: tools.map(|tool| string(&tool["name"])).collect(),
            results: last.iter().filter(|part| part["functionResponse"].is_object()).map(text_of_part).collect(),
        }
    }

    fn pieces(&self, answer: &Answer<'_>) -> Vec<String> {
        let mut parts = Vec::new();
        for part in answer.parts {
            match part {
                Part::Text(text) => parts.extend(slices(text).into_iter().map(|slice| json!({ "text": slice }))),
                Part::Tool { .. } => parts.push(wire_part(part)),
            }
        }
        // The end comes with the last piece, so an empty answer needs one, too.
        if parts.is_empty() {
            parts.push(json!({ "text": "" }));
        }
        let last = parts.len() - 1;
        let numbered = parts.into_iter().enumerate();
        numbered.map(|(index, part)| data(&piece(answer, &json!([part]), index == last))).collect()
    }

    fn opening(&self, answer: &Answer<'_>) -> Vec<String> {
        vec![data(&piece(answer, &json!([{ "text": answer.text() }]), false))]
    }

    fn whole(&self, answer: &Answer<'_>) -> Value {
        piece(answer, &answer.parts.iter().map(wire_part).collect(), true)
    }

    fn refusal(&self, status: u16, message: &str) -> Value {
        let name = match status {
            400 => "INVALID_ARGUMENT",
            401 => "UNAUTHENTICATED",
            403 => "PERMISSION_DENIED",
            404 => "NOT_FOUND",
            429 => "RESOURCE_EXHAUSTED",
            503 => "UNAVAILABLE",
            _ => "INTERNAL",
        };
        json!({ "error": { "code": status, "message": message, "status": name } })
    }
}

fn wire_part(part: &Part) -> Value {
    match part {
        Part::Text(text) => json!({ "text": text }),
        Part::Tool { name, arguments } => json!({ "functionCall": { "name": name, "args": arguments } }),
    }
}

fn piece(answer: &Answer<'_>, parts: &Value, is_last: bool) -> Value {
    let mut candidate = json!({ "content": { "role": "model", "parts": parts }, "index": 0 });
    let mut piece = json!({ "modelVersion": answer.model, "responseId": answer.id("resp") });
    if is_last {
        candidate["finishReason"] = json!("STOP");
        piece["usageMetadata"] = json!({ "promptTokenCount": INPUT_TOKENS, "candidatesTokenCount": OUTPUT_TOKENS,
            "totalTokenCount": INPUT_TOKENS + OUTPUT_TOKENS });
    }
    piece["candidates"] = json!([candidate]);
    piece
}

fn text_of_parts(parts: &[Value]) -> String {
    parts.iter().map(text_of_part).filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n")
}

/// A function's answer is any JSON; its text is what it would look like to the model.
fn text_of_part(part: &Value) -> String {
    match &part["functionResponse"]["response"] {
        Value::Null => string(&part["text"]),
        Value::Object(fields) => match fields.get("output").and_then(Value::as_str) {
            Some(output) => output.to_owned(),
            None => Value::Object(fields.clone()).to_string(),
        },
        other => other.to_string(),
    }
}
