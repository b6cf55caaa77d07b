//! `send_message`: an agent speaks in its chat.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use matsu_core::chat::check_content;
use matsu_core::id::MessageId;
use matsu_core::ports::store::Say;
use matsu_core::redaction::redact;

use crate::tool::{Annotations, Answer, Rules, Tool, ToolContext, ToolError, Toolset};

pub struct SendMessage;

#[derive(Deserialize, JsonSchema)]
pub struct Input {
    /// What to say.
    #[schemars(length(min = 1, max = 4000))]
    content: String,
    /// The id of the message this answers; acknowledges it and everything before.
    #[schemars(length(min = 1, max = 100))]
    reply_to: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub struct Output {
    message_id: String,
    chat_id: String,
    seq: i64,
}

impl Tool for SendMessage {
    const NAME: &'static str = "send_message";
    const DESCRIPTION: &'static str = "Session: say something to the person in the chat, 1 to 4000 characters. Name \
        the message you answer in reply_to; that acknowledges it and what came before. Without reply_to what this \
        session was last handed counts as read. Also works while you do a task, if a chat with you is open.";
    const TOOLSET: Toolset = Toolset::Sessions;
    const ANNOTATIONS: Annotations = Annotations { read_only: false, destructive: false, idempotent: false };
    const RULES: Rules = Rules::SESSION;
    type Input = Input;
    type Output = Output;

    async fn call(cx: &ToolContext, input: Input) -> Result<Answer<Output>, ToolError> {
        check_content(&input.content).map_err(|bad| {
            ToolError::param("content", "string of 1..4000 characters, not blank", "blank", bad.to_string())
        })?;
        let now = cx.runtime.clock().now();
        let say = Say {
            id: MessageId::mint(now),
            session_id: cx.session()?.id.clone(),
            content: redact(&input.content).into_owned(),
            reply_to: input.reply_to.map(MessageId::from_text),
            connection: cx.connection.clone(),
            now,
        };
        let message = cx.runtime.store().say(say).await?;
        Ok(Answer::Done(Output {
            message_id: message.id.to_string(),
            chat_id: message.chat_id.to_string(),
            seq: message.seq,
        }))
    }
}
