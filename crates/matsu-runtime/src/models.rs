//! Chats with models, and the loop of answers and tool calls that they run.

pub mod agentic_loop;
pub mod chat;
