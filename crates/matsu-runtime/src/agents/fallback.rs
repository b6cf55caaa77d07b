//! The next agent of a list takes over when one is not logged in, out of quota, not to be had, or did not pass its check.
//! It gets the task, the branch as it stands, and what failed.

use matsu_core::error_code::ErrorCode;
use matsu_core::job::end::clip;
use matsu_core::run::{RunCheckpoint, RunInput, RunOutput, Tried};

/// Characters of a reason.
const WHY_CHARS_MAX: usize = 500;

/// Whether another agent may do what one failed to do so. What is lost with a machine, and what an agent reports itself,
/// is not tried again elsewhere.
#[must_use]
pub fn moves_on(code: ErrorCode) -> bool {
    matches!(
        code,
        ErrorCode::AgentQuota
            | ErrorCode::AgentStalled
            | ErrorCode::AgentApiError
            | ErrorCode::AgentExit
            | ErrorCode::AgentNoResult
            | ErrorCode::AgentNoReport
            | ErrorCode::AgentTurnLimit
            | ErrorCode::AgentStartFailed
            | ErrorCode::AgentNotInstalled
            | ErrorCode::CheckFailed
            | ErrorCode::NoChange
            | ErrorCode::ConflictsLeft
    )
}

/// Prepares the checkpoint for the next agent. `false`: there is none left. `checks` is how often this one was checked.
#[must_use]
pub fn hand_over(input: &RunInput, checkpoint: &mut RunCheckpoint, known: &RunOutput, why: &str, checks: u32) -> bool {
    if checkpoint.tried.len() >= input.fallback.len() {
        return false;
    }
    let mut tried = std::mem::take(&mut checkpoint.tried);
    let (agent, quota_until) = (input.agent.clone(), known.quota_until);
    tried.push(Tried { agent, why: clip(why, WHY_CHARS_MAX), quota_until });
    *checkpoint = RunCheckpoint {
        place: checkpoint.place.take(),
        relocated: checkpoint.relocated.take(),
        spent: known.usage.or(checkpoint.spent),
        estimated_usd: known.estimated_usd.max(checkpoint.estimated_usd),
        rounds_before: checkpoint.rounds_before + checks,
        feedback: Some(words(input, known, why)),
        tried,
        ..RunCheckpoint::default()
    };
    true
}

/// What the next agent reads.
fn words(input: &RunInput, known: &RunOutput, why: &str) -> String {
    let changed = known.changes.as_ref().filter(|changes| changes.base != changes.head);
    let files = match changed {
        Some(changes) => format!(
            "What it changed is committed here; read it before you go on (git diff {} {}).",
            changes.base, changes.head
        ),
        None => "It has changed no file.".to_owned(),
    };
    let output = known.check_output.trim_end();
    let output =
        if output.is_empty() { String::new() } else { format!("\nThe end of the check's output:\n\n{output}\n") };
    format!(
        "{} worked on this task before you and did not finish it: {why}. {files}{output}\nThe task:\n\n{}",
        input.agent, input.message
    )
}
