//! Errors as problem details (RFC 9457): a stable code, a sentence that says what to do, an id that finds the log.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use matsu_core::clock::Clock;
use matsu_core::error_code::ErrorCode;
use matsu_core::id::ErrorId;
use matsu_core::limits::BODY_BYTES_MAX;
use matsu_core::ports::store::StoreError;
use matsu_runtime::{TaskError, WaitError};
use serde_json::json;

const PROBLEM_JSON: &str = "application/problem+json";

/// What a refused caller is asked for. There is no authorization server, so none is named.
const CHALLENGE: &str = "Bearer realm=\"matsu\"";

#[derive(Debug)]
pub struct Problem {
    code: ErrorCode,
    detail: String,
    /// Where the HTTP layer knows better than the code.
    status: Option<StatusCode>,
}

impl Problem {
    pub fn new(code: ErrorCode, detail: impl Into<String>) -> Self {
        Self { code, detail: detail.into(), status: None }
    }

    pub fn invalid(detail: impl Into<String>) -> Self {
        Self::new(ErrorCode::InvalidParams, detail)
    }

    pub fn from_store(error: &StoreError) -> Self {
        Self::new(error.code(), error.to_string())
    }

    /// With another status than its code has.
    #[must_use]
    pub fn with_status(self, status: StatusCode) -> Self {
        Self { status: Some(status), ..self }
    }

    pub fn detail(&self) -> &str {
        &self.detail
    }

    fn status(&self) -> StatusCode {
        match self.code {
            ErrorCode::InvalidParams => StatusCode::BAD_REQUEST,
            ErrorCode::TaskNotFound | ErrorCode::ResourceNotFound | ErrorCode::AgentNotFound => StatusCode::NOT_FOUND,
            ErrorCode::Unauthorized | ErrorCode::SessionInvalid => StatusCode::UNAUTHORIZED,
            ErrorCode::Forbidden | ErrorCode::WrongPurpose => StatusCode::FORBIDDEN,
            ErrorCode::LimitExceeded => StatusCode::TOO_MANY_REQUESTS,
            ErrorCode::StoreUnavailable | ErrorCode::StoreBusy | ErrorCode::ServerRestarted => {
                StatusCode::SERVICE_UNAVAILABLE
            }
            ErrorCode::ProviderAuth
            | ErrorCode::ProviderRateLimited
            | ErrorCode::ProviderRefused
            | ErrorCode::ProviderUnavailable
            | ErrorCode::ContextOverflow
            | ErrorCode::LoopRepeats
            | ErrorCode::LoopIterations => StatusCode::BAD_GATEWAY,
            ErrorCode::TaskStopped
            | ErrorCode::TaskBlocked
            | ErrorCode::TaskPaused
            | ErrorCode::IllegalTransition
            | ErrorCode::IdempotencyConflict
            | ErrorCode::BudgetExhausted
            | ErrorCode::SessionConflict
            | ErrorCode::AgentNotInstalled
            | ErrorCode::AuthRequired
            | ErrorCode::CalibrationError
            | ErrorCode::SessionEnded
            | ErrorCode::NothingToDo
            | ErrorCode::NothingToSearch
            | ErrorCode::AgentReportedFailure
            | ErrorCode::ChatEnded
            | ErrorCode::Interrupted
            | ErrorCode::LeaseLost => StatusCode::CONFLICT,
            ErrorCode::AgentStartFailed
            | ErrorCode::ConfinementUnavailable
            | ErrorCode::SupervisorLost
            | ErrorCode::MachineRestarted
            | ErrorCode::HostLost
            | ErrorCode::AgentExit
            | ErrorCode::AgentApiError
            | ErrorCode::AgentNoResult
            | ErrorCode::AgentTurnLimit
            | ErrorCode::AgentQuota
            | ErrorCode::AgentStalled
            | ErrorCode::AgentNoReport
            | ErrorCode::CheckFailed
            | ErrorCode::NoChange
            | ErrorCode::ConflictsLeft
            | ErrorCode::MergeIncomplete
            | ErrorCode::DependencyFailed
            | ErrorCode::AllEnginesBlocked
            | ErrorCode::SerpSearchFailed
            | ErrorCode::EngineFailed
            | ErrorCode::AllFetchesFailed
            | ErrorCode::PipelineError
            | ErrorCode::PipelineTimeout => StatusCode::BAD_GATEWAY,
            ErrorCode::StoreNewer
            | ErrorCode::JobPanicked
            | ErrorCode::JobTimeout
            | ErrorCode::JobKilledItsWorker
            | ErrorCode::InternalError => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = self.status.unwrap_or_else(|| self.status());
        let error_id = ErrorId::mint(Clock::system().now());
        // A defect may name what only the operator should see; the caller gets the id that finds it.
        let detail = if self.code == ErrorCode::InternalError {
            tracing::error!(error.id = %error_id, detail = %self.detail, "internal error");
            "internal error; the server's log has the cause under this error_id".to_owned()
        } else {
            tracing::debug!(error.id = %error_id, code = %self.code, detail = %self.detail, "refused");
            matsu_core::redaction::redact(&self.detail).into_owned()
        };
        let body = json!({
            "type": format!("urn:matsu:error:{}", self.code),
            "title": self.code.as_str(),
            "status": status.as_u16(),
            "detail": detail,
            "error_code": self.code.as_str(),
            "error_id": error_id.as_str(),
        });
        let body = Json(body).into_response().into_body();
        let mut response = (status, [(header::CONTENT_TYPE, PROBLEM_JSON)], body).into_response();
        if status == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static(CHALLENGE));
        }
        response
    }
}

/// Longer than any refusal that a library words.
const PLAIN_REFUSAL_BYTES_MAX: usize = 4 * 1024;

/// The libraries below refuse in plain text what they cannot read or route. Here it becomes a problem like any other.
pub async fn dress(response: Response) -> Response {
    let status = response.status();
    let is_ours = response.headers().get(header::CONTENT_TYPE).is_some_and(|kind| kind == PROBLEM_JSON);
    if !status.is_client_error() || is_ours {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    let said = axum::body::to_bytes(body, PLAIN_REFUSAL_BYTES_MAX).await.unwrap_or_default();
    let said = String::from_utf8_lossy(&said).trim().to_owned();
    let (code, detail) = match status {
        StatusCode::NOT_FOUND => (ErrorCode::ResourceNotFound, "there is no such route".to_owned()),
        StatusCode::METHOD_NOT_ALLOWED => {
            (ErrorCode::InvalidParams, "this route does not support that method".to_owned())
        }
        StatusCode::PAYLOAD_TOO_LARGE => {
            (ErrorCode::LimitExceeded, format!("a request may have at most {BODY_BYTES_MAX} bytes"))
        }
        _ => (ErrorCode::InvalidParams, said),
    };
    let allow = parts.headers.remove(header::ALLOW);
    let mut dressed = Problem { code, detail, status: Some(status) }.into_response();
    if let Some(allow) = allow {
        dressed.headers_mut().insert(header::ALLOW, allow);
    }
    dressed
}

impl From<TaskError> for Problem {
    fn from(error: TaskError) -> Self {
        match &error {
            TaskError::NotFound(id) => Self::new(error.code(), format!("task {id} was not found or has expired")),
            _ => Self::new(error.code(), error.to_string()),
        }
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        Self::from_store(&error)
    }
}

impl From<WaitError> for Problem {
    fn from(error: WaitError) -> Self {
        match error {
            WaitError::Task(error) => error.into(),
            WaitError::CallerDisconnected => {
                Self::new(ErrorCode::StoreUnavailable, "the server is shutting down; try again in a moment")
            }
        }
    }
}
