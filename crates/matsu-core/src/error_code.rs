//! The codes a user may meet. Each has a page in `docs/errors/`, which the tidy test checks.

use crate::words::words;

words! {
    /// A stable word for what went wrong.
    pub enum ErrorCode {
        InvalidParams = "INVALID_PARAMS",
        TaskNotFound = "TASK_NOT_FOUND",
        ResourceNotFound = "RESOURCE_NOT_FOUND",
        BudgetExhausted = "BUDGET_EXHAUSTED",
        AuthRequired = "AUTH_REQUIRED",
        AllEnginesBlocked = "ALL_ENGINES_BLOCKED",
        SerpSearchFailed = "SERP_SEARCH_FAILED",
        EngineFailed = "ENGINE_FAILED",
        NothingToSearch = "NOTHING_TO_SEARCH",
        AllFetchesFailed = "ALL_FETCHES_FAILED",
        PipelineError = "PIPELINE_ERROR",
        PipelineTimeout = "PIPELINE_TIMEOUT",
        CalibrationError = "CALIBRATION_ERROR",
        TaskStopped = "TASK_STOPPED",
        TaskBlocked = "TASK_BLOCKED",
        TaskPaused = "TASK_PAUSED",
        IllegalTransition = "ILLEGAL_TRANSITION",
        IdempotencyConflict = "IDEMPOTENCY_CONFLICT",
        LeaseLost = "LEASE_LOST",
        ServerRestarted = "SERVER_RESTARTED",
        StoreUnavailable = "STORE_UNAVAILABLE",
        StoreNewer = "STORE_NEWER",
        StoreBusy = "STORE_BUSY",
        JobPanicked = "JOB_PANICKED",
        JobTimeout = "JOB_TIMEOUT",
        JobKilledItsWorker = "JOB_KILLED_ITS_WORKER",
        Unauthorized = "UNAUTHORIZED",
        Forbidden = "FORBIDDEN",
        SessionInvalid = "SESSION_INVALID",
        SessionEnded = "SESSION_ENDED",
        WrongPurpose = "WRONG_PURPOSE",
        NothingToDo = "NOTHING_TO_DO",
        AgentReportedFailure = "AGENT_REPORTED_FAILURE",
        ChatEnded = "CHAT_ENDED",
        Interrupted = "INTERRUPTED",
        LimitExceeded = "LIMIT_EXCEEDED",
        AgentNotFound = "AGENT_NOT_FOUND",
        AgentNotInstalled = "AGENT_NOT_INSTALLED",
        AgentStartFailed = "AGENT_START_FAILED",
        ConfinementUnavailable = "CONFINEMENT_UNAVAILABLE",
        SupervisorLost = "SUPERVISOR_LOST",
        MachineRestarted = "MACHINE_RESTARTED",
        HostLost = "HOST_LOST",
        AgentExit = "AGENT_EXIT",
        AgentApiError = "AGENT_API_ERROR",
        AgentNoResult = "AGENT_NO_RESULT",
        AgentTurnLimit = "AGENT_TURN_LIMIT",
        AgentQuota = "AGENT_QUOTA",
        AgentStalled = "AGENT_STALLED",
        AgentNoReport = "AGENT_NO_REPORT",
        CheckFailed = "CHECK_FAILED",
        NoChange = "NO_CHANGE",
        ConflictsLeft = "CONFLICTS_LEFT",
        MergeIncomplete = "MERGE_INCOMPLETE",
        DependencyFailed = "DEPENDENCY_FAILED",
        SessionConflict = "SESSION_CONFLICT",
        ProviderAuth = "PROVIDER_AUTH",
        ProviderRateLimited = "PROVIDER_RATE_LIMITED",
        ProviderRefused = "PROVIDER_REFUSED",
        ProviderUnavailable = "PROVIDER_UNAVAILABLE",
        ContextOverflow = "CONTEXT_OVERFLOW",
        LoopRepeats = "LOOP_REPEATS",
        LoopIterations = "LOOP_ITERATIONS",
        InternalError = "INTERNAL_ERROR",
    }
}

impl ErrorCode {
    /// Whether the same call may succeed later although nothing about it is changed.
    #[must_use]
    pub fn is_retryable(self) -> bool {
        matches!(
            self,
            Self::StoreUnavailable
                | Self::StoreBusy
                | Self::ServerRestarted
                | Self::LeaseLost
                | Self::LimitExceeded
                | Self::TaskPaused
                | Self::TaskBlocked
                | Self::AgentApiError
                | Self::AgentQuota
                | Self::AgentStalled
        )
    }
}
