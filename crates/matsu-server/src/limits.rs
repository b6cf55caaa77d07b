//! What bounds callers: connections, held calls, streams, requests to webhooks.

pub mod bounds;
pub mod holds;
pub mod hooks;
pub mod streams;
