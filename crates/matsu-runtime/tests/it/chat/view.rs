//! Chats with agents and chats with models are read through one view, and a post reads a chat once.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use matsu_core::access::Viewer;
use matsu_core::chat::{ChatKind, Sender};
use matsu_core::clock::Clock;
use matsu_core::id::{AgentId, ChatId, ProjectId};
use matsu_core::ports::store::Store;
use matsu_core::ports::tool_source::ToolSource;
use matsu_core::transcript::{ChatPlace, Transcript};
use matsu_runtime::chats::shown::{ShownMessage, ShownState};
use matsu_runtime::chats::{ChatView, Chats, MessageRange};
use matsu_runtime::models::agentic_loop::{LoopLimits, SpendingMax};
use matsu_runtime::models::chat::{ChatTools, LiveChats, LiveSettings, StandingApprovals};
use matsu_testkit::fake_model::{FakeModel, Turn};

use super::open_chats_on;
use crate::faulty_store::FaultyStore;
use crate::fixtures::{me, memory, runtime};

struct NoTools;

#[async_trait]
impl ChatTools for NoTools {
    fn for_chat(&self, _chat: &Transcript) -> Option<Arc<dyn ToolSource>> {
        None
    }

    async fn close(&self, _id: &ChatId) {}
}

struct NothingStands;

impl StandingApprovals for NothingStands {
    fn allows(&self, _tool: &str) -> bool {
        false
    }

    fn remember(&self, _tool: &str, _allow: bool) -> Result<(), String> {
        Ok(())
    }

    fn all(&self) -> Vec<String> {
        Vec::new()
    }
}

fn live(store: Arc<dyn Store>, clock: Clock, model: &Arc<FakeModel>) -> LiveChats {
    let (spending_max, limits, standing) = (SpendingMax::default(), LoopLimits::default(), Arc::new(NothingStands));
    let settings = LiveSettings { spending_max, limits, standing };
    LiveChats::new(open_chats_on(store, clock, &[model]), Arc::new(NoTools), settings)
}

async fn page_chat(chats: &LiveChats) -> ChatId {
    chats.open(&me(), &[], ChatPlace::Page, None).await.unwrap().id
}

/// Once nothing is being answered.
async fn answered(chats: &LiveChats, clock: Clock, id: &ChatId) -> ChatView {
    loop {
        let live = chats.view(&me(), id, 0).await.unwrap();
        if !live.answering {
            return live.view;
        }
        clock.sleep(Duration::from_millis(10)).await;
    }
}

fn seqs(messages: &[ShownMessage]) -> Vec<i64> {
    messages.iter().map(|message| message.seq).collect()
}

#[tokio::test(start_paused = true)]
async fn a_chat_with_an_agent_and_a_chat_with_models_go_through_the_same_view() {
    let (store, clock) = memory().await;
    let runtime = runtime(&store, clock);
    let (agent, project) = (AgentId::from_text("worker"), ProjectId::from_text("default"));
    let service = Chats::of(&runtime);
    service.make_agent("worker", "Worker".to_owned(), None, None).await.unwrap();
    let with_agent = service.open_chat(&agent, &project).await.unwrap().chat;
    let model = FakeModel::new("m", [Turn::says(&["one"]), Turn::says(&["two"])]).shared();
    let chats = live(Arc::clone(&store), clock, &model);
    let with_models = page_chat(&chats).await;
    for text in ["@m a", "@m b"] {
        for _ in 0..2 {
            service.post_as_person(&me(), &with_agent.id, text.to_owned(), None).await.unwrap();
        }
        chats.post(&me(), &with_models, text.into(), None).await.unwrap();
        answered(&chats, clock, &with_models).await;
    }
    let viewer = Viewer { principal: me(), is_admin: true };
    let first = MessageRange { after: Some(1), before: None, rows_max: 2 };
    let last = MessageRange { after: None, before: None, rows_max: 3 };
    for (id, kind) in [(with_agent.id, ChatKind::Agent(agent)), (with_models, ChatKind::Models(vec!["m".to_owned()]))] {
        let chat = service.read_for(&viewer, &id).await.unwrap();
        assert_eq!((&chat.kind, chat.last_seq), (&kind, 4));
        for (range, expected) in [(first, (vec![2, 3], Some(3))), (last, (vec![2, 3, 4], None))] {
            let view = match kind {
                ChatKind::Agent(_) => service.view(chat.clone(), &range).await.unwrap(),
                ChatKind::Models(_) => answered(&chats, clock, &id).await,
            };
            let (messages, next) = view.part(&range);
            assert_eq!((seqs(&messages), next), expected, "{kind:?}");
            let line = messages.iter().find(|message| message.seq == 3).unwrap();
            assert_eq!((line.sender, line.content.as_str()), (Sender::Person, "@m b"), "{kind:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_being_answered_is_behind_what_is_stored() {
    let (store, clock) = memory().await;
    let pieces = ["x"; 40];
    let model = FakeModel::new("m", [Turn::says(&pieces).pausing(Duration::from_millis(100))]).shared();
    let chats = live(store, clock, &model);
    let id = page_chat(&chats).await;
    chats.post(&me(), &id, "@m go".into(), None).await.unwrap();
    clock.sleep(Duration::from_secs(1)).await;
    let live = chats.view(&me(), &id, 0).await.unwrap();
    assert_eq!((live.answering, live.view.settled_seq, seqs(&live.view.messages)), (true, 1, vec![1, 2]));
    let [line, answer] = &live.view.messages[..] else { panic!("{:?}", live.view) };
    assert_eq!((line.state, answer.state), (Some(ShownState::Complete), Some(ShownState::Running)));
    assert!((5..=15).contains(&answer.content.len()), "{}", answer.content);
    let whole = answered(&chats, clock, &id).await;
    assert_eq!((whole.settled_seq, whole.messages[1].content.len()), (2, 40));
    assert_eq!(whole.messages[1].state, Some(ShownState::Complete));
}

#[tokio::test(start_paused = true)]
async fn a_post_reads_its_chat_once() {
    let (inner, clock) = memory().await;
    let store = FaultyStore::new(inner);
    let model = FakeModel::new("m", [Turn::says(&["one"]), Turn::says(&["two"])]).shared();
    let chats = live(store.clone(), clock, &model);
    let id = page_chat(&chats).await;
    for (text, answers) in [("@m a", 1), ("@m b", 2)] {
        let reads = || ["ReadChatContent", "ReadTranscript", "ReadChat"].map(|name| store.calls_of(name));
        let before = reads();
        let posted = chats.post(&me(), &id, text.into(), None).await.unwrap();
        assert_eq!(ShownMessage::from(&posted.line).content, text);
        assert_eq!(reads(), [before[0] + 1, before[1], before[2]]);
        answered(&chats, clock, &id).await;
        assert_eq!(store.calls_of("ReadEntries"), answers, "what came since the line, before the answer is stored");
    }
}
