//! Names of tools as models see them: `^[A-Za-z0-9_-]{1,64}$`, and no two alike.
//!
//! They follow from the names of servers and tools alone, so they are the same after every restart.

use std::collections::HashMap;

const NAME_CHARS_MAX: usize = 64;

/// A name for each (server, tool). Tools that would share a name are called `server__tool` instead, all of them.
#[must_use]
pub fn assign(tools: &[(&str, &str)], reserved: &[String]) -> Vec<String> {
    let plain: Vec<String> = tools.iter().map(|(_, tool)| legal(tool)).collect();
    let mut uses: HashMap<&str, usize> = HashMap::new();
    for name in plain.iter().map(String::as_str).chain(reserved.iter().map(String::as_str)) {
        *uses.entry(name).or_default() += 1;
    }
    let named: Vec<String> = tools
        .iter()
        .zip(&plain)
        .map(|((server, tool), name)| match uses.get(name.as_str()) {
            Some(1) => name.clone(),
            _ => legal(&format!("{server}__{tool}")),
        })
        .collect();
    apart(tools, named)
}

/// Names that are still the same differ by what they were made from.
fn apart(tools: &[(&str, &str)], mut names: Vec<String>) -> Vec<String> {
    for at in 0..names.len() {
        let alike = names.iter().enumerate().any(|(other, name)| other != at && *name == names[at]);
        if alike {
            let (server, tool) = tools[at];
            names[at] = with_mark(&names[at], &format!("{server}\n{tool}"));
        }
    }
    names
}

fn legal(name: &str) -> String {
    let is_legal = |character: char| character.is_ascii_alphanumeric() || "_-".contains(character);
    let mut clean: String = name.chars().map(|character| if is_legal(character) { character } else { '_' }).collect();
    // One vendor wants a letter or an underscore first.
    if !clean.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_') {
        clean.insert(0, '_');
    }
    let changed = clean.trim_start_matches('_') != name.trim_start_matches('_');
    if clean.len() > NAME_CHARS_MAX || (changed && !name.is_ascii()) { with_mark(&clean, name) } else { clean }
}

/// Ends with a mark of what it was made from.
fn with_mark(name: &str, from: &str) -> String {
    // FNV-1a: the same on every machine and in every version, which the standard library's hash does not promise.
    let hash = from
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    let head: String = name.chars().take(NAME_CHARS_MAX - 9).collect();
    format!("{head}_{:08x}", hash & 0xffff_ffff)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_clash_is_resolved_for_all_tools_in_it() {
        let tools = [("a", "read"), ("b", "read"), ("b", "write"), ("c", "use_agent"), ("d", "get.it now")];
        let names = assign(&tools, &["use_agent".to_owned()]);
        assert_eq!(names, ["a__read", "b__read", "write", "c__use_agent", "get_it_now"]);
    }

    #[test]
    fn odd_and_long_names_become_legal_and_stay_apart() {
        let long = "x".repeat(80);
        let names = assign(&[("s", &long), ("s", "天気"), ("s", "東京"), ("s", "9lives")], &[]);
        assert_eq!(names[3], "_9lives");
        assert_eq!(names.iter().collect::<HashSet<_>>().len(), 4, "{names:?}");
        assert!(names.iter().all(|name| name.len() <= 64), "{names:?}");
    }

    proptest! {
        #[test]
        fn names_are_legal_unique_and_stable(tools in prop::collection::hash_set(("[a-c]", ".{1,70}"), 0..12)) {
            let tools: Vec<(&str, &str)> = tools.iter().map(|(server, tool)| (server.as_str(), tool.as_str())).collect();
            let names = assign(&tools, &[]);
            prop_assert_eq!(&names, &assign(&tools, &[]));
            prop_assert_eq!(names.iter().collect::<HashSet<_>>().len(), tools.len());
            for name in names {
                prop_assert!((1..=64).contains(&name.len()));
                prop_assert!(name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte)), "{}", name);
            }
        }
    }
}
