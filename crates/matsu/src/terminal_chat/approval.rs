//! The person at the terminal is asked; one question at a time, though several calls may wait.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use matsu_core::ports::provider::ToolSpec;
use matsu_runtime::agentic_loop::{Approver, ByDanger, Decision, PendingCall, Policy};

use super::input::{Input, Line};
use super::stage::short;

pub struct AtTerminal {
    input: Input,
    /// What the person said about tools, for as long as this chat is open.
    said: Mutex<BTreeMap<String, Policy>>,
    one_at_a_time: tokio::sync::Mutex<()>,
}

impl AtTerminal {
    pub fn new(input: Input) -> Self {
        Self { input, said: Mutex::default(), one_at_a_time: tokio::sync::Mutex::default() }
    }

    pub fn set(&self, tool: &str, policy: Policy) {
        self.said.lock().unwrap_or_else(PoisonError::into_inner).insert(tool.to_owned(), policy);
    }

    pub fn all(&self) -> Vec<(String, Policy)> {
        let said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        said.iter().map(|(name, policy)| (name.clone(), *policy)).collect()
    }

    fn of(&self, name: &str) -> Option<Policy> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner).get(name).copied()
    }
}

#[async_trait]
impl Approver for AtTerminal {
    fn policy(&self, tool: &ToolSpec) -> Policy {
        self.of(&tool.name).unwrap_or_else(|| ByDanger::of(tool.danger))
    }

    async fn ask(&self, call: PendingCall) -> Decision {
        let _turn = self.one_at_a_time.lock().await;
        // An earlier question may have settled it meanwhile.
        match self.of(&call.name) {
            Some(Policy::Allow) => return Decision::Granted,
            Some(Policy::Deny) => return Decision::Denied("a person said no to this tool".to_owned()),
            Some(Policy::Ask) | None => {}
        }
        let question = format!("Allow {} {}? [y]es, [N]o, [a]lways ", call.name, short(&call.arguments.to_string()));
        match self.input.line(&question).await {
            Line::Text(text) => match text.trim().to_lowercase().as_str() {
                "y" | "yes" => Decision::Granted,
                "a" | "always" => {
                    self.set(&call.name, Policy::Allow);
                    Decision::Granted
                }
                _ => Decision::Denied("a person said no".to_owned()),
            },
            Line::Interrupted | Line::End => Decision::Denied("a person said no".to_owned()),
        }
    }
}
