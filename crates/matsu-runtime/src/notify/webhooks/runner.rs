//! The loop that starts what has arrived at webhooks. Every node runs it; the store lets one of them have each delivery.

use std::time::Duration;

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use matsu_core::change::Topic;
use matsu_core::error_code::ErrorCode;
use matsu_core::id::TaskId;
use matsu_core::limits::FIRING_LEASE;
use matsu_core::ports::store::{NextDeliveryAt, PauseWebhook, SettleDelivery, TakeDeliveries};
use matsu_core::webhook::{Delivery, Webhook};

use super::message;
use crate::notify::schedules::repeat::{pause_until, repeat};
use crate::notify::schedules::start::{self, Refused, Source, unstarted};
use crate::runtime::Runtime;
use crate::tasks::TaskError;

/// At one look. Each may carry a payload of a megabyte.
const ROWS_MAX: u32 = 8;

/// Starts deliveries until it is cancelled.
pub async fn run(runtime: &Runtime, until: &CancellationToken) {
    repeat(runtime, Topic::webhooks(), until, || step(runtime)).await;
}

/// Starts what is to be started. Returns how long nothing is.
async fn step(runtime: &Runtime) -> Result<Duration, TaskError> {
    let now = runtime.clock().now();
    let taken =
        runtime.store().run(TakeDeliveries { now, again_at: now.plus(FIRING_LEASE), rows_max: ROWS_MAX }).await?;
    for (delivery, payload, webhook) in taken {
        if !start::has_owner(runtime, &webhook.owner).await? {
            runtime.store().run(PauseWebhook(webhook.id.clone(), Some("its owner was removed".to_owned()))).await?;
            continue;
        }
        let begun = begin(runtime, &webhook, &delivery, &payload).await?;
        let begun = begun.map_err(|refused| Box::new(unstarted(runtime, &Source::of_webhook(&webhook), refused)));
        match &begun {
            Ok(task) => {
                tracing::info!(webhook = webhook.name, delivery = %delivery.id, %task, "a webhook started a task")
            }
            Err(unstarted) => {
                let why = &unstarted.why;
                tracing::warn!(webhook = webhook.name, delivery = %delivery.id, why, "a webhook could not start its task")
            }
        }
        runtime.store().run(SettleDelivery { id: delivery.id.clone(), begun: begun.clone() }).await?;
    }
    let next = runtime.store().run(NextDeliveryAt).await?;
    Ok(pause_until(runtime, next))
}

/// The id of the delivery is the idempotency key, so a second try finds the task of the first. It has 80 random bits
/// that the sender cannot know, so it marks the data too.
async fn begin(
    runtime: &Runtime,
    webhook: &Webhook,
    delivery: &Delivery,
    payload: &str,
) -> Result<Result<TaskId, Refused>, TaskError> {
    let mut arguments = webhook.run.clone();
    let template = arguments.get("message").and_then(Value::as_str).unwrap_or_default();
    let message = match message::compose(template, &webhook.name, payload, delivery.id.as_str()) {
        Ok(message) => message,
        Err(why) => return Ok(Err(Refused { code: ErrorCode::InvalidParams.as_str().to_owned(), why })),
    };
    arguments.insert("message".to_owned(), json!(message));
    start::start_run(runtime, &webhook.owner, webhook.directory.as_deref(), &arguments, delivery.id.as_str()).await
}
