//! What clients see is written together with the ledger, which bumps the revision of the task in the same transaction.
//! A row that changes without a new revision is a change that no waiting client is woken for.
//!
//! Looked at are statements of the store that write such a table, and the functions that run them: each names the
//! ledger, which it locks or is given, or is in the list with the reason why not.

use super::source::{Blank, blank, find_word};
use super::workspace::Workspace;

/// Tables whose rows clients see by way of a task.
const TABLES: &[&str] = &["tasks", "jobs", "claims", "edges", "task_pages"];

const STORE: &str = "crates/matsu-store/src/";

/// Path below the store's `src`, statement or function, and why it needs no ledger there.
const ALLOWED: &[(&str, &str, &str)] = &[
    ("transitions/ledger.rs", "WRITE", "it is the ledger"),
    ("transitions/jobs.rs", "INSERT", "its callers hold the ledger, or make the task"),
    ("transitions/dependencies.rs", "HOLD", "jobs of a task that is made in this transaction"),
    ("transitions/dependencies.rs", "LOCK_HELD", "the ledger calls it; the jobs stay queued"),
    ("transitions/dependencies.rs", "LET_GO", "the ledger calls it; the jobs stay queued"),
    ("transitions/research/cleanup.rs", "DROP_EDGES", "edges without a claim, which no task shows"),
    ("transitions/research/record.rs", "REACH", "RecordEvidence holds the ledger and changes the task"),
    ("transitions/research/record.rs", "INSERT_CLAIM", "RecordEvidence changes the task if a claim is new"),
    ("transitions/research/record.rs", "INSERT_EDGE", "RecordEvidence changes the task if an edge is new"),
    ("transitions/research/record.rs", "SCORE", "its callers hold the ledger and have changed an edge"),
    ("transitions/tasks/changes.rs", "PRUNE_SYSTEM_JOBS", "jobs without a task"),
    ("transitions/tasks/expire.rs", "MARK_READ", "that a client has read a result is no news to others"),
    ("transitions/tasks/expire.rs", "TAKE_BACK_READ", "that a client has not read a result is no news to others"),
    ("transitions/tasks/insert_task.rs", "INSERT", "the first revision of a task is written with it"),
    ("transitions/tasks/park.rs", "PARK_AGAIN", "the task shows already that the job asks"),
    ("transitions/tasks/spending.rs", "SET_ASIDE", "the job stays in its state; only its permit is given up"),
    ("transitions/tasks/steer.rs", "HOLD_QUEUED", "its callers hold the ledger and change the task"),
];

pub fn findings(workspace: &Workspace) -> Vec<String> {
    let mut found = Vec::new();
    for file in workspace.rust_files() {
        let Some(path) = file.path.strip_prefix(STORE).filter(|path| !path.ends_with("tests.rs")) else { continue };
        let text = blank(&file.text, Blank::Comments);
        let text = text.split("#[cfg(test)]").next().unwrap_or_default();
        let items = items(text);
        let writing: Vec<&Item<'_>> = items.iter().filter(|item| writes(item.text)).collect();
        for statement in writing {
            if is_allowed(path, statement.name) {
                continue;
            }
            if !statement.is_constant {
                found.extend((!names_ledger(statement)).then(|| finding(&file.path, statement, statement)));
                continue;
            }
            let users = items.iter().filter(|item| !item.is_constant && uses(item, statement.name));
            let without = users.filter(|item| !names_ledger(item) && !is_allowed(path, item.name));
            found.extend(without.map(|item| finding(&file.path, statement, item)));
        }
    }
    found
}

fn finding(path: &str, statement: &Item<'_>, user: &Item<'_>) -> String {
    format!(
        "{path}: `{}` writes data that clients see, and `{}` does not use the ledger: lock or take it there, and change the \
         task; or add it to ALLOWED of xtask/src/tidy/visible_writes.rs with the reason",
        statement.name, user.name
    )
}

fn is_allowed(path: &str, name: &str) -> bool {
    ALLOWED.iter().any(|(file, allowed, _)| *file == path && *allowed == name)
}

fn names_ledger(item: &Item<'_>) -> bool {
    ["ledger", "Ledger"].iter().any(|word| find_word(item.text, word).next().is_some())
}

fn uses(item: &Item<'_>, name: &str) -> bool {
    find_word(item.text, name).next().is_some()
}

fn writes(text: &str) -> bool {
    let statements = ["INSERT INTO ", "UPDATE ", "DELETE FROM "];
    let named = |verb: &str, table: &str| find_word(text, &format!("{verb}{table}")).next().is_some();
    TABLES.iter().any(|table| statements.iter().any(|verb| named(verb, table)))
}

/// A constant, a function, or an `impl` block as a whole.
struct Item<'a> {
    name: &'a str,
    text: &'a str,
    is_constant: bool,
}

/// The items of a file. Formatted source has their first and last lines at the margin, and nothing else there.
fn items(text: &str) -> Vec<Item<'_>> {
    let begins = |line: &str| line.starts_with(|first: char| first.is_ascii_lowercase());
    let mut starts: Vec<usize> = Vec::new();
    let mut offset = 0;
    for line in text.split_inclusive('\n') {
        if begins(line) {
            starts.push(offset);
        }
        offset += line.len();
    }
    let ends = starts.iter().skip(1).copied().chain([text.len()]);
    starts.iter().zip(ends).map(|(start, end)| item(&text[*start..end])).collect()
}

fn item(text: &str) -> Item<'_> {
    let head = text.lines().next().unwrap_or_default();
    let words: Vec<&str> =
        head.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty()).collect();
    let after = |keyword: &str| words.iter().skip_while(|word| **word != keyword).nth(1).copied();
    let of_impl = || after("for").or_else(|| after("impl"));
    let name = after("const").or_else(|| after("fn")).or_else(of_impl).or(words.first().copied()).unwrap_or_default();
    Item { name, text, is_constant: after("const").is_some() && after("fn").is_none() }
}

#[cfg(test)]
mod tests {
    use super::super::workspace::of;
    use super::findings;

    const STATEMENT: &str = "const SCORE: Sql = Sql::both(\n    \"UPDATE claims SET a = 1\",\n);\n";

    fn found(rest: &str) -> Vec<String> {
        findings(&of(&[("crates/matsu-store/src/transitions/a.rs", &format!("{STATEMENT}\n{rest}"))]))
    }

    #[test]
    fn finds_a_visible_write_without_the_ledger() {
        let found = found("impl Transition for Mark {\n    async fn run(tx: Tx) { tx.run(&SCORE) }\n}\n");
        assert_eq!(found.len(), 1);
        assert!(
            found[0].contains("`SCORE` writes data that clients see, and `Mark` does not use the ledger"),
            "{found:?}"
        );
    }

    #[test]
    fn a_write_with_the_ledger_is_right() {
        let with = "async fn mark(tx: Tx, ledger: &mut Ledger) {\n    tx.run(&SCORE)\n}\n";
        assert_eq!(found(with), [""; 0]);
        assert_eq!(found("fn other() {}\n"), [""; 0], "a statement that is not run here");
    }

    #[test]
    fn comments_and_other_tables_do_not_count() {
        let other =
            "// ledger\nfn f() { run(\"INSERT INTO tokens\") }\nfn g() { run(\"DELETE FROM jobs\") } // ledger\n";
        let found = found(other);
        assert!(found.len() == 1 && found[0].contains("`g`"), "{found:?}");
    }
}
