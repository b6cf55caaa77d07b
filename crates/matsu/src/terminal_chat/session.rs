//! One chat in a terminal: lines in, answers out, until the person leaves.

use std::io::Write;
use std::sync::Arc;

use anyhow::Result;
use matsu_adapters::mcp_host::McpHost;
use matsu_core::clock::Clock;
use matsu_core::ports::tool_source::ToolSource;
use matsu_runtime::models::agentic_loop::{KeptOutputs, LoopLimits, LoopOptions, SpendingMax};
use matsu_runtime::models::chat::{Answered, OpenChats, Posted, Together};
use tokio_util::sync::CancellationToken;

use super::approval::AtTerminal;
use super::commands::{self, Next};
use super::input::{Input, Line};
use super::opening::{Held, Locks};
use super::stage::{ShownCall, Stage};

pub struct TerminalChat {
    pub open_chats: OpenChats,
    pub locks: Locks,
    pub input: Input,
    pub held: Held,
    pub host: Arc<McpHost>,
    /// Matsu's own tools.
    pub own: Vec<Arc<dyn ToolSource>>,
    pub approver: Arc<AtTerminal>,
    pub outputs: Arc<KeptOutputs>,
    pub calls: Vec<ShownCall>,
    pub spent: Spent,
    pub clock: Clock,
    pub spending_max: SpendingMax,
    pub limits: LoopLimits,
    /// Images for the next line, as Base64.
    pub attached: Vec<String>,
}

/// What this chat has used since it was opened here.
#[derive(Clone, Copy, Debug, Default)]
pub struct Spent {
    pub input_tokens: u64,
    pub output_tokens: u64,
    pub micros: Option<u64>,
}

impl TerminalChat {
    /// Until the person leaves or nothing comes any more.
    pub async fn run(mut self) -> Result<()> {
        loop {
            match self.input.line("> ").await {
                Line::End => break,
                Line::Interrupted => show!("(/exit leaves)"),
                Line::Text(line) if line.trim().is_empty() => {}
                Line::Text(line) if matches!(line.trim(), "exit" | "quit") => break,
                Line::Text(line) if line.starts_with('/') => match commands::run(&mut self, line.trim()).await {
                    Ok(Next::Go) => {}
                    Ok(Next::Leave) => break,
                    Err(error) => show!("{error:#}"),
                },
                Line::Text(line) => {
                    if let Err(error) = self.say(&line).await {
                        show!("{error:#}");
                    }
                }
            }
        }
        self.leave().await
    }

    async fn leave(mut self) -> Result<()> {
        let id = self.held.open_chat.id().clone();
        self.host.close_all().await;
        let ended = self.held.open_chat.end().await;
        self.locks.forget(&id);
        Ok(ended?)
    }

    /// Posts a line, and shows what is answered. Returns how each answer ended.
    pub async fn say(&mut self, line: &str) -> Result<Vec<Answered>> {
        let images = self.attached.iter().map(String::as_str);
        let line = matsu_runtime::models::chat::Line::from(line).with_images(images)?;
        let posted = self.held.open_chat.post(line).await?;
        self.attached.clear();
        if posted.speakers.is_empty() {
            if self.input.is_terminal {
                show!("(noted; the next model you call will see it)");
            }
            return Ok(Vec::new());
        }
        self.answer(&posted).await
    }

    async fn answer(&mut self, posted: &Posted) -> Result<Vec<Answered>> {
        let cancel = CancellationToken::new();
        let options = self.options(cancel.clone());
        let mut stage = Stage::new(&posted.speakers, std::mem::take(&mut self.calls));
        let mut out = std::io::stdout();
        let answered = {
            let mut tell =
                |model: &str, event: &matsu_runtime::models::agentic_loop::Event| stage.take(model, event, &mut out);
            let answering = self.held.open_chat.answer(posted, options, &mut tell);
            tokio::pin!(answering);
            loop {
                tokio::select! {
                    answered = &mut answering => break answered,
                    // Stops the answer and keeps what came; a second one does the same.
                    _ = tokio::signal::ctrl_c() => cancel.cancel(),
                }
            }
        };
        self.calls = stage.calls;
        let _ = out.flush();
        let answered = answered?;
        for answer in &answered {
            self.count(answer);
            if let Some(words) = &answer.unsaved {
                show!("({}'s answer could not be stored: {words})", answer.model);
            }
        }
        Ok(answered)
    }

    fn options(&self, cancel: CancellationToken) -> LoopOptions {
        let servers: Arc<dyn ToolSource> = self.host.for_chat(self.held.open_chat.id().as_str());
        let sources = self.own.iter().cloned().chain([servers]).collect();
        LoopOptions {
            tools: Some(Arc::new(Together::new(sources))),
            approver: Arc::clone(&self.approver) as Arc<_>,
            outputs: Arc::clone(&self.outputs),
            cancel,
            spending: self.spending_max.account(),
            ..LoopOptions::new(self.clock).within(self.limits)
        }
    }

    fn count(&mut self, answer: &Answered) {
        let (usage, cost) = (answer.result.usage, answer.result.cost_micros);
        self.spent.input_tokens += usage.input_tokens;
        self.spent.output_tokens += usage.output_tokens;
        if let Some(cost) = cost {
            self.spent.micros = Some(self.spent.micros.unwrap_or(0) + cost);
        }
    }

    /// What models can call here, by name, and the servers that are away.
    pub async fn offered(&self) -> matsu_core::ports::tool_source::Offered {
        match self.options(CancellationToken::new()).tools {
            Some(tools) => tools.offer().await,
            None => matsu_core::ports::tool_source::Offered::default(),
        }
    }
}
