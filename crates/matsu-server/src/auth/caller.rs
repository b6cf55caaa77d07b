//! The caller of a request, as the guard found out, and what it may do.

use std::sync::Arc;

use axum::extract::{FromRequestParts, Request};
use axum::http::request::Parts;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use matsu_core::access::{Rights, Viewer};
use matsu_core::error_code::ErrorCode;
use matsu_core::id::TokenId;
use matsu_core::principal::Principal;
use matsu_runtime::InstanceId;

use crate::problem::Problem;

#[derive(Clone, Debug)]
pub struct Caller {
    pub principal: Principal,
    /// The key of the revisions that the caller was last sent.
    pub instance: InstanceId,
    pub rights: Arc<Rights>,
}

impl Caller {
    /// The local owner, for a process that opened the store itself.
    #[must_use]
    pub fn local_owner(instance: &str) -> Self {
        let rights = Arc::new(Rights::owner());
        Self { principal: Principal::local_user(), instance: InstanceId::from_text(instance), rights }
    }

    #[must_use]
    pub fn viewer(&self) -> Viewer {
        Viewer { principal: self.principal.clone(), is_admin: self.rights.is_admin() }
    }

    /// The principal that a list is limited to; none for an admin.
    #[must_use]
    pub fn only_own(&self) -> Option<&Principal> {
        (!self.rights.is_admin()).then_some(&self.principal)
    }

    /// # Errors
    /// `FORBIDDEN` unless the caller is an admin.
    pub fn check_admin(&self) -> Result<(), Problem> {
        if self.rights.is_admin() {
            return Ok(());
        }
        let message = "this is for admins; ask one to do it, or for a token with the role admin";
        Err(Problem::new(ErrorCode::Forbidden, message))
    }

    /// # Errors
    /// `FORBIDDEN` for a viewer.
    pub fn check_writer(&self) -> Result<(), Problem> {
        if self.rights.may_write() {
            return Ok(());
        }
        let message = "a viewer reads only; use a token with the role member or admin for this";
        Err(Problem::new(ErrorCode::Forbidden, message))
    }
}

/// In front of routes for admins.
pub async fn admins_only(caller: Caller, request: Request, next: Next) -> Response {
    match caller.check_admin() {
        Ok(()) => next.run(request).await,
        Err(problem) => problem.into_response(),
    }
}

/// In front of routes that change something.
pub async fn writers_only(caller: Caller, request: Request, next: Next) -> Response {
    match caller.check_writer() {
        Ok(()) => next.run(request).await,
        Err(problem) => problem.into_response(),
    }
}

/// A session token that came as the bearer, and what that session was granted. Beside the [`Caller`]: only MCP looks
/// at it, and nothing else opens for it.
#[derive(Clone)]
pub struct PresentedSession {
    pub token: String,
    pub grants: Option<String>,
}

/// The token that the caller presented.
#[derive(Clone, Debug)]
pub struct Credential {
    pub token: TokenId,
    /// Of its secret.
    pub hash: String,
}

impl<S: Send + Sync> FromRequestParts<S> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Problem> {
        // A route that was mounted without a guard refuses every request.
        parts.extensions.get::<Self>().cloned().ok_or_else(|| {
            Problem::new(ErrorCode::Unauthorized, "no token was presented; pass one as `Authorization: Bearer …`")
        })
    }
}
