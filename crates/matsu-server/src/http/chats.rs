//! Chats: open, read, write, stop, end.

use axum::Json;
use axum::extract::{Extension, Path, Query, State};
use axum::http::StatusCode;
use matsu_core::chat::{Chat, ChatKind};
use matsu_core::id::{AgentId, ChatId, MessageId, ProjectId};
use matsu_core::page::PageRequest;
use matsu_core::ports::store::StoreError;
use matsu_runtime::agents::Agents;
use matsu_runtime::chats::shown::ShownMessage;
use matsu_runtime::chats::{AgentState, Chats, MessageRange};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::agent_runs::AnswerBody;
use super::model_chats;
use crate::app::App;
use crate::auth::Caller;
use crate::openapi::AnyObject;
use crate::peer::Peer;
use crate::problem::Problem;
use crate::resource::{Resource, operation};
use crate::wire::people::{ChatBody, MessageBody, NotificationBody};
use crate::wire::{PageBody, PageQuery};

pub fn routes() -> Resource {
    let list_chats =
        operation("list_chats", "Lists chats, newest first: all chats with agents, and your own chats with models.")
            .query::<PageQuery>();
    let open_chat =
        operation("open_chat", "Opens a chat with an agent, or returns the open one; or a new one with models.")
            .body::<ChatWish>();
    let messages = operation("list_messages", "The messages of a chat: the newest, or those after a sequence number.");
    let write = operation("write_message", "Posts a message to a chat.").body::<MessageWish>();
    let stop = operation(
        "stop_in_chat",
        "Stops the answer that is being written; its text so far is kept and the chat stays open.",
    )
    .body::<StopWish>();
    let answer = operation("answer_in_chat", "Answers the question of a chat's agent.").body::<AnswerBody>();
    Resource::default()
        .get("/chats", list_chats.answers::<PageBody<ChatBody>>(), list)
        .post("/chats", open_chat.answers::<ChatBody>(), open)
        .get("/chats/{id}", operation("read_chat", "One chat.").answers::<ChatBody>(), read)
        .get(
            "/chats/{id}/messages",
            messages.query::<MessagesQuery>().answers::<PageBody<MessageBody>>(),
            read_messages,
        )
        .post("/chats/{id}/messages", write.creates::<MessageBody>(), write_message)
        .post(
            "/chats/{id}/end",
            operation("end_chat", "Ends a chat; it takes no more messages.").answers::<ChatBody>(),
            end,
        )
        .post("/chats/{id}/stop", stop.answers::<StoppedBody>(), stop_answer)
        .post("/chats/{id}/answer", answer.answers::<AnyObject>(), give_answer)
}

async fn body(app: &App, chat: &Chat) -> Result<ChatBody, StoreError> {
    let state = Chats::of(app.runtime()).agent_state(chat).await?;
    let mut body = ChatBody::of(chat, state.map(AgentState::as_str));
    // Only an agent that is connected can ask.
    if state == Some(AgentState::Connected) {
        body.question = Chats::of(app.runtime()).question(&chat.id).await?.map(Into::into);
    }
    Ok(body)
}

async fn list(
    State(app): State<App>,
    caller: Caller,
    Query(query): Query<PageQuery>,
) -> Result<Json<PageBody<ChatBody>>, Problem> {
    let page = Chats::of(app.runtime()).list(&caller.viewer(), &query.page()).await?;
    let mut items = Vec::with_capacity(page.items.len());
    for chat in &page.items {
        items.push(body(&app, chat).await?);
    }
    Ok(Json(PageBody { items, next: page.next }))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("oneOf" = [
    { "required": ["agent_id"], "properties": { "agent_id": { "type": "string" }, "models": { "type": "null" } } },
    { "required": ["models"], "properties": { "models": { "type": "array" }, "agent_id": { "type": "null" } } },
]))]
struct ChatWish {
    agent_id: Option<String>,
    /// Absent: `default`.
    project_id: Option<String>,
    /// Instead of an agent: the models that may speak; an empty list means all of them.
    models: Option<Vec<String>>,
    /// With models: a chat without a person. Tools that do more than read need approval, and no agents are started.
    #[serde(default)]
    unattended: bool,
}

async fn open(
    State(app): State<App>,
    caller: Caller,
    peer: Option<Extension<Peer>>,
    Json(wish): Json<ChatWish>,
) -> Result<Json<ChatBody>, Problem> {
    let run = peer.and_then(|Extension(peer)| peer.run);
    if let Some(models) = &wish.models {
        if wish.agent_id.is_some() {
            return Err(Problem::invalid("a chat has an agent_id or models, not both"));
        }
        // A chat that a run opens is unattended, whatever the request says.
        let unattended = wish.unattended || run.is_some();
        let chat = model_chats::open(&app, &caller.principal, models, unattended, run.map(|run| run.run_id)).await?;
        return Ok(Json(body(&app, &chat).await?));
    }
    let agent = wish
        .agent_id
        .ok_or_else(|| Problem::invalid("agent_id or models is required: the agent or the models of the chat"))?;
    // Named agents are the installation's, and a run has chats with models only.
    if caller.only_own().is_some() || run.is_some() {
        return Err(StoreError::NotFound { what: "agent", id: agent }.into());
    }
    let project = ProjectId::from_text(wish.project_id.unwrap_or_else(|| "default".to_owned()));
    let opened = Chats::of(app.runtime()).open_chat(&AgentId::from_text(agent), &project).await?;
    Ok(Json(body(&app, &opened.chat).await?))
}

/// For a caller, a chat that it may not see does not exist.
async fn known(app: &App, caller: &Caller, id: String) -> Result<Chat, Problem> {
    Ok(Chats::of(app.runtime()).read_for(&caller.viewer(), &ChatId::from_text(id)).await?)
}

async fn read(State(app): State<App>, caller: Caller, Path(id): Path<String>) -> Result<Json<ChatBody>, Problem> {
    let chat = known(&app, &caller, id).await?;
    Ok(Json(body(&app, &chat).await?))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct MessagesQuery {
    /// Only what came after this number, oldest first.
    after: Option<i64>,
    /// Else the last ones before this number.
    before: Option<i64>,
    limit: Option<u32>,
}

async fn read_messages(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
    Query(query): Query<MessagesQuery>,
) -> Result<Json<PageBody<MessageBody>>, Problem> {
    let chat = known(&app, &caller, id).await?;
    let rows_max = PageRequest::new(None, query.limit).limit();
    let range = MessageRange { after: query.after, before: query.before, rows_max };
    let view = match &chat.kind {
        ChatKind::Agent(_) => Chats::of(app.runtime()).view(chat, &range).await?,
        ChatKind::Models(_) => model_chats::view(&app, &caller.principal, &chat.id).await?,
    };
    let id = view.chat.id.clone();
    let (messages, next) = view.part(&range);
    Ok(Json(PageBody { items: messages.iter().map(|message| MessageBody::of(&id, message)).collect(), next }))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct MessageWish {
    /// 1 to 4000 characters to an agent, 200,000 to models; not blank.
    #[schemars(length(min = 1, max = 200_000), regex(pattern = r"\S"))]
    content: String,
    reply_to: Option<String>,
    /// In a chat with models: the models that must answer, independent of the content. Absent: those that it mentions.
    to: Option<Vec<String>>,
    /// To models: at most 8 images as Base64 (PNG, JPEG, GIF, WebP), together at most 2.75 MB.
    #[serde(default)]
    #[schemars(length(max = 8))]
    images: Vec<String>,
}

async fn write_message(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
    Json(wish): Json<MessageWish>,
) -> Result<(StatusCode, Json<MessageBody>), Problem> {
    let Chat { id, kind, .. } = known(&app, &caller, id).await?;
    let MessageWish { content, reply_to, to, images } = wish;
    let posted = match kind {
        ChatKind::Agent(_) if !images.is_empty() => {
            return Err(Problem::invalid(
                "a message to an agent cannot contain images; save them as files that it can read",
            ));
        }
        ChatKind::Agent(_) => {
            let reply_to = reply_to.map(MessageId::from_text);
            let message = Chats::of(app.runtime()).post_as_person(&caller.principal, &id, content, reply_to).await?;
            ShownMessage::from(&message)
        }
        ChatKind::Models(_) => {
            let line = model_chats::line(&content, &images)?;
            model_chats::write(&app, &caller.principal, &id, line, to.as_deref()).await?
        }
    };
    Ok((StatusCode::CREATED, Json(MessageBody::of(&id, &posted))))
}

async fn give_answer(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
    Json(body): Json<AnswerBody>,
) -> Result<Json<Value>, Problem> {
    let chat = known(&app, &caller, id).await?;
    Agents::of(app.runtime()).answer_in_chat(&chat.id, &body.into()).await?;
    Ok(Json(json!({ "ok": true })))
}

async fn end(State(app): State<App>, caller: Caller, Path(id): Path<String>) -> Result<Json<ChatBody>, Problem> {
    let Chat { id, kind, .. } = known(&app, &caller, id).await?;
    let chat = match kind {
        ChatKind::Agent(_) => Chats::of(app.runtime()).end_chat(&id).await?,
        ChatKind::Models(_) => model_chats::end(&app, &caller.principal, &id).await?,
    };
    Ok(Json(body(&app, &chat).await?))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct StopWish {
    /// The text for the agent.
    message: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct StoppedBody {
    /// Whether there was an agent or an answer to stop.
    stopped: bool,
    notification: Option<NotificationBody>,
}

async fn stop_answer(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
    Json(wish): Json<StopWish>,
) -> Result<Json<StoppedBody>, Problem> {
    let Chat { id, kind, .. } = known(&app, &caller, id).await?;
    if kind.models().is_some() {
        let stopped = model_chats::stop(&app, &caller.principal, &id).await?;
        return Ok(Json(StoppedBody { stopped, notification: None }));
    }
    let text = wish.message.unwrap_or_else(|| "A person asked you to stop what you are doing.".to_owned());
    let sent = Chats::of(app.runtime()).stop_in_chat(&id, text).await?;
    let language = app.runtime().session_options().language;
    let notification = sent.as_ref().map(|sent| NotificationBody::of(sent, language));
    Ok(Json(StoppedBody { stopped: notification.is_some(), notification }))
}
