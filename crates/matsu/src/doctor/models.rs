//! Models and the MCP servers whose tools they use.

use std::time::Duration;

use futures_util::future::join_all;
use matsu_adapters::mcp_host::McpHost;
use matsu_adapters::providers::{self, KeySource, ProviderConfig};
use matsu_core::clock::Clock;

use super::{Finding, bad, good, note};
use crate::compose;
use crate::config::Config;

/// How long a server may take to greet a doctor.
const PROBE_MAX: Duration = Duration::from_secs(20);

/// Each provider can be opened, has its key, and something answers at its address. No model is asked: that would cost
/// money.
pub async fn providers(config: &Config) -> Finding {
    let found = match config.providers().and_then(|found| compose::roster(config).map(|_| found)) {
        Ok(found) => found,
        Err(error) => return bad("models", format!("{error:#}"), "correct that section of the configuration"),
    };
    if found.is_empty() {
        let advice = "set GEMINI_API_KEY, OPENAI_API_KEY or ANTHROPIC_API_KEY, or add [providers.NAME]";
        return note("models", "none is configured", advice);
    }
    let clock = Clock::system();
    let reached = join_all(found.iter().map(|provider| providers::reach(provider, clock))).await;
    let state = |(provider, reached): (&ProviderConfig, &Result<(), String>)| match reached {
        Ok(()) => format!("{} answers", provider.name),
        Err(why) => format!("{}: {why}", provider.name),
    };
    let words: Vec<String> = found.iter().zip(&reached).map(state).collect();
    let mut advice: Vec<String> = found.iter().filter_map(wants_key).collect();
    if reached.iter().any(Result::is_err) {
        advice.push("check base_url of the provider, the network and whether the server runs".to_owned());
    }
    if advice.is_empty() {
        good("models", format!("{} (keys are not tried: that would cost money)", words.join(", ")))
    } else {
        bad("models", words.join(", "), advice.join("; "))
    }
}

fn wants_key(provider: &ProviderConfig) -> Option<String> {
    match (&provider.key, &provider.key_source) {
        (None, KeySource::Variable(name)) => Some(format!("{} has no key: set {name}", provider.name)),
        _ => None,
    }
}

/// Each server is started, greeted, asked for its tools and ended.
pub async fn servers(config: &Config) -> Finding {
    let servers = match config.mcp_servers() {
        Ok(servers) if servers.servers.is_empty() => return good("mcp", "no MCP servers configured"),
        Ok(servers) => servers,
        Err(error) => return bad("mcp", format!("{error:#}"), "correct that file"),
    };
    let host = McpHost::new(servers, Vec::new(), Clock::system());
    let found = Clock::system().within(PROBE_MAX, host.probe()).await;
    host.close_all().await;
    let Some(found) = found else {
        return bad(
            "mcp",
            format!("not all servers answer initialize within {} s", PROBE_MAX.as_secs()),
            "run their commands in a terminal",
        );
    };
    let shown = |(name, tools): &(String, Result<usize, String>)| match tools {
        Ok(count) => format!("{name}: {count} tools"),
        Err(reason) => format!("{name}: {reason}"),
    };
    let words = found.iter().map(shown).collect::<Vec<_>>().join("; ");
    if found.iter().all(|(_, tools)| tools.is_ok()) {
        good("mcp", words)
    } else {
        bad("mcp", words, "run its command in a terminal; chats continue without its tools")
    }
}
