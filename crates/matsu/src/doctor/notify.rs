//! Channels to people: whether they can be opened, and whether the last message of each has arrived.

use super::{Finding, bad, good};
use crate::compose;
use crate::config::Config;
use matsu_core::ports::store::ChannelStates;

/// `None`: no channel is configured.
pub async fn channels(config: &Config) -> Option<Finding> {
    let correct = "correct that section of the configuration";
    let channels = match config.channels() {
        Ok(channels) if channels.is_empty() => return None,
        Ok(channels) => channels,
        Err(error) => return Some(bad("notify", format!("{error:#}"), correct)),
    };
    let names: Vec<String> = channels.iter().map(|channel| channel.name.clone()).collect();
    let store = match compose::open_store(config).await {
        Ok(opened) => opened.store,
        Err(error) => return Some(bad("notify", format!("{error:#}"), "see the store above")),
    };
    for channel in channels {
        let name = channel.name.clone();
        if let Err(error) = matsu_adapters::notify::open(channel, &store) {
            return Some(bad("notify", format!("{name}: {error}"), correct));
        }
    }
    let states = match store.run(ChannelStates).await {
        Ok(states) => states,
        Err(error) => return Some(bad("notify", error.to_string(), "see the store above")),
    };
    let failing = states.iter().filter(|state| names.contains(&state.channel)).filter_map(|state| {
        let (name, error) = (&state.channel, state.last_error.as_ref()?);
        Some(match state.waiting {
            0 => format!("{name}: the last message did not arrive, {error}"),
            waiting => format!("{name}: {waiting} waiting, {error}"),
        })
    });
    let failing: Vec<String> = failing.collect();
    if failing.is_empty() {
        return Some(good("notify", names.join(", ")));
    }
    let advice = "waiting messages are retried automatically; correct the section or the receiver, then run `matsu \
                  notify test`; its success removes this finding";
    Some(bad("notify", failing.join("; "), advice))
}
