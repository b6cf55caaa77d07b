//! From changes to rows: each changed thing is read once and sent as a whole.

use std::collections::BTreeMap;

use matsu_core::access::Viewer;
use matsu_core::change::{Change, ChangeKind, Topic};
use matsu_core::clock::Timestamp;
use matsu_core::id::{ChatId, TaskId};
use matsu_core::page::PageRequest;
use matsu_core::ports::store::{JobFilter, StoreError, TaskLookup};
use matsu_core::principal::Principal;
use matsu_core::task::Task;
use matsu_runtime::chats::Chats;
use matsu_runtime::tasks::Tasks;
use matsu_runtime::tasks::queue::Queue;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::EventBody;
use crate::app::App;
use crate::limits::streams::OpenStream;
use crate::wire::{JobBody, TaskBody};

/// A change that was written in the same millisecond as a job must not hide it.
const MARGIN: std::time::Duration = std::time::Duration::from_millis(1_000);

/// An event to be sent: its name and its data.
pub type Named = (&'static str, EventBody);

/// The last word about each topic, and since when it moved.
struct Moved {
    since: Timestamp,
    at: Timestamp,
    kind: ChangeKind,
    revision: i64,
}

pub async fn of(app: &App, stream: &OpenStream, changes: &[Change]) -> Result<Vec<Named>, StoreError> {
    let mut moved: BTreeMap<&str, Moved> = BTreeMap::new();
    for change in changes {
        let fresh = Moved { since: change.at, at: change.at, kind: change.kind, revision: change.revision };
        let entry = moved.entry(change.topic.as_str()).or_insert(fresh);
        entry.since = entry.since.min(change.at);
        (entry.at, entry.kind, entry.revision) = (change.at, change.kind, change.revision);
    }
    let viewer = stream.viewer();
    let owner = &viewer.principal;
    let mut events = Vec::new();
    let ids: Vec<TaskId> =
        moved.keys().filter_map(|topic| topic.strip_prefix("task/")).map(TaskId::from_text).collect();
    let found = Tasks::of(app.runtime()).by_id(&ids).await?;
    for task in found.iter().filter(|task| task.owner == *owner) {
        let topic = format!("task/{}", task.id);
        let Some(moved) = moved.get(topic.as_str()) else { continue };
        events.push(("task", body(&topic, task.revision, moved.at, &TaskBody::from(task))));
        if stream.follows_jobs_of(task.id.as_str()) {
            events.extend(jobs(app, task, moved).await?);
        }
    }
    let unknown = unknown_chats(app, viewer, moved.keys().copied()).await?;
    for (topic, moved) in &moved {
        match topic.strip_prefix("task/") {
            Some(id) if moved.kind == ChangeKind::TaskExpired => {
                events.extend(gone(app, owner, id, topic, moved).await?)
            }
            Some(_) => {}
            None if unknown.iter().any(|chat| chat.as_str() == *topic) => {}
            None => events.extend(hint(viewer, topic, moved)),
        }
    }
    Ok(events)
}

/// The topics of chats that the viewer may not see.
async fn unknown_chats(
    app: &App,
    viewer: &Viewer,
    topics: impl Iterator<Item = &str>,
) -> Result<Vec<Topic>, StoreError> {
    let mut chats: Vec<ChatId> =
        topics.filter_map(|topic| topic.strip_prefix("chat/")).map(ChatId::from_text).collect();
    if !chats.is_empty() {
        let known = Chats::of(app.runtime()).known_to(viewer, &chats).await?;
        chats.retain(|chat| !known.contains(chat));
    }
    Ok(chats.iter().map(Topic::chat).collect())
}

/// The jobs of a task that moved, and those that are under way, whose progress may have.
async fn jobs(app: &App, task: &Task, moved: &Moved) -> Result<Vec<Named>, StoreError> {
    let filter = JobFilter {
        task_id: Some(task.id.clone()),
        moved_since: Some(moved.since.minus(MARGIN)),
        ..JobFilter::default()
    };
    let mut after = None;
    let mut events = Vec::new();
    loop {
        let page = Queue::of(app.runtime()).jobs(&filter, &PageRequest::new(after, Some(200))).await?;
        let topic = format!("task/{}", task.id);
        events.extend(page.items.iter().map(|job| ("job", body(&topic, task.revision, moved.at, &JobBody::from(job)))));
        after = page.next;
        if after.is_none() {
            return Ok(events);
        }
    }
}

async fn gone(app: &App, owner: &Principal, id: &str, topic: &str, moved: &Moved) -> Result<Option<Named>, StoreError> {
    match Tasks::of(app.runtime()).any(&TaskId::from_text(id)).await {
        Ok(TaskLookup::Expired { owner: of, .. }) if of == *owner => {
            let row = json!({ "task_id": id, "deleted": true });
            Ok(Some(("task", body(topic, moved.revision, moved.at, &row))))
        }
        Ok(_) | Err(StoreError::NotFound { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Any other change is only named, for users; a client that needs more reads it. Chats that the viewer may see are
/// named to every user; the rest names things of the installation, and is for admins.
fn hint(viewer: &Viewer, topic: &str, moved: &Moved) -> Option<Named> {
    if viewer.principal.as_user().is_none() || (!viewer.is_admin && !topic.starts_with("chat/")) {
        return None;
    }
    let name = match topic.split('/').next().unwrap_or(topic) {
        "session" => "session",
        "chat" => "chat",
        "agent" => "agent",
        "auth" => "auth",
        "notice" | "notification" | "notifications" => "notice",
        "calibration" => "calibration",
        _ => "change",
    };
    Some((name, body(topic, moved.revision, moved.at, &json!({ "kind": moved.kind }))))
}

fn body(topic: &str, revision: i64, at: Timestamp, row: &impl Serialize) -> EventBody {
    let mut row = match serde_json::to_value(row) {
        Ok(Value::Object(row)) => row,
        _ => Map::new(),
    };
    // It stands once, beside the row.
    row.remove("revision");
    EventBody { topic: topic.to_owned(), revision, at: at.to_string(), row }
}
