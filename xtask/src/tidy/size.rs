//! Files stay small: 450 lines is long and warned about, 800 is the stop.

use super::workspace::Workspace;

const LONG_LINES: usize = 450;
const LINES_MAX: usize = 800;

pub fn findings(workspace: &Workspace) -> Vec<String> {
    longer_than(workspace, LINES_MAX)
        .map(|(path, lines)| format!("{path}:{LINES_MAX}: {lines} lines, at most {LINES_MAX}: split the file"))
        .collect()
}

/// What the command line says and no test fails for.
pub fn warnings(workspace: &Workspace) -> Vec<String> {
    longer_than(workspace, LONG_LINES)
        .filter(|(_, lines)| *lines <= LINES_MAX)
        .map(|(path, lines)| {
            format!(
                "{path}:{LONG_LINES}: {lines} lines, and more than {LONG_LINES} is long: consider splitting the file"
            )
        })
        .collect()
}

fn longer_than(workspace: &Workspace, limit: usize) -> impl Iterator<Item = (&str, usize)> {
    workspace
        .rust_files()
        .map(|file| (file.path.as_str(), file.text.lines().count()))
        .filter(move |(_, lines)| *lines > limit)
}

#[cfg(test)]
mod tests {
    use super::super::workspace::of;
    use super::{findings, warnings};

    #[test]
    fn stops_at_800_lines_and_warns_at_450() {
        let (short, long, too_long) = ("\n".repeat(450), "\n".repeat(800), "\n".repeat(801));
        let workspace = of(&[("crates/a/s.rs", &short), ("crates/a/l.rs", &long), ("crates/a/t.rs", &too_long)]);
        let (found, warned) = (findings(&workspace), warnings(&workspace));
        assert_eq!((found.len(), warned.len()), (1, 1), "{found:?} {warned:?}");
        assert!(found[0].starts_with("crates/a/t.rs:") && warned[0].starts_with("crates/a/l.rs:"));
    }
}
