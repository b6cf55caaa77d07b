//! Chats with models, put together: the models, Matsu's own tools, and for each chat its own MCP servers.

use std::sync::Arc;

use anyhow::Result;
use async_trait::async_trait;
use matsu_adapters::mcp_host::McpHost;
use matsu_core::id::ChatId;
use matsu_core::ports::tool_source::ToolSource;
use matsu_core::principal::Principal;
use matsu_core::transcript::{ChatPlace, Transcript};
use matsu_runtime::Runtime;
use matsu_runtime::dispatch::presets::Offer;
use matsu_runtime::models::chat::{ChatTools, LiveChats, LiveSettings, OpenChats, OwnTools, Together};
use matsu_runtime::tool::Toolset;

use crate::approvals::{FileApprovals, PAGE};
use crate::config::Config;

/// What models can call in a chat of the daemon.
struct DaemonTools {
    runtime: Runtime,
    host: Arc<McpHost>,
}

#[async_trait]
impl ChatTools for DaemonTools {
    fn for_chat(&self, chat: &Transcript) -> Option<Arc<dyn ToolSource>> {
        let offer = match chat.place {
            ChatPlace::Terminal | ChatPlace::Page => Offer::default(),
            // An agent that could start agents would have no end.
            ChatPlace::Run => Offer::of(Toolset::Research),
        };
        let own = OwnTools::new(self.runtime.clone(), chat.owner.clone(), offer);
        // The configured servers are the local owner's: they may read its files and use its logins.
        if chat.owner != Principal::local_user() {
            return Some(Arc::new(own));
        }
        Some(Arc::new(Together::new(vec![Arc::new(own), self.host.for_chat(chat.chat.id.as_str())])))
    }

    async fn close(&self, id: &ChatId) {
        self.host.close_chat(id.as_str()).await;
    }
}

/// Chats with models, answered by this process.
pub fn chats(config: &Config, runtime: &Runtime) -> Result<(LiveChats, Arc<McpHost>)> {
    let clock = *runtime.clock();
    let host = Arc::new(McpHost::new(config.mcp_servers()?, OwnTools::names(&Offer::default()), clock));
    let open_chats = OpenChats { store: Arc::clone(runtime.store()), clock, roster: super::roster(config)? };
    let tools = DaemonTools { runtime: runtime.clone(), host: Arc::clone(&host) };
    Ok((LiveChats::new(open_chats, Arc::new(tools), live_settings(config)), host))
}

/// What holds for the answers in all chats.
pub fn live_settings(config: &Config) -> LiveSettings {
    LiveSettings {
        spending_max: config.chat_spending_max(),
        limits: config.chat_limits(),
        standing: Arc::new(FileApprovals::of(&config.paths, PAGE)),
    }
}
