//! What a judge may not overlook: a passage that gives another number, unit, date or name than the claim, or that denies
//! what the claim affirms, does not support it, however alike the two are.

mod facts;

use std::collections::BTreeSet;

use super::query::fold;
use super::ranking::language::is_same;
use super::sentences::{is_wide, sentences};
use facts::Facts;

/// Two statements are the same if they share this part of their words, and number, unit, date and denial.
const SAME_SHARE: f64 = 0.9;

/// Words that turn a statement around. Those of scripts without spaces may stand anywhere in a word.
const DENIALS: &[&str] = &[
    "not",
    "never",
    "cannot",
    "nor",
    "neither",
    "without",
    "nicht",
    "kein",
    "keine",
    "keinen",
    "keiner",
    "nie",
    "niemals",
    "ohne",
    "pas",
    "jamais",
    "nunca",
    "não",
    "niet",
    "geen",
    "ない",
    "ません",
    "なかった",
    "ず",
    "不",
    "没",
    "無い",
    "않",
    "안",
    "없",
];
/// What `doesn't` and `won't` end with, without the apostrophe.
const DENIED_ENDING: &str = "n't";

/// Whether a passage can support a claim: it has every number, unit, date and name of the claim, and its sentence that is
/// closest to the claim denies as the claim does.
#[must_use]
pub fn can_support(claim: &str, passage: &str) -> bool {
    let passage = passage.replace('\n', " ");
    Facts::of(claim).are_in(&Facts::of(&passage))
        && denies(&fold(claim)) == denies(&fold(closest_sentence(claim, &passage)))
}

/// Whether texts of others have every figure of a sentence, and, in the same language, every name of it. A name may stand
/// in the question instead.
#[must_use]
pub fn has_facts_of(sentence: &str, others: &str, question: &str) -> bool {
    let (facts, theirs) = (Facts::of(sentence), Facts::of(others));
    if !facts.figures_are_in(&theirs) {
        return false;
    }
    let named = Facts::of(&format!("{others}\n{question}"));
    !is_same(sentence, others) || facts.names_without_trace(&named).next().is_none()
}

/// Whether a folded text denies something.
#[must_use]
pub fn denies(folded: &str) -> bool {
    let is_denial = |word: &str| DENIALS.contains(&word) || word.ends_with(DENIED_ENDING) || word.ends_with("n’t");
    let by_word = folded.split(|c: char| !c.is_alphanumeric() && c != '\'' && c != '’').any(is_denial);
    by_word || DENIALS.iter().any(|denial| denial.chars().all(is_wide) && folded.contains(denial))
}

/// The sentence of a passage that shares most of its words with a claim; of equals the first. A passage without marks of
/// a sentence is one sentence.
#[must_use]
pub fn closest_sentence<'a>(claim: &str, passage: &'a str) -> &'a str {
    let wanted = super::closeness::terms(claim);
    let shared = |text: &str| {
        let has = super::closeness::terms(text);
        wanted.iter().filter(|term| has.contains(term)).count()
    };
    let spans = sentences(passage);
    let best = spans.iter().rev().max_by_key(|span| shared(&passage[span.start..span.end]));
    best.map_or(passage, |span| passage[span.start..span.end].trim())
}

/// A statement as others are compared with it.
#[derive(Clone, Debug)]
pub struct Statement {
    terms: BTreeSet<String>,
    facts: Facts,
    denies: bool,
}

impl Statement {
    #[must_use]
    pub fn of(text: &str) -> Self {
        let folded = fold(text);
        Self {
            terms: super::closeness::terms(text).into_iter().collect(),
            facts: Facts::of(text),
            denies: denies(&folded),
        }
    }

    /// Whether the two say the same in nearly the same words.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        if self.denies != other.denies || self.facts != other.facts {
            return false;
        }
        let number = |count: usize| f64::from(u32::try_from(count).unwrap_or(u32::MAX));
        let shared = number(self.terms.intersection(&other.terms).count());
        let all = number(self.terms.union(&other.terms).count());
        all > 0.0 && shared / all >= SAME_SHARE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_number_or_a_denial_is_no_support() {
        let table = [
            ("The Eiffel Tower is 330 m high.", "The Eiffel Tower is 201 m high.", false),
            ("The Eiffel Tower is 330 m high.", "At 330 m the Eiffel Tower is the highest building of Paris.", true),
            ("Aspirin lowers the risk by 30 %.", "Aspirin lowers the risk by 3 %.", false),
            ("Long polling reduces token use.", "Long polling does not reduce token use.", false),
            ("Long polling reduces token use.", "It isn't new. Long polling reduces token use by half.", true),
            ("Long polling doesn't lose jobs.", "Jobs are not lost with long polling.", true),
            ("待ち行列は仕事を失いません。", "待ち行列は仕事を失う。", false),
            ("It began in 1990.", "It began in the nineties.", false),
            ("The tank holds 500 litres.", "The tank holds 500 gallons.", false),
            ("The tank holds 500 litres.", "The tank of the ship holds 500 l of water.", true),
            ("The rate rose by 1,000 percent.", "The rate rose by 1000 % in a year.", true),
            ("It takes 3.5 seconds.", "It takes 35 seconds.", false),
            ("It opened on 12 March 1990.", "It opened on 12 May 1990.", false),
            ("It opened on 12 March 1990.", "On March 12, 1990 it opened to visitors.", true),
            ("The capital of France is Paris.", "The capital of France is Lyon.", false),
            ("Lyon is the largest city.", "Paris is the largest city.", false),
            ("The capital of France is Paris.", "Paris has been the capital of France for centuries.", true),
            ("Der Turm steht in Paris.", "In Paris steht der Turm seit langem.", true),
            ("東京タワーの高さは333メートルです。", "東京タワーの高さは333フィートです。", false),
            ("カルシウムは骨を強くする。", "マグネシウムは骨を強くする。", false),
        ];
        for (claim, passage, expected) in table {
            assert_eq!(can_support(claim, passage), expected, "{claim} / {passage}");
        }
    }

    #[test]
    fn statements_are_the_same_only_if_their_facts_are() {
        let table = [
            ("Pods are evicted after five minutes.", "Pods are evicted after five minutes!", true),
            ("Pods are evicted after 5 minutes.", "Pods are evicted after 6 minutes.", false),
            ("Pods are evicted.", "Pods are not evicted.", false),
            ("Pods are evicted after a while.", "Nodes are drained before an upgrade.", false),
        ];
        for (left, right, expected) in table {
            assert_eq!(Statement::of(left).is_same(&Statement::of(right)), expected, "{left} / {right}");
        }
    }

    #[test]
    fn the_closest_sentence_is_quoted_as_it_stands() {
        let passage = "Bears sleep in winter. A bear eats berries and fish. It is large.";
        assert_eq!(closest_sentence("Bears eat fish and berries.", passage), "A bear eats berries and fish.");
        assert_eq!(closest_sentence("Anything.", "no mark"), "no mark");
    }
}
