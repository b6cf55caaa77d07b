//! What of a transcript fits into a model's window: whole turns, the newest ones.
//!
//! A turn is a user's entry with everything that followed it. It is sent whole or not at all, so no call is separated
//! from its result. The system prompt and the newest turn are always sent, even if they alone are too much: then the
//! vendor returns an error, which is better than leaving them out.

use super::{Entry, Role, tokens};

/// The part of `history` to send within `tokens_max`. The history itself is untouched.
#[must_use]
pub fn prune(history: &[Entry], tokens_max: u64) -> Vec<Entry> {
    let (system, turns) = match history.first() {
        Some(first) if first.role == Role::System => history.split_at(1),
        _ => history.split_at(0),
    };
    let mut left = tokens_max.saturating_sub(system.iter().map(tokens::of_entry).sum());
    let mut from = turns.len();
    for (newest, start) in turn_starts(turns).into_iter().rev().enumerate() {
        let cost: u64 = turns[start..from].iter().map(tokens::of_entry).sum();
        if newest > 0 && cost > left {
            break;
        }
        left = left.saturating_sub(cost);
        from = start;
    }
    system.iter().chain(&turns[from..]).cloned().collect()
}

/// Where turns begin. Notes right before a question belong to its turn: they were written for it.
fn turn_starts(entries: &[Entry]) -> Vec<usize> {
    let begins = |at: usize| at == 0 || (entries[at].role == Role::User && entries[at - 1].role != Role::User);
    (0..entries.len()).filter(|at| begins(*at)).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::clock::Timestamp;
    use crate::history::{Item, validate};

    const NOW: Timestamp = Timestamp::from_millis(1);

    fn turn(n: usize, size: usize) -> Vec<Entry> {
        let (id, name) = (format!("c{n}"), "look".to_owned());
        let call =
            Item::ToolCall { id: id.clone(), name: name.clone(), arguments: json!({ "q": "x" }), signature: None };
        let result = Item::result(id, name, "y".repeat(size), false);
        vec![
            Entry::user(format!("question {n}"), NOW),
            Entry::assistant("m", vec![call], NOW),
            Entry::tool(vec![result], NOW),
            Entry::assistant("m", vec![Item::text("answer")], NOW),
        ]
    }

    fn transcript(sizes: &[usize]) -> Vec<Entry> {
        let system = vec![Entry::system("be brief", NOW)];
        system.into_iter().chain(sizes.iter().enumerate().flat_map(|(n, size)| turn(n, *size))).collect()
    }

    #[test]
    fn oldest_turns_go_first_and_whole() {
        let history = transcript(&[4_000, 40, 40]);
        let sent = prune(&history, 500);
        assert_eq!(sent.len(), 1 + 8);
        assert_eq!(sent[1].spoken(), "question 1");
        assert_eq!(prune(&history, 1_000_000), history);
    }

    #[test]
    fn system_prompt_and_newest_turn_are_always_sent() {
        let sent = prune(&transcript(&[40, 40_000]), 10);
        assert_eq!((sent.len(), sent[0].role, sent[1].spoken().as_str()), (5, Role::System, "question 1"));
    }

    #[test]
    fn a_note_is_sent_with_the_question_it_was_written_for() {
        let mut history = transcript(&[4_000]);
        history.extend([Entry::user("note", NOW), Entry::user("question", NOW)]);
        let sent = prune(&history, 60);
        assert_eq!(sent[1].spoken(), "note");
    }

    proptest! {
        #[test]
        fn whatever_is_left_is_a_valid_end_of_the_whole(sizes in prop::collection::vec(0_usize..2_000, 0..8), max in 0_u64..3_000) {
            let history = transcript(&sizes);
            let sent = prune(&history, max);
            prop_assert_eq!(validate(&sent), Ok(()));
            prop_assert_eq!(&sent[0], &history[0]);
            prop_assert_eq!(&sent[1..], &history[history.len() - (sent.len() - 1)..]);
            if !sizes.is_empty() {
                prop_assert_eq!(sent[1].role, Role::User);
            }
        }
    }
}
