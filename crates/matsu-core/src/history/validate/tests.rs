//! Each rule alone, and that no order of valid appends breaks one.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::clock::Timestamp;
use crate::history::steps;

const NOW: Timestamp = Timestamp::from_millis(1);

fn call(id: &str) -> Item {
    Item::ToolCall { id: id.to_owned(), name: "look".to_owned(), arguments: json!({}), signature: None }
}

fn result(id: &str) -> Item {
    Item::result(id, "look", "", false)
}

fn assistant(items: Vec<Item>) -> Entry {
    Entry::assistant("m", items, NOW)
}

#[test]
fn lawful_transcripts_pass() {
    let cases = [
        vec![],
        vec![Entry::system("s", NOW), Entry::user("u", NOW)],
        vec![
            Entry::user("u", NOW),
            assistant(vec![call("a"), call("b")]),
            Entry::tool(vec![result("b"), result("a")], NOW),
        ],
        // Died before the tools answered.
        vec![Entry::user("u", NOW), assistant(vec![call("a")])],
        // A slow tool answers after other messages have come.
        vec![assistant(vec![call("a")]), Entry::user("u", NOW), Entry::tool(vec![result("a")], NOW)],
    ];
    for history in cases {
        assert_eq!(validate(&history), Ok(()), "{history:?}");
    }
}

#[test]
fn each_rule_is_named_with_its_place() {
    let other_name = Item::result("a", "other", "", false);
    let twice = Entry::user("u", NOW);
    let unnamed = Entry { model: None, ..assistant(vec![]) };
    let numbers = Item::ToolCall { id: "a".into(), name: "n".into(), arguments: json!([1]), signature: None };
    let cases: Vec<(Vec<Entry>, &str)> = vec![
        (vec![Entry::user("u", NOW), Entry::system("s", NOW)], "entry 1: the role system"),
        (vec![unnamed], "must name its model"),
        (vec![Entry { model: Some("m".to_owned()), ..Entry::user("u", NOW) }], "only an assistant"),
        (vec![Entry::tool(vec![], NOW)], "at least one result"),
        (vec![twice.clone(), twice], "occurs twice"),
        (vec![Entry::tool(vec![Item::text("t")], NOW)], "cannot hold a text"),
        (vec![Entry::new(Role::User, vec![call("a")], NOW)], "cannot hold a tool_call"),
        (vec![Entry::tool(vec![result("a")], NOW)], "no earlier call"),
        (vec![assistant(vec![call("a")]), assistant(vec![call("a")])], "the call id a occurs twice"),
        (vec![assistant(vec![call("a")]), Entry::tool(vec![result("a"), result("a")], NOW)], "item 1: a second result"),
        (vec![assistant(vec![call("a")]), Entry::tool(vec![other_name], NOW)], "the call of look"),
        (vec![assistant(vec![call("")])], "must have an id"),
        (vec![assistant(vec![numbers])], "must be an object"),
    ];
    for (history, said) in cases {
        let fault = validate(&history).unwrap_err().to_string();
        assert!(fault.contains(said), "{said}: {fault}");
    }
}

/// One valid append, chosen by a number.
fn append(history: &mut Vec<Entry>, open: &mut Vec<String>, choice: u8) {
    let id = |n: usize| format!("c{n}");
    match choice % 4 {
        0 => history.push(Entry::user("u", NOW)),
        1 => history.push(assistant(vec![Item::text("t")])),
        2 => {
            let new = [id(history.len() * 2), id(history.len() * 2 + 1)];
            history.push(assistant(new.iter().map(|id| call(id)).collect()));
            open.extend(new);
        }
        _ => {
            let answered: Vec<String> = open.drain(..open.len().min(1 + usize::from(choice / 4) % 3)).collect();
            if !answered.is_empty() {
                history.push(Entry::tool(answered.iter().map(|id| result(id)).collect(), NOW));
            }
        }
    }
}

proptest! {
    #[test]
    fn any_lawful_history_validates_and_every_call_is_sent_with_one_result(choices in prop::collection::vec(any::<u8>(), 0..40)) {
        let (mut history, mut open) = (Vec::new(), Vec::new());
        for choice in choices {
            append(&mut history, &mut open, choice);
        }
        prop_assert_eq!(validate(&history), Ok(()));
        let calls = history.iter().flat_map(|entry| &entry.content).filter(|item| item.kind() == "tool_call").count();
        let sent: usize = steps(&history).iter().map(|step| step.calls().count()).sum();
        prop_assert_eq!(calls, sent);
    }
}
