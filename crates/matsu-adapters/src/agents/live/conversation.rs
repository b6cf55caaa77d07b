//! The conversation that a program reports: its name, and what the run added to its cost.

use matsu_core::usage::Usage;

use super::super::definition::{Definition, UsageScope};
use super::super::place::{self, Place};

/// Letters, digits and a few signs, and not the beginning of a flag.
pub fn is_session_id(id: &str) -> bool {
    let is_good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':');
    (1..=200).contains(&id.len()) && !id.starts_with('-') && id.chars().all(is_good)
}

/// Some programs count a conversation from its beginning; its total is remembered for the next run.
pub fn own_usage(definition: &Definition, before: Option<Usage>, now: Usage, place: &mut Place) -> Usage {
    match definition.session.as_ref().map(|session| session.usage) {
        Some(UsageScope::Conversation) => {
            place.usage = Some(now);
            place::since(before, now)
        }
        Some(UsageScope::Run) | None => now,
    }
}

#[cfg(test)]
mod tests {
    use super::is_session_id;

    #[test]
    fn a_conversation_is_not_named_like_a_flag() {
        assert!(is_session_id("ses_3f.2:a") && is_session_id("0f8fad5b-d9cb-469f-a165-70867728950e"));
        for bad in ["", "--dangerously-skip-permissions", "-", "a b", "a\nb", "../x", &"x".repeat(201)] {
            assert!(!is_session_id(bad), "{bad}");
        }
    }
}
