//! Learning from corrections: a new fit every ten samples, and back to the version in force if it is worse.

use matsu_core::ports::store::{
    CountSamples, NewCalibration, ReadCalibration, ReadCalibrationVersions, ReadSamples, RollBack, StoreError,
};
use matsu_core::research::calibration::fit::fit;
use matsu_core::research::calibration::{Calibration, brier, is_degraded, is_refit_due};

use crate::runtime::Runtime;

/// The latest samples, which are all that a fit looks at.
const SAMPLES_MAX: u32 = 2_000;

/// Fits a source anew when enough samples have come since the last time.
///
/// # Errors
/// As the store's.
pub async fn recalibrate(runtime: &Runtime, source: &str) -> Result<(), StoreError> {
    let store = runtime.store();
    // One after the other: the second of two corrections at once sees what the first made of both.
    let turnstile = runtime.research().map(|kit| kit.turnstile(&format!("calibration/{source}")));
    let _one_at_a_time = match &turnstile {
        Some(turnstile) => Some(turnstile.lock().await),
        None => None,
    };
    let count = store.run(CountSamples(source.to_owned())).await?;
    let fits =
        store.run(ReadCalibrationVersions(Some(source.to_owned()))).await?.first().map_or(0, |newest| newest.version);
    if !is_refit_due(count, fits) {
        return Ok(());
    }
    let samples = store.run(ReadSamples { source: source.to_owned(), rows_max: SAMPLES_MAX }).await?;
    let pairs: Vec<(f64, bool)> = samples.iter().flat_map(|sample| sample.pairs()).collect();
    let Some(fitted) = fit(&pairs) else { return Ok(()) };
    let in_force = store.run(ReadCalibration(source.to_owned())).await?;
    let (calibration, now) = (fitted.calibration, runtime.clock().now());
    let new = NewCalibration {
        source: source.to_owned(),
        calibration,
        samples_used: u32::try_from(samples.len()).unwrap_or(u32::MAX),
        brier_before: fitted.brier_before,
        brier_after: fitted.brier_after,
        now,
    };
    store.run(new).await?;
    let Some(in_force) = in_force else { return Ok(()) };
    if is_degraded(brier_of(&in_force.calibration, &fitted.held_out), fitted.brier_after) {
        let reason = "worse than the active version on held-out samples".to_owned();
        let request = RollBack { source: source.to_owned(), version: Some(in_force.version), reason, now };
        store.run(request).await?;
        tracing::warn!(source, version = in_force.version, "a new calibration was worse and was rolled back");
    }
    Ok(())
}

/// How a calibration does on these pairs.
fn brier_of(calibration: &Calibration, pairs: &[(f64, bool)]) -> f64 {
    let calibrated: Vec<(f64, bool)> = pairs.iter().map(|(p, y)| (calibration.apply(*p), *y)).collect();
    brier(&calibrated)
}
