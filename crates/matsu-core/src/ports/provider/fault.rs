//! Why a model did not answer, sorted by what to do about it. The words never hold a key or an address with one.

use std::time::Duration;

use crate::error_code::ErrorCode;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{provider}: {message}")]
pub struct ProviderError {
    /// The provider's name in the configuration.
    pub provider: String,
    pub fault: ProviderFault,
    pub message: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProviderFault {
    /// No key, or one that is not accepted.
    Auth,
    /// Too many requests, or the vendor is overloaded; it may have said for how long.
    RateLimited {
        after: Option<Duration>,
    },
    /// The history is longer than the model's window.
    ContextOverflow,
    BadRequest,
    /// The vendor will not answer this.
    Refused,
    /// The vendor's own trouble.
    Server {
        after: Option<Duration>,
    },
    Timeout(WaitedFor),
    /// Not reached, or lost on the way.
    Transport,
    /// The stream ended without its end mark.
    Truncated,
    /// What came is not what the vendor's protocol says.
    Protocol,
}

/// What did not come in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitedFor {
    Headers,
    /// The next piece of a stream that had begun.
    Stream,
}

impl ProviderFault {
    /// Whether asking again may help, as long as nothing of the answer was shown.
    #[must_use]
    pub const fn is_transient(self) -> bool {
        match self {
            Self::RateLimited { .. } | Self::Server { .. } | Self::Transport | Self::Truncated => true,
            // The time to wait is a setting: asking again would make it a multiple of that.
            Self::Timeout(_) => false,
            Self::Auth | Self::ContextOverflow | Self::BadRequest | Self::Refused | Self::Protocol => false,
        }
    }

    /// How long the vendor asked to be left alone.
    #[must_use]
    pub const fn retry_after(self) -> Option<Duration> {
        match self {
            Self::RateLimited { after } | Self::Server { after } => after,
            _ => None,
        }
    }

    #[must_use]
    pub const fn code(self) -> ErrorCode {
        match self {
            Self::Auth => ErrorCode::ProviderAuth,
            Self::RateLimited { .. } => ErrorCode::ProviderRateLimited,
            Self::ContextOverflow => ErrorCode::ContextOverflow,
            Self::BadRequest | Self::Protocol => ErrorCode::ProviderRefused,
            Self::Refused => ErrorCode::ProviderRefused,
            Self::Server { .. } | Self::Timeout(_) | Self::Transport | Self::Truncated => {
                ErrorCode::ProviderUnavailable
            }
        }
    }
}
