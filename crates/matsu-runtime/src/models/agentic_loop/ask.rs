//! One turn of the model: asked again with growing pauses, as long as nothing of an answer was shown.

use std::time::Duration;

use futures_util::StreamExt;
use matsu_core::clock::Clock;
use matsu_core::limits::{MODEL_RETRIES_MAX, MODEL_RETRY_FIRST, MODEL_RETRY_WAIT_MAX};
use matsu_core::ports::provider::{ModelEvent, ModelRequest, ModelTurn, Provider, ProviderError, ProviderFault};

use super::event::Event;
use super::stream::Sink;

/// What of a turn has arrived. It outlives the asking, so that a turn which is cut off is not lost.
#[derive(Default)]
pub struct Arrived {
    pub text: String,
    /// Whether any part of it was sent to the listener.
    pub visible: bool,
    /// What it has cost by its program's own account, in millionths of a dollar.
    pub cost_micros: Option<u64>,
}

pub async fn ask(
    provider: &dyn Provider,
    request: &ModelRequest,
    clock: Clock,
    sink: &Sink,
    arrived: &mut Arrived,
) -> Result<ModelTurn, ProviderError> {
    let mut tries = 0;
    loop {
        match once(provider, request, sink, arrived).await {
            Ok(turn) => return Ok(turn),
            Err(error) => {
                let pause = if arrived.visible { None } else { pause(error.fault, tries) };
                let Some(pause) = pause else { return Err(error) };
                tries += 1;
                tracing::debug!(provider = provider.name(), fault = ?error.fault, ?pause, "a model is asked again");
                clock.sleep(pause).await;
            }
        }
    }
}

async fn once(
    provider: &dyn Provider,
    request: &ModelRequest,
    sink: &Sink,
    arrived: &mut Arrived,
) -> Result<ModelTurn, ProviderError> {
    let mut stream = provider.begin(request.clone()).await?;
    while let Some(event) = stream.next().await {
        match event? {
            ModelEvent::Text(text) => {
                arrived.text.push_str(&text);
                arrived.visible = true;
                sink.send(Event::Text(text));
            }
            ModelEvent::Thinking(text) => {
                arrived.visible = true;
                sink.send(Event::Thinking(text));
            }
            ModelEvent::Cost(micros) => arrived.cost_micros = Some(micros),
            ModelEvent::End(turn) => return Ok(turn),
        }
    }
    let message = "the answer was cut off before its end".to_owned();
    Err(ProviderError { provider: provider.name().to_owned(), fault: ProviderFault::Truncated, message })
}

/// How long to leave the vendor alone; `None`: it is no use.
fn pause(fault: ProviderFault, tries: u32) -> Option<Duration> {
    if tries >= MODEL_RETRIES_MAX || !fault.is_transient() {
        return None;
    }
    let own = MODEL_RETRY_FIRST * 2_u32.saturating_pow(tries);
    let pause = fault.retry_after().map_or(own, |asked| asked.max(own));
    (pause <= MODEL_RETRY_WAIT_MAX).then_some(pause)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_and_the_vendor_has_its_say() {
        let limited = |seconds| ProviderFault::RateLimited { after: Some(Duration::from_secs(seconds)) };
        let busy = ProviderFault::Server { after: None };
        assert_eq!(pause(busy, 0), Some(Duration::from_millis(500)));
        assert_eq!(pause(busy, 2), Some(Duration::from_secs(2)));
        assert_eq!(pause(busy, 3), None);
        assert_eq!(pause(limited(7), 0), Some(Duration::from_secs(7)));
        assert_eq!(pause(limited(61), 0), None);
        assert_eq!(pause(ProviderFault::Auth, 0), None);
    }
}
