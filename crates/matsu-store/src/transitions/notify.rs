//! Notices, schedules, webhooks, and what they could not start.

pub mod answer_codes;
pub mod channels;
pub mod push;
pub mod schedules;
pub mod unstarted;
pub mod webhooks;
