//! Every page of the book is in its table of contents once, and every block of commands is typed by a test or says why
//! it is not.

use super::workspace::{File, Workspace};

const CONTENTS: &str = "docs/SUMMARY.md";

/// The tests that type the blocks: a page must be named there, or has no such block.
const TYPED: &str = "crates/matsu/tests/it/readme/pages.rs";

pub fn findings(workspace: &Workspace) -> Vec<String> {
    let text = |path: &str| workspace.files.iter().find(|file| file.path == path).map_or("", |file| file.text.as_str());
    let (contents, typed) = (text(CONTENTS), text(TYPED));
    let mut found = Vec::new();
    for page in pages(workspace) {
        let link = format!("({})", page.path.trim_start_matches("docs/"));
        match contents.matches(&link).count() {
            1 => {}
            0 => found.push(format!("{}: the page is not in {CONTENTS}; add it there", page.path)),
            many => found.push(format!("{}: {CONTENTS} names the page {many} times; once is enough", page.path)),
        }
    }
    let root = workspace.files.iter().filter(|file| file.path == "README.md");
    for page in pages(workspace).chain(root) {
        found.extend(blocks(page, typed));
    }
    found
}

fn pages(workspace: &Workspace) -> impl Iterator<Item = &File> {
    let is_page = |file: &&File| file.path.starts_with("docs/") && file.path.ends_with(".md") && file.path != CONTENTS;
    workspace.files.iter().filter(is_page)
}

fn blocks(page: &File, typed: &str) -> Vec<String> {
    let mut found = Vec::new();
    let (mut inside, mut above) = (false, "");
    for (at, line) in page.text.lines().enumerate() {
        if let Some(kind) = line.strip_prefix("```") {
            inside = !inside;
            let place = format!("{}:{}", page.path, at + 1);
            match kind {
                "sh" | "console" if inside && !typed.contains(&format!("\"{}\"", page.path)) => found.push(format!(
                    "{place}: no test types this block; name the page in {TYPED}, or write ```{kind} no-run and the reason above"
                )),
                "sh no-run" | "console no-run" if inside && !above.starts_with("<!-- no-run: ") => found.push(format!(
                    "{place}: the block has no-run without a reason; write <!-- no-run: REASON --> in the line above"
                )),
                "bash" | "shell" | "sh-session" if inside => {
                    found.push(format!("{place}: a block of commands is called sh, or console with its output"));
                }
                _ => {}
            }
        }
        above = line;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_typed_or_says_why_not() {
        let page = |text: &str| File { path: "docs/a.md".to_owned(), text: text.to_owned() };
        assert_eq!(blocks(&page("```sh\nmatsu\n```\n"), "").len(), 1);
        assert_eq!(blocks(&page("```sh\nmatsu\n```\n"), "(\"docs/a.md\", typed)"), [""; 0]);
        assert_eq!(blocks(&page("```sh no-run\nmatsu\n```\n"), "").len(), 1);
        assert_eq!(blocks(&page("<!-- no-run: because -->\n```sh no-run\nmatsu\n```\n"), ""), [""; 0]);
        assert_eq!(blocks(&page("```toml\na = 1\n```\n"), ""), [""; 0]);
    }
}
