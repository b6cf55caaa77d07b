//! Agents, projects, sessions, chats, messages and notifications.

pub mod chat;
pub mod directory;
pub mod guard;
pub mod interrupts;
pub mod messages;
pub mod notifications;
pub mod session_rows;
pub mod sessions;
pub mod standing;
pub mod turns;
