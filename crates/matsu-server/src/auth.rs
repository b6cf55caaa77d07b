//! Authentication of requests: Host and Origin, and what a request presents. The tokens are the runtime's.

pub mod caller;
pub mod login;
pub mod open_calls;
pub mod origin;
pub mod refusals;

pub use caller::{Caller, Credential, PresentedSession};
pub use matsu_core::secret::{hash, mint as mint_secret};
pub use matsu_runtime::access::{Found, TokenWish, Tokens};
