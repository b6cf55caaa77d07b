//! Tool calls as one line for people.

use matsu_core::job::end::clip;
use serde_json::Value;

const LINE_CHARS_MAX: usize = 200;

/// `→ Bash ls -l`: the name, and the one argument that says most.
pub fn tool(name: &str, input: &Value) -> String {
    let telling = ["command", "file_path", "path", "filePath", "pattern", "query", "url", "description"];
    let argument = telling.iter().find_map(|key| input[*key].as_str().map(str::to_owned));
    let argument = argument.unwrap_or_else(|| if input.is_null() { String::new() } else { input.to_string() });
    one_line(&format!("→ {name} {argument}"))
}

pub fn one_line(text: &str) -> String {
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    clip(&flat, LINE_CHARS_MAX)
}
