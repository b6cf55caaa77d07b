//! One round of tool calls: several at once, reported in call order, every one of them settled whatever happens.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use matsu_core::ports::provider::ToolSpec;
use matsu_core::ports::tool_source::{ToolAnswer, ToolReply, ToolRequest};
use serde_json::{Map, Value};
use tokio::sync::Notify;

use super::approval::{Decision, PendingCall, Policy};
use super::event::Event;
use super::options::LoopOptions;
use super::outputs::READ_MORE;
use super::stopwatch::Stopwatch;
use super::stream::Sink;

/// A call as the model made it.
#[derive(Clone)]
pub struct Call {
    pub id: String,
    pub name: String,
    pub arguments: Value,
    /// Why it is not to be run.
    pub refused: Option<String>,
}

/// How a call was answered so far.
pub enum Settled {
    Answered(ToolAnswer),
    Later(Pin<Box<dyn Future<Output = ToolAnswer> + Send>>),
}

/// What surrounds a round.
pub struct Round<'a> {
    /// Whose calls these are.
    pub model: &'a str,
    pub options: &'a LoopOptions,
    pub tools: &'a [ToolSpec],
    pub stopwatch: &'a Stopwatch,
    pub sink: &'a Sink,
}

impl Round<'_> {
    /// Runs the calls. `settled` has a place for each; places that are still empty when this is dropped were not run
    /// to their end.
    pub async fn run(&self, calls: &[Call], settled: &mut [Option<Settled>]) {
        let mut waiting: VecDeque<usize> = (0..calls.len()).collect();
        let mut running = FuturesUnordered::new();
        let mut reported = 0;
        loop {
            while running.len() < self.options.calls_at_once_max
                && let Some(at) = waiting.pop_front()
                && let Some(call) = calls.get(at)
            {
                running.push(async move { (at, self.settle(call).await) });
            }
            let Some((at, answer)) = running.next().await else { return };
            if let Some(place) = settled.get_mut(at) {
                *place = Some(answer);
            }
            while let (Some(call), Some(Some(answer))) = (calls.get(reported), settled.get(reported)) {
                if let Settled::Answered(answer) = answer {
                    send_result(self.sink, call, answer);
                }
                reported += 1;
            }
        }
    }

    async fn settle(&self, call: &Call) -> Settled {
        match self.answer(call).await {
            Ok(Settled::Answered(answer)) => {
                // What the follow-up tool gives is already a piece; to cut it again would lose its end.
                let content = if call.name == READ_MORE {
                    answer.content
                } else {
                    self.options.outputs.shorten(&call.id, answer.content)
                };
                Settled::Answered(ToolAnswer { content, ..answer })
            }
            Ok(later) => later,
            Err(words) => Settled::Answered(ToolAnswer::error(words)),
        }
    }

    async fn answer(&self, call: &Call) -> Result<Settled, String> {
        if let Some(reason) = &call.refused {
            return Err(reason.clone());
        }
        let Value::Object(arguments) = &call.arguments else {
            return Err("the arguments could not be read as a JSON object; nothing was run".to_owned());
        };
        let Some(tool) = self.tools.iter().find(|tool| *tool.name == call.name) else {
            let names: Vec<&str> = self.tools.iter().map(|tool| &*tool.name).collect();
            return Err(format!("there is no tool {:?}; the tools are: {}", call.name, names.join(", ")));
        };
        self.approve(call, tool).await?;
        if call.name == READ_MORE {
            return Ok(Settled::Answered(self.options.outputs.read(arguments)));
        }
        self.call(call, arguments.clone()).await
    }

    async fn approve(&self, call: &Call, tool: &ToolSpec) -> Result<(), String> {
        match self.options.approver.policy(tool) {
            Policy::Allow => Ok(()),
            Policy::Deny => Err(format!("{} is not allowed here; nothing was run", call.name)),
            Policy::Ask => {
                self.sink.send(Event::Asked { id: call.id.clone(), name: call.name.clone() });
                let pending = PendingCall {
                    model: self.model.to_owned(),
                    id: call.id.clone(),
                    name: call.name.clone(),
                    arguments: call.arguments.clone(),
                };
                let _stopped = self.stopwatch.stop();
                match self.options.approver.ask(pending).await {
                    Decision::Granted => Ok(()),
                    Decision::Denied(reason) => Err(format!("not approved, nothing was run: {reason}")),
                }
            }
        }
    }

    /// A tool that shows no sign of life for too long is given up.
    async fn call(&self, call: &Call, arguments: Map<String, Value>) -> Result<Settled, String> {
        let Some(source) = &self.options.tools else {
            return Err(format!("there is no tool {:?}: this chat has none", call.name));
        };
        let patience = source.patience(&call.name).await.unwrap_or(self.options.tool_time_max);
        let sign = Arc::new(Notify::new());
        let alive = Arc::clone(&sign);
        let request = ToolRequest { name: call.name.clone(), arguments, alive: Arc::new(move || alive.notify_one()) };
        let mut reply = source.call(request);
        loop {
            tokio::select! {
                reply = &mut reply => {
                    return Ok(match reply {
                        ToolReply::Now(answer) => Settled::Answered(answer),
                        ToolReply::Later(answer) => Settled::Later(answer),
                    });
                }
                () = sign.notified() => {}
                () = self.options.clock.sleep(patience) => {
                    let seconds = patience.as_secs_f64();
                    return Err(format!("{} sent no progress for {seconds} s and was cancelled", call.name));
                }
            }
        }
    }
}

/// Shows the result of a call.
pub fn send_result(sink: &Sink, call: &Call, answer: &ToolAnswer) {
    sink.send(Event::ToolResult {
        id: call.id.clone(),
        name: call.name.clone(),
        content: answer.content.clone(),
        is_error: answer.is_error,
        images: answer.images.clone(),
    });
}
