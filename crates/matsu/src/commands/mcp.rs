//! `matsu mcp`: what a client starts. A relay to the daemon; without one, everything in this process.

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Result, anyhow};
use matsu_core::node::NodeRole;
use matsu_runtime::Workers;
use matsu_runtime::dispatch::presets::Offer;
use matsu_runtime::worker::Service;
use matsu_server::app::TestJobs;
use matsu_server::mcp::socket;
use matsu_server::{App, AppOptions};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::cli::Global;
use crate::compose::{self, Role, VERSION};
use crate::config::{Config, Flags};
use crate::daemon::lock::ServeLock;
use crate::relay::{self, Ended, Options, Relay};
use crate::{event_loop, logging, stdio};

/// Not inside a runtime: a relay needs one thread, and a process that does the work itself needs all cores.
pub fn run(global: &Global, args: &Options) -> Result<ExitCode> {
    let config = Config::load(global, &Flags::default())?;
    logging::start(&config, global.verbose);
    Offer::parse(&args.tools).map_err(|error| anyhow!(error))?;
    if !args.no_daemon {
        let relay = Relay::new(&config, global, args);
        match event_loop::on_this_thread(relay.run())? {
            Ended::ClientLeft => return Ok(ExitCode::SUCCESS),
            Ended::NoDaemon => eprintln!("matsu: no daemon could be started within 3 s; working in this process"),
        }
    }
    event_loop::on_all_cores(in_process(&config, args))
}

/// Workers only if no other process serves the store.
async fn in_process(config: &Config, args: &Options) -> Result<ExitCode> {
    let lock = ServeLock::try_take(&config.paths.serve_lock(config.store_url()))?;
    let opened = compose::open_store(config).await?;
    let agents = compose::agents(config);
    let role = Role {
        // A process that runs no jobs is no server: other nodes would leave it a share of the work.
        node: if lock.is_some() { NodeRole::Serve } else { NodeRole::Command },
        workers: if lock.is_some() { Workers::All } else { Workers::None },
        bodies: compose::bodies(&agents, args.test_jobs),
        agents,
        version: VERSION.to_owned(),
    };
    let runtime = compose::runtime(config, &opened, role)?;
    let service = Service::start(&runtime);
    let app = App::new(AppOptions {
        runtime,
        version: VERSION.to_owned(),
        store: config.store_name(),
        shutdown: CancellationToken::new(),
        metrics: Arc::new(String::new),
        test_jobs: TestJobs::Hidden,
    });
    // On one of the runtime's own threads: this one would have to be woken by one of those for every frame.
    let mut serving = JoinSet::new();
    serving.spawn(socket::serve_here(app.clone(), relay::preamble(args), stdio::stdin(), stdio::stdout()));
    let served = tokio::select! {
        served = serving.join_next() => served.transpose()?.unwrap_or(Ok(())),
        () = relay::termination() => Ok(()),
    };
    service.stop().await;
    served.map_err(|error| anyhow!(error))?;
    Ok(ExitCode::SUCCESS)
}
