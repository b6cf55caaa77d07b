//! `calibration_rollback`: puts an earlier calibration in force again, exactly as it was.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use matsu_core::error_code::ErrorCode;
use matsu_core::ports::store::{RollBack, StoreError};

use crate::tool::{Annotations, Rules, Tool, ToolContext, ToolError, ToolReply, Toolset};

pub struct CalibrationRollback;

#[derive(Deserialize, JsonSchema)]
pub struct Input {
    /// Name of the judge, from calibration_metrics get_stats.
    #[schemars(length(min = 1, max = 100))]
    source: String,
    /// Version to restore; default: the one before the active version.
    #[schemars(range(min = 1))]
    version: Option<u32>,
    /// Why; stored.
    #[schemars(length(min = 1, max = 1000))]
    reason: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub struct Output {
    source: String,
    rolled_back_to: u32,
    previous_version: u32,
    reason: String,
    method: String,
    brier_after: f64,
}

impl Tool for CalibrationRollback {
    const NAME: &'static str = "calibration_rollback";
    const TITLE: &'static str = "Restore an earlier calibration";
    const DESCRIPTION: &'static str = "Research: make an earlier calibration of a judge active again, for every user. \
        New judgements use it at once; later versions are kept and can be restored in the same way. See \
        calibration_metrics for versions. Admins only.";
    const TOOLSET: Toolset = Toolset::Research;
    const ANNOTATIONS: Annotations =
        Annotations { read_only: false, destructive: true, idempotent: false, open_world: false };
    const RULES: Rules = Rules::ADMIN;
    type Input = Input;
    type Output = Output;

    async fn call(cx: &ToolContext, input: Input) -> Result<ToolReply<Output>, ToolError> {
        let reason = input.reason.unwrap_or_else(|| "Manual rollback".to_owned());
        let now = cx.runtime.clock().now();
        let request = RollBack { source: input.source.clone(), version: input.version, reason, now };
        let done = cx.runtime.store().run(request).await.map_err(|error| refused(&input.source, error))?;
        Ok(ToolReply::Done(Output {
            source: done.source,
            rolled_back_to: done.to.version,
            previous_version: done.previous_version,
            reason: done.reason,
            method: done.to.calibration.method.to_string(),
            brier_after: done.to.brier_after,
        }))
    }
}

fn refused(source: &str, error: StoreError) -> ToolError {
    match error {
        StoreError::NotFound { id, .. } => ToolError {
            details: serde_json::json!({ "source": source, "reason": "no such version" }),
            ..ToolError::new(ErrorCode::CalibrationError, format!("there is no version {id} to go back to"))
        },
        error => error.into(),
    }
}
