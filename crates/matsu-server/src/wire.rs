//! What goes over the wire: hand-written twins of the core's types, so that a change inside cannot change the API.

mod no_fields;
pub mod people;

use matsu_core::access::Role;
use matsu_core::clock::Timestamp;
use matsu_core::job::{JobKind, JobState, JobSummary, Priority};
use matsu_core::limits::RESULT_HEAD_BYTES_MAX;
use matsu_core::node::Node;
use matsu_core::page::{Page, PageRequest};
use matsu_core::slot::Slot;
use matsu_core::task::{ReviewState, Stop, StopMode, StopReason, Task, TaskKind, TaskStatus};
use matsu_core::token::Token;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The page of a list.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PageQuery {
    /// `next` of the previous page.
    after: Option<i64>,
    limit: Option<u32>,
}

impl PageQuery {
    pub fn page(&self) -> PageRequest {
        PageRequest::new(self.after, self.limit)
    }
}

/// Whether a schedule or webhook is paused.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PauseBody {
    pub paused: bool,
}

pub use no_fields::NoFields;

/// One page of a list.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "PageOf{T}")]
pub struct PageBody<T> {
    pub items: Vec<T>,
    /// Pass as `after` for the next page.
    pub next: Option<i64>,
}

impl<T> PageBody<T> {
    pub fn of<U>(page: Page<U>) -> Self
    where
        T: for<'a> From<&'a U>,
    {
        Self { items: page.items.iter().map(T::from).collect(), next: page.next }
    }
}

pub fn time(at: Timestamp) -> String {
    at.to_string()
}

#[derive(Serialize, JsonSchema)]
pub struct TaskBody {
    pub task_id: String,
    pub kind: TaskKind,
    pub title: String,
    pub status: TaskStatus,
    pub status_message: Option<String>,
    pub owner: String,
    pub parent_id: Option<String>,
    pub assignee: Option<String>,
    /// The agents whose runs it has.
    pub agents: Vec<String>,
    /// The project folder of the client that started it; absent where a person or a schedule did.
    pub started_in: Option<String>,
    pub revision: i64,
    pub finished_revision: i64,
    pub jobs: JobCountsBody,
    pub stop: Option<StopBody>,
    pub created_at: String,
    pub updated_at: String,
    pub finished_at: Option<String>,
    pub unread: bool,
    /// The last decision about the changes of its runs.
    pub review: Option<ReviewState>,
    /// After sent_back: the task in which the agent continues.
    pub next_task_id: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub struct JobCountsBody {
    pub queued: i64,
    pub running: i64,
    pub awaiting_auth: i64,
    pub awaiting_input: i64,
    pub completed: i64,
    pub failed: i64,
    pub cancelled: i64,
}

#[derive(Serialize, JsonSchema)]
pub struct StopBody {
    pub mode: StopMode,
    pub reason: StopReason,
    pub requested_at: String,
}

impl From<&Stop> for StopBody {
    fn from(stop: &Stop) -> Self {
        Self { mode: stop.mode, reason: stop.reason, requested_at: time(stop.requested_at) }
    }
}

impl From<&Task> for TaskBody {
    fn from(task: &Task) -> Self {
        let counts = &task.counts;
        Self {
            task_id: task.id.to_string(),
            kind: task.kind,
            title: task.title.clone(),
            status: task.status,
            status_message: task.status_message.clone(),
            owner: task.owner.to_string(),
            parent_id: task.parent_id.as_ref().map(ToString::to_string),
            assignee: task.assignee.clone(),
            agents: task.agents(),
            started_in: task.started_in(),
            revision: task.revision,
            finished_revision: task.finished_revision,
            jobs: JobCountsBody {
                queued: counts.queued,
                running: counts.running,
                awaiting_auth: counts.awaiting_auth,
                awaiting_input: counts.awaiting_input,
                completed: counts.completed,
                failed: counts.failed,
                cancelled: counts.cancelled,
            },
            stop: task.stop.as_ref().map(StopBody::from),
            created_at: time(task.created_at),
            updated_at: time(task.updated_at),
            finished_at: task.finished_at.map(time),
            unread: task.finished_at.is_some() && task.first_read_at.is_none(),
            review: task.last_review().map(|review| review.state),
            next_task_id: task.last_review().and_then(|review| review.next_task.as_ref().map(ToString::to_string)),
        }
    }
}

#[derive(Serialize, JsonSchema)]
pub struct JobBody {
    pub id: String,
    pub task_id: Option<String>,
    pub kind: JobKind,
    pub priority: Priority,
    pub slot: Slot,
    pub state: JobState,
    pub attempt: i64,
    pub failures: u32,
    pub error_code: Option<String>,
    pub error_message: Option<String>,
    pub progress: Option<String>,
    /// The beginning of the output; `output_bytes` is the size of all of it.
    pub output: Option<String>,
    pub output_bytes: Option<i64>,
    pub owner_node: Option<String>,
    pub queued_at: String,
    pub started_at: Option<String>,
    pub finished_at: Option<String>,
}

impl From<&JobSummary> for JobBody {
    fn from(job: &JobSummary) -> Self {
        Self {
            id: job.id.to_string(),
            task_id: job.task_id.as_ref().map(ToString::to_string),
            kind: job.kind,
            priority: job.priority,
            slot: job.slot,
            state: job.state,
            attempt: job.attempt,
            failures: job.failures,
            error_code: job.error_code.clone(),
            error_message: job.error_message.clone(),
            progress: job.progress_json.clone(),
            output: job.output_head.as_deref().map(head),
            output_bytes: job.output_bytes,
            owner_node: job.owner_node.as_ref().map(ToString::to_string),
            queued_at: time(job.queued_at),
            started_at: job.started_at.map(time),
            finished_at: job.finished_at.map(time),
        }
    }
}

/// What one row of a list shows of a long text.
fn head(text: &str) -> String {
    text[..text.floor_char_boundary(RESULT_HEAD_BYTES_MAX)].to_owned()
}

#[derive(Serialize, JsonSchema)]
pub struct NodeBody {
    pub id: String,
    pub role: &'static str,
    pub host: String,
    pub pid: u32,
    pub version: String,
    pub started_at: String,
}

impl From<&Node> for NodeBody {
    fn from(node: &Node) -> Self {
        Self {
            id: node.id.to_string(),
            role: node.role.as_str(),
            host: node.host.clone(),
            pid: node.pid,
            version: node.version.clone(),
            started_at: time(node.started_at),
        }
    }
}

#[derive(Serialize, JsonSchema)]
pub struct TokenBody {
    pub id: String,
    pub name: String,
    pub principal: String,
    /// The name of its user; `local` is the owner of this installation.
    pub user: String,
    pub role: Role,
    /// The only tools it is offered.
    pub tools: Option<String>,
    pub created_at: String,
    /// Absent: it is valid until it is revoked.
    pub expires_at: Option<String>,
    pub revoked_at: Option<String>,
}

impl From<&Token> for TokenBody {
    fn from(token: &Token) -> Self {
        Self {
            id: token.id.to_string(),
            name: token.name.clone(),
            principal: token.principal.to_string(),
            user: token.principal.as_user().unwrap_or_default().to_owned(),
            role: token.role,
            tools: token.tools.clone(),
            created_at: time(token.created_at),
            expires_at: token.expires_at.map(time),
            revoked_at: token.revoked_at.map(time),
        }
    }
}

/// A list without pages.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ListOf{T}")]
pub struct ListBody<T> {
    pub items: Vec<T>,
}
