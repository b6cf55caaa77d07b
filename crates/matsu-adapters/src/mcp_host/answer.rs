//! A tool's result as text. What is not text is named, so that the model knows it was there.

use matsu_core::ports::tool_source::ToolAnswer;
use serde_json::{Map, Value};

pub fn from_result(result: &Map<String, Value>) -> ToolAnswer {
    let blocks = result.get("content").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let mut text = blocks.iter().map(block).collect::<Vec<_>>().join("\n");
    if text.is_empty()
        && let Some(structured) = result.get("structuredContent").filter(|value| !value.is_null())
    {
        text = structured.to_string();
    }
    if text.is_empty() {
        "(no text output)".clone_into(&mut text);
    }
    let is_error = result.get("isError").and_then(Value::as_bool).unwrap_or(false);
    ToolAnswer { content: text, is_error }
}

fn block(block: &Value) -> String {
    let text = |pointer: &str| block.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    match text("/type") {
        "text" => text("/text").to_owned(),
        kind @ ("image" | "audio") => format!("[{kind}: {}]", text("/mimeType")),
        "resource" if !text("/resource/text").is_empty() => text("/resource/text").to_owned(),
        "resource" => format!("[resource: {} ({})]", text("/resource/uri"), text("/resource/mimeType")),
        "resource_link" => format!("[resource: {} ({})]", text("/uri"), text("/mimeType")),
        _ => block.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn everything_becomes_text() {
        let cases = [
            (json!({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}), "a\nb", false),
            (
                json!({"content": [{"type": "image", "mimeType": "image/png", "data": "x"}], "isError": true}),
                "[image: image/png]",
                true,
            ),
            (json!({"content": [{"type": "resource", "resource": {"uri": "u", "text": "t"}}]}), "t", false),
            (
                json!({"content": [{"type": "resource", "resource": {"uri": "u", "mimeType": "m"}}]}),
                "[resource: u (m)]",
                false,
            ),
            (json!({"content": [], "structuredContent": {"n": 1}}), "{\"n\":1}", false),
            (json!({}), "(no text output)", false),
            (json!({"content": [{"type": "new", "x": 1}]}), "{\"type\":\"new\",\"x\":1}", false),
        ];
        for (result, content, is_error) in cases {
            let answer = from_result(result.as_object().unwrap());
            assert_eq!(answer, ToolAnswer { content: content.to_owned(), is_error }, "{result}");
        }
    }
}
