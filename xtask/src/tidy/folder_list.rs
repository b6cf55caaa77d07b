//! A folder and the list beside it agree: each `foo/x.rs` is declared by `mod x;` in `foo.rs`.
//!
//! A file that no `mod` line declares is not compiled, so its tests do not run and no message says so.

use super::source::{Blank, blank, find_word, is_word};
use super::workspace::{File, Workspace};

/// Folders below a crate whose files cargo itself finds.
const FOUND_BY_CARGO: &[&str] = &["tests", "benches", "examples", "src/bin"];

pub fn findings(workspace: &Workspace) -> Vec<String> {
    let mut found = Vec::new();
    for file in workspace.rust_files().filter(|file| !is_root(file)) {
        let folder = file.folder();
        if is_found_by_cargo(workspace, folder) {
            continue;
        }
        let lists: Vec<&File> = [format!("{folder}.rs"), format!("{folder}/lib.rs"), format!("{folder}/main.rs")]
            .iter()
            .filter_map(|path| workspace.file(path))
            .collect();
        if lists.is_empty() {
            found
                .push(format!("{}:1: no {folder}.rs beside the folder: add it, and declare the file in it", file.path));
        } else if !lists.iter().any(|list| declares(&list.text, file.stem())) {
            found.push(format!("{}:1: {} is not compiled: add `mod {};`", lists[0].path, file.path, file.stem()));
        }
    }
    found
}

fn is_root(file: &File) -> bool {
    matches!(file.name(), "lib.rs" | "main.rs" | "mod.rs" | "build.rs")
}

fn is_found_by_cargo(workspace: &Workspace, folder: &str) -> bool {
    FOUND_BY_CARGO.iter().any(|name| {
        folder
            .strip_suffix(name)
            .and_then(|package| package.strip_suffix('/'))
            .is_some_and(|package| workspace.paths.contains(&format!("{package}/Cargo.toml")))
    })
}

fn declares(list: &str, module: &str) -> bool {
    let code = blank(list, Blank::CommentsAndStrings);
    find_word(&code, "mod").any(|offset| {
        let rest = code[offset + "mod".len()..].trim_start();
        let rest = rest.strip_prefix("r#").unwrap_or(rest);
        rest.strip_prefix(module)
            .is_some_and(|after| !after.starts_with(is_word) && after.trim_start().starts_with(';'))
    })
}

#[cfg(test)]
mod tests {
    use super::super::workspace::of;
    use super::findings;

    #[test]
    fn lets_declared_files_pass() {
        let workspace = of(&[
            ("crates/a/Cargo.toml", ""),
            ("crates/a/src/lib.rs", "pub mod tools;\n"),
            ("crates/a/src/tools.rs", "mod one;\n#[cfg(test)]\nmod tests;\n"),
            ("crates/a/src/tools/one.rs", ""),
            ("crates/a/src/tools/tests.rs", ""),
            ("crates/a/tests/it/main.rs", "mod serve;\n"),
            ("crates/a/tests/it/serve.rs", ""),
            ("crates/a/tests/alone.rs", ""),
        ]);
        assert_eq!(findings(&workspace), Vec::<String>::new());
    }

    #[test]
    fn finds_a_file_that_is_not_on_the_list() {
        let list = "//! mod two;\nmod one;\nmod two_more;\n";
        let workspace = of(&[
            ("crates/a/src/lib.rs", "mod tools;"),
            ("crates/a/src/tools.rs", list),
            ("crates/a/src/tools/two.rs", ""),
        ]);
        let found = findings(&workspace);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("crates/a/src/tools.rs:1:") && found[0].contains("`mod two;`"), "{found:?}");
    }

    #[test]
    fn finds_a_folder_without_a_list() {
        let found = findings(&of(&[("crates/a/src/lib.rs", ""), ("crates/a/src/tools/two.rs", "")]));
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains("no crates/a/src/tools.rs"), "{found:?}");
    }
}
