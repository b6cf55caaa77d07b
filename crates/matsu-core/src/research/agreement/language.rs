//! The language of one sentence. Short sentences have few of the words by which `ranking/language.rs` knows a language,
//! and a wrong language would make German nouns names, or Portuguese `no` a denial.

use rust_stemmers::Algorithm;

use super::super::query::fold;
use super::super::ranking::language;

/// Words that one of these languages has and the others have rarely; the first language is that of a tie.
const HINTS: &[(Algorithm, &str)] = &[
    (
        Algorithm::English,
        "the is are was were it its of and to for with by from that this has have had in on at not after about he she they \
         his her during will can which who their there when than",
    ),
    (
        Algorithm::German,
        "der die das dem den des ein eine einen einem einer es er sie gibt für diese dieser dieses mit von vom im auf bei \
         kein keine keinen keinem wird werden wurde sind ist hat nach aus zur zum über durch sich auch und nicht steht",
    ),
    (
        Algorithm::French,
        "le les des du une est dans pour avec sur au aux cette ces et qui par pas n'est d'un d'une l'on ont plus",
    ),
    (Algorithm::Spanish, "el los las del una y es en por con se fue están está tiene más para que su sus ganó hay"),
    (Algorithm::Italian, "il gli della di che è sono nel nella con per del dei alla ha una anche più"),
    (Algorithm::Portuguese, "o os as do da dos das no na nos nas em uma um é não para com ao foi são mais tem"),
    (Algorithm::Dutch, "het een van niet wordt zijn voor met dat op de er geen naar ook bij heeft"),
];

/// The language of a sentence.
#[must_use]
pub fn of(sentence: &str) -> Algorithm {
    if let Some(shown) = language::shown(sentence) {
        return shown;
    }
    let folded = fold(sentence);
    let words: Vec<&str> = folded.split(|c: char| !c.is_alphanumeric() && c != '\'').collect();
    let count = |hints: &str| hints.split_whitespace().filter(|hint| words.contains(hint)).count();
    let best = HINTS.iter().rev().map(|(language, hints)| (count(hints), *language)).max_by_key(|(count, _)| *count);
    best.filter(|(count, _)| *count > 0).map_or_else(|| language::of(sentence), |(_, language)| language)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_sentence_shows_its_language() {
        for (sentence, language) in [
            ("It is a non stop flight.", Algorithm::English),
            ("Es gibt keinen Beleg für diese Wirkung.", Algorithm::German),
            ("A torre fica no centro da cidade.", Algorithm::Portuguese),
            ("Curie ganó dos premios.", Algorithm::Spanish),
            ("Bu doğru değil.", Algorithm::Turkish),
            ("Pods live on Mars.", Algorithm::English),
        ] {
            assert!(std::mem::discriminant(&of(sentence)) == std::mem::discriminant(&language), "{sentence}");
        }
    }
}
