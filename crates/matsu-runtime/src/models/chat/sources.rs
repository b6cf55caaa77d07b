//! Several sources of tools as one. Names are made distinct by their source.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::join_all;
use matsu_core::ports::tool_source::{Offered, ToolAnswer, ToolReply, ToolRequest, ToolSource};
use tokio::sync::Mutex;

pub struct Together {
    sources: Vec<Arc<dyn ToolSource>>,
    /// Which source offered which names last.
    routes: Mutex<Vec<(String, usize)>>,
}

impl Together {
    #[must_use]
    pub fn new(sources: Vec<Arc<dyn ToolSource>>) -> Self {
        Self { sources, routes: Mutex::default() }
    }
}

#[async_trait]
impl ToolSource for Together {
    async fn offer(&self) -> Offered {
        let offers = join_all(self.sources.iter().map(|source| source.offer())).await;
        let mut whole = Offered::default();
        let mut routes = Vec::new();
        for (at, offer) in offers.into_iter().enumerate() {
            routes.extend(offer.tools.iter().map(|tool| (tool.name.to_string(), at)));
            whole.tools.extend(offer.tools);
            whole.notes.extend(offer.notes);
        }
        *self.routes.lock().await = routes;
        whole
    }

    async fn call(&self, request: ToolRequest) -> ToolReply {
        let at = self.routes.lock().await.iter().find(|(name, _)| *name == request.name).map(|(_, at)| *at);
        match at.and_then(|at| self.sources.get(at)) {
            Some(source) => source.call(request).await,
            None => ToolReply::Now(ToolAnswer::error(format!("no server offers {}", request.name))),
        }
    }

    async fn patience(&self, tool: &str) -> Option<Duration> {
        let at = self.routes.lock().await.iter().find(|(name, _)| name == tool).map(|(_, at)| *at);
        self.sources.get(at?)?.patience(tool).await
    }

    async fn stop_started(&self) {
        join_all(self.sources.iter().map(|source| source.stop_started())).await;
    }
}
