//! Verification: for each claim of a search, what passages of *other* domains say about it.

use std::sync::Arc;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use matsu_core::error_code::ErrorCode;
use matsu_core::id::JobId;
use matsu_core::job::{Job, JobEnd, JobKind, Retry};
use matsu_core::limits::{VERIFY_CLOSEST_MAX, VERIFY_PASSAGES_MAX};
use matsu_core::ports::claim_maker::ModelError;
use matsu_core::ports::judge::{Judge, ToJudge};
use matsu_core::ports::model_account::ModelAccount;
use matsu_core::ports::store::{
    ClaimRow, ClaimsOfSearch, NewEdge, NewEvidence, PassageRow, PassagesOf, ReadCalibration, RecordEvidence,
};
use matsu_core::research::agreement::{Statement, can_support, closest_sentence};
use matsu_core::research::calibration::{Calibration, CalibrationVersion};
use matsu_core::research::closeness::Closeness;
use matsu_core::research::evidence::Relation;
use matsu_core::research::headings::{innermost, subject};
use matsu_core::research::quote::find_quote;
use matsu_core::research::stance::Stance;

use crate::runtime::JobBody;
use crate::runtime::context::JobContext;

use super::model_calls;
use super::report_job::ask_for_report;
use super::stop_cause::{StopCause, kit_of, until_stopped};
use crate::runtime::ResearchKit;

/// Neutral judgements that are kept for one claim: enough for a person to correct, not more.
const NEUTRAL_KEPT: usize = 3;

/// What a verification is about.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct VerifyInput {
    pub search_id: JobId,
    /// The model failed in the search, so it is not asked here either.
    #[serde(default)]
    pub is_without_model: bool,
}

/// How far a verification has come.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct VerifyState {
    claims_done: usize,
    edges: u32,
}

/// Runs verifications.
pub struct VerifyJob;

#[async_trait]
impl JobBody for VerifyJob {
    fn kind(&self) -> JobKind {
        JobKind::Verify
    }

    /// The meter beside the work knows the bound.
    fn run_seconds_max(&self, _job: &Job) -> Option<u32> {
        None
    }

    async fn run(&self, cx: JobContext) -> JobEnd {
        let kit = match kit_of(&cx) {
            Ok(kit) => kit,
            Err(end) => return end,
        };
        let Ok(input) = serde_json::from_str::<VerifyInput>(&cx.job.input_json) else {
            return JobEnd::failed_with(
                ErrorCode::InternalError,
                "a verification names its search",
                Retry::Never,
                None,
            );
        };
        let checkpoint = cx.job.checkpoint_json.as_deref();
        let mut state: VerifyState = checkpoint.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
        let done = until_stopped(&cx, &kit, verify(&cx, &kit, &input, &mut state)).await;
        let output = serde_json::to_string(&state).unwrap_or_default();
        match done {
            // What was judged counts; what was not stays unjudged.
            Ok(()) | Err(StopCause::Enough { .. }) => {
                if let Some(task_id) = cx.job.task_id.as_ref().filter(|_| !input.is_without_model)
                    && let Err(cause) = ask_for_report(&cx, &kit, task_id).await
                {
                    return cause.end_of(Some(output));
                }
                JobEnd::Completed { output_json: output }
            }
            Err(cause) => cause.end_of(Some(output)),
        }
    }
}

async fn verify(
    cx: &JobContext,
    kit: &ResearchKit,
    input: &VerifyInput,
    state: &mut VerifyState,
) -> Result<(), StopCause> {
    let Some(task_id) = &cx.job.task_id else { return Ok(()) };
    let store = cx.runtime().store();
    let claims = store.run(ClaimsOfSearch(input.search_id.clone())).await?;
    let pool = store.run(PassagesOf { task_id: task_id.clone(), rows_max: VERIFY_PASSAGES_MAX }).await?;
    let pool = Pool::over(pool).await?;
    let without_model = kit.embedded.clone().filter(|_| input.is_without_model);
    let assessor = without_model.unwrap_or_else(|| kit.model()).judge;
    let version = store.run(ReadCalibration(assessor.source().to_owned())).await?;
    while let Some(left) = claims.get(state.claims_done..).filter(|left| !left.is_empty()) {
        let group = &left[..assessor.claims_at_once().clamp(1, left.len())];
        let mut comparisons = Vec::new();
        for row in group {
            comparisons.push(Comparison::of(row, pool.others(row).await?));
        }
        let edges = judge(cx, assessor.as_ref(), &comparisons, version.as_ref()).await?;
        let next = VerifyState {
            claims_done: state.claims_done + group.len(),
            edges: state.edges + u32::try_from(edges.len()).unwrap_or(u32::MAX),
        };
        let checkpoint_json = serde_json::to_string(&next).ok();
        let evidence = NewEvidence { edges, checkpoint_json, ..NewEvidence::default() };
        store.run(RecordEvidence { lease: cx.lease.clone(), evidence, now: cx.runtime().clock().now() }).await?;
        *state = next;
        cx.progress(&format!("verified {} of {} claims", state.claims_done, claims.len())).await;
    }
    Ok(())
}

/// All passages of a task with the counts of their words. Counting and comparing thousands of them takes long enough to
/// hold up other calls, so both are done outside of the async threads.
struct Pool(Arc<(Vec<PassageRow>, Closeness)>);

impl Pool {
    async fn over(passages: Vec<PassageRow>) -> Result<Self, StopCause> {
        let index = move || {
            let close = Closeness::over(passages.iter().map(|row| row.text.as_str()));
            (passages, close)
        };
        Ok(Self(Arc::new(tokio::task::spawn_blocking(index).await.map_err(not_ranked)?)))
    }

    /// The closest passages that are not of the claim's own domain.
    async fn others(&self, claim: &ClaimRow) -> Result<Vec<PassageRow>, StopCause> {
        let (pool, text, domain) = (Arc::clone(&self.0), claim.claim.text.clone(), claim.domain.clone());
        let choose = move || {
            let (passages, close) = &*pool;
            let ranked = close.closest(&text, passages.len());
            let foreign = ranked.iter().filter_map(|(at, _)| passages.get(*at)).filter(|row| row.domain != domain);
            foreign.take(VERIFY_CLOSEST_MAX).cloned().collect()
        };
        tokio::task::spawn_blocking(choose).await.map_err(not_ranked)
    }
}

fn not_ranked(error: tokio::task::JoinError) -> StopCause {
    let why = format!("the passages could not be ranked: {error}");
    StopCause::Failed { code: ErrorCode::InternalError, why, retry: Retry::IfAllowed }
}

/// A claim and the passages of other sources that are closest to it.
struct Comparison<'a> {
    row: &'a ClaimRow,
    /// Passages that state the claim in nearly its own words are further places where it stands; they were copied from
    /// each other or from a third, and do not confirm it.
    copies: Vec<PassageRow>,
    /// What is judged.
    others: Vec<PassageRow>,
}

impl<'a> Comparison<'a> {
    fn of(row: &'a ClaimRow, passages: Vec<PassageRow>) -> Self {
        let claim = &row.claim;
        let statement = Statement::of(&claim.text);
        let is_copy = |passage: &PassageRow| {
            find_quote(&passage.text, &claim.quote).is_some()
                || Statement::of(closest_sentence(&claim.text, &passage.text)).is_same(&statement)
        };
        // The same few words about something else are neither a copy nor for or against: `Default: 0.`
        let about = subject(&claim.text, &claim.context);
        let is_about_it =
            |passage: &PassageRow| about.is_empty() || passage.headings.all().any(|path| innermost(path) == about);
        let (same, others): (Vec<_>, Vec<_>) = passages.into_iter().partition(is_copy);
        let copies = same.into_iter().filter(is_about_it).collect();
        Self { row, copies, others: without_repeats(&claim.text, others) }
    }

    fn asked(&self) -> ToJudge<'_> {
        ToJudge { claim: &self.row.claim.text, passages: self.others.iter().map(|one| one.text.as_str()).collect() }
    }

    /// The edges that the stances make, in the order of the passages.
    fn edges(&self, stances: Vec<Stance>, source: &str, version: Option<&CalibrationVersion>) -> Vec<NewEdge> {
        let calibration = version.map_or(Calibration::IDENTITY, |version| version.calibration);
        let claim = &self.row.claim;
        let edge = |passage: &PassageRow, relation, probability, stance, source: &str, calibration_version| NewEdge {
            claim_id: claim.id.clone(),
            fragment_id: passage.fragment_id.clone(),
            probability,
            relation,
            stance,
            source: source.to_owned(),
            calibration_version,
        };
        let copies = self.copies.iter().map(|passage| edge(passage, Relation::Origin, 1.0, Stance::abstained(), "", 0));
        let judged = self.others.iter().zip(stances).map(|(passage, stance)| {
            let calibrated: Stance = calibration.apply_to(&stance);
            let relation = match calibrated.relation() {
                Relation::Supports if !can_support(&claim.text, &passage.text) => Relation::Neutral,
                relation => relation,
            };
            let version = version.map_or(0, |version| version.version);
            edge(passage, relation, calibrated.probability(relation), stance, source, version)
        });
        let (telling, neutral): (Vec<_>, Vec<_>) = judged.partition(|edge| edge.relation != Relation::Neutral);
        copies.chain(telling).chain(neutral.into_iter().take(NEUTRAL_KEPT)).collect()
    }
}

/// Of passages that say the same about a claim in nearly the same words, the closest one: they were copied from each
/// other or from a third, and together are one witness.
fn without_repeats(claim: &str, mut passages: Vec<PassageRow>) -> Vec<PassageRow> {
    let mut statements: Vec<Statement> = Vec::new();
    passages.retain(|passage| {
        let statement = Statement::of(closest_sentence(claim, &passage.text));
        let is_first = !statements.iter().any(|known| known.is_same(&statement));
        statements.push(statement);
        is_first
    });
    passages
}

/// The edges of several claims. An answer for several that cannot be used is asked for again one by one.
async fn judge(
    cx: &JobContext,
    assessor: &dyn Judge,
    comparisons: &[Comparison<'_>],
    version: Option<&CalibrationVersion>,
) -> Result<Vec<NewEdge>, StopCause> {
    let stances = match ask(cx, assessor, comparisons).await? {
        Err(ModelError::Malformed(_)) if comparisons.len() > 1 => {
            let mut found = Vec::new();
            for one in comparisons {
                match ask(cx, assessor, std::slice::from_ref(one)).await? {
                    Ok(stances) => found.extend(stances),
                    Err(error) => return Err(model_calls::stop_cause(cx, error).await),
                }
            }
            found
        }
        Err(error) => return Err(model_calls::stop_cause(cx, error).await),
        Ok(stances) => stances,
    };
    let edges = comparisons.iter().zip(stances).map(|(one, stances)| one.edges(stances, assessor.source(), version));
    Ok(edges.flatten().collect())
}

async fn ask(
    cx: &JobContext,
    assessor: &dyn Judge,
    comparisons: &[Comparison<'_>],
) -> Result<Result<Vec<Vec<Stance>>, ModelError>, StopCause> {
    let asked: Vec<ToJudge<'_>> = comparisons.iter().map(Comparison::asked).collect();
    if asked.iter().all(|one| one.passages.is_empty()) {
        return Ok(Ok(vec![Vec::new(); asked.len()]));
    }
    let account = ModelAccount::default();
    let stances = assessor.stances_of(&asked, &account);
    let stances = match assessor.slot() {
        Some(slot) => cx.with_permit(slot, stances).await?,
        None => stances.await,
    };
    model_calls::count(cx, &account).await?;
    Ok(stances)
}

#[cfg(test)]
mod tests {
    use matsu_core::clock::Timestamp;
    use matsu_core::id::{FragmentId, PageId};
    use matsu_core::research::headings::Headings;

    use super::*;

    #[test]
    fn passages_that_repeat_each_other_are_one_witness() {
        let now = Timestamp::from_millis(1);
        let passage = |domain: &str, text: &str| PassageRow {
            fragment_id: FragmentId::mint(now),
            page_id: PageId::mint(now),
            domain: domain.to_owned(),
            text: text.to_owned(),
            headings: Headings::default(),
            sketch: 0,
        };
        let copied = "In a trial of 400 homes, heat pumps paid for themselves within nine years.";
        let passages = vec![
            passage("a.test", &format!("{copied} The trial ran for two winters.")),
            passage("b.test", &format!("A site wrote this. {copied}")),
            passage("c.test", "The payback of heat pumps was measured as eight years and nine months in Denmark."),
        ];
        let left = without_repeats("Heat pumps pay off within nine years.", passages);
        let domains: Vec<&str> = left.iter().map(|passage| passage.domain.as_str()).collect();
        assert_eq!(domains, ["a.test", "c.test"]);
    }
}
