//! Research by a model: claims, stances and reports, when a provider is configured for them. What a page says is data; the
//! instructions say so, and the model's answer must have the asked-for shape or it counts for nothing.

mod claims;
mod judge;
mod question;
mod reports;

pub use claims::ModelClaims;
pub use judge::ModelJudge;
pub use reports::ModelReports;
