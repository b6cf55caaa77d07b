//! What a run goes on with: the conversation of an earlier one, or of its own earlier attempt.

use matsu_core::job::JobEnd;
use matsu_core::ports::agent::{PromptKind, Resume};
use matsu_core::ports::store::{ReadAgentSession, ReadOutputPosition, ReadTasks, StoreError};
use matsu_core::run::{Continues, RunCheckpoint, RunInput};

use super::run_body::store_unavailable;
use crate::runtime::context::JobContext;

/// Where the log goes on of a run that works again, after a check, a quota, an error or a restart of its machine: what it
/// did before stays to be read.
pub(super) async fn earlier_log(cx: &JobContext, checkpoint: &RunCheckpoint) -> Result<u64, JobEnd> {
    if *checkpoint == RunCheckpoint::default() {
        return Ok(0);
    }
    let stored = cx.runtime().store().run(ReadOutputPosition { job: cx.lease.job_id.clone(), from_attempt: 0 }).await;
    stored.map(|stored| stored.log).map_err(|error| store_unavailable(&error))
}

/// What the run goes on with, and what is said to it.
pub(super) async fn conversation(
    cx: &JobContext,
    input: &mut RunInput,
    checkpoint: &RunCheckpoint,
) -> Result<(Option<Resume>, PromptKind), JobEnd> {
    if let Some(session) = &checkpoint.vendor_session {
        let resume = Resume { vendor_session: session.clone(), place: checkpoint.place.clone() };
        let say = match &checkpoint.feedback {
            Some(_) => PromptKind::Feedback,
            None if checkpoint.is_restarted => PromptKind::GoOnAfterRestart,
            None => PromptKind::GoOn,
        };
        return Ok((Some(resume), say));
    }
    if !checkpoint.tried.is_empty() {
        // Another agent has begun it: a new conversation in the same files.
        let place = checkpoint.place.clone().or(input.continues.take().and_then(|continues| continues.place));
        input.continues = Some(Continues { vendor_session: None, place });
        return Ok((None, PromptKind::Feedback));
    }
    let resume = match continued(input) {
        Some(resume) => Some(resume),
        None => earlier(cx, input).await.map_err(|error| store_unavailable(&error))?,
    };
    if checkpoint.relocated.is_none() {
        return Ok((resume, PromptKind::Message));
    }
    // In a new conversation, from the last commit that is known.
    let place = checkpoint.place.clone().or(resume.and_then(|resume| resume.place));
    let place = place.or(input.continues.take().and_then(|continues| continues.place));
    input.continues = Some(Continues { vendor_session: None, place });
    Ok((None, PromptKind::BeginElsewhere))
}

/// The conversation of the earlier run that this one continues.
fn continued(input: &RunInput) -> Option<Resume> {
    let continues = input.continues.clone()?;
    Some(Resume { vendor_session: continues.vendor_session?, place: continues.place })
}

/// The conversation that the caller wants to go on with.
async fn earlier(cx: &JobContext, input: &RunInput) -> Result<Option<Resume>, StoreError> {
    if !input.resume {
        return Ok(None);
    }
    let store = cx.runtime().store();
    let ids: Vec<_> = cx.job.task_id.iter().cloned().collect();
    let Some(task) = store.run(ReadTasks(ids.clone())).await?.pop() else { return Ok(None) };
    let session = store.run(ReadAgentSession { owner: task.owner.clone(), name: input.session.clone() }).await?;
    Ok(session.and_then(|session| {
        let place = session.place;
        session.vendor_session.map(|vendor_session| Resume { vendor_session, place })
    }))
}
