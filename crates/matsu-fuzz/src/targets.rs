//! The list of targets. Adding one is a file in `targets/`, a `mod` line and an entry here, a file in
//! `fuzz/fuzz_targets/`, a `[[bin]]` in `fuzz/Cargo.toml` and a first input in `fuzz/corpus/`.

mod address_guard;
mod agent_streams;
mod charsets;
mod client_config;
mod cookies;
mod devtools;
mod documents;
mod html;
mod json_rpc;
mod pdf;
mod provider_formats;
mod reader_frames;
mod redaction;
mod relay_preamble;
mod robots;
mod sse;
mod tool_inputs;
mod webhooks;

/// One function that takes any bytes.
pub struct Target {
    pub name: &'static str,
    /// Panics if a property does not hold.
    pub run: fn(&[u8]),
}

pub const TARGETS: &[Target] = &[
    Target { name: "address_guard", run: address_guard::run },
    Target { name: "agent_streams", run: agent_streams::run },
    Target { name: "charsets", run: charsets::run },
    Target { name: "client_config", run: client_config::run },
    Target { name: "cookies", run: cookies::run },
    Target { name: "devtools", run: devtools::run },
    Target { name: "documents", run: documents::run },
    Target { name: "html", run: html::run },
    Target { name: "json_rpc", run: json_rpc::run },
    Target { name: "pdf", run: pdf::run },
    Target { name: "provider_formats", run: provider_formats::run },
    Target { name: "reader_frames", run: reader_frames::run },
    Target { name: "redaction", run: redaction::run },
    Target { name: "relay_preamble", run: relay_preamble::run },
    Target { name: "robots", run: robots::run },
    Target { name: "sse", run: sse::run },
    Target { name: "tool_inputs", run: tool_inputs::run },
    Target { name: "webhooks", run: webhooks::run },
];

/// Runs one target by its name.
///
/// # Panics
/// A property does not hold, or there is no such target.
pub fn run(name: &str, data: &[u8]) {
    match TARGETS.iter().find(|target| target.name == name) {
        Some(target) => (target.run)(data),
        None => panic!("there is no target {name}"),
    }
}
