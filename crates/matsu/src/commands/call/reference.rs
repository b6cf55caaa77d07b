//! docs/tools.md, written from the tools themselves.

use std::fmt::Write;

use matsu_runtime::tool::{ToolEntry, Toolset};
use matsu_runtime::tools::TOOLS;
use serde_json::Value;

const INTRODUCTION: &str = "\
# Tools

Written by `matsu call --reference`; do not edit.

A connection offers the preset `core` unless it asks for more: `matsu mcp --tools all`, or toolsets separated by commas
(`research,agents,sessions`); over HTTP `/mcp?tools=all`. `matsu call` lists all tools, `matsu call NAME JSON` calls one
from a shell, `matsu call NAME --schema` prints its schemas, and `GET /api/v1/tools` has them too.

Every reply has `ok`. A refused call answers `{\"ok\": false, \"error_code\", \"error\", \"error_id\", \"details\"}` with
`isError`; every code has [a page](errors/README.md). An agent with a session also gets `notification` in every reply; an
interrupt replaces the reply, and the call has had no effect.
";

pub fn page() -> String {
    let mut page = INTRODUCTION.to_owned();
    for set in [Toolset::Agents, Toolset::Research, Toolset::Sessions] {
        let name = set.as_str();
        let _ = write!(page, "\n## {}{}\n", name[..1].to_uppercase(), &name[1..]);
        TOOLS.iter().filter(|tool| tool.toolset == set).for_each(|tool| add_tool(&mut page, tool));
    }
    page
}

fn add_tool(page: &mut String, tool: &ToolEntry) {
    let hints = tool.annotations;
    let mut notes = Vec::new();
    notes.extend(tool.core.then_some("in `core`"));
    notes.extend(hints.read_only.then_some("read-only"));
    notes.extend(hints.destructive.then_some("may change or remove what exists"));
    notes.extend(hints.open_world.then_some("reaches beyond Matsu"));
    notes.extend(tool.rules.admin_only.then_some("admins only"));
    notes.extend(tool.rules.person_only.then_some("for sessions only if granted by name"));
    let description = tool.description.split_once(": ").map_or(tool.description, |(_, text)| text);
    let mut letters = description.chars();
    let description = letters.next().map(|first| first.to_uppercase().chain(letters).collect::<String>());
    let _ = write!(page, "\n### {}\n\n{}. {}\n", tool.name, tool.title, description.unwrap_or_default());
    if !notes.is_empty() {
        let _ = write!(page, "\nNotes: {}.\n", notes.join(", "));
    }
    let mut rows = String::new();
    add_rows(&mut rows, tool.input_schema(), "");
    if !rows.is_empty() {
        let _ = write!(page, "\n| parameter | type | meaning |\n|---|---|---|\n{rows}");
    }
}

fn add_rows(rows: &mut String, schema: &Value, path: &str) {
    let required = |name: &str| schema["required"].as_array().is_some_and(|names| names.contains(&name.into()));
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let needed = if required(name) { ", required" } else { "" };
        let meaning = field["description"].as_str().unwrap_or_default().replace('|', "\\|").replace('\n', " ");
        let _ = writeln!(rows, "| `{path}{name}` | {}{needed} | {meaning} |", type_of(field));
        add_rows(rows, field, &format!("{path}{name}."));
    }
}

/// A type in a few words, with its bounds.
pub fn type_of(field: &Value) -> String {
    if let Some(words) = field["enum"].as_array() {
        return words.iter().filter_map(Value::as_str).map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ");
    }
    if let Some(choices) = field["anyOf"].as_array() {
        return choices.iter().map(type_of).collect::<Vec<_>>().join(" or ");
    }
    let bounds = |least: &str, most: &str| match (&field[least], &field[most]) {
        (Value::Null, Value::Null) => String::new(),
        (least, Value::Null) => format!("at least {least}"),
        (Value::Null, most) => format!("at most {most}"),
        (least, most) => format!("{least} to {most}"),
    };
    let with = |name: &str, between: &str, bounds: &str, unit: &str| match bounds {
        "" => name.to_owned(),
        "at least 1" => format!("{name}{between}at least 1{}", unit.trim_end_matches('s')),
        bounds => format!("{name}{between}{bounds}{unit}"),
    };
    match field["type"].as_str() {
        Some("string") => with("string", ", ", &bounds("minLength", "maxLength"), " characters"),
        Some("array") => {
            let list = format!("list of {}", type_of(&field["items"]));
            with(&list, ", ", &bounds("minItems", "maxItems"), " items")
        }
        Some("object") if field["additionalProperties"].is_object() => {
            format!("object of {}", type_of(&field["additionalProperties"]))
        }
        Some(name) => with(name, " ", &bounds("minimum", "maximum"), ""),
        None => "any".to_owned(),
    }
}
