//! Projects, agents, chats, sessions and notifications on the wire.

use matsu_core::agent::Agent;
use matsu_core::chat::{Chat, ChatState, Sender};
use matsu_core::id::ChatId;
use matsu_core::language::Language;
use matsu_core::notification::{Notification, NotificationAction, NotificationKind, texts};
use matsu_core::project::{Project, ProjectStatus};
use matsu_core::run::Question;
use matsu_core::session::{EndReason, Purpose, Session, SessionState};
use matsu_runtime::chats::shown::{ShownImage, ShownMessage, ShownState, ShownTool};
use schemars::JsonSchema;
use serde::Serialize;

use super::time;

#[derive(Serialize, JsonSchema)]
pub struct ProjectBody {
    pub id: String,
    pub name: String,
    pub working_directory: Option<String>,
    pub status: ProjectStatus,
    pub created_at: String,
}

impl From<&Project> for ProjectBody {
    fn from(project: &Project) -> Self {
        Self {
            id: project.id.to_string(),
            name: project.name.clone(),
            working_directory: project.working_directory.clone(),
            status: project.status,
            created_at: time(project.created_at),
        }
    }
}

#[derive(Serialize, JsonSchema)]
pub struct AgentBody {
    pub id: String,
    pub name: String,
    pub definition: Option<String>,
    pub system_prompt: Option<String>,
    pub created_at: String,
}

impl From<&Agent> for AgentBody {
    fn from(agent: &Agent) -> Self {
        Self {
            id: agent.id.to_string(),
            name: agent.name.clone(),
            definition: agent.definition.clone(),
            system_prompt: agent.system_prompt.clone(),
            created_at: time(agent.created_at),
        }
    }
}

#[derive(Serialize, JsonSchema)]
pub struct ChatBody {
    pub chat_id: String,
    pub agent_id: Option<String>,
    pub project_id: String,
    pub models: Option<Vec<String>>,
    pub state: ChatState,
    /// The state of the agent: connecting, connected, listening, idle, disconnected or ended; absent for models.
    pub agent_state: Option<&'static str>,
    /// The question of the agent, which waits for the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub question: Option<QuestionBody>,
    /// From a person's message until there is a reply.
    pub awaiting_reply: bool,
    /// The number of the last message.
    pub last_seq: i64,
    /// The number of the last message that the agent has acknowledged.
    pub acknowledged_seq: i64,
    pub last_message_at: String,
    pub created_at: String,
    pub ended_at: Option<String>,
}

impl ChatBody {
    pub fn of(chat: &Chat, agent_state: Option<&'static str>) -> Self {
        Self {
            chat_id: chat.id.to_string(),
            agent_id: chat.kind.agent().map(ToString::to_string),
            project_id: chat.project_id.to_string(),
            models: chat.kind.models().map(<[String]>::to_vec),
            state: chat.state,
            agent_state,
            question: None,
            awaiting_reply: chat.awaits_reply(),
            last_seq: chat.last_seq,
            acknowledged_seq: chat.acked_seq,
            last_message_at: time(chat.last_message_at),
            created_at: time(chat.created_at),
            ended_at: chat.ended_at.map(time),
        }
    }
}

#[derive(Serialize, JsonSchema)]
pub struct QuestionBody {
    pub id: String,
    pub text: String,
    /// The possible answers; empty: any text.
    pub options: Vec<String>,
}

impl From<Question> for QuestionBody {
    fn from(question: Question) -> Self {
        Self { id: question.id, text: question.text, options: question.options }
    }
}

#[derive(Serialize, JsonSchema)]
pub struct MessageBody {
    pub id: String,
    pub chat_id: String,
    pub seq: i64,
    pub sender: Sender,
    pub sender_id: String,
    pub content: String,
    pub reply_to: Option<String>,
    pub created_at: String,
    /// The model that wrote the message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// In chats with models: completed, or running while more follows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<&'static str>,
    /// Images of the message; `GET /chats/{id}/images/{of}` has them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<ImageBody>,
    /// The tools that a model used.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<ToolUseBody>,
}

/// One call of a tool.
#[derive(Serialize, JsonSchema)]
pub struct ToolUseBody {
    pub id: String,
    pub name: String,
    /// awaiting_approval, running, completed, failed, or interrupted by the end of a process.
    pub state: &'static str,
    pub arguments: serde_json::Value,
    pub result: Option<String>,
    pub is_error: bool,
    /// Images of the result.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<ImageBody>,
}

/// An image, without its data.
#[derive(Serialize, JsonSchema)]
pub struct ImageBody {
    pub media_type: String,
    pub bytes: usize,
}

impl From<&ShownImage> for ImageBody {
    fn from(image: &ShownImage) -> Self {
        Self { media_type: image.media_type.clone(), bytes: image.bytes }
    }
}

impl MessageBody {
    pub fn of(chat: &ChatId, message: &ShownMessage) -> Self {
        let is_running = message.state == Some(ShownState::Running);
        Self {
            id: message.id.clone(),
            chat_id: chat.to_string(),
            seq: message.seq,
            sender: message.sender,
            sender_id: message.sender_id.clone(),
            content: message.content.clone(),
            reply_to: message.reply_to.as_ref().map(ToString::to_string),
            created_at: time(message.at),
            model: message.model.clone(),
            state: message.state.map(|state| match state {
                ShownState::Complete => "completed",
                ShownState::Running => "running",
                ShownState::Stopped => "stopped",
                ShownState::Failed => "failed",
            }),
            images: message.images.iter().map(ImageBody::from).collect(),
            tools: message.tools.iter().map(|tool| ToolUseBody::of(tool, is_running)).collect(),
        }
    }
}

impl ToolUseBody {
    fn of(tool: &ShownTool, is_running: bool) -> Self {
        Self {
            id: tool.id.clone(),
            name: tool.name.clone(),
            arguments: tool.arguments.clone(),
            state: match (&tool.result, tool.is_error) {
                (None, _) if tool.asked => "awaiting_approval",
                (None, _) if is_running => "running",
                (None, _) => "interrupted",
                (Some(_), true) => "failed",
                (Some(_), false) => "completed",
            },
            result: tool.result.clone(),
            is_error: tool.is_error,
            images: tool.images.iter().map(ImageBody::from).collect(),
        }
    }
}

#[derive(Serialize, JsonSchema)]
pub struct SessionBody {
    pub session_id: String,
    pub agent_id: String,
    pub project_id: String,
    pub purpose: Purpose,
    pub task_id: Option<String>,
    pub chat_id: Option<String>,
    pub state: SessionState,
    pub end_reason: Option<EndReason>,
    pub created_at: String,
    pub last_seen_at: String,
    pub expires_at: String,
    pub ended_at: Option<String>,
}

impl From<&Session> for SessionBody {
    fn from(session: &Session) -> Self {
        Self {
            session_id: session.id.to_string(),
            agent_id: session.agent_id.to_string(),
            project_id: session.project_id.to_string(),
            purpose: session.purpose,
            task_id: session.task_id.as_ref().map(ToString::to_string),
            chat_id: session.chat_id.as_ref().map(ToString::to_string),
            state: session.state,
            end_reason: session.end_reason,
            created_at: time(session.created_at),
            last_seen_at: time(session.last_seen_at),
            expires_at: time(session.expires_at),
            ended_at: session.ended_at.map(time),
        }
    }
}

#[derive(Serialize, JsonSchema)]
pub struct NotificationBody {
    pub id: String,
    pub agent_id: String,
    pub project_id: String,
    pub session_id: Option<String>,
    #[serde(rename = "type")]
    pub kind: NotificationKind,
    pub action: NotificationAction,
    pub task_id: Option<String>,
    pub message: String,
    pub instruction: String,
    pub created_at: String,
    pub expires_at: String,
    pub delivered_at: Option<String>,
    pub acknowledged_at: Option<String>,
    /// Its order was withdrawn.
    pub voided_at: Option<String>,
}

impl NotificationBody {
    pub fn of(notification: &Notification, language: Language) -> Self {
        Self {
            id: notification.id.to_string(),
            agent_id: notification.agent_id.to_string(),
            project_id: notification.project_id.to_string(),
            session_id: notification.session_id.as_ref().map(ToString::to_string),
            kind: notification.kind,
            action: notification.action,
            task_id: notification.task_id.as_ref().map(ToString::to_string),
            message: texts::message(language, notification),
            instruction: texts::instruction(language, notification),
            created_at: time(notification.created_at),
            expires_at: time(notification.expires_at),
            delivered_at: notification.delivered_at.map(time),
            acknowledged_at: notification.acknowledged_at.map(time),
            voided_at: notification.voided_at.map(time),
        }
    }
}
