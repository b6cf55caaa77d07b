//! A run watches the session it works in: once that is over, its processes are too.

use std::time::Duration;

use matsu_core::change::Topic;
use matsu_core::limits::{LEAVE_MAX, SAFETY_READ_EVERY};
use matsu_core::ports::store::{SessionKey, Standing};
use matsu_core::session::{EndReason, Session, SessionState};

use crate::runtime::Runtime;
use crate::sessions::SessionOptions;

/// Returns when the run has to be ended.
pub async fn until_over(runtime: &Runtime, session: &Session) {
    let mut topics = vec![Topic::agent(&session.agent_id, &session.project_id)];
    topics.extend(session.chat_id.as_ref().map(Topic::chat));
    topics.extend(session.task_id.as_ref().map(Topic::task));
    // Before the first look, or an end in between would be slept through.
    let subscription = runtime.hub().subscribe(&topics);
    let (clock, key) = (*runtime.clock(), SessionKey::Id(session.id.clone()));
    loop {
        match runtime.plain_store().standing(&key, clock.now()).await {
            Ok(standing) => {
                if let Some(patience) = patience(standing.as_ref(), runtime.session_options()) {
                    clock.sleep(patience).await;
                    return;
                }
            }
            Err(error) => tracing::debug!(session = %session.id, %error, "a run could not look after its session"),
        }
        tokio::select! {
            biased;
            () = subscription.woken() => {}
            () = clock.sleep(SAFETY_READ_EVERY) => {}
        }
    }
}

/// How long the program still has to leave by itself. `None`: its session goes on.
fn patience(standing: Option<&Standing>, options: &SessionOptions) -> Option<Duration> {
    let Some(Standing { session, unread }) = standing else { return Some(Duration::ZERO) };
    if !session.has_called() {
        // Who makes no calls cannot be told anything.
        let is_over = session.state != SessionState::Active || unread.interrupts > 0;
        return is_over.then_some(Duration::ZERO);
    }
    match (session.state, session.end_reason) {
        (SessionState::Active, _) => None,
        (SessionState::Ending, _) => Some(options.cancel_grace),
        (SessionState::Ended, Some(EndReason::NotAcknowledged | EndReason::TakenOver | EndReason::Expired) | None) => {
            Some(Duration::ZERO)
        }
        (SessionState::Ended, Some(_)) => Some(LEAVE_MAX),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use matsu_core::clock::Timestamp;
    use matsu_core::id::{AgentId, JobId, ProjectId, SessionId};
    use matsu_core::principal::Principal;
    use matsu_core::session::{Purpose, Unread};

    fn standing(state: SessionState, end_reason: Option<EndReason>, interrupts: i64, calls: bool) -> Standing {
        let now = Timestamp::from_millis(0);
        let session = Session {
            id: SessionId::from_text("sess_1"),
            owner: Principal::local_user(),
            agent_id: AgentId::from_text("worker"),
            project_id: ProjectId::from_text("default"),
            purpose: Purpose::Chat,
            task_id: None,
            chat_id: None,
            job_id: Some(JobId::from_text("j_1")),
            mode: None,
            grants: None,
            state,
            end_reason,
            created_at: now,
            last_seen_at: if calls { now.plus(Duration::from_secs(1)) } else { now },
            expires_at: now,
            ended_at: None,
            seq: 1,
        };
        Standing { session, unread: Unread { interrupts, ..Unread::default() } }
    }

    #[test]
    fn who_can_be_told_is_told_first_and_who_cannot_is_ended() {
        use EndReason::{ClosedByPerson, Idle, NotAcknowledged, Reported};
        use SessionState::{Active, Ended, Ending};
        let (options, now) = (SessionOptions::default(), Some(Duration::ZERO));
        for (state, reason, interrupts, calls, expected) in [
            (Active, None, 0, false, None),
            (Active, None, 0, true, None),
            (Active, None, 1, false, now),
            (Active, None, 1, true, None),
            (Ending, Some(ClosedByPerson), 0, false, now),
            (Ending, Some(ClosedByPerson), 0, true, Some(options.cancel_grace)),
            (Ended, Some(NotAcknowledged), 1, true, now),
            (Ended, Some(Idle), 0, true, Some(LEAVE_MAX)),
            (Ended, Some(Reported), 0, true, Some(LEAVE_MAX)),
        ] {
            let standing = standing(state, reason, interrupts, calls);
            assert_eq!(patience(Some(&standing), &options), expected, "{state} {reason:?} {calls}");
        }
        assert_eq!(patience(None, &options), now, "forgotten");
    }
}
