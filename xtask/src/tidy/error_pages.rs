//! Every code a user can meet has a page that says what to do next, and no page outlives its code.

use std::collections::BTreeSet;

use super::source::{Blank, blank, line_of};
use super::workspace::Workspace;

const CODES: &str = "crates/matsu-core/src/error_code.rs";
const PAGES: &str = "docs/errors";
const INDEX: &str = "docs/errors/README.md";

pub fn findings(workspace: &Workspace) -> Vec<String> {
    // The pages may be written before the codes are.
    let Some(list) = workspace.file(CODES) else { return Vec::new() };
    let mut found = Vec::new();
    let mut known = BTreeSet::new();
    for (line, code) in codes(&list.text) {
        let page = format!("{PAGES}/{code}.md");
        if known.insert(code.to_owned()) && workspace.file(&page).is_none() {
            found.push(format!("{CODES}:{line}: {code} has no page: write {page} (cause, what to do next)"));
        }
    }
    let index = workspace.file(INDEX).map_or("", |index| index.text.as_str());
    for page in workspace.files.iter().filter(|file| file.folder() == PAGES && file.path != INDEX) {
        let code = page.stem();
        if !index.contains(&format!("({code}.md)")) {
            found.push(format!("{INDEX}:1: add `- [{code}]({code}.md)`"));
        }
        if !known.contains(code) {
            found.push(format!("{}:1: no code {code} in {CODES}: delete the page, or add the code", page.path));
        }
        if page.text.lines().next() != Some(&format!("# {code}")) {
            found.push(format!("{}:1: begin the page with `# {code}`", page.path));
        }
    }
    found
}

/// The string literals in SCREAMING_SNAKE_CASE, with their lines.
fn codes(text: &str) -> Vec<(usize, &str)> {
    let code = blank(text, Blank::Comments);
    let quotes: Vec<usize> = code.match_indices('"').map(|(offset, _)| offset).collect();
    quotes
        .windows(2)
        .map(|pair| (pair[0], &text[pair[0] + 1..pair[1]]))
        .filter(|(_, literal)| is_code(literal))
        .map(|(offset, literal)| (line_of(text, offset), literal))
        .collect()
}

fn is_code(literal: &str) -> bool {
    literal.len() >= 3
        && literal.starts_with(|first: char| first.is_ascii_uppercase())
        && literal.chars().all(|character| matches!(character, 'A'..='Z' | '0'..='9' | '_'))
}

#[cfg(test)]
mod tests {
    use super::super::workspace::of;
    use super::{CODES, INDEX, findings};

    const LIST: &str = "// \"IN_A_COMMENT\"\nmatch self {\n    A => \"TASK_NOT_FOUND\",\n    B => \"lower\",\n}\n";

    #[test]
    fn compares_codes_and_pages() {
        let index = "- [TASK_NOT_FOUND](TASK_NOT_FOUND.md)\n";
        let complete = of(&[(CODES, LIST), (INDEX, index), ("docs/errors/TASK_NOT_FOUND.md", "# TASK_NOT_FOUND\n")]);
        assert_eq!(findings(&complete), Vec::<String>::new());
        let without_list = of(&[("docs/errors/ANY.md", "")]);
        assert!(findings(&without_list).is_empty());
    }

    #[test]
    fn finds_a_missing_page_and_a_page_too_many() {
        let found = findings(&of(&[(CODES, LIST), ("docs/errors/GONE.md", "# Gone\n")]));
        assert_eq!(found.len(), 4, "{found:?}");
        assert!(found[0].starts_with(&format!("{CODES}:3: TASK_NOT_FOUND has no page")), "{found:?}");
        assert!(found[1].starts_with(INDEX) && found[1].contains("(GONE.md)"), "{found:?}");
        assert!(found[2].contains("no code GONE") && found[3].contains("`# GONE`"), "{found:?}");
    }
}
