//! Runs of agents: output in parts under the fence, conversations that belong to one task at a time, answers.

use std::time::Duration;

use matsu_core::error_code::ErrorCode;
use matsu_core::job::{JobEnd, JobKind, JobState};
use matsu_core::limits::{RUN_OUTPUT_BYTES_MAX, RUN_PART_BYTES_MAX};
use matsu_core::ports::store::{
    AdoptRun, AnswerQuestion, AppendOutput, CountUnfinished, ExpireTasks, ExpiryRule, InsertRun, JobUpdate, KeepWork,
    LoseRun, NoteProgress, NoteSession, OutputFrom, OutputPart, OutputPosition, OutputRange, OutputSlice, OutputStream,
    ParkForInput, ProgressNote, ReadAgentSession, ReadAnswer, ReadLeftRuns, ReadOutput, ReadOutputPosition, ReadTasks,
    SessionClaim, SessionNote, StoreError, UpdateJob,
};
use matsu_core::principal::Principal;
use matsu_core::run::{Answer, Changes, KeptWork, RunCheckpoint, RunOutput};
use matsu_core::task::{NewTask, TaskKind, TaskStatus};

use crate::harness::{TestStore, completed, lease};

fn part(start: u64, text: &str) -> OutputPart {
    OutputPart { stream: OutputStream::Result, start, text: text.to_owned() }
}

fn range(from: OutputFrom, bytes_max: usize) -> OutputRange {
    OutputRange { stream: OutputStream::Result, from, bytes_max }
}

fn run(t: &TestStore) -> NewTask {
    NewTask { jobs: vec![t.new_job(JobKind::AgentRun)], ..t.new_task(TaskKind::Agent) }
}

fn claim(name: &str, agent: &str, resume: bool) -> Option<SessionClaim> {
    Some(SessionClaim { name: name.to_owned(), agent: agent.to_owned(), directory: "/ws".to_owned(), resume })
}

pub async fn output_is_read_in_parts_from_anywhere(t: TestStore) {
    t.insert(run(&t)).await;
    let job = t.claim_one().await;
    let parts = vec![part(0, "待つ"), part(6, "abc"), part(9, "待")];
    t.store.run(AppendOutput { lease: lease(&job), parts, read_to: 0 }).await.unwrap();
    t.store.run(AppendOutput { lease: lease(&job), parts: vec![part(12, "end")], read_to: 0 }).await.unwrap();
    let read = async |from, bytes_max| {
        t.store.run(ReadOutput { job: job.id.clone(), wish: range(from, bytes_max) }).await.unwrap()
    };
    let all = read(OutputFrom::Byte(0), 100).await;
    assert_eq!(all, OutputSlice { text: "待つabc待end".to_owned(), start: 0, end: 15, total: 15, cut: 0 });
    let cut = read(OutputFrom::Byte(0), 4).await;
    assert_eq!((cut.text.as_str(), cut.end, cut.total), ("待", 3, 15));
    assert_eq!(read(OutputFrom::Byte(cut.end), 5).await.text, "つab");
    assert_eq!(read(OutputFrom::End, 4).await.text, "end", "half a character is none");
    assert_eq!(read(OutputFrom::Byte(99), 4).await.text, "");
    let log = OutputRange { stream: OutputStream::Log, ..range(OutputFrom::Byte(0), 9) };
    assert_eq!(t.store.run(ReadOutput { job: job.id.clone(), wish: log }).await.unwrap(), OutputSlice::default());
}

pub async fn a_long_output_keeps_its_beginning_and_its_end(t: TestStore) {
    t.insert(run(&t)).await;
    let job = t.claim_one().await;
    let (half, size) = (RUN_OUTPUT_BYTES_MAX / 2, RUN_PART_BYTES_MAX);
    // Each part begins with its own position, and there are three more than are kept.
    let parts = half / size * 2 + 3;
    let text = |n: usize| format!("{:<size$}", n * size);
    for batch in (0..parts).collect::<Vec<_>>().chunks(128) {
        let parts = batch.iter().map(|n| part((n * size) as u64, &text(*n))).collect();
        t.store.run(AppendOutput { lease: lease(&job), parts, read_to: 0 }).await.unwrap();
    }
    let total = (parts * size) as u64;
    let (gap, after) = (half as u64, total - half as u64);
    let read = async |from, bytes_max| {
        t.store.run(ReadOutput { job: job.id.clone(), wish: range(from, bytes_max) }).await.unwrap()
    };
    let head = read(OutputFrom::Byte(gap - 10), 1_000).await;
    assert_eq!((head.start, head.end, head.total, head.cut), (gap - 10, after, total, 3 * size as u64));
    assert_eq!(head.text, " ".repeat(10));
    assert!(head.marked().contains(&format!("{} bytes in the middle were not kept", 3 * size)), "{}", head.marked());
    let within = read(OutputFrom::Byte(gap + 5), 20).await;
    assert_eq!(
        (within.start, within.text.trim()),
        (after, after.to_string().as_str()),
        "a gap leads to what is after it"
    );
    assert_eq!(read(OutputFrom::Byte(head.end), 20).await, within);
    assert_eq!(read(OutputFrom::End, size).await.text.trim(), (total - size as u64).to_string());
    assert_eq!(
        t.store.run(ReadOutputPosition { job: job.id.clone(), from_attempt: job.attempt }).await.unwrap().result,
        total
    );
}

pub async fn what_is_stored_says_up_to_where_the_program_was_read(t: TestStore) {
    t.insert(run(&t)).await;
    let dead = t.second_node().await;
    let job = t.store.run(t.claim_request(&dead, 5, 5)).await.unwrap().claimed.remove(0);
    let position =
        async |attempt| t.store.run(ReadOutputPosition { job: job.id.clone(), from_attempt: attempt }).await.unwrap();
    assert_eq!(position(job.attempt).await, OutputPosition::default());
    t.store
        .run(AppendOutput { lease: lease(&job), parts: vec![part(0, "待つ"), part(6, "abc")], read_to: 20 })
        .await
        .unwrap();
    let log = OutputPart { stream: OutputStream::Log, ..part(0, "log") };
    t.store.run(AppendOutput { lease: lease(&job), parts: vec![log], read_to: 31 }).await.unwrap();
    assert_eq!(position(job.attempt).await, OutputPosition { result: 9, log: 3, read_to: 31 });

    // The node goes; the next one appends under its own attempt, and the first one cannot any more.
    t.store.reap_node(&dead, t.now()).await.unwrap();
    let next = t.store.run(AdoptRun { run: lease(&job), node: t.node.clone(), now: t.now() }).await.unwrap().unwrap();
    let late = t.store.run(AppendOutput { lease: lease(&job), parts: vec![part(9, "late")], read_to: 40 }).await;
    assert!(matches!(late, Err(StoreError::LeaseLost(_))), "{late:?}");
    t.store.run(AppendOutput { lease: next.clone(), parts: vec![part(9, "next")], read_to: 44 }).await.unwrap();
    assert_eq!(position(job.attempt).await, OutputPosition { result: 13, log: 3, read_to: 44 });
    assert_eq!(
        t.store.run(ReadOutput { job: job.id.clone(), wish: range(OutputFrom::Byte(0), 99) }).await.unwrap().text,
        "待つabcnext"
    );
    assert_eq!(position(next.attempt).await, OutputPosition { result: 13, log: 0, read_to: 44 }, "not of earlier ones");
}

pub async fn a_run_whose_host_stays_away_is_given_up(t: TestStore) {
    let task = t.insert(run(&t)).await;
    let dead = t.second_node().await;
    let job = t.store.run(t.claim_request(&dead, 5, 5)).await.unwrap().claimed.remove(0);
    t.store.reap_node(&dead, t.now()).await.unwrap();
    let left = t.store.run(ReadLeftRuns).await.unwrap().remove(0);
    assert_eq!((left.lease.clone(), left.left_at), (lease(&job), t.now()));
    assert!(
        t.store
            .run(LoseRun { run: left.lease.clone(), message: "it stays away".to_owned(), now: t.now() })
            .await
            .unwrap()
    );
    assert!(
        !t.store
            .run(LoseRun { run: left.lease.clone(), message: "it stays away".to_owned(), now: t.now() })
            .await
            .unwrap(),
        "once"
    );
    let job = t.job(&job.id).await;
    assert_eq!((job.state, job.error_code.as_deref()), (JobState::Failed, Some("HOST_LOST")));
    assert_eq!(job.error_message.as_deref(), Some("it stays away"));
    assert_eq!(t.task(&task.id).await.status, TaskStatus::Failed);
    assert_eq!(t.store.run(ReadLeftRuns).await.unwrap(), []);
    let late = t.store.run(AdoptRun { run: left.lease.clone(), node: t.node.clone(), now: t.now() }).await.unwrap();
    assert_eq!(late, None, "a host that comes back late has lost it");
}

pub async fn a_late_part_of_output_is_refused(t: TestStore) {
    t.insert(run(&t)).await;
    let job = t.claim_one().await;
    t.store.run(AppendOutput { lease: lease(&job), parts: vec![part(0, "kept")], read_to: 0 }).await.unwrap();
    t.finish(&lease(&job), completed()).await.unwrap();
    let late = t.store.run(AppendOutput { lease: lease(&job), parts: vec![part(4, "late")], read_to: 0 }).await;
    assert!(matches!(late, Err(StoreError::LeaseLost(_))), "{late:?}");
    assert_eq!(
        t.store.run(ReadOutput { job: job.id.clone(), wish: range(OutputFrom::Byte(0), 99) }).await.unwrap().text,
        "kept"
    );
}

pub async fn a_conversation_belongs_to_one_agent_and_one_task_at_a_time(t: TestStore) {
    let owner = Principal::local_user();
    let refused = async |claim| match t.store.run(InsertRun { task: run(&t), session: claim }).await {
        Err(StoreError::Refused { code: ErrorCode::SessionConflict, message }) => message,
        other => panic!("{other:?}"),
    };
    assert!(refused(claim("talk", "a", true)).await.contains("no session"));
    t.store.run(InsertRun { task: run(&t), session: claim("talk", "a", false) }).await.unwrap();
    assert!(refused(claim("talk", "a", false)).await.contains("in use"));
    let job = t.claim_one().await;
    let note = SessionNote { vendor_session: "v1".to_owned(), place: Some("p".to_owned()) };
    t.store.run(NoteSession { lease: lease(&job), note: note.clone(), now: t.now() }).await.unwrap();
    t.finish(&lease(&job), completed()).await.unwrap();
    let late = t.store.run(NoteSession { lease: lease(&job), note, now: t.now() }).await;
    assert!(matches!(late, Err(StoreError::LeaseLost(_))), "{late:?}");
    assert!(refused(claim("talk", "b", true)).await.contains("with a, not with b"));
    let elsewhere = SessionClaim { directory: "/other".to_owned(), ..claim("talk", "a", true).unwrap() };
    assert!(refused(Some(elsewhere)).await.contains("another directory"));
    assert_eq!(t.store.run(CountUnfinished).await.unwrap(), 0, "what was refused has left nothing behind");
    t.store.run(InsertRun { task: run(&t), session: claim("talk", "a", true) }).await.unwrap();
    let session =
        t.store.run(ReadAgentSession { owner: owner.clone(), name: "talk".to_owned() }).await.unwrap().unwrap();
    assert_eq!((session.vendor_session.as_deref(), session.place.as_deref()), (Some("v1"), Some("p")));
    assert_eq!(
        t.store.run(ReadAgentSession { owner: Principal::user("other"), name: "talk".to_owned() }).await.unwrap(),
        None
    );
}

pub async fn a_question_is_answered_once(t: TestStore) {
    t.insert(run(&t)).await;
    let job = t.claim_one().await;
    let answer = |option: &str| Answer { id: "q".to_owned(), option: Some(option.to_owned()), text: None };
    let early =
        t.store.run(AnswerQuestion { job: job.id.clone(), answer: answer("yes"), chat_line: None, now: t.now() }).await;
    assert!(matches!(early, Err(StoreError::Refused { .. })), "{early:?}");
    let question = r#"{"id":"q","text":"Go on?","options":["yes","no"]}"#;
    t.store.run(ParkForInput { lease: lease(&job), question_json: question.to_owned(), now: t.now() }).await.unwrap();
    let wrong = t
        .store
        .run(AnswerQuestion { job: job.id.clone(), answer: answer("perhaps"), chat_line: None, now: t.now() })
        .await;
    assert!(matches!(wrong, Err(StoreError::Refused { .. })), "{wrong:?}");
    assert_eq!(t.store.run(ReadAnswer { job: job.id.clone(), question: "q".to_owned() }).await.unwrap(), None);
    t.store
        .run(AnswerQuestion { job: job.id.clone(), answer: answer("yes"), chat_line: None, now: t.now() })
        .await
        .unwrap();
    t.store
        .run(AnswerQuestion { job: job.id.clone(), answer: answer("yes"), chat_line: None, now: t.now() })
        .await
        .unwrap();
    let other =
        t.store.run(AnswerQuestion { job: job.id.clone(), answer: answer("no"), chat_line: None, now: t.now() }).await;
    assert!(matches!(other, Err(StoreError::Refused { .. })), "{other:?}");
    assert_eq!(
        t.store.run(ReadAnswer { job: job.id.clone(), question: "q".to_owned() }).await.unwrap(),
        Some(answer("yes"))
    );
    assert_eq!(t.job(&job.id).await.state, JobState::AwaitingInput);
}

pub async fn the_work_of_a_run_whose_job_is_over_is_added_to_it_once(t: TestStore) {
    let task = t.insert(run(&t)).await.id;
    let job = t.claim_one().await;
    let work = |head: &str| KeptWork {
        agent: "script".to_owned(),
        changes: Some(Changes { head: head.to_owned(), ..Changes::default() }),
        left_work: None,
        place: Some(head.to_owned()),
    };
    assert!(
        !t.store.run(KeepWork { job: job.id.clone(), work: work("early"), now: t.now() }).await.unwrap(),
        "its own end says what it changed"
    );
    t.finish(&lease(&job), JobEnd::Cancelled { code: None, output_json: None }).await.unwrap();
    let before = t.store.run(ReadTasks(vec![task.clone()])).await.unwrap().remove(0).revision;
    assert!(t.store.run(KeepWork { job: job.id.clone(), work: work("first"), now: t.now() }).await.unwrap());
    assert!(!t.store.run(KeepWork { job: job.id.clone(), work: work("second"), now: t.now() }).await.unwrap(), "once");
    let job = t.job(&job.id).await;
    let output: RunOutput = serde_json::from_str(&job.output_json.unwrap()).unwrap();
    assert_eq!((output.agent.as_str(), output.changes.unwrap().head.as_str()), ("script", "first"));
    let checkpoint: RunCheckpoint = serde_json::from_str(&job.checkpoint_json.unwrap()).unwrap();
    assert_eq!(checkpoint.place.as_deref(), Some("first"));
    assert!(t.store.run(ReadTasks(vec![task])).await.unwrap()[0].revision > before, "those who follow it see it");
}

pub async fn a_late_note_does_not_cover_a_question(t: TestStore) {
    t.insert(run(&t)).await;
    let job = t.claim_one().await;
    let question = r#"{"id":"q","text":"Go on?","options":["yes","no"]}"#;
    t.store.run(ParkForInput { lease: lease(&job), question_json: question.to_owned(), now: t.now() }).await.unwrap();
    let notes = [ProgressNote { lease: lease(&job), progress_json: "\"said before\"".to_owned() }];
    assert_eq!(
        t.store.run(NoteProgress { notes: notes.to_vec(), now: t.now() }).await.unwrap(),
        [],
        "its lease is its own"
    );
    let update = JobUpdate::Progress("\"said before\"".to_owned());
    t.store.run(UpdateJob { lease: lease(&job), update, now: t.now() }).await.unwrap();
    assert_eq!(t.job(&job.id).await.progress_json.as_deref(), Some(question));
    let yes = Answer { id: "q".to_owned(), option: Some("yes".to_owned()), text: None };
    t.store
        .run(AnswerQuestion { job: job.id.clone(), answer: yes.clone(), chat_line: None, now: t.now() })
        .await
        .unwrap();
}

pub async fn what_a_run_said_goes_with_its_task(t: TestStore) {
    t.insert(run(&t)).await;
    let job = t.claim_one().await;
    t.store.run(AppendOutput { lease: lease(&job), parts: vec![part(0, "said")], read_to: 0 }).await.unwrap();
    t.finish(&lease(&job), completed()).await.unwrap();
    let now = t.pass(Duration::from_secs(8 * 86_400));
    let rule =
        ExpiryRule { now, waits_read_before: now, finished_before: now, waits_before: now, tombstones_before: now };
    assert_eq!(t.store.run(ExpireTasks { rule, rows_max: 10 }).await.unwrap().tasks.len(), 1);
    assert_eq!(
        t.store.run(ReadOutput { job: job.id.clone(), wish: range(OutputFrom::Byte(0), 99) }).await.unwrap(),
        OutputSlice::default()
    );
}
