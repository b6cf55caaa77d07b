//! The embedded judge: a small linear model over features that a person could count. It needs no network, no key and
//! hardly any memory, returns neutral when it is not sure, and its figures are printed by `make bench`.

mod cues;
pub mod features;
mod weights;

use async_trait::async_trait;
use matsu_core::ports::claim_maker::ModelError;
use matsu_core::ports::judge::Judge;
use matsu_core::research::ranking;
use matsu_core::research::stance::Stance;
use matsu_core::slot::Slot;

use weights::Weights;

/// What its calibration is kept under.
pub const SOURCE: &str = "judge";

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

    fn limits(&self) -> Option<String> {
        Some(limits())
    }

    async fn stances(&self, claim: &str, passages: &[&str]) -> Result<Vec<Stance>, ModelError> {
        Ok(passages.iter().map(|passage| stance(claim, passage)).collect())
    }
}

/// What a passage says about a claim. It takes a side only in a language, and for a label, in which it was found precise
/// on pairs that its weights had not seen.
#[must_use]
pub fn stance(claim: &str, passage: &str) -> Stance {
    // The passage has no words, so it neither supports nor refutes.
    let Some(weights) = language_of(claim).and_then(Weights::of).filter(|_| passage.chars().any(char::is_alphanumeric))
    else {
        return Stance::abstained();
    };
    let [supports, refutes, neutral] = weights.probabilities(&features::row(claim, passage));
    let (side, least) = if supports > refutes { (supports, weights.supports) } else { (refutes, weights.refutes) };
    let takes_side = least.is_some_and(|least| side >= least);
    // Without a side, neutral is made as likely as the likelier side, and of equals neutral wins.
    let neutral = if takes_side { neutral } else { neutral.max(side) };
    Stance::from_weights(supports, refutes, neutral)
}

/// The language of a claim, as far as there are pairs to learn from.
fn language_of(claim: &str) -> Option<&'static str> {
    let has = |from: char, to: char| claim.chars().any(|c| (from..=to).contains(&c));
    if has('\u{ac00}', '\u{d7a3}') {
        return Some("ko");
    }
    if has('\u{3040}', '\u{30ff}') {
        return Some("ja");
    }
    let is_latin = claim.chars().filter(|c| c.is_alphabetic()).all(|c| c.is_ascii() || u32::from(c) < 0x250);
    (is_latin && ranking::language::is_english(claim)).then_some("en")
}

/// Where it takes sides, and what to do elsewhere.
fn limits() -> String {
    let spoken: Vec<String> = weights::all()
        .iter()
        .filter_map(|weights| {
            let labels: Vec<&str> = [("supports", weights.supports), ("refutes", weights.refutes)]
                .iter()
                .filter(|(_, least)| least.is_some())
                .map(|(label, _)| *label)
                .collect();
            (!labels.is_empty()).then(|| format!("{}: {}", weights.language, labels.join(" and ")))
        })
        .collect();
    if spoken.is_empty() {
        return "claims are not compared with other sources: the embedded judge was not precise enough in any language. \
                Choose a model (research.model), or correct claims yourself"
            .to_owned();
    }
    format!(
        "the embedded judge compares claims with other sources only where it was precise enough ({}). Other claims are \
         unverified: choose a model (research.model), or correct claims yourself",
        spoken.join("; ")
    )
}

#[cfg(test)]
mod tests {
    use matsu_core::research::evidence::Relation;

    use super::*;

    /// Whatever the weights are: a label that is off is never said, and nothing is said about other languages.
    #[test]
    fn it_takes_a_side_only_where_it_may() {
        for (claim, passage) in [
            ("Long polling reduces token use.", "We found that long polling reduces token use."),
            ("Long polling reduces token use.", "Long polling does not reduce token use."),
            ("緑茶を飲むと血圧が下がります。", "緑茶を飲むと血圧が下がることが示されました。"),
            ("녹차를 마시면 혈압이 내려갑니다.", "녹차를 마셔도 혈압은 내려가지 않았습니다."),
            ("长轮询减少令牌的使用。", "长轮询减少令牌的使用。"),
            ("Warten spart Zeit und ist nicht teuer.", "Warten spart Zeit und ist nicht teuer."),
        ] {
            let found = stance(claim, passage);
            let weights = language_of(claim).and_then(Weights::of);
            match found.relation() {
                Relation::Supports => assert!(weights.is_some_and(|w| w.supports.is_some()), "{claim}: {found:?}"),
                Relation::Refutes => assert!(weights.is_some_and(|w| w.refutes.is_some()), "{claim}: {found:?}"),
                Relation::Neutral | Relation::Origin => {}
            }
        }
        for (text, language) in [
            ("Long polling reduces token use.", Some("en")),
            ("緑茶を飲む。", Some("ja")),
            ("녹차를 마신다.", Some("ko")),
            ("长轮询", None),
            ("Warten spart Zeit und ist nicht teuer.", None),
        ] {
            assert_eq!(language_of(text), language, "{text}");
        }
    }

    #[test]
    fn a_passage_without_words_says_nothing() {
        assert_eq!(stance("Long polling reduces token use.", "…"), Stance::abstained());
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
