//! Models. One wire format is one file in `formats/` (what is sent), one in `decoders/` (what comes back) and one line
//! in [`WIRES`]; a vendor that speaks one of them is configuration alone.

pub mod config;
mod decoders;
mod exchange;
pub mod formats;
mod http;
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

use matsu_core::clock::Clock;
use matsu_core::ports::provider::Provider;

pub use config::{KeySource, ProviderConfig};
pub use exchange::pieces;
pub use refusal::{Fault, in_stream, of_status};
pub use secret::Secret;
pub use wire::{Decoder, Framing, Progress, Reader, WIRES, Wire};

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
                Err(format!("there is no wire {word:?}; there are {}", known.join(", ")))
            }
        },
    }
}
