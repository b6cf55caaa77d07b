//! Notices to people: made by the transaction that ends a task or asks, taken by one node, settled.

use std::time::Duration;

use matsu_core::id::{JobId, NodeId, TaskId};
use matsu_core::job::{JobEnd, Retry};
use matsu_core::limits::NOTICE_QUIET;
use matsu_core::notify::{AnswerCode, ChannelRow, ChannelState, CodeUse, NoticeEvent, NoticeOutcome};
use matsu_core::ports::store::{
    AnswerQuestion, BundleNotices, ChannelStates, LeaseReplies, NextNoticeAt, NoteChannel, ParkForInput, PutChannels,
    PutCodes, ResumeFromInput, SetReplyPosition, SettleNotices, SweepNotices, TakeNotices, UseCode,
};
use matsu_core::principal::Principal;
use matsu_core::run::Answer;
use matsu_core::task::Task;

use crate::harness::{TestStore, lease};

const MINUTE: Duration = Duration::from_secs(60);

fn channel(name: &str, owner: &str, events: &[NoticeEvent]) -> ChannelRow {
    let (owner, events) = (Principal::user(owner), events.to_vec());
    ChannelRow { name: name.to_owned(), owner, events, reply_topic: format!("{name} replies") }
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

async fn ended(t: &TestStore) -> Task {
    let task = t.agent(1).await;
    let job = t.claim_one().await;
    t.complete(&job).await.unwrap();
    task
}

pub async fn an_end_and_a_question_make_a_notice_for_each_channel_that_wants_it(t: TestStore) {
    let owner = "local";
    let all = NoticeEvent::ALL;
    let channels =
        [channel("phone", owner, all), channel("lamp", owner, &[NoticeEvent::Failed]), channel("x", "x", all)];
    let topics = t.store.run(PutChannels { channels: channels.to_vec(), now: t.now() }).await.unwrap();
    assert_eq!(topics, ["phone replies", "lamp replies", "x replies"]);
    let other = ChannelRow { reply_topic: "another".to_owned(), ..channels[0].clone() };
    assert_eq!(
        t.store.run(PutChannels { channels: vec![other], now: t.now() }).await.unwrap(),
        ["phone replies"],
        "it stays"
    );

    let task = t.agent(1).await;
    let held = t.claim(1).await;
    let asked = r#"{"id":"q1","text":"Go on?","options":["yes","no"]}"#;
    t.store.run(ParkForInput { lease: lease(&held[0]), question_json: asked.to_owned(), now: t.now() }).await.unwrap();
    let (due, later) = (t.now().plus(NOTICE_QUIET), t.now().plus(MINUTE));
    let three = names(&["phone", "lamp", "x"]);
    assert_eq!(
        t.store
            .run(TakeNotices { channels: three.clone(), now: t.now(), again_at: later, rows_max: 10 })
            .await
            .unwrap(),
        [],
        "not yet"
    );
    let taken =
        t.store.run(TakeNotices { channels: three.clone(), now: due, again_at: later, rows_max: 10 }).await.unwrap();
    let [asks] = taken.as_slice() else { panic!("{taken:?}") };
    assert_eq!((asks.channel.as_str(), asks.event, &asks.task_id), ("phone", NoticeEvent::Asks, &task.id));
    assert_eq!(asks.key, format!("{}:q1", held[0].id));

    let answer = Answer { id: "q1".to_owned(), option: Some("yes".to_owned()), text: None };
    t.store
        .run(AnswerQuestion { job: held[0].id.clone(), answer: answer.clone(), chat_line: None, now: t.now() })
        .await
        .unwrap();
    assert!(t.store.run(ResumeFromInput { lease: lease(&held[0]), permits_max: 8, now: t.now() }).await.unwrap());
    let (code, message) = ("X".to_owned(), "broken".to_owned());
    let failed = JobEnd::Failed { code, message, retry: Retry::Never, output_json: None };
    t.finish(&lease(&held[0]), failed).await.unwrap();
    let taken =
        t.store.run(TakeNotices { channels: three.clone(), now: due, again_at: later, rows_max: 10 }).await.unwrap();
    let ends: Vec<_> = taken.iter().map(|notice| (notice.channel.as_str(), notice.event)).collect();
    assert_eq!(ends, [("phone", NoticeEvent::Failed), ("lamp", NoticeEvent::Failed)]);
    assert_ne!(taken[0].id, taken[1].id);
}

pub async fn a_notice_is_taken_by_one_node_and_comes_again_if_that_node_dies(t: TestStore) {
    t.store
        .run(PutChannels { channels: vec![channel("phone", "local", NoticeEvent::ALL)], now: t.now() })
        .await
        .unwrap();
    let task = ended(&t).await;
    let phone = names(&["phone"]);
    let (due, later) = (t.now().plus(NOTICE_QUIET), t.now().plus(MINUTE));
    assert_eq!(t.store.run(NextNoticeAt(phone.clone())).await.unwrap(), Some(due));
    assert_eq!(t.store.run(NextNoticeAt(names(&["other"]))).await.unwrap(), None);
    let taken =
        t.store.run(TakeNotices { channels: phone.clone(), now: due, again_at: later, rows_max: 10 }).await.unwrap();
    assert_eq!(taken.iter().map(|one| (&one.task_id, one.attempts)).collect::<Vec<_>>(), [(&task.id, 0)]);
    assert_eq!(
        t.store.run(TakeNotices { channels: phone.clone(), now: due, again_at: later, rows_max: 10 }).await.unwrap(),
        [],
        "another node gets nothing"
    );
    let again = t
        .store
        .run(TakeNotices { channels: phone.clone(), now: later, again_at: later.plus(MINUTE), rows_max: 10 })
        .await
        .unwrap();
    assert_eq!((&again[0].id, again[0].attempts), (&taken[0].id, 1), "the same notice, a second time");

    // A failure puts off everything that waits in the channel.
    let next = ended(&t).await;
    let ids = [taken[0].id.clone()];
    let retry = NoticeOutcome::Later { error: "refused".to_owned(), due_at: later };
    t.store
        .run(SettleNotices { channel: "phone".to_owned(), ids: ids.to_vec(), outcome: retry, now: due })
        .await
        .unwrap();
    assert_eq!(t.store.run(NextNoticeAt(phone.clone())).await.unwrap(), Some(later));
    let states = t.store.run(ChannelStates).await.unwrap();
    assert_eq!((states.len(), states[0].waiting, states[0].last_error.as_deref()), (1, 2, Some("refused")));
    let both = t
        .store
        .run(TakeNotices { channels: phone.clone(), now: later, again_at: later.plus(MINUTE), rows_max: 10 })
        .await
        .unwrap();
    assert_eq!(both.iter().map(|one| &one.task_id).collect::<Vec<_>>(), [&task.id, &next.id]);
    let ids: Vec<_> = both.iter().map(|one| one.id.clone()).collect();
    t.store
        .run(SettleNotices { channel: "phone".to_owned(), ids: ids.clone(), outcome: NoticeOutcome::Sent, now: later })
        .await
        .unwrap();
    assert_eq!(t.store.run(NextNoticeAt(phone.clone())).await.unwrap(), None);
    assert_eq!(t.store.run(ChannelStates).await.unwrap(), []);
    // A message that was given up leaves nothing that waits; the channel is named until a message arrives.
    let third = ended(&t).await;
    let due = later.plus(NOTICE_QUIET);
    let taken =
        t.store.run(TakeNotices { channels: phone.clone(), now: due, again_at: later, rows_max: 10 }).await.unwrap();
    assert_eq!(taken.iter().map(|one| &one.task_id).collect::<Vec<_>>(), [&third.id]);
    let settle =
        |outcome| SettleNotices { channel: "phone".to_owned(), ids: vec![taken[0].id.clone()], outcome, now: later };
    let state =
        |error: &str| ChannelState { channel: "phone".to_owned(), waiting: 0, last_error: Some(error.to_owned()) };
    t.store.run(settle(NoticeOutcome::GivenUp { error: "gone".to_owned() })).await.unwrap();
    assert_eq!(t.store.run(ChannelStates).await.unwrap(), [state("gone")]);
    t.store.run(settle(NoticeOutcome::NotNeeded)).await.unwrap();
    assert_eq!(t.store.run(ChannelStates).await.unwrap(), [state("gone")], "nothing was sent");
    let note = |error: Option<&str>| NoteChannel { channel: "phone".to_owned(), error: error.map(str::to_owned) };
    t.store.run(note(Some("refused"))).await.unwrap();
    assert_eq!(t.store.run(ChannelStates).await.unwrap(), [state("refused")]);
    t.store.run(note(None)).await.unwrap();
    assert_eq!(t.store.run(ChannelStates).await.unwrap(), []);
    t.store.run(PutChannels { channels: vec![channel("phone", "local", NoticeEvent::ALL)], now: later }).await.unwrap();
    assert_eq!(t.store.run(SweepNotices { unused_since: later, rows_max: 10 }).await.unwrap(), 0, "not yet");
    assert_eq!(t.store.run(SweepNotices { unused_since: later.plus(MINUTE), rows_max: 10 }).await.unwrap(), 3);
}

pub async fn notices_that_were_tried_as_one_message_stay_that_message(t: TestStore) {
    let now = t.now();
    t.store.run(PutChannels { channels: vec![channel("phone", "local", NoticeEvent::ALL)], now }).await.unwrap();
    for _ in 0..2 {
        ended(&t).await;
    }
    let (due, phone) = (now.plus(MINUTE), names(&["phone"]));
    let take = async || {
        let request = TakeNotices { channels: phone.clone(), now: due, again_at: due, rows_max: 10 };
        t.store.run(request).await.unwrap()
    };
    let first = take().await;
    assert_eq!(first.iter().map(|one| one.bundle.as_deref()).collect::<Vec<_>>(), [None, None]);
    let ids: Vec<_> = first.iter().map(|one| one.id.clone()).collect();
    t.store.run(BundleNotices { ids: ids.clone(), bundle: "b.2".to_owned() }).await.unwrap();
    // The sender died before it could say what came of it, and another task ended meanwhile.
    ended(&t).await;
    let again = take().await;
    let (tried, fresh): (Vec<_>, Vec<_>) = again.iter().partition(|one| one.bundle.as_deref() == Some("b.2"));
    assert_eq!(tried.iter().map(|one| one.id.clone()).collect::<Vec<_>>(), ids);
    assert_eq!(fresh.iter().map(|one| one.bundle.as_deref()).collect::<Vec<_>>(), [None], "it is not part of it");
}

pub async fn a_code_is_used_once_in_its_channel_and_one_node_reads_answers(t: TestStore) {
    let start = t.now();
    t.store.run(PutChannels { channels: vec![channel("phone", "local", NoticeEvent::ALL)], now: start }).await.unwrap();
    let code = AnswerCode {
        hash: "h1".to_owned(),
        channel: "phone".to_owned(),
        task_id: TaskId::from_text("task_1"),
        job_id: JobId::from_text("j_1"),
        question_id: "q1".to_owned(),
        option: "yes".to_owned(),
    };
    t.store.run(PutCodes { codes: vec![code.clone()], now: start }).await.unwrap();
    let before = start.minus(MINUTE);
    let used = async |channel: &str, hash: &str, made_after| {
        let request = UseCode { channel: channel.to_owned(), hash: hash.to_owned(), made_after, now: start };
        t.store.run(request).await.unwrap()
    };
    assert_eq!(used("phone", "h2", before).await, CodeUse::Unknown);
    assert_eq!(used("other", "h1", before).await, CodeUse::Unknown, "another channel's");
    assert_eq!(used("phone", "h1", start).await, CodeUse::Unknown, "too old");
    assert_eq!(used("phone", "h1", before).await, CodeUse::First(code));
    assert_eq!(used("phone", "h1", before).await, CodeUse::Repeated);

    let (one, two) = (t.node.clone(), t.second_node().await);
    let until = start.plus(MINUTE);
    let leased = async |node: &NodeId, until, now| {
        let request = LeaseReplies { channel: "phone".to_owned(), node: node.clone(), until, now };
        t.store.run(request).await.unwrap()
    };
    assert_eq!(leased(&one, until, start).await, Some(None));
    assert_eq!(leased(&two, until, start).await, None, "one node reads");
    t.store.run(SetReplyPosition { channel: "phone".to_owned(), position: "17".to_owned() }).await.unwrap();
    let longer = until.plus(MINUTE);
    assert_eq!(leased(&one, longer, start).await, Some(Some("17".to_owned())));
    assert_eq!(leased(&two, longer, until).await, None, "it was made longer");
    assert_eq!(leased(&two, longer, longer).await, Some(Some("17".to_owned())));
    assert_eq!(leased(&one, longer, start).await, None);
    t.store.reap_node(&two, start).await.unwrap();
    assert_eq!(leased(&one, longer, start).await, Some(Some("17".to_owned())), "the other node is dead");
}
