//! A preprocessor of mdBook: `cargo run -p xtask -- book-links`. The book has only the pages below `docs/`, so a link
//! that leads out of them gets the address of the repository, which release.json has. In the repository the same links
//! are relative, and tidy checks that they lead somewhere.

use std::io::{self, Read};
use std::path::Path;
use std::process::ExitCode;

use serde_json::Value;

use crate::tidy::links::{resolve, targets, without_code};

/// mdBook writes `[context, book]` to stdin and reads the book from stdout.
pub fn run() -> ExitCode {
    match book() {
        Ok(book) => {
            println!("{book}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("book-links: {error}");
            ExitCode::FAILURE
        }
    }
}

fn book() -> io::Result<Value> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let release: Value = serde_json::from_str(&std::fs::read_to_string(root.join("release.json"))?)?;
    let repository =
        release["repository"].as_str().ok_or_else(|| io::Error::other("release.json has no repository"))?;
    let mut input = String::new();
    io::stdin().read_to_string(&mut input)?;
    let mut input: Value = serde_json::from_str(&input)?;
    let mut book = input
        .get_mut(1)
        .map(Value::take)
        .ok_or_else(|| io::Error::other("stdin is not what mdBook writes for a preprocessor: [context, book]"))?;
    change_chapters(&mut book, &|page, text| with_addresses(page, text, &|path| address(&root, repository, path)));
    Ok(book)
}

/// A chapter is an object with the file it was read from and its text; chapters contain chapters.
fn change_chapters(value: &mut Value, change: &dyn Fn(&str, &str) -> String) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| change_chapters(item, change)),
        Value::Object(fields) => {
            let changed = match (fields.get("source_path"), fields.get("content")) {
                (Some(Value::String(page)), Some(Value::String(text))) => Some(change(page, text)),
                _ => None,
            };
            if let Some(text) = changed {
                fields.insert("content".to_owned(), Value::String(text));
            }
            fields.values_mut().for_each(|field| change_chapters(field, change));
        }
        _ => {}
    }
}

/// `page` is relative to `docs/`.
fn with_addresses(page: &str, text: &str, address: &dyn Fn(&str) -> String) -> String {
    let folder = match page.rsplit_once('/') {
        Some((folder, _)) => format!("docs/{folder}"),
        None => "docs".to_owned(),
    };
    let blank = without_code(text);
    let mut changed = text.to_owned();
    // From the end, so that the places of earlier links stay.
    for (_, target) in targets(&blank).into_iter().rev() {
        let leads_to = resolve(&folder, target).filter(|path| path != "docs" && !path.starts_with("docs/"));
        if let Some(path) = leads_to {
            let start = target.as_ptr() as usize - blank.as_ptr() as usize;
            let anchor = target.find('#').map_or("", |at| &target[at..]);
            changed.replace_range(start..start + target.len(), &format!("{}{anchor}", address(&path)));
        }
    }
    changed
}

fn address(root: &Path, repository: &str, path: &str) -> String {
    let kind = if root.join(path).is_dir() { "tree" } else { "blob" };
    format!("{repository}/{kind}/HEAD/{path}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn links_out_of_the_book_get_the_address_of_the_repository_and_others_stay() {
        let address = |path: &str| format!("https://example.org/blob/HEAD/{path}");
        let text =
            "ä `ö [x](../no.md)` [s](../SECURITY.md#bugs) [`a/`](../agents) [b](b.md) [c](https://example.com)\n";
        assert_eq!(
            with_addresses("agents.md", text, &address),
            "ä `ö [x](../no.md)` [s](https://example.org/blob/HEAD/SECURITY.md#bugs) \
             [`a/`](https://example.org/blob/HEAD/agents) [b](b.md) [c](https://example.com)\n"
        );
        let below = with_addresses("reference/agents.md", "[a](../../agents) [b](../rest.md)", &address);
        assert_eq!(below, "[a](https://example.org/blob/HEAD/agents) [b](../rest.md)");
    }

    #[test]
    fn every_chapter_is_changed_also_inside_of_others() {
        let mut book = json!({ "items": [
            { "Chapter": { "content": "a", "source_path": "a.md", "sub_items": [
                { "Chapter": { "content": "b", "source_path": "b/b.md", "sub_items": [] } }, "Separator",
            ] } },
            { "Chapter": { "content": "draft", "source_path": null } },
        ] });
        change_chapters(&mut book, &|page, text| format!("{page}: {text}"));
        let chapter = &book["items"][0]["Chapter"];
        assert_eq!(chapter["content"], "a.md: a");
        assert_eq!(chapter["sub_items"][0]["Chapter"]["content"], "b/b.md: b");
        assert_eq!(book["items"][1]["Chapter"]["content"], "draft");
    }
}
