//! What the end of a run makes of its job: done, failed, put off, or begun again in its conversation.

use std::sync::Arc;

use matsu_core::clock::Timestamp;
use matsu_core::confinement::Confinement;
use matsu_core::error_code::ErrorCode;
use matsu_core::id::TaskId;
use matsu_core::job::end::pause_before_retry;
use matsu_core::job::{JobEnd, Retry};
use matsu_core::limits::{QUOTA_PAUSE, QUOTA_PAUSE_MAX, QUOTA_WAITS_MAX, RUN_RESTARTS_MAX};
use matsu_core::notify::{NoticeEvent, quota_key};
use matsu_core::ports::agent::{AgentHost, OnRestart, RunEnd, Verdict};
use matsu_core::ports::store::{AddNotice, KeepWork, NoteSpent, OutputStream};
use matsu_core::run::{Changes, KeptWork};
use matsu_core::session::{AgentReport, Outcome};
use matsu_core::usage::Spent;

use super::Run;
use crate::agents::budget::UsedUp;
use crate::agents::fallback::{hand_over, moves_on};
use crate::runtime::context::JobContext;
use crate::stop_signal::StopLevel;

/// Files with conflict markers that an error names.
const FILES_NAMED: usize = 20;

impl Run {
    pub(super) async fn ended(mut self, end: RunEnd) -> JobEnd {
        // Together: who waits for the end waits for each write that comes before it.
        let spent = self.spent(&end);
        let store = self.cx.runtime().store().clone();
        let (said, _, noted) = tokio::join!(
            self.own.close(&self.cx),
            self.output.flush(self.reached),
            store.run(NoteSpent(spent.clone()))
        );
        super::note(&self.cx, noted);
        (self.checkpoint.begun, self.checkpoint.is_restarted) = (None, false);
        self.handle.set_processes_ended(end.processes_ended);
        self.known.exit_code = end.exit_code;
        let model = end.model.as_deref().or(self.input.model.as_deref());
        self.known.estimated_usd = self.checkpoint.estimated_usd + self.estimate(model);
        self.known.processes_ended = end.processes_ended;
        self.known.confinement = end.confinement;
        self.known.changes = end.changes;
        self.known.left_work = end.left_work;
        self.known.output_truncated = self.output.is_truncated();
        self.known.stdout_tail = end.stdout_tail;
        self.known.stderr_tail = end.stderr_tail;
        self.remember().await;
        if let Some(work) = self.kept_work().filter(|_| self.is_ending) {
            // A job that was cancelled at once is over before its run: what the run has changed is added to it.
            let now = self.cx.runtime().clock().now();
            let kept = store.run(KeepWork { job: self.cx.lease.job_id.clone(), work: work.clone(), now }).await;
            super::note(&self.cx, kept.map(drop));
        }
        let is_ended_for_it = self.used_up.is_some() && self.is_ending && self.cx.stop.level() == StopLevel::GoOn;
        let used_up = self.used_up_now().await;
        self.known.over_budget = used_up.as_ref().map(|used_up| used_up.which(self.cx.job.task_id.as_ref()));
        if let Some(said) = said {
            return self.reported(said).await;
        }
        let streams = self.agent.supports.stream;
        if let Some(used_up) = used_up
            && is_ended_for_it
            && !(streams && end.verdict == Verdict::Success)
        {
            let message = used_up.ended(self.cx.job.task_id.as_ref());
            return self.failed(ErrorCode::BudgetExhausted, message, false).await;
        }
        // A program of plain text that is asked to end may well exit with 0; that is no result.
        if self.is_ending && !(streams && end.verdict == Verdict::Success) {
            return JobEnd::Cancelled { code: None, output_json: Some(self.output_json()) };
        }
        let verdict = if self.own.must_report() { unreported(&self.input.agent, end.verdict) } else { end.verdict };
        match verdict {
            Verdict::Success => self.done().await,
            Verdict::Quota { until, message } => self.out_of_quota(until, message).await,
            Verdict::Failure { code, message, retryable } => self.failed(code, message, retryable).await,
        }
    }

    /// The limit that this run has reached, also if it ended before that was looked at.
    async fn used_up_now(&mut self) -> Option<UsedUp> {
        if self.used_up.is_none() && !self.limits.is_empty() {
            let looked = self.limits.used_up(self.cx.runtime()).await;
            self.used_up = looked.inspect_err(|error| tracing::debug!(%error, "budgets could not be read")).ok()?;
        }
        self.used_up.take()
    }

    fn kept_work(&self) -> Option<KeptWork> {
        let (agent, place) = (self.known.agent.clone(), self.live.place());
        let (changes, left_work) = (self.known.changes.clone(), self.known.left_work.clone());
        let has_work = changes.is_some() || left_work.is_some();
        has_work.then_some(KeptWork { agent, changes, left_work, place })
    }

    /// What this run goes into the sums of `matsu usage` with. One that is taken over has the same id, and is counted
    /// once.
    fn spent(&self, end: &RunEnd) -> Spent {
        let session = self.own.session();
        Spent {
            run_id: self.own.run_id().clone(),
            owner: session.owner.clone(),
            at: end.ended_at.map_or_else(|| self.cx.runtime().clock().now(), Timestamp::from_millis),
            agent: self.input.agent.clone(),
            model: end.model.clone().or_else(|| self.input.model.clone()),
            project: self.input.directory.clone(),
            usage: self.used,
        }
    }

    /// The agent has said itself how its task went; that decides, whatever its program's end looks like.
    async fn reported(mut self, said: AgentReport) -> JobEnd {
        let summary = said.summary.unwrap_or_default();
        match said.outcome {
            Outcome::Success => {
                if self.output.result_bytes() == 0 {
                    self.output.push(OutputStream::Result, &summary);
                    self.output.flush(self.reached).await;
                }
                self.done().await
            }
            Outcome::Failed => {
                let message = if summary.is_empty() { "the agent reported failure".to_owned() } else { summary };
                let code = ErrorCode::AgentReportedFailure.to_string();
                JobEnd::Failed { code, message, retry: Retry::Never, output_json: Some(self.output_json()) }
            }
            // The task is held back by now; when it is resumed, the conversation goes on.
            Outcome::Blocked => {
                let code = Some(ErrorCode::TaskPaused.to_string());
                JobEnd::Cancelled { code, output_json: Some(self.output_json()) }
            }
        }
    }

    /// The agent says that it is done. Without a check that is the end; with one the check decides.
    async fn done(mut self) -> JobEnd {
        self.known.empty = self.output.result_bytes() == 0;
        // The reason of a success is not shown.
        self.known.stdout_tail = String::new();
        self.known.stderr_tail = String::new();
        let resolved = self.known.changes.clone().filter(|_| self.input.resolves.is_some());
        match conflicts_left(&self.host, resolved).await {
            Ok(files) if files.is_empty() => {}
            Ok(files) => {
                let message = format!("{} left conflict markers in {}", self.input.agent, files.join(", "));
                return self.unproven(ErrorCode::ConflictsLeft, message).await;
            }
            Err(why) => {
                let message = format!("could not check whether the conflicts are resolved: {why}");
                return self.unproven(ErrorCode::ConflictsLeft, message).await;
            }
        }
        if self.input.check.is_none() {
            return JobEnd::Completed { output_json: self.output_json() };
        }
        match &self.known.changes {
            Some(changes) if changes.base != changes.head => {}
            Some(_) => {
                let message = format!("{} ended successfully but changed no file", self.input.agent);
                return self.unproven(ErrorCode::NoChange, message).await;
            }
            None => {
                let why = self.known.left_work.as_ref().map_or("it has no commit", |left| left.why.as_str());
                let message = format!("the work could not be checked: {why}");
                return self.unproven(ErrorCode::CheckFailed, message).await;
            }
        }
        self.checkpoint.to_check = Some(Box::new(self.known.clone()));
        self.keep_spent();
        self.checkpoint.done_attempt = self.cx.lease.attempt;
        self.checkpoint.feedback = None;
        if let Err(error) = self.cx.keep(&self.checkpoint, &self.known).await {
            return self.unproven(ErrorCode::CheckFailed, format!("the check could not be started: {error}")).await;
        }
        self.host.forget(&self.cx.lease.job_id).await;
        JobEnd::Requeue { run_at: None }
    }

    async fn unproven(mut self, code: ErrorCode, message: String) -> JobEnd {
        if self.moved_on(&message, self.checkpoint.rounds).await {
            return JobEnd::Requeue { run_at: None };
        }
        let output_json = Some(self.output_json());
        JobEnd::Failed { code: code.to_string(), message, retry: Retry::Never, output_json }
    }

    /// Leaves the work to the next agent of the list, if there is one.
    async fn moved_on(&mut self, why: &str, checks: u32) -> bool {
        if !hand_over(&self.input, &mut self.checkpoint, &self.known, why, checks) {
            return false;
        }
        self.checkpoint.done_attempt = self.cx.lease.attempt;
        let kept = self.cx.keep(&self.checkpoint, &self.known).await;
        if kept.is_ok() {
            self.host.forget(&self.cx.lease.job_id).await;
        }
        kept.is_ok()
    }

    /// What comes next counts from here.
    fn keep_spent(&mut self) {
        (self.checkpoint.spent, self.checkpoint.estimated_usd) = (self.known.usage, self.known.estimated_usd);
    }

    async fn out_of_quota(mut self, until: Option<Timestamp>, message: String) -> JobEnd {
        let known_until = until.unwrap_or_else(|| self.cx.runtime().clock().now().plus(QUOTA_PAUSE_MAX));
        self.known.quota_until = Some(known_until.as_millis());
        if self.moved_on(&message, self.checkpoint.rounds).await {
            return JobEnd::Requeue { run_at: None };
        }
        if !self.agent.supports.resume || self.checkpoint.vendor_session.is_none() {
            return self.failed(ErrorCode::AgentQuota, message, true).await;
        }
        let until = match until {
            Some(until) => until,
            None if self.checkpoint.quota_waits >= QUOTA_WAITS_MAX => {
                let message = format!("{message} (tried again {QUOTA_WAITS_MAX} times)");
                return self.failed(ErrorCode::AgentQuota, message, true).await;
            }
            // The vendor does not say when: each pause is longer than the one before.
            None => {
                let pause = QUOTA_PAUSE.saturating_mul(1 << self.checkpoint.quota_waits.min(10)).min(QUOTA_PAUSE_MAX);
                self.checkpoint.quota_waits += 1;
                self.cx.runtime().clock().now().plus(pause)
            }
        };
        self.checkpoint.quota_until = Some(until.as_millis());
        self.keep_spent();
        let checkpoint = serde_json::json!(self.checkpoint);
        if self.cx.checkpoint(&checkpoint).await.is_err() {
            return self.failed(ErrorCode::AgentQuota, message, true).await;
        }
        self.cx.last_progress(&format!("out of quota until {until}: {message}")).await;
        self.host.forget(&self.cx.lease.job_id).await;
        notify_of_quota(&self.cx, until).await;
        JobEnd::Requeue { run_at: Some(until) }
    }

    async fn failed(mut self, code: ErrorCode, message: String, retryable: bool) -> JobEnd {
        if code == ErrorCode::AgentQuota && self.known.quota_until.is_none() {
            self.known.quota_until = Some(self.cx.runtime().clock().now().plus(QUOTA_PAUSE_MAX).as_millis());
        }
        if code == ErrorCode::MachineRestarted && self.can_resume() {
            self.checkpoint.machine_restarts += 1;
            self.checkpoint.is_restarted = true;
            if let Some(answered) = self.answered.take() {
                let feedback = format!(
                    "The machine was restarted while you worked. {answered}. Check what is done already, then continue."
                );
                self.checkpoint.feedback = Some(feedback);
            }
            self.keep_spent();
            let checkpoint = serde_json::json!(self.checkpoint);
            if self.cx.checkpoint(&checkpoint).await.is_ok() {
                self.host.forget(&self.cx.lease.job_id).await;
                return JobEnd::Requeue { run_at: None };
            }
        }
        if retryable && self.checkpoint.transient_failures < self.agent.retries {
            self.checkpoint.transient_failures += 1;
            self.keep_spent();
            let pause = pause_before_retry(self.checkpoint.transient_failures);
            let checkpoint = serde_json::json!(self.checkpoint);
            if self.cx.checkpoint(&checkpoint).await.is_ok() {
                self.host.forget(&self.cx.lease.job_id).await;
                return JobEnd::Requeue { run_at: Some(self.cx.runtime().clock().now().plus(pause)) };
            }
        }
        if moves_on(code) && self.moved_on(&message, self.checkpoint.rounds).await {
            return JobEnd::Requeue { run_at: None };
        }
        self.known.retryable = retryable;
        let output_json = Some(self.output_json());
        let message = match &self.cx.job.task_id {
            Some(task) if matches!(code, ErrorCode::SupervisorLost | ErrorCode::MachineRestarted) => {
                format!("{message}. To go on from there: {}", go_on_command(task))
            }
            _ => message,
        };
        JobEnd::Failed { code: code.to_string(), message, retry: Retry::Never, output_json }
    }

    /// Whether the conversation goes on by itself after a restart of the machine. Where a process of the run may have
    /// been left, it does not.
    fn can_resume(&self) -> bool {
        self.agent.supports.resume
            && self.agent.on_machine_restart == OnRestart::Resume
            && self.known.confinement == Some(Confinement::Sealed)
            && self.checkpoint.vendor_session.is_some()
            && self.checkpoint.machine_restarts < RUN_RESTARTS_MAX
    }

    fn output_json(&self) -> String {
        serde_json::to_string(&self.known).unwrap_or_else(|_| "{}".to_owned())
    }
}

/// A run that was given a conflict is done when its markers are gone; of many files only some are named.
async fn conflicts_left(host: &Arc<dyn AgentHost>, resolved: Option<Changes>) -> Result<Vec<String>, String> {
    let Some(changes) = resolved.filter(|changes| changes.base != changes.head) else { return Ok(Vec::new()) };
    let mut files = host.conflicts_left(&changes).await?;
    if files.len() > FILES_NAMED {
        files.truncate(FILES_NAMED);
        files.push("and more".to_owned());
    }
    Ok(files)
}

/// A person may want to know. The run waits all the same if the store refuses.
async fn notify_of_quota(cx: &JobContext, until: Timestamp) {
    let Some(task) = &cx.job.task_id else { return };
    let (key, now) = (quota_key(&cx.lease.job_id, until), cx.runtime().clock().now());
    if let Err(error) = cx
        .runtime()
        .store()
        .run(AddNotice { task: task.clone(), event: NoticeEvent::Quota, key: key.clone(), now })
        .await
    {
        tracing::warn!(%error, %task, "the notice about a quota could not be stored");
    }
}

/// What a person types to go on with a run that something else has ended.
pub fn go_on_command(task: &TaskId) -> String {
    format!("matsu retry --continue {task}")
}

/// A run that had to report and did not has failed; why its program ended may say more. One that something else has
/// ended could not report.
fn unreported(agent: &str, verdict: Verdict) -> Verdict {
    if let Verdict::Failure { code, .. } = &verdict
        && matches!(
            code,
            ErrorCode::MachineRestarted
                | ErrorCode::SupervisorLost
                | ErrorCode::AgentStartFailed
                | ErrorCode::JobTimeout
        )
    {
        return verdict;
    }
    let code = ErrorCode::AgentNoReport;
    let message = format!("{agent} has ended without calling report_completed");
    match verdict {
        Verdict::Success => Verdict::Failure { code, message, retryable: false },
        Verdict::Failure { message: why, retryable, .. } => {
            Verdict::Failure { code, message: format!("{message}: {why}"), retryable }
        }
        quota @ Verdict::Quota { .. } => quota,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(code: ErrorCode) -> Verdict {
        Verdict::Failure { code, message: "why".to_owned(), retryable: false }
    }

    #[test]
    fn what_something_else_has_ended_keeps_its_cause_although_it_had_to_report() {
        for code in [ErrorCode::MachineRestarted, ErrorCode::SupervisorLost, ErrorCode::JobTimeout] {
            assert_eq!(unreported("agent", failure(code)), failure(code));
        }
        let Verdict::Failure { code, message, .. } = unreported("agent", failure(ErrorCode::AgentExit)) else {
            panic!("it is no failure")
        };
        assert_eq!((code, message.ends_with(": why")), (ErrorCode::AgentNoReport, true), "{message}");
    }
}
