//! `get_notifications`: what a session has not acknowledged. Never replaced by the notice it answers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use matsu_core::id::NotificationId;
use matsu_core::language::Language;
use matsu_core::limits::NOTIFICATIONS_PER_CALL_MAX;
use matsu_core::notification::{Notification, texts};
use matsu_core::ports::store::{Give, Marking};

use crate::tool::{Annotations, Rules, Tool, ToolContext, ToolError, ToolReply, Toolset};

pub struct GetNotifications;

#[derive(Deserialize, JsonSchema)]
pub struct Input {
    /// false: do not acknowledge; true (default): your next call acknowledges what this one returned.
    mark_as_read: Option<bool>,
    /// Ids of notifications to acknowledge now.
    #[schemars(length(max = 50))]
    ack_ids: Option<Vec<String>>,
}

#[derive(Serialize, JsonSchema)]
pub struct Output {
    /// Unread ones, newest first.
    notifications: Vec<NotificationBody>,
}

#[derive(Serialize, JsonSchema)]
struct NotificationBody {
    id: String,
    /// interrupt, message or status_change.
    #[serde(rename = "type")]
    kind: &'static str,
    action: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    task_id: Option<String>,
    message: String,
    instruction: String,
    created_at: String,
}

impl NotificationBody {
    fn of(notification: &Notification, language: Language) -> Self {
        Self {
            id: notification.id.to_string(),
            kind: notification.kind.as_str(),
            action: notification.action.as_str(),
            task_id: notification.task_id.as_ref().map(ToString::to_string),
            message: texts::message(language, notification),
            instruction: texts::instruction(language, notification),
            created_at: notification.created_at.to_string(),
        }
    }
}

impl Tool for GetNotifications {
    const NAME: &'static str = "get_notifications";
    const TITLE: &'static str = "Read notifications";
    const DESCRIPTION: &'static str = "Session: unread notifications from people: orders to stop, messages, changes of \
        your task. Call it when a reply's notification field says that there are some, and follow each instruction. \
        Your next call of another tool acknowledges them; until then an order to stop replaces every other reply.";
    const TOOLSET: Toolset = Toolset::Sessions;
    const ANNOTATIONS: Annotations = Annotations { read_only: false, ..Annotations::READS };
    const RULES: Rules = Rules::READS_NOTIFICATIONS;
    type Input = Input;
    type Output = Output;

    async fn call(cx: &ToolContext, input: Input) -> Result<ToolReply<Output>, ToolError> {
        let session = &cx.session()?.id;
        let marking = if input.mark_as_read.unwrap_or(true) { Marking::Given } else { Marking::Nothing };
        let request = Give {
            session_id: session.clone(),
            marking,
            ack_ids: input.ack_ids.unwrap_or_default().into_iter().map(NotificationId::from_text).collect(),
            rows_max: NOTIFICATIONS_PER_CALL_MAX,
            now: cx.runtime.clock().now(),
        };
        let given = cx.runtime.store().run(request).await?;
        if marking == Marking::Given && !given.is_empty() {
            cx.delivery.notifications(session, given.iter().map(|notification| notification.id.clone()).collect());
        }
        let language = cx.runtime.session_options().language;
        let notifications = given.iter().map(|notification| NotificationBody::of(notification, language)).collect();
        Ok(ToolReply::Done(Output { notifications }))
    }
}
