//! Claims without a model: the sentences of all that a search read that best answer its question, word for word.

use async_trait::async_trait;
use matsu_core::ports::claim_maker::{
    ClaimDraft, ClaimMaker, ClaimRequest, ModelError, PoolClaims, PoolDraft, PoolPassage, PoolRequest,
};
use matsu_core::research::evidence::Extraction;
use matsu_core::research::passages::HEADING_DIVIDER;
use matsu_core::research::ranking::candidates::LeadIn;
use matsu_core::research::ranking::weights::{Weights, WeightsError};
use matsu_core::research::ranking::{self, Passage, Ranked};
use matsu_core::slot::Slot;

/// Parts of a score that are kept to be shown.
const PARTS_KEPT: usize = 6;

/// Takes sentences as they stand.
pub struct Extractive {
    weights: Weights,
}

impl Extractive {
    /// With the weights that ship.
    ///
    /// # Errors
    /// They do not fit the ranker: a defect of the build.
    pub fn new() -> Result<Self, WeightsError> {
        Ok(Self { weights: Weights::shipped()? })
    }

    /// With other weights, to measure what they are worth.
    #[must_use]
    pub fn with_weights(weights: Weights) -> Self {
        Self { weights }
    }
}

#[async_trait]
impl ClaimMaker for Extractive {
    fn extraction(&self) -> Extraction {
        Extraction::Extractive
    }

    fn slot(&self) -> Option<Slot> {
        None
    }

    fn pool(&self) -> Option<&dyn PoolClaims> {
        Some(self)
    }

    async fn claims(&self, request: &ClaimRequest) -> Result<Vec<ClaimDraft>, ModelError> {
        let passage = PoolPassage {
            text: request.fragment.clone(),
            headings: request.heading.as_str().into(),
            ..PoolPassage::default()
        };
        let (question, query) = (request.question.clone(), request.query.clone());
        let drafts = self.best(&PoolRequest { question, query, passages: vec![passage], claims_max: 2 });
        Ok(drafts.into_iter().map(|draft| ClaimDraft { quote: draft.text.clone(), text: draft.text }).collect())
    }
}

impl PoolClaims for Extractive {
    fn best(&self, request: &PoolRequest) -> Vec<PoolDraft> {
        let passages: Vec<Passage<'_>> = request
            .passages
            .iter()
            .map(|one| Passage { document: one.document, title: &one.title, headings: &one.headings, text: &one.text })
            .collect();
        let ranked = ranking::rank(&request.query, &passages, &self.weights, request.claims_max);
        ranked.iter().map(|one| self.draft(request, one)).collect()
    }
}

impl Extractive {
    fn draft(&self, request: &PoolRequest, one: &Ranked) -> PoolDraft {
        let passage = &request.passages[one.passage];
        let lead_in = one.lead_in.map(|lead_in| match lead_in {
            LeadIn::Here(span) => &passage.text[span.start..span.end],
            LeadIn::Before => passage.lead_in.as_str(),
        });
        let heading = passage.headings.at(one.span.start);
        let context = [Some(heading), lead_in].into_iter().flatten().filter(|part| !part.is_empty());
        let mut parts = ranking::parts(&request.query, &one.features, &self.weights);
        parts.truncate(PARTS_KEPT);
        PoolDraft {
            passage: one.passage,
            text: passage.text[one.span.start..one.span.end].to_owned(),
            context: context.collect::<Vec<_>>().join(HEADING_DIVIDER),
            relevance: one.probability,
            parts,
        }
    }
}

#[cfg(test)]
mod tests {
    use matsu_core::research::headings::Headings;

    use super::*;

    fn claims(query: &str, fragment: &str) -> Vec<String> {
        let passages = vec![PoolPassage { text: fragment.to_owned(), ..PoolPassage::default() }];
        let request = PoolRequest { query: query.to_owned(), passages, claims_max: 10, ..PoolRequest::default() };
        let maker = Extractive::new().expect("weights that fit");
        maker.best(&request).into_iter().map(|draft| draft.text).collect()
    }

    #[test]
    fn the_sentences_that_match_the_query_are_claims() {
        let text = "Menu Home Contact\nServers are machines. Long polling cuts the use of tokens by half. The weather is fine. Tokens cost money when polling.";
        assert_eq!(
            claims("does long polling cut tokens", text)[..2],
            ["Long polling cuts the use of tokens by half.", "Tokens cost money when polling."]
        );
        assert_eq!(claims("zebra crossing", text), Vec::<String>::new());
        assert_eq!(claims("menu home contact", text), Vec::<String>::new(), "a menu is no statement");
    }

    #[test]
    fn an_item_of_a_list_that_began_in_another_passage_has_its_lead_in() {
        let passages = vec![PoolPassage {
            text: "- Unknown, which means that the node is lost.\nA paragraph about a lost node.".to_owned(),
            headings: "Nodes".into(),
            lead_in: "A node can be in one of these states:".to_owned(),
            ..PoolPassage::default()
        }];
        let request = PoolRequest { query: "lost node".to_owned(), passages, claims_max: 10, ..PoolRequest::default() };
        let drafts = Extractive::new().expect("weights that fit").best(&request);
        let context =
            |start: &str| drafts.iter().find(|one| one.text.starts_with(start)).map(|one| one.context.as_str());
        assert_eq!(context("Unknown"), Some("Nodes › A node can be in one of these states:"));
        assert_eq!(context("A paragraph"), Some("Nodes"));
    }

    #[test]
    fn a_claim_has_the_heading_of_its_own_section() {
        let text = "Age\nDefault: two weeks.\nPath\nDefault: the root of the site.";
        let inside = vec![(text.find("Path").unwrap_or(0), "Settings › Path".to_owned())];
        let headings = Headings::new("Settings › Age".to_owned(), inside);
        let passages = vec![PoolPassage { text: text.to_owned(), headings, ..PoolPassage::default() }];
        let request =
            PoolRequest { query: "default cookie path".to_owned(), passages, claims_max: 10, ..PoolRequest::default() };
        let drafts = Extractive::new().expect("weights that fit").best(&request);
        let mut seen: Vec<(&str, &str)> =
            drafts.iter().map(|draft| (draft.text.as_str(), draft.context.as_str())).collect();
        seen.sort_unstable();
        assert_eq!(
            seen,
            [("Default: the root of the site.", "Settings › Path"), ("Default: two weeks.", "Settings › Age")]
        );
    }

    #[test]
    fn other_forms_of_a_word_and_questions_without_spaces_are_found() {
        let bears = "Bears sleep through the winter. Fish swim in rivers.";
        assert_eq!(claims("where does a bear sleep", bears), ["Bears sleep through the winter."]);
        let tortoise = "ゾウガメは陸で暮らす。その寿命は百年を超えることもある。猫は寝ています。ゾウガメの平均寿命は百年ほどである。";
        assert_eq!(claims("ゾウガメの寿命", tortoise)[0], "ゾウガメの平均寿命は百年ほどである。");
    }

    #[test]
    fn scripts_without_spaces_are_matched_by_pairs() {
        let japanese = "東京の天気は晴れです。待ち行列は処理を速くする仕組みです。猫は寝ています。";
        assert_eq!(claims("待ち行列の仕組み", japanese)[0], "待ち行列は処理を速くする仕組みです。");
        let korean = "날씨가 좋습니다. 대기열은 작업을 순서대로 처리합니다. 고양이가 잡니다.";
        assert_eq!(claims("대기열 처리", korean)[0], "대기열은 작업을 순서대로 처리합니다.");
    }
}
