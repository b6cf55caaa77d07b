//! A file is named for what is in it: no `mod.rs`, and none of the names that say "anything".

use super::workspace::Workspace;

const EMPTY_NAMES: &[&str] = &["util", "utils", "common", "helper", "helpers", "manager", "managers", "misc"];

pub fn findings(workspace: &Workspace) -> Vec<String> {
    let mut found = Vec::new();
    for file in workspace.rust_files() {
        if file.name() == "mod.rs" {
            found.push(format!("{}:1: no mod.rs: name it {}.rs, beside its folder", file.path, file.folder()));
        }
        let without_ending = file.path.trim_end_matches(".rs");
        for part in without_ending.split('/') {
            if let Some(name) = part.split('_').find(|word| EMPTY_NAMES.contains(word)) {
                found.push(format!("{}:1: `{name}` has no meaning: name the file for what it does", file.path));
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
    fn finds_mod_rs_and_names_that_say_nothing() {
        let bad = ["crates/a/src/x/mod.rs", "crates/a/src/common/x.rs", "xtask/src/session_manager.rs"];
        for path in bad {
            assert_eq!(findings(&of(&[(path, "")])).len(), 1, "{path}");
        }
        assert!(findings(&of(&[("crates/a/src/commons_clause.rs", ""), ("bench/src/util.rs", "")])).is_empty());
    }
}
