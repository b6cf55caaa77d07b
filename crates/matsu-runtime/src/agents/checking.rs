//! The check of what a run has left: a second program of the same job, in an attempt of its own. Its exit code decides
//! whether the job is done; a failed check goes back into the agent's conversation while there are retries.
//!
//! That the agent has ended is in the checkpoint before the check begins, so a process that ends in between, or in the
//! middle of the check, leaves a job that the next owner checks.

use std::sync::Arc;

use sha2::{Digest, Sha256};

use matsu_core::clock::Timestamp;
use matsu_core::error_code::ErrorCode;
use matsu_core::id::RunId;
use matsu_core::job::end::clip;
use matsu_core::job::{JobEnd, Retry};
use matsu_core::limits::{CHECK_TAIL_BYTES_MAX, RUN_RESTARTS_MAX, TICK};
use matsu_core::ports::agent::{
    AgentHost, CheckOrder, Program, RunEnd, RunEvent, StartError, StartedCheck, TraceState, Verdict,
};
use matsu_core::ports::store::{OutputStream, ReadOutputPosition};
use matsu_core::receipt::{Check, Receipt};
use matsu_core::redaction;
use matsu_core::run::{RunCheckpoint, RunInput, RunOutput};

use crate::runtime::context::{JobContext, Taken};
use crate::stop_signal::StopLevel;

use super::fallback::hand_over;
use super::output::OutputWriter;
use super::run_body::{AgentRuns, outlives};

/// So much of its output stays on the disk, so that another daemon can read it from the beginning.
const KEPT_ON_DISK: u64 = 32 * 1024 * 1024;

/// Characters of the last line that progress shows.
const PROGRESS_CHARS_MAX: usize = 200;

/// A check under way.
struct Checking {
    cx: JobContext,
    host: Arc<dyn AgentHost>,
    input: RunInput,
    check: Check,
    checkpoint: RunCheckpoint,
    known: RunOutput,
    started: StartedCheck,
    hash: Sha256,
    bytes: u64,
    tail: String,
    /// Seconds that it has run.
    ran: u32,
    timed_out: bool,
    is_ending: bool,
    listens_for: StopLevel,
}

impl AgentRuns {
    pub(super) async fn check(
        &self,
        cx: &JobContext,
        input: RunInput,
        checkpoint: RunCheckpoint,
        check: Check,
        known: RunOutput,
    ) -> JobEnd {
        let started = match self.begin_check(cx, &input, &checkpoint, &check, &known).await {
            Ok(started) => started,
            Err(error) => {
                let message = format!("the check could not be started: {error}");
                return JobEnd::failed_with(
                    ErrorCode::CheckFailed,
                    message,
                    Retry::Never,
                    serde_json::to_string(&known).ok(),
                );
            }
        };
        let ran = started.live.ran_seconds();
        cx.runtime().running().set_ran(&cx.lease, ran);
        let checking = Checking {
            cx: cx.clone(),
            host: Arc::clone(&self.host),
            input,
            check,
            checkpoint,
            known,
            started,
            hash: Sha256::new(),
            bytes: 0,
            tail: String::new(),
            ran,
            timed_out: false,
            is_ending: false,
            listens_for: StopLevel::Yield,
        };
        checking.until_it_ends().await
    }

    /// The check that this job has already, if it was started; a new one otherwise.
    async fn begin_check(
        &self,
        cx: &JobContext,
        input: &RunInput,
        checkpoint: &RunCheckpoint,
        check: &Check,
        known: &RunOutput,
    ) -> Result<StartedCheck, StartError> {
        let job = &cx.lease.job_id;
        let trace = self.host.trace(job);
        let running = trace.as_ref().filter(|trace| {
            let is_this = trace.program == Program::Check && trace.attempt > checkpoint.done_attempt;
            is_this && trace.state != TraceState::NotBegun && cx.taken == Taken::TakenOver
        });
        if let Some(trace) = running {
            tracing::info!(job.id = %job, run = %trace.run_id, "a check is followed again");
            return self.host.adopt_check(&cx.lease, &trace.run_id).await;
        }
        if trace.is_some() {
            self.host.forget(job).await;
        }
        let order = CheckOrder {
            lease: cx.lease.clone(),
            run_id: RunId::mint(cx.runtime().clock().now()),
            outlives: outlives(cx),
            changes: known.changes.clone().unwrap_or_default(),
            check: check.clone(),
            tree: input.tree.clone(),
        };
        cx.progress(&format!("check: {}", check.command)).await;
        self.host.start_check(order).await
    }
}

impl Checking {
    async fn until_it_ends(mut self) -> JobEnd {
        let clock = *self.cx.runtime().clock();
        let mut tick_at = clock.instant() + TICK;
        loop {
            tokio::select! {
                biased;
                word = self.cx.stop.at_least(self.listens_for), if !self.is_ending => match word {
                    StopLevel::Shutdown if outlives(&self.cx) => return JobEnd::StillRuns,
                    // Its grace: a check that passes within it still counts.
                    StopLevel::EndSoon => self.listens_for = StopLevel::Shutdown,
                    _ => self.end(),
                },
                event = self.started.live.next() => match event {
                    RunEvent::Output(text) => self.printed(&text).await,
                    RunEvent::Ended(end) => return self.ended(*end).await,
                    RunEvent::Log(_)
                    | RunEvent::Session(_)
                    | RunEvent::Usage(_)
                    | RunEvent::Question(_)
                    | RunEvent::Passed => {}
                },
                () = clock.sleep_until(tick_at) => {
                    tick_at = clock.instant() + TICK;
                    self.ran = self.ran.saturating_add(1);
                    if self.ran > self.check.timeout_seconds && !self.is_ending && !self.timed_out {
                        self.timed_out = true;
                        self.started.live.end();
                    }
                }
            }
        }
    }

    fn end(&mut self) {
        self.is_ending = true;
        self.started.live.end();
    }

    async fn printed(&mut self, text: &str) {
        self.hash.update(text.as_bytes());
        self.bytes += text.len() as u64;
        self.tail.push_str(text);
        if self.tail.len() > 2 * CHECK_TAIL_BYTES_MAX {
            self.cut_tail();
        }
        if let Some(line) = text.lines().rev().map(str::trim).find(|line| !line.is_empty()) {
            let line = clip(&redaction::redact(line), PROGRESS_CHARS_MAX);
            self.cx.progress(&format!("check: {line}")).await;
        }
        let position = self.started.live.position();
        if position > KEPT_ON_DISK {
            self.started.live.stored(position);
        }
    }

    fn cut_tail(&mut self) {
        let from = self.tail.ceil_char_boundary(self.tail.len().saturating_sub(CHECK_TAIL_BYTES_MAX));
        self.tail.drain(..from);
    }

    async fn ended(mut self, end: RunEnd) -> JobEnd {
        let output_json = |known: &RunOutput| serde_json::to_string(known).unwrap_or_else(|_| "{}".to_owned());
        if self.is_ending {
            return JobEnd::Cancelled { code: None, output_json: Some(output_json(&self.known)) };
        }
        let lost = match &end.verdict {
            Verdict::Failure { code: ErrorCode::SupervisorLost | ErrorCode::MachineRestarted, message, .. } => {
                Some(message.clone())
            }
            _ => None,
        };
        if lost.is_some() && self.checkpoint.check_restarts < RUN_RESTARTS_MAX {
            self.checkpoint.check_restarts += 1;
            if self.go_on().await {
                return JobEnd::Requeue { run_at: None };
            }
        }
        let why = lost.or_else(|| self.why(&end));
        self.cut_tail();
        self.known.check_output = redaction::redact_cut(&self.tail);
        self.write_log(why.as_deref()).await;
        let receipt = self.receipt(&end, why.clone());
        self.known.receipt = Some(Box::new(receipt));
        let Some(why) = why else {
            self.known.check_output = String::new();
            return JobEnd::Completed { output_json: output_json(&self.known) };
        };
        if self.may_go_back() {
            self.checkpoint.rounds += 1;
            self.checkpoint.to_check = None;
            self.checkpoint.feedback = Some(feedback(&self.check, &why, &self.known.check_output));
            if self.go_on().await {
                return JobEnd::Requeue { run_at: None };
            }
        }
        let checks = self.checkpoint.rounds + 1;
        let failure = format!("the check failed: {why}");
        if self.input.verifies.is_none()
            && hand_over(&self.input, &mut self.checkpoint, &self.known, &failure, checks)
            && self.go_on().await
        {
            return JobEnd::Requeue { run_at: None };
        }
        JobEnd::failed_with(ErrorCode::CheckFailed, failure, Retry::Never, serde_json::to_string(&self.known).ok())
    }

    /// Why it did not pass.
    fn why(&self, end: &RunEnd) -> Option<String> {
        let seconds = self.check.timeout_seconds;
        match (&end.verdict, end.exit_code) {
            _ if !self.started.facts.changed_protected.is_empty() => {
                let names = self.started.facts.changed_protected.join(", ");
                Some(format!("the run changed protected files: {names}"))
            }
            _ if !self.started.facts.changed_by_setup.is_empty() => {
                let names = self.started.facts.changed_by_setup.join(", ");
                Some(format!("setup (worktree.setup) changed protected files: {names}"))
            }
            _ if self.timed_out => Some(format!("it ran longer than its limit of {seconds} s")),
            (Verdict::Success, Some(0)) => None,
            (Verdict::Failure { code: ErrorCode::JobTimeout, .. }, _) => {
                Some(format!("it ran longer than its limit of {seconds} s"))
            }
            (Verdict::Failure { message, .. } | Verdict::Quota { message, .. }, None) => Some(message.clone()),
            (_, Some(code)) => Some(format!("exit code {code}")),
            (Verdict::Success, None) => Some("it ended without an exit code".to_owned()),
        }
    }

    fn may_go_back(&self) -> bool {
        self.checkpoint.rounds < self.input.retries
            && self.input.verifies.is_none()
            && self.checkpoint.vendor_session.is_some()
    }

    /// Leaves the rest to the next attempt.
    async fn go_on(&mut self) -> bool {
        self.checkpoint.done_attempt = self.cx.lease.attempt;
        let kept = self.cx.keep(&self.checkpoint, &self.known).await;
        if kept.is_ok() {
            self.host.forget(&self.cx.lease.job_id).await;
        }
        kept.is_ok()
    }

    /// The end of its output, behind what the agent was doing.
    async fn write_log(&mut self, why: Option<&str>) {
        let store = self.cx.runtime().store();
        let stored = store
            .run(ReadOutputPosition { job: self.cx.lease.job_id.clone(), from_attempt: 0 })
            .await
            .unwrap_or_default();
        // Of a program that prints its result and nothing else the result is the log; it stays as it is.
        if stored.log == 0 {
            return;
        }
        let written = [stored.result, stored.log];
        let mut log = OutputWriter::new(self.cx.runtime().clone(), self.cx.lease.clone(), written);
        let ending = why.unwrap_or("passed");
        let text =
            format!("[check] {}\n{}\n[check] {ending}\n", self.check.command, self.known.check_output.trim_end());
        log.push(OutputStream::Log, &text);
        log.flush(stored.read_to).await;
    }

    fn receipt(&self, end: &RunEnd, why: Option<String>) -> Receipt {
        let facts = &self.started.facts;
        let changes = self.known.changes.clone().unwrap_or_default();
        let now = self.cx.runtime().clock().now();
        let ended_at = end.ended_at.map_or(now, Timestamp::from_millis);
        let seconds = ended_at.since(Timestamp::from_millis(facts.started_at)).as_secs_f64();
        let digest = self.hash.clone().finalize();
        Receipt {
            passed: why.is_none(),
            why,
            repository: changes.repository,
            base: changes.base,
            head: changes.head,
            tree: facts.tree.clone(),
            check: self.check.clone(),
            exit_code: end.exit_code,
            seconds: (seconds * 1000.0).round() / 1000.0,
            log_sha256: digest.iter().map(|byte| format!("{byte:02x}")).collect(),
            log_bytes: self.bytes,
            rounds: self.checkpoint.rounds_before + self.checkpoint.rounds + 1,
            agent: self.known.agent.clone(),
            model: self.input.model.clone(),
            usage: self.known.usage,
            confinement: facts.confinement,
            network: facts.network,
            changed_tests: facts.changed_tests.clone(),
            checked_at: now.as_millis(),
        }
    }
}

/// What the agent reads in its conversation after a failed check.
fn feedback(check: &Check, why: &str, output: &str) -> String {
    format!(
        "Your work was committed and checked in a fresh checkout, and the check failed ({why}).\nCommand: {}\nThe end of \
         its output:\n\n{}\n\nFind the cause and fix it in the files here, then end. The same check runs again after \
         that.",
        check.command,
        output.trim_end()
    )
}
