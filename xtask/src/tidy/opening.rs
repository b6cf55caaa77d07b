//! Every file says at its top what it is and what holds in it.

use super::workspace::Workspace;

pub fn findings(workspace: &Workspace) -> Vec<String> {
    workspace
        .rust_files()
        .filter(|file| !file.text.starts_with("//!"))
        .map(|file| format!("{}:1: open the file with `//!`: what it is, and its invariant", file.path))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::workspace::of;
    use super::findings;

    #[test]
    fn finds_a_file_that_starts_with_code() {
        let workspace = of(&[("crates/a/src/good.rs", "//! A.\n"), ("crates/a/src/bad.rs", "use std::io;\n//! A.\n")]);
        let found = findings(&workspace);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("crates/a/src/bad.rs:1:"), "{found:?}");
    }
}
