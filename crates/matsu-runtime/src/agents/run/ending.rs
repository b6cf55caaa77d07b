//! What the end of a run makes of its job: done, failed, put off, or begun again in its conversation.

use matsu_core::clock::Timestamp;
use matsu_core::error_code::ErrorCode;
use matsu_core::id::TaskId;
use matsu_core::job::end::pause_before_retry;
use matsu_core::job::{JobEnd, Retry};
use matsu_core::limits::RUN_RESTARTS_MAX;
use matsu_core::ports::agent::{OnRestart, RunEnd, Verdict};
use matsu_core::ports::store::OutputStream;
use matsu_core::run::Confinement;
use matsu_core::session::{Outcome, Said};

use super::Run;

impl Run {
    pub(super) async fn ended(mut self, end: RunEnd) -> JobEnd {
        // Together: who waits for the end waits for each write that comes before it.
        let (said, _) = tokio::join!(self.own.close(&self.cx), self.output.flush(self.reached));
        self.seat.set_processes_ended(end.processes_ended);
        self.known.exit_code = end.exit_code;
        self.known.processes_ended = end.processes_ended;
        self.known.confinement = end.confinement;
        self.known.changes = end.changes;
        self.known.left_work = end.left_work;
        self.known.output_truncated = self.output.is_truncated();
        self.known.stdout_tail = end.stdout_tail;
        self.known.stderr_tail = end.stderr_tail;
        self.remember().await;
        if let Some(said) = said {
            return self.reported(said).await;
        }
        let streams = self.agent.supports.stream;
        // A program of plain text that is asked to end may well exit with 0; that is no result.
        if self.is_ending && !(streams && end.verdict == Verdict::Success) {
            return JobEnd::Cancelled { code: None, output_json: Some(self.output_json()) };
        }
        let verdict = if self.own.must_report() { unreported(&self.input.agent, end.verdict) } else { end.verdict };
        match verdict {
            Verdict::Success => {
                self.known.empty = self.output.result_bytes() == 0;
                // Nobody looks for the reason of a success.
                self.known.stdout_tail = String::new();
                self.known.stderr_tail = String::new();
                JobEnd::Completed { output_json: self.output_json() }
            }
            Verdict::Quota { until, message } => self.out_of_quota(until, message).await,
            Verdict::Failure { code, message, retryable } => self.failed(code, message, retryable).await,
        }
    }

    /// The agent has said itself how its task went; that decides, whatever its program's end looks like.
    async fn reported(mut self, said: Said) -> JobEnd {
        let summary = said.summary.unwrap_or_default();
        match said.outcome {
            Outcome::Success => {
                if self.output.result_bytes() == 0 {
                    self.output.push(OutputStream::Result, &summary);
                    self.output.flush(self.reached).await;
                }
                self.known.empty = self.output.result_bytes() == 0;
                self.known.stdout_tail = String::new();
                self.known.stderr_tail = String::new();
                JobEnd::Completed { output_json: self.output_json() }
            }
            Outcome::Failed => {
                let message = if summary.is_empty() { "the agent reported failure".to_owned() } else { summary };
                let code = ErrorCode::AgentReportedFailure.to_string();
                JobEnd::Failed { code, message, retry: Retry::Never, output_json: Some(self.output_json()) }
            }
            // The task is held back by now; whoever resumes it has the conversation go on.
            Outcome::Blocked => {
                let code = Some(ErrorCode::TaskPaused.to_string());
                JobEnd::Cancelled { code, output_json: Some(self.output_json()) }
            }
        }
    }

    async fn out_of_quota(mut self, until: Timestamp, message: String) -> JobEnd {
        if !self.agent.supports.resume || self.checkpoint.vendor_session.is_none() {
            return self.failed(ErrorCode::AgentQuota, message, true).await;
        }
        self.checkpoint.quota_until = Some(until.as_millis());
        let checkpoint = serde_json::json!(self.checkpoint);
        if self.cx.checkpoint(&checkpoint).await.is_err() {
            return self.failed(ErrorCode::AgentQuota, message, true).await;
        }
        self.cx.progress(&format!("out of quota until {until}: {message}")).await;
        self.host.forget(&self.cx.lease.job_id).await;
        JobEnd::Requeue { run_at: Some(until) }
    }

    async fn failed(mut self, code: ErrorCode, message: String, retryable: bool) -> JobEnd {
        if code == ErrorCode::MachineRestarted && self.can_resume() {
            self.checkpoint.machine_restarts += 1;
            let checkpoint = serde_json::json!(self.checkpoint);
            if self.cx.checkpoint(&checkpoint).await.is_ok() {
                self.host.forget(&self.cx.lease.job_id).await;
                return JobEnd::Requeue { run_at: None };
            }
        }
        if retryable && self.checkpoint.transient_failures < self.agent.retries {
            self.checkpoint.transient_failures += 1;
            let pause = pause_before_retry(self.checkpoint.transient_failures);
            let checkpoint = serde_json::json!(self.checkpoint);
            if self.cx.checkpoint(&checkpoint).await.is_ok() {
                self.host.forget(&self.cx.lease.job_id).await;
                return JobEnd::Requeue { run_at: Some(self.cx.runtime().clock().now().plus(pause)) };
            }
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

/// What a person types to go on with a run that something else has ended.
pub fn go_on_command(task: &TaskId) -> String {
    format!("matsu retry --continue {task}")
}

/// A run that had to report and did not has failed; why its program ended may say more.
fn unreported(agent: &str, verdict: Verdict) -> Verdict {
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
