//! Calibrations of judges: versions, the samples they are made from, evaluations. History is never lost.

use async_trait::async_trait;
use serde::Serialize;

use crate::clock::Timestamp;
use crate::research::calibration::{Calibration, CalibrationSample, CalibrationVersion, Evaluation};

use super::StoreError;

#[async_trait]
pub trait CalibrationStore {
    /// The version in force; none before the first fit, or after a rollback to nothing.
    async fn calibration(&self, source: &str) -> Result<Option<CalibrationVersion>, StoreError>;

    /// All versions of a source, or of all, newest first.
    async fn calibration_versions(&self, source: Option<&str>) -> Result<Vec<CalibrationVersion>, StoreError>;

    /// Adds a version and puts it in force.
    async fn add_calibration(&self, version: NewCalibration) -> Result<CalibrationVersion, StoreError>;

    /// Puts an earlier version in force again, by default the one before. Logged; nothing is deleted. No such version
    /// is `NotFound`.
    async fn roll_back(&self, request: RollBack) -> Result<RolledBack, StoreError>;

    /// Oldest first, at most the last `rows_max`.
    async fn samples(&self, source: &str, rows_max: u32) -> Result<Vec<CalibrationSample>, StoreError>;

    /// How many there are.
    async fn sample_count(&self, source: &str) -> Result<usize, StoreError>;

    async fn add_evaluation(&self, evaluation: Evaluation) -> Result<(), StoreError>;

    /// Newest first.
    async fn evaluations(&self, filter: &EvaluationFilter) -> Result<Vec<Evaluation>, StoreError>;

    /// How often a source was rolled back, and why, newest first.
    async fn rollbacks(&self, source: Option<&str>) -> Result<Vec<RolledBack>, StoreError>;
}

#[derive(Clone, Debug)]
pub struct NewCalibration {
    pub source: String,
    pub calibration: Calibration,
    pub samples_used: u32,
    pub brier_before: f64,
    pub brier_after: f64,
    pub now: Timestamp,
}

#[derive(Clone, Debug)]
pub struct RollBack {
    pub source: String,
    pub version: Option<u32>,
    pub reason: String,
    pub now: Timestamp,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RolledBack {
    pub source: String,
    pub to: CalibrationVersion,
    pub previous_version: u32,
    pub reason: String,
    pub at: Timestamp,
}

#[derive(Clone, Debug, Default)]
pub struct EvaluationFilter {
    pub source: Option<String>,
    pub since: Option<Timestamp>,
    pub id: Option<String>,
    pub rows_max: u32,
}
