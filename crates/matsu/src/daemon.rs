//! The daemon's place in the world: its lock, its socket, what it tells others, and when it ends.

pub mod announce;
pub mod chats;
pub mod ending;
pub mod keep_awake;
pub mod lock;
pub mod socket;
