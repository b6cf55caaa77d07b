//! Words that do not stand in code: tests that do not run or that hope for a panic, and work left undone.

use super::source::{Blank, blank, find_word, line_of};
use super::workspace::Workspace;

const FORBIDDEN: &[(&str, &str)] = &[
    ("#[ignore", "a test that does not run proves nothing: guard it by an environment variable, or delete it"),
    ("#[should_panic", "return the error and assert on it"),
    ("todo!(", "finish it, or return an error that says so"),
    ("unimplemented!(", "finish it, or return an error that says so"),
];

pub fn findings(workspace: &Workspace) -> Vec<String> {
    let mut found = Vec::new();
    for file in workspace.rust_files() {
        let code = blank(&file.text, Blank::CommentsAndStrings);
        for (word, advice) in FORBIDDEN {
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
}
