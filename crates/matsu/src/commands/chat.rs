//! `matsu chat`: talk to models that use tools; with --once, one question from stdin and one answer.

use std::io::Read;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use clap::Args;
use matsu_adapters::mcp_host::McpHost;
use matsu_core::clock::Clock;
use matsu_core::history::Image;
use matsu_core::node::NodeRole;
use matsu_core::ports::tool_source::ToolSource;
use matsu_core::principal::Principal;
use matsu_core::transcript::ChatPlace;
use matsu_runtime::dispatch::presets::Offer;
use matsu_runtime::models::agentic_loop::{ByDanger, Event, KeptOutputs, LoopOptions, StopReason};
use matsu_runtime::models::chat::{Line, OpenChat, OpenChats, OwnTools, StandingApprovals, Together, WithStanding};
use matsu_runtime::{Bodies, Workers};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::Context;
use crate::approvals::FileApprovals;
use crate::cli::Global;
use crate::client::{self, DaemonStarter};
use crate::compose::{self, Role, VERSION};
use crate::terminal_chat::approval::AtTerminal;
use crate::terminal_chat::opening::{self, Locks, Opening};
use crate::terminal_chat::{Input, TerminalChat, attach};

#[derive(Args)]
pub struct Chat {
    /// The model that answers a line without a mention
    #[arg(long, value_name = "NAME")]
    pub model: Option<String>,
    /// Continue a chat, by its id or its name
    #[arg(long, value_name = "CHAT")]
    pub chat: Option<String>,
    /// Matsu tools offered to models: core, all, or toolsets separated by commas
    #[arg(long, default_value = "core", value_name = "SETS")]
    pub tools: String,
    /// Read one question from stdin, print the answer and end; with --json, print each event as one line
    #[arg(long)]
    pub once: bool,
    /// With --once: a tool that may run without approval, besides those that were approved for this
    /// project; may be repeated
    #[arg(long = "allow", value_name = "TOOL", requires = "once")]
    pub allow: Vec<String>,
    /// With --once: the system prompt
    #[arg(long, value_name = "TEXT", requires = "once")]
    pub system: Option<String>,
    /// With --once: an image that is sent with the question; may be repeated
    #[arg(long = "image", value_name = "FILE", requires = "once")]
    pub images: Vec<PathBuf>,
}

pub async fn run(cx: &Context, global: &Global, args: Chat) -> Result<ExitCode> {
    let config = &cx.config;
    let roster = compose::roster(config)?;
    if roster.names().is_empty() {
        bail!(
            "no model is configured; set GEMINI_API_KEY, OPENAI_API_KEY or ANTHROPIC_API_KEY, or add a \
             [providers.NAME] section to the configuration"
        );
    }
    let default = args.model.clone().or_else(|| config.default_model());
    if let Some(name) = default.as_ref().filter(|name| roster.get(name).is_none()) {
        bail!("there is no model {name}; there are {}", roster.names().join(", "));
    }
    let opened = compose::open_store(config).await?;
    let role = Role {
        node: NodeRole::Command,
        workers: Workers::None,
        bodies: Bodies::default(),
        agents: compose::agents(config),
        version: VERSION.to_owned(),
    };
    let runtime = compose::runtime(config, &opened, role)?;
    let offer = Offer::parse(&args.tools).map_err(anyhow::Error::msg)?;
    let (store, clock) = (Arc::clone(&opened.store), Clock::system());
    let open_chats = OpenChats { store, clock, roster: roster.with_default(default) };
    let host = Arc::new(McpHost::new(config.mcp_servers()?, OwnTools::names(&offer), clock));
    // A wait of a model ends when the daemon has written what it waits for.
    let _listening = client::listening(&runtime);
    let workers = Arc::new(DaemonStarter { config: config.clone(), global: global.clone() });
    let own = OwnTools::new(runtime, Principal::local_user(), offer).with_workers(workers);
    let own: Arc<dyn ToolSource> = Arc::new(own);
    if args.once {
        return once(cx, &args, &open_chats, &host, own).await;
    }
    sit(cx, &args, open_chats, host, own).await
}

async fn sit(
    cx: &Context,
    args: &Chat,
    open_chats: OpenChats,
    host: Arc<McpHost>,
    own: Arc<dyn ToolSource>,
) -> Result<ExitCode> {
    let input = Input::start(cx.config.paths.data_dir.join("chat_lines"))?;
    let locks = Locks(cx.config.paths.data_dir.join("chats"));
    let opening = Opening { chat: args.chat.clone() };
    let held = opening::open(&open_chats, &locks, &input, &opening).await?;
    if input.is_terminal {
        say!(
            "{} · /help",
            open_chats.roster.names().iter().map(|name| format!("@{name}")).collect::<Vec<_>>().join(" ")
        );
    }
    let session = TerminalChat {
        approver: Arc::new(AtTerminal::new(input.clone(), stored_approvals(cx)?)),
        limits: cx.config.chat_limits(),
        outputs: Arc::new(KeptOutputs::default()),
        calls: Vec::new(),
        spent: crate::terminal_chat::session::Spent::default(),
        clock: open_chats.clock,
        spending_max: cx.config.chat_spending_max(),
        own: vec![own],
        open_chats,
        locks,
        input,
        held,
        host,
        attached: Vec::new(),
    };
    session.run().await?;
    Ok(ExitCode::SUCCESS)
}

/// What a person approved for good in the project of this directory.
fn stored_approvals(cx: &Context) -> Result<FileApprovals> {
    let here = std::env::current_dir().context("cannot find the current directory")?;
    Ok(FileApprovals::of_directory(&cx.config.paths, &here))
}

/// Approvals of the project, and those of this one call.
struct Granted {
    stored: FileApprovals,
    allowed: Vec<String>,
}

impl StandingApprovals for Granted {
    fn allows(&self, tool: &str) -> bool {
        self.allowed.iter().any(|name| name == tool) || self.stored.allows(tool)
    }

    fn remember(&self, tool: &str, allow: bool) -> Result<(), String> {
        self.stored.remember(tool, allow)
    }

    fn all(&self) -> Vec<String> {
        self.stored.all()
    }
}

/// One question from stdin, one answer to stdout. A call that needs an approval and has none is refused.
async fn once(
    cx: &Context,
    args: &Chat,
    open_chats: &OpenChats,
    host: &McpHost,
    own: Arc<dyn ToolSource>,
) -> Result<ExitCode> {
    let mut question = String::new();
    std::io::stdin().read_to_string(&mut question).context("cannot read the question from stdin")?;
    let mut open_chat = match &args.chat {
        Some(wanted) => opening::load(open_chats, wanted).await?,
        None => open_chats.open(&Principal::local_user(), &[], ChatPlace::Page).await?,
    };
    if let Some(prompt) = &args.system {
        open_chat.set_system_prompt(Some(prompt.clone())).await?;
    }
    let images = args.images.iter().map(|path| attach::read(path)).collect::<Result<Vec<_>>>()?;
    let line = Line::from(question.as_str()).with_images(images.iter().map(String::as_str))?;
    let posted = open_chat.post(line).await?;
    if posted.speakers.is_empty() {
        bail!("no model is named; name one with --model, or set chat.default_model");
    }
    let cancel = CancellationToken::new();
    let granted = Granted { stored: stored_approvals(cx)?, allowed: args.allow.clone() };
    let servers: Arc<dyn ToolSource> = host.for_chat(open_chat.id().as_str());
    let options = LoopOptions {
        tools: Some(Arc::new(Together::new(vec![own, servers]))),
        cancel: cancel.clone(),
        spending: cx.config.chat_spending_max().account(),
        approver: Arc::new(WithStanding { inner: Arc::new(ByDanger), standing: Arc::new(granted) }),
        ..LoopOptions::new(open_chats.clock).within(cx.config.chat_limits())
    };
    let printed = cx.json;
    let mut tell = |model: &str, event: &Event| {
        if printed {
            say!("{}", event_json(model, event));
        }
    };
    let answered = {
        let answering = open_chat.answer(&posted, options, &mut tell);
        tokio::pin!(answering);
        loop {
            tokio::select! {
                answered = &mut answering => break answered?,
                () = crate::relay::termination() => cancel.cancel(),
            }
        }
    };
    host.close_all().await;
    finish(cx, &mut open_chat, &answered).await
}

async fn finish(
    cx: &Context,
    open_chat: &mut OpenChat,
    answered: &[matsu_runtime::models::chat::Answered],
) -> Result<ExitCode> {
    let failed = answered.iter().any(|answer| answer.result.stop_reason != StopReason::EndTurn);
    for answer in answered {
        let result = &answer.result;
        if cx.json {
            say!(
                "{}",
                json!({
                    "type": "result",
                    "model": answer.model,
                    "chat_id": open_chat.id(),
                    "text": result.final_text,
                    "stop_reason": result.stop_reason,
                    "error": result.error.as_ref().map(|error| error.message.clone()),
                    "error_code": result.error.as_ref().map(|error| error.code),
                    "usage": result.usage,
                    "cost_micros": result.cost_micros,
                })
            );
        } else {
            say!("{}", result.final_text);
            if let Some(error) = &result.error {
                eprintln!("matsu: {} ({})", error.message, error.code);
            }
        }
    }
    open_chat.end().await?;
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// One line for programs.
fn event_json(model: &str, event: &Event) -> Value {
    match event {
        Event::Text(text) => json!({ "type": "text", "model": model, "text": text }),
        Event::Thinking(text) => json!({ "type": "thinking", "model": model, "text": text }),
        Event::ToolCall { id, name, arguments } => {
            json!({ "type": "tool_call", "model": model, "id": id, "name": name, "arguments": arguments })
        }
        Event::Asked { id, name } => json!({ "type": "asked", "model": model, "id": id, "name": name }),
        Event::ToolResult { id, name, content, is_error, images } => json!({
            "type": "tool_result", "model": model, "id": id, "name": name, "content": content, "is_error": is_error,
            "images": images.iter().map(Image::title).collect::<Vec<_>>(),
        }),
        Event::Notice(text) => json!({ "type": "notice", "model": model, "text": text }),
        Event::Done(result) => json!({ "type": "done", "model": model, "stop_reason": result.stop_reason }),
    }
}
