//! The writing of a report by a model, from the claims of a task. What it wrote is the job's output; the report is
//! checked whenever it is read, so that a claim which a person rejects takes its sentences with it.

use std::time::Duration;

use async_trait::async_trait;

use matsu_core::error_code::ErrorCode;
use matsu_core::id::{JobId, TaskId};
use matsu_core::job::{Job, JobEnd, JobKind, NewJob, Retry};
use matsu_core::limits::REPORT_CLAIMS_WRITTEN_MAX;
use matsu_core::ports::claim_maker::ModelError;
use matsu_core::ports::model_account::ModelAccount;
use matsu_core::ports::report_writer::{ClaimToWrite, Draft, DraftSentence, ReportWriter, WriteRequest};
use matsu_core::ports::store::{
    Enqueue, ReadEvidenceTotals, ReadJob, ReadSearches, ReadTask, SearchWish, StoreError, TaskLookup,
};
use matsu_core::research::report::written::{Written, WrittenSection, WrittenSentence};
use matsu_core::research::report::{Finding, Material, merged};
use matsu_core::research::search::SearchStatus;
use matsu_core::slot::Slot;

use crate::runtime::body::JobBody;
use crate::runtime::context::JobContext;

use super::model_calls;
use super::report::material;
use super::stop_cause::{StopCause, kit_of, until_stopped};
use crate::runtime::ResearchKit;

/// Claims that come while the model writes make it write again, this often at most.
const TURNS_MAX: u32 = 3;

/// How long the writing waits while other jobs of its task are queued or run.
const OTHERS_PAUSE: Duration = Duration::from_secs(3);

/// Runs the writing of reports.
pub struct ReportJob;

#[async_trait]
impl JobBody for ReportJob {
    fn kind(&self) -> JobKind {
        JobKind::Report
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
        let Some(writer) = kit.model().writer else {
            let why = "no model writes reports here: research.model is not set";
            return JobEnd::failed_with(ErrorCode::PipelineError, why, Retry::Never, None);
        };
        let done = until_stopped(&cx, &kit, write(&cx, writer.as_ref())).await;
        match done {
            Ok(written) => JobEnd::Completed { output_json: serde_json::to_string(&written).unwrap_or_default() },
            Err(cause) => cause.end_of(None),
        }
    }
}

async fn write(cx: &JobContext, writer: &dyn ReportWriter) -> Result<Written, StopCause> {
    let Some(task_id) = &cx.job.task_id else { return Ok(Written::default()) };
    let mut turn = 1;
    loop {
        let TaskLookup::Found(task) = cx.runtime().store().run(ReadTask(task_id.clone())).await? else {
            return Err(StopCause::LeaseLost);
        };
        if turn == 1 && has_other_work(cx, task_id).await? {
            return Err(StopCause::NotBefore(cx.runtime().clock().now().plus(OTHERS_PAUSE)));
        }
        let claims_before = cx.runtime().store().run(ReadEvidenceTotals(task_id.clone())).await?.claims;
        let mut material = material(cx.runtime(), &task).await?;
        material.findings = merged(material.findings);
        let request = request(&material);
        let given = request.claims.len();
        if given == 0 {
            return Ok(Written::default());
        }
        cx.progress(&format!("writing the report from {given} claims")).await;
        let account = ModelAccount::default();
        let asked = writer.write(&request, &account);
        let draft = match writer.slot() {
            Some(slot) => cx.with_permit(slot, asked).await?,
            None => asked.await,
        };
        model_calls::count(cx, &account).await?;
        let draft = match draft {
            Ok(draft) => draft,
            // It was asked twice already.
            Err(error @ ModelError::Malformed(_)) => {
                let (code, why) = (ErrorCode::PipelineError, error.to_string());
                return Err(StopCause::Failed { code, why, retry: Retry::Never });
            }
            Err(error) => return Err(model_calls::stop_cause(cx, error).await),
        };
        let claims_now = cx.runtime().store().run(ReadEvidenceTotals(task_id.clone())).await?.claims;
        if claims_now == claims_before || turn >= TURNS_MAX {
            return Ok(named(writer.model(), draft, &material.findings[..given]));
        }
        turn += 1;
    }
}

/// Whether searches or verifications of the task are queued or run. One report is written for all of them, because each
/// costs a request; a search that awaits a login may wait for days and does not count.
async fn has_other_work(cx: &JobContext, task_id: &TaskId) -> Result<bool, StopCause> {
    let store = cx.runtime().store();
    let list = store
        .run(ReadSearches { task_id: task_id.clone(), wish: SearchWish { changed_since: None, rows_max: 1 } })
        .await?;
    let (queued, running) = list.verifying;
    let mut others = list.count(SearchStatus::Queued) + list.count(SearchStatus::Running) + queued + running;
    // The verification that asked for this report may not have ended yet; it has nothing left to do.
    if let Some(cause) = &cx.job.cause_id
        && !store.run(ReadJob(JobId::from_text(cause))).await?.state.is_finished()
    {
        others -= 1;
    }
    Ok(others > 0)
}

fn request(material: &Material) -> WriteRequest {
    let claims = material.findings.iter().take(REPORT_CLAIMS_WRITTEN_MAX).map(|finding| ClaimToWrite {
        text: finding.text.clone(),
        context: finding.context.clone(),
        verification: finding.verification().to_string(),
        source: finding.origins.first().map(|place| place.document.title.clone()).unwrap_or_default(),
    });
    WriteRequest { question: material.question.clone(), claims: claims.collect() }
}

/// Numbers of claims as their ids. A number that was not given names nothing.
fn named(model: String, draft: Draft, findings: &[Finding]) -> Written {
    let sentence = |one: DraftSentence| {
        let ids = one.claims.iter().filter_map(|number| findings.get(number.checked_sub(1)?));
        let ids = ids.map(|finding| finding.claim_id.clone());
        WrittenSentence { claim_ids: ids.collect(), text: one.text }
    };
    let section = |(title, sentences): (String, Vec<DraftSentence>)| WrittenSection {
        title,
        sentences: sentences.into_iter().map(sentence).collect(),
    };
    Written {
        model,
        answer: draft.answer.into_iter().map(sentence).collect(),
        sections: draft.sections.into_iter().map(section).collect(),
    }
}

/// Has the report of a task written, if a model does that here. One that is queued or at work serves.
pub(super) async fn ask_for_report(cx: &JobContext, kit: &ResearchKit, task_id: &TaskId) -> Result<(), StopCause> {
    if kit.model().writer.is_none() {
        return Ok(());
    }
    let runtime = cx.runtime();
    let now = runtime.clock().now();
    let job = NewJob {
        id: JobId::mint(now),
        kind: JobKind::Report,
        priority: cx.job.priority,
        slot: Slot::Cpu,
        input_json: "{}".to_owned(),
        cause_id: Some(cx.lease.job_id.to_string()),
        run_at: now,
        dedupe_key: Some(format!("report/{task_id}")),
    };
    let request = Enqueue { task_id: Some(task_id.clone()), jobs: vec![job], resume_for: None, now };
    match runtime.store().run(request).await {
        // A task that takes no more work keeps the report that it has.
        Ok(_) | Err(StoreError::Closed { .. }) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
