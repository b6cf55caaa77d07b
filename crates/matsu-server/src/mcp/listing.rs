//! Tools and their results as the protocol writes them.

use std::sync::Arc;

use matsu_runtime::tool::ToolEntry;
use matsu_runtime::tools::TOOLS;
use rmcp::model::{CallToolResult, ContentBlock, Tool, ToolAnnotations};
use serde_json::Value;

/// Names the option with which a connection offers the tool, if there is one.
pub(super) fn not_offered(name: &str) -> String {
    match TOOLS.iter().find(|tool| tool.name == name) {
        Some(tool) => format!(
            "the tool {name} is not offered on this connection; start the server with `matsu mcp --tools {set}` or \
             `--tools all`, or over HTTP use the address /mcp?tools={set}, with a token that allows it",
            set = tool.toolset.as_str()
        ),
        None => format!("there is no tool {name}; call tools/list for the names"),
    }
}

/// Both halves carry the same: some clients show a model only one of them.
pub(super) fn result(body: Value, is_error: bool) -> CallToolResult {
    let text = vec![ContentBlock::text(body.to_string())];
    let mut result = if is_error { CallToolResult::error(text) } else { CallToolResult::success(text) };
    result.structured_content = Some(body);
    result
}

pub(super) fn described(entry: &ToolEntry, with_token: bool) -> Tool {
    let object = |schema: &Value| schema.as_object().cloned().unwrap_or_default();
    let hints = entry.annotations;
    let annotations = ToolAnnotations::new()
        .read_only(hints.read_only)
        .destructive(hints.destructive)
        .idempotent(hints.idempotent)
        .open_world(hints.open_world);
    Tool::new(entry.name, entry.description, object(&entry.listed_input(with_token)))
        .with_title(entry.title)
        .with_raw_output_schema(Arc::new(object(entry.output_schema())))
        .with_annotations(annotations)
}

#[cfg(test)]
mod tests {
    use matsu_runtime::dispatch::presets::Offer;
    use serde_json::json;

    use super::*;

    fn listed(preset: &str) -> Vec<Tool> {
        let offer = Offer::parse(preset).unwrap();
        let with_token = offer.find("authenticate").is_some();
        offer.tools().map(|entry| described(entry, with_token)).collect()
    }

    /// Bytes of what a model reads: names, descriptions and input schemas; and of the whole list.
    fn bytes(preset: &str) -> (usize, usize) {
        let tools = listed(preset);
        let model = tools.iter().map(
            |tool| json!({ "name": tool.name, "description": tool.description, "inputSchema": tool.input_schema }),
        );
        (Value::from_iter(model).to_string().len(), json!({ "tools": tools }).to_string().len())
    }

    /// Tokens are counted by `make tool-tokens`; a token is a little more than four of these bytes.
    #[test]
    fn the_lists_of_tools_stay_small() {
        let (core, whole) = bytes("core");
        assert!(core <= 12_800 && whole <= 25_000, "core: {core} bytes to read, {whole} in all");
        let (all, whole) = bytes("all");
        assert!(all <= 26_500 && whole <= 50_000, "all: {all} bytes to read, {whole} in all");
    }

    fn undescribed(schema: &Value, path: &str, found: &mut Vec<String>) {
        for (name, field) in schema["properties"].as_object().into_iter().flatten() {
            let path = format!("{path}.{name}");
            let text = field["description"].as_str().unwrap_or_default();
            if text.is_empty() || !text.ends_with('.') {
                found.push(path.clone());
            }
            undescribed(field, &path, found);
        }
    }

    #[test]
    fn every_parameter_is_described_in_a_sentence() {
        let mut found = Vec::new();
        for tool in listed("all") {
            undescribed(&json!({ "properties": tool.input_schema["properties"] }), &tool.name, &mut found);
        }
        assert!(found.is_empty(), "{found:?}");
    }

    #[test]
    fn only_clients_that_authenticate_are_offered_a_session_token() {
        let has_token = |tool: &Tool| tool.input_schema["properties"].get("session_token").is_some();
        assert!(!listed("core").iter().any(has_token));
        let without: Vec<_> = listed("all").into_iter().filter(|tool| !has_token(tool)).map(|tool| tool.name).collect();
        assert_eq!(without, ["authenticate"]);
    }

    #[test]
    fn every_tool_has_a_title_and_true_hints() {
        let hints = |name: &str| {
            let tool = listed("all").into_iter().find(|tool| tool.name == name).unwrap();
            assert!(tool.title.is_some_and(|title| !title.is_empty()), "{name}");
            let hints = tool.annotations.unwrap();
            let hint = |hint: Option<bool>| hint.unwrap();
            (hint(hints.read_only_hint), hint(hints.destructive_hint), hint(hints.open_world_hint))
        };
        let expected = [
            ("create_task", (false, false, false)),
            ("queue_searches", (false, false, true)),
            ("get_status", (true, false, false)),
            ("get_materials", (true, false, true)),
            ("stop_task", (false, true, false)),
            ("get_auth_queue", (true, false, false)),
            ("resolve_auth", (false, false, true)),
            ("feedback", (false, true, false)),
            ("calibration_metrics", (false, false, false)),
            ("calibration_rollback", (false, true, false)),
            ("list_agents", (true, false, false)),
            ("use_agent", (false, true, true)),
            ("use_agents", (false, true, true)),
            ("get_task_status", (true, false, false)),
            ("answer_question", (false, true, false)),
            ("cancel_task", (false, true, false)),
            ("authenticate", (false, false, false)),
            ("get_next_action", (false, false, false)),
            ("send_message", (false, false, false)),
            ("get_notifications", (false, false, false)),
            ("report_completed", (false, false, false)),
            ("logout", (false, false, false)),
        ];
        assert_eq!(expected.len(), TOOLS.len());
        for (name, is) in expected {
            assert_eq!(hints(name), is, "{name}");
        }
    }

    #[test]
    fn a_tool_of_another_preset_is_named_with_its_option() {
        assert!(not_offered("use_agents").contains("--tools agents"), "{}", not_offered("use_agents"));
        assert!(not_offered("use_agnt").contains("there is no tool use_agnt"));
    }
}
