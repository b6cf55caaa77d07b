//! Bodies that come with the runtime. Those that do real work live with what they work on.

pub mod noop;
pub mod sleep;
pub mod sleeping_agent;

pub use noop::Noop;
pub use sleep::Sleep;
pub use sleeping_agent::SleepingAgent;
