//! Numbers as the trained trees want them.

/// Logarithm that is zero at zero.
pub fn log(value: f32) -> f32 {
    value.max(0.0).ln_1p()
}

/// A count as a number.
#[expect(clippy::cast_precision_loss, reason = "counts on one page, far below 2^24")]
pub fn count(value: usize) -> f32 {
    value as f32
}
