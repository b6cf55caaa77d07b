//! What a judge may not overlook: a passage that gives another number than the claim, or that denies what the claim
//! affirms, does not support it, however alike the two are.

use super::query::fold;
use super::ranking::asked::numbers;
use super::sentences::{is_wide, sentences};

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

/// Whether a passage can support a claim: it has every number of the claim, and its sentence that is closest to the
/// claim denies as the claim does.
#[must_use]
pub fn can_support(claim: &str, passage: &str) -> bool {
    let (claim, passage) = (fold(claim), fold(&passage.replace('\n', " ")));
    let has = |number: &str| numbers(&passage).any(|other| other == number);
    numbers(&claim).all(has) && denies(&claim) == denies(closest(&claim, &passage))
}

fn denies(folded: &str) -> bool {
    let is_denial = |word: &str| DENIALS.contains(&word) || word.ends_with(DENIED_ENDING) || word.ends_with("n’t");
    let by_word = folded.split(|c: char| !c.is_alphanumeric() && c != '\'' && c != '’').any(is_denial);
    by_word || DENIALS.iter().any(|denial| denial.chars().all(is_wide) && folded.contains(denial))
}

/// The sentence of the passage that shares most of its words with the claim. Both are folded, so that only marks end
/// sentences; a passage without such marks is one sentence.
fn closest<'a>(claim: &str, passage: &'a str) -> &'a str {
    let wanted = super::closeness::terms(claim);
    let spans = sentences_of_folded(passage);
    let shared = |text: &str| {
        let has = super::closeness::terms(text);
        wanted.iter().filter(|term| has.contains(term)).count()
    };
    // Of equals the first.
    let best = spans.iter().rev().max_by_key(|span| shared(&passage[span.0..span.1]));
    best.map_or(passage, |span| &passage[span.0..span.1])
}

/// A folded text has no capitals by which `sentences` would see a beginning.
fn sentences_of_folded(passage: &str) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    for span in sentences(passage) {
        let mut start = span.start;
        for (at, _) in passage[span.start..span.end].match_indices(". ") {
            let end = span.start + at + 1;
            found.push((start, end));
            start = end;
        }
        found.push((start, span.end));
    }
    found
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
        ];
        for (claim, passage, expected) in table {
            assert_eq!(can_support(claim, passage), expected, "{claim} / {passage}");
        }
    }
}
