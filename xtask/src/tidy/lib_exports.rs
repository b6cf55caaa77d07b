//! `lib.rs` is a table of contents: modules, re-exports, attributes and documentation, and no code.

use super::source::{Blank, blank, line_of};
use super::workspace::Workspace;

pub fn findings(workspace: &Workspace) -> Vec<String> {
    let mut found = Vec::new();
    for file in workspace.rust_files().filter(|file| file.name() == "lib.rs") {
        let code = blank(&file.text, Blank::CommentsAndStrings);
        for (offset, item) in items(&code) {
            if !is_export(item) {
                let head = item.lines().next().unwrap_or(item).trim_end();
                found.push(format!(
                    "{}:{}: `{head}`: lib.rs only exports (`mod x;`, `pub use …;`): move this to a file of its own",
                    file.path,
                    line_of(&code, offset)
                ));
            }
        }
    }
    found
}

fn is_export(item: &str) -> bool {
    let (public, rest) = match item.strip_prefix("pub") {
        Some(rest) if rest.starts_with('(') => (true, rest.split_once(')').map_or("", |(_, after)| after)),
        Some(rest) => (true, rest),
        None => (false, item),
    };
    let rest = rest.trim_start();
    let declares_module = rest.starts_with("mod ") && !rest.contains('{');
    declares_module || (public && rest.starts_with("use "))
}

/// The top-level items of `code`, without attributes: each up to its `;`, or to the end of its block.
fn items(code: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(skipped) = code[at..].find(|character: char| !character.is_whitespace()) {
        at += skipped;
        let length = item_length(&code[at..]);
        if !code[at..].starts_with('#') {
            found.push((at, &code[at..at + length]));
        }
        at += length;
    }
    found
}

fn item_length(rest: &str) -> usize {
    let is_attribute = rest.starts_with('#');
    let is_use = rest.split(';').next().is_some_and(|head| head.split_whitespace().any(|word| word == "use"));
    let mut depth = 0_usize;
    for (at, character) in rest.char_indices() {
        match character {
            '{' | '[' | '(' => depth += 1,
            '}' | ']' | ')' => {
                depth = depth.saturating_sub(1);
                let closes = (is_attribute && character == ']') || (!is_use && character == '}');
                if depth == 0 && closes {
                    return at + 1;
                }
            }
            ';' if depth == 0 => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

#[cfg(test)]
mod tests {
    use super::super::workspace::of;
    use super::findings;

    #[test]
    fn lets_exports_pass() {
        let text = "//! A.\n#![forbid(unsafe_code)]\n\nmod a;\npub mod b;\npub(crate) mod c;\n#[cfg(test)]\nmod tests;\n\n\
                    pub use a::{One,\n    Two};\npub use b::*;\n";
        assert_eq!(findings(&of(&[("crates/a/src/lib.rs", text)])), Vec::<String>::new());
    }

    #[test]
    fn finds_code() {
        for code in ["fn f() { g(); }", "pub struct S;", "const A: u8 = 1;", "mod m { }", "use std::io;", "x! { }"] {
            let text = format!("//! A.\nmod a;\n#[inline]\n{code}\nmod z;\n");
            let found = findings(&of(&[("crates/a/src/lib.rs", &text)]));
            assert_eq!(found.len(), 1, "{code}: {found:?}");
            assert!(found[0].starts_with("crates/a/src/lib.rs:4:"), "{found:?}");
            assert!(findings(&of(&[("crates/a/src/other.rs", &text)])).is_empty());
        }
    }
}
