//! Calls that are answered with questions first, in rounds, with a state that only this server can have made.

use matsu_core::id::NodeId;
use matsu_server::auth::hash;
use rmcp::ErrorData;
use rmcp::model::{ClientCapabilities, InputRequest, InputRequests, InputRequiredResult, InputResponses};
use serde_json::Value;

use crate::data::Asks;

/// Where a call stands in its rounds.
pub enum Round {
    Ask(InputRequiredResult),
    Answered(InputResponses),
}

/// Seals states with a key of its own.
pub struct Seal(String);

impl Seal {
    pub fn new(now: matsu_core::clock::Timestamp) -> Self {
        Self(NodeId::mint(now).to_string())
    }

    fn seal(&self, name: &str, round: usize) -> String {
        format!("{round}.{}", hash(&format!("{} {name} {round}", self.0)))
    }

    fn open(&self, name: &str, rounds: usize, state: &str) -> Result<usize, ErrorData> {
        (0..rounds)
            .find(|round| self.seal(name, *round) == state)
            .ok_or_else(|| ErrorData::invalid_params("the requestState is none that was given out", None))
    }
}

/// Decides what a call with these answers is answered with.
pub fn round(
    seal: &Seal,
    name: &str,
    asks: &Asks,
    given: Option<InputResponses>,
    state: Option<&str>,
    client: &ClientCapabilities,
) -> Result<Round, ErrorData> {
    let at = match state {
        Some(state) if asks.stateful => seal.open(name, asks.rounds.len(), state)?,
        _ => 0,
    };
    let asked = |at: usize| asks.rounds.get(at).map(|requests| understood(requests, client));
    let current = asked(at).unwrap_or_default();
    let (mut given, has_state) = (given.unwrap_or_default(), state.is_some() || !asks.stateful);
    given.retain(|key, answer| current.get(key).is_some_and(|request| is_answer(request, answer)));
    let answered = has_state && current.keys().all(|key| given.contains_key(key));
    let (next, requests) = match (answered, asked(at + 1)) {
        (true, None) => return Ok(Round::Answered(given)),
        (true, Some(next)) => (at + 1, next),
        (false, _) => (at, current),
    };
    let state = asks.stateful.then(|| seal.seal(name, next));
    Ok(Round::Ask(InputRequiredResult::new(Some(requests), state)))
}

/// A client is asked only what it has declared that it can answer.
fn understood(requests: &InputRequests, client: &ClientCapabilities) -> InputRequests {
    let can = |request: &InputRequest| match request {
        InputRequest::CreateMessage(_) => client.sampling.is_some(),
        InputRequest::Elicitation(_) => client.elicitation.is_some(),
        InputRequest::ListRoots(_) => client.roots.is_some(),
        _ => false,
    };
    requests.iter().filter(|(_, request)| can(request)).map(|(key, request)| (key.clone(), request.clone())).collect()
}

fn is_answer(request: &InputRequest, answer: &Value) -> bool {
    match request {
        InputRequest::CreateMessage(_) => answer["content"].is_object() || answer["content"].is_array(),
        InputRequest::Elicitation(_) => answer["action"].is_string(),
        InputRequest::ListRoots(_) => answer["roots"].is_array(),
        _ => false,
    }
}
