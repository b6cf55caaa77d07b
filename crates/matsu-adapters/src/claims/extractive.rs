//! Claims without a model: the sentences of a fragment that best match what was asked, word for word.

use std::collections::HashSet;

use async_trait::async_trait;
use matsu_core::ports::claim_maker::{ClaimDraft, ClaimMaker, ClaimRequest, ModelError};
use matsu_core::research::closeness::terms;
use matsu_core::research::evidence::Extraction;
use matsu_core::research::sentences::sentences;
use matsu_core::slot::Slot;

/// Sentences that one fragment gives.
const SENTENCES_MAX: usize = 2;
/// Shorter ones are headings and labels, longer ones say too many things at once.
const CHARS: std::ops::RangeInclusive<usize> = 12..=500;
/// The share of the query's terms that a sentence must have.
const COVERAGE_MIN: f64 = 0.34;
/// Words that match everything.
const COMMON: &[&str] = &[
    "a", "an", "and", "are", "as", "at", "be", "by", "can", "did", "do", "does", "for", "from", "has", "have", "how",
    "in", "is", "it", "its", "of", "on", "or", "that", "the", "to", "vs", "was", "were", "what", "when", "where",
    "which", "who", "why", "will", "with",
];

/// Takes sentences as they stand.
pub struct Extractive;

#[async_trait]
impl ClaimMaker for Extractive {
    fn extraction(&self) -> Extraction {
        Extraction::Extractive
    }

    fn slot(&self) -> Option<Slot> {
        None
    }

    async fn claims(&self, request: &ClaimRequest) -> Result<Vec<ClaimDraft>, ModelError> {
        Ok(best(request).into_iter().map(|text| ClaimDraft { quote: text.clone(), text }).collect())
    }
}

/// The best sentences, in the order they stand.
fn best(request: &ClaimRequest) -> Vec<String> {
    let wanted = wanted(&request.query);
    let question = wanted_terms(&request.question);
    if wanted.is_empty() {
        return Vec::new();
    }
    let mut scored: Vec<(usize, f64, String)> = Vec::new();
    for (place, sentence) in sentences(&request.fragment).into_iter().enumerate() {
        let text = &request.fragment[sentence.start..sentence.end];
        if !CHARS.contains(&text.chars().count()) || !ends_as_sentence(text) {
            continue;
        }
        let has: HashSet<String> = terms(text).into_iter().collect();
        let coverage = share(&wanted, &has);
        if coverage >= COVERAGE_MIN {
            // The task's question decides between sentences that match the query alike.
            scored.push((place, coverage + 0.1 * share(&question, &has), text.to_owned()));
        }
    }
    scored.sort_by(|left, right| right.1.total_cmp(&left.1).then(left.0.cmp(&right.0)));
    scored.truncate(SENTENCES_MAX);
    scored.sort_by_key(|(place, _, _)| *place);
    scored.into_iter().map(|(_, _, text)| text).collect()
}

fn wanted_terms(text: &str) -> HashSet<String> {
    terms(text).into_iter().filter(|term| !COMMON.contains(&term.as_str())).collect()
}

/// A query of nothing but common words means them.
fn wanted(query: &str) -> HashSet<String> {
    let telling = wanted_terms(query);
    if telling.is_empty() { terms(query).into_iter().collect() } else { telling }
}

fn share(wanted: &HashSet<String>, has: &HashSet<String>) -> f64 {
    if wanted.is_empty() {
        return 0.0;
    }
    let found = wanted.iter().filter(|term| has.contains(*term)).count();
    f64::from(u32::try_from(found).unwrap_or(0)) / f64::from(u32::try_from(wanted.len()).unwrap_or(1))
}

/// A line without an end is a heading, a menu or a caption.
fn ends_as_sentence(text: &str) -> bool {
    text.trim_end_matches(['"', '\'', ')', ']', '”', '’', '」', '』', '）'])
        .ends_with(['.', '!', '?', '。', '！', '？', '…', '｡'])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claims(query: &str, fragment: &str) -> Vec<String> {
        best(&ClaimRequest {
            question: String::new(),
            query: query.to_owned(),
            heading: String::new(),
            fragment: fragment.to_owned(),
        })
    }

    #[test]
    fn the_sentences_that_match_the_query_are_claims() {
        let text = "Menu Home Contact\nServers are machines. Long polling cuts the use of tokens by half. The weather is fine. Tokens cost money when polling.";
        assert_eq!(
            claims("does long polling cut tokens", text),
            ["Long polling cuts the use of tokens by half.", "Tokens cost money when polling."]
        );
        assert_eq!(claims("zebra crossing", text), Vec::<String>::new());
        assert_eq!(claims("menu home contact", text), Vec::<String>::new(), "a menu is no statement");
    }

    #[test]
    fn scripts_without_spaces_are_matched_by_pairs() {
        let japanese = "東京の天気は晴れです。待ち行列は処理を速くする仕組みです。猫は寝ています。";
        assert_eq!(claims("待ち行列の仕組み", japanese), ["待ち行列は処理を速くする仕組みです。"]);
        let korean = "날씨가 좋습니다. 대기열은 작업을 순서대로 처리합니다. 고양이가 잡니다.";
        assert_eq!(claims("대기열 처리", korean), ["대기열은 작업을 순서대로 처리합니다."]);
    }
}
