//! Tables of the task's state machine.

use proptest::prelude::*;

use super::*;
use crate::clock::Timestamp;
use crate::task::{StopMode, StopReason};

const STOP: Stop =
    Stop { mode: StopMode::Graceful, reason: StopReason::UserCancelled, requested_at: Timestamp::from_millis(0) };

fn counts(queued: i64, running: i64, input: i64, completed: i64, failed: i64, cancelled: i64) -> JobCounts {
    JobCounts { queued, running, awaiting_auth: 0, awaiting_input: input, completed, failed, cancelled }
}

#[test]
fn a_terminal_status_is_never_left_and_a_block_is_not_weakened() {
    let mut illegal = Vec::new();
    for from in TaskStatus::ALL {
        for to in TaskStatus::ALL {
            if check_transition(*from, *to).is_err() {
                illegal.push((*from, *to));
            }
        }
    }
    let mut expected = vec![(TaskStatus::Blocked, TaskStatus::Paused)];
    for from in [TaskStatus::Completed, TaskStatus::Failed, TaskStatus::Cancelled] {
        expected.extend(TaskStatus::ALL.iter().filter(|to| **to != from).map(|to| (from, *to)));
    }
    assert_eq!(illegal, expected);
}

#[test]
fn jobs_decide_the_status() {
    use TaskKind::{Agent, Research};
    use TaskStatus::{Blocked, Cancelled, Completed, Failed, Finished, InputRequired, Paused, Queued, Running};
    let table = [
        ("first job starts", Agent, Queued, None, counts(1, 1, 0, 0, 0, 0), Some(Running)),
        ("last job requeued", Agent, Running, None, counts(1, 0, 0, 0, 0, 0), Some(Queued)),
        ("a question", Agent, Running, None, counts(0, 1, 1, 0, 0, 0), Some(InputRequired)),
        ("a question answered", Agent, InputRequired, None, counts(0, 1, 0, 0, 0, 0), Some(Running)),
        ("one of two agents answered", Agent, Running, None, counts(0, 0, 0, 1, 1, 0), Some(Completed)),
        ("all failed", Agent, Running, None, counts(0, 0, 0, 0, 2, 0), Some(Failed)),
        ("all cancelled", Agent, Running, None, counts(0, 0, 0, 0, 0, 1), Some(Cancelled)),
        ("no job yet", Agent, Queued, None, counts(0, 0, 0, 0, 0, 0), None),
        ("paused stays paused", Agent, Paused, None, counts(0, 0, 0, 0, 0, 1), None),
        ("blocked stays blocked", Research, Blocked, None, counts(3, 0, 0, 0, 0, 0), None),
        (
            "research that is done is finished, not ended",
            Research,
            Running,
            None,
            counts(0, 0, 0, 5, 0, 0),
            Some(Finished),
        ),
        ("failed searches are done as well", Research, Running, None, counts(0, 0, 0, 0, 1, 0), Some(Finished)),
        ("only cancelled searches", Research, Running, None, counts(0, 0, 0, 0, 0, 1), Some(Queued)),
        ("more searches", Research, Finished, None, counts(2, 0, 0, 5, 0, 0), Some(Queued)),
        ("a stop ends finished research", Research, Finished, Some(STOP), counts(0, 0, 0, 5, 0, 0), Some(Cancelled)),
        ("a stop waits for the last job", Research, Running, Some(STOP), counts(0, 1, 0, 5, 0, 0), None),
        ("a stop ends with the last job", Research, Running, Some(STOP), counts(0, 0, 0, 5, 0, 1), Some(Cancelled)),
        ("a stop ends a held task too", Research, Paused, Some(STOP), counts(0, 0, 0, 0, 0, 2), Some(Cancelled)),
        ("terminal stays", Agent, Completed, Some(STOP), counts(0, 0, 0, 0, 0, 1), None),
    ];
    for (name, kind, current, stop, counts, expected) in table {
        assert_eq!(status_from_jobs(kind, current, stop, &counts), expected, "{name}");
    }
}

proptest! {
    #[test]
    fn jobs_never_cause_an_illegal_transition(
        kind in prop::sample::select(TaskKind::ALL),
        current in prop::sample::select(TaskStatus::ALL),
        stopped: bool,
        numbers in prop::array::uniform7(0_i64..4),
    ) {
        let [queued, running, awaiting_auth, awaiting_input, completed, failed, cancelled] = numbers;
        let counts = JobCounts { queued, running, awaiting_auth, awaiting_input, completed, failed, cancelled };
        if let Some(next) = status_from_jobs(kind, current, stopped.then_some(STOP), &counts) {
            prop_assert!(check_transition(current, next).is_ok());
            prop_assert!(!next.is_terminal() || counts.unfinished() == 0, "ended with unfinished jobs");
        }
    }
}
