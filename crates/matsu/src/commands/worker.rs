//! `matsu worker`: a node that runs jobs and has no listeners.

use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::Args;
use matsu_core::node::NodeRole;
use matsu_runtime::Workers;
use matsu_runtime::worker::Service;
use tokio::signal::unix::{SignalKind, signal};

use crate::cli::Global;
use crate::compose::{self, Role, VERSION};
use crate::config::{Config, Flags};
use crate::logging;

#[derive(Args)]
pub struct Worker {
    /// How many searches run at once
    #[arg(long, value_name = "N")]
    pub workers: Option<u32>,
    /// Take test jobs too
    #[arg(long, hide = true)]
    pub test_jobs: bool,
}

pub async fn run(global: &Global, args: Worker) -> Result<ExitCode> {
    let config = Config::load(global, &Flags { workers: args.workers, ..Flags::default() })?;
    logging::start(&config, global.verbose);
    if !config.store_url().starts_with("postgres") {
        bail!(
            "a worker needs a store that nodes can share; pass --store postgres://… (matsu serve also works on jobs itself)"
        );
    }
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let opened = compose::open_store(&config).await?;
    let agents = compose::agents(&config);
    let role = Role {
        node: NodeRole::Worker,
        workers: Workers::All,
        bodies: compose::bodies(&agents, args.test_jobs),
        agents,
        version: VERSION.to_owned(),
    };
    let runtime = compose::runtime(&config, &opened, role)?;
    let service = Service::start(&runtime);
    say!("matsu works as {}", runtime.node());
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    service.stop().await;
    Ok(ExitCode::SUCCESS)
}
