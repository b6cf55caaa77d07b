//! Material in, report out.

use super::super::agreement::Statement;
use super::super::headings::{innermost, needs_heading, subject};
use super::written::{self, WrittenSentence};
use super::{
    Citation, Contested, Finding, Material, Method, QuotePlace, Report, Section, Sentence, Verification, missing,
    one_line, topics,
};

/// Sentences of a direct answer at most.
const ANSWER_MAX: usize = 3;
/// A sentence joins the answer if it is at least this share as relevant as the best one.
const ANSWER_SHARE: f64 = 0.25;
/// Below this no sentence is called an answer: the closest ones are shown, and the report says so.
const ANSWER_RELEVANCE_MIN: f64 = 0.05;
/// Sentences in all sections together. The others are in the materials.
const FINDINGS_MAX: usize = 30;
/// A sentence of a section is at least this share as relevant as the best one.
const SECTION_SHARE: f64 = 0.02;
/// Below this a sentence of the examples in `docs/examples` had nothing to do with its question.
const SECTION_RELEVANCE_MIN: f64 = 0.003;
/// Findings that are compared with each other.
const COMPARED_MAX: usize = 200;
/// Places that one sentence cites for the same statement.
const ORIGINS_CITED_MAX: usize = 4;

#[must_use]
pub fn build(material: Material) -> Report {
    let mut citations = Citations::default();
    let mut material = material;
    material.findings = merged(std::mem::take(&mut material.findings));
    let findings = &material.findings;
    let mut report = Report {
        question: one_line(&material.question),
        method: Method::Extractive,
        model: None,
        answer: Vec::new(),
        sections: Vec::new(),
        contested: Vec::new(),
        not_found: Vec::new(),
        searched: Vec::new(),
        read: Vec::new(),
        citations: Vec::new(),
        sentences_removed: 0,
        claims_used: 0,
        claims_total: material.claims_total.max(findings.len()),
        notes: Vec::new(),
    };
    let model = material.written.as_ref().map(|written| written::checked(written, findings, &material.question));
    match (&material.written, model) {
        (Some(written), Some(checked)) if !checked.answer.is_empty() || !checked.sections.is_empty() => {
            report.method = Method::Model;
            report.model = Some(written.model.clone());
            report.sentences_removed = checked.removed;
            report.answer = checked.answer.iter().map(|one| from_claims(one, findings, &mut citations)).collect();
            report.sections = checked
                .sections
                .iter()
                .map(|section| Section {
                    title: one_line(&section.title),
                    sentences: section.sentences.iter().map(|one| from_claims(one, findings, &mut citations)).collect(),
                })
                .collect();
        }
        (_, checked) => {
            report.sentences_removed = checked.map_or(0, |checked| checked.removed);
            extract(&mut report, findings, &mut citations);
        }
    }
    let mut used: Vec<&String> = report.answer.iter().flat_map(|sentence| &sentence.claim_ids).collect();
    used.extend(report.sections.iter().flat_map(|section| &section.sentences).flat_map(|one| &one.claim_ids));
    used.sort();
    used.dedup();
    report.claims_used = used.len();
    report.contested = contested(findings, &mut citations);
    report.not_found = missing::not_found(&material, report.answer.is_empty());
    report.citations = citations.all;
    report.searched = material.searches;
    report.read = material.pages;
    report.notes = material.notes;
    report
}

/// Findings that say the same are one, with all of their places and what supports and refutes each. Only the first ones
/// are compared: no more are shown.
#[must_use]
pub fn merged(findings: Vec<Finding>) -> Vec<Finding> {
    let mut kept: Vec<Finding> = Vec::new();
    let mut statements: Vec<Statement> = Vec::new();
    for (at, finding) in findings.into_iter().enumerate() {
        if at >= COMPARED_MAX {
            kept.push(finding);
            continue;
        }
        let statement = Statement::of(&finding.text);
        let about = |one: &Finding| subject(&one.text, &one.context).to_owned();
        let is_same = |n: usize| statements[n].is_same(&statement) && about(&kept[n]) == about(&finding);
        match (0..statements.len()).find(|n| is_same(*n)) {
            Some(same) => {
                join(&mut kept[same], finding);
            }
            None => {
                kept.push(finding);
                statements.push(statement);
            }
        }
    }
    kept
}

/// Adds a finding to the one that says the same. One source counts once; of two confidences the lower one holds.
fn join(first: &mut Finding, other: Finding) {
    first.same.push(other.claim_id);
    first.same.extend(other.same);
    for place in other.origins {
        if first.origins.iter().all(|known| known.fragment_id != place.fragment_id) {
            first.origins.push(place);
        }
    }
    for (mine, theirs) in [(&mut first.supports, other.supports), (&mut first.refutes, other.refutes)] {
        for place in theirs {
            if mine.iter().all(|known| known.document.source != place.document.source) {
                mine.push(place);
            }
        }
    }
    first.confidence = match (first.confidence, other.confidence) {
        (Some(mine), Some(theirs)) => Some(mine.min(theirs)),
        (mine, theirs) => mine.or(theirs),
    };
}

/// The answer and the sections out of the documents' own sentences.
fn extract(report: &mut Report, findings: &[Finding], citations: &mut Citations) {
    let best = findings.first().map_or(0.0, |finding| finding.relevance);
    let mentions = missing::Mentions::of(&report.question, findings);
    let is_close = |finding: &&Finding| finding.relevance >= (best * ANSWER_SHARE).max(ANSWER_RELEVANCE_MIN);
    let answers: Vec<&Finding> =
        findings.iter().take_while(is_close).filter(|finding| mentions.are_enough(finding)).take(ANSWER_MAX).collect();
    report.answer = answers.iter().map(|finding| word_for_word(finding, citations)).collect();
    // Where nothing is relevant, the closest sentences are shown all the same.
    let least = (best * SECTION_SHARE).max(SECTION_RELEVANCE_MIN).min(best);
    let is_relevant = |finding: &&Finding| finding.relevance >= least;
    let is_other = |finding: &&Finding| answers.iter().all(|answer| answer.claim_id != finding.claim_id);
    let others: Vec<&Finding> = findings.iter().filter(is_other).filter(is_relevant).take(FINDINGS_MAX).collect();
    let sections = topics::grouped(&others).into_iter().map(|topic| Section {
        sentences: topic.findings.iter().map(|finding| word_for_word(finding, citations)).collect(),
        title: topic.title,
    });
    report.sections = sections.collect();
}

fn word_for_word(finding: &Finding, citations: &mut Citations) -> Sentence {
    Sentence {
        text: one_line(&finding.text),
        below: below(finding),
        claim_ids: vec![finding.claim_id.clone()],
        citations: citations.of(finding.origins.iter().take(ORIGINS_CITED_MAX)),
        verification: finding.verification(),
        confidence: finding.confidence,
    }
}

/// The heading above a sentence that is too short to stand alone.
fn below(finding: &Finding) -> String {
    let heading = finding.origins.first().map(|place| one_line(innermost(&place.heading)));
    let is_short = needs_heading(&finding.text);
    let heading = heading.filter(|heading| is_short && !finding.text.contains(heading.as_str()));
    heading.unwrap_or_default()
}

/// A sentence that a model wrote cites what its claims stand on. It is as good as the weakest of them.
fn from_claims(sentence: &WrittenSentence, findings: &[Finding], citations: &mut Citations) -> Sentence {
    let named: Vec<&Finding> =
        sentence.claim_ids.iter().filter_map(|id| findings.iter().find(|one| one.is_claim(id))).collect();
    let places = named.iter().flat_map(|finding| finding.origins.iter().take(1));
    let count = |of: fn(&Finding) -> usize| named.iter().map(|finding| of(finding)).sum::<usize>();
    let refuting = count(|finding| finding.refutes.len());
    let is_every_one_supported = named.iter().all(|finding| !finding.supports.is_empty());
    Sentence {
        text: one_line(&sentence.text),
        below: String::new(),
        claim_ids: sentence.claim_ids.clone(),
        citations: citations.of(places),
        verification: Verification::of(usize::from(is_every_one_supported && !named.is_empty()), refuting),
        confidence: named
            .iter()
            .map(|finding| finding.confidence)
            .reduce(|left, right| Some(left?.min(right?)))
            .flatten(),
    }
}

/// Every claim that a passage of another source refutes, with both sides.
fn contested(findings: &[Finding], citations: &mut Citations) -> Vec<Contested> {
    let refuted = findings.iter().filter(|finding| !finding.refutes.is_empty());
    refuted
        .map(|finding| Contested {
            text: one_line(&finding.text),
            claim_id: finding.claim_id.clone(),
            supported_by: citations.of(finding.origins.iter().take(ORIGINS_CITED_MAX).chain(&finding.supports)),
            refuted_by: citations.of(&finding.refutes),
            verification: finding.verification(),
            confidence: finding.confidence,
        })
        .collect()
}

/// Numbers quotes in the order in which they are named; the same quote of the same passage has one number.
#[derive(Default)]
struct Citations {
    all: Vec<Citation>,
}

impl Citations {
    fn of<'a>(&mut self, places: impl IntoIterator<Item = &'a QuotePlace>) -> Vec<usize> {
        let mut numbers = Vec::new();
        for place in places {
            let number = self.number(place);
            if !numbers.contains(&number) {
                numbers.push(number);
            }
        }
        numbers
    }

    fn number(&mut self, place: &QuotePlace) -> usize {
        let quote = one_line(&place.quote);
        let is_same = |known: &&Citation| known.fragment_id == place.fragment_id && known.quote == quote;
        if let Some(known) = self.all.iter().find(is_same) {
            return known.number;
        }
        let number = self.all.len() + 1;
        self.all.push(Citation {
            number,
            quote,
            fragment_id: place.fragment_id.clone(),
            heading: one_line(&place.heading),
            passage: place.passage,
            document: place.document.clone(),
        });
        number
    }
}

#[cfg(test)]
mod tests {
    use super::super::written::Written;
    use super::super::{DocumentFacts, Searched};
    use super::*;

    fn place(source: &str, quote: &str) -> QuotePlace {
        let document = DocumentFacts { url: format!("https://{source}/"), source: source.into(), ..Default::default() };
        QuotePlace { fragment_id: format!("frag_{source}"), quote: quote.into(), document, ..QuotePlace::default() }
    }

    fn finding(id: &str, text: &str, relevance: f64, source: &str) -> Finding {
        let origins = vec![place(source, text)];
        Finding { claim_id: id.into(), text: text.into(), relevance, origins, ..Finding::default() }
    }

    fn material(findings: Vec<Finding>) -> Material {
        let searches =
            vec![Searched { query: "pods".into(), status: "partial".into(), claims: 2, ..Default::default() }];
        Material { question: "When are pods evicted?".into(), findings, searches, ..Material::default() }
    }

    const EVICTED: &str = "Pods on an unreachable node are evicted after 300 seconds.";

    #[test]
    fn the_same_statement_is_one_sentence_with_all_its_places_and_votes() {
        let mut second = finding("c2", "Pods on an unreachable node are evicted after 300 seconds!", 0.8, "b.org");
        second.refutes = vec![place("c.org", "They are not.")];
        second.confidence = Some(0.4);
        let report = build(material(vec![finding("c1", EVICTED, 0.9, "a.org"), second]));
        assert_eq!(report.answer.len(), 1, "{report:?}");
        assert_eq!((&report.answer[0].citations, report.answer[0].verification), (&vec![1, 2], Verification::Refuted));
        assert_eq!(report.answer[0].confidence, Some(0.4));
        let contested = &report.contested[0];
        assert_eq!((&contested.supported_by, &contested.refuted_by), (&vec![1, 2], &vec![3]));
        let sources: Vec<&str> = report.citations.iter().map(|one| one.document.source.as_str()).collect();
        assert_eq!(sources, ["a.org", "b.org", "c.org"]);
    }

    #[test]
    fn the_same_few_words_under_two_headings_are_two_sentences() {
        let [mut age, mut path] = ["c1", "c2"].map(|id| finding(id, "Default: no timeout at all.", 0.9, "a.org"));
        (age.context, path.context) = ("Options › connectTimeout".into(), "Options › readTimeout".into());
        (age.origins[0].heading, path.origins[0].heading) = (age.context.clone(), path.context.clone());
        let asked = Material { question: "What is the default timeout?".into(), ..material(vec![age, path]) };
        let below: Vec<String> = build(asked).answer.into_iter().map(|sentence| sentence.below).collect();
        assert_eq!(below, ["connectTimeout", "readTimeout"]);
    }

    #[test]
    fn what_a_model_wrote_from_a_claim_holds_when_another_claim_says_the_same() {
        let sentence = WrittenSentence { text: EVICTED.into(), claim_ids: vec!["c2".into(), "c1".into()] };
        let written = Written { model: "m".into(), answer: vec![sentence], sections: Vec::new() };
        let findings = vec![finding("c1", EVICTED, 0.9, "a.org"), finding("c2", EVICTED, 0.8, "b.org")];
        let report = build(Material { written: Some(written), ..material(findings) });
        assert_eq!((report.method, report.sentences_removed), (Method::Model, 0), "{report:?}");
        assert_eq!(report.answer[0].claim_ids, ["c1"]);
    }

    #[test]
    fn a_sentence_that_hardly_matches_is_no_answer() {
        let report = build(material(vec![finding("c1", "Bananas are yellow.", 0.001, "a.org")]));
        assert!(report.answer.is_empty() && report.sections.len() == 1, "{report:?}");
        assert!(report.not_found[0].starts_with("No sentence that was read clearly answers"), "{report:?}");
        let nothing = build(material(Vec::new()));
        assert!(nothing.not_found[0].starts_with("No sentence about the question"), "{nothing:?}");
    }

    #[test]
    fn a_sentence_about_something_else_is_no_answer_however_close_it_is() {
        let mut other = material(vec![finding("c1", "The client is not a state machine at this point.", 0.9, "a.org")]);
        other.question = "What is the boiling point of tungsten?".into();
        let report = build(other);
        assert!(report.answer.is_empty() && report.sections.len() == 1, "{report:?}");
    }

    #[test]
    fn a_short_sentence_is_shown_below_its_heading() {
        let mut default = finding("c1", "Default: 1048576 (1MiB)", 0.9, "a.org");
        default.origins[0].heading = "Options › bodyLimit".into();
        let mut asked = material(vec![default, finding("c2", EVICTED, 0.8, "a.org")]);
        asked.question = "What is the default?".into();
        let report = build(asked);
        assert_eq!(
            (report.answer[0].below.as_str(), report.sections[0].sentences[0].below.as_str()),
            ("bodyLimit", "")
        );
    }

    #[test]
    fn what_has_little_to_do_with_the_question_stays_out_of_the_sections() {
        let findings = [0.9, 0.02, 0.01].iter().enumerate();
        let texts = [EVICTED, "Pods can be moved.", "Bananas are yellow."];
        let findings = findings.map(|(at, relevance)| finding(&format!("c{at}"), texts[at], *relevance, "a.org"));
        let report = build(material(findings.collect()));
        let shown: Vec<&str> =
            report.sections.iter().flat_map(|section| &section.sentences).map(|one| one.text.as_str()).collect();
        assert_eq!(shown, ["Pods can be moved."]);
        assert_eq!((report.claims_used, report.claims_total), (2, 3));
    }

    #[test]
    fn what_a_model_invents_is_removed_and_the_sentences_of_the_documents_are_shown() {
        let sentence = WrittenSentence { text: "Pods live forever on Mars.".into(), claim_ids: vec!["c1".into()] };
        let written = Written { model: "m".into(), answer: vec![sentence], sections: Vec::new() };
        let report = build(Material { written: Some(written), ..material(vec![finding("c1", EVICTED, 0.9, "a.org")]) });
        assert_eq!((report.method, report.sentences_removed), (Method::Extractive, 1), "{report:?}");
        assert_eq!(report.answer[0].text, EVICTED);
    }
}
