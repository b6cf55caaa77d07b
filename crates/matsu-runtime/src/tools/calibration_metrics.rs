//! `calibration_metrics`: how well a judge's probabilities hold, and evaluations of them.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use matsu_core::error_code::ErrorCode;
use matsu_core::id::EvaluationId;
use matsu_core::ports::store::{
    AddEvaluation, CountSamples, EvaluationFilter, ReadCalibration, ReadCalibrationVersions, ReadEvaluations,
    ReadRollbacks,
};
use matsu_core::research::calibration::{
    Bin, Calibration, CalibrationVersion, DEGRADATION_MAX, Evaluation, REFIT_EVERY, bins, brier,
    expected_calibration_error,
};

use crate::tool::{Annotations, Rules, Tool, ToolContext, ToolError, ToolReply, Toolset};

pub struct CalibrationMetrics;

#[derive(Deserialize, JsonSchema)]
pub struct Input {
    /// The operation to perform.
    action: Action,
    /// Parameters of the action.
    data: Option<Data>,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Action {
    GetStats,
    Evaluate,
    GetEvaluations,
    GetDiagramData,
}

#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Data {
    /// Name of the judge, from get_stats; required for evaluate and get_diagram_data.
    #[schemars(length(min = 1, max = 100))]
    source: Option<String>,
    /// evaluate: probabilities, each from 0 to 1.
    #[schemars(length(min = 1, max = 10000), inner(range(min = 0.0, max = 1.0)))]
    predictions: Option<Vec<f64>>,
    /// evaluate: for each prediction 1 if it came true, else 0.
    #[schemars(length(min = 1, max = 10000), inner(range(min = 0, max = 1)))]
    labels: Option<Vec<u8>>,
    /// get_evaluations: number of results (default 50).
    #[schemars(range(min = 1, max = 200))]
    limit: Option<u32>,
    /// get_diagram_data: id of a result; default: the judge's latest.
    #[schemars(length(min = 1, max = 100))]
    evaluation_id: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub struct Output {
    action: Action,
    #[serde(skip_serializing_if = "Option::is_none")]
    stats: Option<Stats>,
    #[serde(flatten)]
    evaluation: Option<Report>,
    #[serde(skip_serializing_if = "Option::is_none")]
    evaluations: Option<Vec<Report>>,
}

#[derive(Serialize, JsonSchema)]
struct Stats {
    sources: BTreeMap<String, SourceStats>,
    total_rollbacks: usize,
    /// New corrections after which a judge is fitted anew.
    recalibration_threshold: usize,
    /// A fit that is worse by more than this share is rolled back by itself.
    degradation_threshold: f64,
}

#[derive(Serialize, JsonSchema)]
struct SourceStats {
    /// 0: no version is active, and the judge's figures are shown unchanged.
    version_in_force: u32,
    method: String,
    brier_before: f64,
    brier_after: f64,
    samples_used: u32,
    samples_total: usize,
    versions: Vec<u32>,
    rollbacks: usize,
}

#[derive(Serialize, JsonSchema)]
struct Report {
    evaluation_id: String,
    source: String,
    brier_score: f64,
    brier_score_calibrated: f64,
    improvement_ratio: f64,
    expected_calibration_error: f64,
    samples_evaluated: u32,
    bins: Vec<BinReport>,
    calibration_version: u32,
    evaluated_at: String,
}

#[derive(Serialize, JsonSchema)]
struct BinReport {
    lower: f64,
    upper: f64,
    count: u32,
    confidence: f64,
    accuracy: f64,
    gap: f64,
}

impl Tool for CalibrationMetrics {
    const NAME: &'static str = "calibration_metrics";
    const TITLE: &'static str = "How reliable confidence values are";
    const DESCRIPTION: &'static str = "Research: how reliable a judge's probabilities are. get_stats lists judges, \
        versions and Brier scores; evaluate compares predictions with labels and stores the result; get_evaluations \
        lists results; get_diagram_data returns one result's bins. Admins only.";
    const TOOLSET: Toolset = Toolset::Research;
    const ANNOTATIONS: Annotations = Annotations::ADDS;
    const RULES: Rules = Rules::ADMIN;
    type Input = Input;
    type Output = Output;

    async fn call(cx: &ToolContext, input: Input) -> Result<ToolReply<Output>, ToolError> {
        let data = input.data.unwrap_or_default();
        let none = Output { action: input.action, stats: None, evaluation: None, evaluations: None };
        let output = match input.action {
            Action::GetStats => Output { stats: Some(stats(cx).await?), ..none },
            Action::Evaluate => Output { evaluation: Some(evaluate(cx, data).await?), ..none },
            Action::GetEvaluations => Output { evaluations: Some(list(cx, data).await?), ..none },
            Action::GetDiagramData => Output { evaluation: Some(diagram(cx, data).await?), ..none },
        };
        Ok(ToolReply::Done(output))
    }
}

async fn stats(cx: &ToolContext) -> Result<Stats, ToolError> {
    let store = cx.runtime.store();
    let versions = store.run(ReadCalibrationVersions(None)).await?;
    let rollbacks = store.run(ReadRollbacks(None)).await?;
    let mut names: Vec<String> = versions.iter().map(|version| version.source.clone()).collect();
    names.extend(cx.runtime.research().map(|kit| kit.model().judge.source().to_owned()));
    names.sort();
    names.dedup();
    let mut sources = BTreeMap::new();
    for name in names {
        let own: Vec<&CalibrationVersion> = versions.iter().filter(|version| version.source == name).collect();
        let in_force = own.iter().find(|version| version.is_in_force);
        let calibration = in_force.map_or(Calibration::IDENTITY, |version| version.calibration);
        let stats = SourceStats {
            version_in_force: in_force.map_or(0, |version| version.version),
            method: calibration.method.to_string(),
            brier_before: in_force.map_or(0.0, |version| version.brier_before),
            brier_after: in_force.map_or(0.0, |version| version.brier_after),
            samples_used: in_force.map_or(0, |version| version.samples_used),
            samples_total: store.run(CountSamples(name.clone())).await?,
            versions: own.iter().map(|version| version.version).collect(),
            rollbacks: rollbacks.iter().filter(|rollback| rollback.source == name).count(),
        };
        sources.insert(name, stats);
    }
    Ok(Stats {
        sources,
        total_rollbacks: rollbacks.len(),
        recalibration_threshold: REFIT_EVERY,
        degradation_threshold: DEGRADATION_MAX,
    })
}

fn source_of(data: &Data) -> Result<String, ToolError> {
    data.source.clone().ok_or_else(|| {
        ToolError::param("data.source", "name of a judge", "nothing", "data.source is required for this action")
    })
}

fn pairs_of(data: &Data) -> Result<Vec<(f64, bool)>, ToolError> {
    let (Some(predictions), Some(labels)) = (&data.predictions, &data.labels) else {
        let name = if data.predictions.is_none() { "data.predictions" } else { "data.labels" };
        return Err(ToolError::param(name, "a list", "nothing", format!("{name} is required to evaluate")));
    };
    if predictions.len() != labels.len() {
        let message = format!(
            "labels and predictions must have the same length; got {} labels and {} predictions",
            labels.len(),
            predictions.len()
        );
        let expected = format!("{} labels", predictions.len());
        return Err(ToolError::param("data.labels", &expected, &labels.len().to_string(), message));
    }
    Ok(predictions.iter().copied().zip(labels.iter().map(|label| *label == 1)).collect())
}

async fn evaluate(cx: &ToolContext, data: Data) -> Result<Report, ToolError> {
    let (source, pairs) = (source_of(&data)?, pairs_of(&data)?);
    let store = cx.runtime.store();
    let in_force = store.run(ReadCalibration(source.clone())).await?;
    let calibration = in_force.as_ref().map_or(Calibration::IDENTITY, |version| version.calibration);
    let calibrated: Vec<(f64, bool)> = pairs.iter().map(|(p, y)| (calibration.apply(*p), *y)).collect();
    let now = cx.runtime.clock().now();
    let evaluation = Evaluation {
        id: EvaluationId::mint(now),
        source,
        brier_score: round6(brier(&pairs)),
        brier_score_calibrated: round6(brier(&calibrated)),
        expected_calibration_error: round6(expected_calibration_error(&pairs)),
        samples_evaluated: u32::try_from(pairs.len()).unwrap_or(u32::MAX),
        bins: bins(&pairs),
        calibration_version: in_force.map_or(0, |version| version.version),
        evaluated_at: now,
    };
    store.run(AddEvaluation(evaluation.clone())).await?;
    Ok(Report::of(&evaluation))
}

async fn list(cx: &ToolContext, data: Data) -> Result<Vec<Report>, ToolError> {
    let filter = EvaluationFilter { source: data.source, since: None, id: None, rows_max: data.limit.unwrap_or(50) };
    Ok(cx.runtime.store().run(ReadEvaluations(filter.clone())).await?.iter().map(Report::of).collect())
}

async fn diagram(cx: &ToolContext, data: Data) -> Result<Report, ToolError> {
    let source = Some(source_of(&data)?);
    let filter = EvaluationFilter { source, since: None, id: data.evaluation_id, rows_max: 1 };
    let found = cx.runtime.store().run(ReadEvaluations(filter.clone())).await?;
    found.first().map(Report::of).ok_or_else(|| {
        let details = serde_json::json!({ "resource_type": "evaluation", "resource_id": filter.id });
        let message = "there is no such evaluation; make one with action evaluate";
        ToolError { details, ..ToolError::new(ErrorCode::ResourceNotFound, message) }
    })
}

/// Six decimals: enough to compare, without the noise of binary fractions.
fn round6(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
}

impl Report {
    fn of(evaluation: &Evaluation) -> Self {
        let improvement = if evaluation.brier_score > 0.0 {
            round6(1.0 - evaluation.brier_score_calibrated / evaluation.brier_score)
        } else {
            0.0
        };
        Self {
            evaluation_id: evaluation.id.to_string(),
            source: evaluation.source.clone(),
            brier_score: evaluation.brier_score,
            brier_score_calibrated: evaluation.brier_score_calibrated,
            improvement_ratio: improvement,
            expected_calibration_error: evaluation.expected_calibration_error,
            samples_evaluated: evaluation.samples_evaluated,
            bins: evaluation.bins.iter().map(BinReport::of).collect(),
            calibration_version: evaluation.calibration_version,
            evaluated_at: evaluation.evaluated_at.to_string(),
        }
    }
}

impl BinReport {
    fn of(bin: &Bin) -> Self {
        let Bin { lower, upper, count, confidence, accuracy, gap } = *bin;
        Self { lower, upper, count, confidence, accuracy, gap }
    }
}
