//! Incoming webhooks: their owners add, try, pause and remove them. What is sent to them comes in at `hooks.rs`.

use axum::Json;
use axum::extract::{Path, Query, State};
use matsu_core::webhook::{Delivery, DeliveryState, Webhook, WebhookKind};
use matsu_runtime::notify::webhooks::{WebhookWish, Webhooks};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::app::App;
use crate::auth::Caller;
use crate::problem::Problem;
use crate::resource::{Resource, operation};
use crate::wire::{PageBody, PageQuery, PauseBody, time};

pub fn routes() -> Resource {
    let list = operation("list_webhooks", "Webhooks, oldest first.").query::<PageQuery>();
    let add = operation("add_webhook", "Adds a webhook; the reply contains its address and its secret.");
    let pause = operation("pause_webhook", "Pauses or resumes a webhook.").body::<PauseBody>();
    let test = operation("test_webhook", "Processes a test delivery from you, as if the service had sent it.")
        .body::<TestBody>();
    let remove = operation(
        "remove_webhook",
        "Removes a webhook and drops its deliveries that wait; tasks that it started stay.",
    );
    let deliveries = operation("list_deliveries", "Outcome of each delivery to a webhook, newest first.");
    Resource::default()
        .get("/webhooks", list.answers::<PageBody<WebhookBody>>(), self::list)
        .post("/webhooks", add.body::<NewBody>().answers::<AddedBody>(), self::add)
        .post("/webhooks/{id}/pause", pause.answers::<WebhookBody>(), self::pause)
        .post("/webhooks/{id}/test", test.answers::<DeliveryBody>(), self::test)
        .delete("/webhooks/{id}", remove.answers::<RemovedBody>(), self::remove)
        .get(
            "/webhooks/{id}/deliveries",
            deliveries.query::<PageQuery>().answers::<PageBody<DeliveryBody>>(),
            self::deliveries,
        )
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NewBody {
    /// A name that none of your webhooks has.
    #[schemars(length(min = 1, max = 64))]
    name: String,
    /// How its deliveries are signed. Absent: standard.
    kind: Option<WebhookKind>,
    /// Absent: Matsu creates one.
    secret: Option<String>,
    /// The arguments of use_agent. `message` is the template, in which {{issue.title}} names a field of what was sent.
    /// It is read-only unless `mode` says otherwise.
    run: Map<String, Value>,
    /// The folder to work in.
    directory: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct WebhookBody {
    webhook_id: String,
    name: String,
    kind: WebhookKind,
    /// The path for deliveries on this server.
    path: String,
    /// What it starts, in one line.
    starts: String,
    directory: Option<String>,
    /// Why it accepts no delivery at the moment. Absent: it accepts them.
    paused: Option<String>,
    created_at: String,
}

/// A new webhook.
#[derive(Serialize, JsonSchema)]
struct AddedBody {
    #[serde(flatten)]
    webhook: WebhookBody,
    /// The secret for the sender. It is shown only here.
    secret: String,
}

/// A webhook that is gone.
#[derive(Serialize, JsonSchema)]
struct RemovedBody {
    #[serde(flatten)]
    webhook: WebhookBody,
    /// Deliveries that were taken and not started yet. They are not started any more.
    dropped: u32,
}

impl From<&Webhook> for WebhookBody {
    fn from(webhook: &Webhook) -> Self {
        let of = |name: &str| webhook.run.get(name).and_then(Value::as_str).unwrap_or_default();
        Self {
            webhook_id: webhook.id.to_string(),
            name: webhook.name.clone(),
            kind: webhook.kind,
            path: format!("/hooks/{}", webhook.id),
            starts: format!("run {} ({}): {}", of("cli_name"), of("mode"), of("message")),
            directory: webhook.directory.clone(),
            paused: webhook.paused.clone(),
            created_at: time(webhook.created_at),
        }
    }
}

#[derive(Serialize, JsonSchema)]
struct DeliveryBody {
    /// The sender's id of the delivery.
    key: String,
    received_at: String,
    state: DeliveryState,
    task_id: Option<String>,
    /// Why nothing was started.
    note: Option<String>,
}

impl From<&Delivery> for DeliveryBody {
    fn from(delivery: &Delivery) -> Self {
        Self {
            key: delivery.key.clone(),
            received_at: time(delivery.received_at),
            state: delivery.state,
            task_id: delivery.task_id.as_ref().map(ToString::to_string),
            note: delivery.note.clone(),
        }
    }
}

async fn list(
    State(app): State<App>,
    caller: Caller,
    Query(query): Query<PageQuery>,
) -> Result<Json<PageBody<WebhookBody>>, Problem> {
    Ok(Json(PageBody::of(Webhooks::of(app.runtime()).webhooks(&caller.principal, &query.page()).await?)))
}

async fn add(State(app): State<App>, caller: Caller, Json(body): Json<NewBody>) -> Result<Json<AddedBody>, Problem> {
    let wish = WebhookWish {
        name: body.name,
        kind: body.kind.unwrap_or(WebhookKind::Standard),
        secret: body.secret,
        run: body.run,
        directory: body.directory,
    };
    let added = Webhooks::of(app.runtime()).add_webhook(&caller.principal, wish).await?;
    Ok(Json(AddedBody { webhook: WebhookBody::from(&added), secret: added.secret.reveal().to_string() }))
}

async fn pause(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
    Json(body): Json<PauseBody>,
) -> Result<Json<WebhookBody>, Problem> {
    let changed = Webhooks::of(app.runtime()).pause_webhook(&caller.principal, &id, body.paused).await?;
    Ok(Json(WebhookBody::from(&changed)))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct TestBody {
    /// What is sent.
    payload: Value,
}

async fn test(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
    Json(body): Json<TestBody>,
) -> Result<Json<DeliveryBody>, Problem> {
    let delivery = Webhooks::of(app.runtime()).test_webhook(&caller.principal, &id, &body.payload).await?;
    Ok(Json(DeliveryBody::from(&delivery)))
}

async fn remove(State(app): State<App>, caller: Caller, Path(id): Path<String>) -> Result<Json<RemovedBody>, Problem> {
    let removed = Webhooks::of(app.runtime()).remove_webhook(&caller.principal, &id).await?;
    Ok(Json(RemovedBody { webhook: WebhookBody::from(&removed.webhook), dropped: removed.dropped }))
}

async fn deliveries(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
    Query(query): Query<PageQuery>,
) -> Result<Json<PageBody<DeliveryBody>>, Problem> {
    Ok(Json(PageBody::of(Webhooks::of(app.runtime()).deliveries(&caller.principal, &id, &query.page()).await?)))
}
