//! The end of a run: its last words, what it changed, and the verdict.

use matsu_core::confinement::Confinement;
use matsu_core::error_code::ErrorCode;
use matsu_core::ports::agent::{RunEnd, RunEvent, Verdict};

use super::super::decoders::Outcome;
use super::super::supervisor::exit_record::ExitRecord;
use super::super::supervisor::order::Supervision;
use super::super::verdict::{self, Exit};
use super::super::worktree::Closed;
use super::{CliRun, End, Reading};

impl CliRun {
    /// The result of a stream, and then the end itself.
    pub(super) async fn finish(&mut self) -> RunEvent {
        loop {
            if let Some(step) = &mut self.last_step {
                let closed = step.await;
                self.last_step = None;
                if self.worktree.is_none() {
                    return self.ended(closed);
                }
            }
            let record = self.folder.closed();
            let Some(worktree) = self.worktree.take() else {
                // An earlier daemon may have closed the tree.
                return self.ended(Closed::read(&record).unwrap_or_default());
            };
            let message = format!("{} ({})", self.definition.name, self.marker);
            self.last_step = Some(Box::pin(async move { worktree.close(&message, &record).await }));
        }
    }

    fn ended(&mut self, Closed { changes, left, is_lost }: Closed) -> RunEvent {
        if let Some(changes) = &changes {
            self.place.ended_with(changes);
        }
        let (exit, processes) = match &self.end {
            Some(End::Recorded(record)) => (Exit { code: record.code, signal: record.signal }, record.processes),
            _ => (Exit::default(), 0),
        };
        let outcome = match &mut self.reading {
            Reading::Text(_) => None,
            Reading::Stream { decoder, .. } => Some(decoder.outcome()),
        };
        let model = match &self.reading {
            Reading::Text(_) => None,
            Reading::Stream { decoder, .. } => decoder.model(),
        };
        let stderr_tail = self.stderr_tail.text();
        let verdict = match self.verdict(outcome.as_ref(), exit, &stderr_tail) {
            Verdict::Success if is_lost => lost_folder(&self.definition.name),
            verdict => verdict,
        };
        let end = RunEnd {
            exit_code: exit.code,
            verdict,
            stdout_tail: self.stdout_tail.text(),
            stderr_tail,
            processes_ended: processes,
            changes,
            confinement: Some(self.level),
            left_work: left,
            model,
            ended_at: match &self.end {
                Some(End::Recorded(record)) => Some(record.at).filter(|at| *at > 0),
                _ => None,
            },
        };
        let end = RunEvent::Ended(Box::new(end));
        match outcome {
            Some(Outcome::Success(text)) if !text.is_empty() => {
                self.events.push_back((end, self.position));
                RunEvent::Output(text)
            }
            _ => end,
        }
    }

    /// How long the supervisor let the program run.
    fn seconds_max(&self) -> Option<u32> {
        let order = std::fs::read(self.folder.order()).ok()?;
        serde_json::from_slice::<Supervision>(&order).ok()?.seconds_max
    }

    fn verdict(&self, outcome: Option<&Outcome>, exit: Exit, stderr_tail: &str) -> Verdict {
        let name = &self.definition.name;
        let failure = |code, message| Verdict::Failure { code, message, retryable: false };
        match &self.end {
            Some(End::Recorded(ExitRecord { error: Some(error), .. })) => {
                failure(ErrorCode::AgentStartFailed, format!("{name} could not be started: {error}"))
            }
            Some(End::Recorded(ExitRecord { timed_out: true, .. })) => {
                let limit = self.seconds_max().map(|seconds| format!("{seconds} s")).unwrap_or_default();
                let message = format!("timeout: {name} ran longer than its limit {limit} while no daemon ran");
                failure(ErrorCode::JobTimeout, message)
            }
            Some(End::Recorded(ExitRecord { stalled: Some(seconds), .. })) => {
                let message = format!(
                    "{name} printed nothing for {seconds} s (stall_timeout) and was ended; its earlier output is kept"
                );
                Verdict::Failure { code: ErrorCode::AgentStalled, message, retryable: true }
            }
            Some(End::Recorded(_)) => {
                let (hopeless, now) = (self.hopeless.as_deref(), self.clock.now());
                verdict::of(&self.definition, outcome, hopeless, exit, stderr_tail, now)
            }
            Some(End::Damaged(error)) => {
                failure(ErrorCode::SupervisorLost, format!("the output of {name} cannot be read: {error}"))
            }
            Some(End::Lost) if self.is_old_boot => {
                let message = format!(
                    "the machine was restarted while {name} ran; the part of its output that was written to the disk is kept"
                );
                failure(ErrorCode::MachineRestarted, message)
            }
            Some(End::Lost) | None => {
                let processes = match self.level {
                    Confinement::Sealed => "every process of the run ended with it",
                    // One that left its group and cleared its environment cannot be distinguished from others.
                    _ => "the processes of the run that could be found were ended",
                };
                let message = format!("the supervisor of {name} was killed, and {processes}; its output is kept");
                failure(ErrorCode::SupervisorLost, message)
            }
        }
    }
}

fn lost_folder(agent: &str) -> Verdict {
    let message = format!(
        "the folder of {agent} was removed or emptied while it ran, so its changes are lost; its output is kept. Start \
         it again: matsu retry"
    );
    Verdict::Failure { code: ErrorCode::AgentNoResult, message, retryable: true }
}
