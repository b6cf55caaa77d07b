//! Notices a model that turns in a circle: the same call with the same arguments and the same answer, again and again.
//! A wait that is asked for once more gets another answer, so it is no circle; equal calls of one round count once.

use matsu_core::limits::LOOP_REPEATS_MAX;
use serde_json::Value;

#[derive(Default)]
pub struct Repeats {
    last: Option<(String, Value)>,
    /// What the last call was answered with.
    answer: Option<String>,
    count: u32,
}

impl Repeats {
    fn is_last(&self, name: &str, arguments: &Value) -> bool {
        self.last.as_ref().is_some_and(|(last, with)| last == name && with == arguments)
    }

    /// Notes a call; true if it is one too many in a row.
    pub fn is_stuck(&mut self, name: &str, arguments: &Value) -> bool {
        if self.is_last(name, arguments) {
            self.count += 1;
        } else {
            *self = Self { last: Some((name.to_owned(), arguments.clone())), answer: None, count: 1 };
        }
        self.count >= LOOP_REPEATS_MAX
    }

    /// Notes what a call was answered with: another answer than before is progress.
    pub fn answered(&mut self, name: &str, arguments: &Value, answer: &str) {
        if !self.is_last(name, arguments) {
            return;
        }
        if self.answer.as_deref().is_some_and(|before| before != answer) {
            self.count = 1;
        }
        self.answer = Some(answer.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_third_in_a_row_is_one_too_many() {
        let mut repeats = Repeats::default();
        let calls =
            [("a", 1, false), ("a", 1, false), ("a", 2, false), ("a", 1, false), ("a", 1, false), ("a", 1, true)];
        for (name, n, stuck) in calls {
            assert_eq!(repeats.is_stuck(name, &json!({ "n": n })), stuck);
        }
    }

    #[test]
    fn another_answer_is_progress() {
        let (mut repeats, arguments) = (Repeats::default(), json!({ "wait": 50 }));
        for n in 0..10 {
            assert!(!repeats.is_stuck("get_status", &arguments), "{n}");
            repeats.answered("get_status", &arguments, &format!("{n} of 10 done"));
        }
        for stuck in [false, true] {
            assert_eq!(repeats.is_stuck("get_status", &arguments), stuck);
            repeats.answered("get_status", &arguments, "9 of 10 done");
        }
    }
}
