//! Words that do not stand in code: tests that do not run or that hope for a panic, work left undone, and store calls
//! in the server.

use super::source::{Blank, blank, find_word, line_of};
use super::workspace::Workspace;

const FORBIDDEN: &[(&str, &str)] = &[
    ("#[ignore", "a test that does not run proves nothing: guard it by an environment variable, or delete it"),
    ("#[should_panic", "return the error and assert on it"),
    ("todo!(", "finish it, or return an error with the reason"),
    ("unimplemented!(", "finish it, or return an error with the reason"),
];

/// The server reads and writes through the services of the runtime.
const SERVER: &str = "crates/matsu-server/src/";
const FORBIDDEN_IN_SERVER: &[(&str, &str)] = &[
    ("store()", "call a service of matsu-runtime, such as Tasks or Chats; add the method there"),
    ("dyn Store", "call a service of matsu-runtime, such as Tasks or Chats; add the method there"),
];

pub fn findings(workspace: &Workspace) -> Vec<String> {
    let mut found = Vec::new();
    for file in workspace.rust_files() {
        let code = blank(&file.text, Blank::CommentsAndStrings);
        let of_server = FORBIDDEN_IN_SERVER.iter().filter(|_| file.path.starts_with(SERVER));
        for (word, advice) in FORBIDDEN.iter().chain(of_server) {
            for offset in find_word(&code, word) {
                found.push(format!("{}:{}: `{word}`: {advice}", file.path, line_of(&code, offset)));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::workspace::of;
    use super::findings;

    #[test]
    fn finds_each_word_in_code_only() {
        let text =
            "//! todo!()\nfn a() { todo!() }\n#[ignore = \"slow\"]\n#[should_panic]\nunimplemented!();\n\"todo!()\"";
        let found = findings(&of(&[("crates/a/src/x.rs", text)]));
        let lines: Vec<&str> = found.iter().filter_map(|finding| finding.split(':').nth(1)).collect();
        assert_eq!(lines, ["3", "4", "2", "5"], "{found:?}");
    }

    #[test]
    fn the_server_makes_no_store_call() {
        let text = "fn a(app: &App) { app.runtime().store().task(id) }";
        let files = [("crates/matsu-server/src/x.rs", text), ("crates/matsu-runtime/src/x.rs", text)];
        let found = findings(&of(&files));
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("crates/matsu-server/src/x.rs:1: `store()`"), "{found:?}");
    }
}
