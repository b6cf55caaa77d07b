//! One question to a model with one answer in JSON: bounded in time, asked again once if it is not of the right shape.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use matsu_core::clock::Clock;
use matsu_core::history::{Entry, Item};
use matsu_core::ports::claim_maker::ModelError;
use matsu_core::ports::model_account::{ModelAccount, ModelCall};
use matsu_core::ports::provider::{
    ModelEvent, ModelRequest, OutputShape, Provider, ProviderError, ProviderFault, Usage,
};
use serde::de::DeserializeOwned;
use serde_json::Value;

/// A command line that serves as a model has to start first.
const ANSWER_MAX: Duration = Duration::from_secs(300);
/// So many words in a row that stand in another text were taken from it.
const RECITED_WORDS: usize = 6;
/// A second try after an answer of the wrong shape.
const TRIES: u32 = 2;

pub struct Question {
    pub name: &'static str,
    pub instructions: &'static str,
    pub schema: Value,
    pub data: Value,
}

pub async fn ask<T: DeserializeOwned>(
    provider: &Arc<dyn Provider>,
    clock: Clock,
    question: &Question,
    account: &ModelAccount,
) -> Result<T, ModelError> {
    let mut wrong = String::new();
    for _ in 0..TRIES {
        let said = clock.within(ANSWER_MAX, once(provider, clock, question, account)).await;
        let said =
            said.ok_or_else(|| ModelError::Unavailable(format!("no answer within {} s", ANSWER_MAX.as_secs())))??;
        match serde_json::from_str(json_in(&said)) {
            Ok(answer) => return Ok(answer),
            Err(error) => wrong = error.to_string(),
        }
    }
    Err(ModelError::Malformed(wrong))
}

async fn once(
    provider: &Arc<dyn Provider>,
    clock: Clock,
    question: &Question,
    account: &ModelAccount,
) -> Result<String, ModelError> {
    let now = clock.now();
    let shape = OutputShape { name: question.name.to_owned(), schema: question.schema.clone() };
    let system =
        format!("{} Answer with JSON of this schema and nothing else: {}", question.instructions, shape.schema);
    let history = vec![Entry::system(system, now), Entry::user(question.data.to_string(), now)];
    let request = ModelRequest { history: history.into(), tools: Arc::from([]), output: Some(shape) };
    let mut stream = provider.begin(request).await.map_err(failed)?;
    let mut own_cost = None;
    while let Some(event) = stream.next().await {
        let event = event.map_err(failed)?;
        if let ModelEvent::Cost(micros) = event {
            own_cost = Some(micros);
        }
        if let ModelEvent::End(turn) = event {
            account.add(call(provider.as_ref(), turn.usage, own_cost));
            let texts = turn.items.iter().filter_map(|item| match item {
                Item::Text { text, .. } => Some(text.as_str()),
                _ => None,
            });
            return Ok(texts.collect());
        }
    }
    Err(ModelError::Unavailable("the answer was cut off".to_owned()))
}

/// What asking has cost: by the price that is configured, or by the program's own account.
#[expect(clippy::cast_precision_loss, reason = "a cost has few digits")]
fn call(provider: &dyn Provider, usage: Usage, own_cost: Option<u64>) -> ModelCall {
    let micros = provider.price().map(|price| price.of(usage)).or(own_cost);
    let Usage { input_tokens, output_tokens, .. } = usage;
    let cost_usd = micros.map(|micros| micros as f64 / 1e6);
    let usage = matsu_core::usage::Usage { input_tokens, output_tokens, cost_usd };
    ModelCall { model: provider.maker().model, agent: provider.agent().map(str::to_owned), usage }
}

fn failed(error: ProviderError) -> ModelError {
    match error.fault {
        ProviderFault::RateLimited { after } => ModelError::OutOfQuota { why: error.to_string(), after },
        _ => ModelError::Unavailable(error.to_string()),
    }
}

/// Models like to wrap JSON in a fence, and programs to say a sentence around it.
fn json_in(text: &str) -> &str {
    let text = text.trim();
    let inside = text.strip_prefix("```json").or_else(|| text.strip_prefix("```"));
    let text = inside.and_then(|inside| inside.strip_suffix("```")).unwrap_or(text).trim();
    match (text.find('{'), text.rfind('}')) {
        (Some(from), Some(to)) if from < to => &text[from..=to],
        _ => text,
    }
}

/// Whether a text repeats part of another, whatever was done to case, spaces and punctuation.
pub fn recites(text: &str, of: &str) -> bool {
    let (text, of) = (words(text), words(of));
    text.windows(RECITED_WORDS).any(|run| of.windows(RECITED_WORDS).any(|other| run == other))
}

fn words(text: &str) -> Vec<String> {
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect()
}
