//! Evidence, engines, logins, corrections and calibration.

pub mod auth_queue;
pub mod calibration;
pub mod cleanup;
pub mod engines;
pub mod evidence_read;
pub mod evidence_rows;
pub mod feedback;
pub mod record;
