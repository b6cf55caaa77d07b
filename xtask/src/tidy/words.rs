//! Words that are not used, each with a better one: figures of speech, and persons where a process is meant.
//!
//! Looked at are string literals, names in Rust code (not those of modules, which are their files'), documents without
//! their code, and the texts of the page. `docs/glossary.md` has the
//! words that are used. Decisions (`docs/adr`) and the changelog keep the words of their time.

use super::source::{Blank, blank, is_word, line_of, literals};
use super::workspace::{File, Workspace};

/// Words, and the better one. Whole words, in any case; `RunSeat` and `run_seat` have two words each.
const BANNED: &[(&[&str], &str)] = &[
    (&["door", "doors"], "listener, login, connection or route"),
    (&["house", "houses"], "system"),
    (&["seat", "seats", "seated"], "connection, handle, guard or entry"),
    (&["desk", "desks"], "queue, gate or state"),
    (&["knock", "knocks"], "connect or request"),
    (&["breath", "mouth"], "the plain word"),
    (&["nobody"], "no client, no person, no process; unread, unknown, unused"),
    (&["whoever", "whomever"], "the client, the caller, the node that …"),
    (&["told"], "sent, stored, delivered, reported"),
    (&["heard"], "received, read"),
    (&["stranger", "strangers"], "client without a token, or another user"),
    (&["room", "rooms"], "space, chat or folder"),
];

/// Files whose words are data: what people ask, what languages are made of, what a demonstration reads.
const DATA: &[&str] = &[
    "crates/matsu-adapters/src/judge/cues.rs",
    "crates/matsu-core/src/research/ranking/asked.rs",
    "crates/matsu/demo/",
    "docs/adr/",
    "docs/bench/",
    "CHANGELOG.md",
    "xtask/src/tidy/words.rs",
];

pub fn findings(workspace: &Workspace) -> Vec<String> {
    let mut found = Vec::new();
    for file in workspace.files.iter().filter(|file| !DATA.iter().any(|data| file.path.starts_with(data))) {
        if file.path.ends_with(".md") {
            check(file, &prose(&file.text), &mut found);
        } else if file.path.ends_with(".json") {
            check(file, &file.text, &mut found);
        }
    }
    for file in workspace.rust_files().filter(|file| !DATA.iter().any(|data| file.path.starts_with(data))) {
        for (offset, literal) in literals(&file.text) {
            note(file, offset, literal, &mut found);
        }
        let code = blank(&file.text, Blank::CommentsAndStrings);
        for (offset, name) in names(&code) {
            note(file, offset, name, &mut found);
        }
    }
    found
}

fn check(file: &File, text: &str, found: &mut Vec<String>) {
    for (at, line) in text.lines().enumerate() {
        for (word, better) in banned(line) {
            found.push(format!("{}:{}: `{word}`: better: {better}", file.path, at + 1));
        }
    }
}

fn note(file: &File, offset: usize, text: &str, found: &mut Vec<String>) {
    for (word, better) in banned(text) {
        let line = line_of(&file.text, offset);
        found.push(format!("{}:{line}: `{word}` in {text:?}: better: {better}", file.path));
    }
}

/// The banned words of a text, each with the better one.
fn banned(text: &str) -> Vec<(&'static str, &'static str)> {
    let words = words(text);
    let pairs = BANNED.iter().flat_map(|(list, better)| list.iter().map(|word| (*word, *better)));
    pairs.filter(|(word, _)| words.iter().any(|other| other == word)).collect()
}

/// Words in lower case; `RunHandle` and `run_seat` have two.
fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut was_small = false;
    for character in text.chars().chain([' ']) {
        if !character.is_alphabetic() || (character.is_uppercase() && was_small) {
            words.extend((!word.is_empty()).then(|| std::mem::take(&mut word)));
        }
        if character.is_alphabetic() {
            word.extend(character.to_lowercase());
        }
        was_small = character.is_lowercase();
    }
    words
}

/// The names in blanked code. A name in small letters before `::`, after `mod` or in a `use` is taken for a module's.
fn names(code: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut at = 0;
    let mut before = "";
    let mut in_use = false;
    while at < code.len() {
        let rest = &code[at..];
        let length = rest.find(|character| !is_word(character)).unwrap_or(rest.len());
        if length == 0 {
            in_use &= !rest.starts_with(';');
            at += rest.chars().next().map_or(1, char::len_utf8);
            continue;
        }
        let name = &rest[..length];
        let is_small = !name.chars().any(char::is_uppercase);
        let is_module = before == "mod" || (is_small && (in_use || rest[length..].starts_with("::")));
        in_use |= name == "use";
        found.extend((!is_module).then_some((at, name)));
        before = name;
        at += length;
    }
    found
}

/// A document without what stands between backticks or in link targets; lines stay.
fn prose(text: &str) -> String {
    let (mut in_code, mut in_target) = (false, false);
    let mut output = String::with_capacity(text.len());
    let mut before = ' ';
    for character in text.chars() {
        match character {
            '`' => in_code = !in_code,
            '(' if before == ']' && !in_code => in_target = true,
            ')' | '\n' => in_target = false,
            _ => {}
        }
        let is_kept = character == '\n' || !(in_code || in_target);
        output.push(if is_kept { character } else { ' ' });
        before = character;
    }
    output
}

#[cfg(test)]
mod tests {
    use super::super::workspace::of;
    use super::{banned, findings, names, prose, words};

    #[test]
    fn finds_whole_words_in_strings_documents_and_page_texts() {
        let workspace = of(&[
            ("crates/a/src/x.rs", "//! A door.\nfn f() { log(\"Nobody came\"); g(\"indoors\"); }\n"),
            ("docs/a.md", "The door is open.\n"),
            ("docs/adr/1.md", "The door is open.\n"),
            ("ui/src/text/en.json", "{\n \"a\": \"told\"\n}"),
        ]);
        let found = findings(&workspace);
        let places: Vec<String> =
            found.iter().map(|finding| finding.split(": better").next().unwrap().to_owned()).collect();
        assert_eq!(
            places,
            [
                "docs/a.md:1: `door`",
                "ui/src/text/en.json:2: `told`",
                "crates/a/src/x.rs:2: `nobody` in \"\\\"Nobody came\\\"\"",
            ]
        );
    }

    #[test]
    fn names_have_words_and_modules_are_left_out() {
        assert_eq!(words("RunSeat run_seat SEAT"), ["run", "seat", "run", "seat", "seat"]);
        let found: Vec<&str> =
            names("mod doors; use a::{Door, doors}; let x = seat;").into_iter().map(|(_, name)| name).collect();
        assert_eq!(found, ["mod", "use", "Door", "let", "x", "seat"]);
    }

    #[test]
    fn code_and_link_targets_of_documents_are_left_out() {
        let text = prose("See `door.rs` and [it](door.md).\n```\ndoor\n```\nend");
        assert!(banned(&text).is_empty(), "{text}");
        assert_eq!(text.lines().count(), 5);
    }
}
