//! Browsers that get notices by push: the page subscribes and unsubscribes itself here.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use matsu_core::ports::notice_channel::{NoticeChannel, Subscribing};
use matsu_core::principal::Principal;
use matsu_core::push::PushSubscription;
use matsu_runtime::notify::push::{BrowserKeys, Push};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::app::App;
use crate::auth::{Caller, Credential};
use crate::problem::Problem;
use crate::resource::{Resource, operation};
use crate::wire::time;

pub fn routes() -> Resource {
    let read =
        operation("read_push", "Whether notices can be pushed to browsers, and which of your browsers get them.");
    let subscribe = operation("subscribe_push", "Pushes your notices to this browser, until its session ends.");
    let unsubscribe = operation("unsubscribe_push", "Stops the notices to a browser.");
    Resource::default()
        .get("/push", read.answers::<PushBody>(), self::read)
        .post("/push", subscribe.body::<SubscribeBody>().creates::<SubscriptionBody>(), self::subscribe)
        .delete("/push/{id}", unsubscribe, self::unsubscribe)
}

#[derive(Serialize, JsonSchema)]
struct PushBody {
    /// The name of your channel; absent: none of the kind `push` is configured for you.
    channel: Option<String>,
    /// The public key with which a browser subscribes, in base64url.
    public_key: Option<String>,
    /// Oldest first.
    items: Vec<SubscriptionBody>,
}

#[derive(Serialize, JsonSchema)]
struct SubscriptionBody {
    subscription_id: String,
    /// The host of its push service.
    service: String,
    created_at: String,
}

impl From<&PushSubscription> for SubscriptionBody {
    fn from(known: &PushSubscription) -> Self {
        // The rest of the address is a secret of the browser.
        let host = known.endpoint.split('/').nth(2).unwrap_or_default();
        Self { subscription_id: known.id.to_string(), service: host.to_owned(), created_at: time(known.created_at) }
    }
}

/// The channel of this user to which browsers subscribe.
fn channel<'a>(channels: &'a [Arc<dyn NoticeChannel>], user: &Principal) -> Option<(&'a str, &'a dyn Subscribing)> {
    let own = |channel: &'a dyn NoticeChannel| channel.subscribing().map(|to| (channel.name(), to));
    channels.iter().filter(|channel| channel.rules().owner == *user).find_map(|channel| own(channel.as_ref()))
}

async fn read(State(app): State<App>, caller: Caller) -> Result<Json<PushBody>, Problem> {
    let known = Push::of(app.runtime()).push_subscriptions(&caller.principal).await?;
    let channels = app.channels();
    let channel = channel(&channels, &caller.principal);
    Ok(Json(PushBody {
        channel: channel.map(|(name, _)| name.to_owned()),
        public_key: channel.map(|(_, to)| to.public_key().to_owned()),
        items: known.iter().map(SubscriptionBody::from).collect(),
    }))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SubscribeBody {
    /// As in the browser's PushSubscription.
    endpoint: String,
    keys: KeysBody,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct KeysBody {
    p256dh: String,
    auth: String,
}

async fn subscribe(
    State(app): State<App>,
    caller: Caller,
    credential: Option<axum::Extension<Credential>>,
    Json(body): Json<SubscribeBody>,
) -> Result<(StatusCode, Json<SubscriptionBody>), Problem> {
    let channels = app.channels();
    let Some((_, channel)) = channel(&channels, &caller.principal) else {
        return Err(Problem::invalid(
            "no channel of the kind push is configured for you; add a section [notify.NAME] with kind = \"push\" to \
             the configuration file, which a running daemon reads again within seconds",
        ));
    };
    let token = credential.map(|credential| credential.token.clone());
    let browser = BrowserKeys { endpoint: body.endpoint, p256dh: body.keys.p256dh, auth: body.keys.auth };
    let added = Push::of(app.runtime()).subscribe_push(&caller.principal, token, browser, channel).await?;
    Ok((StatusCode::CREATED, Json(SubscriptionBody::from(&added))))
}

async fn unsubscribe(State(app): State<App>, caller: Caller, Path(id): Path<String>) -> Result<StatusCode, Problem> {
    Push::of(app.runtime()).unsubscribe_push(&caller.principal, &id).await?;
    Ok(StatusCode::NO_CONTENT)
}
