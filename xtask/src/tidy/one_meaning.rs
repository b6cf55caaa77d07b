//! Some short names were types of several meanings. Each is at most one type of the product; a second one is named by
//! what it is.

use super::source::{Blank, blank, find_word, line_of};
use super::workspace::Workspace;

/// Names, and how many types of the product may have one. None of those that stand at zero may come back.
const NAMES: &[(&str, usize)] =
    &[("Answer", 1), ("Answers", 0), ("Place", 1), ("Hand", 0), ("Session", 1), ("Step", 1), ("Part", 1)];

/// Crates of tests have their own words.
const TESTING: &[&str] = &["crates/matsu-testkit/", "crates/matsu-conformance/"];

pub fn findings(workspace: &Workspace) -> Vec<String> {
    let mut found = Vec::new();
    for (name, most) in NAMES {
        let mut places = Vec::new();
        for file in workspace.rust_files().filter(|file| is_product(&file.path)) {
            let code = blank(&file.text, Blank::CommentsAndStrings);
            for keyword in ["struct", "enum", "type", "trait"] {
                let declared = format!("{keyword} {name}");
                places.extend(find_word(&code, &declared).map(|at| format!("{}:{}", file.path, line_of(&code, at))));
            }
        }
        if places.len() > *most {
            found.push(format!(
                "{}: {} types are called `{name}`, at most {most} may be: name each by what it is",
                places.join(", "),
                places.len()
            ));
        }
    }
    found
}

fn is_product(path: &str) -> bool {
    path.contains("/src/") && path.starts_with("crates/") && !TESTING.iter().any(|testing| path.starts_with(testing))
}

#[cfg(test)]
mod tests {
    use super::super::workspace::of;
    use super::findings;

    #[test]
    fn finds_a_second_type_of_one_name() {
        let first = ("crates/a/src/x.rs", "pub struct Place;\nstruct Placed;\n");
        assert_eq!(findings(&of(&[first])), [""; 0]);
        let found = findings(&of(&[first, ("crates/b/src/y.rs", "// struct Place\nenum Place {}\n")]));
        assert_eq!(
            found,
            [
                "crates/a/src/x.rs:1, crates/b/src/y.rs:2: 2 types are called `Place`, at most 1 may be: name each by what it is"
            ]
        );
        let tests =
            [first, ("crates/matsu-testkit/src/y.rs", "struct Place;"), ("crates/b/tests/y.rs", "struct Place;")];
        assert_eq!(findings(&of(&tests)), [""; 0], "tests have their own");
        assert_eq!(findings(&of(&[("crates/a/src/x.rs", "struct Hand;")])).len(), 1);
    }
}
