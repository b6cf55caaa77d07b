//! The daemon as a process: its lock, its socket, what it announces, and when it ends.

pub mod announce;
pub mod chats;
pub mod ending;
pub mod following;
pub mod keep_awake;
pub mod lock;
pub mod socket;
pub mod waking;
