//! The models that can be called, in a fixed order.

use std::sync::Arc;

use matsu_core::ports::provider::Provider;

#[derive(Clone, Default)]
pub struct Roster {
    models: Vec<Arc<dyn Provider>>,
    default: Option<String>,
}

impl Roster {
    #[must_use]
    pub fn new(models: Vec<Arc<dyn Provider>>, default: Option<String>) -> Self {
        Self { models, default }
    }

    #[must_use]
    pub fn names(&self) -> Vec<&str> {
        self.models.iter().map(|model| model.name()).collect()
    }

    /// The model that answers a line without a mention.
    #[must_use]
    pub fn default(&self) -> Option<&str> {
        self.default.as_deref()
    }

    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Arc<dyn Provider>> {
        self.models.iter().find(|model| model.name() == name)
    }

    /// The same models, as far as they are named; all of them if none is.
    #[must_use]
    pub fn only(&self, names: &[String]) -> Self {
        let wanted = |model: &&Arc<dyn Provider>| names.is_empty() || names.iter().any(|name| name == model.name());
        let models: Vec<Arc<dyn Provider>> = self.models.iter().filter(wanted).cloned().collect();
        let default = self.default.clone().filter(|name| models.iter().any(|model| model.name() == name));
        Self { models, default }
    }

    /// The same models with another default.
    #[must_use]
    pub fn with_default(&self, default: Option<String>) -> Self {
        Self { models: self.models.clone(), default }
    }
}
