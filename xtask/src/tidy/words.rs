//! Words that are not used, each with a better one: figures of speech, and persons where a process is meant.
//!
//! Looked at are Rust files as a whole with their paths, documents without their code, the texts of the page, the
//! Makefile, and as a whole the files of the page, scripts, clients that test, definitions of agents and plugins.
//! `docs/glossary.md` has the words that are used. Decisions (`docs/adr`) and the changelog keep the words of their time.

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
    (&["somebody"], "a person, a client, another process, another user"),
    (&["whoever", "whomever"], "the client, the caller, the node that …"),
    (&["told"], "sent, stored, delivered, reported"),
    (&["heard"], "received, read"),
    (&["stranger", "strangers"], "client without a token, or another user"),
    (&["room", "rooms"], "space, chat or folder"),
    (&["courtesy"], "pause or delay"),
    (&["deserted"], "without a job, without an owner"),
];

/// Files whose words are data: what people ask, what languages are made of, what a demonstration reads.
const DATA: &[&str] = &[
    "crates/matsu-adapters/src/judge/cues.rs",
    "crates/matsu-core/src/research/agreement/denial.rs",
    "crates/matsu-core/src/research/ranking/asked.rs",
    "crates/matsu/demo/",
    "docs/adr/",
    "docs/bench/",
    // Titles of decisions.
    "docs/SUMMARY.md",
    "CHANGELOG.md",
    "xtask/src/tidy/words.rs",
];

pub fn findings(workspace: &Workspace) -> Vec<String> {
    let mut found = Vec::new();
    for file in workspace.files.iter().filter(|file| !DATA.iter().any(|data| file.path.starts_with(data))) {
        if file.path.ends_with(".md") {
            check(file, &prose(&file.text), &mut found);
        } else if !file.path.ends_with(".rs") && !file.path.ends_with(".svg") {
            check(file, &file.text, &mut found);
        }
    }
    for file in workspace.rust_files().filter(|file| !DATA.iter().any(|data| file.path.starts_with(data))) {
        found.extend(
            banned(&file.path).iter().map(|(word, better)| format!("{}: `{word}`: better: {better}", file.path)),
        );
        check(file, &file.text, &mut found);
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
    use super::{banned, findings, prose, words};

    #[test]
    fn finds_whole_words_in_code_paths_documents_and_page_texts() {
        let workspace = of(&[
            ("crates/a/src/x.rs", "//! A door.\nfn f() { log(\"Nobody came\"); g(\"indoors\"); }\n"),
            ("crates/a/src/desk.rs", "fn f() {}\n"),
            ("docs/a.md", "The door is open.\n"),
            ("docs/adr/1.md", "The door is open.\n"),
            ("ui/src/text/en.json", "{\n \"a\": \"told\"\n}"),
            ("Makefile", "all: ## Nobody needs it\n"),
            ("scripts/a.py", "desk = 1\n"),
        ]);
        let found = findings(&workspace);
        let places: Vec<String> =
            found.iter().map(|finding| finding.split(": better").next().unwrap().to_owned()).collect();
        assert_eq!(
            places,
            [
                "docs/a.md:1: `door`",
                "ui/src/text/en.json:2: `told`",
                "Makefile:1: `nobody`",
                "scripts/a.py:1: `desk`",
                "crates/a/src/x.rs:1: `door`",
                "crates/a/src/x.rs:2: `nobody`",
                "crates/a/src/desk.rs: `desk`",
            ]
        );
    }

    #[test]
    fn names_have_words() {
        assert_eq!(words("RunSeat run_seat SEAT"), ["run", "seat", "run", "seat", "seat"]);
    }

    #[test]
    fn code_and_link_targets_of_documents_are_left_out() {
        let text = prose("See `door.rs` and [it](door.md).\n```\ndoor\n```\nend");
        assert!(banned(&text).is_empty(), "{text}");
        assert_eq!(text.lines().count(), 5);
    }
}
