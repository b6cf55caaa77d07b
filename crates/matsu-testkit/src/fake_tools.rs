//! Tools without a server: each is a closure of a test.

use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::BoxFuture;
use matsu_core::ports::provider::{Danger, ToolSpec};
use matsu_core::ports::tool_source::{Offered, ToolAnswer, ToolReply, ToolRequest, ToolSource};
use serde_json::{Value, json};

type Body = Arc<dyn Fn(ToolRequest) -> BoxFuture<'static, ToolReply> + Send + Sync>;

/// A set of tools, and a record of the calls that began.
#[derive(Default)]
pub struct FakeTools {
    tools: Vec<(ToolSpec, Body)>,
    notes: Vec<String>,
    called: Mutex<Vec<(String, Value)>>,
}

impl FakeTools {
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A tool that answers at once.
    #[must_use]
    pub fn answering(self, name: &str, answer: impl Fn(Value) -> ToolAnswer + Send + Sync + 'static) -> Self {
        self.with(name, Danger::ReadOnly, move |request| {
            let answer = answer(Value::Object(request.arguments));
            async move { ToolReply::Now(answer) }
        })
    }

    #[must_use]
    pub fn with<F>(
        mut self,
        name: &str,
        danger: Danger,
        body: impl Fn(ToolRequest) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = ToolReply> + Send + 'static,
    {
        let input = json!({ "type": "object", "properties": {} });
        let spec = ToolSpec::new(name, &format!("the tool {name}"), input, danger);
        self.tools.push((spec, Arc::new(move |request| Box::pin(body(request)))));
        self
    }

    #[must_use]
    pub fn noting(mut self, note: &str) -> Self {
        self.notes.push(note.to_owned());
        self
    }

    #[must_use]
    pub fn shared(self) -> Arc<Self> {
        Arc::new(self)
    }

    #[must_use]
    pub fn called(&self) -> Vec<(String, Value)> {
        self.called.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[async_trait::async_trait]
impl ToolSource for FakeTools {
    async fn offer(&self) -> Offered {
        Offered { tools: self.tools.iter().map(|(spec, _)| spec.clone()).collect(), notes: self.notes.clone() }
    }

    async fn call(&self, request: ToolRequest) -> ToolReply {
        let call = (request.name.clone(), Value::Object(request.arguments.clone()));
        self.called.lock().unwrap_or_else(PoisonError::into_inner).push(call);
        match self.tools.iter().find(|(spec, _)| *spec.name == request.name) {
            Some((_, body)) => body(request).await,
            None => ToolReply::Now(ToolAnswer::error("no such tool")),
        }
    }
}
