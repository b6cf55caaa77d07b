//! Checks with the real command lines: a failed one goes back into the same conversation, and when the first agent is
//! out of quota the second one finishes the work on the same branch.

use std::path::Path;
use std::sync::{Arc, Mutex};

use matsu_testkit::model_server::{Asked, Format, Reply};
use serde_json::{Value, json};

use super::cases::{CASES, Case, KEY};
use super::five::{Bed, for_each_of};
use crate::agent_runs::worktrees::begin;
use crate::home::kill;

const CHECK: &str = "grep -qx good a.txt || { echo a.txt is not good; exit 1; }";

/// What each request of the conversation itself contained: those in which a shell is on offer.
type Turns = Arc<Mutex<Vec<Vec<String>>>>;

/// A command, then the end, for each of these in turn.
fn worker(
    case: &'static Case,
    commands: &'static [&'static str],
    turns: &Turns,
) -> impl FnMut(&Asked) -> Reply + Send + use<> {
    let turns = Arc::clone(turns);
    move |asked| {
        let mut turns = turns.lock().unwrap();
        let command = commands.get(turns.len() / 2).copied().unwrap_or("true");
        let Some((tool, arguments)) = (case.shell)(command, &asked.tools) else { return Reply::text("ok") };
        turns.push(asked.messages.clone());
        if turns.len() % 2 == 1 { Reply::tool(&tool, arguments) } else { Reply::text("All tests pass.") }
    }
}

fn work_in_repository(bed: &Bed) -> std::path::PathBuf {
    let root = bed.home.path("work");
    begin(&root, |args| git(bed, &root, args));
    bed.home.give_away();
    root
}

/// Git as the user of the home calls it: it works in no repository of another one.
fn git(bed: &Bed, root: &Path, args: &[&str]) -> String {
    let done = bed.home.of_its_user("git").current_dir(root).args(args).output().unwrap();
    assert!(done.status.success(), "{args:?}: {done:?}");
    String::from_utf8(done.stdout).unwrap()
}

fn shown(bed: &Bed, root: &Path, branch: &Value) -> String {
    git(bed, root, &["show", &format!("{}:a.txt", branch.as_str().unwrap())])
}

fn started(bed: &Bed, more: Value) -> Value {
    let mut wish = json!({ "message": "Make a.txt good", "mode": "workspace-write", "check": CHECK });
    wish.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    bed.ended(&bed.start(wish))
}

#[test]
fn a_failed_check_is_repaired_by_the_second_turn_of_the_same_conversation() {
    for_each_of(
        "a failed check is sent back, and the second turn passes it",
        |case| ["claude", "codex"].contains(&case.name),
        |case, place| {
            let turns = Turns::default();
            let commands = &["echo bad > a.txt", "echo good > a.txt"];
            let bed = Bed::with(case, place, false, case.unbound, worker(case, commands, &turns));
            let root = work_in_repository(&bed);
            let end = started(&bed, json!({ "retries": 2 }));
            assert_eq!((&end["status"], &end["receipt"]["rounds"]), (&json!("completed"), &json!(2)), "{end:#}");
            let turns = turns.lock().unwrap();
            let has = |turn: usize, words: &str| turns[turn].iter().any(|message| message.contains(words));
            assert!(has(2, "a.txt is not good") && has(2, "Make a.txt good"), "the same conversation: {:#?}", turns[2]);
            assert_eq!(shown(&bed, &root, &end["changes"]["branch"]), "good\n", "{end:#}");
        },
    );
}

#[test]
fn the_second_agent_finishes_on_the_same_branch_when_the_first_is_out_of_quota() {
    for_each_of(
        "out of quota, the next agent finishes the work",
        |case| case.name == "claude",
        |case, place| {
            let codex = CASES.iter().find(|case| case.name == "codex").unwrap();
            let turns = Turns::default();
            let mut second = worker(codex, &["grep -qx begun a.txt && echo good > a.txt"], &turns);
            let mut asked_first = 0;
            let first_shell = case.shell;
            let reply = move |asked: &Asked| {
                if asked.format != Format::AnthropicMessages {
                    return second(asked);
                }
                let Some((tool, arguments)) = first_shell("echo begun > a.txt", &asked.tools) else {
                    return Reply::text("ok");
                };
                asked_first += 1;
                match asked_first {
                    1 => Reply::tool(&tool, arguments),
                    _ => Reply::error(429, "You've hit your limit · resets 3pm (UTC)"),
                }
            };
            let more = format!("CLAUDE_CODE_MAX_RETRIES = \"0\"\n{}", case.unbound);
            let mut bed = Bed::with(case, place, false, &more, reply);
            let root = work_in_repository(&bed);
            codex.configure(bed.home.folder(), &place.programs, &bed.model.url(), false, "", codex.unbound);
            bed.home.give_away();
            kill(bed.daemon.pid());
            bed.serve_again(&[(codex.key, KEY)]);
            let end = started(&bed, json!({ "fallback": ["codex"] }));
            assert_eq!((&end["status"], &end["receipt"]["agent"]), (&json!("completed"), &json!("codex")), "{end:#}");
            assert_eq!(end["tried"][0]["agent"], "claude", "{end:#}");
            assert_eq!(shown(&bed, &root, &end["changes"]["branch"]), "good\n", "on what the first one left: {end:#}");
        },
    );
}
