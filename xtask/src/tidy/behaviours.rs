//! Every behaviour that `docs/behaviours.md` promises has a test, and every test it names exists.

use super::source::{Blank, blank, find_word};
use super::workspace::Workspace;

const PAGE: &str = "docs/behaviours.md";

pub fn findings(workspace: &Workspace) -> Vec<String> {
    let Some(page) = workspace.file(PAGE) else { return Vec::new() };
    let code: Vec<String> = workspace.rust_files().map(|file| blank(&file.text, Blank::CommentsAndStrings)).collect();
    let mut found = Vec::new();
    let mut expected = 1;
    for (at, line) in page.text.lines().enumerate() {
        if line.starts_with("## ") {
            expected = 1;
        }
        let Some((number, tests)) = row(line) else { continue };
        let place = format!("{PAGE}:{}", at + 1);
        if number != expected {
            found.push(format!(
                "{place}: behaviour {number} is listed where {expected} is expected; numbers must have no gaps"
            ));
        }
        expected = number + 1;
        if tests.is_empty() {
            found.push(format!("{place}: behaviour {number} has no test: name one, in backticks, in the last column"));
        }
        for test in tests {
            if !code.iter().any(|text| defines(text, test)) {
                found.push(format!("{place}: there is no test `{test}`: correct the name, or write the test"));
            }
        }
    }
    found
}

/// The number of a row and the tests in its last column.
fn row(line: &str) -> Option<(usize, Vec<&str>)> {
    let mut cells = line.strip_prefix("| ")?.strip_suffix(" |")?.split(" | ");
    let number = cells.next()?.parse().ok()?;
    let tests = cells.last().unwrap_or_default().split('`').skip(1).step_by(2).collect();
    Some((number, tests))
}

/// A function of that name, or its line in a macro that makes tests: `name;` or `name,`.
fn defines(code: &str, test: &str) -> bool {
    find_word(code, test).any(|offset| {
        let after = code[offset + test.len()..].chars().next();
        code[..offset].ends_with("fn ") || matches!(after, Some(';' | ','))
    })
}

#[cfg(test)]
mod tests {
    use super::super::workspace::of;
    use super::{PAGE, findings};

    const CODE: (&str, &str) =
        ("crates/a/src/x.rs", "//! A.\nfn it_works() {}\nmade! {\n    so_does_this;\n}\n// fn gone()\n");

    #[test]
    fn a_page_whose_tests_exist_is_clean() {
        let page = "## A\n\n| | behaviour | tests |\n|---|---|---|\n| 1 | One. | `it_works` |\n| 2 | Two. | `so_does_this` |\n\n## B\n\n| 1 | One. | `it_works` |\n";
        assert_eq!(findings(&of(&[CODE, (PAGE, page)])), Vec::<String>::new());
    }

    #[test]
    fn finds_gaps_rows_without_tests_and_tests_that_are_gone() {
        let page = "| 1 | One. | `gone` |\n| 3 | Three. |  |\n";
        let found = findings(&of(&[CODE, (PAGE, page)]));
        assert_eq!(found.len(), 3, "{found:?}");
        assert!(
            found[0].contains("no test `gone`") && found[1].contains("where 2") && found[2].contains("has no test")
        );
    }
}
