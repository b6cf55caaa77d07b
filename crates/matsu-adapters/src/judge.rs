//! The embedded judge: a small linear model over features that a person could count. It needs no network, no key and
//! hardly any memory, returns neutral when it is not sure, and its figures are printed by `make bench`.

mod cues;
pub mod features;
mod weights;

use async_trait::async_trait;
use matsu_core::ports::claim_maker::ModelError;
use matsu_core::ports::judge::Judge;
use matsu_core::research::stance::Stance;
use matsu_core::slot::Slot;

/// What its calibration is kept under.
pub const SOURCE: &str = "judge";

/// A side that is less likely than this is not taken.
const SURE: f64 = 0.45;

/// Judges by counting.
#[derive(Clone, Copy, Debug, Default)]
pub struct EmbeddedJudge;

#[async_trait]
impl Judge for EmbeddedJudge {
    fn source(&self) -> &'static str {
        SOURCE
    }

    fn slot(&self) -> Option<Slot> {
        None
    }

    async fn stances(&self, claim: &str, passages: &[&str]) -> Result<Vec<Stance>, ModelError> {
        Ok(passages.iter().map(|passage| stance(claim, passage)).collect())
    }
}

/// What a passage says about a claim.
#[must_use]
pub fn stance(claim: &str, passage: &str) -> Stance {
    // The passage has no words, so it neither supports nor refutes.
    if !passage.chars().any(char::is_alphanumeric) {
        return Stance::from_weights(0.0, 0.0, 1.0);
    }
    let [supports, refutes, neutral] = weights::probabilities(&features::row(claim, passage));
    let side = supports.max(refutes);
    // Unsure: neutral is made as likely as the likelier side, and of equals neutral wins.
    let neutral = if side < SURE { neutral.max(side) } else { neutral };
    Stance::from_weights(supports, refutes, neutral)
}

#[cfg(test)]
mod tests {
    use matsu_core::research::evidence::Relation;

    use super::*;

    #[test]
    fn plain_cases_come_out_right() {
        let claim = "Long polling reduces token use compared with plain polling.";
        for (passage, relation) in [
            ("We found that long polling reduces token use compared with plain polling.", Relation::Supports),
            ("Long polling does not reduce token use compared with plain polling.", Relation::Refutes),
            ("It was never shown that long polling reduces token use.", Relation::Refutes),
            ("The museum opens at nine and closes at five on weekdays.", Relation::Neutral),
            ("", Relation::Neutral),
        ] {
            let found = stance(claim, passage);
            assert_eq!(found.relation(), relation, "{passage}: {found:?}");
            assert!((found.supports + found.refutes + found.neutral - 1.0).abs() < 1e-9);
        }
    }

    #[test]
    fn other_scripts_are_judged_too() {
        let claim = "緑茶を毎日飲むと成人の収縮期血圧が下がります。";
        assert_eq!(
            stance(claim, "緑茶を毎日飲むと成人の収縮期血圧が下がることが示されました。").relation(),
            Relation::Supports
        );
        assert_eq!(
            stance(claim, "緑茶を毎日飲んでも成人の収縮期血圧は下がりませんでした。").relation(),
            Relation::Refutes
        );
        assert_eq!(stance(claim, "美術館は九時に開きます。").relation(), Relation::Neutral);
    }

    proptest::proptest! {
        #[test]
        fn any_text_gives_probabilities(claim in "\\PC{0,120}", passage in "\\PC{0,400}") {
            let found = stance(&claim, &passage);
            proptest::prop_assert!((found.supports + found.refutes + found.neutral - 1.0).abs() < 1e-9);
            proptest::prop_assert!(found.supports >= 0.0 && found.refutes >= 0.0 && found.neutral >= 0.0);
        }
    }
}
