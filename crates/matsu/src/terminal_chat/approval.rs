//! The person at the terminal is asked; one question at a time, though several calls may wait.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use matsu_core::ports::provider::ToolSpec;
use matsu_runtime::models::agentic_loop::{Approver, ByDanger, Decision, PendingCall, Policy};
use matsu_runtime::models::chat::StandingApprovals;

use super::input::{Input, Line};
use super::stage::short;
use crate::approvals::FileApprovals;

pub struct AtTerminal {
    input: Input,
    stored: FileApprovals,
    /// The person's decisions about tools, for as long as this chat is open.
    said: Mutex<BTreeMap<String, Policy>>,
    one_at_a_time: tokio::sync::Mutex<()>,
}

impl AtTerminal {
    pub fn new(input: Input, stored: FileApprovals) -> Self {
        Self { input, stored, said: Mutex::default(), one_at_a_time: tokio::sync::Mutex::default() }
    }

    pub fn set(&self, tool: &str, policy: Policy) {
        self.said.lock().unwrap_or_else(PoisonError::into_inner).insert(tool.to_owned(), policy);
    }

    /// For every later chat in this project.
    pub fn remember(&self, tool: &str, allow: bool) -> Result<(), String> {
        self.stored.remember(tool, allow)
    }

    /// The project, and the tools that are allowed in it for good.
    pub fn stored(&self) -> (&str, Vec<String>) {
        (&self.stored.project, self.stored.all())
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
        let own = match ByDanger::of(tool.danger) {
            Policy::Ask if self.stored.allows(&tool.name) => Policy::Allow,
            policy => policy,
        };
        self.of(&tool.name).unwrap_or(own)
    }

    async fn ask(&self, call: PendingCall) -> Decision {
        let _turn = self.one_at_a_time.lock().await;
        // An earlier question may have settled it meanwhile.
        match self.of(&call.name) {
            Some(Policy::Allow) => return Decision::Granted,
            Some(Policy::Deny) => return Decision::Denied("a person refused this tool".to_owned()),
            Some(Policy::Ask) | None => {}
        }
        let arguments = short(&call.arguments.to_string());
        let question = format!("Allow {} {arguments}? [y]es, [N]o, [a]lways here, [p]roject: always ", call.name);
        match self.input.line(&question).await {
            Line::Text(text) => match text.trim().to_lowercase().as_str() {
                "y" | "yes" => Decision::Granted,
                "a" | "always" => {
                    self.set(&call.name, Policy::Allow);
                    Decision::Granted
                }
                "p" | "project" => {
                    self.set(&call.name, Policy::Allow);
                    if let Err(why) = self.remember(&call.name, true) {
                        show!("(allowed in this chat; it could not be stored for later chats: {why})");
                    }
                    Decision::Granted
                }
                _ => Decision::Denied("a person refused it".to_owned()),
            },
            Line::Interrupted | Line::End => Decision::Denied("a person refused it".to_owned()),
        }
    }
}
