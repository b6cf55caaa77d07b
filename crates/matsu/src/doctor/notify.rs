//! Channels to people: whether they can be opened, and whether notices wait because one cannot be reached.

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
        let error = state.last_error.as_ref()?;
        Some(format!("{}: {} waiting, {error}", state.channel, state.waiting))
    });
    let failing: Vec<String> = failing.collect();
    if failing.is_empty() {
        return Some(good("notify", names.join(", ")));
    }
    let advice = "they are sent again by themselves; try the channel with `matsu notify test`";
    Some(bad("notify", failing.join("; "), advice))
}
