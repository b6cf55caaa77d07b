//! Chats with models: which can be asked, what they may run, what a chat is called. The rest of a chat is in
//! `chats.rs`, which asks here when a chat is of the kind `Models`.

mod stream;

use axum::Json;
use axum::extract::{Path, Query, State};
use matsu_core::chat::Chat;
use matsu_core::error_code::ErrorCode;
use matsu_core::id::{ChatId, RunId};
use matsu_core::limits::SYSTEM_PROMPT_CHARS_MAX;
use matsu_core::principal::Principal;
use matsu_core::transcript::ChatPlace;
use matsu_runtime::chats::ChatView;
use matsu_runtime::chats::shown::ShownMessage;
use matsu_runtime::models::chat::live::Approval;
use matsu_runtime::models::chat::{ChatError, Line, LiveChats, export};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::app::App;
use crate::auth::Caller;
use crate::openapi::AnyObject;
use crate::problem::Problem;
use crate::resource::{Resource, operation};

pub fn routes() -> Resource {
    let approve = operation("answer_call", "Approves or refuses a waiting tool call.").body::<ApprovalWish>();
    let describe =
        operation("describe_chat", "Names a chat with models, or sets its system prompt.").body::<DescribeWish>();
    let file = operation("export_chat", "A chat with models as a file: JSON, or Markdown.").query::<ExportQuery>();
    let images = operation("list_images", "The images of a message, or of a tool's result, by its id.");
    Resource::default()
        .get("/models", operation("list_models", "The models that a chat can have.").answers::<ModelsBody>(), list)
        .post("/chats/{id}/approvals", approve.answers::<ApprovedBody>(), answer_call)
        .patch("/chats/{id}", describe.answers::<TranscriptBody>(), describe_chat)
        .get("/chats/{id}/images/{of}", images.answers::<ImagesBody>(), list_images)
        .get("/chats/{id}/export", file.answers::<AnyObject>(), export_chat)
        .merge(stream::routes())
}

#[derive(Serialize, JsonSchema)]
struct ModelsBody {
    items: Vec<ModelBody>,
}

#[derive(Serialize, JsonSchema)]
struct ModelBody {
    /// Its name in a chat: `@name`.
    name: String,
    /// Its name at the vendor.
    model: String,
    wire: String,
    /// Whether it answers a message without a mention.
    default: bool,
}

async fn list(State(app): State<App>, _caller: Caller) -> Json<ModelsBody> {
    let models = app.chats().map(LiveChats::models).unwrap_or_default();
    let body = |asked: matsu_runtime::models::chat::live::Asked| ModelBody {
        name: asked.name,
        model: asked.maker.model,
        wire: asked.maker.wire,
        default: asked.is_default,
    };
    Json(ModelsBody { items: models.into_iter().map(body).collect() })
}

/// The chats of this process, or why there are none.
fn live(app: &App) -> Result<&LiveChats, Problem> {
    let none = || Problem::new(ErrorCode::ResourceNotFound, "models are asked by the daemon; start `matsu serve`");
    app.chats().ok_or_else(none)
}

fn problem(error: ChatError) -> Problem {
    match error {
        ChatError::Store(error) => error.into(),
        other => Problem::new(other.code(), other.to_string()),
    }
}

pub async fn open(
    app: &App,
    owner: &Principal,
    models: &[String],
    unattended: bool,
    run: Option<RunId>,
) -> Result<Chat, Problem> {
    let place = if unattended { ChatPlace::Run } else { ChatPlace::Page };
    live(app)?.open(owner, models, place, run).await.map_err(problem)
}

/// All messages, and the answers under way.
pub async fn view(app: &App, owner: &Principal, id: &ChatId) -> Result<ChatView, Problem> {
    Ok(live(app)?.view(owner, id, 0).await.map_err(problem)?.view)
}

/// What a person says, with the images that are attached.
pub fn line(text: &str, images: &[String]) -> Result<Line, Problem> {
    Line::from(text).with_images(images.iter().map(String::as_str)).map_err(problem)
}

/// Posts a message; the models it is addressed to answer in the background.
pub async fn write(
    app: &App,
    owner: &Principal,
    id: &ChatId,
    line: Line,
    to: Option<&[String]>,
) -> Result<ShownMessage, Problem> {
    let posted = live(app)?.post(owner, id, line, to).await.map_err(problem)?;
    Ok(ShownMessage::from(&posted.line))
}

/// Whether there was an answer to stop.
pub async fn stop(app: &App, owner: &Principal, id: &ChatId) -> Result<bool, Problem> {
    live(app)?.stop(owner, id).await.map_err(problem)
}

/// Ends the chat: no more messages are accepted.
pub async fn end(app: &App, owner: &Principal, id: &ChatId) -> Result<Chat, Problem> {
    live(app)?.end_chat(owner, id).await.map_err(problem)
}

#[derive(Serialize, JsonSchema)]
struct ImagesBody {
    items: Vec<ImageDataBody>,
}

#[derive(Serialize, JsonSchema)]
struct ImageDataBody {
    media_type: String,
    /// Base64.
    data: String,
}

async fn list_images(
    State(app): State<App>,
    caller: Caller,
    Path((id, of)): Path<(String, String)>,
) -> Result<Json<ImagesBody>, Problem> {
    let images = live(&app)?.images(&caller.principal, &ChatId::from_text(id), &of).await.map_err(problem)?;
    let items = images.into_iter().map(|image| ImageDataBody { media_type: image.media_type, data: image.data });
    Ok(Json(ImagesBody { items: items.collect() }))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ApprovalWish {
    /// The id of a tool use in state `awaiting_approval`.
    call_id: String,
    /// The model of the call; needed only if two models wait with calls of the same id.
    model: Option<String>,
    allow: bool,
    /// The same answer applies to every later call of this tool in this chat.
    #[serde(default)]
    always: bool,
    /// With `allow`: the same applies to this tool in every chat of the page, also in later ones. Local owner only.
    #[serde(default)]
    remember: bool,
}

#[derive(Serialize, JsonSchema)]
struct ApprovedBody {
    call_id: String,
    allowed: bool,
}

async fn answer_call(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
    Json(wish): Json<ApprovalWish>,
) -> Result<Json<ApprovedBody>, Problem> {
    let ApprovalWish { call_id, model, allow, always, remember } = wish;
    let approval = Approval { call_id: call_id.clone(), model, allow, always, remember };
    live(&app)?.approve(&caller.principal, &ChatId::from_text(id), approval).await.map_err(problem)?;
    Ok(Json(ApprovedBody { call_id, allowed: allow }))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct DescribeWish {
    /// 1 to 100 characters on one line, unique among the caller's chats.
    #[schemars(length(min = 1, max = 100), regex(pattern = r"^[^\r\n]*\S[^\r\n]*$"))]
    name: Option<String>,
    /// Up to 100,000 characters; empty: no system prompt.
    #[schemars(length(max = 100_000))]
    system_prompt: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct TranscriptBody {
    chat_id: String,
    name: Option<String>,
    system_prompt: Option<String>,
}

async fn describe_chat(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
    Json(wish): Json<DescribeWish>,
) -> Result<Json<TranscriptBody>, Problem> {
    if wish.system_prompt.as_ref().is_some_and(|text| text.chars().count() > SYSTEM_PROMPT_CHARS_MAX) {
        return Err(Problem::invalid(format!("a system prompt has at most {SYSTEM_PROMPT_CHARS_MAX} characters")));
    }
    let open_chats = live(&app)?.open_chats();
    let mut open_chat = open_chats.look_into(&caller.principal, &ChatId::from_text(id)).await.map_err(problem)?;
    if let Some(name) = &wish.name {
        open_chat.name(name, false).await.map_err(problem)?;
    }
    if let Some(prompt) = wish.system_prompt {
        open_chat.set_system_prompt(Some(prompt).filter(|prompt| !prompt.is_empty())).await.map_err(problem)?;
    }
    let transcript = open_chat.transcript;
    Ok(Json(TranscriptBody {
        chat_id: transcript.chat.id.to_string(),
        name: transcript.name,
        system_prompt: transcript.system_prompt,
    }))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ExportQuery {
    #[serde(default)]
    format: ExportFormat,
}

#[derive(Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum ExportFormat {
    #[default]
    Json,
    /// `{"markdown": "…"}`.
    Markdown,
}

async fn export_chat(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
    Query(query): Query<ExportQuery>,
) -> Result<Json<Value>, Problem> {
    let open_chats = live(&app)?.open_chats();
    let open_chat = open_chats.look_into(&caller.principal, &ChatId::from_text(id)).await.map_err(problem)?;
    let entries = open_chat.entries().await.map_err(problem)?;
    Ok(Json(match query.format {
        ExportFormat::Json => export::to_json(&open_chat.transcript, &entries),
        ExportFormat::Markdown => json!({ "markdown": export::to_markdown(&open_chat.transcript, &entries) }),
    }))
}
