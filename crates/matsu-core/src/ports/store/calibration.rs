//! Calibrations of judges: versions, the samples they are made from, evaluations. History is never lost.

use serde::Serialize;

use crate::clock::Timestamp;
use crate::research::calibration::{Calibration, CalibrationSample, CalibrationVersion, Evaluation};

use super::request;

/// The version in force; none before the first fit, or after a rollback to nothing.
#[derive(Clone, Debug)]
pub struct ReadCalibration(pub String);
request!(ReadCalibration => Option<CalibrationVersion>);

/// All versions of a source, or of all, newest first.
#[derive(Clone, Debug)]
pub struct ReadCalibrationVersions(pub Option<String>);
request!(ReadCalibrationVersions => Vec<CalibrationVersion>);

request! {
    /// Adds a version and puts it in force.
    NewCalibration => CalibrationVersion
}

request! {
    /// Puts an earlier version in force again, by default the one before. Logged; nothing is deleted. No such version
    /// is `NotFound`.
    RollBack => RolledBack
}

/// Oldest first, at most the last `rows_max`.
#[derive(Clone, Debug)]
pub struct ReadSamples {
    pub source: String,
    pub rows_max: u32,
}
request!(ReadSamples => Vec<CalibrationSample>);

/// How many there are.
#[derive(Clone, Debug)]
pub struct CountSamples(pub String);
request!(CountSamples => usize);

#[derive(Clone, Debug)]
pub struct AddEvaluation(pub Evaluation);
request!(AddEvaluation => ());

/// Newest first.
#[derive(Clone, Debug)]
pub struct ReadEvaluations(pub EvaluationFilter);
request!(ReadEvaluations => Vec<Evaluation>);

/// How often a source was rolled back, and why, newest first.
#[derive(Clone, Debug)]
pub struct ReadRollbacks(pub Option<String>);
request!(ReadRollbacks => Vec<RolledBack>);

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
