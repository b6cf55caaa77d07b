//! A program that can be notified of the end of its session is notified first; another is ended.

use matsu_core::clock::Timestamp;
use matsu_core::id::{AgentId, JobId, ProjectId, SessionId};
use matsu_core::principal::Principal;
use matsu_core::session::Unread;

use super::*;

fn standing(purpose: Purpose, state: SessionState, end_reason: Option<EndReason>, calls: bool) -> Standing {
    let now = Timestamp::from_millis(0);
    let session = Session {
        id: SessionId::from_text("sess_1"),
        owner: Principal::local_user(),
        agent_id: AgentId::from_text("worker"),
        project_id: ProjectId::from_text("default"),
        purpose,
        task_id: None,
        chat_id: None,
        job_id: Some(JobId::from_text("j_1")),
        run_id: None,
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
    Standing { session, unread: Unread::default() }
}

#[test]
fn a_run_that_can_be_notified_is_notified_first_and_another_is_ended() {
    use EndReason::{ClosedByPerson, Idle, LoggedOut, NotAcknowledged, Reported};
    use Purpose::{Chat, Task};
    use SessionState::{Active, Ended, Ending};
    let (options, now) = (SessionOptions::default(), Some(Duration::ZERO));
    for (purpose, state, reason, calls, expected) in [
        (Chat, Active, None, false, None),
        (Chat, Ending, Some(ClosedByPerson), false, now),
        (Chat, Ending, Some(ClosedByPerson), true, Some(options.cancel_grace)),
        (Chat, Ended, Some(Idle), true, Some(AFTER_REPORT_MAX)),
        (Chat, Ended, Some(LoggedOut), true, Some(AFTER_REPORT_MAX)),
        (Chat, Ended, Some(NotAcknowledged), true, now),
        (Task, Ended, Some(Reported), true, Some(AFTER_REPORT_MAX)),
        (Task, Ended, Some(LoggedOut), true, None),
        (Task, Ended, Some(NotAcknowledged), true, now),
    ] {
        let standing = standing(purpose, state, reason, calls);
        assert_eq!(patience(Some(&standing), &options), expected, "{purpose} {state} {reason:?} {calls}");
    }
    assert_eq!(patience(None, &options), now, "forgotten");
}

#[test]
fn an_order_that_cannot_be_delivered_ends_the_run() {
    let options = SessionOptions::default();
    for (purpose, calls, expected) in
        [(Purpose::Chat, false, Some(Duration::ZERO)), (Purpose::Chat, true, None), (Purpose::Task, false, None)]
    {
        let mut standing = standing(purpose, SessionState::Active, None, calls);
        standing.unread.interrupts = 1;
        assert_eq!(patience(Some(&standing), &options), expected, "{purpose} {calls}");
    }
}
