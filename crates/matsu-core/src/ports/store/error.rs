//! What can go wrong in a store, named for what the caller does next.

use crate::error_code::ErrorCode;
use crate::id::JobId;
use crate::task::IllegalTransition;

/// A store's refusal or failure.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Nothing of that id, or nothing the caller may see.
    #[error("{what} {id} was not found")]
    NotFound { what: &'static str, id: String },
    /// The lease is no longer the one that runs: stop working for this job.
    #[error("the lease on {0} is lost")]
    LeaseLost(JobId),
    /// The rules forbid the change.
    #[error(transparent)]
    Illegal(#[from] IllegalTransition),
    /// The task takes no more work; `code` says why.
    #[error("{message}")]
    Closed { code: ErrorCode, message: String },
    /// An order to stop was committed first; nothing of this was done.
    #[error("there is a notification; call get_notifications and follow its instruction")]
    Interrupted,
    /// The same idempotency key came with another body.
    #[error("idempotency key {0} was used before with different arguments")]
    Conflict(String),
    /// A bound of the system.
    #[error("{0}")]
    LimitExceeded(String),
    /// Not now; the same call may succeed later. Nothing was changed.
    #[error("the store is not available: {0}")]
    Unavailable(String),
    /// This process must not touch this store.
    #[error("{message}")]
    Refused { code: ErrorCode, message: String },
    /// A defect, in the code or in the data.
    #[error("internal store error: {0}")]
    Internal(String),
}

impl StoreError {
    /// The word a user meets.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::NotFound { what: "task", .. } => ErrorCode::TaskNotFound,
            Self::NotFound { .. } => ErrorCode::ResourceNotFound,
            Self::LeaseLost(_) => ErrorCode::LeaseLost,
            Self::Illegal(_) => ErrorCode::IllegalTransition,
            Self::Closed { code, .. } | Self::Refused { code, .. } => *code,
            Self::Interrupted => ErrorCode::Interrupted,
            Self::Conflict(_) => ErrorCode::IdempotencyConflict,
            Self::LimitExceeded(_) => ErrorCode::LimitExceeded,
            Self::Unavailable(_) => ErrorCode::StoreUnavailable,
            Self::Internal(_) => ErrorCode::InternalError,
        }
    }
}
