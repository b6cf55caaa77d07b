//! Binding the listeners.

use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::config::Config;
use crate::config::keys::LOOPBACK_NAMES;
use crate::private_files::make_private_folder;
use anyhow::{Context, Result, bail};
use axum::serve::Listener;
use matsu_core::clock::Clock;
use tokio::net::{TcpListener, TcpSocket, UnixListener, UnixStream};

/// How many ports after the wished one are tried.
const PORTS_TRIED: u16 = 20;

/// Connections that may wait to be accepted. When a daemon is back all its clients connect at once, and a client that finds
/// the backlog full waits a second before it tries again.
const BACKLOG_MAX: u32 = 4_096;

/// How often the daemon looks whether the file of its socket is there.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// The Unix socket, bound again when its file was removed: without the file no client finds this daemon, and because this
/// one holds the lock no other can take its place.
#[derive(Debug)]
pub struct SocketListener {
    path: PathBuf,
    listener: UnixListener,
}

impl Listener for SocketListener {
    type Io = UnixStream;
    type Addr = tokio::net::unix::SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        let clock = Clock::system();
        loop {
            tokio::select! {
                accepted = Listener::accept(&mut self.listener) => return accepted,
                () = clock.sleep(LOOK_EVERY) => self.look(),
            }
        }
    }

    fn local_addr(&self) -> std::io::Result<Self::Addr> {
        self.listener.local_addr()
    }
}

impl SocketListener {
    fn look(&mut self) {
        if self.path.symlink_metadata().is_ok() {
            return;
        }
        match bind(&self.path) {
            Ok(listener) => {
                tracing::warn!(socket = %self.path.display(), "the socket's file was removed; it is created again");
                self.listener = listener;
            }
            Err(error) => {
                tracing::warn!(error = format!("{error:#}"), "the socket's file was removed and cannot be created")
            }
        }
    }
}

/// Binds the Unix socket. Call only while holding the serve lock: then whatever lies there is stale, or the socket of
/// a daemon that serves another store from the same data directory.
pub fn bind_unix(path: &Path) -> Result<SocketListener> {
    if std::os::unix::net::UnixStream::connect(path).is_ok() {
        bail!("a daemon of another store listens on {}; pass another --data-dir", path.display());
    }
    let _ = fs::remove_file(path);
    Ok(SocketListener { path: path.to_owned(), listener: bind(path)? })
}

fn bind(path: &Path) -> Result<UnixListener> {
    if let Some(folder) = path.parent() {
        make_private_folder(folder)?;
    }
    let listener = UnixListener::bind(path).with_context(|| format!("cannot bind {}", path.display()))?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o600))
        .with_context(|| format!("cannot protect {}", path.display()))?;
    Ok(listener)
}

/// Binds the port, or the next free one.
///
/// Beyond loopback only if the configuration names the hosts under which it will be asked for: a person who has not set
/// them did not mean to open it to the network. A token is needed there as everywhere.
pub fn bind_tcp(config: &Config) -> Result<TcpListener> {
    let (listen, port) = (config.listen(), config.port());
    let address: std::net::IpAddr =
        listen.parse().with_context(|| format!("{listen} is not an IP address to listen on"))?;
    let is_named = config.public_url().is_some() || config.layers.text("server.names") != LOOPBACK_NAMES;
    if !address.is_loopback() && !is_named {
        bail!(
            "listening on {listen} opens Matsu to the network; set server.names to the names or addresses that \
             clients use for it (for instance MATSU_SERVER_NAMES=build.example.org), or server.public_url to the \
             address of a proxy in front of it, or listen on 127.0.0.1"
        );
    }
    let last = if port == 0 { 0 } else { port.saturating_add(PORTS_TRIED) };
    let mut refusal = None;
    for port in port..=last {
        match listen_on(SocketAddr::new(address, port)) {
            Ok(listener) => return Ok(listener),
            Err(error) => refusal = Some(error),
        }
    }
    match refusal {
        Some(error) => Err(error).with_context(|| {
            format!("no free port from {port} to {last} on {listen}; choose another with --port (0 picks any)")
        }),
        None => bail!("no port to bind"),
    }
}

fn listen_on(address: SocketAddr) -> std::io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    // A daemon that follows another takes its port at once.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG_MAX)
}
