//! `matsu watch --lines`: one line per piece of news, for hooks and monitors. It survives the daemon and starts none.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use matsu_core::clock::Clock;

use super::news::News;
use crate::client::{Client, Events};
use crate::commands::Context;

/// How often a daemon is looked for while none answers.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Of all tasks, or of those of one project.
pub async fn run(cx: &Context, folder: Option<String>) -> Result<ExitCode> {
    let mut news = News::new(cx.json, folder);
    let (mut cursor, clock, mut is_reported) = (None, Clock::system(), false);
    loop {
        match stream(cx, &mut news, &mut cursor).await {
            Ok(()) => is_reported = false,
            Err(error) if !is_reported => {
                eprintln!("matsu watch: {error:#}; it continues as soon as a daemon answers");
                is_reported = true;
            }
            Err(_) => {}
        }
        clock.sleep(LOOK_EVERY).await;
    }
}

/// Prints the news of one connection until it ends.
async fn stream(cx: &Context, news: &mut News, cursor: &mut Option<String>) -> Result<()> {
    let client = Client::daemon(&cx.config).await?;
    let path = match &*cursor {
        Some(cursor) => format!("/api/v1/events?cursor={}", crate::client::segment(cursor)),
        None => "/api/v1/events".to_owned(),
    };
    let mut events = client.events(&path).await?;
    if cursor.is_none() {
        news.take_list(&client).await?;
    }
    let followed = follow(&client, news, &mut events).await;
    *cursor = events.last_id.take().or(cursor.take());
    followed
}

async fn follow(client: &Client, news: &mut News, events: &mut Events) -> Result<()> {
    let clock = Clock::system();
    loop {
        tokio::select! {
            event = events.next() => match event? {
                Some((name, task)) if name == "task" => news.take(&task),
                // Events were missed: the list has what they were about.
                Some((name, _)) if name == "reset" => news.take_list(client).await?,
                Some(_) => {}
                None => return Ok(()),
            },
            () = clock.sleep_until(news.due()) => news.print_due(client).await?,
        }
    }
}
