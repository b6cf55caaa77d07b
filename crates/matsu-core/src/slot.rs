//! Slots: the named limits on how much runs at once, over all nodes of a store.

use crate::words::words;

words! {
    /// What a job (or a part of one) occupies while it runs.
    pub enum Slot {
        /// Searches: the two search workers.
        NetworkClient = "network_client",
        /// Runs of AI command lines.
        AgentCli = "agent_cli",
        /// Chat agents: no run timeout, ended when idle.
        AgentChat = "agent_chat",
        /// Work that only computes.
        Cpu = "cpu",
        /// Inner: the one browser.
        Browser = "browser",
        /// Inner: requests to a model.
        Llm = "llm",
    }
}

impl Slot {
    /// The slots that jobs are claimed for. The others are taken inside a job, at most one at a time.
    pub const FOR_JOBS: &'static [Self] = &[Self::NetworkClient, Self::AgentCli, Self::AgentChat, Self::Cpu];
}

/// How many permits each slot has on this store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlotLimits {
    pub network_client: u32,
    pub agent_cli: u32,
    pub agent_chat: u32,
    pub cpu: u32,
    pub browser: u32,
    pub llm: u32,
}

impl SlotLimits {
    #[must_use]
    pub fn for_cores(cores: u32) -> Self {
        Self { network_client: 2, agent_cli: 5, agent_chat: 20, cpu: cores.max(1), browser: 1, llm: 4 }
    }

    #[must_use]
    pub fn of(&self, slot: Slot) -> u32 {
        match slot {
            Slot::NetworkClient => self.network_client,
            Slot::AgentCli => self.agent_cli,
            Slot::AgentChat => self.agent_chat,
            Slot::Cpu => self.cpu,
            Slot::Browser => self.browser,
            Slot::Llm => self.llm,
        }
    }
}
