//! A relative link in a document leads somewhere.

use super::source::line_of;
use super::workspace::{File, Workspace};

pub fn findings(workspace: &Workspace) -> Vec<String> {
    let mut found = Vec::new();
    for file in workspace.files.iter().filter(|file| is_document(file)) {
        let text = without_code(&file.text);
        for (offset, target) in targets(&text) {
            if let Some(path) = resolve(file.folder(), target)
                && !workspace.paths.contains(&path)
            {
                let line = line_of(&text, offset);
                found.push(format!("{}:{line}: the link {target} leads to {path}, which does not exist", file.path));
            }
        }
    }
    found
}

/// The documents at the root and the book below `docs/`.
fn is_document(file: &File) -> bool {
    file.path.ends_with(".md") && (file.folder().is_empty() || file.path.starts_with("docs/"))
}

/// Blanks fenced blocks and code spans, in which brackets mean something else. What stays keeps its place in bytes.
pub fn without_code(text: &str) -> String {
    let mut output = String::with_capacity(text.len());
    let mut fenced = false;
    for line in text.split_inclusive('\n') {
        let is_fence = line.trim_start().starts_with("```");
        fenced ^= is_fence;
        let mut in_span = false;
        for character in line.chars() {
            in_span ^= character == '`';
            if (fenced || is_fence || in_span) && character != '\n' {
                output.extend(std::iter::repeat_n(' ', character.len_utf8()));
            } else {
                output.push(character);
            }
        }
    }
    output
}

/// The targets of inline links `[text](target "title")` and of definitions `[name]: target`.
pub fn targets(text: &str) -> Vec<(usize, &str)> {
    let inline = text.match_indices("](").map(|(offset, mark)| (offset, offset + mark.len(), ')'));
    let defined = text.match_indices("]: ").filter(|(offset, _)| {
        let line = text[..*offset].rsplit('\n').next().unwrap_or("");
        line.starts_with('[') && !line.contains(']')
    });
    let defined = defined.map(|(offset, mark)| (offset, offset + mark.len(), '\n'));
    inline
        .chain(defined)
        .filter_map(|(offset, start, end)| {
            let target = text[start..].split(end).next()?.split_whitespace().next()?;
            Some((offset, target.trim_matches(['<', '>'])))
        })
        .collect()
}

/// The path a relative link leads to, without its anchor; none for a link out of the repository or into the page.
pub fn resolve(folder: &str, target: &str) -> Option<String> {
    let path = target.split(['#', '?']).next().unwrap_or(target);
    if path.is_empty() || path.contains("://") || path.starts_with("mailto:") {
        return None;
    }
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            other => parts.push(other),
        }
    }
    // The root itself is always there.
    if parts.is_empty() { None } else { Some(parts.join("/")) }
}

#[cfg(test)]
mod tests {
    use super::super::workspace::of;
    use super::findings;

    #[test]
    fn follows_links_that_lead_somewhere() {
        let text = "[a](docs/a.md#part) [b](<docs/>) [c](https://example.org) [d](#here) `[x](y)`\n```\n[x](y)\n```\n";
        let workspace = of(&[("README.md", text), ("docs/a.md", "[r](../README.md \"the readme\") [up](..)")]);
        assert_eq!(findings(&workspace), Vec::<String>::new());
    }

    #[test]
    fn finds_links_that_lead_nowhere() {
        let workspace = of(&[
            ("README.md", "\n[a](docs/b.md)\n"),
            ("docs/a.md", "[r](README.md)\n\n[name]: ../../out.md\n"),
            ("crates/a/notes.md", "[not a document of ours](gone.md)"),
        ]);
        let found = findings(&workspace);
        let places: Vec<&str> = found.iter().filter_map(|finding| finding.split(": ").next()).collect();
        assert_eq!(places, ["README.md:2", "docs/a.md:1", "docs/a.md:3"], "{found:?}");
    }
}
