//! The log: structured, on stderr, so that stdout belongs to what was asked for.

mod bounded;
mod redacting;

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::FmtSpan;
use tracing_subscriber::fmt::writer::BoxMakeWriter;

use crate::config::Config;

use bounded::BoundedLog;
pub use bounded::open;
use redacting::Redacting;

/// Starts logging. `-v` and `-vv` raise the configured level.
pub fn start(config: &Config, verbose: u8) {
    let level = match verbose {
        0 => config.log_level(),
        1 => "debug",
        _ => "trace",
    };
    // The libraries below log only when everything is asked for.
    let filter = format!("{level},hyper=warn,tokio_postgres=warn,hyper_util=warn,rmcp=warn");
    let builder = tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::new(filter))
        .with_writer(writer(config))
        .with_ansi(std::io::stderr().is_terminal() && !config.no_color)
        .with_span_events(FmtSpan::NONE);
    // A second start, as in tests, keeps the first log.
    let _ = if config.logs_json() { builder.json().try_init() } else { builder.try_init() };
}

fn writer(config: &Config) -> BoxMakeWriter {
    match BoundedLog::of_stderr(&config.paths.daemon_log()) {
        Some(log) => BoxMakeWriter::new(Redacting(log)),
        None => BoxMakeWriter::new(Redacting(std::io::stderr)),
    }
}
