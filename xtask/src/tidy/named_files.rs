//! A source file that ARCHITECTURE.md, CONTRIBUTING.md or SECURITY.md names exists: a reader finds it by that name.

use super::source::line_of;
use super::workspace::Workspace;

const PAGES: &[&str] = &["ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md"];

const ENDINGS: &[&str] = &[".rs", ".svelte", ".sh", ".py"];

pub fn findings(workspace: &Workspace) -> Vec<String> {
    let mut found = Vec::new();
    for file in workspace.files.iter().filter(|file| PAGES.contains(&file.path.as_str())) {
        for (offset, name) in named(&file.text) {
            let end = format!("/{name}");
            if !workspace.paths.iter().any(|path| path == name || path.ends_with(&end)) {
                let line = line_of(&file.text, offset);
                found.push(format!("{}:{line}: there is no file {name}; name the one that replaced it", file.path));
            }
        }
    }
    found
}

/// The names of source files between backticks, without patterns such as `<name>.rs` and `*/connection.rs`.
fn named(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut offset = 0;
    for (number, part) in text.split('`').enumerate() {
        let is_name = ENDINGS.iter().any(|ending| part.ends_with(ending)) && !part.contains(['<', '*', ' ', '\n']);
        if number % 2 == 1 && is_name {
            found.push((offset, part));
        }
        offset += part.len() + 1;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::workspace::of;
    use super::findings;

    #[test]
    fn finds_names_without_a_file() {
        let code = ("crates/a/src/x/y.rs", "");
        let page = "`x/y.rs`, `y.rs` and `<name>.rs`\n```sh\nrun z.rs\n```\nthen `x/z.rs` in `*/z.rs`\n";
        let found = findings(&of(&[code, ("ARCHITECTURE.md", page), ("docs/other.md", "`gone.rs`")]));
        assert_eq!(found, ["ARCHITECTURE.md:5: there is no file x/z.rs; name the one that replaced it"]);
    }
}
