//! The caller of a request. A handle belongs to the principal that made it; to any other it does not exist.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::id::SessionId;

/// `user:<id>` or `session:<id>`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Principal(Arc<str>);

impl Principal {
    /// The local owner: the user that starts the daemon and has the token file of its data directory.
    #[must_use]
    pub fn local_user() -> Self {
        Self::user("local")
    }

    #[must_use]
    pub fn user(id: &str) -> Self {
        Self(format!("user:{id}").into())
    }

    #[must_use]
    pub fn session(id: &str) -> Self {
        Self(format!("session:{id}").into())
    }

    /// The session it is, if it is one.
    #[must_use]
    pub fn as_session(&self) -> Option<SessionId> {
        self.0.strip_prefix("session:").map(SessionId::from_text)
    }

    /// The name of the user it is, if it is one.
    #[must_use]
    pub fn as_user(&self) -> Option<&str> {
        self.0.strip_prefix("user:")
    }

    /// What a store wrote down earlier.
    #[must_use]
    pub fn from_text(text: impl Into<String>) -> Self {
        Self(text.into().into())
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
