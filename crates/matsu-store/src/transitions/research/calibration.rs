//! Calibrations: versions and which one is in force, samples, evaluations, rollbacks. Nothing is ever deleted.

use matsu_core::id::{EdgeId, SampleId};
use matsu_core::ports::store::{
    AddEvaluation, CountSamples, NewCalibration, ReadCalibration, ReadCalibrationVersions, ReadEvaluations,
    ReadRollbacks, ReadSamples, RollBack, RolledBack, StoreError,
};
use matsu_core::research::calibration::{CalibrationSample, CalibrationVersion, Evaluation};
use matsu_core::research::evidence::Relation;

use super::evidence_rows::{json, number, to_json};
use crate::sql::{Row, Sql, Transition, Tx, internal, params};

macro_rules! version_columns {
    () => {
        "source, version, params_json, samples_used, brier_before, brier_after, in_force, created_at"
    };
}
const IN_FORCE: Sql =
    Sql::both(concat!("SELECT ", version_columns!(), " FROM calibrations WHERE source = $1 AND in_force = 1"));
const VERSIONS: Sql = Sql::both(concat!(
    "SELECT ",
    version_columns!(),
    " FROM calibrations WHERE ($1 = '' OR source = $1) ORDER BY source, version DESC"
));
const ONE: Sql =
    Sql::both(concat!("SELECT ", version_columns!(), " FROM calibrations WHERE source = $1 AND version = $2"));
/// One row of the source is locked, so that of two new versions at once each gets a number of its own.
const LAST: Sql = Sql::each(
    "SELECT version FROM calibrations WHERE source = $1 ORDER BY version DESC LIMIT 1",
    "SELECT version FROM calibrations WHERE source = $1 ORDER BY version DESC LIMIT 1 FOR UPDATE",
);
const RETIRE: Sql = Sql::both("UPDATE calibrations SET in_force = 0 WHERE source = $1");
const ADD: Sql = Sql::both(
    "INSERT INTO calibrations (source, version, params_json, samples_used, brier_before, brier_after, in_force, \
     created_at) VALUES ($1, $2, $3, $4, $5, $6, 1, $7)",
);
const ENFORCE: Sql = Sql::both("UPDATE calibrations SET in_force = 1 WHERE source = $1 AND version = $2");
const LOG: Sql = Sql::both(
    "INSERT INTO calibration_rollbacks (source, from_version, to_version, reason, at) VALUES ($1, $2, $3, $4, $5)",
);
const ROLLBACKS: Sql = Sql::both(
    "SELECT r.source, r.from_version, r.reason, r.at, c.version, c.params_json, c.samples_used, c.brier_before, \
     c.brier_after, c.in_force, c.created_at FROM calibration_rollbacks r JOIN calibrations c \
     ON c.source = r.source AND c.version = r.to_version WHERE ($1 = '' OR r.source = $1) \
     ORDER BY r.seq DESC LIMIT 100",
);
const SAMPLES: Sql = Sql::both(
    "SELECT id, source, edge_id, stance_json, correct, created_at FROM calibration_samples WHERE source = $1 \
     ORDER BY seq DESC LIMIT $2",
);
const SAMPLE_COUNT: Sql = Sql::both("SELECT count(*) FROM calibration_samples WHERE source = $1");
const EVALUATE: Sql = Sql::both("INSERT INTO evaluations (id, source, evaluation_json, at) VALUES ($1, $2, $3, $4)");
const EVALUATIONS: Sql = Sql::both(
    "SELECT evaluation_json FROM evaluations WHERE ($1 = '' OR source = $1) AND at >= $2 AND ($3 = '' OR id = $3) \
     ORDER BY seq DESC LIMIT $4",
);

fn version(row: &Row) -> Result<CalibrationVersion, StoreError> {
    let mut c = row.columns();
    Ok(CalibrationVersion {
        source: c.text()?,
        version: c.count()?,
        calibration: json(&c.text()?)?,
        samples_used: c.count()?,
        brier_before: number(&c.text()?)?,
        brier_after: number(&c.text()?)?,
        is_in_force: c.int()? != 0,
        created_at: c.time()?,
    })
}

impl Transition for ReadCalibration {
    const READS: bool = true;

    async fn run(&self, tx: &mut Tx<'_>) -> Result<Option<CalibrationVersion>, StoreError> {
        tx.row(&IN_FORCE, params![&self.0]).await?.map(|row| version(&row)).transpose()
    }
}

impl Transition for ReadCalibrationVersions {
    const READS: bool = true;

    async fn run(&self, tx: &mut Tx<'_>) -> Result<Vec<CalibrationVersion>, StoreError> {
        tx.rows(&VERSIONS, params![self.0.as_deref().unwrap_or("")]).await?.iter().map(version).collect()
    }
}

impl Transition for NewCalibration {
    async fn run(&self, tx: &mut Tx<'_>) -> Result<CalibrationVersion, StoreError> {
        let last = tx.row(&LAST, params![&self.source]).await?.map_or(Ok(0), |row| row.only_int())?;
        tx.run(&RETIRE, params![&self.source]).await?;
        let (number, params_json) = (last + 1, to_json(&self.calibration)?);
        let (before, after) = (self.brier_before.to_string(), self.brier_after.to_string());
        let row = params![&self.source, number, &params_json, self.samples_used, &before, &after, self.now];
        tx.run(&ADD, row).await?;
        Ok(CalibrationVersion {
            source: self.source.clone(),
            version: u32::try_from(number).map_err(internal)?,
            calibration: self.calibration,
            samples_used: self.samples_used,
            brier_before: self.brier_before,
            brier_after: self.brier_after,
            is_in_force: true,
            created_at: self.now,
        })
    }
}

impl Transition for RollBack {
    async fn run(&self, tx: &mut Tx<'_>) -> Result<RolledBack, StoreError> {
        let unknown = |id: String| StoreError::NotFound { what: "calibration version", id };
        tx.row(&LAST, params![&self.source]).await?;
        let current = tx.row(&IN_FORCE, params![&self.source]).await?.map(|row| version(&row)).transpose()?;
        let current = current.ok_or_else(|| unknown(self.source.clone()))?;
        let wanted = self.version.unwrap_or(current.version.saturating_sub(1));
        let row = tx.row(&ONE, params![&self.source, wanted]).await?;
        let mut to = version(&row.ok_or_else(|| unknown(format!("{} of {}", wanted, self.source)))?)?;
        tx.run(&RETIRE, params![&self.source]).await?;
        tx.run(&ENFORCE, params![&self.source, wanted]).await?;
        tx.run(&LOG, params![&self.source, current.version, wanted, &self.reason, self.now]).await?;
        to.is_in_force = true;
        let (source, reason) = (self.source.clone(), self.reason.clone());
        Ok(RolledBack { source, to, previous_version: current.version, reason, at: self.now })
    }
}

impl Transition for ReadRollbacks {
    const READS: bool = true;

    async fn run(&self, tx: &mut Tx<'_>) -> Result<Vec<RolledBack>, StoreError> {
        let rows = tx.rows(&ROLLBACKS, params![self.0.as_deref().unwrap_or("")]).await?;
        rows.iter()
            .map(|row| {
                let mut c = row.columns();
                let (source, previous_version, reason, at) = (c.text()?, c.count()?, c.text()?, c.time()?);
                let to = CalibrationVersion {
                    source: source.clone(),
                    version: c.count()?,
                    calibration: json(&c.text()?)?,
                    samples_used: c.count()?,
                    brier_before: number(&c.text()?)?,
                    brier_after: number(&c.text()?)?,
                    is_in_force: c.int()? != 0,
                    created_at: c.time()?,
                };
                Ok(RolledBack { source, to, previous_version, reason, at })
            })
            .collect()
    }
}

impl Transition for ReadSamples {
    const READS: bool = true;

    async fn run(&self, tx: &mut Tx<'_>) -> Result<Vec<CalibrationSample>, StoreError> {
        let rows = tx.rows(&SAMPLES, params![&self.source, self.rows_max]).await?;
        let newest_first = rows.iter().map(|row| {
            let mut c = row.columns();
            Ok(CalibrationSample {
                id: SampleId::from_text(c.text()?),
                source: c.text()?,
                edge_id: EdgeId::from_text(c.text()?),
                stance: json(&c.text()?)?,
                correct: c.word(Relation::parse)?,
                created_at: c.time()?,
            })
        });
        newest_first.rev().collect()
    }
}

impl Transition for CountSamples {
    const READS: bool = true;

    async fn run(&self, tx: &mut Tx<'_>) -> Result<usize, StoreError> {
        let count = tx.row(&SAMPLE_COUNT, params![&self.0]).await?.map_or(Ok(0), |row| row.only_int())?;
        usize::try_from(count).map_err(internal)
    }
}

impl Transition for AddEvaluation {
    async fn run(&self, tx: &mut Tx<'_>) -> Result<(), StoreError> {
        let evaluation = &self.0;
        let text = to_json(evaluation)?;
        tx.run(&EVALUATE, params![&evaluation.id, &evaluation.source, &text, evaluation.evaluated_at]).await?;
        Ok(())
    }
}

impl Transition for ReadEvaluations {
    const READS: bool = true;

    async fn run(&self, tx: &mut Tx<'_>) -> Result<Vec<Evaluation>, StoreError> {
        let filter = &self.0;
        let (source, id) = (filter.source.as_deref().unwrap_or(""), filter.id.as_deref().unwrap_or(""));
        let rows = params![source, filter.since.unwrap_or_default(), id, filter.rows_max];
        let rows = tx.rows(&EVALUATIONS, rows).await?;
        rows.iter().map(|row| json(&row.only_text()?)).collect()
    }
}
