//! A search as a job: engines, selection, reading, and what came of it. Each step is recorded; the body can be dropped
//! at any await, and the next attempt goes on from the last record.

use std::sync::Arc;

use async_trait::async_trait;

use matsu_core::clock::Timestamp;
use matsu_core::error_code::ErrorCode;
use matsu_core::id::JobId;
use matsu_core::job::end::clip;
use matsu_core::job::{Job, JobEnd, JobKind, NewJob, Retry};
use matsu_core::ports::claim_maker::ClaimMaker;
use matsu_core::ports::search_engine::EngineRequest;
use matsu_core::ports::store::{
    Enqueue, NewEvidence, NewHit, ReadJob, ReadRules, ReadTask, RecordEvidence, StoreError, TaskLookup,
};
use matsu_core::research::merge::merge;
use matsu_core::research::satisfaction::is_satisfied;
use matsu_core::research::search::{EngineFailure, PAGES_PER_SEARCH, ResearchConfig, SearchInput, SearchStatus};
use matsu_core::slot::Slot;
use matsu_core::task::Task;

use crate::runtime::JobBody;
use crate::runtime::context::JobContext;
use crate::stop_signal::StopLevel;

use super::engine_queries;
use super::selecting::select;
use super::state::SearchState;
use super::stop_cause::{StopCause, kit_of, until_stopped};
use super::verify_job::VerifyInput;
use crate::runtime::ResearchKit;

/// Runs searches.
pub struct SearchJob;

#[async_trait]
impl JobBody for SearchJob {
    fn kind(&self) -> JobKind {
        JobKind::Search
    }

    /// The meter beside the work knows the bound, and ends the search with what it has.
    fn run_seconds_max(&self, _job: &Job) -> Option<u32> {
        None
    }

    async fn run(&self, cx: JobContext) -> JobEnd {
        let kit = match kit_of(&cx) {
            Ok(kit) => kit,
            Err(end) => return end,
        };
        let mut search = match Search::open(&cx, &kit).await {
            Ok(search) => search,
            Err(cause) => return cause.end_of(None),
        };
        let cause = until_stopped(&cx, &kit, search.work()).await;
        search.end(cause).await
    }
}

/// One search at work.
pub struct Search<'a> {
    pub(super) cx: &'a JobContext,
    pub(super) kit: &'a ResearchKit,
    /// As it was when this attempt began.
    pub(super) maker: Arc<dyn ClaimMaker>,
    pub(super) task: Box<Task>,
    pub(super) config: ResearchConfig,
    pub(super) input: SearchInput,
    pub(super) state: SearchState,
    pub(super) pages_max: u32,
    /// Of the task's passages; not part of the checkpoint, for the store knows them.
    pub(super) sketches: Vec<u64>,
    pub(super) is_exhausted: bool,
}

impl<'a> Search<'a> {
    async fn open(cx: &'a JobContext, kit: &'a ResearchKit) -> Result<Self, StopCause> {
        let defect = |why: String| StopCause::Failed { code: ErrorCode::InternalError, why, retry: Retry::Never };
        let Some(task_id) = &cx.job.task_id else { return Err(defect("a search belongs to a task".to_owned())) };
        let TaskLookup::Found(task) = cx.runtime().store().run(ReadTask(task_id.clone())).await? else {
            return Err(StopCause::LeaseLost);
        };
        let input: SearchInput = serde_json::from_str(&cx.job.input_json).map_err(|error| defect(error.to_string()))?;
        let config: ResearchConfig = serde_json::from_str(&task.config_json).unwrap_or_default();
        let state = SearchState::from_checkpoint(cx.job.checkpoint_json.as_deref());
        let pages_max = input.pages_max.unwrap_or(PAGES_PER_SEARCH);
        let without_model = kit.embedded.clone().filter(|_| state.is_without_model);
        let maker = without_model.unwrap_or_else(|| kit.model()).claim_maker;
        Ok(Self { cx, kit, maker, task, config, input, state, pages_max, sketches: Vec::new(), is_exhausted: false })
    }

    async fn work(&mut self) -> Result<(), StopCause> {
        if self.state.is_done {
            return Ok(());
        }
        if !self.state.is_selected {
            self.find().await?;
        }
        self.read_all().await
    }

    /// Asks the engines and makes the list of what is to be read.
    async fn find(&mut self) -> Result<(), StopCause> {
        self.cx.progress("searching").await;
        let named = if self.input.engines.is_empty() { &self.config.engines } else { &self.input.engines };
        let request = EngineRequest {
            query: self.input.query.clone(),
            language: self.config.language.clone(),
            hits_max: (self.pages_max * 2).clamp(10, 50),
            owner: self.task.owner.clone(),
            folders: self.config.folders.clone(),
        };
        let runtime = self.cx.runtime();
        let answers = engine_queries::ask(runtime, self.kit, named, &request).await?;
        if let Some(at) = answers.not_before.filter(|_| answers.lists.is_empty()) {
            return self.ask_later(&answers.failures, at).await;
        }
        let rules = runtime.store().run(ReadRules(self.task.owner.clone())).await?;
        let hits = answers.lists.iter().flat_map(|(engine, hits)| {
            hits.iter().enumerate().map(move |(rank, hit)| NewHit {
                engine: engine.clone(),
                rank: u32::try_from(rank + 1).unwrap_or(u32::MAX),
                url: hit.url.clone(),
                title: hit.title.clone(),
                snippet: hit.snippet.clone(),
            })
        });
        let mut next = self.state.clone();
        next.tally.engines = answers.lists.iter().map(|(engine, _)| engine.clone()).collect();
        next.tally.engines_failed.clone_from(&answers.failures);
        for document in &answers.unread {
            next.note(&format!("{}: {}", document.url, document.reason));
        }
        let hits = hits.collect();
        let selected = select(merge(&answers.lists), &rules, &self.config.priority_domains);
        for note in selected.left_out {
            next.note(&note);
        }
        next.candidates = selected.candidates;
        next.is_selected = true;
        self.record(NewEvidence { hits, ..NewEvidence::default() }, next).await
    }

    /// Every engine asked for a pause: the search waits in the queue until then, a few times.
    async fn ask_later(&mut self, failures: &[EngineFailure], at: Timestamp) -> Result<(), StopCause> {
        if self.state.engine_waits >= ENGINE_WAITS_MAX {
            let why = engine_queries::in_words(failures);
            return Err(StopCause::Failed { code: ErrorCode::SerpSearchFailed, why, retry: Retry::Never });
        }
        let mut next = self.state.clone();
        next.engine_waits += 1;
        next.tally.engines_failed = failures.to_vec();
        self.record(NewEvidence::default(), next).await?;
        Err(StopCause::NotBefore(at))
    }

    /// Writes evidence with the state behind it. Only then is that state ours.
    pub(super) async fn record(&mut self, mut evidence: NewEvidence, next: SearchState) -> Result<(), StopCause> {
        evidence.tally = Some(next.tally.clone());
        evidence.checkpoint_json = Some(next.to_checkpoint());
        let runtime = self.cx.runtime();
        runtime
            .store()
            .run(RecordEvidence { lease: self.cx.lease.clone(), evidence, now: runtime.clock().now() })
            .await?;
        self.state = next;
        Ok(())
    }

    pub(super) async fn write_progress(&self) {
        let tally = &self.state.tally;
        let left = u32::try_from(self.state.candidates.len()).unwrap_or(u32::MAX);
        let total = self.pages_max.min(tally.pages_fetched.saturating_add(left));
        self.cx.progress(&format!("fetched {} of {total} pages", tally.pages_fetched)).await;
    }

    /// What the job's end is, after the work is done or was left.
    async fn end(mut self, worked: Result<(), StopCause>) -> JobEnd {
        let cause = match worked {
            Ok(()) => return self.finish(None).await,
            Err(cause) => cause,
        };
        if matches!(cause, StopCause::Stopped | StopCause::LeaseLost) {
            return self.cx.stopped();
        }
        // The work may have been dropped after a record and before it knew of it: the store knows.
        match self.cx.runtime().store().run(ReadJob(self.cx.lease.job_id.clone())).await {
            Ok(job) => self.state = SearchState::from_checkpoint(job.checkpoint_json.as_deref()),
            Err(error) => return StopCause::from(error).end_of(None),
        }
        match cause {
            // A task that is being stopped does not wait for a login or a later time: what was found counts.
            StopCause::AwaitingLogin | StopCause::NotBefore(_) if self.cx.stop.level() == StopLevel::EndSoon => {
                self.finish(Some((ErrorCode::TaskStopped, "the task was stopped".to_owned()))).await
            }
            StopCause::Enough { code, why } if self.state.tally.pages_fetched > 0 => {
                self.finish(Some((code, why))).await
            }
            // Stopped on request: that is no failure of the search.
            StopCause::Enough { code: ErrorCode::TaskStopped, why } => {
                self.finish(Some((ErrorCode::TaskStopped, why))).await
            }
            StopCause::Enough { code, why } => JobEnd::failed_with(code, why, Retry::Never, self.output()),
            cause => cause.end_of(self.output()),
        }
    }

    fn output(&self) -> Option<String> {
        serde_json::to_string(&self.state.tally).ok()
    }

    /// Writes down how it ended, hands its claims to verification, and is done.
    async fn finish(mut self, cut_short: Option<(ErrorCode, String)>) -> JobEnd {
        match self.write_end(cut_short).await {
            Ok(end) => end,
            Err(cause) => cause.end_of(self.output()),
        }
    }

    async fn write_end(&mut self, cut_short: Option<(ErrorCode, String)>) -> Result<JobEnd, StopCause> {
        if cut_short.is_some() && self.can_do_without_model() {
            self.leave_to_embedded(self.state.clone()).await?;
        }
        self.pick_claims().await?;
        let tally = &self.state.tally;
        if cut_short.is_none() && tally.pages_fetched == 0 && tally.pages_failed > 0 {
            let why = tally.notes.join("; ");
            return Ok(JobEnd::failed_with(ErrorCode::AllFetchesFailed, why, Retry::Never, self.output()));
        }
        let mut next = self.state.clone();
        next.is_done = true;
        next.tally.pages_left = u32::try_from(next.candidates.len()).unwrap_or(u32::MAX);
        next.tally.ended_as = Some(if is_satisfied(tally.satisfaction()) {
            SearchStatus::Satisfied
        } else if self.is_exhausted {
            SearchStatus::Exhausted
        } else {
            SearchStatus::Partial
        });
        let failed = tally.engines_failed.iter().filter(|failure| failure.reason != engine_queries::NO_RESULTS);
        if failed.count() > 0 {
            next.tally.error_code = Some(ErrorCode::EngineFailed.to_string());
            next.note_always(&engine_queries::in_words(&tally.engines_failed));
        }
        if let Some((code, why)) = cut_short {
            next.tally.ended_as = Some(SearchStatus::Partial);
            next.tally.error_code = Some(code.to_string());
            next.note_always(&why);
        }
        self.record(NewEvidence::default(), next).await?;
        if self.state.tally.claims > 0 {
            self.ask_for_verification().await?;
        }
        Ok(JobEnd::Completed { output_json: self.output().unwrap_or_else(|| "{}".to_owned()) })
    }

    async fn ask_for_verification(&mut self) -> Result<(), StopCause> {
        let runtime = self.cx.runtime();
        let now = runtime.clock().now();
        let search_id = self.cx.lease.job_id.clone();
        let input = VerifyInput { search_id: search_id.clone(), is_without_model: self.state.is_without_model };
        let job = NewJob {
            id: JobId::mint(now),
            kind: JobKind::Verify,
            priority: self.cx.job.priority,
            slot: Slot::Cpu,
            input_json: serde_json::to_string(&input).unwrap_or_default(),
            cause_id: Some(search_id.to_string()),
            run_at: now,
            dedupe_key: Some(format!("verify/{search_id}")),
        };
        let request = Enqueue { task_id: Some(self.task.id.clone()), jobs: vec![job], resume_for: None, now };
        match runtime.store().run(request).await {
            Ok(_) => Ok(()),
            // A task that takes no more work: status and report say that these claims are unverified.
            Err(StoreError::Closed { .. }) => {
                let mut next = self.state.clone();
                next.tally.is_unverified = true;
                self.record(NewEvidence::default(), next).await
            }
            Err(error) => Err(error.into()),
        }
    }
}

impl StopCause {
    /// The end that this makes of a job which has nothing to finish.
    pub(super) fn end_of(self, output_json: Option<String>) -> JobEnd {
        match self {
            Self::LeaseLost | Self::Stopped => JobEnd::Cancelled { code: None, output_json: None },
            Self::Enough { code, why } => JobEnd::failed_with(code, why, Retry::Never, output_json),
            Self::Failed { code, why, retry } | Self::ModelUnavailable { code, why, retry } => {
                JobEnd::failed_with(code, why, retry, output_json)
            }
            Self::NotBefore(at) => JobEnd::Requeue { run_at: Some(at) },
            Self::AwaitingLogin => JobEnd::AwaitingAuth,
        }
    }
}

/// How often a search waits for engines that asked for a pause.
const ENGINE_WAITS_MAX: u32 = 3;

/// Notes that one search keeps at most.
const NOTES_MAX: usize = 30;
const NOTE_CHARS_MAX: usize = 300;

impl SearchState {
    pub(super) fn note(&mut self, text: &str) {
        if self.tally.notes.len() < NOTES_MAX {
            self.note_always(text);
        } else {
            self.tally.notes_dropped += 1;
        }
    }

    /// However many there are: why the search itself ended short.
    pub(super) fn note_always(&mut self, text: &str) {
        self.tally.notes.push(clip(text, NOTE_CHARS_MAX));
    }

    /// Ahead of all others, where the limit on their number does not reach it.
    pub(super) fn note_first(&mut self, text: &str) {
        self.tally.notes.insert(0, clip(text, NOTE_CHARS_MAX));
    }
}
