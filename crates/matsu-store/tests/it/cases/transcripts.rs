//! Transcripts of chats with models.

use matsu_core::access::Viewer;
use matsu_core::history::{Entry, Item};
use matsu_core::id::{ChatId, RunId};
use matsu_core::page::PageRequest;
use matsu_core::ports::store::{
    AppendEntries, AppendTranscript, Change, ChatsKnownTo, Describe, DescribeTranscript, ListChats, ListTranscripts,
    OpenTranscript, ReadChatContent, ReadChatFor, ReadEntries, ReadTranscript, SaveDraft, StoreError,
};
use matsu_core::principal::Principal;
use matsu_core::transcript::{ChatPlace, Draft, NewTranscript, Transcript};

use crate::harness::TestStore;

async fn open(t: &TestStore) -> Transcript {
    let new = NewTranscript {
        chat_id: ChatId::mint(t.now()),
        owner: Principal::local_user(),
        models: vec!["gemini".to_owned(), "claude".to_owned()],
        place: ChatPlace::Terminal,
        run_id: Some(RunId::from_text("run_1")),
        created_at: t.now(),
    };
    t.store.run(OpenTranscript(new)).await.unwrap()
}

fn append(t: &TestStore, id: &ChatId, entries: Vec<Entry>, finishes: Option<&str>) -> AppendEntries {
    AppendEntries { chat_id: id.clone(), entries, finishes: finishes.map(str::to_owned), now: t.now() }
}

async fn describe(t: &TestStore, id: &ChatId, change: Change) -> Result<Transcript, StoreError> {
    t.store.run(DescribeTranscript(Describe { chat_id: id.clone(), change, now: t.now() })).await
}

pub async fn what_was_appended_is_read_back_in_order(t: TestStore) {
    let chat = open(&t).await;
    assert_eq!((chat.models().len(), chat.chat.last_seq, chat.is_ended()), (2, 0, false));
    let answer = Entry::assistant("gemini", vec![Item::text("松\u{0}\n\"x\"")], t.now());
    let said = vec![Entry::user("hello", t.now()), answer];
    assert_eq!(t.store.run(AppendTranscript(append(&t, &chat.chat.id, said.clone(), None))).await.unwrap(), 2);
    let third = Entry::user("again", t.now());
    assert_eq!(t.store.run(AppendTranscript(append(&t, &chat.chat.id, vec![third.clone()], None))).await.unwrap(), 3);
    let read = t.store.run(ReadEntries { id: chat.chat.id.clone(), after_seq: 0, rows_max: 100 }).await.unwrap();
    assert_eq!(read.iter().map(|stored| stored.seq).collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!(read[..2].iter().map(|stored| stored.entry.clone()).collect::<Vec<_>>(), said);
    assert_eq!(
        t.store.run(ReadEntries { id: chat.chat.id.clone(), after_seq: 2, rows_max: 100 }).await.unwrap()[0].entry,
        third
    );
    assert_eq!(t.store.run(ReadTranscript(chat.chat.id.clone())).await.unwrap().chat.last_seq, 3);
    let nowhere = ChatId::from_text("chat_nope");
    assert!(matches!(t.store.run(ReadTranscript(nowhere.clone())).await, Err(StoreError::NotFound { .. })));
}

pub async fn a_draft_is_replaced_and_goes_with_its_answer(t: TestStore) {
    let chat = open(&t).await;
    let draft = |model: &str, text: &str| Draft {
        model: model.to_owned(),
        entries: vec![Entry::assistant(model, vec![Item::text(text)], t.now())],
    };
    for draft in [draft("gemini", "one"), draft("gemini", "one two"), draft("claude", "un")] {
        t.store.run(SaveDraft { id: chat.chat.id.clone(), draft, now: t.now() }).await.unwrap();
    }
    let content = async || t.store.run(ReadChatContent { id: chat.chat.id.clone(), after_seq: 0 }).await.unwrap();
    let drafts = content().await.drafts;
    let said: Vec<String> = drafts.iter().map(|draft| draft.entries[0].spoken()).collect();
    assert_eq!(said, ["un", "one two"]);
    let whole = drafts[1].entries.clone();
    t.store.run(AppendTranscript(append(&t, &chat.chat.id, whole, Some("gemini")))).await.unwrap();
    let after = content().await;
    assert_eq!((after.entries.len(), after.transcript.chat.last_seq), (1, 1));
    assert_eq!(after.drafts.iter().map(|draft| draft.model.as_str()).collect::<Vec<_>>(), ["claude"]);
}

pub async fn a_name_is_the_owners_own_and_taken_only_on_purpose(t: TestStore) {
    let (first, second) = (open(&t).await.chat.id, open(&t).await.chat.id);
    describe(&t, &first, Change::Name("plans".to_owned())).await.unwrap();
    let refused = describe(&t, &second, Change::Name("plans".to_owned())).await;
    assert!(matches!(refused, Err(StoreError::Refused { .. })), "{refused:?}");
    assert_eq!(
        describe(&t, &second, Change::TakeName("plans".to_owned())).await.unwrap().name.as_deref(),
        Some("plans")
    );
    assert_eq!(t.store.run(ReadTranscript(first.clone())).await.unwrap().name, None);
    let prompt = Change::SystemPrompt(Some("Be brief.".to_owned()));
    assert_eq!(describe(&t, &first, prompt).await.unwrap().system_prompt.as_deref(), Some("Be brief."));
    let listed = t.store.run(ListTranscripts(Principal::local_user())).await.unwrap();
    assert_eq!(listed.len(), 2);
    assert!(t.store.run(ListTranscripts(Principal::from_text("token:other"))).await.unwrap().is_empty());
}

pub async fn an_ended_chat_takes_nothing_until_it_is_opened_again(t: TestStore) {
    let chat = open(&t).await.chat.id;
    assert!(describe(&t, &chat, Change::Ended).await.unwrap().is_ended());
    let said = || append(&t, &chat, vec![Entry::user("hello", t.now())], None);
    assert!(matches!(t.store.run(AppendTranscript(said())).await, Err(StoreError::Closed { .. })));
    let answer = vec![Entry::assistant("gemini", vec![Item::text("late")], t.now())];
    t.store.run(AppendTranscript(append(&t, &chat, answer, Some("gemini")))).await.unwrap();
    assert!(!describe(&t, &chat, Change::Reopened).await.unwrap().is_ended());
    t.store.run(AppendTranscript(said())).await.unwrap();
}

pub async fn a_chat_with_models_is_known_to_its_owner_only(t: TestStore) {
    t.new_agent("ann").await;
    let shared = t.open_chat("ann").await.chat.id;
    let own = open(&t).await.chat.id;
    let viewer = |principal, is_admin| Viewer { principal, is_admin };
    let owner = viewer(Principal::local_user(), true);
    let plain = viewer(Principal::local_user(), false);
    let (other, other_user) = (viewer(Principal::user("other"), true), viewer(Principal::user("other"), false));
    let page = PageRequest::new(None, None);
    let cases = [
        (&owner, vec![own.clone(), shared.clone()]),
        (&plain, vec![own.clone()]),
        (&other, vec![shared.clone()]),
        (&other_user, Vec::new()),
    ];
    for (viewer, known) in cases {
        let listed = t.store.run(ListChats { viewer: viewer.clone(), page: page.clone() }).await.unwrap().items;
        assert_eq!(listed.into_iter().map(|chat| chat.id).collect::<Vec<_>>(), known);
        let asked = [own.clone(), shared.clone(), ChatId::from_text("chat_nope")];
        let mut answered = t.store.run(ChatsKnownTo { viewer: viewer.clone(), ids: asked.to_vec() }).await.unwrap();
        answered.sort_by_key(|id| asked.iter().position(|asked| asked == id));
        assert_eq!(answered, known);
        for id in asked {
            let read = t.store.run(ReadChatFor { viewer: viewer.clone(), id: id.clone() }).await;
            assert_eq!(read.ok().map(|chat| chat.id), known.contains(&id).then_some(id));
        }
    }
    assert_eq!(t.store.run(ChatsKnownTo { viewer: owner.clone(), ids: vec![] }).await.unwrap(), []);
}
