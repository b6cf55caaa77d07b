//! Chats with models.

pub mod transcripts;
