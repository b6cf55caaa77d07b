//! What every reply carries beside its own: to a session whether it has notifications, to others whether something of
//! theirs has ended. And the notice that replaces a reply under an unread interrupt.

use serde_json::{Map, Value, json};

use matsu_core::id::TaskId;
use matsu_core::notification::texts;
use matsu_core::ports::store::{ReadStanding, SessionKey, UnreadResult};
use matsu_core::task::is_news_in;

use super::{Reply, who};
use crate::runtime::Runtime;
use crate::tasks::News;
use crate::tool::ToolContext;

/// The whole reply while an interrupt is unread.
pub fn notice(runtime: &Runtime) -> Reply {
    let language = runtime.session_options().language;
    let body = json!({ "ok": true, "interrupted": true, "notification": texts::interrupt_line(language) });
    Reply::Interrupted { text: texts::interrupt(language).to_owned(), body }
}

/// Adds what the caller should know to a reply that is otherwise complete.
pub async fn add(cx: &ToolContext, body: &mut Value) {
    let Value::Object(fields) = body else { return };
    match &cx.session {
        Some(session) => add_notification(cx, &SessionKey::Id(session.id.clone()), fields).await,
        None => add_news(cx, fields).await,
    }
}

async fn add_notification(cx: &ToolContext, key: &SessionKey, fields: &mut Map<String, Value>) {
    let language = cx.runtime.session_options().language;
    let unread =
        match cx.runtime.plain_store().run(ReadStanding { key: key.clone(), now: cx.runtime.clock().now() }).await {
            Ok(Some(standing)) => {
                who::touch(cx, &standing).await;
                standing.unread.total()
            }
            // A good answer is not lost because the store went away after it; the next reply carries it.
            Ok(None) | Err(_) => 0,
        };
    let text = if unread == 0 { texts::none(language).to_owned() } else { texts::some(language, unread) };
    fields.insert("notification".to_owned(), Value::String(text));
}

async fn add_news(cx: &ToolContext, fields: &mut Map<String, Value>) {
    let unread = cx.runtime.part::<News>().unread(&cx.runtime, &cx.principal).await;
    let instance = cx.instance.as_ref();
    // What this reply or an earlier one has shown to this very client is no news to it. Not every caller is a client
    // that is known by its calls: of a single call only the reply is known.
    let shown = |one: &&UnreadResult| {
        names(fields, &one.task_id)
            || instance.is_some_and(|instance| cx.runtime.cursors().was_sent(instance, &one.task_id, one.revision))
    };
    let folder = cx.workplace.project.as_deref();
    let own = unread.iter().filter(|one| is_news_in(one.started_in.as_deref(), folder));
    let unseen: Vec<TaskId> = own.filter(|one| !shown(one)).map(|one| one.task_id.clone()).collect();
    let news = match instance {
        Some(instance) => cx.runtime.part::<News>().announce(instance, &unseen),
        None => unseen.len(),
    };
    if news > 0 {
        let text = texts::news(cx.runtime.session_options().language, i64::try_from(news).unwrap_or(i64::MAX));
        fields.insert("news".to_owned(), Value::String(text));
    }
}

/// Whether a reply shows a task: its only one, or one of a list.
fn names(reply: &Map<String, Value>, task: &TaskId) -> bool {
    let is_it = |id: Option<&Value>| id.and_then(Value::as_str) == Some(task.as_str());
    let mut listed = reply.get("tasks").and_then(Value::as_array).into_iter().flatten();
    is_it(reply.get("task_id")) || listed.any(|line| is_it(line.get("task_id")))
}
