//! What a model wrote, and the check of it: a sentence counts only if it names claims that exist and these claims say
//! what it says.

use serde::{Deserialize, Serialize};

use super::super::agreement::{denies, has_facts_of};
use super::super::closeness::terms;
use super::super::ranking::language::{Stems, is_common, is_same};
use super::Finding;

/// The share of a sentence's words that its claims must have, where both are in one language.
const SHARED_MIN: f64 = 0.5;

/// A report as a model wrote it, with the claims that each sentence names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Written {
    /// The model's name.
    pub model: String,
    pub answer: Vec<WrittenSentence>,
    pub sections: Vec<WrittenSection>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WrittenSection {
    pub title: String,
    pub sentences: Vec<WrittenSentence>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WrittenSentence {
    pub text: String,
    pub claim_ids: Vec<String>,
}

/// The sentences that hold, and how many were removed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    pub answer: Vec<WrittenSentence>,
    pub sections: Vec<WrittenSection>,
    pub removed: u32,
}

/// Removes every sentence that its claims do not support. A claim that a person rejected is not among the findings, so
/// what stands on it alone goes, too.
#[must_use]
pub fn checked(written: &Written, findings: &[Finding], question: &str) -> Checked {
    let mut removed = 0;
    let mut keep = |sentences: &[WrittenSentence]| -> Vec<WrittenSentence> {
        let mut kept = Vec::new();
        for sentence in sentences {
            let mut named: Vec<&Finding> = Vec::new();
            for finding in sentence.claim_ids.iter().filter_map(|id| findings.iter().find(|one| one.is_claim(id))) {
                if named.iter().all(|known| known.claim_id != finding.claim_id) {
                    named.push(finding);
                }
            }
            if is_supported(&sentence.text, &named, question) {
                let claim_ids = named.iter().map(|finding| finding.claim_id.clone()).collect();
                kept.push(WrittenSentence { text: sentence.text.clone(), claim_ids });
            } else {
                removed += 1;
            }
        }
        kept
    };
    let answer = keep(&written.answer);
    let sections = written
        .sections
        .iter()
        .map(|section| WrittenSection { title: section.title.clone(), sentences: keep(&section.sentences) })
        .filter(|section| !section.sentences.is_empty())
        .collect();
    Checked { answer, sections, removed }
}

/// Whether claims say what a sentence says, as far as words show: every number, unit, month and name is theirs, it denies
/// only if one of them does, and most of its words are theirs.
fn is_supported(sentence: &str, claims: &[&Finding], question: &str) -> bool {
    if claims.is_empty() || !sentence.chars().any(char::is_alphanumeric) {
        return false;
    }
    let said: String = claims.iter().map(|claim| format!("{}\n{}\n", claim.text, claim.context)).collect();
    let quotes: String =
        claims.iter().flat_map(|claim| &claim.origins).map(|place| format!("{}\n", place.quote)).collect();
    let said = said + &quotes;
    if !has_facts_of(sentence, &said, question) {
        return false;
    }
    let (is_denied, denials) = (denies(sentence), claims.iter().map(|claim| denies(&claim.text)));
    let denials: Vec<bool> = denials.collect();
    if is_denied && !denials.contains(&true) || !is_denied && !denials.contains(&false) {
        return false;
    }
    !is_same(sentence, &said) || shared(sentence, &said) >= SHARED_MIN
}

/// The share of a sentence's words that a text has, by stems, without words that every text has.
fn shared(sentence: &str, said: &str) -> f64 {
    let stems = Stems::of_shown(said);
    let stem = |text: &str| -> Vec<String> {
        let words = terms(text).into_iter().filter(|word| !is_common(word));
        words.map(|word| stems.stem(&word)).collect()
    };
    let (wanted, theirs) = (stem(sentence), stem(said));
    let count = |number: usize| f64::from(u32::try_from(number).unwrap_or(u32::MAX));
    let found = wanted.iter().filter(|word| theirs.contains(word)).count();
    if wanted.is_empty() { 0.0 } else { count(found) / count(wanted.len()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_sentences_that_their_claims_say_are_kept() {
        let claim = |id: &str, text: &str| Finding { claim_id: id.into(), text: text.into(), ..Finding::default() };
        let findings = [
            claim("c1", "Pods on an unreachable node are evicted after 300 seconds."),
            claim("c2", "DaemonSet pods are not evicted."),
        ];
        let table: [(&str, &[&str], bool); 13] = [
            ("After 300 seconds, pods are evicted from the unreachable node.", &["c1"], true),
            ("After 600 seconds, pods are evicted from the unreachable node.", &["c1"], false),
            ("Pods on an unreachable node are never evicted after 300 seconds.", &["c1"], false),
            ("DaemonSet pods are evicted.", &["c2"], false),
            ("Pods are evicted after 300 seconds, but DaemonSet pods are not.", &["c1", "c2"], true),
            ("Operators should buy larger machines and restart the whole cluster.", &["c1"], false),
            ("Pods on an unreachable node are evicted.", &[], false),
            ("Pods on an unreachable node are evicted.", &["c9"], false),
            ("Pod は300秒後にノードから退避されます。", &["c1"], true),
            ("Pod は600秒後にノードから退避されます。", &["c1"], false),
            ("After 300 minutes, pods are evicted from the unreachable node.", &["c1"], false),
            ("In Kubernetes, pods on an unreachable node are evicted after 300 seconds.", &["c1"], true),
            ("In Nomad, pods on an unreachable node are evicted after 300 seconds.", &["c1"], false),
        ];
        for (text, ids, expected) in table {
            let sentence =
                WrittenSentence { text: text.into(), claim_ids: ids.iter().map(|id| (*id).to_owned()).collect() };
            let written = Written { answer: vec![sentence], ..Written::default() };
            let found = checked(&written, &findings, "When does Kubernetes evict pods?");
            assert_eq!((found.answer.len(), found.removed), if expected { (1, 0) } else { (0, 1) }, "{text} {ids:?}");
        }
    }

    #[test]
    fn a_section_without_a_sentence_is_gone() {
        let sections = vec![WrittenSection { title: "Made up".into(), sentences: vec![WrittenSentence::default()] }];
        let found = checked(&Written { sections, ..Written::default() }, &[], "");
        assert_eq!((found.sections.len(), found.removed), (0, 1));
    }
}
