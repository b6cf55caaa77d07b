//! What every reply carries beside its own: to a session whether it has notifications, to others whether something of
//! theirs has ended. And the notice that replaces a reply under an unread interrupt.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Map, Value, json};

use matsu_core::id::TaskId;
use matsu_core::notification::texts;
use matsu_core::ports::store::{SessionKey, UnreadResult};
use matsu_core::principal::Principal;
use matsu_core::task::is_news_in;

use super::{Reply, who};
use crate::cursors::InstanceId;
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
        // A good answer is not lost because the store went away after it; the next reply carries it.
        Ok(None) | Err(_) => 0,
    };
    let text = if unread == 0 { texts::none(language).to_owned() } else { texts::some(language, unread) };
    fields.insert("notification".to_owned(), Value::String(text));
}

async fn add_news(cx: &ToolContext, fields: &mut Map<String, Value>) {
    let unread = cx.runtime.news().unread(&cx.runtime, &cx.principal).await;
    let instance = cx.instance.as_ref();
    // What this reply or an earlier one has shown to this very client is no news to it.
    let shown = |one: &&UnreadResult| {
        instance.is_some_and(|instance| cx.runtime.cursors().was_sent(instance, &one.task_id, one.revision))
    };
    let folder = cx.workplace.project.as_deref();
    let own = unread.iter().filter(|one| is_news_in(one.started_in.as_deref(), folder));
    let unseen: Vec<TaskId> = own.filter(|one| !shown(one)).map(|one| one.task_id.clone()).collect();
    let news = match instance {
        Some(instance) => cx.runtime.news().announce(instance, &unseen),
        None => unseen.len(),
    };
    if news > 0 {
        let text = texts::news(cx.runtime.session_options().language, i64::try_from(news).unwrap_or(i64::MAX));
        fields.insert("news".to_owned(), Value::String(text));
    }
}

const REMEMBERED_MAX: usize = 1_000;

/// Unread results that one line of news can be about.
const UNREAD_MAX: u32 = 100;

type Unread = Arc<Vec<UnreadResult>>;

/// Which results a principal has not read, remembered until something is published: most calls read nothing. And which
/// of them each client knows of.
#[derive(Debug, Default)]
pub struct News {
    listed: Mutex<HashMap<Principal, (u64, Unread)>>,
    announced: Mutex<HashMap<InstanceId, Announced>>,
}

/// What replies to one client have announced.
#[derive(Debug, Default)]
struct Announced {
    /// The client has made another call since: it knows.
    known: HashSet<TaskId>,
    /// In replies that may not have arrived.
    sent: HashSet<TaskId>,
}

impl News {
    async fn unread(&self, runtime: &Runtime, owner: &Principal) -> Unread {
        let published = runtime.hub().published();
        let known = self.listed.lock().unwrap_or_else(PoisonError::into_inner).get(owner).cloned();
        if let Some((then, unread)) = known
            && then == published
        {
            return unread;
        }
        // Only a hint: without an answer there is none.
        let read = runtime.plain_store().unread_results(owner, UNREAD_MAX).await;
        let Ok(unread) = read.map(Arc::new) else { return Arc::default() };
        let mut listed = self.listed.lock().unwrap_or_else(PoisonError::into_inner);
        if listed.len() >= REMEMBERED_MAX {
            listed.clear();
        }
        listed.insert(owner.clone(), (published, Arc::clone(&unread)));
        unread
    }

    /// Reading a result publishes nothing.
    pub(crate) fn forget(&self, owner: &Principal) {
        self.listed.lock().unwrap_or_else(PoisonError::into_inner).remove(owner);
    }

    /// How many of these the client does not know of. They count as sent, and as known when it calls again.
    fn announce(&self, instance: &InstanceId, unread: &[TaskId]) -> usize {
        let mut announced = self.announced.lock().unwrap_or_else(PoisonError::into_inner);
        if unread.is_empty() {
            announced.remove(instance);
            return 0;
        }
        if announced.len() >= REMEMBERED_MAX && !announced.contains_key(instance) {
            announced.clear();
        }
        let of = announced.entry(instance.clone()).or_default();
        // What was read meanwhile is forgotten, so this never holds more than there is unread.
        of.known.retain(|id| unread.contains(id));
        let news: HashSet<TaskId> = unread.iter().filter(|id| !of.known.contains(*id)).cloned().collect();
        let count = news.len();
        of.sent.extend(news);
        count
    }

    /// The client has made another call: what it was sent has arrived.
    pub(super) fn settle(&self, instance: &InstanceId) {
        let mut announced = self.announced.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(of) = announced.get_mut(instance) {
            let sent = std::mem::take(&mut of.sent);
            of.known.extend(sent);
        }
    }
}
