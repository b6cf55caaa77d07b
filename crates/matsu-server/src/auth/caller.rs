//! The caller of a request, as the guard of its door found out.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use matsu_core::error_code::ErrorCode;
use matsu_core::id::TokenId;
use matsu_core::principal::Principal;
use matsu_runtime::InstanceId;

use crate::problem::Problem;

#[derive(Clone, Debug)]
pub struct Caller {
    pub principal: Principal,
    /// What the caller's last-told revisions are kept under.
    pub instance: InstanceId,
}

/// A session token that came as the bearer, and what that session was granted. Beside the [`Caller`]: only MCP looks
/// at it, and nothing else opens for it.
#[derive(Clone)]
pub struct PresentedSession {
    pub token: String,
    pub grants: Option<String>,
}

/// The token that let the caller in; absent on the socket.
#[derive(Clone, Debug)]
pub struct Credential {
    pub token: TokenId,
    /// Of its secret.
    pub hash: String,
}

impl<S: Send + Sync> FromRequestParts<S> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Problem> {
        // A route that was mounted without a guard opens for nobody.
        parts.extensions.get::<Self>().cloned().ok_or_else(|| {
            Problem::new(ErrorCode::Unauthorized, "no token was presented; pass one as `Authorization: Bearer …`")
        })
    }
}
