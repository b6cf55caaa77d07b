//! The model of research, and the choice of it by a person.

use std::sync::Arc;

use async_trait::async_trait;
use serde::Serialize;

use super::claim_maker::ClaimMaker;
use super::judge::Judge;
use super::report_writer::ReportWriter;

/// The parts of research that a model can do: making claims, judging them, writing reports.
#[derive(Clone)]
pub struct ResearchModel {
    pub claim_maker: Arc<dyn ClaimMaker>,
    pub judge: Arc<dyn Judge>,
    /// Without one, reports are extractive.
    pub writer: Option<Arc<dyn ReportWriter>>,
}

/// The name for "no model": nothing leaves the machine.
pub const EMBEDDED: &str = "embedded";

/// The choice of a model by a person. Nothing is sent to a model before it is made.
#[async_trait]
pub trait ModelChoice: Send + Sync {
    /// What was chosen, now or earlier; nothing before a person was asked.
    fn chosen(&self) -> Option<String>;

    /// What can be chosen, [`EMBEDDED`] last.
    async fn options(&self) -> Vec<ModelOption>;

    /// Remembers the choice and gives the model to use from now on.
    ///
    /// # Errors
    /// In words: there is no such model, or the choice cannot be stored.
    async fn choose(&self, name: &str) -> Result<ResearchModel, String>;
}

/// A model that a person may choose.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ModelOption {
    /// As in the setting `research.model`.
    pub name: String,
    /// What happens if it is chosen.
    pub meaning: String,
}
