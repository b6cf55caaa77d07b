//! The queue: order, deduplication, counts, parking.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use matsu_core::error_code::ErrorCode;
use matsu_core::id::JobId;
use matsu_core::job::end::Retry;
use matsu_core::job::{JobEnd, JobKind, JobState, Priority};
use matsu_core::limits::RESULT_HEAD_BYTES_MAX;
use matsu_core::page::PageRequest;
use matsu_core::ports::store::{
    Enqueue, EnqueuedJob, JobFilter, ListJobSummaries, ParkForInput, RequeueParked, ResumeFromInput, SetStatus, Steer,
    StopTask,
};
use matsu_core::principal::Principal;
use matsu_core::task::{StopMode, StopReason, TaskStatus};

use crate::harness::{TestStore, assert_lease_lost, completed, ids, lease};

pub async fn jobs_start_by_priority_then_time_then_insertion(t: TestStore) {
    let task = t.research().await;
    let mut expected = Vec::new();
    for (priority, place) in
        [(Priority::Low, 4), (Priority::Medium, 2), (Priority::High, 0), (Priority::High, 1), (Priority::Medium, 3)]
    {
        let mut job = t.new_job(JobKind::Search);
        job.priority = priority;
        expected.push((place, job.id.clone()));
        t.try_enqueue(&task.id, vec![job]).await.unwrap();
        t.pass(Duration::from_millis(5));
    }
    expected.sort();
    let expected: Vec<JobId> = expected.into_iter().map(|(_, id)| id).collect();
    let mut started = ids(&t.claim(2).await);
    started.extend(ids(&t.claim(9).await));
    assert_eq!(started, expected);
}

pub async fn one_call_keeps_its_insertion_order(t: TestStore) {
    let task = t.research().await;
    let jobs: Vec<_> = (0..30).map(|_| t.new_job(JobKind::Search)).collect();
    let expected: Vec<JobId> = jobs.iter().map(|job| job.id.clone()).collect();
    t.try_enqueue(&task.id, jobs).await.unwrap();
    assert_eq!(ids(&t.claim(30).await), expected);
}

pub async fn a_delayed_job_waits_for_its_time(t: TestStore) {
    let task = t.research().await;
    let mut job = t.new_job(JobKind::Search);
    job.run_at = t.now().plus(Duration::from_secs(10));
    let run_at = job.run_at;
    t.try_enqueue(&task.id, vec![job]).await.unwrap();
    let early = t.store.run(t.claim_request(&t.node, 1, 5)).await.unwrap();
    assert_eq!((early.claimed.len(), early.next_run_at), (0, Some(run_at)));
    t.pass(Duration::from_secs(10));
    assert_eq!(t.claim(1).await.len(), 1);
}

/// A pause of a second, and in that second the clock was set back by an hour.
pub async fn a_clock_set_back_does_not_put_a_job_off(t: TestStore) {
    let task = t.research().await;
    let mut job = t.new_job(JobKind::Search);
    job.run_at = t.now().plus(Duration::from_secs(3_601));
    t.try_enqueue(&task.id, vec![job]).await.unwrap();
    assert_eq!(t.claim(1).await.len(), 1);
}

pub async fn enqueue_is_all_or_nothing(t: TestStore) {
    let task = t.research().await;
    let twice = t.new_job(JobKind::Search);
    let broken = vec![t.new_job(JobKind::Search), twice.clone(), twice];
    assert!(t.try_enqueue(&task.id, broken).await.is_err(), "the same id twice");
    assert_eq!(t.task(&task.id).await, task);
    assert_eq!(t.claim(5).await, []);
}

pub async fn duplicates_are_named_and_not_queued(t: TestStore) {
    let task = t.research().await;
    let named = |key: &str| {
        let mut job = t.new_job(JobKind::Search);
        job.dedupe_key = Some(key.to_owned());
        job
    };
    let (a, b) = (named("a"), named("b"));
    let first = t.try_enqueue(&task.id, vec![a.clone(), b.clone(), named("a")]).await.unwrap();
    let queued = EnqueuedJob::Queued;
    assert_eq!(first.jobs, [queued(a.id.clone()), queued(b.id), EnqueuedJob::Duplicate(a.id.clone())]);
    assert_eq!(first.task.unwrap().counts.queued, 2);
    let second = t.try_enqueue(&task.id, vec![named("a")]).await.unwrap();
    assert_eq!(second.jobs, [EnqueuedJob::Duplicate(a.id)]);
    let other = t.research().await;
    assert!(matches!(t.try_enqueue(&other.id, vec![named("a")]).await.unwrap().jobs[0], EnqueuedJob::Queued(_)));
}

pub async fn a_finished_job_frees_its_dedupe_key(t: TestStore) {
    let task = t.research().await;
    for _ in 0..3 {
        let mut job = t.new_job(JobKind::Search);
        job.dedupe_key = Some("same".to_owned());
        let enqueued = t.try_enqueue(&task.id, vec![job]).await.unwrap();
        assert!(matches!(enqueued.jobs[0], EnqueuedJob::Queued(_)));
        let job = t.claim_one().await;
        t.complete(&job).await.unwrap();
    }
}

pub async fn a_closed_task_takes_no_jobs(t: TestStore) {
    for (steer, code) in [(Steer::Pause, ErrorCode::TaskPaused), (Steer::Block, ErrorCode::TaskBlocked)] {
        let task = t.research().await;
        let by = Principal::user("a person");
        let request = SetStatus { task_id: task.id.clone(), to: steer, by, message: None, now: t.now() };
        t.store.run(request).await.unwrap();
        let refused = t.try_enqueue(&task.id, vec![t.new_job(JobKind::Search)]).await.unwrap_err();
        assert_eq!(refused.code(), code);
    }
    let task = t.research().await;
    let (mode, reason) = (StopMode::Graceful, StopReason::Completed);
    t.store.run(StopTask { task_id: task.id.clone(), mode, reason, now: t.now() }).await.unwrap();
    let refused = t.try_enqueue(&task.id, vec![t.new_job(JobKind::Search)]).await.unwrap_err();
    assert_eq!(refused.code(), ErrorCode::TaskStopped);
}

pub async fn an_owner_who_enqueues_resumes_his_own_pause(t: TestStore) {
    let task = t.research().await;
    let owner = Principal::local_user();
    let pause = |by: &Principal| SetStatus {
        task_id: task.id.clone(),
        to: Steer::Pause,
        by: by.clone(),
        message: None,
        now: t.now(),
    };
    t.store.run(pause(&owner)).await.unwrap();
    let enqueue = || Enqueue {
        task_id: Some(task.id.clone()),
        jobs: vec![t.new_job(JobKind::Search)],
        resume_for: Some(owner.clone()),
        now: t.now(),
    };
    let resumed = t.store.run(enqueue()).await.unwrap().task.unwrap();
    assert_eq!((resumed.status, resumed.counts.queued), (TaskStatus::Queued, 1));
    assert_eq!(t.claim(5).await.len(), 1);
    t.store.run(pause(&Principal::user("a person"))).await.unwrap();
    assert_eq!(t.store.run(enqueue()).await.unwrap_err().code(), ErrorCode::TaskPaused);
}

pub async fn system_jobs_need_no_task(t: TestStore) {
    let job = t.new_job(JobKind::Noop);
    let request = Enqueue { task_id: None, jobs: vec![job.clone()], resume_for: None, now: t.now() };
    assert!(t.store.run(request).await.unwrap().task.is_none());
    let claimed = t.claim_one().await;
    assert_eq!(claimed.id, job.id);
    assert_eq!(t.complete(&claimed).await.unwrap(), JobState::Completed);
}

pub async fn counts_and_status_follow_the_jobs(t: TestStore) {
    let task = t.agent(3).await;
    let jobs = t.claim(2).await;
    let during = t.task(&task.id).await;
    assert_eq!((during.counts.queued, during.counts.running, during.status), (1, 2, TaskStatus::Running));
    let failed = JobEnd::Failed {
        code: "AGENT_EXIT".to_owned(),
        message: "it broke".to_owned(),
        retry: Retry::Never,
        output_json: None,
    };
    assert_eq!(t.finish(&lease(&jobs[0]), failed).await.unwrap(), JobState::Failed);
    assert_eq!(t.complete(&jobs[1]).await.unwrap(), JobState::Completed);
    let last = t.claim_one().await;
    t.finish(&lease(&last), JobEnd::Cancelled { code: None, output_json: None }).await.unwrap();
    let after = t.task(&task.id).await;
    assert_eq!((after.counts.completed, after.counts.failed, after.counts.cancelled), (1, 1, 1));
    assert_eq!((after.status, after.counts.unfinished()), (TaskStatus::Completed, 0));
    assert!(after.finished_at.is_some());
    let broken = t.job(&jobs[0].id).await;
    assert_eq!((broken.error_code.as_deref(), broken.error_message.as_deref()), (Some("AGENT_EXIT"), Some("it broke")));
    assert_eq!(t.job(&jobs[1].id).await.output_json.as_deref(), Some(r#"{"done":true}"#));
}

pub async fn revisions_grow_and_mark_what_is_worth_a_turn(t: TestStore) {
    let task = t.research().await;
    t.enqueue(&task.id, JobKind::Search).await;
    let queued = t.task(&task.id).await;
    let job = t.claim_one().await;
    let started = t.task(&task.id).await;
    t.complete(&job).await.unwrap();
    let finished = t.task(&task.id).await;
    assert_eq!((queued.revision, started.revision, finished.revision), (2, 3, 4));
    assert_eq!((queued.finished_revision, started.finished_revision, finished.finished_revision), (0, 0, 4));
}

pub async fn retries_wait_and_then_fail(t: TestStore) {
    let task = t.research().await;
    let id = t.enqueue(&task.id, JobKind::Search).await;
    let failed = || JobEnd::Failed {
        code: "PIPELINE_ERROR".to_owned(),
        message: "no luck".to_owned(),
        retry: Retry::IfAllowed,
        output_json: None,
    };
    for pause in [1, 2, 4] {
        let job = t.claim_one().await;
        assert_eq!(t.finish(&lease(&job), failed()).await.unwrap(), JobState::Queued);
        assert_eq!(t.claim(1).await, [], "not before its pause is over");
        t.pass(Duration::from_secs(pause));
    }
    let job = t.claim_one().await;
    assert_eq!(t.finish(&lease(&job), failed()).await.unwrap(), JobState::Failed);
    let failed = t.job(&id).await;
    assert_eq!((failed.failures, failed.attempt), (4, 4));
}

pub async fn parked_for_login_and_requeued(t: TestStore) {
    let task = t.research().await;
    let id = t.enqueue(&task.id, JobKind::Search).await;
    let job = t.claim_one().await;
    assert_eq!(t.finish(&lease(&job), JobEnd::AwaitingAuth).await.unwrap(), JobState::AwaitingAuth);
    let parked = t.task(&task.id).await;
    assert_eq!((parked.counts.awaiting_auth, parked.attention_revision), (1, parked.revision));
    assert_eq!(t.claim(1).await, []);
    assert_lease_lost(t.complete(&job).await);
    assert_eq!(t.store.run(RequeueParked { jobs: vec![id.clone()], now: t.now() }).await.unwrap(), [id.clone()]);
    assert_eq!(t.store.run(RequeueParked { jobs: vec![id.clone()], now: t.now() }).await.unwrap(), []);
    let again = t.claim_one().await;
    assert_eq!((again.id, again.attempt, again.failures), (id, 2, 0));
}

pub async fn a_question_frees_the_permit_and_keeps_the_lease(t: TestStore) {
    let task = t.agent(2).await;
    let claim = |t: &TestStore| t.claim_request(&t.node, 1, 1);
    let asking = t.store.run(claim(&t)).await.unwrap().claimed.pop().unwrap();
    assert_eq!(t.store.run(claim(&t)).await.unwrap().claimed, [], "the one permit is taken");
    t.store
        .run(ParkForInput { lease: lease(&asking), question_json: r#"{"text":"Allow?"}"#.to_owned(), now: t.now() })
        .await
        .unwrap();
    let waiting = t.task(&task.id).await;
    assert_eq!((waiting.status, waiting.attention_revision), (TaskStatus::InputRequired, waiting.revision));
    let other = t.store.run(claim(&t)).await.unwrap().claimed.pop().unwrap();
    assert!(
        !t.store.run(ResumeFromInput { lease: lease(&asking), permits_max: 1, now: t.now() }).await.unwrap(),
        "no permit is free"
    );
    t.complete(&other).await.unwrap();
    assert!(t.store.run(ResumeFromInput { lease: lease(&asking), permits_max: 1, now: t.now() }).await.unwrap());
    assert_eq!(t.task(&task.id).await.status, TaskStatus::Running);
    assert_eq!(t.finish(&lease(&asking), completed()).await.unwrap(), JobState::Completed);
    assert_eq!(t.task(&task.id).await.status, TaskStatus::Completed);
}

pub async fn many_claimers_never_get_the_same_job(t: TestStore) {
    let t = Arc::new(t);
    let mut all = HashSet::new();
    for _ in 0..4 {
        let task = t.research().await;
        let jobs: Vec<_> = (0..50).map(|_| t.new_job(JobKind::Search)).collect();
        all.extend(jobs.iter().map(|job| job.id.clone()));
        t.try_enqueue(&task.id, jobs).await.unwrap();
    }
    let claimers = (0..8).map(|_| {
        let t = Arc::clone(&t);
        tokio::spawn(async move {
            let mut mine = Vec::new();
            let mut idle = 0;
            while idle < 20 {
                let claimed = t.claim(3).await;
                idle = if claimed.is_empty() { idle + 1 } else { 0 };
                for job in &claimed {
                    assert_eq!(t.complete(job).await.unwrap(), JobState::Completed);
                }
                mine.extend(ids(&claimed));
            }
            mine
        })
    });
    let claimed: Vec<JobId> =
        futures_util::future::join_all(claimers).await.into_iter().flat_map(Result::unwrap).collect();
    assert_eq!(claimed.len(), 200, "each exactly once");
    assert_eq!(claimed.into_iter().collect::<HashSet<_>>(), all);
}

pub async fn kinds_that_a_node_cannot_run_are_left_alone(t: TestStore) {
    let task = t.research().await;
    let foreign = t.enqueue(&task.id, JobKind::Verify).await;
    let own = t.enqueue(&task.id, JobKind::Search).await;
    let mut late = t.new_job(JobKind::Verify);
    late.run_at = t.now().plus(Duration::from_secs(1));
    t.try_enqueue(&task.id, vec![late]).await.unwrap();
    t.pass(Duration::from_secs(2));
    let claim = async |kinds: Vec<JobKind>| {
        let mut request = t.claim_request(&t.node, 5, 9);
        request.claim.as_mut().unwrap().kinds = kinds;
        ids(&t.store.run(request).await.unwrap().claimed)
    };
    assert_eq!(claim(Vec::new()).await, []);
    assert_eq!(claim(vec![JobKind::Noop, JobKind::Search]).await, [own]);
    assert_eq!(t.job(&foreign).await.state, JobState::Queued);
    assert_eq!(claim(vec![JobKind::Verify]).await.len(), 2, "the one that waited for its time among them");
}

pub async fn a_list_leaves_large_texts_where_they_are(t: TestStore) {
    let task = t.research().await;
    let mut large = t.new_job(JobKind::Search);
    large.input_json = "i".repeat(100_000);
    t.try_enqueue(&task.id, vec![large, t.new_job(JobKind::Search)]).await.unwrap();
    let jobs = t.claim(2).await;
    let output = "待".repeat(20_000);
    t.finish(&lease(&jobs[0]), JobEnd::Completed { output_json: output.clone() }).await.unwrap();
    let filter = JobFilter { task_id: Some(task.id.clone()), ..JobFilter::default() };
    let page =
        t.store.run(ListJobSummaries { filter: filter.clone(), page: PageRequest::new(None, Some(1)) }).await.unwrap();
    let first = &page.items[0];
    assert_eq!((&first.id, first.state, page.next), (&jobs[0].id, JobState::Completed, Some(first.seq)));
    assert_eq!(first.output_head.as_deref(), Some(&output[..RESULT_HEAD_BYTES_MAX * '待'.len_utf8()]));
    assert_eq!(first.output_bytes, Some(60_000));
    let rest = t
        .store
        .run(ListJobSummaries { filter: filter.clone(), page: PageRequest::new(page.next, None) })
        .await
        .unwrap();
    let second = &rest.items[0];
    assert_eq!((second.state, &second.output_head, second.output_bytes), (JobState::Running, &None, None));
    let running = JobFilter { state: Some(JobState::Running), ..filter };
    assert_eq!(
        t.store.run(ListJobSummaries { filter: running.clone(), page: PageRequest::default() }).await.unwrap().items,
        rest.items
    );
}

pub async fn what_is_due_gets_in_line_when_a_claim_says_so(t: TestStore) {
    let task = t.research().await;
    let mut delayed = t.new_job(JobKind::Search);
    (delayed.run_at, delayed.priority) = (t.now().plus(Duration::from_secs(1)), Priority::High);
    let first = delayed.id.clone();
    t.try_enqueue(&task.id, vec![delayed]).await.unwrap();
    let second = t.enqueue(&task.id, JobKind::Search).await;
    t.pass(Duration::from_secs(2));
    let claims = async |wakes_due: bool| {
        let mut request = t.claim_request(&t.node, 1, 100);
        request.claim.iter_mut().for_each(|claim| claim.wakes_due = wakes_due);
        ids(&t.store.run(request).await.unwrap().claimed)
    };
    assert_eq!(claims(false).await, [second]);
    assert_eq!(claims(false).await, []);
    assert_eq!(claims(true).await, [first]);
}
