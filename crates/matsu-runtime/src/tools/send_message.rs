//! `send_message`: an agent writes in its chat.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use matsu_core::chat::check_content;
use matsu_core::id::MessageId;
use matsu_core::ports::store::PostMessage;
use matsu_core::redaction::redact;

use crate::tool::{Annotations, Rules, Tool, ToolContext, ToolError, ToolReply, Toolset};

pub struct SendMessage;

#[derive(Deserialize, JsonSchema)]
pub struct Input {
    /// The text of the message.
    #[schemars(length(min = 1, max = 4000))]
    content: String,
    /// Id of the message that this answers.
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
    const TITLE: &'static str = "Send a chat message";
    const DESCRIPTION: &'static str = "Session: send a message of 1 to 4000 characters to the person in your chat. \
        reply_to acknowledges that message and all before it; without reply_to everything that this session received \
        counts as read. Also works during a task, if a chat with you is open. Returns the message's id and seq.";
    const TOOLSET: Toolset = Toolset::Sessions;
    const ANNOTATIONS: Annotations = Annotations::ADDS;
    const RULES: Rules = Rules::SESSION;
    type Input = Input;
    type Output = Output;

    async fn call(cx: &ToolContext, input: Input) -> Result<ToolReply<Output>, ToolError> {
        check_content(&input.content).map_err(|bad| {
            ToolError::param("content", "string of 1..4000 characters, not blank", "blank", bad.to_string())
        })?;
        let now = cx.runtime.clock().now();
        let say = PostMessage {
            id: MessageId::mint(now),
            session_id: cx.session()?.id.clone(),
            content: redact(&input.content).into_owned(),
            reply_to: input.reply_to.map(MessageId::from_text),
            connection: cx.connection.to_string(),
            now,
        };
        let message = cx.runtime.store().run(say).await?;
        Ok(ToolReply::Done(Output {
            message_id: message.id.to_string(),
            chat_id: message.chat_id.to_string(),
            seq: message.seq,
        }))
    }
}
