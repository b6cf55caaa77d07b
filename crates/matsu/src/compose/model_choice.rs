//! `research.model = "auto"`: a person chooses the model once, and a file of the data directory remembers it.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use matsu_adapters::providers::agent;
use matsu_core::clock::Clock;
use matsu_core::ports::agent::ProbeDepth;
use matsu_core::ports::research_model::{EMBEDDED, ModelChoice, ModelOption, ResearchModel};
use serde::{Deserialize, Serialize};

use super::{model_host, research};
use crate::config::Config;
use crate::private_files::write_private;

/// The command of the agent that is this program.
const OWN_PROGRAM: &str = "matsu";

#[derive(Serialize, Deserialize)]
struct Remembered {
    model: String,
}

pub struct FileChoice {
    config: Config,
    clock: Clock,
    chosen: Mutex<Option<String>>,
}

impl FileChoice {
    /// With what was chosen earlier. A file that cannot be read is no choice: the person is asked again.
    pub fn open(config: &Config, clock: Clock) -> Self {
        let text = std::fs::read_to_string(file(config)).ok();
        let remembered = text.and_then(|text| serde_json::from_str::<Remembered>(&text).ok());
        Self { config: config.clone(), clock, chosen: Mutex::new(remembered.map(|remembered| remembered.model)) }
    }
}

fn file(config: &Config) -> PathBuf {
    config.paths.data_dir.join("research-model.json")
}

#[async_trait]
impl ModelChoice for FileChoice {
    fn chosen(&self) -> Option<String> {
        self.chosen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn options(&self) -> Vec<ModelOption> {
        let option = |name: String, meaning: String| ModelOption { name, meaning };
        let mut options = Vec::new();
        let host = model_host(&self.config);
        // Matsu's own agent asks one of the providers, which are options themselves.
        for agent in host.agents().into_iter().filter(|agent| agent.command != OWN_PROGRAM) {
            if host.probe(&agent.name, ProbeDepth::Known).await.installed {
                let meaning = format!("the program {}, with the account that it is logged in to", agent.command);
                options.push(option(format!("{}{}", agent::PREFIX, agent.name), meaning));
            }
        }
        for provider in self.config.providers().unwrap_or_default() {
            let meaning = format!("the provider of that name in the configuration ({})", provider.model);
            options.push(option(provider.name, meaning));
        }
        options.push(option(EMBEDDED.to_owned(), "no model: nothing is sent anywhere".to_owned()));
        options
    }

    async fn choose(&self, name: &str) -> Result<ResearchModel, String> {
        let model = research::model_named(&self.config, name, self.clock).map_err(|error| format!("{error:#}"))?;
        let text = serde_json::to_string(&Remembered { model: name.to_owned() }).map_err(|error| error.to_string())?;
        write_private(&file(&self.config), &text).map_err(|error| format!("{error:#}"))?;
        *self.chosen.lock().unwrap_or_else(PoisonError::into_inner) = Some(name.to_owned());
        Ok(model)
    }
}
