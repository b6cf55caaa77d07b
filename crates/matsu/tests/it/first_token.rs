//! How soon the first word is there: against the same stream read bare, and among fifty chats that are answered at
//! once.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use futures_util::future::join_all;
use matsu_adapters::providers::scripted::{Script as Replies, Scripted};
use matsu_adapters::providers::{self, ProviderConfig};
use matsu_core::clock::Clock;
use matsu_core::history::Entry;
use matsu_core::ports::provider::Provider;
use matsu_core::principal::Principal;
use matsu_core::transcript::ChatPlace;
use matsu_runtime::models::agentic_loop::{Event, LoopOptions, execute_with_tools};
use matsu_runtime::models::chat::{OpenChat, OpenChats, Roster};
use matsu_store::{OpenOptions, Synchronous};
use matsu_testkit::model_server::{ModelServer, Reply, Script};
use serde_json::json;

const ROUNDS: usize = 21;

fn provider(server: &ModelServer) -> Arc<dyn Provider> {
    let config = ProviderConfig {
        base_url: Some(format!("{}/v1", server.url())),
        ..ProviderConfig::new("fast", "openai_chat", "m")
    };
    providers::open(config, Clock::system()).unwrap()
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

/// The same request, read with nothing but an HTTP client.
async fn bare(client: &reqwest::Client, url: &str) -> Duration {
    let body = json!({ "model": "m", "messages": [{ "role": "user", "content": "hi" }], "stream": true });
    let began = Instant::now();
    let mut response = client.post(format!("{url}/v1/chat/completions")).body(body.to_string()).send().await.unwrap();
    let mut read = Vec::new();
    while !read.windows(5).any(|window| window == b"word!") {
        read.extend_from_slice(&response.chunk().await.unwrap().unwrap());
    }
    began.elapsed()
}

async fn through_the_loop(provider: &Arc<dyn Provider>) -> Duration {
    let history = [Entry::user("hi", Clock::system().now())];
    let began = Instant::now();
    let mut events = execute_with_tools(Arc::clone(provider), &history, LoopOptions::new(Clock::system()));
    while let Some(event) = events.next().await {
        if matches!(event, Event::Text(_)) {
            return began.elapsed();
        }
    }
    panic!("no text came");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_loop_adds_at_most_five_milliseconds_to_a_bare_stream() {
    let server = ModelServer::start(Script::new().always(Reply::text("word!"))).unwrap();
    let (provider, client) = (provider(&server), matsu_adapters::http::builder().no_proxy().build().unwrap());
    let (mut alone, mut with) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        alone.push(bare(&client, &server.url()).await);
        with.push(through_the_loop(&provider).await);
    }
    let (alone, with) = (median(alone), median(with));
    println!("first token: {alone:?} bare, {with:?} through the loop");
    assert!(with <= alone + Duration::from_millis(5), "{alone:?} bare, {with:?} through the loop");
}

async fn first_token(open_chat: &OpenChat) -> Duration {
    let posted = open_chat.post("@fast hello").await.unwrap();
    let (began, mut first) = (Instant::now(), None);
    let mut tell = |_: &str, event: &Event| {
        if matches!(event, Event::Text(_)) && first.is_none() {
            first = Some(began.elapsed());
        }
    };
    open_chat.answer(&posted, LoopOptions::new(Clock::system()), &mut tell).await.unwrap();
    first.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fifty_chats_that_speak_at_once_do_not_delay_a_first_token() {
    let server = ModelServer::start(Script::new().always(Reply::text("word!"))).unwrap();
    let talk: Vec<String> = (0..600).map(|n| format!("{n} ")).collect();
    let talk: Replies = serde_json::from_value(json!({ "replies": [{ "text": talk, "pause_ms": 5 }] })).unwrap();
    let talker: Arc<dyn Provider> = Arc::new(Scripted::new("talker", talk, Clock::system()));
    let options = OpenOptions { synchronous: Synchronous::Normal, clock: Clock::system() };
    let store = matsu_store::open("memory:", options).await.unwrap().store;
    let open_chats =
        OpenChats { store, clock: Clock::system(), roster: Roster::new(vec![provider(&server), talker], None) };
    let owner = Principal::local_user();
    let chats = join_all((0..50).map(|_| open_chats.open(&owner, &[], ChatPlace::Page))).await;
    let chats: Vec<OpenChat> = chats.into_iter().map(Result::unwrap).collect();

    let mut alone = Vec::new();
    for _ in 0..ROUNDS {
        alone.push(first_token(&chats[0]).await);
    }
    let talking = join_all(chats[1..].iter().map(|open_chat| async move {
        let posted = open_chat.post("@talker go").await.unwrap();
        open_chat.answer(&posted, LoopOptions::new(Clock::system()), &mut |_: &str, _: &Event| {}).await.unwrap();
    }));
    let measured = async {
        let mut among = Vec::new();
        for _ in 0..ROUNDS {
            among.push(first_token(&chats[0]).await);
        }
        among
    };
    let (_, among) = tokio::join!(talking, measured);
    let (alone, among) = (median(alone), median(among));
    println!("first token: {alone:?} alone, {among:?} among fifty");
    assert!(among <= alone + Duration::from_millis(50), "{alone:?} alone, {among:?} among fifty");
}
