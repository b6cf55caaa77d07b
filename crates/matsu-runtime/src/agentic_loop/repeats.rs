//! Notices a model that turns in a circle: the same call with the same arguments, again and again.

use matsu_core::limits::LOOP_REPEATS_MAX;
use serde_json::Value;

#[derive(Default)]
pub struct Repeats {
    last: Option<(String, Value)>,
    count: u32,
}

impl Repeats {
    /// Notes a call; true if it is one too many in a row.
    pub fn is_stuck(&mut self, name: &str, arguments: &Value) -> bool {
        let same = self.last.as_ref().is_some_and(|(last, with)| last == name && with == arguments);
        if same {
            self.count += 1;
        } else {
            self.last = Some((name.to_owned(), arguments.clone()));
            self.count = 1;
        }
        self.count >= LOOP_REPEATS_MAX
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
}
