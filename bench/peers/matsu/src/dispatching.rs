//! A tool that does nothing, called through everything that surrounds a tool.

use std::time::Instant;

use anyhow::{Result, ensure};
use matsu_runtime::dispatch::{self, Reply};
use matsu_runtime::tool::{Annotations, Tool, ToolContext, ToolEntry, ToolError, ToolReply, Toolset};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::queue_runtime::QueueRuntime;

const WARM_UP: usize = 1_000;

struct Nothing;

/// As many fields as a usual tool has.
#[derive(Deserialize, JsonSchema)]
#[expect(dead_code, reason = "they are checked and read, and that is all")]
struct Input {
    #[schemars(length(min = 1, max = 100))]
    task_id: String,
    #[schemars(range(min = 0, max = 3600))]
    timeout: Option<u64>,
    #[schemars(length(min = 1, max = 50))]
    task_ids: Option<Vec<String>>,
    tail: Option<u32>,
}

#[derive(Serialize, JsonSchema)]
struct Output {
    task_id: String,
    status: String,
    revision: i64,
}

impl Tool for Nothing {
    const NAME: &'static str = "nothing";
    const TITLE: &'static str = "Nothing";
    const DESCRIPTION: &'static str = "Does nothing.";
    const TOOLSET: Toolset = Toolset::Agents;
    const ANNOTATIONS: Annotations =
        Annotations { read_only: true, destructive: false, idempotent: true, open_world: false };
    type Input = Input;
    type Output = Output;

    async fn call(_cx: &ToolContext, input: Input) -> Result<ToolReply<Output>, ToolError> {
        Ok(ToolReply::Done(Output { task_id: input.task_id, status: "running".to_owned(), revision: 4 }))
    }
}

fn arguments() -> Map<String, Value> {
    match json!({ "task_id": "task_01m7ew8qanwx96gmjbb5hrzq9n", "timeout": 50, "tail": 20 }) {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}

pub async fn sample(queue_runtime: &QueueRuntime, samples: usize) -> Result<Vec<u64>> {
    let entry = ToolEntry::of::<Nothing>();
    let cx = ToolContext::new(queue_runtime.runtime.clone(), queue_runtime.owner.clone());
    let mut latencies = Vec::with_capacity(samples);
    for call in 0..WARM_UP + samples {
        let arguments = arguments();
        let began = Instant::now();
        let reply = dispatch::call(&entry, &cx, arguments).await;
        let took = began.elapsed();
        ensure!(matches!(reply, Reply::Done { is_error: false, .. }), "{reply:?}");
        if call >= WARM_UP {
            latencies.push(took.as_nanos() as u64);
        }
    }
    Ok(latencies)
}
