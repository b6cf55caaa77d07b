//! Models. One wire format is one file in `formats/` (what is sent), one in `decoders/` (what comes back) and one line
//! in [`WIRES`]; a vendor that uses one of them is configuration alone.

pub mod agent;
pub mod config;
mod decoders;
mod exchange;
pub mod formats;
mod http;
mod image_support;
mod refusal;
mod schema;
pub mod scripted;
mod secret;
mod sse;
#[cfg(test)]
mod tests;
mod vendor;
mod wire;

use std::sync::Arc;
use std::time::Duration;

use matsu_core::clock::Clock;
use matsu_core::ports::fetcher::FetchError;
use matsu_core::ports::provider::Provider;

use crate::http::answer::HttpReply;

pub use config::{KeySource, ProviderConfig};
pub use exchange::pieces;
pub use refusal::{Fault, in_stream, of_status};
pub use secret::Secret;
pub use wire::{Decoder, Framing, Progress, Reader, WIRES, Wire};

/// Whether the address of a provider answers. Nothing is asked of the model and no key is sent: that may cost money.
///
/// # Errors
/// In words that name no key: why nothing answers.
pub async fn reach(config: &ProviderConfig, clock: Clock) -> Result<(), String> {
    let Some(wire) = WIRES.iter().find(|wire| wire.name() == config.wire) else { return Ok(()) };
    let base = config.base_url.clone().unwrap_or_else(|| wire.base_url().to_owned());
    let request = http::client(&base)?.get(&base);
    match clock.within(REACH_MAX, HttpReply::read(request, REACH_BYTES_MAX)).await {
        None => Err(format!("no answer within {} s", REACH_MAX.as_secs())),
        Some(Ok(_) | Err(FetchError::TooLarge)) => Ok(()),
        Some(Err(error)) => Err(error.to_string()),
    }
}

/// How long an address may take to answer, and how much of the answer is read.
const REACH_MAX: Duration = Duration::from_secs(10);
const REACH_BYTES_MAX: usize = 64 * 1024;

/// The provider that a configuration describes.
///
/// # Errors
/// In words, what the configuration gets wrong.
pub fn open(config: ProviderConfig, clock: Clock) -> Result<Arc<dyn Provider>, String> {
    match config.wire.as_str() {
        scripted::WIRE => Ok(Arc::new(scripted::Scripted::from_config(&config, clock)?)),
        word => match WIRES.iter().find(|wire| wire.name() == word) {
            Some(wire) => Ok(Arc::new(vendor::Vendor::new(config, *wire, clock)?)),
            None => {
                let known: Vec<&str> = WIRES.iter().map(|wire| wire.name()).chain([scripted::WIRE]).collect();
                Err(format!("there is no wire {word:?}; expected one of {}", known.join(", ")))
            }
        },
    }
}
