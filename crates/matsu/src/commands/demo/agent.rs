//! The second half of the demonstration: an agent that holds a wait, a person who wakes it, and a person who stops it.
//! The agent is a script; everything it receives comes from the product.

use std::time::Duration;

use anyhow::{Context as _, Result};
use matsu_core::clock::Clock;
use serde_json::{Value, json};

use super::Narrator;
use crate::client::Client;
use crate::commands::field;

/// Looks whether the agent listens, before the person writes anyway.
const LOOKS_MAX: u32 = 2_000;

/// What the agent and the person had to do with each other.
pub struct Seen {
    pub woken_after: Duration,
    /// The agent's call was replaced by a notice, and nothing of it was done.
    pub notice: String,
    pub instruction: String,
}

impl Seen {
    pub fn to_json(&self) -> Value {
        json!({ "woken_ms": self.woken_after.as_secs_f64() * 1000.0, "notice": self.notice, "instruction": self.instruction })
    }
}

/// A named agent with its passkey.
struct Agent<'a> {
    client: &'a Client,
    id: String,
    passkey: String,
}

impl<'a> Agent<'a> {
    async fn made(client: &'a Client, id: &str) -> Result<Self> {
        let made = client.post("/api/v1/agents", json!({ "id": id, "name": id })).await?;
        Ok(Self { client, id: id.to_owned(), passkey: field(&made, "passkey") })
    }

    /// A session, for whatever waits for this agent.
    async fn session(&self) -> Result<DemoSession<'a>> {
        let who = json!({ "agent_id": self.id, "passkey": self.passkey, "project_id": "default" });
        let said = self.client.post("/api/v1/tools/authenticate", who).await?;
        let token = said["session_token"].as_str().with_context(|| format!("{} cannot sign in: {said}", self.id))?;
        Ok(DemoSession { client: self.client, token: token.to_owned() })
    }
}

struct DemoSession<'a> {
    client: &'a Client,
    token: String,
}

impl DemoSession<'_> {
    async fn call(&self, tool: &str, mut arguments: Value) -> Result<Value> {
        arguments["session_token"] = json!(self.token);
        self.client.post(&format!("/api/v1/tools/{tool}"), arguments).await
    }
}

/// `suffix`: behind the names of the two agents.
pub async fn run(client: &Client, narrator: &Narrator, suffix: &str) -> Result<Seen> {
    narrator.line("\n3. A person writes to a waiting agent and stops a working one (the agents are a script)");
    let woken_after = wake(client, narrator, suffix).await?;
    let (notice, instruction) = interrupt(client, narrator, suffix).await?;
    Ok(Seen { woken_after, notice, instruction })
}

/// The agent waits for its person, who writes a message.
async fn wake(client: &Client, narrator: &Narrator, suffix: &str) -> Result<Duration> {
    let agent = Agent::made(client, &format!("scribe{suffix}")).await?;
    let chat = client.post("/api/v1/chats", json!({ "agent_id": agent.id, "project_id": "default" })).await?;
    let chat = format!("/api/v1/chats/{}", field(&chat, "chat_id"));
    let session = agent.session().await?;
    let clock = Clock::system();
    let waiting = async {
        let said = session.call("get_next_action", json!({ "timeout_seconds": 20 })).await?;
        Ok::<_, anyhow::Error>((said, clock.instant()))
    };
    let speaking = async {
        for _ in 0..LOOKS_MAX {
            if client.get(&chat).await?["agent_state"] == "listening" {
                break;
            }
        }
        let began = clock.instant();
        let message = json!({ "content": "Which sources disagree?" });
        client.post(&format!("{chat}/messages"), message).await?;
        Ok::<_, anyhow::Error>(began)
    };
    let ((said, woken_at), spoken) = tokio::try_join!(waiting, speaking)?;
    let woken_after = woken_at.duration_since(spoken);
    narrator.line("   agent    waits in one call of get_next_action, without further calls or tokens");
    narrator.line(&format!("   person   “{}”", field(&said["messages"][0], "content")));
    narrator.line(&format!("   agent    receives it {:.1} ms after it was sent", woken_after.as_secs_f64() * 1000.0));
    session.call("send_message", json!({ "content": "See the claim above." })).await?;
    session.call("logout", json!({})).await?;
    Ok(woken_after)
}

/// The agent works on a task that a person blocks.
async fn interrupt(client: &Client, narrator: &Narrator, suffix: &str) -> Result<(String, String)> {
    let agent = Agent::made(client, &format!("worker{suffix}")).await?;
    let wish = json!({ "kind": "agent", "agent_id": agent.id, "message": "Look for more sources." });
    let task = field(&client.post("/api/v1/tasks", wish).await?, "task_id");
    let session = agent.session().await?;
    session.call("get_next_action", json!({})).await?;
    client.patch(&format!("/api/v1/tasks/{task}"), json!({ "status": "blocked" })).await?;
    narrator.line("   person   blocks the task of a second agent");
    let said = session.call("create_task", json!({ "query": "More sources" })).await?;
    let notice = field(&said, "notification");
    narrator.line(&format!("   agent    calls create_task; the reply: {notice} (nothing was created)"));
    let given = session.call("get_notifications", json!({})).await?;
    let order = &given["notifications"][0];
    let instruction = field(order, "instruction");
    narrator.line(&format!("   agent    reads: {} {instruction}", field(order, "message")));
    let done = session.call("report_completed", json!({ "result": "blocked", "summary": "stopped" })).await?;
    narrator.line(&format!("   agent    reports that it has stopped; the task is {}", field(&done, "status")));
    Ok((notice, instruction))
}
