//! Matsu's own tools, offered to the loop without a network in between: the same dispatch as over MCP.

use async_trait::async_trait;
use matsu_core::ports::provider::{Danger, ToolSpec};
use matsu_core::ports::tool_source::{Offered, ToolAnswer, ToolReply, ToolRequest, ToolSource};
use matsu_core::principal::Principal;
use serde_json::json;

use crate::dispatch::presets::Offer;
use crate::dispatch::{self, Reply};
use crate::runtime::Runtime;
use crate::tool::{Annotations, ToolContext};

pub struct OwnTools {
    runtime: Runtime,
    principal: Principal,
    offer: Offer,
}

impl OwnTools {
    #[must_use]
    pub fn new(runtime: Runtime, principal: Principal, offer: Offer) -> Self {
        Self { runtime, principal, offer }
    }

    /// The names that no other tool may have.
    #[must_use]
    pub fn names(offer: &Offer) -> Vec<String> {
        offer.tools().map(|tool| tool.name.to_owned()).collect()
    }
}

fn danger(annotations: Annotations) -> Danger {
    match annotations {
        Annotations { read_only: true, .. } => Danger::ReadOnly,
        Annotations { destructive: true, .. } => Danger::Destructive,
        Annotations { .. } => Danger::Writes,
    }
}

#[async_trait]
impl ToolSource for OwnTools {
    async fn offer(&self) -> Offered {
        let tools = self.offer.tools().map(|tool| ToolSpec {
            name: tool.name.to_owned(),
            description: tool.description.to_owned(),
            input: tool.input_schema().clone(),
            danger: danger(tool.annotations),
        });
        Offered { tools: tools.collect(), notes: Vec::new() }
    }

    async fn call(&self, request: ToolRequest) -> ToolReply {
        let Some(tool) = self.offer.find(&request.name) else {
            return ToolReply::Now(ToolAnswer::error(format!("there is no tool {}", request.name)));
        };
        let cx = ToolContext::new(self.runtime.clone(), self.principal.clone());
        let answer = match dispatch::call(tool, &cx, request.arguments).await {
            Reply::Done { body, is_error } => ToolAnswer { content: body.to_string(), is_error },
            Reply::Interrupted { text, .. } => ToolAnswer::good(text),
            Reply::Task(id) => ToolAnswer::good(json!({ "ok": true, "task_id": id }).to_string()),
        };
        ToolReply::Now(answer)
    }
}
