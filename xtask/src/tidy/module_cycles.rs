//! The modules of a crate, taken as its files and folders directly below `src`, import each other in no circle.
//!
//! Read from paths that begin with `crate::`, outside of comments, strings and test modules.

use std::collections::{BTreeMap, BTreeSet};

use super::source::{Blank, blank, find_word, is_word};
use super::workspace::Workspace;

/// Which modules a module imports.
pub type Graph<'a> = BTreeMap<&'a str, BTreeSet<String>>;

pub fn findings(workspace: &Workspace) -> Vec<String> {
    graphs(workspace).iter().filter_map(|(package, graph)| finding(package, graph)).collect()
}

/// The modules of each crate.
pub fn graphs(workspace: &Workspace) -> BTreeMap<&str, Graph<'_>> {
    let mut graphs: BTreeMap<&str, Graph<'_>> = BTreeMap::new();
    for file in workspace.rust_files() {
        let Some((package, path)) = file.path.strip_prefix("crates/").and_then(|path| path.split_once("/src/")) else {
            continue;
        };
        let module = path.split('/').next().unwrap_or(path).trim_end_matches(".rs");
        if matches!(module, "lib" | "main") || path.ends_with("/tests.rs") {
            continue;
        }
        let imported = imports(&file.text).into_iter().filter(|name| name != module);
        graphs.entry(package).or_default().entry(module).or_default().extend(imported);
    }
    graphs
}

fn finding(package: &str, graph: &Graph<'_>) -> Option<String> {
    let circle = graph.keys().find_map(|start| circle_from(graph, start))?;
    let way = circle.join(" → ");
    Some(format!("crates/{package}/src: modules import each other in a circle: {way}; move what they share"))
}

/// The shortest way from a module back to itself.
fn circle_from(graph: &Graph<'_>, start: &str) -> Option<Vec<String>> {
    let mut ways = vec![vec![start.to_owned()]];
    let mut seen = BTreeSet::new();
    while !ways.is_empty() {
        let mut longer = Vec::new();
        for way in ways {
            let imported = way.last().and_then(|last| graph.get(last.as_str()));
            for next in imported.into_iter().flatten().filter(|next| graph.contains_key(next.as_str())) {
                let way: Vec<String> = way.iter().chain([next]).cloned().collect();
                if next == start {
                    return Some(way);
                }
                if seen.insert(next.clone()) {
                    longer.push(way);
                }
            }
        }
        ways = longer;
    }
    None
}

/// The first names after `crate::`, one by one or in braces.
fn imports(text: &str) -> BTreeSet<String> {
    let code = blank(text, Blank::CommentsAndStrings);
    let code = code.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
    let mut names = BTreeSet::new();
    for offset in find_word(code, "crate::") {
        let rest = &code[offset + "crate::".len()..];
        match rest.strip_prefix('{') {
            Some(list) => names.extend(first_names(list)),
            None => names.extend(first_name(rest)),
        }
    }
    names
}

/// The first name of each entry of a list, up to its closing brace.
fn first_names(list: &str) -> Vec<String> {
    let (mut names, mut depth, mut begins) = (Vec::new(), 0_u32, true);
    for (at, character) in list.char_indices() {
        match character {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => begins = true,
            _ if begins && is_word(character) => {
                names.extend(first_name(&list[at..]));
                begins = false;
            }
            _ => {}
        }
    }
    names
}

fn first_name(text: &str) -> Option<String> {
    let length = text.find(|character| !is_word(character)).unwrap_or(text.len());
    (length > 0).then(|| text[..length].to_owned())
}

#[cfg(test)]
mod tests {
    use super::super::workspace::of;
    use super::{findings, imports};

    #[test]
    fn names_after_crate_are_found_one_by_one_and_in_braces() {
        let text = "use crate::a::B;\nuse crate::{c::{D, E}, f, g::H};\n// crate::no\nfn x() { crate::i::j(); \"crate::no\"; }\n\
                    #[cfg(test)]\nmod tests { use crate::no; }";
        assert_eq!(imports(text).into_iter().collect::<Vec<_>>(), ["a", "c", "f", "g", "i"]);
    }

    #[test]
    fn a_circle_is_named_and_a_line_is_not() {
        let circle = of(&[
            ("crates/x/src/a.rs", "use crate::b::B;"),
            ("crates/x/src/b/deep.rs", "use crate::c::C;"),
            ("crates/x/src/c.rs", "use crate::a::A;"),
            ("crates/y/src/a.rs", "use crate::b::B;"),
            ("crates/y/src/b.rs", "use crate::core::C; use std::a;"),
        ]);
        let found = findings(&circle);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains("crates/x/src") && found[0].contains("a → b → c → a"), "{found:?}");
    }
}
