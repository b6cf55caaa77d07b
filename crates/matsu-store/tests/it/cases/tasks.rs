//! Tasks: stored, listed, steered, expired.

use std::collections::HashSet;
use std::time::Duration;

use matsu_core::clock::Timestamp;
use matsu_core::error_code::ErrorCode;
use matsu_core::id::TaskId;
use matsu_core::job::{JobEnd, JobKind, Retry};
use matsu_core::limits::{CHILDREN_MAX, DEPTH_MAX};
use matsu_core::page::PageRequest;
use matsu_core::ports::store::{
    CountTasks, ExpireTasks, ExpiryRule, JobFilter, JobUpdate, ListJobs, ListTasks, MarkRead, ReadTask, ReadTasks,
    SetReview, SetStatus, Steer, StopTask, StoreError, TaskFilter, TaskLookup, UpdateJob,
};
use matsu_core::principal::Principal;
use matsu_core::task::{NewTask, Review, ReviewState, StopMode, StopReason, Task, TaskKind, TaskStatus};

use crate::harness::{TestStore, lease};

pub async fn a_task_is_stored_as_it_was_given(t: TestStore) {
    let mut new = t.new_task(TaskKind::Agent);
    new.title = "待つ 🦀".to_owned();
    new.assignee = Some("worker-01".to_owned());
    new.project_id = Some("default".to_owned());
    new.config_json = r#"{"a":[1,null]}"#.to_owned();
    new.jobs = vec![t.new_job(JobKind::Noop), t.new_job(JobKind::Sleep)];
    let inserted = t.store.run(new.clone()).await.unwrap();
    let read = t.task(&new.id).await;
    assert_eq!(read, inserted.task);
    assert_eq!((read.revision, read.finished_revision, read.status), (1, 0, TaskStatus::Queued));
    assert_eq!((read.counts.queued, read.depth, read.title.as_str()), (2, 0, "待つ 🦀"));
    assert_eq!(inserted.job_ids, new.jobs.iter().map(|job| job.id.clone()).collect::<Vec<_>>());
    assert_eq!(t.job(&inserted.job_ids[1]).await.kind, JobKind::Sleep);
}

pub async fn unfinished_tasks_of_an_owner_are_counted_up_to_a_bound(t: TestStore) {
    let owner = t.new_task(TaskKind::Agent).owner;
    for _ in 0..3 {
        t.store.run(t.new_task(TaskKind::Agent)).await.unwrap();
    }
    assert_eq!(t.store.run(CountTasks { owner: owner.clone(), max: 10 }).await.unwrap(), 3);
    assert_eq!(t.store.run(CountTasks { owner: owner.clone(), max: 2 }).await.unwrap(), 2);
    assert_eq!(t.store.run(CountTasks { owner: Principal::user("unknown"), max: 10 }).await.unwrap(), 0);
    let (mode, reason) = (StopMode::Immediate, StopReason::UserCancelled);
    let one =
        t.store.run(ListTasks { filter: TaskFilter::default(), page: PageRequest::new(None, Some(1)) }).await.unwrap();
    let stop = StopTask { task_id: one.items[0].id.clone(), mode, reason, now: t.now() };
    t.store.run(stop).await.unwrap();
    assert_eq!(t.store.run(CountTasks { owner: owner.clone(), max: 10 }).await.unwrap(), 2);
}

pub async fn an_unknown_task_is_not_found(t: TestStore) {
    let unknown = TaskId::from_text("task_nope");
    assert!(matches!(t.store.run(ReadTask(unknown.clone())).await, Err(StoreError::NotFound { what: "task", .. })));
    assert_eq!(t.store.run(ReadTasks(vec![unknown.clone()])).await.unwrap(), []);
    let refused = t.try_enqueue(&unknown, vec![t.new_job(JobKind::Noop)]).await.unwrap_err();
    assert_eq!(refused.code(), ErrorCode::TaskNotFound);
}

pub async fn tasks_are_listed_newest_first_in_pages(t: TestStore) {
    let mut made = Vec::new();
    for _ in 0..5 {
        made.push(t.research().await.id);
    }
    made.reverse();
    let mut seen = Vec::new();
    let mut after = None;
    loop {
        let page = t
            .store
            .run(ListTasks { filter: TaskFilter::default(), page: PageRequest::new(after, Some(2)) })
            .await
            .unwrap();
        seen.extend(page.items.iter().map(|task| task.id.clone()));
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(seen, made);
}

pub async fn a_list_can_be_filtered(t: TestStore) {
    let mine = t.research().await;
    let mut foreign = t.new_task(TaskKind::Agent);
    foreign.owner = Principal::user("other");
    let foreign = t.insert(foreign).await;
    let list = async |filter: TaskFilter| {
        let page = t.store.run(ListTasks { filter, page: PageRequest::default() }).await.unwrap();
        page.items.into_iter().map(|task| task.id).collect::<Vec<_>>()
    };
    let all = TaskFilter::default;
    assert_eq!(list(TaskFilter { owner: Some(Principal::local_user()), ..all() }).await, [mine.id.clone()]);
    assert_eq!(list(TaskFilter { kind: Some(TaskKind::Agent), ..all() }).await, [foreign.id.clone()]);
    assert_eq!(list(TaskFilter { status: Some(TaskStatus::Running), ..all() }).await, []);
    assert_eq!(list(TaskFilter { parent: Some(mine.id.clone()), ..all() }).await, []);
    let open = TaskFilter { open_or_unread_since: Some(t.now()), ..all() };
    assert_eq!(list(open).await, [foreign.id, mine.id]);
}

pub async fn a_task_is_found_by_words_of_its_title_its_orders_and_its_results(t: TestStore) {
    let titled =
        t.insert(NewTask { title: "Mend the 100% broken_lamp".to_owned(), ..t.new_task(TaskKind::Agent) }).await;
    let mut job = t.new_job(JobKind::Noop);
    job.input_json = r#"{"message":"paint the Fence"}"#.to_owned();
    let asked = t.insert(NewTask { jobs: vec![job], ..t.new_task(TaskKind::Agent) }).await;
    let held = t.claim_one().await;
    let done = JobEnd::Completed { output_json: r#"{"result":"it is green now"}"#.to_owned() };
    t.finish(&lease(&held), done).await.unwrap();
    let found = async |words: &str| {
        let words = words.split(' ').map(str::to_owned).collect();
        let filter = TaskFilter { owner: Some(Principal::local_user()), words, ..TaskFilter::default() };
        let page = t.store.run(ListTasks { filter, page: PageRequest::default() }).await.unwrap();
        page.items.into_iter().map(|task| task.id).collect::<Vec<_>>()
    };
    assert_eq!(found("mend LAMP").await, [titled.id.clone()]);
    assert_eq!(found("fence").await, [asked.id.clone()]);
    assert_eq!(found("green paint").await, [asked.id.clone()], "each word where it is");
    assert_eq!(found("the").await, [asked.id, titled.id.clone()], "newest first");
    assert_eq!(found("fence lamp").await, []);
    assert_eq!(found("0% n_l").await, [titled.id], "these stand for themselves");
    assert_eq!(found("x% _x").await, []);
}

pub async fn a_child_is_one_deeper_and_bounded(t: TestStore) {
    let child_of = |parent: &TaskId| {
        let mut task = t.new_task(TaskKind::Agent);
        task.parent_id = Some(parent.clone());
        task
    };
    let mut parent = t.agent(1).await;
    for depth in 1..=DEPTH_MAX {
        parent = t.insert(child_of(&parent.id)).await;
        assert_eq!(parent.depth, depth);
    }
    let too_deep = t.store.run(child_of(&parent.id)).await.unwrap_err();
    assert_eq!(too_deep.code(), ErrorCode::LimitExceeded);
    let wide = t.agent(1).await;
    for _ in 0..CHILDREN_MAX {
        t.insert(child_of(&wide.id)).await;
    }
    let too_many = t.store.run(child_of(&wide.id)).await.unwrap_err();
    assert_eq!(too_many.code(), ErrorCode::LimitExceeded);
    let mut merge = t.new_task(TaskKind::Agent);
    merge.jobs = vec![t.new_job(JobKind::Merge)];
    let merge = t.insert(merge).await;
    for _ in 0..=CHILDREN_MAX {
        t.insert(child_of(&merge.id)).await;
    }
}

async fn steer(t: &TestStore, task: &TaskId, to: Steer) -> Result<matsu_core::task::Task, StoreError> {
    let request = SetStatus { task_id: task.clone(), to, by: Principal::local_user(), message: None, now: t.now() };
    t.store.run(request).await
}

pub async fn pause_holds_queued_jobs_and_resume_lets_them_go(t: TestStore) {
    let task = t.research().await;
    let id = t.enqueue(&task.id, JobKind::Search).await;
    let paused = steer(&t, &task.id, Steer::Pause).await.unwrap();
    assert_eq!(paused.status, TaskStatus::Paused);
    assert_eq!(paused.finished_revision, paused.revision);
    assert_eq!(steer(&t, &task.id, Steer::Pause).await.unwrap().revision, paused.revision, "repeating changes nothing");
    assert_eq!(t.claim(5).await, []);
    let resumed = steer(&t, &task.id, Steer::Resume).await.unwrap();
    assert_eq!(resumed.status, TaskStatus::Queued);
    assert_eq!(t.claim_one().await.id, id);
    assert_eq!(t.task(&task.id).await.status, TaskStatus::Running);
}

pub async fn a_block_is_not_weakened_to_a_pause(t: TestStore) {
    let task = t.research().await;
    steer(&t, &task.id, Steer::Block).await.unwrap();
    assert_eq!(steer(&t, &task.id, Steer::Pause).await.unwrap_err().code(), ErrorCode::IllegalTransition);
    assert_eq!(t.task(&task.id).await.status, TaskStatus::Blocked);
}

pub async fn a_resumed_wait_runs_again(t: TestStore) {
    let task = t.insert(t.new_task(TaskKind::Wait)).await;
    assert_eq!(task.status, TaskStatus::Running);
    steer(&t, &task.id, Steer::Pause).await.unwrap();
    assert_eq!(steer(&t, &task.id, Steer::Resume).await.unwrap().status, TaskStatus::Running);
}

pub async fn a_paused_agent_run_is_taken_up_again_by_a_new_job(t: TestStore) {
    let mut task = t.new_task(TaskKind::Agent);
    task.jobs = vec![t.new_job(JobKind::AgentRun)];
    let task = t.insert(task).await;
    for round in 1..=2 {
        let run = t.claim_one().await;
        let checkpoint = JobUpdate::Checkpoint(format!("session {round}"));
        t.store.run(UpdateJob { lease: lease(&run), update: checkpoint, now: t.now() }).await.unwrap();
        steer(&t, &task.id, Steer::Pause).await.unwrap();
        let paused = JobEnd::Cancelled { code: Some("TASK_PAUSED".to_owned()), output_json: None };
        t.finish(&lease(&run), paused).await.unwrap();
        assert_eq!(t.task(&task.id).await.status, TaskStatus::Paused);
        let resumed = steer(&t, &task.id, Steer::Resume).await.unwrap();
        assert_eq!((resumed.status, resumed.counts.queued), (TaskStatus::Queued, 1), "round {round}");
        let filter = JobFilter { task_id: Some(task.id.clone()), ..JobFilter::default() };
        let mut jobs =
            t.store.run(ListJobs { filter: filter.clone(), page: PageRequest::default() }).await.unwrap().items;
        let next = jobs.pop().unwrap();
        assert_eq!((next.kind, next.cause_id.as_deref()), (JobKind::AgentRun, Some(run.id.as_str())));
        assert_eq!(next.checkpoint_json, Some(format!("session {round}")), "it knows what it continues");
    }
    let last = t.claim_one().await;
    t.complete(&last).await.unwrap();
    assert_eq!(t.task(&task.id).await.status, TaskStatus::Completed);
}

pub async fn a_run_that_was_resumed_before_it_ended_goes_on(t: TestStore) {
    let mut task = t.new_task(TaskKind::Agent);
    task.jobs = vec![t.new_job(JobKind::AgentRun)];
    let task = t.insert(task).await;
    let run = t.claim_one().await;
    steer(&t, &task.id, Steer::Pause).await.unwrap();
    steer(&t, &task.id, Steer::Resume).await.unwrap();
    let paused = JobEnd::Cancelled { code: Some("TASK_PAUSED".to_owned()), output_json: None };
    t.finish(&lease(&run), paused).await.unwrap();
    let again = t.claim_one().await;
    assert_eq!((&again.id, again.attempt), (&run.id, run.attempt + 1));
    t.complete(&again).await.unwrap();
    assert_eq!(t.task(&task.id).await.status, TaskStatus::Completed);
}

pub async fn an_abandoned_wait_ends_with_its_day(t: TestStore) {
    let wait = t.insert(t.new_task(TaskKind::Wait)).await;
    t.pass(Duration::from_secs(86_300));
    t.store.run(ExpireTasks { rule: rule(&t), rows_max: 10 }).await.unwrap();
    assert_eq!(t.task(&wait.id).await.status, TaskStatus::Running);
    t.pass(Duration::from_secs(200));
    t.store.run(ExpireTasks { rule: rule(&t), rows_max: 10 }).await.unwrap();
    assert_eq!(t.task(&wait.id).await.status, TaskStatus::Completed);
}

pub fn rule(t: &TestStore) -> ExpiryRule {
    ExpiryRule {
        now: t.now(),
        waits_read_before: t.now().minus(Duration::from_secs(3_600)),
        finished_before: t.now().minus(Duration::from_secs(7 * 86_400)),
        waits_before: t.now().minus(Duration::from_secs(86_400)),
        tombstones_before: t.now().minus(Duration::from_secs(7 * 86_400)),
    }
}

pub async fn a_decision_about_changes_is_stored_seen_and_taken_back(t: TestStore) {
    let task = t.agent(2).await;
    let jobs = [t.claim_one().await, t.claim_one().await];
    for job in &jobs {
        t.complete(job).await.unwrap();
    }
    let TaskLookup::Found(ended) = t.store.run(ReadTask(task.id.clone())).await.unwrap() else { panic!("it is there") };
    let decide = |job: usize, state: Option<ReviewState>, at: i64| {
        let (job_id, now) = (jobs[job].id.clone(), Timestamp::from_millis(t.now().as_millis() + at));
        let review = state.map(|state| Review {
            job_id: job_id.clone(),
            agent: format!("agent {job}"),
            state,
            at: now,
            next_task: None,
        });
        t.store.run(SetReview { task_id: task.id.clone(), job_id, review, now })
    };
    let first = decide(0, Some(ReviewState::Discarded), 0).await.unwrap();
    assert_eq!((first.revision, first.finished_revision), (ended.revision + 1, ended.finished_revision));
    assert_eq!((first.status, first.finished_at), (ended.status, ended.finished_at));
    decide(0, Some(ReviewState::Applied), 1).await.unwrap();
    decide(1, Some(ReviewState::SentBack), 2).await.unwrap();
    let stored = t.store.run(ReadTasks(vec![task.id.clone()])).await.unwrap().remove(0);
    assert_eq!(stored.reviews.len(), 2, "one decision for each run: {stored:?}");
    assert_eq!(stored.review_of(&jobs[0].id).map(|review| review.state), Some(ReviewState::Applied));
    assert_eq!(stored.last_review().map(|review| review.state), Some(ReviewState::SentBack));
    decide(1, None, 3).await.unwrap();
    let back = decide(0, None, 4).await.unwrap();
    assert_eq!(back.reviews, [], "{back:?}");
    let unknown =
        SetReview { task_id: TaskId::from_text("task_none"), job_id: jobs[0].id.clone(), review: None, now: t.now() };
    assert!(matches!(t.store.run(unknown).await, Err(StoreError::NotFound { .. })));
}

pub async fn a_finished_agent_task_expires_with_a_tombstone(t: TestStore) {
    let read = t.agent(1).await;
    let unread = t.agent(1).await;
    let open = t.agent(1).await;
    for _ in 0..2 {
        let job = t.claim_one().await;
        t.complete(&job).await.unwrap();
    }
    t.store.run(MarkRead { ids: vec![read.id.clone(), open.id.clone()], now: t.now() }).await.unwrap();
    t.pass(Duration::from_secs(3_601));
    assert_eq!(
        t.store.run(ExpireTasks { rule: rule(&t), rows_max: 10 }).await.unwrap().tasks,
        [],
        "reading a result does not shorten its time"
    );
    t.pass(Duration::from_secs(7 * 86_400));
    let mut expired = t.store.run(ExpireTasks { rule: rule(&t), rows_max: 10 }).await.unwrap().tasks;
    expired.sort();
    let mut both = vec![read.id.clone(), unread.id.clone()];
    both.sort();
    assert_eq!(expired, both, "read or not");
    let TaskLookup::Expired { status, .. } = t.store.run(ReadTask(read.id.clone())).await.unwrap() else {
        panic!("a tombstone stands")
    };
    assert_eq!(status, TaskStatus::Completed);
    t.pass(Duration::from_secs(7 * 86_400 - 1));
    assert_eq!(t.store.run(ExpireTasks { rule: rule(&t), rows_max: 10 }).await.unwrap().tombstones, 0);
    t.pass(Duration::from_secs(2));
    assert_eq!(t.store.run(ExpireTasks { rule: rule(&t), rows_max: 10 }).await.unwrap().tombstones, 2);
    assert!(matches!(t.store.run(ReadTask(read.id.clone())).await, Err(StoreError::NotFound { .. })));
    assert_eq!(t.task(&open.id).await.status, TaskStatus::Queued, "an open task never expires");
}

pub async fn research_never_expires(t: TestStore) {
    let task = t.research().await;
    let request = matsu_core::ports::store::StopTask {
        task_id: task.id.clone(),
        mode: matsu_core::task::StopMode::Graceful,
        reason: matsu_core::task::StopReason::Completed,
        now: t.now(),
    };
    t.store.run(request).await.unwrap();
    t.store.run(MarkRead { ids: vec![task.id.clone()], now: t.now() }).await.unwrap();
    t.pass(Duration::from_secs(365 * 86_400));
    assert_eq!(t.store.run(ExpireTasks { rule: rule(&t), rows_max: 10 }).await.unwrap().tasks, []);
    assert_eq!(t.task(&task.id).await.status, TaskStatus::Completed);
}

pub async fn tombstones_go_a_few_at_a_time(t: TestStore) {
    t.agent(1).await;
    t.agent(1).await;
    t.agent(1).await;
    for job in t.claim(3).await {
        t.complete(&job).await.unwrap();
    }
    t.pass(Duration::from_secs(8 * 86_400));
    assert_eq!(t.store.run(ExpireTasks { rule: rule(&t), rows_max: 10 }).await.unwrap().tasks.len(), 3);
    t.pass(Duration::from_secs(8 * 86_400));
    let mut gone = Vec::new();
    for _ in 0..3 {
        gone.push(t.store.run(ExpireTasks { rule: rule(&t), rows_max: 2 }).await.unwrap().tombstones);
    }
    assert_eq!(gone, [2, 1, 0]);
}

pub async fn a_task_starts_when_every_task_before_it_is_over_or_one_has_failed(t: TestStore) {
    let (one, two) = (t.agent(1).await, t.agent(1).await);
    let after = |ids: &[&TaskId]| NewTask {
        jobs: vec![t.new_job(JobKind::Noop)],
        depends_on: ids.iter().map(|id| (*id).clone()).collect(),
        ..t.new_task(TaskKind::Agent)
    };
    let both = t.insert(after(&[&one.id, &two.id])).await;
    let second = t.insert(after(&[&two.id])).await;
    let unknown = TaskId::from_text("task_none");
    assert!(matches!(t.store.run(after(&[&unknown])).await, Err(StoreError::NotFound { .. })));
    let jobs = t.claim(10).await;
    assert_eq!(jobs.len(), 2, "those that wait are not claimed: {jobs:?}");
    // A pause and its end do not start it.
    for to in [Steer::Pause, Steer::Resume] {
        let by = Principal::local_user();
        let steer = SetStatus { task_id: both.id.clone(), to, by, message: None, now: t.now() };
        t.store.run(steer).await.unwrap();
    }
    assert_eq!(t.claim(10).await.len(), 0);
    let of = |task: &Task| jobs.iter().find(|job| job.task_id.as_ref() == Some(&task.id)).unwrap();
    t.complete(of(&one)).await.unwrap();
    assert_eq!(t.claim(10).await.len(), 0, "one is over, the other is not");
    t.complete(of(&two)).await.unwrap();
    let started: HashSet<_> = t.claim(10).await.into_iter().filter_map(|job| job.task_id).collect();
    assert_eq!(started, HashSet::from([both.id.clone(), second.id]));
    // What is over already is not waited for; one that fails is reason enough to look.
    let late = t.insert(after(&[&one.id])).await;
    assert_eq!(t.claim_one().await.task_id, Some(late.id));
    let (fails, goes_on) = (t.agent(1).await, t.agent(1).await);
    let waits = t.insert(after(&[&fails.id, &goes_on.id])).await;
    let jobs = t.claim(10).await;
    let failing = jobs.iter().find(|job| job.task_id.as_ref() == Some(&fails.id)).unwrap();
    let end = JobEnd::Failed { code: "X".to_owned(), message: "x".to_owned(), retry: Retry::Never, output_json: None };
    t.finish(&lease(failing), end).await.unwrap();
    assert_eq!(t.claim_one().await.task_id, Some(waits.id));
}
