//! A provider that reads its replies from a file, so that everything runs with no key and no network.
//!
//! It keeps no count of its own: which reply comes next follows from the history, so a restart changes nothing.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::stream::{StreamExt, unfold};
use matsu_core::clock::Clock;
use matsu_core::history::{Entry, Item, Maker, Role};
use matsu_core::ports::provider::{
    ModelEvent, ModelLimits, ModelRequest, ModelStream, ModelTurn, Price, Provider, ProviderError, ProviderFault,
    TurnEnd, Usage,
};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::config::ProviderConfig;

pub const WIRE: &str = "scripted";

/// A script: replies in the order they are given.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Script {
    pub replies: Vec<Reply>,
}

/// One turn of the model.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Reply {
    /// Only if the newest message holds these words. Such replies go before the others, one per round of tools.
    pub when: Option<String>,
    /// Its answer, in pieces; `{message}` is the newest message.
    pub text: Vec<String>,
    pub calls: Vec<ScriptedCall>,
    /// Before each piece.
    pub pause_ms: u64,
    /// Never answers.
    pub silent: bool,
    /// Fails after its text, with these words.
    pub error: Option<String>,
    pub usage: Usage,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptedCall {
    pub name: String,
    #[serde(default)]
    pub arguments: Map<String, Value>,
}

pub struct Scripted {
    name: String,
    limits: ModelLimits,
    price: Option<Price>,
    script: Arc<Script>,
    clock: Clock,
}

impl Scripted {
    pub fn from_config(config: &ProviderConfig, clock: Clock) -> Result<Self, String> {
        let path = config.script.as_ref().ok_or("a scripted provider needs script, the file with its replies")?;
        let text = std::fs::read_to_string(path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
        let script = serde_json::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(Self { limits: config.limits(), price: config.price, ..Self::new(&config.name, script, clock) })
    }

    #[must_use]
    pub fn new(name: &str, script: Script, clock: Clock) -> Self {
        let limits = ProviderConfig::new(name, WIRE, WIRE).limits();
        Self { name: name.to_owned(), limits, price: None, script: Arc::new(script), clock }
    }

    fn choose(&self, history: &[Entry]) -> Option<Reply> {
        let newest = history.iter().rposition(|entry| entry.role == Role::User);
        let message = newest.and_then(|at| history.get(at)).map(Entry::spoken).unwrap_or_default();
        let is_own = |entry: &&Entry| entry.role == Role::Assistant && entry.model.as_deref() == Some(&self.name);
        let round = history.iter().skip(newest.unwrap_or(0)).filter(is_own).count();
        let matches = |reply: &&Reply| reply.when.as_ref().is_some_and(|words| message.contains(words.as_str()));
        let fitting: Vec<&Reply> = self.script.replies.iter().filter(matches).collect();
        let in_order: Vec<&Reply> = self.script.replies.iter().filter(|reply| reply.when.is_none()).collect();
        let reply = match (fitting.len(), in_order.len()) {
            (0, 0) => return None,
            (0, count) => in_order.get(history.iter().filter(is_own).count() % count)?,
            (count, _) => fitting.get(round.min(count - 1))?,
        };
        let mut reply = (*reply).clone();
        for piece in &mut reply.text {
            *piece = piece.replace("{message}", &message);
        }
        Some(reply)
    }

    fn fails(&self, message: &str) -> ProviderError {
        ProviderError { provider: self.name.clone(), fault: ProviderFault::BadRequest, message: message.to_owned() }
    }
}

#[async_trait]
impl Provider for Scripted {
    fn name(&self) -> &str {
        &self.name
    }

    fn maker(&self) -> Maker {
        Maker { wire: WIRE.to_owned(), model: WIRE.to_owned() }
    }

    fn limits(&self) -> ModelLimits {
        self.limits
    }

    fn price(&self) -> Option<Price> {
        self.price
    }

    async fn begin(&self, request: ModelRequest) -> Result<ModelStream, ProviderError> {
        let reply = self.choose(&request.history).ok_or_else(|| self.fails("the script has no reply for this"))?;
        if reply.silent {
            return Ok(Box::pin(futures_util::stream::pending()));
        }
        let error = reply.error.as_deref().map(|words| self.fails(words));
        let end = error.map_or_else(|| Ok(ModelEvent::End(turn(&reply))), Err);
        let pause = Duration::from_millis(reply.pause_ms);
        let clock = self.clock;
        let pieces = unfold(reply.text.into_iter(), move |mut pieces| async move {
            let piece = pieces.next()?;
            if !pause.is_zero() {
                clock.sleep(pause).await;
            }
            Some((Ok(ModelEvent::Text(piece)), pieces))
        });
        Ok(Box::pin(pieces.chain(futures_util::stream::once(async move { end }))))
    }
}

fn turn(reply: &Reply) -> ModelTurn {
    let text = reply.text.concat();
    let said = (!text.is_empty()).then(|| Item::text(text));
    let calls = reply.calls.iter().map(|call| Item::ToolCall {
        id: String::new(),
        name: call.name.clone(),
        arguments: Value::Object(call.arguments.clone()),
        signature: None,
    });
    let end = if reply.calls.is_empty() { TurnEnd::Finished } else { TurnEnd::ToolUse };
    ModelTurn { items: said.into_iter().chain(calls).collect(), usage: reply.usage, end }
}

#[cfg(test)]
mod tests {
    use matsu_core::clock::Timestamp;
    use serde_json::json;

    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(1);

    #[test]
    fn replies_follow_from_the_history_alone() {
        let script = json!({"replies": [
            {"text": ["one"]},
            {"text": ["two"]},
            {"when": "look", "calls": [{"name": "look"}]},
            {"when": "look", "text": ["saw {message}"]},
        ]});
        let model = Scripted::new("m", serde_json::from_value(script).unwrap(), Clock::system());
        let said = |history: &[Entry]| model.choose(history).unwrap().text.concat();
        let mut history = vec![Entry::user("hi", NOW)];
        assert_eq!(said(&history), "one");
        history.extend([Entry::assistant("m", vec![Item::text("one")], NOW), Entry::user("again", NOW)]);
        assert_eq!(said(&history), "two");
        history.push(Entry::user("look there", NOW));
        assert_eq!(model.choose(&history).unwrap().calls.len(), 1);
        history.push(Entry::assistant("m", vec![Item::text("…")], NOW));
        assert_eq!(said(&history), "saw look there");
    }
}
