//! `matsu serve`: the daemon.

use std::io::IsTerminal;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use clap::Args;
use hyper::Method;
use matsu_core::clock::Clock;
use matsu_core::node::NodeRole;
use matsu_core::ports::agent::{AgentHost, ProbeDepth};
use matsu_runtime::notify::{schedules, webhooks};
use matsu_runtime::{Service, Workers};
use matsu_server::app::TestJobs;
use matsu_server::{App, AppOptions, listeners};
use metrics_exporter_prometheus::PrometheusBuilder;
use serde_json::json;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::open;
use crate::cli::Global;
use crate::client::{ANSWER_MAX, control};
use crate::compose::{self, Role, VERSION};
use crate::config::{Config, Flags};
use crate::daemon::announce::{self, ServerJson, TokenAside};
use crate::daemon::ending::{self, Ending, Signals};
use crate::daemon::following::{self, Following};
use crate::daemon::lock::ServeLock;
use crate::daemon::{keep_awake, socket, waking};
use crate::doctor;
use crate::logging;
use crate::private_files;
use crate::versions::is_newer;

#[derive(Args)]
pub struct Serve {
    /// The address to listen on
    #[arg(long, value_name = "ADDR")]
    pub listen: Option<String>,
    /// The port; 0 picks a free one
    #[arg(long)]
    pub port: Option<u16>,
    /// Keep everything in memory; all of it is lost when the server ends
    #[arg(long)]
    pub ephemeral: bool,
    /// How many searches run at once
    #[arg(long, value_name = "N")]
    pub workers: Option<u32>,
    /// Open the web page in a browser
    #[arg(long)]
    pub open: bool,
    /// End after this long without work or client
    #[arg(long, value_name = "SECONDS", hide = true)]
    pub idle_exit: Option<u64>,
    /// Detach from the terminal that started it
    #[arg(long, hide = true)]
    pub detach: bool,
    /// Offer the routes and job kinds that tests and benches use
    #[arg(long, hide = true)]
    pub test_jobs: bool,
    /// Report this version, to test the hand-over between two (tests only)
    #[arg(long, value_name = "VERSION", hide = true)]
    pub as_version: Option<String>,
}

pub async fn run(global: &Global, args: Serve) -> Result<ExitCode> {
    if args.detach {
        // The first thing: nothing that happens to the starter's terminal may reach us.
        let _ = rustix::process::setsid();
    }
    let mut global = global.clone();
    let scratch = Scratch::for_ephemeral(&args, &mut global)?;
    let flags = Flags { listen: args.listen.clone(), port: args.port, workers: args.workers };
    let config = Config::load(&global, &flags)?;
    let read = following::stamps(&config);
    logging::start(&config, global.verbose);
    let version = args.as_version.clone().unwrap_or_else(|| VERSION.to_owned());
    let Some(lock) = take_lock(&config, &version).await? else { return Ok(ExitCode::SUCCESS) };
    let _ = std::fs::remove_file(config.paths.stopped());

    let opened = compose::open_store(&config).await?;
    let reloading = compose::reloading_agents(&config);
    let following = Arc::new(Following::new(global.clone(), flags, config.clone(), read, Arc::clone(&reloading)));
    let agents: Arc<dyn AgentHost> = reloading;
    let role = Role {
        node: NodeRole::Serve,
        workers: Workers::All,
        bodies: compose::bodies(&agents, args.test_jobs),
        agents,
        version: version.clone(),
    };
    let runtime = compose::runtime(&config, &opened, role)?;
    let recorder = PrometheusBuilder::new().install_recorder().context("metrics were started twice")?;
    let app = App::new(AppOptions {
        runtime,
        version,
        store: config.store_name(),
        shutdown: CancellationToken::new(),
        metrics: Arc::new(move || recorder.render()),
        test_jobs: if args.test_jobs { TestJobs::Offered } else { TestJobs::Hidden },
    });
    // Before any client can connect.
    following.host_chats(&app);
    app.set_channels(compose::channels(&config, app.runtime().store()));
    let mut signals = Signals::listen()?;
    let listeners = Listeners::open(&config, &app).await?;
    let service = Service::start(app.runtime());
    show_settings(&app, &following);
    // Only a person gets it: what is not a terminal may be a journal that others read.
    let link = listeners.page.as_deref().filter(|_| args.open || std::io::stdout().is_terminal());
    let link = link.map(|page| open::login_link(page, &app.login_codes().make()));
    let shown = link.as_deref().filter(|_| std::io::stdout().is_terminal());
    greet(&config, listeners.address.as_deref(), shown, global.json);
    if let Some(link) = link.as_deref().filter(|_| args.open)
        && let Err(error) = open::show(&config, link)
    {
        eprintln!("matsu: {error:#}; `matsu open --print` prints a link that you can open yourself");
    }

    let mut beside = beside(&app, &config, &following);
    let idle_exit = args.idle_exit.map(Duration::from_secs);
    let ending = until_the_end(&app, &mut signals, idle_exit, &config).await?;
    tracing::info!(?ending, "ending");
    if matches!(ending, Ending::Signal(_) | Ending::Asked) {
        let _ = private_files::write_private(&config.paths.stopped(), "");
        let runs = app.runtime().running_jobs() - app.runtime().bound_jobs();
        if runs > 0 {
            eprintln!(
                "matsu: runs of agents that continue without the daemon: {runs}; the next `matsu serve` takes them over"
            );
        }
    }
    beside.shutdown().await;
    following.end_chats(&app).await;
    close(&config, &app, listeners, service).await;
    drop(lock);
    drop(scratch);
    Ok(ExitCode::SUCCESS)
}

/// Lets clients ask what is wrong and which settings are in use.
fn show_settings(app: &App, following: &Arc<Following>) {
    let doctored = Arc::clone(following);
    app.set_doctor(Arc::new(move || {
        let config = doctored.config();
        Box::pin(async move { doctor::look(&config, ProbeDepth::Known).await.json() })
    }));
    let shown = Arc::clone(following);
    app.set_settings(Arc::new(move || shown.shown()));
}

/// A folder that goes when the process does, for a store that is not to last.
struct Scratch(Option<std::path::PathBuf>);

impl Scratch {
    fn for_ephemeral(args: &Serve, global: &mut Global) -> Result<Self> {
        if !args.ephemeral {
            return Ok(Self(None));
        }
        global.store = Some("memory:".to_owned());
        if global.data_dir.is_some() {
            return Ok(Self(None));
        }
        let folder = std::env::temp_dir().join(format!("matsu-ephemeral-{}", std::process::id()));
        private_files::make_private_folder(&folder)?;
        global.data_dir = Some(folder.clone());
        Ok(Self(Some(folder)))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Some(folder) = &self.0 {
            let _ = std::fs::remove_dir_all(folder);
        }
    }
}

/// The lock of the store; `None` if a daemon of this version or a newer one already serves it. An older one is asked
/// to end, and is waited for.
async fn take_lock(config: &Config, version: &str) -> Result<Option<ServeLock>> {
    let path = config.paths.serve_lock(config.store_url());
    let clock = Clock::system();
    let mut asked = false;
    let mut last_answer = clock.instant();
    loop {
        if let Some(lock) = ServeLock::try_take(&path)? {
            return Ok(Some(lock));
        }
        let info = control(config, Method::GET, "/control/info", None).await;
        let info = info.ok().filter(|info| info["store"] == config.store_name());
        if info.is_some() {
            last_answer = clock.instant();
        } else if clock.instant() - last_answer > ANSWER_MAX {
            bail!(
                "another process holds {} but does not answer at {}; if it serves this store from another data \
                 directory, pass that one with --data-dir",
                path.display(),
                config.paths.socket().display()
            );
        }
        match info {
            // Only a newer one asks the other to end: two versions in use would otherwise chase each other for ever.
            Some(info) if !is_newer(version, info["version"].as_str().unwrap_or("")) => {
                let address = announce::read_server_json(&config.paths).and_then(|server| server.address);
                say!(
                    "matsu already serves this store{} (pid {})",
                    address.map(|address| format!(" at {address}")).unwrap_or_default(),
                    info["pid"]
                );
                return Ok(None);
            }
            Some(info) => {
                if !asked {
                    eprintln!(
                        "matsu {} serves this store and runs {} jobs; version {version} starts when the jobs that would end with it are finished",
                        info["version"].as_str().unwrap_or("?"),
                        info["running_jobs"]
                    );
                    asked = true;
                }
                // Again and again: the wish counts only as long as we are there to have it. That the other one may
                // end in this very moment is no error.
                let _ = control(config, Method::POST, "/control/hand-over", Some(json!({ "version": version }))).await;
            }
            // Just starting or just ending.
            None => {}
        }
        clock.sleep(Duration::from_millis(100)).await;
    }
}

/// The open listeners, and their tasks.
struct Listeners {
    address: Option<String>,
    /// Where a browser finds the page.
    page: Option<String>,
    servers: JoinSet<()>,
    _token_aside: Option<TokenAside>,
}

impl Listeners {
    /// Token first, then the listeners, then the announcement: a client that reads it can connect.
    async fn open(config: &Config, app: &App) -> Result<Self> {
        private_files::close_data_dir(&config.paths.data_dir)?;
        // Bound before the token is written: the token of a daemon that listens here must stay as it is.
        let unix = socket::bind_unix(&config.paths.socket())?;
        let token_aside = TokenAside::for_store(&config.paths, config.store_url());
        announce::ensure_token(app, &config.paths).await?;
        app.bound(config.bounds());
        let mut servers = JoinSet::new();
        servers.spawn(listeners::serve_socket(app.clone(), unix));
        let (mut address, mut page) = (None, None);
        if config.serves_http() {
            let tcp = socket::bind_tcp(config)?;
            let local = tcp.local_addr()?;
            address = Some(format!("http://{local}"));
            let public = config.public_url().map(|public| public.to_string());
            page = Some(public.unwrap_or_else(|| page_address(local)));
            page.clone().into_iter().for_each(|page| app.runtime().set_page(page));
            app.set_addresses(config.addresses());
            servers.spawn(listeners::serve_tcp(app.clone(), tcp));
        }
        let (pid, version) = (std::process::id(), app.version().to_owned());
        announce::write_server_json(&config.paths, &ServerJson { address: address.clone(), pid, version })?;
        Ok(Self { address, page, servers, _token_aside: token_aside })
    }
}

/// As this machine's own browser reaches it.
fn page_address(local: SocketAddr) -> String {
    format!("http://{}", open::reachable(local))
}

fn greet(config: &Config, address: Option<&str>, link: Option<&str>, as_json: bool) {
    if as_json {
        say!("{}", json!({ "ok": true, "address": address, "link": link, "pid": std::process::id() }));
        return;
    }
    match address {
        Some(address) => say!("matsu serves at {address}"),
        None => say!("matsu serves on {}", config.paths.socket().display()),
    }
    say!("  store   {}", config.store_name());
    say!("  token   {}", config.paths.token().display());
    match link {
        Some(link) => {
            say!("  page    {link}");
            say!("          works once, for five minutes; `matsu open` makes another");
        }
        None if address.is_some() => say!("  page    `matsu open` opens it, signed in"),
        None => {}
    }
    say!("  look    matsu tasks · matsu doctor");
}

/// An idle daemon first makes itself unreachable, and stays if a client connected in that moment.
async fn until_the_end(
    app: &App,
    signals: &mut Signals,
    idle_exit: Option<Duration>,
    config: &Config,
) -> Result<Ending> {
    let socket = config.paths.socket();
    let aside = socket.with_extension("closing");
    loop {
        let ending = ending::wait(app, signals, idle_exit).await;
        let (Ending::Idle, Some(after)) = (&ending, idle_exit) else { return Ok(ending) };
        // Under another name no new client can connect; one that connected just before is still accepted.
        std::fs::rename(&socket, &aside)?;
        Clock::system().sleep(Duration::from_millis(50)).await;
        if ending::is_idle(app, after).await {
            let _ = std::fs::remove_file(&aside);
            return Ok(ending);
        }
        std::fs::rename(&aside, &socket)?;
    }
}

/// What a daemon does beside serving and working: it keeps the machine awake, sends notices, follows its files, resumes
/// sessions that have news, fires schedules and starts what arrives at webhooks.
fn beside(app: &App, config: &Config, following: &Arc<Following>) -> JoinSet<()> {
    let mut beside = JoinSet::new();
    beside.spawn(keep_awake::run(app.clone(), config.keep_awake()));
    beside.spawn(waking::run(app.clone(), Arc::clone(following)));
    let (followed, following) = (app.clone(), Arc::clone(following));
    beside.spawn(async move { following.run(followed).await });
    let scheduled = app.clone();
    beside.spawn(async move { schedules::run(scheduled.runtime(), scheduled.shutdown()).await });
    let hooked = app.clone();
    beside.spawn(async move { webhooks::run(hooked.runtime(), hooked.shutdown()).await });
    beside
}

/// Jobs first, so that waits still return their ends; then the listeners.
async fn close(config: &Config, app: &App, mut listeners: Listeners, service: Service) {
    service.stop().await;
    app.shutdown().cancel();
    while listeners.servers.join_next().await.is_some() {}
    announce::remove_server_json(&config.paths);
    let _ = std::fs::remove_file(config.paths.socket());
}
