//! The picking of claims when everything is read: the sentences of all pages that answer best, whichever page they are on.

use std::collections::HashSet;
use std::sync::Arc;

use matsu_core::error_code::ErrorCode;
use matsu_core::id::ClaimId;
use matsu_core::job::Retry;
use matsu_core::limits::CLAIMS_PER_SEARCH_MAX;
use matsu_core::ports::claim_maker::{PoolDraft, PoolPassage, PoolRequest};
use matsu_core::ports::store::{FragmentsOf, NewClaim, NewEvidence};
use matsu_core::research::agreement::Statement;
use matsu_core::research::closeness::terms;
use matsu_core::research::evidence::{Fragment, ScorePart};
use matsu_core::research::headings::subject;
use matsu_core::research::passages::HEADING_DIVIDER;
use matsu_core::research::ranking::candidates::lead_in_at_end;

use super::search_job::Search;
use super::state::{SearchState, WITHOUT_MODEL};
use super::stop_cause::StopCause;

/// So many times more sentences are ranked than claims are kept: those that say the same become one claim.
const SAME_ALLOWANCE: usize = 2;
/// Relevance is kept in parts of this.
const WHOLE: f64 = 10_000.0;

impl Search<'_> {
    /// Picks the claims, once. A search that was cut short picks from what it has.
    pub(super) async fn pick_claims(&mut self) -> Result<(), StopCause> {
        if self.state.is_picked {
            return Ok(());
        }
        if self.maker.pool().is_none() {
            return self.read_again().await;
        }
        let mut pool: Vec<(usize, Fragment)> = Vec::new();
        let mut passages = Vec::new();
        let mut next = self.state.clone();
        next.read.extend(next.unread.take());
        for (document, page) in next.read.iter().enumerate() {
            let mut open: Option<String> = None;
            for fragment in self.cx.runtime().store().run(FragmentsOf(page.page.clone())).await? {
                let (headings, text) = (fragment.headings.clone(), fragment.text.clone());
                // The outermost heading is the document's title, or as good as one.
                let title = headings.above().split(HEADING_DIVIDER).next().unwrap_or_default().to_owned();
                let lead_in = open.clone().unwrap_or_default();
                open = lead_in_at_end(&text, open);
                passages.push(PoolPassage { document, title, headings, lead_in, text });
                pool.push((document, fragment));
            }
        }
        let claims_max = CLAIMS_PER_SEARCH_MAX.max(next.read.len());
        let drafts = self.best(passages, claims_max * SAME_ALLOWANCE).await?;
        next.is_picked = true;
        let (mut claims, mut statements): (Vec<NewClaim>, Vec<Statement>) = (Vec::new(), Vec::new());
        for draft in drafts {
            let Some((document, fragment)) = pool.get(draft.passage) else { continue };
            let statement = Statement::of(&draft.text);
            let about = subject(&draft.text, &draft.context);
            let is_same = |n: &usize| {
                statements[*n].is_same(&statement) && subject(&claims[*n].text, &claims[*n].context) == about
            };
            let same = (0..claims.len()).find(is_same);
            if same.is_none() && claims.len() >= claims_max {
                continue;
            }
            let page = next.read[*document].clone();
            next.note_domain(&page.domain, page.is_primary);
            match same {
                Some(at) if claims[at].fragment_id == fragment.id || claims[at].also.contains(&fragment.id) => {}
                Some(at) => claims[at].also.push(fragment.id.clone()),
                None => {
                    claims.push(self.claim(fragment, draft));
                    statements.push(statement);
                }
            }
        }
        next.tally.claims += u32::try_from(claims.len()).unwrap_or(u32::MAX);
        self.record(NewEvidence { claims, ..NewEvidence::default() }, next).await
    }

    /// Whether the claims of a page are still to be made by a model, and can be made without it.
    pub(super) fn can_do_without_model(&self) -> bool {
        self.state.unread.is_some() && self.kit.embedded.is_some() && !self.state.is_without_model
    }

    /// The model failed: the sentences of the page that it was asked about, and of all that come, are chosen without it.
    pub(super) async fn do_without_model(&mut self, why: &str) -> Result<(), StopCause> {
        let name = self.kit.model().writer.map_or_else(|| "of research".to_owned(), |writer| writer.model());
        let mut next = self.state.clone();
        next.is_without_model = true;
        next.note_first(&format!("{WITHOUT_MODEL} {name}, which failed: {why}"));
        self.leave_to_embedded(next).await
    }

    /// The page that is not done is left to the ranker of this program.
    pub(super) async fn leave_to_embedded(&mut self, mut next: SearchState) -> Result<(), StopCause> {
        let Some(embedded) = self.kit.embedded.clone() else { return Ok(()) };
        next.read.extend(next.unread.take());
        self.record(NewEvidence::default(), next).await?;
        self.maker = embedded.claim_maker;
        Ok(())
    }

    /// Pages that were read for a choice at the end, by an attempt before a person chose a model: the model reads them.
    async fn read_again(&mut self) -> Result<(), StopCause> {
        while !self.state.read.is_empty() {
            let mut next = self.state.clone();
            next.unread = next.read.pop();
            self.record(NewEvidence::default(), next).await?;
            self.make_claims().await?;
        }
        Ok(())
    }

    /// Counting the words of thousands of sentences takes a moment; not on the thread that others wait on.
    async fn best(&self, passages: Vec<PoolPassage>, claims_max: usize) -> Result<Vec<PoolDraft>, StopCause> {
        let maker = Arc::clone(&self.maker);
        let (question, query) = (self.config.question.clone(), self.input.query.clone());
        let request = PoolRequest { question, query, passages, claims_max };
        let picked = tokio::task::spawn_blocking(move || maker.pool().map(|pool| pool.best(&request)));
        let picked = picked.await.map_err(|error| StopCause::Failed {
            code: ErrorCode::InternalError,
            why: format!("the sentences could not be ranked: {error}"),
            retry: Retry::IfAllowed,
        })?;
        Ok(picked.unwrap_or_default())
    }

    fn claim(&self, fragment: &Fragment, draft: PoolDraft) -> NewClaim {
        let part =
            |(name, value): (&str, f64)| ScorePart { name: name.to_owned(), thousandths: rounded(value * 1000.0) };
        NewClaim {
            id: ClaimId::mint(self.cx.runtime().clock().now()),
            quote: draft.text.clone(),
            text: draft.text,
            fragment_id: fragment.id.clone(),
            also: Vec::new(),
            context: draft.context,
            relevance: rounded(draft.relevance.clamp(0.0, 1.0) * WHOLE).unsigned_abs(),
            parts: draft.parts.into_iter().map(part).collect(),
            extraction: self.maker.extraction(),
        }
    }
}

#[expect(clippy::cast_possible_truncation, reason = "scores are small, and what is not is cut")]
fn rounded(value: f64) -> i32 {
    value.round() as i32
}

/// The share of the query's terms that a claim has, in ten-thousandths: the relevance of a claim that a model made.
pub fn shared(query: &str, claim: &str) -> u32 {
    let (wanted, has): (HashSet<String>, HashSet<String>) =
        (terms(query).into_iter().collect(), terms(claim).into_iter().collect());
    let found = u32::try_from(wanted.intersection(&has).count()).unwrap_or(0);
    found * 10_000 / u32::try_from(wanted.len()).unwrap_or(u32::MAX).max(1)
}
