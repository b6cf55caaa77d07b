//! Chats whose agent is started: one job at a time, called by a message, and nothing is lost when it dies.

use std::time::Duration;

use matsu_core::change::Topic;
use matsu_core::chat::{Chat, Sender};
use matsu_core::clock::Clock;
use matsu_core::id::{AgentId, ChatId, ProjectId, RunId, SessionId};
use matsu_core::job::{Job, JobKind, JobState, Lease};
use matsu_core::language::Language;
use matsu_core::ports::store::{
    AnswerQuestion, BeginTurn, Conversation, EndTurn, ListMessages, MessageFilter, NewSession, NoteSession,
    ParkForInput, ReadAnswer, ReadChat, ReadQuestion, ReadSession, ReleaseChats, ResumeFromInput, SessionNote, Turn,
    TurnOutcome, TurnUnderWay, WantedFor,
};
use matsu_core::principal::Principal;
use matsu_core::run::{Answer, Question};
use matsu_core::session::{EndReason, Session};
use matsu_core::slot::Slot;

use crate::harness::{TestStore, assert_lease_lost, completed, lease};

async fn chat(t: &TestStore) -> Chat {
    t.new_agent_of("worker", Some("script")).await;
    t.open_chat("worker").await.chat
}

/// Starts that can be made now.
async fn calls(t: &TestStore) -> Vec<Job> {
    let mut request = t.claim_request(&t.node, 10, 100);
    if let Some(claim) = &mut request.claim {
        claim.slot = Slot::AgentChat;
    }
    t.store.run(request).await.unwrap().claimed
}

async fn call(t: &TestStore) -> Job {
    let mut jobs = calls(t).await;
    assert_eq!(jobs.len(), 1);
    jobs.remove(0)
}

async fn turn(t: &TestStore, job: &Job) -> Option<Turn> {
    t.store.run(BeginTurn { lease: lease(job), rows_max: 10, now: t.now() }).await.unwrap()
}

async fn come(t: &TestStore, job: &Job, chat: &ChatId) -> Session {
    let id = SessionId::mint(t.now());
    let session = NewSession {
        token_hash: format!("hash of {id}"),
        id,
        owner: Principal::local_user(),
        agent_id: AgentId::from_text("worker"),
        project_id: ProjectId::from_text("default"),
        wanted: WantedFor::Chat(chat.clone()),
        listening: Vec::new(),
        job_id: Some(job.id.clone()),
        run_id: Some(RunId::mint(t.now())),
        mode: None,
        grants: None,
        now: t.now(),
        expires_at: t.now().plus(Duration::from_secs(3_600)),
    };
    t.store.run(session).await.unwrap()
}

fn answer(turn: &Turn, said: &[&str]) -> TurnOutcome {
    let last = &turn.messages.last().unwrap().message;
    TurnOutcome::Answered {
        said: said.iter().map(|said| (*said).to_owned()).collect(),
        to: last.id.clone(),
        upto_seq: last.seq,
        replied_seq: turn.chat.last_reply_seq,
        if_silent: "silent".to_owned(),
    }
}

async fn end(t: &TestStore, job: &Job, outcome: TurnOutcome) {
    t.store.run(EndTurn { lease: lease(job), outcome, now: t.now() }).await.unwrap();
}

async fn said(t: &TestStore, chat: &ChatId) -> Vec<(Sender, String)> {
    let filter = MessageFilter { chat_id: chat.clone(), after_seq: Some(0), before_seq: None, rows_max: 100 };
    let messages = t.store.run(ListMessages(filter)).await.unwrap();
    messages.into_iter().map(|message| (message.sender, message.content)).collect()
}

fn person(content: &str) -> (Sender, String) {
    (Sender::Person, content.to_owned())
}

pub async fn a_message_calls_the_agent_once_and_its_answer_acknowledges(t: TestStore) {
    let chat = chat(&t).await;
    assert_eq!(chat.connecting_since, None, "no agent is started before the first message");
    t.message(&chat.id, "one").await;
    t.message(&chat.id, "two").await;
    let jobs = calls(&t).await;
    assert_eq!(jobs.iter().map(|job| job.kind).collect::<Vec<_>>(), [JobKind::AgentChat]);
    assert!(t.store.run(ReadChat(chat.id.clone())).await.unwrap().connecting_since.is_some());
    let turn = turn(&t, &jobs[0]).await.unwrap();
    let given: Vec<_> = turn.messages.iter().map(|taken| (taken.message.seq, taken.redelivered)).collect();
    assert_eq!(given, [(1, false), (2, false)]);
    let session = come(&t, &jobs[0], &chat.id).await;
    assert_eq!(t.store.run(ReadChat(chat.id.clone())).await.unwrap().connecting_since, None, "it has come");
    t.message(&chat.id, "three").await;
    assert!(calls(&t).await.is_empty(), "it is there already");
    end(&t, &jobs[0], answer(&turn, &["first", "second"])).await;
    let after = t.store.run(ReadChat(chat.id.clone())).await.unwrap();
    assert_eq!((after.acked_seq, after.last_seq), (2, 5));
    let ended = t.store.run(ReadSession(session.id.clone())).await.unwrap();
    assert_eq!(ended.end_reason, Some(EndReason::ProcessEnded));
    let expected = [person("one"), person("two"), person("three")];
    assert_eq!(said(&t, &chat.id).await[..3], expected);
    assert_eq!(
        said(&t, &chat.id).await[3..],
        [(Sender::Agent, "first".to_owned()), (Sender::Agent, "second".to_owned())]
    );
    t.finish(&lease(&jobs[0]), completed()).await.unwrap();
    let next = calls(&t).await;
    assert_eq!(next.len(), 1, "what was said meanwhile calls it again");
    let turn = self::turn(&t, &next[0]).await.unwrap();
    assert_eq!(turn.messages.iter().map(|taken| taken.message.seq).collect::<Vec<_>>(), [3]);
    end(&t, &next[0], answer(&turn, &[])).await;
    assert_eq!(said(&t, &chat.id).await[5..], [(Sender::System, "silent".to_owned())]);
    t.finish(&lease(&next[0]), completed()).await.unwrap();
    assert!(calls(&t).await.is_empty());
}

pub async fn what_a_job_asks_is_asked_in_its_chat(t: TestStore) {
    let clock = Clock::system();
    let chat = chat(&t).await;
    t.message(&chat.id, "one").await;
    let job = call(&t).await;
    turn(&t, &job).await.unwrap();
    assert_eq!(t.store.run(ReadQuestion(chat.id.clone())).await.unwrap(), None);
    let question = Question { id: "q1".to_owned(), text: "Go on?".to_owned(), options: vec!["yes".to_owned()] };
    let subscription = t.store.hub().subscribe(&[Topic::chat(&chat.id)]);
    t.store
        .run(ParkForInput {
            lease: lease(&job),
            question_json: serde_json::to_string(&question).unwrap(),
            now: t.now(),
        })
        .await
        .unwrap();
    clock.within(Duration::from_secs(5), subscription.woken()).await.expect("a reader of the chat is woken");
    assert_eq!(t.store.run(ReadQuestion(chat.id.clone())).await.unwrap(), Some((job.id.clone(), question)));
    let answer = Answer { id: "q1".to_owned(), option: Some("yes".to_owned()), text: None };
    let subscription = t.store.hub().subscribe(&[Topic::chat(&chat.id)]);
    t.store
        .run(AnswerQuestion { job: job.id.clone(), answer: answer.clone(), chat_line: None, now: t.now() })
        .await
        .unwrap();
    clock.within(Duration::from_secs(5), subscription.woken()).await.expect("a reader of the chat is woken");
    assert_eq!(t.store.run(ReadAnswer { job: job.id.clone(), question: "q1".to_owned() }).await.unwrap(), Some(answer));
    assert!(t.store.run(ResumeFromInput { lease: lease(&job), permits_max: 1, now: t.now() }).await.unwrap());
    assert_eq!(t.store.run(ReadQuestion(chat.id.clone())).await.unwrap(), None, "it has gone on");
}

pub async fn a_turn_that_was_answered_is_not_had_again(t: TestStore) {
    let chat = chat(&t).await;
    t.message(&chat.id, "one").await;
    let job = call(&t).await;
    let first = turn(&t, &job).await.unwrap();
    end(&t, &job, answer(&first, &["answer"])).await;
    end(&t, &job, answer(&first, &["answer"])).await;
    assert!(turn(&t, &job).await.is_none(), "the job runs a second time because its end was not stored");
    assert_eq!(said(&t, &chat.id).await.len(), 2);
    t.finish(&lease(&job), completed()).await.unwrap();
    assert_lease_lost(t.store.run(BeginTurn { lease: lease(&job), rows_max: 10, now: t.now() }).await);
}

pub async fn a_turn_that_was_cut_off_is_had_again_in_the_same_conversation(t: TestStore) {
    let chat = chat(&t).await;
    t.message(&chat.id, "one").await;
    let job = call(&t).await;
    assert_eq!(turn(&t, &job).await.unwrap().conversation, None);
    let session = come(&t, &job, &chat.id).await;
    let note = SessionNote { vendor_session: "v1".to_owned(), place: Some("here".to_owned()) };
    t.store.run(NoteSession { lease: lease(&job), note: note.clone(), now: t.now() }).await.unwrap();
    t.finish(&lease(&job), matsu_core::job::JobEnd::OwnerLost).await.unwrap();
    let again = call(&t).await;
    assert_eq!((&again.id, again.attempt), (&job.id, job.attempt + 1));
    assert_lease_lost(t.store.run(EndTurn { lease: lease(&job), outcome: TurnOutcome::Left, now: t.now() }).await);
    let turn = turn(&t, &again).await.unwrap();
    assert_eq!(turn.conversation, Some(note));
    assert!(turn.messages[0].redelivered);
    assert_eq!(t.store.run(ReadSession(session.id.clone())).await.unwrap().end_reason, Some(EndReason::ProcessEnded));
}

pub async fn a_turn_under_way_is_read_as_it_was_handed_out(t: TestStore) {
    let chat = chat(&t).await;
    t.message(&chat.id, "one").await;
    let job = call(&t).await;
    turn(&t, &job).await.unwrap();
    let session = come(&t, &job, &chat.id).await;
    t.message(&chat.id, "two").await;
    let under_way = t.store.run(TurnUnderWay { lease: lease(&job), rows_max: 10 }).await.unwrap().unwrap();
    let said: Vec<&str> = under_way.messages.iter().map(|taken| taken.message.content.as_str()).collect();
    assert_eq!(said, ["one"], "what was said since is for the next turn");
    assert_eq!(t.store.run(ReadSession(session.id.clone())).await.unwrap().end_reason, None, "its session goes on");
    let stale = Lease { attempt: job.attempt - 1, ..lease(&job) };
    assert_lease_lost(t.store.run(TurnUnderWay { lease: stale.clone(), rows_max: 10 }).await);
}

pub async fn a_failed_start_is_tried_again_later_and_then_given_up(t: TestStore) {
    let chat = chat(&t).await;
    t.message(&chat.id, "one").await;
    let job = call(&t).await;
    assert_eq!(turn(&t, &job).await.unwrap().failures, 0);
    let note = SessionNote { vendor_session: "v1".to_owned(), place: None };
    t.store.run(NoteSession { lease: lease(&job), note, now: t.now() }).await.unwrap();
    let failed = |retry_at| TurnOutcome::Failed {
        line: "it broke".to_owned(),
        retry_at,
        conversation: Conversation::BeginsAnew,
    };
    let later = t.now().plus(Duration::from_secs(60));
    end(&t, &job, failed(Some(later))).await;
    t.finish(&lease(&job), completed()).await.unwrap();
    assert!(calls(&t).await.is_empty(), "not before its time");
    t.message(&chat.id, "two").await;
    t.pass(Duration::from_secs(61));
    let again = calls(&t).await;
    assert_eq!(again.len(), 1, "two messages, one start");
    let second = turn(&t, &again[0]).await.unwrap();
    assert_eq!((second.failures, second.messages.len(), second.conversation), (1, 2, None));
    end(&t, &again[0], failed(None)).await;
    t.finish(&lease(&again[0]), completed()).await.unwrap();
    assert!(calls(&t).await.is_empty());
    let lines = said(&t, &chat.id).await.into_iter().filter(|(sender, _)| *sender == Sender::System).count();
    assert_eq!(lines, 2);
    t.message(&chat.id, "three").await;
    let third = turn(&t, &call(&t).await).await.unwrap();
    assert_eq!((third.failures, third.messages.len()), (0, 3), "nothing was lost, and the count begins anew");
}

pub async fn a_job_that_ends_without_a_word_leaves_a_line(t: TestStore) {
    let chat = chat(&t).await;
    t.message(&chat.id, "one").await;
    let job = call(&t).await;
    turn(&t, &job).await.unwrap();
    let session = come(&t, &job, &chat.id).await;
    assert!(
        t.store.run(ReleaseChats { language: Language::English, now: t.now() }).await.unwrap().is_empty(),
        "a job works for it"
    );
    let end = matsu_core::job::JobEnd::Failed {
        code: "JOB_TIMEOUT".to_owned(),
        message: "too long".to_owned(),
        retry: matsu_core::job::Retry::Never,
        output_json: None,
    };
    assert_eq!(t.finish(&lease(&job), end).await.unwrap(), JobState::Failed);
    assert_eq!(
        t.store.run(ReleaseChats { language: Language::English, now: t.now() }).await.unwrap(),
        [chat.id.clone()]
    );
    assert!(t.store.run(ReleaseChats { language: Language::English, now: t.now() }).await.unwrap().is_empty(), "once");
    assert_eq!(
        said(&t, &chat.id).await[1..],
        [(Sender::System, "The agent could not answer: too long. Write again to call it again.".to_owned())]
    );
    assert_eq!(t.store.run(ReadSession(session.id.clone())).await.unwrap().end_reason, Some(EndReason::ProcessEnded));
    t.message(&chat.id, "again").await;
    assert_eq!(turn(&t, &call(&t).await).await.unwrap().messages.len(), 2);
}

pub async fn who_comes_by_itself_is_not_started_beside(t: TestStore) {
    let chat = chat(&t).await;
    t.message(&chat.id, "one").await;
    let job = call(&t).await;
    let session = t.begin("worker").await.unwrap();
    assert!(turn(&t, &job).await.is_none(), "it came while its start stood in line");
    t.finish(&lease(&job), completed()).await.unwrap();
    t.message(&chat.id, "two").await;
    assert!(calls(&t).await.is_empty());
    let (to, reason) = (matsu_core::session::SessionState::Ended, EndReason::LoggedOut);
    let end = matsu_core::ports::store::EndSession { id: session.id, to, reason, now: t.now() };
    t.store.run(end).await.unwrap();
    assert_eq!(turn(&t, &call(&t).await).await.unwrap().messages.len(), 2, "what it left unread");
}
