//! Sessions and notifications: which sessions there are, and the notices that people send to them.

use axum::Json;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use matsu_core::id::{AgentId, ProjectId, SessionId};
use matsu_core::notification::{NotificationAction, NotificationKind};
use matsu_core::page::PageRequest;
use matsu_core::ports::store::{SessionFilter, StoreError};
use matsu_core::session::SessionState;
use matsu_runtime::chats::Chats;
use matsu_runtime::chats::sessions::Sessions;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::app::App;
use crate::auth::Caller;
use crate::problem::Problem;
use crate::resource::{Resource, operation};
use crate::wire::PageBody;
use crate::wire::people::{NotificationBody, SessionBody};

pub fn routes() -> Resource {
    let list_sessions = operation("list_sessions", "Sessions of agents, newest first.").query::<ListQuery>();
    let send = operation("send_notification", "Sends a notice or an interrupt to a session.").body::<NoticeWish>();
    let list = operation("list_notifications", "Notifications, newest first.").query::<NotificationQuery>();
    Resource::default()
        .get("/sessions", list_sessions.answers::<PageBody<SessionBody>>(), sessions)
        .delete(
            "/sessions/{id}",
            operation("end_session", "Ends a session; the agent's next call is refused.").answers::<SessionBody>(),
            end,
        )
        .post("/sessions/{id}/notifications", send.creates::<NotificationBody>(), notify)
        .get("/notifications", list.answers::<PageBody<NotificationBody>>(), notifications)
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ListQuery {
    agent_id: Option<String>,
    project_id: Option<String>,
    state: Option<SessionState>,
    after: Option<i64>,
    limit: Option<u32>,
}

async fn sessions(
    State(app): State<App>,
    caller: Caller,
    Query(query): Query<ListQuery>,
) -> Result<Json<PageBody<SessionBody>>, Problem> {
    let filter = SessionFilter {
        owner: caller.only_own().cloned(),
        agent_id: query.agent_id.map(AgentId::from_text),
        project_id: query.project_id.map(ProjectId::from_text),
        state: query.state,
    };
    let page = PageRequest::new(query.after, query.limit);
    Ok(Json(PageBody::of(Sessions::of(app.runtime()).list(&filter, &page).await?)))
}

/// For a caller that is no admin, a session of another principal does not exist.
async fn known(app: &App, caller: &Caller, id: String) -> Result<SessionId, Problem> {
    let id = SessionId::from_text(id);
    let session = Sessions::of(app.runtime()).read(&id).await?;
    if caller.only_own().is_some_and(|own| session.owner != *own) {
        return Err(StoreError::NotFound { what: "session", id: id.to_string() }.into());
    }
    Ok(id)
}

async fn end(State(app): State<App>, caller: Caller, Path(id): Path<String>) -> Result<Json<SessionBody>, Problem> {
    let session = Chats::of(app.runtime()).close_session(&known(&app, &caller, id).await?).await?;
    Ok(Json(SessionBody::from(&session)))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NoticeWish {
    /// interrupt stops the agent's tools until it has acknowledged; message and status_change do not.
    #[serde(rename = "type")]
    kind: Option<NotificationKind>,
    action: Option<NotificationAction>,
    #[schemars(length(min = 1, max = 4_000), regex(pattern = r"\S"))]
    message: String,
    /// What the agent should do about it.
    instruction: Option<String>,
}

async fn notify(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
    Json(wish): Json<NoticeWish>,
) -> Result<(StatusCode, Json<NotificationBody>), Problem> {
    let kind = wish.kind.unwrap_or(NotificationKind::Message);
    let action = wish.action.unwrap_or(match kind {
        NotificationKind::Interrupt => NotificationAction::Pause,
        NotificationKind::Message => NotificationAction::UserMessage,
        NotificationKind::StatusChange => NotificationAction::Resume,
    });
    let session = known(&app, &caller, id).await?;
    let sent = Chats::of(app.runtime()).send_notice(&session, kind, action, wish.message, wish.instruction).await?;
    let language = app.runtime().session_options().language;
    Ok((StatusCode::CREATED, Json(NotificationBody::of(&sent, language))))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NotificationQuery {
    session_id: Option<String>,
    after: Option<i64>,
    limit: Option<u32>,
}

async fn notifications(
    State(app): State<App>,
    caller: Caller,
    Query(query): Query<NotificationQuery>,
) -> Result<Json<PageBody<NotificationBody>>, Problem> {
    let session = query.session_id.map(SessionId::from_text);
    let page = PageRequest::new(query.after, query.limit);
    let page = Sessions::of(app.runtime()).notifications(session.as_ref(), caller.only_own(), &page).await?;
    let language = app.runtime().session_options().language;
    let items = page.items.iter().map(|notification| NotificationBody::of(notification, language)).collect();
    Ok(Json(PageBody { items, next: page.next }))
}
