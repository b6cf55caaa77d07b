//! A model without a wire: turns that a test writes down, and a record of every request it was sent.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::stream::{StreamExt, unfold};
use matsu_core::clock::Clock;
use matsu_core::history::{Entry, Item, Maker};
use matsu_core::ports::provider::{
    ModelEvent, ModelLimits, ModelRequest, ModelStream, ModelTurn, Price, Provider, ProviderError, ProviderFault,
    TurnEnd, Usage,
};
use serde_json::Value;

/// One turn.
#[derive(Clone, Debug, Default)]
pub struct Turn {
    pieces: Vec<String>,
    pause: Duration,
    calls: Vec<(String, String, Value)>,
    fault: Option<ProviderFault>,
    refused: Option<ProviderFault>,
    silent: bool,
    usage: Usage,
    end: Option<TurnEnd>,
}

impl Turn {
    #[must_use]
    pub fn says(pieces: &[&str]) -> Self {
        Self { pieces: pieces.iter().map(|piece| (*piece).to_owned()).collect(), ..Self::default() }
    }

    /// A call without an id of its own.
    #[must_use]
    pub fn calls(name: &str, arguments: Value) -> Self {
        Self::default().and_calls("", name, arguments)
    }

    #[must_use]
    pub fn and_calls(mut self, id: &str, name: &str, arguments: Value) -> Self {
        self.calls.push((id.to_owned(), name.to_owned(), arguments));
        self
    }

    /// Waits that long before each piece, and before its end.
    #[must_use]
    pub fn pausing(self, pause: Duration) -> Self {
        Self { pause, ..self }
    }

    /// Breaks off after its pieces.
    #[must_use]
    pub fn failing(self, fault: ProviderFault) -> Self {
        Self { fault: Some(fault), ..self }
    }

    /// Is refused before it begins.
    #[must_use]
    pub fn refused(fault: ProviderFault) -> Self {
        Self { refused: Some(fault), ..Self::default() }
    }

    /// Sends its pieces, and then nothing more.
    #[must_use]
    pub fn then_silent(self) -> Self {
        Self { silent: true, ..self }
    }

    #[must_use]
    pub fn using(self, input_tokens: u64, output_tokens: u64) -> Self {
        Self { usage: Usage { input_tokens, output_tokens, cached_tokens: 0 }, ..self }
    }

    #[must_use]
    pub fn ending(self, end: TurnEnd) -> Self {
        Self { end: Some(end), ..self }
    }

    fn whole(&self) -> ModelTurn {
        let text = self.pieces.concat();
        let said = (!text.is_empty()).then(|| Item::text(text));
        let calls = self.calls.iter().map(|(id, name, arguments)| Item::ToolCall {
            id: id.clone(),
            name: name.clone(),
            arguments: arguments.clone(),
            signature: None,
        });
        let end = if self.calls.is_empty() { TurnEnd::Finished } else { TurnEnd::ToolUse };
        let items = said.into_iter().chain(calls).collect();
        ModelTurn { items, usage: self.usage, end: self.end.unwrap_or(end) }
    }
}

/// Gives its turns one after the other; the last one again and again.
pub struct FakeModel {
    name: String,
    clock: Clock,
    turns: Mutex<VecDeque<Turn>>,
    asked: Mutex<Vec<ModelRequest>>,
    pub limits: ModelLimits,
    pub price: Option<Price>,
}

impl FakeModel {
    pub fn new(name: &str, turns: impl IntoIterator<Item = Turn>) -> Self {
        Self {
            name: name.to_owned(),
            clock: Clock::system(),
            turns: Mutex::new(turns.into_iter().collect()),
            asked: Mutex::default(),
            limits: ModelLimits { context_tokens: 100_000, output_tokens: 1_000 },
            price: None,
        }
    }

    #[must_use]
    pub fn shared(self) -> Arc<Self> {
        Arc::new(self)
    }

    /// The histories it was sent, in order.
    #[must_use]
    pub fn histories(&self) -> Vec<Vec<Entry>> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).iter().map(|asked| asked.history.to_vec()).collect()
    }

    #[must_use]
    pub fn requests(&self) -> Vec<ModelRequest> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn next(&self) -> Turn {
        let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        if turns.len() > 1 { turns.pop_front().unwrap_or_default() } else { turns.front().cloned().unwrap_or_default() }
    }

    fn fails(&self, fault: ProviderFault) -> ProviderError {
        ProviderError { provider: self.name.clone(), fault, message: format!("{fault:?}") }
    }
}

#[async_trait::async_trait]
impl Provider for FakeModel {
    fn name(&self) -> &str {
        &self.name
    }

    fn maker(&self) -> Maker {
        Maker { wire: "fake".to_owned(), model: self.name.clone() }
    }

    fn limits(&self) -> ModelLimits {
        self.limits
    }

    fn price(&self) -> Option<Price> {
        self.price
    }

    async fn begin(&self, request: ModelRequest) -> Result<ModelStream, ProviderError> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).push(request);
        let turn = self.next();
        if let Some(fault) = turn.refused {
            return Err(self.fails(fault));
        }
        let end = turn.fault.map_or_else(|| Ok(ModelEvent::End(turn.whole())), |fault| Err(self.fails(fault)));
        let (clock, pause, silent) = (self.clock, turn.pause, turn.silent);
        let pieces = unfold(turn.pieces.into_iter(), move |mut pieces| async move {
            let piece = pieces.next()?;
            clock.sleep(pause).await;
            Some((Ok(ModelEvent::Text(piece)), pieces))
        });
        let end = futures_util::stream::once(async move {
            if silent {
                std::future::pending::<()>().await;
            }
            clock.sleep(pause).await;
            end
        });
        Ok(Box::pin(pieces.chain(end)))
    }
}
