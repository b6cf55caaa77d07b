//! Verbs on sessions: authenticate, what to do next, and what people do to agents, chats and sessions.
//!
//! The store decides; nothing is remembered here but the calls that wait at this moment.

pub mod begin;
mod delivery;
pub mod next;
mod passkey;
pub mod people;
mod sight;
mod waiters;

use std::time::Duration;

use matsu_core::language::Language;
use matsu_core::limits::{CANCEL_ACK_MAX, CHAT_IDLE_END, CONNECT_MAX, HOLD_ACK_MAX, SESSION_KEPT, SESSION_TOUCH_EVERY};

pub use begin::Begun;
pub use delivery::Delivery;
pub use next::{Next, NextReply, NextRequest};
pub use people::AgentState;
pub(crate) use sight::Sight;
pub(crate) use waiters::Waiters;

/// What can be set about sessions.
#[derive(Clone, Copy, Debug)]
pub struct SessionOptions {
    /// How long a session lives after its last call.
    pub ttl: Duration,
    /// The session of an agent in a chat without new messages ends after this long.
    pub idle_end: Duration,
    /// An agent that was called to a chat has this long to come.
    pub connect_max: Duration,
    /// How long an agent may take to acknowledge a cancel.
    pub cancel_grace: Duration,
    /// How long an agent may take to acknowledge a block or a pause.
    pub hold_grace: Duration,
    /// The language of texts for agents and people.
    pub language: Language,
}

impl Default for SessionOptions {
    fn default() -> Self {
        Self {
            ttl: SESSION_KEPT,
            idle_end: CHAT_IDLE_END,
            connect_max: CONNECT_MAX,
            cancel_grace: CANCEL_ACK_MAX,
            hold_grace: HOLD_ACK_MAX,
            language: Language::English,
        }
    }
}

impl SessionOptions {
    /// A call moves the expiry only if the last one was this long ago: most calls write nothing.
    pub(crate) fn touch_every(&self) -> Duration {
        SESSION_TOUCH_EVERY.min(self.ttl / 60)
    }
}
