//! Under which ids the questions of a run are asked. An agent may ask a second question under the id of the first; it
//! must not get the answer to the first. Read a second time at the same place, by the next daemon, it is the same question,
//! and its answer is not given twice.

use serde::{Deserialize, Serialize};

use crate::id::RunId;

/// Questions that are remembered. Of an agent that asks more, every question gets an id of its own.
const REMEMBERED_MAX: usize = 200;

/// The questions that were answered, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuestionIds {
    #[serde(default)]
    answered: Vec<Asked>,
    /// Those that are forgotten included.
    #[serde(default)]
    count: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Asked {
    id: String,
    place: QuestionPlace,
}

/// Where a question was asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuestionPlace {
    pub run: RunId,
    /// In the output of its program. Zero: not known, so no two places are the same.
    pub position: u64,
    /// The id that the agent gave the question.
    pub agents_id: String,
}

impl QuestionIds {
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Whether the program has got the answer to the very question of this place.
    #[must_use]
    pub fn is_answered(&self, place: &QuestionPlace) -> bool {
        place.position > 0 && self.answered.iter().any(|asked| asked.place == *place)
    }

    /// The id under which people and parents are asked.
    #[must_use]
    pub fn id_for(&self, place: &QuestionPlace) -> String {
        let is_used = |id: &str| self.answered.iter().any(|asked| asked.id == id);
        let is_all_known = self.answered.len() == self.count as usize;
        if is_all_known && !is_used(&place.agents_id) {
            return place.agents_id.clone();
        }
        // Higher than any number before: what is forgotten is not met again.
        let mut number = self.count.saturating_add(1);
        loop {
            let id = format!("{}#{number}", place.agents_id);
            if !is_used(&id) {
                return id;
            }
            number = number.saturating_add(1);
        }
    }

    /// The program has got the answer to a question that was asked under this id.
    pub fn answered(&mut self, id: String, place: QuestionPlace) {
        if self.answered.len() >= REMEMBERED_MAX {
            self.answered.remove(0);
        }
        self.answered.push(Asked { id, place });
        self.count = self.count.saturating_add(1);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn place(agents_id: &str, position: u64) -> QuestionPlace {
        QuestionPlace { run: RunId::from_text("run_1"), position, agents_id: agents_id.to_owned() }
    }

    #[test]
    fn a_question_under_an_answered_id_gets_another() {
        let mut ids = QuestionIds::default();
        assert_eq!(ids.id_for(&place("q", 10)), "q");
        assert_eq!(ids.id_for(&place("q", 10)), "q", "it was only asked so far");
        ids.answered("q".to_owned(), place("q", 10));
        assert!(ids.is_answered(&place("q", 10)), "read again at the same place");
        assert!(!ids.is_answered(&place("q", 20)) && !ids.is_answered(&place("r", 10)));
        assert!(!ids.is_answered(&QuestionPlace { run: RunId::from_text("run_2"), ..place("q", 10) }));
        assert_eq!(ids.id_for(&place("q", 20)), "q#2");
        assert_eq!(ids.id_for(&place("r", 20)), "r");
    }

    #[test]
    fn a_place_that_is_not_known_is_never_the_same() {
        let mut ids = QuestionIds::default();
        ids.answered("q".to_owned(), place("q", 0));
        assert!(!ids.is_answered(&place("q", 0)));
        assert_eq!(ids.id_for(&place("q", 0)), "q#2");
    }

    #[test]
    fn no_order_of_ids_meets_an_answer_that_was_given() {
        for names in [vec!["q", "q", "q#2", "q#3", "q"], vec!["q#3", "q", "q", "q#2", "q#4"]] {
            let (mut ids, mut used) = (QuestionIds::default(), HashSet::new());
            for (position, name) in (1_u64..).zip(names.iter().cycle().take(3 * REMEMBERED_MAX)) {
                let id = ids.id_for(&place(name, position));
                assert!(used.insert(id.clone()), "{id} was answered before");
                ids.answered(id, place(name, position));
            }
            assert!(ids.answered.len() <= REMEMBERED_MAX);
        }
    }
}
