//! `matsu hook`: what the installed hooks call. Quick and quiet: without a daemon there is no news, and a hook that
//! fails must not stand in a client's way.

mod session_news;

use std::io::Read;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use matsu_core::clock::Clock;
use matsu_core::task::is_news_in;
use matsu_runtime::tool::folders::project_of;
use serde_json::{Value, json};

use super::{Context, field};
use crate::client::Client;
use crate::parents;

/// When a client calls its hooks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum HookEvent {
    /// The model wants to end its turn
    Stop,
    /// A person has written a prompt
    Prompt,
    /// A tool call of the program has ended, in a run that Matsu started
    AfterTool,
}

/// A client waits for its hooks.
const PATIENCE: Duration = Duration::from_secs(3);
const NAMED_MAX: usize = 5;

pub async fn run(cx: &Context, event: HookEvent) -> Result<ExitCode> {
    let mut said = String::new();
    let _ = std::io::stdin().take(1024 * 1024).read_to_string(&mut said);
    let input: Value = serde_json::from_str(&said).unwrap_or(Value::Null);
    if event == HookEvent::AfterTool {
        // Outside of a run there is no session with notifications.
        if crate::config::session_token().is_some() {
            let socket = cx.config.paths.socket();
            let asked = session_news::after_tool(&socket);
            // What did not come in time is asked for again after the next tool call.
            if let Some(Ok(Some(text))) = Clock::system().within(PATIENCE, asked).await {
                say!("{text}");
            }
        }
        return Ok(ExitCode::SUCCESS);
    }
    let started_in = input["cwd"].as_str().map(PathBuf::from).or_else(|| std::env::current_dir().ok());
    let folder = started_in.as_ref().map(|folder| project_of(folder));
    if let (Some(_), Some(session), Some(folder), Some(started_in)) =
        (cx.config.wake_after(), input["session_id"].as_str(), &folder, &started_in)
        && let Err(error) = parents::report(&cx.config.paths, session, folder, &started_in.display().to_string())
    {
        tracing::debug!(error = format!("{error:#}"), "the session of this client could not be stored");
    }
    // The turn was kept going once already: twice would be a circle.
    if event == HookEvent::Stop && input["stop_hook_active"] == true {
        return Ok(ExitCode::SUCCESS);
    }
    let news =
        Clock::system().within(PATIENCE, news(cx, folder.as_deref())).await.and_then(Result::ok).unwrap_or_default();
    match event {
        HookEvent::Stop if !news.unread.is_empty() || !news.asking.is_empty() => {
            let mut reasons = Vec::new();
            if !news.unread.is_empty() {
                let (results, them) =
                    if news.unread.len() == 1 { ("result is", "it") } else { ("results are", "them") };
                reasons.push(format!(
                    "Work given to Matsu ended and the {results} unread: {}. Read {them} with get_task_status before you \
                     stop.",
                    named(&news.unread)
                ));
            }
            if !news.asking.is_empty() {
                let (questions, them) = if news.asking.len() == 1 { ("question", "it") } else { ("questions", "them") };
                reasons.push(format!(
                    "Work given to Matsu waits for an answer: {}. Read the {questions} with get_task_status and answer \
                     {them} with answer_question before you stop.",
                    named(&news.asking)
                ));
            }
            let reason = reasons.join(" ");
            say!("{}", json!({ "decision": "block", "reason": reason }));
        }
        HookEvent::Prompt if !news.unread.is_empty() || !news.asking.is_empty() || news.open > 0 => {
            let part = |what: &str, tasks: &[String]| {
                if tasks.is_empty() { String::new() } else { format!("{what}: {}. ", named(tasks)) }
            };
            let (ended, asks) = (part("ended and unread", &news.unread), part("asks a question", &news.asking));
            let line = format!("Matsu: {ended}{asks}{} still under way.", news.open);
            match input["hook_event_name"].as_str() {
                Some(name) => {
                    say!("{}", json!({ "hookSpecificOutput": { "hookEventName": name, "additionalContext": line } }));
                }
                None => say!("{line}"),
            }
        }
        HookEvent::Stop | HookEvent::Prompt | HookEvent::AfterTool => {}
    }
    Ok(ExitCode::SUCCESS)
}

#[derive(Default)]
struct News {
    unread: Vec<String>,
    asking: Vec<String>,
    open: usize,
}

fn named(tasks: &[String]) -> String {
    let more = tasks.len().saturating_sub(NAMED_MAX);
    let named = tasks.iter().take(NAMED_MAX).cloned().collect::<Vec<_>>().join(", ");
    if more > 0 { format!("{named} and {more} more") } else { named }
}

/// Of a running daemon only: a hook starts nothing and makes no store.
async fn news(cx: &Context, folder: Option<&str>) -> Result<News> {
    if tokio::net::UnixStream::connect(cx.config.paths.socket()).await.is_err() {
        return Ok(News::default());
    }
    let client = Client::connect(&cx.config).await?;
    let page = client.get("/api/v1/tasks?limit=200").await?;
    let mut news = News::default();
    let is_own = |task: &&Value| task["kind"] != "wait" && is_news_in(task["started_in"].as_str(), folder);
    for task in page["items"].as_array().into_iter().flatten().filter(is_own) {
        // Titles are text of others: one line, and short.
        let title: String = field(task, "title").chars().filter(|c| !c.is_control()).take(60).collect();
        let named = format!("{} ({title}, {})", field(task, "task_id"), field(task, "status"));
        if task["status"] == "input_required" {
            news.asking.push(named);
        } else if task["finished_at"].is_null() {
            news.open += 1;
        } else if task["unread"] == true {
            news.unread.push(named);
        }
    }
    Ok(news)
}
