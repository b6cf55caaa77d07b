//! `matsu __loop`: the program of a run of the built-in agent. It carries messages between the run and a chat that the
//! daemon answers in, in the stream of events that custom programs use. It holds no key and opens no store, so it can
//! be confined like any other agent; when it ends, the answer is stopped. If the daemon ends, it waits for the next one
//! and lets the model go on from the last message that is stored.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use clap::Args;
use matsu_core::clock::Clock;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader, Lines, Stdin};

use super::Context;
use crate::client::{Client, Events, segment};
use crate::relay::termination;

#[derive(Args)]
pub struct Loop {
    /// Continue a chat
    #[arg(long)]
    chat: Option<String>,
    /// Model that answers
    #[arg(long)]
    model: Option<String>,
    /// A file that holds the system prompt
    #[arg(long)]
    system_file: Option<PathBuf>,
}

pub async fn run(cx: &Context, args: Loop) -> Result<ExitCode> {
    let carried = carry(cx, args).await.unwrap_or_else(|error| Carried::failed(&format!("{error:#}")));
    say!("{}", carried.line);
    Ok(carried.code)
}

async fn carry(cx: &Context, args: Loop) -> Result<Carried> {
    let client = Client::daemon(&cx.config).await?;
    let mut answers = BufReader::new(tokio::io::stdin()).lines();
    let prompt = prompt(&mut answers).await?;
    let speaker = speaker(&client, args.model).await?;
    let chat = match args.chat {
        Some(chat) => chat,
        None => {
            let opened = client.post("/api/v1/chats", json!({ "models": [], "unattended": true })).await?;
            opened["chat_id"].as_str().context("the daemon opened no chat")?.to_owned()
        }
    };
    say!("{}", json!({ "type": "session", "id": chat }));
    let path = format!("/api/v1/chats/{}", segment(&chat));
    if let Some(file) = &args.system_file {
        let text = std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
        client.patch(&path, json!({ "system_prompt": text })).await?;
    }
    let posted = client.post(&format!("{path}/messages"), json!({ "content": prompt, "to": [&speaker] })).await?;
    let after = posted["seq"].as_i64().unwrap_or(0);
    let events = client.events(&format!("{path}/stream?after={after}&hold=true")).await?;
    Carrier { cx, client, path, speaker, events, answers, printed: Printed::default() }.run().await
}

/// What the model reads when its answer was cut off by the end of the daemon.
const INTERRUPTED: &str = "The server was restarted while you answered, and the part of the answer that you had \
                           written is lost. Continue the work where it stopped, then write the whole answer from its \
                           beginning.";

const TRY_AGAIN_EVERY: Duration = Duration::from_millis(200);

/// The first line on stdin.
async fn prompt(lines: &mut Lines<BufReader<Stdin>>) -> Result<String> {
    let line = lines.next_line().await.context("cannot read the prompt")?.context("there is no prompt")?;
    let word: Value = serde_json::from_str(&line).context("the prompt is not a line of JSON")?;
    Ok(word["text"].as_str().context("the prompt has no text")?.to_owned())
}

/// The one that was asked for, else the default, else the first.
async fn speaker(client: &Client, wished: Option<String>) -> Result<String> {
    if let Some(name) = wished {
        return Ok(name);
    }
    let models = client.get("/api/v1/models").await?;
    let models = models["items"].as_array().cloned().unwrap_or_default();
    let chosen = models.iter().find(|model| model["default"] == true).or(models.first());
    let name = chosen.and_then(|model| model["name"].as_str());
    Ok(name.context("no model is configured")?.to_owned())
}

/// What was printed already, so that it is printed once.
#[derive(Default)]
struct Printed {
    /// By the number of the message: how many bytes of it.
    text: BTreeMap<i64, usize>,
    tools: BTreeSet<String>,
    questions: BTreeSet<String>,
    /// The newest message of the model.
    last: String,
}

impl Printed {
    fn message(&mut self, message: &Value) {
        let content = message["content"].as_str().unwrap_or_default();
        let printed = self.text.entry(message["seq"].as_i64().unwrap_or(0)).or_default();
        if let Some(more) = content.get(*printed..).filter(|more| !more.is_empty()) {
            say!("{}", json!({ "type": "text", "text": more }));
            *printed = content.len();
        }
        content.clone_into(&mut self.last);
        for tool in message["tools"].as_array().into_iter().flatten() {
            let id = tool["id"].as_str().unwrap_or_default();
            if self.tools.insert(id.to_owned()) {
                say!("{}", json!({ "type": "tool", "name": tool["name"], "input": tool["arguments"] }));
            }
            if tool["state"] == "awaiting_approval" && self.questions.insert(id.to_owned()) {
                let name = tool["name"].as_str().unwrap_or_default();
                let text = format!("May {name} be called with {}?", tool["arguments"]);
                say!("{}", json!({ "type": "question", "id": id, "text": text, "options": ["allow", "deny"] }));
            }
        }
    }
}

/// The last line of the run.
struct Carried {
    line: Value,
    code: ExitCode,
}

impl Carried {
    fn failed(error: &str) -> Self {
        Self { line: json!({ "type": "result", "error": error }), code: ExitCode::FAILURE }
    }
}

struct Carrier<'a> {
    cx: &'a Context,
    client: Client,
    path: String,
    speaker: String,
    events: Events,
    answers: Lines<BufReader<Stdin>>,
    printed: Printed,
}

impl Carrier<'_> {
    async fn run(mut self) -> Result<Carried> {
        let ended = termination();
        tokio::pin!(ended);
        let (mut is_stopped, mut can_be_answered) = (false, true);
        loop {
            tokio::select! {
                event = self.events.next() => match event {
                    Ok(Some((name, data))) if name == "chat" => {
                        if let Some(carried) = self.take(&data) {
                            return Ok(carried);
                        }
                    }
                    Ok(Some(_)) => {}
                    Ok(None) | Err(_) if is_stopped => bail!("the daemon ended while the answer was stopped"),
                    Ok(None) | Err(_) => tokio::select! {
                        () = self.go_on_with_another_daemon() => {}
                        () = &mut ended => bail!("the run was stopped while no daemon answered"),
                    },
                },
                // What a person answers is decided by the daemon, and seen in the chat.
                line = self.answers.next_line(), if can_be_answered => can_be_answered = matches!(line, Ok(Some(_))),
                () = &mut ended, if !is_stopped => {
                    is_stopped = true;
                    self.client.post(&format!("{}/stop", self.path), json!({})).await?;
                }
            }
        }
    }

    /// Until there is one. The run's own time limit bounds this.
    async fn go_on_with_another_daemon(&mut self) {
        while self.go_on().await.is_err() {
            Clock::system().sleep(TRY_AGAIN_EVERY).await;
        }
    }

    /// A new daemon knows what is stored of the chat, and nothing of the answer that was under way.
    async fn go_on(&mut self) -> Result<()> {
        let client = Client::daemon(&self.cx.config).await?;
        let word = json!({ "content": INTERRUPTED, "to": [&self.speaker] });
        let posted = client.post(&format!("{}/messages", self.path), word).await?;
        let after = posted["seq"].as_i64().unwrap_or(0);
        self.events = client.events(&format!("{}/stream?after={after}&hold=true", self.path)).await?;
        self.client = client;
        Ok(())
    }

    /// The chat as it is now; the end of the run once no model answers any more.
    fn take(&mut self, now: &Value) -> Option<Carried> {
        for message in now["messages"].as_array().into_iter().flatten() {
            self.printed.message(message);
        }
        if now["answering"] == true {
            return None;
        }
        let spoken = &now["spoken"][0];
        let usage = json!({
            "type": "usage", "input_tokens": spoken["input_tokens"], "output_tokens": spoken["output_tokens"],
        });
        say!("{usage}");
        Some(match (spoken["stop_reason"].as_str(), spoken["error"].as_str()) {
            (Some("end_turn"), _) => {
                Carried { line: json!({ "type": "result", "text": self.printed.last }), code: ExitCode::SUCCESS }
            }
            (_, error) => Carried::failed(error.unwrap_or("the answer ended early")),
        })
    }
}
