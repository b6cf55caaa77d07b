//! What every reply says beside its own: to a session whether it has notifications, to others whether something of
//! theirs has ended. And the notice that replaces a reply under an unread interrupt.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use serde_json::{Map, Value, json};

use matsu_core::notification::texts;
use matsu_core::ports::store::SessionKey;
use matsu_core::principal::Principal;

use super::{Reply, who};
use crate::runtime::Runtime;
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
    let unread = match cx.runtime.plain_store().standing(key, cx.runtime.clock().now()).await {
        Ok(Some(standing)) => {
            who::touch(cx, &standing).await;
            standing.unread.total()
        }
        // A good answer is not lost because the store went away after it; the next reply says it.
        Ok(None) | Err(_) => 0,
    };
    let text = if unread == 0 { texts::none(language).to_owned() } else { texts::some(language, unread) };
    fields.insert("notification".to_owned(), Value::String(text));
}

async fn add_news(cx: &ToolContext, fields: &mut Map<String, Value>) {
    let unread = cx.runtime.news().unread(&cx.runtime, &cx.principal).await;
    if unread > 0 {
        let text = texts::news(cx.runtime.session_options().language, unread);
        fields.insert("news".to_owned(), Value::String(text));
    }
}

const REMEMBERED_MAX: usize = 1_000;

/// How many results a principal has not read, remembered until something is published: most calls read nothing.
#[derive(Debug, Default)]
pub struct News {
    counted: Mutex<HashMap<Principal, (u64, i64)>>,
}

impl News {
    async fn unread(&self, runtime: &Runtime, owner: &Principal) -> i64 {
        let published = runtime.hub().published();
        let known = self.counted.lock().unwrap_or_else(PoisonError::into_inner).get(owner).copied();
        if let Some((then, unread)) = known
            && then == published
        {
            return unread;
        }
        // Only a hint: without an answer there is none.
        let Ok(unread) = runtime.plain_store().unread_results(owner).await else { return 0 };
        let mut counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        if counted.len() >= REMEMBERED_MAX {
            counted.clear();
        }
        counted.insert(owner.clone(), (published, unread));
        unread
    }

    /// Reading a result publishes nothing.
    pub(crate) fn forget(&self, owner: &Principal) {
        self.counted.lock().unwrap_or_else(PoisonError::into_inner).remove(owner);
    }
}
