//! A research task as its clients see it: searches, queue, metrics, budget, needed logins, warnings.

use schemars::JsonSchema;
use serde::Serialize;

use std::collections::BTreeMap;

use matsu_core::budget::{BudgetLine, BudgetUnit};
use matsu_core::clock::Timestamp;
use matsu_core::error_code::ErrorCode;
use matsu_core::job::end::clip;
use matsu_core::job::{Job, JobState, Priority};
use matsu_core::limits::{AUTH_LISTED_MAX, SEARCHES_LISTED_MAX};
use matsu_core::ports::store::{
    AuthFilter, EvidenceTotals, ReadAuthItems, ReadBudget, ReadEvidenceTotals, ReadSearches, SearchList, SearchRow,
    SearchWish, StoreError, Unverified,
};
use matsu_core::research::address;
use matsu_core::research::auth::{AuthItem, AuthPressure};
use matsu_core::research::search::{ResearchConfig, SearchInput, SearchStatus, SearchTally};
use matsu_core::task::{StopReason, Task, TaskStatus};

use crate::runtime::Runtime;

use super::delivered::Horizon;
use super::engine_queries::NO_RESULTS;
use super::model_calls;
use super::state::{TOO_OFTEN, WITHOUT_MODEL, skipped};

/// Causes of engines without an answer that one reply lists.
const ENGINE_WARNINGS_MAX: usize = 5;

/// Sites that asked for a pause, as many as one reply lists.
const SITE_WARNINGS_MAX: usize = 5;

/// Characters of an error in a warning.
const ERROR_SHOWN_MAX: usize = 200;

/// Entries of the queue that one reply lists.
const QUEUE_LISTED_MAX: usize = 50;

#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SearchView {
    pub id: String,
    pub query: String,
    /// queued, running, satisfied, partial, exhausted, failed, cancelled, awaiting_auth
    pub status: String,
    pub pages_fetched: u32,
    pub useful_fragments: u32,
    pub harvest_rate: f64,
    pub satisfaction_score: f64,
    pub has_primary_source: bool,
    pub engines: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub engines_failed: Vec<String>,
    /// Why it failed or fell short, as a code; null if it did neither.
    pub error_code: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Pages that were not read, each with the reason; the first few, and how many more there are.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub skipped: Vec<String>,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct QueueView {
    pub depth: i64,
    pub running: i64,
    pub total: i64,
    pub items: Vec<QueueItem>,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct QueueItem {
    pub id: String,
    pub query: String,
    /// queued, running, awaiting_auth, completed, failed, cancelled
    pub status: String,
    /// high, medium, low
    pub priority: String,
    pub created_at: String,
    pub started_at: Option<String>,
    pub completed_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress: Option<String>,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Metrics {
    pub total_searches: i64,
    pub satisfied_count: i64,
    pub total_pages: i64,
    pub total_fragments: i64,
    pub total_claims: i64,
    pub elapsed_seconds: u64,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct BudgetView {
    pub pages_used: i64,
    pub pages_limit: i64,
    pub time_used_seconds: i64,
    pub time_limit_seconds: i64,
    pub remaining_percent: i64,
    /// Input and output tokens of all models together. Absent: no model was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_tokens: Option<i64>,
    /// Their cost, in the currency of the configured prices, or in dollars as the agent's program reports it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_cost: Option<f64>,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct AuthView {
    pub pending_count: usize,
    pub high_priority_count: usize,
    pub domains: Vec<String>,
    pub by_auth_type: BTreeMap<String, usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oldest_queued_at: Option<String>,
}

/// Everything a reply is made of.
pub struct ResearchView {
    pub config: ResearchConfig,
    pub list: SearchList,
    pub totals: EvidenceTotals,
    pub budget: BudgetView,
    pub logins: Vec<AuthItem>,
    /// What jobs wait for a model's quota.
    pub quota_waits: Vec<String>,
    pub now: Timestamp,
}

impl ResearchView {
    pub async fn read(runtime: &Runtime, task: &Task, horizon: &Horizon) -> Result<Self, StoreError> {
        let store = runtime.store();
        let wish = SearchWish { changed_since: horizon.at, rows_max: SEARCHES_LISTED_MAX };
        let filter = AuthFilter {
            owner: task.owner.clone(),
            task_id: Some(task.id.clone()),
            priority: None,
            rows_max: AUTH_LISTED_MAX,
        };
        Ok(Self {
            config: serde_json::from_str(&task.config_json).unwrap_or_default(),
            list: store.run(ReadSearches { task_id: task.id.clone(), wish }).await?,
            totals: store.run(ReadEvidenceTotals(task.id.clone())).await?,
            budget: BudgetView::of(&store.run(ReadBudget(task.id.clone())).await?),
            logins: store.run(ReadAuthItems(filter.clone())).await?,
            quota_waits: model_calls::quota_waits(runtime, task).await?,
            now: runtime.clock().now(),
        })
    }

    /// Searches that are news behind the horizon, and what they are remembered by.
    pub fn searches<'a>(&'a self, horizon: &'a Horizon) -> impl Iterator<Item = (&'a SearchRow, SearchStatus)> {
        let with_status = self.list.rows.iter().map(|row| (row, status_of(row)));
        with_status.filter(|(row, status)| horizon.is_news(&row.job.id, *status))
    }

    pub fn queue(&self) -> QueueView {
        let items = self.list.rows.iter().take(QUEUE_LISTED_MAX).map(|row| QueueItem::of(&row.job)).collect();
        QueueView {
            depth: self.list.count(SearchStatus::Queued),
            running: self.list.count(SearchStatus::Running),
            total: self.list.total(),
            items,
        }
    }

    pub fn metrics(&self, task: &Task) -> Metrics {
        Metrics {
            total_searches: self.list.total(),
            satisfied_count: self.list.count(SearchStatus::Satisfied),
            total_pages: self.totals.pages,
            total_fragments: self.totals.fragments,
            total_claims: self.totals.claims,
            elapsed_seconds: task.finished_at.unwrap_or(self.now).since(task.created_at).as_secs(),
        }
    }

    pub fn auth(&self) -> AuthView {
        let mut domains: Vec<String> = self.logins.iter().map(|login| login.domain.clone()).collect();
        domains.sort();
        domains.dedup();
        let mut by_auth_type = BTreeMap::new();
        for login in &self.logins {
            *by_auth_type.entry(login.auth_type.to_string()).or_default() += 1;
        }
        AuthView {
            pending_count: self.logins.len(),
            high_priority_count: self.logins.iter().filter(|login| login.priority == Priority::High).count(),
            domains,
            by_auth_type,
            oldest_queued_at: self.logins.iter().map(|login| login.created_at).min().map(|at| at.to_string()),
        }
    }

    pub fn warnings(&self, task: &Task) -> Vec<String> {
        let mut warnings = Vec::new();
        let left = self.budget.remaining_percent;
        if left < 20 {
            warnings.push(format!("[warning] only {left} % of the budget is left"));
        }
        let auth = self.auth();
        let pressure = AuthPressure { pending: auth.pending_count, high: auth.high_priority_count };
        warnings.extend(pressure.warning());
        let exhausted = self.list.count(SearchStatus::Exhausted);
        if exhausted > 0 {
            warnings.push(format!("{exhausted} searches ended because further pages had nothing new"));
        }
        warnings.extend(self.engine_warnings());
        warnings.extend(self.site_warnings());
        warnings.extend(verification_warnings(&self.list));
        warnings.extend(model_warnings(&self.list.rows));
        warnings.extend(self.quota_waits.iter().map(|line| format!("[warning] {line}")));
        if task.status == TaskStatus::InputRequired {
            warnings.push("a question waits for an answer".to_owned());
        }
        if task.stop.is_some_and(|stop| stop.reason == StopReason::BudgetExhausted) {
            warnings.push("[warning] the task was stopped because its budget was used up".to_owned());
        }
        warnings
    }

    /// Which engines gave no answer, and why; each cause once.
    fn engine_warnings(&self) -> Vec<String> {
        let tallies = self.list.rows.iter().filter_map(|row| row.tally.as_ref());
        let failures = tallies.flat_map(|tally| &tally.engines_failed).filter(|failed| failed.reason != NO_RESULTS);
        let of_engines = failures.map(|failure| format!("[warning] engine {}: {}", failure.engine, failure.reason));
        let mut seen: Vec<String> = Vec::new();
        for text in of_engines.chain(self.list.rows.iter().filter_map(without_engine)) {
            if seen.len() < ENGINE_WARNINGS_MAX && !seen.contains(&text) {
                seen.push(text);
            }
        }
        seen
    }

    /// Which sites asked for a pause, each once.
    fn site_warnings(&self) -> Vec<String> {
        let notes = self.list.rows.iter().filter_map(|row| row.tally.as_ref()).flat_map(|tally| &tally.notes);
        let mut seen: Vec<(String, String)> = Vec::new();
        for note in notes {
            let Some((url, why)) = note.split_once(TOO_OFTEN) else { continue };
            let site = address::domain_of(url).unwrap_or_default();
            if seen.len() < SITE_WARNINGS_MAX && !seen.iter().any(|(known, _)| *known == site) {
                seen.push((site, why.to_owned()));
            }
        }
        seen.into_iter()
            .map(|(site, why)| format!("[warning] {site}{TOO_OFTEN}{why}; its pages were skipped"))
            .collect()
    }

    /// What the task still waits for, in words.
    pub fn waiting_for(&self) -> Vec<String> {
        let (verify_queued, verify_running) = self.list.verifying;
        let counts = [
            (self.list.count(SearchStatus::Running), "search running", "searches running"),
            (self.list.count(SearchStatus::Queued), "search queued", "searches queued"),
            (self.list.count(SearchStatus::AwaitingAuth), "search awaiting a login", "searches awaiting a login"),
            (verify_running, "verification running", "verifications running"),
            (verify_queued, "verification queued", "verifications queued"),
            (self.list.reporting, "report being written", "reports being written"),
        ];
        let some = counts.into_iter().filter(|(count, _, _)| *count > 0);
        some.map(|(count, one, many)| format!("{count} {}", if count == 1 { one } else { many })).collect()
    }

    /// Seconds since anything changed, while nothing runs.
    pub fn idle_seconds(&self, task: &Task) -> u64 {
        if task.counts.running > 0 { 0 } else { self.now.since(task.updated_at).as_secs() }
    }
}

/// A search that no engine answered has no tally, only its error.
fn without_engine(row: &SearchRow) -> Option<String> {
    let codes = [ErrorCode::SerpSearchFailed, ErrorCode::AllEnginesBlocked].map(ErrorCode::as_str);
    let is_it = row.job.error_code.as_deref().is_some_and(|code| codes.contains(&code));
    let why = row.job.error_message.as_deref().filter(|_| is_it)?;
    Some(format!("[warning] no engine answered {:?}: {}", query_of(&row.job), clip(why, ERROR_SHOWN_MAX)))
}

/// Claims that were meant to be weighed and were not.
pub(super) fn verification_warnings(list: &SearchList) -> Vec<String> {
    let Unverified { failed, error, cancelled } = &list.unverified;
    let never_queued = list.rows.iter().filter(|row| row.tally.as_ref().is_some_and(|tally| tally.is_unverified));
    let cancelled = cancelled + i64::try_from(never_queued.count()).unwrap_or(i64::MAX);
    let why = error.as_deref().map(|error| clip(error, ERROR_SHOWN_MAX)).unwrap_or_default();
    let failed = (*failed > 0).then(|| {
        format!("[warning] {failed} verifications failed, so their claims are unverified: {why}; see `matsu doctor`")
    });
    let cancelled = (cancelled > 0).then(|| {
        format!(
            "[warning] {cancelled} verifications did not run because the task was stopped; their claims are unverified"
        )
    });
    failed.into_iter().chain(cancelled).collect()
}

/// What a model failed at, each cause once.
pub(super) fn model_warnings(searches: &[SearchRow]) -> Vec<String> {
    let notes = searches.iter().filter_map(|row| row.tally.as_ref()).flat_map(|tally| &tally.notes);
    let mut warnings: Vec<String> = Vec::new();
    for note in notes.filter(|note| note.starts_with(WITHOUT_MODEL)) {
        let warning = format!("[warning] {note}");
        if !warnings.contains(&warning) {
            warnings.push(warning);
        }
    }
    warnings.extend(dropped_passages(searches));
    warnings
}

/// Passages that a model was asked about in vain.
fn dropped_passages(searches: &[SearchRow]) -> Option<String> {
    let dropped: u32 = searches.iter().filter_map(|row| Some(row.tally.as_ref()?.passages_dropped)).sum();
    (dropped > 0).then(|| {
        format!(
            "[warning] the model's answers about {dropped} passages could not be used, so these have no claims; choose \
             another with research.model"
        )
    })
}

/// The word that research tools have for a task's status.
#[must_use]
pub fn status_word(status: TaskStatus) -> &'static str {
    match status {
        TaskStatus::Queued | TaskStatus::Running | TaskStatus::InputRequired => "exploring",
        TaskStatus::Finished => "finished",
        TaskStatus::Paused | TaskStatus::Blocked => "paused",
        TaskStatus::Completed => "completed",
        TaskStatus::Failed => "failed",
        TaskStatus::Cancelled => "cancelled",
    }
}

pub(super) fn status_of(row: &SearchRow) -> SearchStatus {
    SearchStatus::of(row.job.state, row.tally.as_ref().and_then(|tally| tally.ended_as))
}

pub(super) fn query_of(job: &Job) -> String {
    serde_json::from_str::<SearchInput>(&job.input_json).unwrap_or_default().query
}

/// Pages that were skipped, of which the status of one search lists so many.
const SKIPPED_SHOWN: usize = 3;

impl SearchView {
    pub fn of(row: &SearchRow, status: SearchStatus) -> Self {
        let none = SearchTally::default();
        let tally = row.tally.as_ref().unwrap_or(&none);
        let failures = tally.engines_failed.iter();
        let notes = (!tally.notes.is_empty() && tally.error_code.is_some()).then(|| tally.notes.join("; "));
        Self {
            id: row.job.id.to_string(),
            query: query_of(&row.job),
            status: status.to_string(),
            pages_fetched: tally.pages_fetched,
            useful_fragments: tally.useful_fragments,
            harvest_rate: tally.harvest_rate(),
            satisfaction_score: tally.satisfaction(),
            has_primary_source: tally.has_primary_source,
            engines: tally.engines.clone(),
            engines_failed: failures.map(|failure| format!("{}: {}", failure.engine, failure.reason)).collect(),
            error_code: row.job.error_code.clone().or_else(|| tally.error_code.clone()),
            error: row.job.error_message.clone().or(notes).map(|text| clip(&text, 300)),
            skipped: skipped(tally, SKIPPED_SHOWN).iter().map(|note| clip(note, 200)).collect(),
        }
    }
}

impl QueueItem {
    fn of(job: &Job) -> Self {
        let progress = job.progress_json.as_deref().filter(|_| job.state == JobState::Running);
        let progress = progress.and_then(|text| serde_json::from_str::<serde_json::Value>(text).ok());
        Self {
            id: job.id.to_string(),
            query: query_of(job),
            status: if job.state.is_held() { JobState::Running } else { job.state }.to_string(),
            priority: job.priority.to_string(),
            created_at: job.queued_at.to_string(),
            started_at: job.started_at.map(|at| at.to_string()),
            completed_at: job.finished_at.map(|at| at.to_string()),
            progress: progress.and_then(|value| value["message"].as_str().map(str::to_owned)),
        }
    }
}

impl BudgetView {
    pub(super) fn of(lines: &[BudgetLine]) -> Self {
        let line = |unit| lines.iter().find(|line| line.unit == unit).map_or((0, 0), |line| (line.used, line.limit));
        let (pages_used, pages_limit) = line(BudgetUnit::Pages);
        let (time_used_seconds, time_limit_seconds) = line(BudgetUnit::Seconds);
        let left = |used: i64, limit: i64| if limit <= 0 { 0 } else { ((limit - used).max(0) * 100) / limit };
        let remaining_percent = left(pages_used, pages_limit).min(left(time_used_seconds, time_limit_seconds));
        let used = |unit| Some(line(unit).0).filter(|used| *used > 0);
        #[expect(clippy::cast_precision_loss, reason = "a cost has few digits")]
        let model_cost = used(BudgetUnit::MicroCost).map(|micros| micros as f64 / 1e6);
        Self {
            pages_used,
            pages_limit,
            time_used_seconds,
            time_limit_seconds,
            remaining_percent,
            model_tokens: used(BudgetUnit::Tokens),
            model_cost,
        }
    }
}
