//! Arguments of every tool: the first byte chooses the tool, the rest is JSON.

use matsu_core::error_code::ErrorCode;
use matsu_runtime::dispatch::check;
use matsu_runtime::tools::TOOLS;
use serde_json::Value;

use crate::input::choice;

pub fn run(data: &[u8]) {
    let (which, data) = choice(data);
    let tool = &TOOLS[which % TOOLS.len()];
    let Ok(arguments @ Value::Object(_)) = serde_json::from_slice(data) else { return };
    let checked = check::arguments(tool.input_schema(), &arguments);
    let read = tool.reads(arguments.clone());
    let Err(error) = checked.and(read) else { return };
    assert_eq!(error.code, ErrorCode::InvalidParams);
    assert!(!error.message.is_empty() && error.message.len() <= 8 * data.len() + 4_096, "{}", error.message.len());
    let properties = tool.input_schema()["properties"].as_object();
    for (name, schema) in properties.into_iter().flatten().filter(|(_, schema)| schema["writeOnly"] == true) {
        let secret = arguments[name].as_str().unwrap_or_default();
        let is_shown = secret.len() >= 8 && !schema.to_string().contains(secret) && !tool.name.contains(secret);
        assert!(!(is_shown && error.message.contains(secret)), "a refusal repeats {name}");
    }
}
