//! `matsu open`: the page of a running daemon, signed in by a link that works once.

use std::net::{Ipv4Addr, SocketAddr};
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};
use clap::Args;
use hyper::Method;
use matsu_adapters::reach;
use serde_json::json;

use super::{Context, print_json};
use crate::client::control;
use crate::config::Config;
use crate::daemon::announce;
use crate::private_files;
use crate::process;

#[derive(Args)]
pub struct Open {
    /// Only print the link
    #[arg(long)]
    pub print: bool,
}

pub async fn run(cx: &Context, args: &Open) -> Result<ExitCode> {
    let link = link(&cx.config).await?;
    if cx.json {
        print_json(&json!({ "ok": true, "link": link }));
    } else if args.print || show(&cx.config, &link).is_err() {
        say!("{link}");
    } else {
        say!("opened in your browser; if it did not, `matsu open --print` prints the link");
    }
    Ok(ExitCode::SUCCESS)
}

async fn link(config: &Config) -> Result<String> {
    let server = announce::read_server_json(&config.paths).and_then(|server| server.address);
    let address = server.context("no server with a page is running here; start one with `matsu serve`")?;
    let address = answering(config, &address).await?;
    let made = control(config, Method::POST, "/control/login-code", None).await;
    let made = made.context("the server returned no login code; start a server with `matsu serve`")?;
    let code = made["code"]
        .as_str()
        .context("the server returned no login code; it may be older than this program: restart it")?;
    Ok(login_link(&address, code))
}

/// The first address of the server that answers: an address that does not is never printed.
async fn answering(config: &Config, listens_at: &str) -> Result<String> {
    let public = config.public_url().map(|public| public.to_string());
    if let Some(public) = &public {
        match reach::server(public).await {
            Ok(()) => return Ok(public.clone()),
            Err(why) => eprintln!(
                "matsu: {public} (server.public_url) does not answer from this machine: {why}. Start the proxy in \
                 front of Matsu, or see docs/remote.md; the link below works on this machine only"
            ),
        }
    }
    let socket: Option<SocketAddr> = listens_at.strip_prefix("http://").and_then(|address| address.parse().ok());
    let local = socket.map_or_else(|| listens_at.to_owned(), |socket| format!("http://{}", reachable(socket)));
    let port = socket.map(|socket| socket.port()).unwrap_or_default();
    let bracketed = |name: String| if name.contains(':') { format!("[{name}]") } else { name };
    let named = config.addresses().names.into_iter().map(|name| format!("http://{}:{port}", bracketed(name)));
    let mut refusals = Vec::new();
    for address in std::iter::once(local).chain(named) {
        match reach::server(&address).await {
            Ok(()) => return Ok(address),
            Err(why) => refusals.push(format!("{address}: {why}")),
        }
    }
    bail!(
        "the server runs, but no address that a browser here can open answers ({}); check server.listen, \
         server.names and server.public_url, or see docs/remote.md",
        refusals.join("; ")
    )
}

/// "Every address" is none that could be opened.
pub fn reachable(local: SocketAddr) -> SocketAddr {
    let ip = if local.ip().is_unspecified() { Ipv4Addr::LOCALHOST.into() } else { local.ip() };
    SocketAddr::new(ip, local.port())
}

/// In the fragment, which no server, log or referrer ever sees.
pub fn login_link(address: &str, code: &str) -> String {
    format!("{address}/login#code={code}")
}

/// Leads the browser there by way of a private file: what stands on a command line every user of the machine can read.
pub fn show(config: &Config, link: &str) -> Result<()> {
    let file = config.paths.data_dir.join("open.html");
    let page = format!(
        "<!doctype html><meta charset=utf-8><title>Matsu</title><meta http-equiv=refresh content=\"0;url={link}\">"
    );
    private_files::write_private(&file, &page)?;
    process::show_in_browser(&file)
}
