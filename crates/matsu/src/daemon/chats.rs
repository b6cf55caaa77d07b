//! The daemon as the process that answers in chats with models.

use std::sync::Arc;

use matsu_adapters::mcp_host::McpHost;
use matsu_core::clock::Clock;
use matsu_core::limits::{CHAT_IDLE_MAX, SWEEP_EVERY};
use matsu_server::App;
use tokio::task::JoinSet;

use crate::compose;
use crate::config::Config;
use matsu_runtime::agents::Agents;

pub struct DaemonChats {
    /// None: models or servers are set up wrongly, and the log says how.
    host: Option<Arc<McpHost>>,
    sweeping: JoinSet<()>,
}

impl DaemonChats {
    /// A provider that is set up wrongly must not keep the daemon from everything else.
    pub fn begin(config: &Config, app: &App) -> Self {
        let mut sweeping = JoinSet::new();
        let host = match compose::chats(config, app.runtime()) {
            Ok((chats, host)) => {
                let (seen, idle) = (chats.clone(), Arc::clone(&host));
                Agents::of(app.runtime()).listen_to_answers(chats.downgrade());
                app.host_chats(chats);
                sweeping.spawn(async move {
                    loop {
                        Clock::system().sleep(SWEEP_EVERY).await;
                        seen.forget_idle(CHAT_IDLE_MAX);
                        idle.close_idle(CHAT_IDLE_MAX).await;
                    }
                });
                Some(host)
            }
            Err(error) => {
                tracing::warn!(error = %format!("{error:#}"), "no chats with models");
                None
            }
        };
        Self { host, sweeping }
    }

    /// Answers under way are stopped and stored; servers are ended.
    pub async fn end(mut self, app: &App) {
        if let Some(chats) = app.chats() {
            chats.end().await;
        }
        self.sweeping.shutdown().await;
        if let Some(host) = self.host {
            host.close_all().await;
        }
    }
}
