//! Conflict markers that are in a commit and were in none of those it was made of: a conflict that is not resolved.

use std::collections::HashSet;
use std::future::Future;

use matsu_core::run::Changes;

use super::super::confined::Cell;
use super::super::git::{Call, Git};
use super::super::process::Input;
use super::combine::Beside;
use super::harvest::shown;

/// The first and the last line of a conflict, for `git diff -G`. The line between is a heading in many texts.
const PATTERN: &str = "^(<{7}|>{7})([[:space:]]|$)";

/// A repository that can be asked.
pub(super) trait Asks {
    fn call(&self, args: &[&str]) -> Call<'_>;
    fn bytes(&self, call: Call<'_>) -> impl Future<Output = Result<Vec<u8>, String>> + Send;
}

/// A repository of ours beside the user's.
pub(super) struct Ours<'a> {
    pub git: &'a Git,
    pub beside: &'a Beside,
}

impl Asks for Ours<'_> {
    fn call(&self, args: &[&str]) -> Call<'_> {
        self.beside.call(args)
    }

    async fn bytes(&self, call: Call<'_>) -> Result<Vec<u8>, String> {
        self.git.run(call).await
    }
}

impl Git {
    /// # Errors
    /// As [`matsu_core::ports::agent::AgentHost::conflicts_left`].
    pub async fn conflicts_left(&self, cell: &Cell, changes: &Changes) -> Result<Vec<String>, String> {
        let beside = self.beside(cell, changes).await?;
        left(&Ours { git: self, beside: &beside }, &[&changes.base], &changes.head).await
    }
}

/// Files of a commit or tree with markers that are in none of the old ones. It takes two calls, however many files
/// differ.
pub(super) async fn left(asked: &impl Asks, old: &[&str], new: &str) -> Result<Vec<String>, String> {
    let args =
        ["diff-tree", "-r", "-z", "--name-only", "--no-renames", "--no-ext-diff", "--no-textconv", "-G", PATTERN];
    let first = old.first().copied().unwrap_or(new);
    let names = asked.bytes(asked.call(&[&args[..], &[first, new]].concat())).await?;
    let names: Vec<&[u8]> = names.split(|byte| *byte == 0).filter(|name| !name.is_empty()).collect();
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let trees: Vec<&str> = std::iter::once(new).chain(old.iter().copied()).collect();
    let wanted: Vec<Vec<u8>> =
        names.iter().flat_map(|name| trees.iter().map(|tree| [tree.as_bytes(), b":", name].concat())).collect();
    let input = wanted.iter().flat_map(|name| name.iter().copied().chain([0])).collect();
    let output = asked.bytes(asked.call(&["cat-file", "--batch", "-z"]).stdin(Input::Bytes(input))).await?;
    let texts = objects(&output, &wanted).ok_or("git cat-file printed something other than objects")?;
    let is_left = |texts: &&[Option<&[u8]>]| {
        let had: HashSet<&[u8]> = texts[1..].iter().flatten().flat_map(|text| markers(text)).collect();
        texts[0].is_some_and(|text| markers(text).any(|line| !had.contains(line)))
    };
    let files = names.iter().zip(texts.chunks(trees.len()));
    Ok(files.filter(|(_, texts)| is_left(texts)).map(|(name, _)| shown(name)).collect())
}

fn markers(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let is_marker = |line: &&[u8]| {
        (line.starts_with(b"<<<<<<<") || line.starts_with(b">>>>>>>"))
            && line.get(7).is_none_or(u8::is_ascii_whitespace)
    };
    text.split(|byte| *byte == b'\n').filter(is_marker)
}

/// What `git cat-file --batch` printed for these names; `None` inside for one that is not there.
fn objects<'b>(mut output: &'b [u8], wanted: &[Vec<u8>]) -> Option<Vec<Option<&'b [u8]>>> {
    let mut found = Vec::with_capacity(wanted.len());
    for name in wanted {
        if let Some(rest) = output.strip_prefix(name.as_slice()).and_then(|rest| rest.strip_prefix(b" missing\n")) {
            found.push(None);
            output = rest;
            continue;
        }
        let end = output.iter().position(|byte| *byte == b'\n')?;
        let head = std::str::from_utf8(&output[..end]).ok()?;
        let size: usize = head.rsplit(' ').next()?.parse().ok()?;
        let text = output.get(end + 1..end + 1 + size)?;
        found.push(head.contains(" blob ").then_some(text));
        output = output.get(end + 1 + size + 1..)?;
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_read_as_git_prints_them_and_missing_ones_too() {
        let wanted = [b"x:a\nb".to_vec(), b"y:a\nb".to_vec(), b"z:d".to_vec()];
        let output = b"x:a\nb missing\nabc blob 4\n1\n2\n\nabc tree 0\n\n";
        let expected: Vec<Option<&[u8]>> = vec![None, Some(b"1\n2\n"), None];
        assert_eq!(objects(output, &wanted), Some(expected));
        assert_eq!(objects(b"nonsense", &wanted), None);
    }

    #[test]
    fn only_the_first_and_last_line_of_a_conflict_is_a_marker() {
        let text = b"Title\n=======\n<<<<<<< mine\n>>>>>>>\n<<<<<<<<\n  >>>>>>> x\n<<<<<<<\r\n";
        let expected: [&[u8]; 3] = [b"<<<<<<< mine", b">>>>>>>", b"<<<<<<<\r"];
        assert_eq!(markers(text).collect::<Vec<_>>(), expected);
    }
}
