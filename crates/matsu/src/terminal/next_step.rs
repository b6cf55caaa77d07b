//! What to do about an error code: the words of its page in `docs/errors`.

include!(concat!(env!("OUT_DIR"), "/next_steps.rs"));

/// The first paragraph of "What to do next" on the page of that code.
pub fn of(code: &str) -> Option<&'static str> {
    NEXT_STEPS.iter().find(|(name, _)| *name == code).map(|(_, step)| *step)
}

#[cfg(test)]
mod tests {
    use matsu_core::error_code::ErrorCode;

    use super::of;

    #[test]
    fn every_code_has_a_next_step_in_plain_words() {
        for code in ErrorCode::ALL {
            let step = of(code.as_str()).unwrap_or_else(|| panic!("{code} has no next step"));
            assert!(!step.is_empty() && !step.contains("]("), "{code}: {step}");
        }
    }
}
