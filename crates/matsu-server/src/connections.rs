//! One connection: its request arrives in time, its caller shows a token or is bounded, and may disconnect.

pub mod arrival;
pub mod disconnects;
pub mod resumable;
pub mod unauthenticated;
